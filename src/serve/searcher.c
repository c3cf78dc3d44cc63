/* Batches of queries through the network, and through the index. */
#include "serve/searcher.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"

struct ki_searcher {
    ki_pool *pool;
    ki_metrics *metrics;
    int64_t most_batch;
    double deadline;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t is_there;
    ki_turns waiting;
    bool is_ending;
    ki_ask *batch[]; /* [2 * most_batch]: those in time, and those that are not */
};

void ki_ask_release(ki_ask *a) {
    ki_free(a->picture);
    ki_free(a->id);
    ki_free(a->weight);
    ki_free(a->where);
    ki_free(a->row);
    ki_free(a->hits);
    *a = (ki_ask){0};
}

static const ki_catalog *catalog_of(const ki_ask *a) { return a->request->catalog; }

/* ---- vectors ---- */

static int64_t count_pictures(const ki_ask *a) {
    int64_t n = 0;
    for (int64_t i = 0; i < a->n; i++) n += a->id[i] < 0;
    return n;
}

static void list_pictures(const ki_ask *a, kith_pixels *to) {
    for (int64_t i = 0; i < a->n; i++) {
        if (a->id[i] < 0) *to++ = a->picture[i];
    }
}

/* One row of pictures and items. `embedded` are those of its pictures. */
static kith_status make_row(ki_ask *a, const float *embedded, kith_error *err) {
    kith_status status;
    const ki_catalog *c = catalog_of(a);
    const int64_t dim = c->info.dim;
    float *rows = NULL;
    KI_CHECK(ki_alloc_or(&a->row, (size_t)dim, sizeof *a->row, "a query", err));
    KI_CHECK(ki_alloc_or(&rows, (size_t)a->n * (size_t)dim, sizeof *rows, "a query", err));
    for (int64_t i = 0; i < a->n; i++) {
        float *row = rows + i * dim;
        if (a->id[i] >= 0) {
            status = kith_index_vectors(c->index, &a->id[i], 1, row, err);
            if (status == KITH_ENOTFOUND) ki_fail(err, status, "there is no item %lld", (long long)a->id[i]);
            if (status != KITH_OK) goto done;
        } else {
            memcpy(row, embedded, (size_t)dim * sizeof *row);
            embedded += dim;
        }
    }
    KI_CHECK(kith_query_combine(rows, a->weight, a->n, dim, a->row, err));
done:
    ki_free(rows);
    return status;
}

/* The vectors of a list of queries with the same catalog, all pictures at once. */
static kith_status embed(ki_searcher *e, ki_ask *const *asks, int64_t n, kith_error *err) {
    kith_status status = KITH_OK;
    const ki_catalog *c = catalog_of(asks[0]);
    int64_t n_pictures = 0, at = 0;
    kith_pixels *pixels = NULL;
    float *values = NULL;
    for (int64_t i = 0; i < n; i++) n_pictures += count_pictures(asks[i]);
    if (n_pictures > 0) {
        KI_CHECK(ki_alloc_or(&pixels, (size_t)n_pictures, sizeof *pixels, "pictures", err));
        KI_CHECK(
            ki_alloc_or(&values, (size_t)n_pictures * (size_t)c->info.dim, sizeof *values, "vectors", err));
        for (int64_t i = 0; i < n; i++) {
            list_pictures(asks[i], pixels + at);
            at += count_pictures(asks[i]);
        }
        KI_CHECK(kith_embedder_pixels(c->embedder, pixels, n_pictures, values, err));
        atomic_fetch_add(&e->metrics->n_embedded, (uint_least64_t)n_pictures);
    }
    at = 0;
    for (int64_t i = 0; i < n; i++) {
        asks[i]->status = make_row(asks[i], values ? values + at * c->info.dim : NULL, &asks[i]->err);
        at += count_pictures(asks[i]);
    }
done:
    ki_free(pixels);
    ki_free(values);
    return status;
}

/* ---- hits ---- */

static bool is_alike(const ki_ask *a, const ki_ask *b) {
    if (a->exact != b->exact || !a->where != !b->where) return false;
    return !a->where || strcmp(a->where, b->where) == 0;
}

static bool is_within(const ki_ask *a, double score) {
    if (!a->has_limit) return true;
    return catalog_of(a)->info.metric == KITH_SQEUCLIDEAN ? score <= a->limit : score >= a->limit;
}

/* Its part of the list of the nearest that was made for all. */
static kith_status take_hits(ki_ask *a, const kith_hit *list, int64_t n, kith_error *err) {
    int64_t end = a->offset + a->k < n ? a->offset + a->k : n;
    KI_TRY(ki_alloc_or(&a->hits, (size_t)a->k, sizeof *a->hits, "hits", err));
    for (int64_t i = a->offset; i < end && is_within(a, list[i].score); i++) a->hits[a->n_hits++] = list[i];
    return KITH_OK;
}

/* One search for queries that are alike: each asks for the nearest up to its last one. */
static kith_status search(ki_ask *const *asks, int64_t n, kith_error *err) {
    kith_status status;
    const ki_catalog *c = catalog_of(asks[0]);
    kith_array rows = {0};
    kith_hits hits = {0};
    KITH_OPTIONS(kith_search_options, options);
    options.where = asks[0]->where;
    options.exact = asks[0]->exact;
    options.k = 1;
    KI_CHECK(kith_array_init(KITH_F32, 2, (int64_t[]){n, c->info.dim}, &rows, err));
    for (int64_t i = 0; i < n; i++) {
        memcpy((float *)rows.data + i * c->info.dim, asks[i]->row, (size_t)c->info.dim * sizeof(float));
        if (asks[i]->k + asks[i]->offset > options.k) options.k = asks[i]->k + asks[i]->offset;
    }
    KI_CHECK(kith_index_search(c->index, &rows, &options, &hits, err));
    for (int64_t i = 0; i < n; i++) {
        asks[i]->n_allowed = hits.n_allowed;
        asks[i]->is_exact = hits.is_exact;
        asks[i]->status =
            take_hits(asks[i], hits.hits + hits.begin[i], hits.begin[i + 1] - hits.begin[i], &asks[i]->err);
    }
done:
    kith_hits_release(&hits);
    kith_array_release(&rows);
    return status;
}

/* ---- batches ---- */

/* Run a step for several queries. If it fails, one of them may be to blame: each is tried alone. */
static void run_all(ki_ask **asks, int64_t n, kith_status status, kith_error *err,
                    void (*alone)(ki_searcher *searcher, ki_ask *ask), ki_searcher *e) {
    if (status == KITH_OK) return;
    for (int64_t i = 0; i < n; i++) {
        if (n > 1) {
            alone(e, asks[i]);
        } else {
            asks[i]->status = status;
            asks[i]->err = *err;
        }
    }
}

static void embed_alone(ki_searcher *e, ki_ask *a) {
    const kith_status status = embed(e, &a, 1, &a->err);
    if (status != KITH_OK) a->status = status;
}

static void search_alone(ki_searcher *e, ki_ask *a) {
    (void)e;
    const kith_status status = search(&a, 1, &a->err);
    if (status != KITH_OK) a->status = status;
}

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

/* Move what has failed to the end; returns how many have not. */
static int64_t drop_failed(ki_ask **asks, int64_t n) {
    int64_t n_good = 0;
    for (int64_t i = 0; i < n; i++) {
        if (asks[i]->status == KITH_OK) {
            ki_ask *const one = asks[i];
            asks[i] = asks[n_good];
            asks[n_good++] = one;
        }
    }
    return n_good;
}

static void run_catalog(ki_searcher *e, ki_ask **asks, int64_t n) {
    kith_error err;
    run_all(asks, n, embed(e, asks, n, &err), &err, embed_alone, e);
    n = drop_failed(asks, n);
    for (int64_t m; n > 0; asks += m, n -= m) {
        m = gather(asks, n, is_alike);
        run_all(asks, m, search(asks, m, &err), &err, search_alone, e);
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
        if (!is_late(e, a, now)) n_pictures += count_pictures(a);
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
                asks[i]->status = ki_fail(&asks[i]->err, KITH_ECANCELED, "the query waited too long");
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

kith_status ki_searcher_new(ki_pool *pool, ki_metrics *metrics, int64_t most_batch, double deadline,
                            ki_searcher **ret, kith_error *err) {
    ki_searcher *e = NULL;
    KI_TRY(ki_zalloc_or(&e, 1, sizeof *e + 2 * (size_t)most_batch * sizeof(ki_ask *), "a searcher", err));
    e->pool = pool;
    e->metrics = metrics;
    e->most_batch = most_batch;
    e->deadline = deadline;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->is_there, NULL);
    if (pthread_create(&e->thread, NULL, work, e) != 0) {
        ki_free(e);
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
    ki_free(e);
}

void ki_searcher_add(ki_searcher *e, ki_ask *ask) {
    enum { TASK_COST = 3 }; /* an explanation: two pictures through the network, and their maps */
    ask->turn = (ki_turn){.client = ki_limits_counted(&ask->request->client),
                          .cost = ask->task ? TASK_COST : 1 + count_pictures(ask)};
    pthread_mutex_lock(&e->lock);
    ki_turns_add(&e->waiting, &ask->turn);
    pthread_cond_signal(&e->is_there);
    pthread_mutex_unlock(&e->lock);
}
