/* The float32 copy of a matrix that the product kernel reads. Rows 16 p … 16 p + 15 are interleaved:
 * value k of row i at data[(i / 16) * dim * 16 + k * 16 + i % 16]. Rows are normalised (cosine) or
 * centred (Euclidean) in float64 first. Padded with zero rows to whole groups.
 *
 * A score is always "larger is nearer": the cosine, the inner product, or minus half the squared
 * distance. */
#ifndef KI_PANELS_H
#define KI_PANELS_H

#include <stdint.h>

#include "kith/knn.h"
#include "knn/kernel.h"
#include "knn/rows.h"

typedef struct ki_panels {
    ki_rows rows; /* the matrix itself, borrowed */
    kith_metric metric;
    float *data;    /* NULL where a device has the rows (rows.there): the host does not multiply them */
    double *center; /* Euclidean: [dim], what was subtracted; owned */
    double *norm;   /* [n]: cosine |x|, inner |x|, Euclidean |x - center|^2 / 2 */
    float *half;    /* Euclidean: norm as float, padded to whole blocks with 0; else NULL */
    double most_norm;
    int64_t n_blocks;
    int64_t n_zero;     /* rows of norm 0 before centring */
    double n_roundings; /* most error of a product of these rows, in half units in the last place */
} ki_panels;

/* A zero row is treated as this long, so that it becomes zeros, not NaN. No row of float32 is shorter, and the product of two such
 * lengths is not 0. */
#define KI_LEAST_NORM 1e-140

/* KITH_ENUMERIC: a row of float64 whose squares underflow, for the cosine. `like` (may be NULL) gives the centre, so that queries and gallery are moved by the same vector. */
kith_status ki_panels_init(const ki_rows *rows, kith_metric metric, const ki_panels *like,
                           ki_panels *ret_panels, kith_error *err);
void ki_panels_release(ki_panels *panels);

/* A view of rows begin … begin + n - 1 of p, where begin is a multiple of KI_PANEL. It borrows everything; do
 * not release it. */
ki_panels ki_panels_view(const ki_panels *p, int64_t begin, int64_t n);

/* Rows of block b. */
static inline int64_t ki_panels_block_rows(const ki_panels *p, int64_t b) {
    const int64_t left = p->rows.n - b * KI_BLOCK;
    return left < KI_BLOCK ? left : KI_BLOCK;
}

/* From now on products may be summed in any order, as a device does: the bound grows. */
void ki_panels_any_order(ki_panels *panels);

/* A score in float64 from the given values. */
double ki_panels_score(const ki_panels *a, int64_t i, const ki_panels *b, int64_t j);

/* |float32 score - float64 score| never exceeds this for row i of a and row j of b; with j < 0, for row i and
 * any row of b. */
double ki_panels_bound(const ki_panels *a, int64_t i, const ki_panels *b, int64_t j);

/* The same in parts: factor * (1, |x_i||y_j|, or the sum of the two half squares) + tiny. */
typedef struct ki_bound {
    double factor, tiny;
} ki_bound;
ki_bound ki_panels_bound_of(const ki_panels *a);

/* A score as the user sees it: squared distances change sign and scale. */
double ki_score_shown(kith_metric metric, double score);

#endif
