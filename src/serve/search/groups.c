/* Finding duplicates in a thread of their own, and the requests that wait for them. */
#include "serve/search/groups.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"

/* Seconds that a request waits, and after which it should come back. */
static const double WAIT_SECONDS = 3;
enum { RETRY_SECONDS = 5 };

struct ki_finder {
    ki_catalogs *catalogs;
    ki_pool *pool;
    pthread_mutex_t lock;
    ki_duplicate_groups *now; /* the newest; NULL: none yet */
    ki_request *waiting;      /* linked by next */
    bool is_running, has_thread, is_ended;
    atomic_bool is_ending;
    atomic_int_least64_t n_done, n_all;
    pthread_t thread;
    ki_catalog *catalog; /* of the thread */
};

/* ---- groups ---- */

/* With the lock held. */
static void drop(ki_duplicate_groups *g) {
    if (!g || --g->n_users > 0) return;
    kith_duplicates_release(&g->found);
    ki_free(g);
}

void ki_finder_give_back(ki_finder *f, ki_duplicate_groups *groups) {
    pthread_mutex_lock(&f->lock);
    drop(groups);
    pthread_mutex_unlock(&f->lock);
}

/* ---- waiting ---- */

static ki_handling come_back(ki_request *r) {
    return ki_answer_later(r, 503, RETRY_SECONDS,
                           "the index is still being searched for pictures that are the same");
}

static ki_handling end_of_server(ki_request *r) { return ki_answer_later(r, 503, 5, "the server is ending"); }

static ki_handling not_allowed(ki_request *r) {
    return ki_answer_problem(r, 403,
                             "leave out hide_duplicates, or let somebody with a full token ask for "
                             "/api/v1/duplicates first",
                             "the read-only token does not allow a search for duplicates");
}

/* Let all go on, with `then` or, if that is NULL, with what they wanted to do. With the lock held. */
static void release_all(ki_finder *f, ki_request_fn then) {
    for (ki_request *r = f->waiting, *next; r; r = next) {
        next = r->next;
        if (then) r->then = then;
        ki_pool_add(f->pool, r);
    }
    f->waiting = NULL;
}

void ki_finder_tick(ki_finder *f, double now) {
    pthread_mutex_lock(&f->lock);
    for (ki_request **at = &f->waiting; *at;) {
        ki_request *r = *at;
        if (now < r->began + WAIT_SECONDS) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        r->then = come_back;
        ki_pool_add(f->pool, r);
    }
    pthread_mutex_unlock(&f->lock);
}

/* ---- finding ---- */

static int watch(void *user, int64_t n_done, int64_t n_all) {
    ki_finder *f = user;
    atomic_store(&f->n_done, n_done);
    atomic_store(&f->n_all, n_all);
    return atomic_load(&f->is_ending);
}

static void *find(void *context) {
    ki_finder *f = context;
    ki_duplicate_groups *g = ki_zalloc(1, sizeof *g);
    KITH_OPTIONS(kith_duplicates_options, options);
    options.progress = watch;
    options.user = f;
    if (g) {
        g->generation = f->catalog->info.generation;
        g->n_users = 1;
        g->status = kith_collection_duplicates(f->catalog->collection, &options, &g->found, &g->err);
    }
    ki_catalog_give_back(f->catalogs, f->catalog);
    pthread_mutex_lock(&f->lock);
    drop(f->now);
    f->now = g;
    f->is_running = false;
    release_all(f, f->is_ended ? end_of_server : NULL);
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* With the lock held. */
static void start(ki_finder *f, ki_catalog *catalog) {
    if (f->has_thread) pthread_join(f->thread, NULL); /* it is over, up to its last lines */
    f->catalog = ki_catalog_share(f->catalogs, catalog);
    f->is_running = f->has_thread = pthread_create(&f->thread, NULL, find, f) == 0;
    if (!f->is_running) ki_catalog_give_back(f->catalogs, f->catalog);
}

ki_duplicate_groups *ki_finder_ask(ki_finder *f, ki_request *r) {
    ki_duplicate_groups *found = NULL;
    pthread_mutex_lock(&f->lock);
    if (f->now && f->now->generation == r->catalog->info.generation) {
        found = f->now;
        found->n_users++;
    } else {
        const bool may_start = r->access >= KI_ACCESS_ALL;
        if (!f->is_running && !f->is_ended && may_start) start(f, r->catalog);
        if (!f->is_running) r->then = f->is_ended || may_start ? end_of_server : not_allowed;
        if (f->is_running) {
            r->next = f->waiting;
            f->waiting = r;
        } else {
            ki_pool_add(f->pool, r);
        }
    }
    pthread_mutex_unlock(&f->lock);
    return found;
}

/* ---- beginning and end ---- */

kith_status ki_finder_new(ki_catalogs *catalogs, ki_pool *pool, ki_finder **ret, kith_error *err) {
    ki_finder *f = NULL;
    KI_TRY(ki_zalloc_or(&f, 1, sizeof *f, "a finder", err));
    f->catalogs = catalogs;
    f->pool = pool;
    pthread_mutex_init(&f->lock, NULL);
    *ret = f;
    return KITH_OK;
}

void ki_finder_end(ki_finder *f) {
    if (!f) return;
    atomic_store(&f->is_ending, true);
    pthread_mutex_lock(&f->lock);
    f->is_ended = true;
    release_all(f, end_of_server);
    pthread_mutex_unlock(&f->lock);
}

void ki_finder_free(ki_finder *f) {
    if (!f) return;
    ki_finder_end(f);
    if (f->has_thread) pthread_join(f->thread, NULL);
    drop(f->now);
    pthread_mutex_destroy(&f->lock);
    ki_free(f);
}
