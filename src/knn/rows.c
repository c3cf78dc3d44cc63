/* Reading rows of a matrix of any number type. */
#include "knn/rows.h"

#include <math.h>
#include <stdatomic.h>

#include "base/parallel.h"
#include "base/shape.h"

/* The sums of products of two rows must stay finite in float32. This limit is far above the values of any
 * embedding. */
static const double MOST = 1e18;

typedef struct find_bad {
    const ki_rows *rows;
    atomic_int_least64_t first;
} find_bad;

static inline double value_at(const ki_rows *rows, int64_t at) {
    switch (rows->dtype) {
    case KITH_F32: return ((const float *)rows->data)[at];
    case KITH_F64: return ((const double *)rows->data)[at];
    case KITH_F16: return ki_f16_to_float(((const uint16_t *)rows->data)[at]);
    case KITH_BF16: return ki_bf16_to_float(((const uint16_t *)rows->data)[at]);
    default: return NAN;
    }
}

static void find_bad_rows(void *context, int64_t begin, int64_t end) {
    find_bad *f = context;
    const ki_rows *rows = f->rows;
    for (int64_t i = begin; i < end && i < atomic_load(&f->first); i++) {
        int n_bad = 0;
        if (rows->dtype == KITH_F32) {
            const float *x = (const float *)rows->data + i * rows->dim;
            for (int64_t k = 0; k < rows->dim; k++) n_bad += !(fabsf(x[k]) <= (float)MOST);
        } else {
            for (int64_t k = 0; k < rows->dim; k++)
                n_bad += !(fabs(value_at(rows, i * rows->dim + k)) <= MOST);
        }
        if (!n_bad) continue;
        int_least64_t first = atomic_load(&f->first);
        while (i < first && !atomic_compare_exchange_weak(&f->first, &first, i)) {
        }
        return;
    }
}

static kith_status fail_at(const ki_rows *rows, int64_t i, const char *what, kith_error *err) {
    for (int64_t k = 0; k < rows->dim; k++) {
        const double x = value_at(rows, i * rows->dim + k);
        if (fabs(x) <= MOST) continue;
        ki_fail(err, KITH_ENUMERIC, "%s: row %lld column %lld is %g", what, (long long)i, (long long)k, x);
        if (isfinite(x))
            return ki_hint(err, KITH_ENUMERIC, "values up to 1e18 are allowed: scale the matrix");
        return ki_hint(err, KITH_ENUMERIC, "remove the row, or find out why the model produced it");
    }
    return KITH_OK;
}

kith_status ki_rows_init(const kith_array *array, const char *what, ki_rows *ret_rows, kith_error *err) {
    if (!array || array->n_dims != 2)
        return ki_fail(err, KITH_ESHAPE, "%s has %d dimensions; wanted 2: [rows, dim]", what,
                       array ? array->n_dims : 0);
    ki_rows rows = {array->dtype, array->dim[0], array->dim[1], array->data, NULL};
    if (rows.dtype != KITH_F32 && rows.dtype != KITH_F64 && rows.dtype != KITH_F16 && rows.dtype != KITH_BF16)
        return ki_fail(err, KITH_EINVAL, "%s is of type %s; wanted a float type", what,
                       kith_dtype_name(rows.dtype));
    if (rows.dim < 1) return ki_fail(err, KITH_ESHAPE, "%s has rows of 0 values", what);
    if (rows.n < 0 || rows.n > INT32_MAX)
        return ki_fail(err, KITH_ESHAPE, "%s has %lld rows; at most %d are supported", what,
                       (long long)rows.n, INT32_MAX);
    find_bad f = {&rows, INT64_MAX};
    ki_parallel_for(rows.n, 256, find_bad_rows, &f);
    if (f.first != INT64_MAX) return fail_at(&rows, f.first, what, err);
    *ret_rows = rows;
    return KITH_OK;
}

void ki_rows_get(const ki_rows *rows, int64_t i, double *ret_row) {
    const int64_t at = i * rows->dim;
    for (int64_t k = 0; k < rows->dim; k++) ret_row[k] = value_at(rows, at + k);
}

/* Eight partial sums, combined pairwise: the same order for every type and machine. */
enum { LANES = 8 };
static double fold(const double s[LANES]) {
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

#define SUM_OVER(term)                                          \
    double s[LANES] = {0};                                      \
    int64_t k = 0;                                              \
    for (; k + LANES <= a->dim; k += LANES)                     \
        for (int l = 0; l < LANES; l++) s[l] += (term(k + l));  \
    for (int l = 0; k + l < a->dim; l++) s[l] += (term(k + l)); \
    return fold(s)

double ki_rows_dot(const ki_rows *a, int64_t i, const ki_rows *b, int64_t j) {
    const int64_t at = i * a->dim, bt = j * b->dim;
    if (a->dtype == KITH_F32 && b->dtype == KITH_F32) {
        const float *x = (const float *)a->data + at, *y = (const float *)b->data + bt;
#define TERM(k) (double)x[k] * (double)y[k]
        SUM_OVER(TERM);
#undef TERM
    }
#define TERM(k) value_at(a, at + (k)) * value_at(b, bt + (k))
    SUM_OVER(TERM);
#undef TERM
}

double ki_rows_sqdist(const ki_rows *a, int64_t i, const ki_rows *b, int64_t j) {
    const int64_t at = i * a->dim, bt = j * b->dim;
    if (a->dtype == KITH_F32 && b->dtype == KITH_F32) {
        const float *x = (const float *)a->data + at, *y = (const float *)b->data + bt;
#define TERM(k) ((double)x[k] - (double)y[k]) * ((double)x[k] - (double)y[k])
        SUM_OVER(TERM);
#undef TERM
    }
#define TERM(k) \
    (value_at(a, at + (k)) - value_at(b, bt + (k))) * (value_at(a, at + (k)) - value_at(b, bt + (k)))
    SUM_OVER(TERM);
#undef TERM
}
