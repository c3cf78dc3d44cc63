/* From inner products to distances, and from dL/ds back to the embeddings: the chain rule that every
 * pair loss shares.
 *
 *   inner products   s_ij = x_i . x_j             dL/dx = (G + G^T) x
 *   squared          D_ij = |x_i - x_j|^2         dL/dx_i = 2 sum_j h_ij (x_i - x_j), h = G + G^T
 *   plain            E_ij = sqrt(D_ij + 1e-16)    G_D = G_E / (2 E), and 0 for points that coincide
 *   proxies          s_ij = x_i . w_j             dL/dx = G w, dL/dw = G^T x
 *
 * Distances do not change when all points move together, so their gradient is computed relative to the mean
 * of the batch: x_i - x_j keeps its digits even if a batch is far from the origin. */
#include <string.h>

#include "base/parallel.h"
#include "objective/gemm.h"
#include "objective/pair/pairs.h"
#include "objective/pair/product.h"

/* Below this share of |x|^2 + |y|^2 the difference of inner products has lost too many digits. */
#define NEAR ((ki_real)(1.0 / 256))
#define EUCLIDEAN_EPS ((ki_real)1e-16)
enum { TILE = 64 };

static ki_real exact_sqdist(const ki_real *a, const ki_real *b, int64_t dim) {
    double sum = 0;
    for (int64_t k = 0; k < dim; k++) {
        const double d = (double)a[k] - (double)b[k];
        sum += d * d;
    }
    return (ki_real)sum;
}

static const ki_real *column(const ki_pairs *p, int64_t j) {
    if (p->is_proxy) return p->w + j * p->dim;
    return j < p->m ? p->x + j * p->dim : p->w + (j - p->m) * p->dim;
}

static void measure_rows(void *context, int64_t begin, int64_t end) {
    const ki_pairs *p = context;
    for (int64_t i = begin; i < end; i++) {
        ki_real *s = p->s + i * p->ld;
        const uint8_t *pair = p->pair + i * p->ld;
        if (!p->is_proxy) s[i] = -KI_REAL_MAX / 8; /* the item itself is not a near neighbour */
        const ki_real least = p->vec->distance(s, p->row_sq[i], p->col_sq, p->n);
        if (least < NEAR) {
            for (int64_t j = 0; j < p->n; j++) {
                if (s[j] < NEAR * (p->row_sq[i] + p->col_sq[j]) && pair[j] != KI_PAIR_NONE)
                    s[j] = exact_sqdist(p->x + i * p->dim, column(p, j), p->dim);
            }
        }
        if (!p->is_proxy) s[i] = 0;
        if (p->measure == KI_EUCLIDEAN) {
            for (int64_t j = 0; j < p->n; j++) s[j] = ki_sqrt(s[j] + EUCLIDEAN_EPS);
        }
    }
}

void ki_pairs_measure(ki_pairs *pairs, ki_measure measure) {
    pairs->measure = measure;
    if (measure != KI_INNER) ki_parallel_for(pairs->m, 1 + 16384 / pairs->ld, measure_rows, pairs);
}

/* The ratio of dL/dD to dL/dE at E: points that coincide have no direction to attract or repel. */
static ki_real by_square(ki_real e) { return e > (ki_real)2e-8 ? (ki_real)0.5 / e : 0; }

void ki_pairs_weights(const ki_pairs *p, const ki_real *g, double scale, ki_real *weight,
                      ki_real *similarity) {
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            const int64_t at = i * p->ld + j;
            const ki_real s = p->s[at], d = p->measure == KI_EUCLIDEAN ? s * s : s;
            ki_real by_s = g[at] * (ki_real)scale;
            if (p->measure == KI_SQEUCLIDEAN) by_s *= -2;
            if (p->measure == KI_EUCLIDEAN) by_s *= -2 * by_square(s);
            weight[i * p->n + j] = p->pair[at] == KI_PAIR_POSITIVE   ? -by_s
                                   : p->pair[at] == KI_PAIR_NEGATIVE ? by_s
                                                                     : 0;
            if (similarity)
                similarity[i * p->n + j] =
                    p->measure == KI_INNER ? s : (ki_real)0.5 * (p->row_sq[i] + p->col_sq[j] - d);
        }
    }
}

typedef struct job {
    const ki_pairs *pairs;
    ki_real *g, *row_sum;
    const ki_real *mean;
    ki_real *dst;
} job;

static bool is_empty(const job *j, int64_t i_0, int64_t i_1, int64_t j_0, int64_t j_1) {
    for (int64_t i = i_0; i < i_1; i++) {
        if (j->pairs->vec->max_size(j->g + i * j->pairs->ld + j_0, j_1 - j_0) > 0) return false;
    }
    return true;
}

/* g = g + g^T on the square of batch columns, tile by tile; a run owns whole rows of tiles. */
static void symmetrize_tiles(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    const int64_t m = j->pairs->m, ld = j->pairs->ld, n_tiles = (m + TILE - 1) / TILE;
    for (int64_t t = begin; t < end; t++) {
        /* Tile rows are taken from both ends in turn, so that runs of equal length are equal work. */
        const int64_t bi = t % 2 ? n_tiles - 1 - t / 2 : t / 2;
        const int64_t i_0 = bi * TILE, i_1 = i_0 + TILE < m ? i_0 + TILE : m;
        for (int64_t bj = bi; bj < n_tiles; bj++) {
            const int64_t j_0 = bj * TILE, j_1 = j_0 + TILE < m ? j_0 + TILE : m;
            const bool is_clear = is_empty(j, i_0, i_1, j_0, j_1);
            /* The mirrored tile: NOLINTNEXTLINE(readability-suspicious-call-argument) */
            if (is_clear && is_empty(j, j_0, j_1, i_0, i_1)) continue;
            ki_real turned[TILE][TILE];
            for (int64_t r = j_0; r < j_1; r++) {
                for (int64_t c = i_0; c < i_1; c++) turned[c - i_0][r - j_0] = j->g[r * ld + c];
            }
            for (int64_t r = i_0; r < i_1; r++) {
                ki_real *upper = j->g + r * ld;
                for (int64_t c = j_0; c < j_1; c++) upper[c] = turned[r - i_0][c - j_0] += upper[c];
            }
            if (bi == bj) continue;
            for (int64_t r = j_0; r < j_1; r++) {
                ki_real *lower = j->g + r * ld;
                for (int64_t c = i_0; c < i_1; c++) lower[c] = turned[c - i_0][r - j_0];
            }
        }
    }
}

static void square_rows(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    const ki_pairs *p = j->pairs;
    for (int64_t i = begin; i < end; i++) {
        ki_real *g = j->g + i * p->ld;
        const ki_real *e = p->s + i * p->ld;
        for (int64_t k = 0; k < p->n; k++) g[k] *= by_square(e[k]);
    }
}

/* The weighted difference sum_j h_ij (x_i - x_j) becomes one product if the diagonal is -sum_j h_ij. */
static void diagonal_rows(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    const ki_pairs *p = j->pairs;
    for (int64_t i = begin; i < end; i++) {
        ki_real *g = j->g + i * p->ld;
        g[i] = 0;
        const ki_real batch = p->vec->sum(g, p->m), memory = p->vec->sum(g + p->m, p->n - p->m);
        g[i] = -(batch + memory);
        j->row_sum[i] = memory;
    }
}

static void symmetrize(job *j) { ki_parallel_for((j->pairs->m + TILE - 1) / TILE, 2, symmetrize_tiles, j); }

static kith_status backward_distance(const ki_pairs *p, ki_real *g, ki_real scale, ki_real *diff_x,
                                     kith_error *err) {
    ki_real *centred = NULL, *mean = NULL;
    job j = {.pairs = p, .g = g};
    KI_TRY(ki_work_reals(p->work, p->m * p->dim, "centred embeddings", &centred, err));
    KI_TRY(ki_work_reals(p->work, p->dim, "the mean embedding", &mean, err));
    KI_TRY(ki_work_reals(p->work, p->m, "row sums", &j.row_sum, err));
    memset(mean, 0, (size_t)p->dim * sizeof *mean);
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t k = 0; k < p->dim; k++) mean[k] += p->x[i * p->dim + k] / (ki_real)p->m;
    }
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t k = 0; k < p->dim; k++) centred[i * p->dim + k] = p->x[i * p->dim + k] - mean[k];
    }
    if (p->measure == KI_EUCLIDEAN) ki_parallel_for(p->m, 1 + 16384 / p->ld, square_rows, &j);
    symmetrize(&j);
    ki_parallel_for(p->m, 1 + 32768 / p->ld, diagonal_rows, &j);
    ki_weighted_rows(p->vec, g, p->ld, p->m, p->m, centred, p->dim, -2 * scale, false, diff_x);
    if (p->n > p->m) {
        ki_weighted_rows(p->vec, g + p->m, p->ld, p->m, p->n - p->m, p->w, p->dim, -2 * scale, true, diff_x);
        for (int64_t i = 0; i < p->m; i++) {
            for (int64_t k = 0; k < p->dim; k++) diff_x[i * p->dim + k] += 2 * scale * j.row_sum[i] * mean[k];
        }
    }
    return KITH_OK;
}

kith_status ki_pairs_backward(const ki_pairs *p, ki_real *g, double scale, ki_real *diff_x, ki_real *diff_w,
                              kith_error *err) {
    const ki_work_mark mark = ki_work_here(p->work);
    kith_status status = KITH_OK;
    const ki_real a = (ki_real)scale;
    if (p->is_proxy) {
        if (p->measure != KI_INNER)
            return ki_fail(err, KITH_EUNSUPPORTED,
                           "a proxy loss asked for distances; only inner products are known");
        ki_gemm(false, false, p->m, p->dim, p->n, a, g, p->ld, p->w, p->dim, 0, diff_x, p->dim);
        ki_gemm(true, false, p->n, p->dim, p->m, a, g, p->ld, p->x, p->dim, 0, diff_w, p->dim);
    } else if (p->measure == KI_INNER) {
        job j = {.pairs = p, .g = g};
        symmetrize(&j);
        ki_weighted_rows(p->vec, g, p->ld, p->m, p->m, p->x, p->dim, a, false, diff_x);
        if (p->n > p->m)
            ki_weighted_rows(p->vec, g + p->m, p->ld, p->m, p->n - p->m, p->w, p->dim, a, true, diff_x);
    } else {
        status = backward_distance(p, g, a, diff_x, err);
    }
    ki_work_rewind(p->work, mark);
    return status;
}
