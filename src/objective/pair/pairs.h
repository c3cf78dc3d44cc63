/* The pair view: everything a pair loss or a miner may know about a batch.
 *
 * Rows are the m embeddings of the batch. Columns are what they are compared with: the same m embeddings,
 * then n - m remembered ones of earlier batches (constants); or, for proxy losses, n learned vectors. Entry
 * (i, j) is at [i * ld + j]; ld >= n.
 *
 *     s[i,j]    what the loss asked for: inner product, squared or plain Euclidean distance
 *     pair[i,j] KI_PAIR_POSITIVE / _NEGATIVE when the ordered pair counts, else KI_PAIR_NONE
 *     g[i,j]    dL/ds[i,j] with every entry independent: what a loss writes
 *
 * The self column of row i is i; its pair is NONE. A loss may still write g[i,i] when it asked for
 * inner products: s[i,i] is the squared norm. Proxy columns have no self.
 *
 * Triplets are never listed. They are (anchor i, positive p, negative j) with both pairs kept, restricted by
 * `rule` (pair/triplets.h): memory stays O(m n). */
#ifndef KI_OBJECTIVE_PAIRS_H
#define KI_OBJECTIVE_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/real.h"
#include "comm/comm.h"
#include "objective/pair/kinds.h"
#include "objective/vec.h"
#include "objective/work.h"

typedef struct ki_pairs {
    int64_t m, n, ld;
    bool is_proxy; /* columns are learned vectors: no self column, columns get a gradient */
    int64_t heads; /* rows are heads of images, in turn: row i is of head i % heads, and so are columns */
    ki_measure measure;
    const int32_t *row_label, *col_label; /* [m], [n] */
    const ki_real *row_sq, *col_sq;       /* squared norms [m], [ld]; the padding is 0 */
    ki_real *s;                           /* [m, ld]; read-only for losses. While miners run it holds inner
                                             products whatever the loss asked for */
    uint8_t *pair;                        /* [m, ld]; the padding is NONE */
    int64_t *n_pos, *n_neg;               /* kept pairs of each row [m] */
    int64_t total_pos, total_neg;
    ki_triplet_rule rule;
    ki_real low, high;
    int32_t *pick; /* KI_TRIPLETS_PICKED: pick[pick_start[i] + k] is the column for the k-th kept positive (by
                      column) of row i, or -1 for none */
    int64_t *pick_start;
    uint64_t seed, step; /* name the random stream of a miner that draws */
    /* The columns are this rank's share of the proxies: a row's own class may be on another rank, and then its row_label is -1.
     * NULL: all columns are here. */
    ki_comm *comm;

    /* The rest belongs to pairs.c. */
    const ki_real *x,
        *w; /* rows [m, dim]; columns after the first m [n - m, dim], or all [n, dim] for proxies */
    int64_t dim;
    const ki_vec *vec;
    ki_work *work;
} ki_pairs;

/* One row, as row functions get it. scratch is KI_ROW_SCRATCH * ld reals of this thread. */
enum { KI_ROW_SCRATCH = 6 };
typedef struct ki_row {
    int64_t i, n;
    const ki_real *s;
    uint8_t *pair; /* miners write, losses read */
    ki_real *g;    /* NULL while mining; else cleared, for the function to fill in */
    int64_t n_pos, n_neg;
    ki_real *scratch;
} ki_row;

/* The row's share of the value. */
typedef double (*ki_row_fn)(const void *context, const ki_pairs *pairs, const ki_row *row);

/* Call fn for every row, in parallel, and add up what it returns in row order. g is [m, ld] or NULL.
 * rows_ret (NULL, or [m]) receives the single values. */
kith_status ki_pairs_rows(const ki_pairs *pairs, ki_real *g, ki_row_fn fn, const void *context,
                          double *rows_ret, double *ret_sum, kith_error *err);

/* Inner products of x [m, dim] with itself and then with `more` [n - m, dim] (NULL when n == m), or
 * with the proxies `more` [n, dim] alone; all pairs kept. Everything is taken from `work`. */
kith_status ki_pairs_build(ki_pairs *pairs, const ki_real *x, int64_t m, int64_t dim, const int32_t *label,
                           const ki_real *more, const int32_t *more_label, int64_t n_more, bool is_proxy,
                           const ki_vec *vec, ki_work *work, kith_error *err);
/* Rows and columns are the heads of an ensemble in turn: a pair of two different heads does not count. All columns of
 * proxies are every head's. */
void ki_pairs_split(ki_pairs *pairs, int64_t heads);
/* Count kept pairs again after a miner has cleared some. */
void ki_pairs_count(ki_pairs *pairs);
/* Pairs of row i that a miner chose from, kept or not; not of proxies. */
void ki_pairs_count_all(const ki_pairs *pairs, int64_t i, int64_t *ret_pos, int64_t *ret_neg);
/* Rows with a kept positive. */
int64_t ki_pairs_anchors(const ki_pairs *pairs);
/* From inner products to what the loss asked for, in place. If points are so near that the difference of
 * inner products has lost its digits, their distance is computed again from the vectors. */
void ki_pairs_measure(ki_pairs *pairs, ki_measure measure);

/* Squared Euclidean distance of row i to column j from inner products (for miners). */
static inline ki_real ki_pairs_sqdist(const ki_pairs *pairs, int64_t i, int64_t j) {
    const ki_real d = pairs->row_sq[i] + pairs->col_sq[j] - 2 * pairs->s[i * pairs->ld + j];
    return d > 0 ? d : 0;
}

/* The chain rule, once for all losses: diff_x [m, dim] = dL/dx from scale * g (assigned). g is overwritten.
 * For proxies diff_w [n, dim] = dL/dw as well; remembered columns are constants. */
kith_status ki_pairs_backward(const ki_pairs *pairs, ki_real *g, double scale, ki_real *diff_x,
                              ki_real *diff_w, kith_error *err);

/* Pair weights as in the unified view: w[i,j] = -dL/dS for kept positives, +dL/dS for kept negatives,
 * 0 elsewhere, S the inner products; weight and similarity (NULL or S itself) are [m, n] without padding.
 * Reads g: call before backward. */
void ki_pairs_weights(const ki_pairs *pairs, const ki_real *g, double scale, ki_real *weight,
                      ki_real *similarity);

/* y = x / max(|x|, 1e-12) for every row; norm [m] receives |x|. */
void ki_rows_normalize(const ki_real *x, int64_t m, int64_t dim, ki_real *y, ki_real *norm);
/* diff_x += scale * dL/dx from dL/dy; y and norm as ki_rows_normalize left them. */
void ki_rows_normalize_backward(const ki_real *y, const ki_real *norm, const ki_real *diff_y, int64_t m,
                                int64_t dim, ki_real scale, ki_real *diff_x);
/* diff_x = dL/dx, whatever it held. */
void ki_rows_normalize_assign(const ki_real *y, const ki_real *norm, const ki_real *diff_y, int64_t m,
                              int64_t dim, ki_real *diff_x);

#endif
