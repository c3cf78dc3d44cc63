/* The worst queries of a retrieval, and the hardest negatives: where to look first when a score is not good enough. */
#ifndef KITH_WORST_H
#define KITH_WORST_H

#include <stddef.h>
#include <stdint.h>

#include "kith/eval.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kith_worst_options {
    size_t size;               /* of the struct: set by kith_worst_options_init */
    kith_metric metric;        /* cosine */
    int64_t most;              /* queries, and negatives, returned: 50; 0: all */
    int64_t n_nearest;         /* of each query, its nearest rows: 6, at most 100 */
    const char *device;        /* "cpu" (default), "cuda" or "cuda:1" */
    kith_progress_fn progress; /* may be NULL */
    void *user;
    const kith_retrieval
        *scores; /* of the same input, from kith_retrieval_run or kith_judge_run; NULL: made here */
} kith_worst_options;

/* The values above. */
KITH_API void kith_worst_options_init(kith_worst_options *options, size_t size);

/* A row that a query found, and how near it is: float64 scores of the given values. */
typedef struct kith_worst_hit {
    int64_t row, label; /* -1: there are no more rows */
    double score;
} kith_worst_hit;

typedef struct kith_worst_query {
    int64_t row, label;
    double average_precision; /* kith_scores.map of this query */
    int64_t first_hit;        /* rank of its nearest relevant row, from 1 */
} kith_worst_query;

/* A query whose nearest row is of another class. */
typedef struct kith_hard_negative {
    int64_t row, label;
    kith_worst_hit negative; /* that nearest row */
    kith_worst_hit positive; /* the nearest row of the query's own class */
    double margin;           /* by how much the negative is nearer: above 0, but for ties */
} kith_hard_negative;

/* Owned: kith_worst_release. Row numbers are those of the embedding. */
typedef struct kith_worst {
    kith_worst_query *queries; /* [n] */
    kith_worst_hit *nearest;   /* [n, n_nearest] */
    int64_t n, n_nearest;
    kith_hard_negative *negatives; /* [n_negatives] */
    int64_t n_negatives;
    int64_t n_judged; /* queries that have something to find */
    int64_t n_wrong;  /* and of those, how many have a nearest row of another class */
} kith_worst;

/* Find the queries with the lowest average precision (ties: the lower place in the list of queries), the worst first; and
 * the queries with a wrong nearest row, the greatest margin first. Where two rows are each other's negative, the pair is there
 * once, with the greater margin. Errors as of kith_retrieval_run; KITH_EINVAL for scores of other queries. */
KITH_API kith_status kith_worst_find(const kith_retrieval_input *input, const kith_worst_options *options,
                                     kith_worst *ret_worst, kith_error *err);
KITH_API void kith_worst_release(kith_worst *worst); /* fine on a zeroed struct */

#ifdef __cplusplus
}
#endif
#endif
