/* The thread that writes names. */
#include "serve/search/namer.h"

#include <pthread.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

/* Seconds that it waits for another process that writes, and between two tries. */
static const double BUSY_SECONDS = 3;
/* An index that is opened in less is opened before the answer. */
static const double QUICK_SECONDS = 0.5;
static const long TRY_NANOSECONDS = 50000000;

struct ki_namer {
    const char *index;
    ki_catalogs *catalogs;
    ki_pool *pool;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t is_there;
    ki_name_job *first, *last;
    bool is_ending;
};

ki_naming_state ki_naming_state_of(const kith_names *n) {
    return (ki_naming_state){n->n_items, n->n_named, n->n_decided, n->n_checked,
                             n->n_wrong, n->rate,    n->low,       n->high};
}

/* ---- decisions ---- */

/* Another process has it for a moment, or for as long as it embeds photos. */
static kith_status open_index(const ki_namer *x, kith_collection **ret, kith_error *err) {
    KITH_OPTIONS(kith_collection_open_options, how);
    how.mode = KITH_INDEX_WRITE;
    const double end = ki_seconds_now() + BUSY_SECONDS;
    const struct timespec moment = {.tv_nsec = TRY_NANOSECONDS};
    for (;;) {
        const kith_status status = kith_collection_open(x->index, &how, ret, err);
        if (status != KITH_EINVAL) return status;
        if (ki_seconds_now() > end)
            return ki_fail(err, KITH_ECANCELED, "the index is being changed by another program");
        nanosleep(&moment, NULL);
    }
}

static kith_status count(kith_collection *c, ki_naming_state *ret, kith_error *err) {
    kith_names names = {0};
    KI_TRY(kith_collection_names(c, &names, err));
    *ret = ki_naming_state_of(&names);
    kith_names_release(&names);
    return KITH_OK;
}

static void decide(kith_collection *c, ki_name_job *job) {
    job->result.conflict = -1;
    job->status = count(c, &job->before, &job->err);
    if (job->status == KITH_OK) job->status = kith_collection_name(c, &job->wanted, &job->result, &job->err);
    if (job->status == KITH_OK) job->status = count(c, &job->after, &job->err);
    kith_index_info info = {0};
    kith_index_info_get(kith_collection_index(c), &info);
    job->generation = info.generation;
}

static void refresh(ki_namer *x) {
    kith_error err;
    bool is_new = false;
    if (ki_catalogs_seconds(x->catalogs) > QUICK_SECONDS) return;
    if (ki_catalogs_refresh(x->catalogs, &is_new, &err) != KITH_OK)
        ki_log(KITH_LOG_WARNING, "names were written, and the index cannot be read again: %s", err.message);
}

static void run_all(ki_namer *x, ki_name_job *jobs) {
    kith_collection *c = NULL;
    kith_error err = {0};
    const kith_status status = open_index(x, &c, &err);
    for (ki_name_job *job = jobs; job; job = job->next) {
        if (status == KITH_OK) {
            decide(c, job);
        } else {
            job->status = status;
            job->err = err;
            job->result.conflict = -1;
        }
    }
    kith_collection_free(c);
    if (status == KITH_OK) refresh(x);
    for (ki_name_job *job = jobs, *next; job; job = next) {
        next = job->next; /* the request frees it */
        ki_pool_add(x->pool, job->request);
    }
}

/* ---- the thread ---- */

static void *work(void *context) {
    ki_namer *x = context;
    pthread_mutex_lock(&x->lock);
    for (;;) {
        while (!x->first && !x->is_ending) pthread_cond_wait(&x->is_there, &x->lock);
        ki_name_job *jobs = x->first;
        if (!jobs) break;
        x->first = x->last = NULL;
        pthread_mutex_unlock(&x->lock);
        run_all(x, jobs);
        pthread_mutex_lock(&x->lock);
    }
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

kith_status ki_namer_new(const char *index, ki_catalogs *catalogs, ki_pool *pool, ki_namer **ret,
                         kith_error *err) {
    ki_namer *x = NULL;
    KI_TRY(ki_zalloc_or(&x, 1, sizeof *x, "a writer", err));
    x->index = index;
    x->catalogs = catalogs;
    x->pool = pool;
    pthread_mutex_init(&x->lock, NULL);
    pthread_cond_init(&x->is_there, NULL);
    x->has_thread = pthread_create(&x->thread, NULL, work, x) == 0;
    if (!x->has_thread) {
        ki_namer_free(x);
        return ki_fail(err, KITH_ENOMEM, "a thread cannot be made");
    }
    *ret = x;
    return KITH_OK;
}

void ki_namer_free(ki_namer *x) {
    if (!x) return;
    pthread_mutex_lock(&x->lock);
    x->is_ending = true;
    pthread_cond_signal(&x->is_there);
    pthread_mutex_unlock(&x->lock);
    if (x->has_thread) pthread_join(x->thread, NULL);
    pthread_cond_destroy(&x->is_there);
    pthread_mutex_destroy(&x->lock);
    ki_free(x);
}

void ki_namer_add(ki_namer *x, ki_name_job *job) {
    job->next = NULL;
    pthread_mutex_lock(&x->lock);
    if (x->last)
        x->last->next = job;
    else
        x->first = job;
    x->last = job;
    pthread_cond_signal(&x->is_there);
    pthread_mutex_unlock(&x->lock);
}
