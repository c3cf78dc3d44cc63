/* Batches of queries: those that wait, with one call for each catalog. */
#include "serve/search/searcher.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

struct ki_searcher {
    ki_pool *pool;
    ki_metrics *metrics;
    int64_t most_batch, most_hits;
    double deadline;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t is_there;
    ki_turns waiting;
    bool is_ending;
    kith_search_request *requests; /* [most_batch] of one call … */
    kith_found *found;             /* … and their answers */
    ki_ask *batch[];               /* [2 * most_batch]: those in time, and those that are not */
};

void ki_ask_release(ki_ask *a) {
    kith_found_release(&a->found);
    *a = (ki_ask){0};
}

static const ki_catalog *catalog_of(const ki_ask *a) { return a->request->catalog; }

/* ---- batches ---- */

/* Move the queries for which `is` holds to the front; returns how many. */
static int64_t gather(ki_ask **asks, int64_t n, bool (*is)(const ki_ask *a, const ki_ask *b)) {
    int64_t n_front = 1;
    for (int64_t i = 1; i < n; i++) {
        if (!is(asks[0], asks[i])) continue;
        ki_ask *const one = asks[i];
        memmove(&asks[n_front + 1], &asks[n_front], (size_t)(i - n_front) * sizeof *asks);
        asks[n_front++] = one;
    }
    return n_front;
}

static bool has_same_catalog(const ki_ask *a, const ki_ask *b) { return catalog_of(a) == catalog_of(b); }

static void run_catalog(ki_searcher *e, ki_ask *const *asks, int64_t n) {
    kith_error err;
    KITH_OPTIONS(kith_ask_options, options);
    options.ids_only = true;
    options.most_looked_at = e->most_hits; /* one client cannot have the whole index looked through */
    for (int64_t i = 0; i < n; i++) {
        e->requests[i] = asks[i]->search;
        /* A commit has its groups once. */
        if (asks[i]->duplicates) options.duplicates = asks[i]->duplicates;
    }
    const kith_status status =
        kith_collection_search(catalog_of(asks[0])->collection, e->requests, n, &options, e->found, &err);
    for (int64_t i = 0; i < n; i++) {
        kith_found *found = &asks[i]->found;
        *found = e->found[i];
        if (status != KITH_OK && found->status == KITH_OK) { /* the call failed, not this query */
            found->status = status;
            found->error = err;
        }
        if (found->row) atomic_fetch_add(&e->metrics->n_embedded, (uint_least64_t)asks[i]->n_pictures);
    }
}

static bool are_both_tasks(const ki_ask *a, const ki_ask *b) { return !a->task == !b->task; }

static void run_batch(ki_searcher *e, ki_ask **asks, int64_t n) {
    const int64_t n_first = gather(asks, n, are_both_tasks);
    ki_ask **tasks = asks[0]->task ? asks : asks + n_first;
    const int64_t n_tasks = asks[0]->task ? n_first : n - n_first;
    for (int64_t i = 0; i < n_tasks; i++) tasks[i]->task(tasks[i]->request);
    if (tasks == asks) asks += n_tasks;
    n -= n_tasks;
    if (n == 0) return;
    atomic_fetch_add(&e->metrics->n_batches, 1);
    atomic_fetch_add(&e->metrics->n_batched, (uint_least64_t)n);
    for (int64_t m; n > 0; asks += m, n -= m) {
        m = gather(asks, n, has_same_catalog);
        run_catalog(e, asks, m);
    }
}

/* ---- the thread ---- */

static ki_ask *ask_of(ki_turn *turn) { return (ki_ask *)((char *)turn - offsetof(ki_ask, turn)); }

static bool is_late(const ki_searcher *e, const ki_ask *a, double now) {
    return now > a->request->began + e->deadline;
}

/* Wait for queries, and take those that are there, as many as a batch may have. Those that come too late only get their answer. 0: the
 * end. */
static int64_t take(ki_searcher *e, ki_ask **ret_asks) {
    int64_t n = 0, n_pictures = 0;
    pthread_mutex_lock(&e->lock);
    while (!e->waiting.first && !e->is_ending) pthread_cond_wait(&e->is_there, &e->lock);
    const double now = ki_seconds_now();
    for (ki_turn *turn; n < e->most_batch && (turn = ki_turns_next(&e->waiting, NULL, NULL));) {
        ki_ask *a = ask_of(turn);
        if (!is_late(e, a, now)) n_pictures += a->n_pictures;
        if (n > 0 && n_pictures > e->most_batch) break;
        ki_turns_serve(&e->waiting, turn);
        ret_asks[n++] = a;
    }
    pthread_mutex_unlock(&e->lock);
    return n;
}

static void *work(void *context) {
    ki_searcher *e = context;
    ki_ask **asks = e->batch, **late = e->batch + e->most_batch;
    for (int64_t n; (n = take(e, asks)) > 0;) {
        const double now = ki_seconds_now();
        int64_t n_late = 0, n_in_time = 0;
        for (int64_t i = 0; i < n; i++) {
            if (is_late(e, asks[i], now)) {
                kith_found *found = &asks[i]->found;
                found->status = ki_fail(&found->error, KITH_ECANCELED, "the query waited too long");
                late[n_late++] = asks[i];
            } else {
                asks[n_in_time++] = asks[i];
            }
        }
        if (n_in_time > 0) run_batch(e, asks, n_in_time);
        for (int64_t i = 0; i < n_in_time; i++) ki_pool_add(e->pool, asks[i]->request);
        for (int64_t i = 0; i < n_late; i++) ki_pool_add(e->pool, late[i]->request);
    }
    return NULL;
}

static void drop(ki_searcher *e) {
    ki_free(e->requests);
    ki_free(e->found);
    ki_free(e);
}

kith_status ki_searcher_new(ki_pool *pool, ki_metrics *metrics, int64_t most_batch, int64_t most_hits,
                            double deadline, ki_searcher **ret, kith_error *err) {
    ki_searcher *e = NULL;
    const size_t n = (size_t)most_batch;
    KI_TRY(ki_zalloc_or(&e, 1, sizeof *e + 2 * n * sizeof(ki_ask *), "a searcher", err));
    kith_status status = ki_alloc_or(&e->requests, n, sizeof *e->requests, "a searcher", err);
    if (status == KITH_OK) status = ki_alloc_or(&e->found, n, sizeof *e->found, "a searcher", err);
    if (status != KITH_OK) {
        drop(e);
        return status;
    }
    e->pool = pool;
    e->metrics = metrics;
    e->most_batch = most_batch;
    e->most_hits = most_hits;
    e->deadline = deadline;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->is_there, NULL);
    if (pthread_create(&e->thread, NULL, work, e) != 0) {
        drop(e);
        return ki_fail(err, KITH_ENOMEM, "a thread cannot be made");
    }
    *ret = e;
    return KITH_OK;
}

void ki_searcher_free(ki_searcher *e) {
    if (!e) return;
    pthread_mutex_lock(&e->lock);
    e->is_ending = true;
    pthread_cond_signal(&e->is_there);
    pthread_mutex_unlock(&e->lock);
    pthread_join(e->thread, NULL);
    pthread_cond_destroy(&e->is_there);
    pthread_mutex_destroy(&e->lock);
    drop(e);
}

void ki_searcher_add(ki_searcher *e, ki_ask *ask) {
    enum { TASK_COST = 3 }; /* an explanation: two pictures through the network, and their maps */
    ask->turn = (ki_turn){.client = ki_limits_counted(&ask->request->client),
                          .cost = ask->task ? TASK_COST : 1 + ask->n_pictures};
    pthread_mutex_lock(&e->lock);
    ki_turns_add(&e->waiting, &ask->turn);
    pthread_cond_signal(&e->is_there);
    pthread_mutex_unlock(&e->lock);
}
