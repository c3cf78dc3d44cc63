/* Ranks as threads of one process: a job whose messages are copies, for tests of what ranks compute together. It needs no
 * MPI, and works in double too.
 *
 *     static void work(ki_comm *comm, void *user) { … }            // every rank runs this
 *     thread_ranks_run(3, work, &user);
 *
 * Assertions must not fail inside a rank: cmocka's jump would leave the others waiting. A rank stores what it found, and
 * the test looks at it afterwards. */
#ifndef KITH_TEST_THREAD_RANKS_H
#define KITH_TEST_THREAD_RANKS_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "support/testing.h"

enum { THREAD_RANKS_MOST = 8 };

typedef void (*thread_ranks_fn)(ki_comm *comm, void *user);

typedef struct thread_ranks {
    pthread_barrier_t barrier;
    const char *from[THREAD_RANKS_MOST];
    const size_t *bytes[THREAD_RANKS_MOST];
    thread_ranks_fn fn;
    void *user;
} thread_ranks;

typedef struct thread_rank {
    ki_comm comm;
    thread_ranks *all;
} thread_rank;

static inline kith_status thread_gather(ki_comm *comm, const void *own, void *all, const size_t *bytes,
                                        kith_error *err) {
    thread_ranks *t = ((thread_rank *)comm)->all;
    size_t sum = 0, at = 0;
    (void)err;
    t->from[comm->rank] = own;
    for (int r = 0; r < comm->size; r++) sum += bytes[r];
    char *copy = malloc(sum + 1); /* what others read may lie in `all` */
    pthread_barrier_wait(&t->barrier);
    for (int r = 0; r < comm->size; at += bytes[r++]) {
        if (bytes[r]) memcpy(copy + at, t->from[r], bytes[r]);
    }
    pthread_barrier_wait(&t->barrier);
    memcpy(all, copy, sum);
    free(copy);
    return KITH_OK;
}

static inline kith_status thread_exchange(ki_comm *comm, const void *to, const size_t *to_bytes, void *from,
                                          const size_t *from_bytes, kith_error *err) {
    thread_ranks *t = ((thread_rank *)comm)->all;
    char *at = from;
    (void)err;
    t->from[comm->rank] = to;
    t->bytes[comm->rank] = to_bytes;
    pthread_barrier_wait(&t->barrier);
    for (int r = 0; r < comm->size; at += from_bytes[r++]) {
        size_t skip = 0;
        for (int q = 0; q < comm->rank; q++) skip += t->bytes[r][q];
        if (from_bytes[r]) memcpy(at, t->from[r] + skip, from_bytes[r]);
    }
    pthread_barrier_wait(&t->barrier);
    return KITH_OK;
}

static const ki_comm_type thread_ranks_type = {
    .name = "threads", .gather = thread_gather, .exchange = thread_exchange};

static inline void *thread_ranks_main(void *context) {
    thread_rank *rank = context;
    rank->all->fn(&rank->comm, rank->all->user);
    return NULL;
}

static inline void thread_ranks_run(int size, thread_ranks_fn fn, void *user) {
    thread_ranks all = {.fn = fn, .user = user};
    thread_rank rank[THREAD_RANKS_MOST];
    pthread_t thread[THREAD_RANKS_MOST];
    assert_true(size <= THREAD_RANKS_MOST);
    assert_int_equal(pthread_barrier_init(&all.barrier, NULL, (unsigned)size), 0);
    for (int r = 0; r < size; r++) {
        rank[r] = (thread_rank){
            .comm = {.type = &thread_ranks_type, .rank = r, .size = size, .n_here = size, .here = r},
            .all = &all};
        assert_int_equal(pthread_create(&thread[r], NULL, thread_ranks_main, &rank[r]), 0);
    }
    for (int r = 0; r < size; r++) {
        pthread_join(thread[r], NULL);
        ki_comm_release(&rank[r].comm);
    }
    pthread_barrier_destroy(&all.barrier);
}

#endif
