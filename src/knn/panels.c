/* Making and scoring panels of rows. */
#include "knn/panels.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"

/* Rows are converted to doubles piece by piece, on the stack. */
enum { STRETCH = 256 };

static void stretch_get(const ki_rows *rows, int64_t i, int64_t k, int64_t n, double *ret_values) {
    const size_t at = (size_t)(i * rows->dim + k) * kith_dtype_bytes(rows->dtype);
    const ki_rows part = {rows->dtype, 1, n, (const char *)rows->data + at, NULL};
    ki_rows_get(&part, 0, ret_values);
}

static void fill(void *context, int64_t begin, int64_t end) {
    ki_panels *p = context;
    const int64_t dim = p->rows.dim;
    double values[STRETCH];
    for (int64_t i = begin; i < end; i++) {
        const double norm = sqrt(ki_rows_dot(&p->rows, i, &p->rows, i));
        const double scale = p->metric == KITH_COSINE ? fmax(norm, KI_LEAST_NORM) : 1;
        float *to = p->data ? p->data + i / KI_PANEL * dim * KI_PANEL + i % KI_PANEL : NULL;
        double half = 0;
        for (int64_t k0 = 0; k0 < dim; k0 += STRETCH) {
            const int64_t n = dim - k0 < STRETCH ? dim - k0 : STRETCH;
            stretch_get(&p->rows, i, k0, n, values);
            for (int64_t k = 0; k < n; k++) {
                const double x = p->center ? values[k] - p->center[k0 + k] : values[k];
                const float y = (float)(x / scale);
                if (to) to[(k0 + k) * KI_PANEL] = y;
                half += (double)y * (double)y / 2;
            }
        }
        p->norm[i] = p->center ? half : norm;
        if (p->half) p->half[i] = (float)half;
    }
}

/* Any point near the middle would do. This is the mean over rows, with one thread per group of columns, so
 * that the sum has one order. */
static void find_center(void *context, int64_t begin, int64_t end) {
    ki_panels *p = context;
    const int64_t dim = p->rows.dim, n = p->rows.n;
    double values[STRETCH];
    for (int64_t s = begin; s < end; s++) {
        const int64_t k0 = s * STRETCH, width = dim - k0 < STRETCH ? dim - k0 : STRETCH;
        for (int64_t i = 0; i < n; i++) {
            stretch_get(&p->rows, i, k0, width, values);
            for (int64_t k = 0; k < width; k++) p->center[k0 + k] += values[k];
        }
        for (int64_t k = 0; k < width; k++) p->center[k0 + k] /= (double)n;
    }
}

/* Are the squares of the row's values numbers of full precision? A row of zeros is fine. */
static bool has_length(const ki_panels *p, int64_t i) {
    if (p->norm[i] >= KI_LEAST_NORM) return true;
    double values[STRETCH];
    for (int64_t k0 = 0; k0 < p->rows.dim; k0 += STRETCH) {
        const int64_t n = p->rows.dim - k0 < STRETCH ? p->rows.dim - k0 : STRETCH;
        stretch_get(&p->rows, i, k0, n, values);
        for (int64_t k = 0; k < n; k++) {
            if (values[k] != 0) return false;
        }
    }
    return true;
}

kith_status ki_panels_init(const ki_rows *rows, kith_metric metric, const ki_panels *like,
                           ki_panels *ret_panels, kith_error *err) {
    kith_status status = KITH_OK;
    ki_panels p = {.rows = *rows, .metric = metric};
    const size_t n = (size_t)rows->n, dim = (size_t)rows->dim;
    p.n_blocks = (rows->n + KI_BLOCK - 1) / KI_BLOCK;
    p.n_roundings = fmin((double)dim, (double)KI_CHUNK) + ceil((double)dim / (double)KI_CHUNK) + 4;
    const size_t padded = ki_round_up(n, KI_GROUP);
    size_t row_bytes = 0;
    if (!ki_mul_size(dim, sizeof(float), &row_bytes)) return ki_fail_memory(err, SIZE_MAX, "the matrix");
    if (!rows->there)
        KI_CHECK(ki_alloc_or(&p.data, padded, row_bytes, "the product's copy of the matrix", err));
    KI_CHECK(ki_alloc_or(&p.norm, n, sizeof *p.norm, "row norms", err));
    if (metric == KITH_SQEUCLIDEAN) {
        KI_CHECK(ki_zalloc_or(&p.center, dim, sizeof *p.center, "the centre", err));
        KI_CHECK(ki_zalloc_or(&p.half, (size_t)p.n_blocks * KI_BLOCK, sizeof *p.half, "row norms", err));
        if (like)
            memcpy(p.center, like->center, dim * sizeof *p.center);
        else if (n > 0)
            ki_parallel_for((rows->dim + STRETCH - 1) / STRETCH, 1, find_center, &p);
    }
    const size_t last = n / KI_PANEL; /* the first panel that is not full */
    if (p.data) memset(p.data + last * KI_PANEL * dim, 0, (padded - last * KI_PANEL) * row_bytes);
    ki_parallel_for(rows->n, 64, fill, &p);
    for (size_t i = 0; i < n; i++) {
        p.most_norm = fmax(p.most_norm, p.norm[i]);
        p.n_zero += p.norm[i] == 0;
    }
    if (metric != KITH_COSINE && p.most_norm > 1e18) {
        status = ki_fail(err, KITH_ENUMERIC, "the longest row has length %g; products overflow above 1e18",
                         p.most_norm);
        ki_hint(err, status, "scale the matrix, or use the cosine");
        goto done;
    }
    for (int64_t i = 0; metric == KITH_COSINE && i < rows->n; i++) {
        if (has_length(&p, i)) continue;
        status = ki_fail(err, KITH_ENUMERIC, "row %lld has length %g; the cosine wants 0, or 1e-140 and more",
                         (long long)i, p.norm[i]);
        ki_hint(err, status, "scale the matrix");
        goto done;
    }
    *ret_panels = p;
    return KITH_OK;
done:
    ki_panels_release(&p);
    return status;
}

void ki_panels_release(ki_panels *panels) {
    ki_free(panels->data);
    ki_free(panels->norm);
    ki_free(panels->center);
    ki_free(panels->half);
    *panels = (ki_panels){0};
}

ki_panels ki_panels_view(const ki_panels *p, int64_t begin, int64_t n) {
    ki_panels view = *p;
    const size_t bytes = (size_t)(begin * p->rows.dim) * kith_dtype_bytes(p->rows.dtype);
    view.rows.data = (const char *)p->rows.data + bytes;
    view.rows.n = n;
    if (view.rows.there) view.rows.there += begin * p->rows.dim;
    if (view.data) view.data += begin * p->rows.dim;
    view.norm += begin;
    if (view.half) view.half += begin;
    view.n_blocks = (n + KI_BLOCK - 1) / KI_BLOCK;
    return view;
}

double ki_panels_score(const ki_panels *a, int64_t i, const ki_panels *b, int64_t j) {
    if (a->metric == KITH_SQEUCLIDEAN) return -0.5 * ki_rows_sqdist(&a->rows, i, &b->rows, j);
    const double dot = ki_rows_dot(&a->rows, i, &b->rows, j);
    if (a->metric == KITH_INNER) return dot;
    return dot / (fmax(a->norm[i], KI_LEAST_NORM) * fmax(b->norm[j], KI_LEAST_NORM));
}

/* With u = 2^-24: a chunk of c terms summed one after the other errs by at most c u sum |x_k y_k|, joining
 * the chunks adds one u each, and rounding the rows to float32 adds two. Cauchy-Schwarz bounds the sum by
 * |x||y|. Euclidean: |x||y| <= |x|^2 / 2 + |y|^2 / 2, and the rest (rounding of the centred rows, of the half
 * norms and of the two subtractions) is below 16 u of the same. */
ki_bound ki_panels_bound_of(const ki_panels *a) {
    const double u = 0x1p-24, more = a->metric == KITH_SQEUCLIDEAN ? 16 : 0;
    return (ki_bound){.factor = 1.01 * (a->n_roundings + more) * u, .tiny = (double)a->rows.dim * FLT_MIN};
}

double ki_panels_bound(const ki_panels *a, int64_t i, const ki_panels *b, int64_t j) {
    const ki_bound bound = ki_panels_bound_of(a);
    const double other = j < 0 ? b->most_norm : b->norm[j];
    switch (a->metric) {
    case KITH_COSINE: return bound.factor + bound.tiny;
    case KITH_INNER: return bound.factor * a->norm[i] * other + bound.tiny;
    case KITH_SQEUCLIDEAN: return bound.factor * (a->norm[i] + other) + bound.tiny;
    }
    return 0;
}

/* A sum of n products in any order errs by at most n u sum |x_k y_k|. */
void ki_panels_any_order(ki_panels *p) { p->n_roundings = (double)p->rows.dim + 4; }

double ki_score_shown(kith_metric metric, double score) {
    return metric == KITH_SQEUCLIDEAN ? fmax(0, -2 * score) : score;
}
