/* Strips of rows, one BLAS call each. */
#include "objective/pair/product.h"

#include <string.h>

#include "base/parallel.h"
#include "objective/gemm.h"

enum { MOST_ROWS = 256 };

/* Rows per strip: enough strips for a few threads, and strips large enough for the kernels. */
static int64_t strip_rows(int64_t m) {
    const int64_t rows = (m / 8 + 15) / 16 * 16;
    return rows < 32 ? 32 : rows > MOST_ROWS ? MOST_ROWS : rows;
}

typedef struct job {
    const ki_vec *vec;
    const ki_real *x, *h;
    ki_real *dst;
    int64_t m, n, dim, ld, rows, n_strips;
    ki_real scale;
    bool add;
} job;

/* Strips of a triangle are unequal; they are taken from both ends in turn, so that runs of equal length are
 * equal work. */
static int64_t from_both_ends(int64_t t, int64_t n) { return t % 2 ? n - 1 - t / 2 : t / 2; }

static void gram_strips(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    for (int64_t t = begin; t < end; t++) {
        const int64_t first = from_both_ends(t, j->n_strips) * j->rows;
        const int64_t rows = first + j->rows < j->m ? j->rows : j->m - first;
        const ki_real *from = j->x + first * j->dim;
        ki_gemm_one(true, rows, j->m - first, j->dim, 1, from, j->dim, from, j->dim, 0,
                    j->dst + first * j->ld + first, j->ld);
    }
}

enum { TILE = 32 };

/* Below the diagonal: copied tile by tile from the entries above it. */
static void mirror_strips(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    for (int64_t t = begin; t < end; t++) {
        const int64_t first = from_both_ends(t, j->n_strips) * j->rows;
        const int64_t last = first + j->rows < j->m ? first + j->rows : j->m;
        for (int64_t r_0 = first; r_0 < last; r_0 += TILE) {
            const int64_t r_1 = r_0 + TILE < last ? r_0 + TILE : last;
            for (int64_t c_0 = 0; c_0 < first; c_0 += TILE) {
                for (int64_t r = r_0; r < r_1; r++) {
                    for (int64_t c = c_0; c < c_0 + TILE && c < first; c++)
                        j->dst[r * j->ld + c] = j->dst[c * j->ld + r];
                }
            }
        }
    }
}

void ki_gram(const ki_real *x, int64_t m, int64_t dim, ki_real *s, int64_t ld) {
    job j = {.x = x, .dst = s, .m = m, .dim = dim, .ld = ld, .rows = strip_rows(m)};
    j.n_strips = (m + j.rows - 1) / j.rows;
    ki_parallel_for(j.n_strips, 1, gram_strips, &j);
    ki_parallel_for(j.n_strips, 1, mirror_strips, &j);
}

/* Multiplying a row costs about as much as visiting a quarter of its entries one by one. */
enum { WALK_IS_DEARER = 4, CHUNK = 64 };

/* The size up to which the entries of a row are too small to matter: together they are less than four units
 * in the last place of the largest, which is less than the rounding error of a sum of hundreds of products. */
static ki_real limit_of(const ki_vec *vec, const ki_real *h, int64_t n) {
    const ki_real last_bit = vec->max_size(h, n) * (KI_REAL_EPS / 2), budget = 8 * last_bit;
    const ki_real limit[3] = {last_bit, last_bit / 16, last_bit / 64};
    ki_real sum[3];
    vec->sums_below(h, limit, sum, n);
    for (int k = 0; k < 3; k++) {
        if (sum[k] <= budget) return limit[k];
    }
    return budget / (ki_real)n;
}

static void walk_row(const job *j, int64_t i, ki_real limit) {
    const ki_real *h = j->h + i * j->ld;
    ki_real *dst = j->dst + i * j->dim;
    if (!j->add) memset(dst, 0, (size_t)j->dim * sizeof *dst);
    for (int64_t k_0 = 0; k_0 < j->n; k_0 += CHUNK) {
        const int64_t k_1 = k_0 + CHUNK < j->n ? k_0 + CHUNK : j->n;
        if (j->vec->count_above(h + k_0, limit, k_1 - k_0) == 0) continue;
        for (int64_t k = k_0; k < k_1; k++) {
            if (h[k] > limit || -h[k] > limit) j->vec->add(j->x + k * j->dim, j->scale * h[k], dst, j->dim);
        }
    }
}

static void weighted_strips(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    for (int64_t t = begin; t < end; t++) {
        const int64_t first = t * j->rows, last = first + j->rows < j->m ? first + j->rows : j->m;
        ki_real limit[MOST_ROWS];
        int64_t n_matter = 0;
        for (int64_t i = first; i < last; i++) {
            limit[i - first] = limit_of(j->vec, j->h + i * j->ld, j->n);
            n_matter += j->vec->count_above(j->h + i * j->ld, limit[i - first], j->n);
        }
        if (n_matter * WALK_IS_DEARER > (last - first) * j->n) {
            ki_gemm_one(false, last - first, j->dim, j->n, j->scale, j->h + first * j->ld, j->ld, j->x,
                        j->dim, j->add ? 1 : 0, j->dst + first * j->dim, j->dim);
        } else {
            for (int64_t i = first; i < last; i++) walk_row(j, i, limit[i - first]);
        }
    }
}

void ki_weighted_rows(const ki_vec *vec, const ki_real *h, int64_t ld, int64_t m, int64_t n, const ki_real *x,
                      int64_t dim, ki_real scale, bool add, ki_real *dst) {
    job j = {.vec = vec,
             .x = x,
             .h = h,
             .dst = dst,
             .m = m,
             .n = n,
             .dim = dim,
             .ld = ld,
             .scale = scale,
             .add = add};
    j.rows = strip_rows(m);
    j.n_strips = (m + j.rows - 1) / j.rows;
    ki_parallel_for(j.n_strips, 1, weighted_strips, &j);
}
