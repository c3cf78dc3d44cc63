/* The rank of every relevant item of every query.
 *
 * The scores of a query's relevant items are computed first, in float64, and sorted. Then every other
 * item is placed among them: in float32 where the bound on its rounding allows, in float64 where not.
 * Counting how many fall between two relevant items gives the ranks. */
#ifndef KI_RANKS_H
#define KI_RANKS_H

#include "comm/comm.h"
#include "knn/device.h"

typedef struct ki_ranks_input {
    const ki_panels *query, *gallery;           /* the same pointer: every item queries all others */
    const int32_t *query_class, *gallery_class; /* from 0 to n_classes - 1 */
    int32_t n_classes;
    const int32_t *self; /* [n_query]: the query's row in the gallery, or -1; ignored for the same pointer */
    int64_t most_relevant; /* relevant items held at a time: 0 for the default */
    /* Where scores are made; NULL or without a type: here. Then ki_panels_any_order of both panels. */
    const ki_knn_device *device;
    ki_device_tile tile; /* 0: the device's */
    kith_progress_fn progress;
    void *user;
    /* Every rank has the same input and ranks its part of the queries (ki_ranks_part). Nothing is sent. NULL: all queries. */
    const ki_comm *comm;
} ki_ranks_input;

/* The queries of rank `rank`: *ret_n of n_query from *ret_first. Whole blocks of rows, as the kernels take them. */
void ki_ranks_part(const ki_comm *comm, int rank, int64_t n_query, int64_t *ret_first, int64_t *ret_n);

/* Called once per query of this rank, in order: its n relevant items' ranks from 0, rising; n may be 0. is_tied:
 * a relevant and an irrelevant item have exactly the same score. */
typedef void (*ki_ranks_fn)(void *context, int64_t query, const int64_t *rank, int64_t n, bool is_tied);

kith_status ki_ranks_run(const ki_ranks_input *input, ki_ranks_fn fn, void *context, kith_error *err);

#endif
