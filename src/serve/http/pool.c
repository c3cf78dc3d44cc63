/* A queue of requests, and threads that take from it. */
#include "serve/http/pool.h"

#include <pthread.h>

#include "base/alloc.h"

struct ki_pool {
    void (*done)(ki_request *request);
    pthread_mutex_t lock;
    pthread_cond_t is_there;
    ki_request *first, *last;
    bool is_ending;
    int64_t n;
    pthread_t thread[];
};

static ki_request *take(ki_pool *p, bool *ret_is_ending) {
    pthread_mutex_lock(&p->lock);
    while (!p->first && !p->is_ending) pthread_cond_wait(&p->is_there, &p->lock);
    ki_request *r = p->first;
    if (r) p->first = r->next;
    *ret_is_ending = p->is_ending;
    pthread_mutex_unlock(&p->lock);
    return r;
}

static void *work(void *context) {
    ki_pool *p = context;
    bool is_ending = false;
    for (ki_request *r; (r = take(p, &is_ending));) {
        r->next = NULL;
        const ki_handling step = is_ending ? ki_answer_later(r, 503, 5, "the server is ending") : r->then(r);
        if (step == KI_ANSWERED) p->done(r);
    }
    return NULL;
}

kith_status ki_pool_new(int64_t n_threads, void (*done)(ki_request *request), ki_pool **ret,
                        kith_error *err) {
    ki_pool *p = NULL;
    KI_TRY(ki_zalloc_or(&p, 1, sizeof *p + (size_t)n_threads * sizeof *p->thread, "threads", err));
    p->done = done;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->is_there, NULL);
    for (; p->n < n_threads; p->n++) {
        if (pthread_create(&p->thread[p->n], NULL, work, p) != 0) break;
    }
    if (p->n < n_threads) {
        const int64_t made = p->n;
        ki_pool_free(p);
        return ki_fail(err, KITH_ENOMEM, "only %lld of %lld threads could be made", (long long)made,
                       (long long)n_threads);
    }
    *ret = p;
    return KITH_OK;
}

void ki_pool_free(ki_pool *p) {
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->is_ending = true;
    pthread_cond_broadcast(&p->is_there);
    pthread_mutex_unlock(&p->lock);
    for (int64_t i = 0; i < p->n; i++) pthread_join(p->thread[i], NULL);
    pthread_cond_destroy(&p->is_there);
    pthread_mutex_destroy(&p->lock);
    ki_free(p);
}

void ki_pool_add(ki_pool *p, ki_request *r) {
    r->next = NULL;
    pthread_mutex_lock(&p->lock);
    if (p->first)
        p->last->next = r;
    else
        p->first = r;
    p->last = r;
    pthread_cond_signal(&p->is_there);
    pthread_mutex_unlock(&p->lock);
}
