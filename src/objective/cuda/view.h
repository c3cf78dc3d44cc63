/* The pair view (pair/pairs.h) as kernels see it: a plain struct of device pointers, passed by value, and the
 * launchers of everything that happens to it. Rows are the batch; columns the batch and then the whole
 * cross-batch memory, or the proxies. A column of the memory that does not count is a pair of kind NONE. */
#ifndef KI_OBJECTIVE_CUDA_VIEW_H
#define KI_OBJECTIVE_CUDA_VIEW_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "objective/pair/kinds.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a row (or a column, or a class) adds to the value. The three sums are multiplied by the weight of
 * positives, by that of negatives, and by 1. Weights may be computed from the counts (ki_cuda_weight). */
typedef struct ki_cuda_tally {
    double pos, neg, plain;
    int64_t count[2];
} ki_cuda_tally;

typedef struct ki_cuda_view {
    int32_t m, n, ld, dim;
    int32_t n_centers;        /* proxies of a class; 0: columns are items */
    int32_t heads;            /* rows, and columns that are items, are heads of images in turn */
    int32_t measure, rule;    /* ki_measure, ki_triplet_rule */
    float low, high;          /* of KI_TRIPLETS_WINDOW */
    const int32_t *label;     /* [m] */
    const float *x, *w;       /* rows [m, dim]; columns after the first m, or all proxies, [.., dim] */
    const float *x_sq, *w_sq; /* their squared norms */
    float *s, *g;             /* [m, ld] */
    uint8_t *pair;            /* [m, ld] */
    int32_t *pick; /* [m, ld]: for a positive column its negative column or -1; KI_TRIPLETS_PICKED alone */
    int32_t *n_pos, *n_neg; /* kept pairs of each row [m] */
    ki_cuda_tally *tally;   /* [n_tallies] */
    int32_t n_tallies;
    /* Cross-batch memory, of whole images: how many are filled (memory_state[0]), and from which step they count. */
    const float *memory_state, *memory_label;
    uint64_t memory_warmup;
    const uint64_t *step;
    uint64_t seed;
    int32_t threads; /* of a block that works on a row: a multiple of 32 */
} ki_cuda_view;

/* What a sum is divided by. If a batch has none of these, the result is 0, without a division. */
typedef enum ki_cuda_by {
    KI_BY_ONE,
    KI_BY_ROWS,    /* m */
    KI_BY_ANCHORS, /* rows with a kept positive */
    KI_BY_POS,     /* kept positives, negatives, both */
    KI_BY_NEG,
    KI_BY_PAIRS,
    KI_BY_COUNT_0, /* the tallies' counts, both together */
    KI_BY_COUNT_1,
    KI_BY_COUNTS,
} ki_cuda_by;
typedef struct ki_cuda_weight {
    ki_cuda_by by;
    double factor; /* weight = factor / by */
} ki_cuda_weight;

/* Where the sums over all rows go. */
typedef struct ki_cuda_totals {
    float *scale;        /* [3]: weights of g by kind of pair, times *weight */
    double *value;       /* += the value */
    int64_t *pairs;      /* [3]: kept positives, negatives; [2] += 1 when there are none. NULL: not wanted */
    const float *weight; /* NULL: 1 */
    bool weighs_value;   /* the value, too */
} ki_cuda_totals;

/* weight[kind]: of pairs of kind NONE (which some losses give a gradient), POSITIVE, NEGATIVE. */
cudaError_t ki_cuda_sum_up(const ki_cuda_view *view, const ki_cuda_weight weight[3], ki_cuda_totals totals,
                           cudaStream_t stream);

/* h [m, ld] = G + G^T on the batch's columns, G on those of the memory, with G = scale[kind] g and, for plain
 * distances, the step from E to D. For distances the diagonal is minus the sum of the row, and memory_sum [m]
 * is the part of that sum from the memory's columns. */
cudaError_t ki_cuda_symmetrize(const ki_cuda_view *view, const float *scale, float *h, float *memory_sum,
                               cudaStream_t stream);
/* Proxies: g = scale[kind] g. */
cudaError_t ki_cuda_scale(const ki_cuda_view *view, const float *scale, cudaStream_t stream);
/* mean [dim] of the rows x [m, dim], centred = x - mean. */
cudaError_t ki_cuda_centre(const float *x, int64_t m, int64_t dim, float *mean, float *centred,
                           cudaStream_t stream);
/* dst [m, dim] += factor * sum[i] * mean. */
cudaError_t ki_cuda_add_mean(const float *sum, const float *mean, float factor, int64_t m, int64_t dim,
                             float *dst, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
