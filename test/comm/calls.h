/* What every implementation of a comm must do, on one rank of it: the same checks for threads and for MPI. */
#ifndef KITH_TEST_COMM_CALLS_H
#define KITH_TEST_COMM_CALLS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"

/* The first thing that was wrong, in words; empty: all is well. */
typedef struct calls_found {
    char wrong[1024];
} calls_found;

#define CALLS_CHECK(found, condition, ...)                                                                 \
    do {                                                                                                   \
        if (!(condition) && !*(found)->wrong) snprintf((found)->wrong, sizeof(found)->wrong, __VA_ARGS__); \
    } while (0)

/* Numbers whose sum depends on the order of its terms, in float and in double. */
static inline ki_real calls_number(int rank, int64_t i) {
    return (ki_real)(sin((double)(i + 1) * (rank + 1.5)) * (rank % 2 ? 1e7 : 1));
}

static inline void calls_check_gather(ki_comm *comm, calls_found *found) {
    kith_error err = {0};
    int64_t counts[KI_MOST_RANKS], n = 0;
    int32_t own[64], all[64 * 8];
    for (int r = 0; r < comm->size; r++) counts[r] = (r * 5) % 7; /* some have none */
    for (int64_t i = 0; i < counts[comm->rank]; i++) own[i] = (int32_t)(100 * comm->rank + i);
    const kith_status status = ki_comm_gather(comm, own, counts, sizeof *own, all, &err);
    CALLS_CHECK(found, status == KITH_OK, "gather: %s", err.message);
    for (int r = 0; r < comm->size; r++) {
        for (int64_t i = 0; i < counts[r]; i++, n++)
            CALLS_CHECK(found, all[n] == 100 * r + i, "gathered %d at %lld, wanted %lld", (int)all[n],
                        (long long)n, (long long)(100 * r + i));
    }
}

/* `each` items of the ranks that have some, to the first alone. */
static inline void calls_check_gather_first(ki_comm *comm, int64_t each, calls_found *found) {
    kith_error err = {0};
    int64_t counts[KI_MOST_RANKS], n = 0, wrong = 0;
    for (int r = 0; r < comm->size; r++) n += counts[r] = r % 3 == 2 ? 0 : each + r;
    int32_t *own = malloc((size_t)(counts[comm->rank] + 1) * sizeof *own);
    int32_t *all = comm->rank == 0 ? malloc((size_t)(n + 1) * sizeof *all) : NULL;
    for (int64_t i = 0; i < counts[comm->rank]; i++) own[i] = (int32_t)(i * 7 + comm->rank);
    const kith_status status = ki_comm_gather_first(comm, own, counts, sizeof *own, all, &err);
    CALLS_CHECK(found, status == KITH_OK, "gather for the first: %s", err.message);
    n = 0;
    for (int r = 0; all && r < comm->size; r++) {
        for (int64_t i = 0; i < counts[r]; i++) wrong += all[n++] != (int32_t)(i * 7 + r);
    }
    CALLS_CHECK(found, wrong == 0, "%lld of %lld items for the first are wrong", (long long)wrong,
                (long long)n);
    free(own);
    free(all);
}

static inline void calls_check_sum(ki_comm *comm, int64_t n, calls_found *found) {
    kith_error err = {0};
    ki_real *x = malloc((size_t)(n + 1) * sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = calls_number(comm->rank, i);
    x[n] = 7;
    const kith_status status = ki_comm_sum(comm, x, n, &err);
    CALLS_CHECK(found, status == KITH_OK, "sum: %s", err.message);
    for (int64_t i = 0; i < n; i++) {
        double wanted = 0;
        for (int r = 0; r < comm->size; r++) wanted += (double)calls_number(r, i);
        CALLS_CHECK(found, x[i] == (ki_real)wanted, "sum %lld of %lld is %.17g, wanted %.17g", (long long)i,
                    (long long)n, (double)x[i], wanted);
    }
    CALLS_CHECK(found, x[n] == 7, "the number after the sum is %g", (double)x[n]);
    free(x);
}

static inline void calls_check_agree(ki_comm *comm, calls_found *found) {
    kith_error err = {0};
    CALLS_CHECK(found, ki_comm_agree(comm, KITH_OK, &err) == KITH_OK, "nobody failed, and %s", err.message);
    if (comm->size == 1) return;
    const int bad = comm->size - 1;
    kith_status status = KITH_OK;
    if (comm->rank == bad) {
        status = err.status = KITH_EFORMAT;
        snprintf(err.message, sizeof err.message, "a bad file");
        snprintf(err.hint, sizeof err.hint, "look at it");
    }
    status = ki_comm_agree(comm, status, &err);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "rank %d: a bad file", bad);
    CALLS_CHECK(
        found,
        status == KITH_EFORMAT && strcmp(err.message, wanted) == 0 && strcmp(err.hint, "look at it") == 0,
        "rank %d was told %d, %s (%s)", comm->rank, (int)status, err.message, err.hint);
    CALLS_CHECK(found, comm->has_agreed, "rank %d does not know that all know", comm->rank);
    bool flag = comm->rank == bad;
    CALLS_CHECK(found, ki_comm_agree_on(comm, KITH_OK, &flag, &err) == KITH_OK && flag,
                "rank %d has not seen the flag", comm->rank);
    CALLS_CHECK(found, !comm->has_agreed, "rank %d still has the failure that was overcome", comm->rank);
}

static inline void calls_check(ki_comm *comm, calls_found *found) {
    kith_error err = {0};
    char text[16] = "not yet";
    calls_check_gather(comm, found);
    calls_check_gather_first(comm, 3, found);
    calls_check_gather_first(comm, (1 << 24) + 9, found); /* more than a piece */
    calls_check_sum(comm, 0, found);
    calls_check_sum(comm, 1, found); /* fewer than ranks */
    calls_check_sum(comm, 1003, found);
    calls_check_sum(comm, (1 << 21) + 5, found); /* more than a piece */
    calls_check_agree(comm, found);
    if (comm->rank == 0) snprintf(text, sizeof text, "told");
    CALLS_CHECK(found, ki_comm_broadcast(comm, text, sizeof text, &err) == KITH_OK, "%s", err.message);
    CALLS_CHECK(found, strcmp(text, "told") == 0, "the broadcast says %s", text);
    CALLS_CHECK(found, ki_comm_wait(comm, &err) == KITH_OK, "%s", err.message);
}

#endif
