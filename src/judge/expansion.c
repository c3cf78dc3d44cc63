/* Query expansion: a query and its nearest neighbours, added up in float64. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/parallel.h"
#include "judge/rerank.h"
#include "knn/panels.h"

KI_OPTIONS_INIT(kith_expansion_options, .k = 5, .alpha = 3)

typedef struct expansion {
    ki_rows query, gallery;
    const kith_neighbor *lists;
    int64_t list_size, k;
    double alpha;
    double *scratch; /* [threads, 2, dim] */
    float *to;
} expansion;

/* sum += weight x / |x|. */
static void add(const ki_rows *rows, int64_t i, double weight, double *sum, double *row) {
    const double norm = fmax(sqrt(ki_rows_dot(rows, i, rows, i)), KI_LEAST_NORM);
    ki_rows_get(rows, i, row);
    for (int64_t k = 0; k < rows->dim; k++) sum[k] += weight / norm * row[k];
}

static void expand(void *context, int slot, int64_t i) {
    const expansion *e = context;
    const int64_t dim = e->query.dim;
    double *sum = e->scratch + slot * 2 * dim, *row = sum + dim, squares = 0;
    memset(sum, 0, (size_t)dim * sizeof *sum);
    add(&e->query, i, 1, sum, row);
    for (int64_t p = 0; p < e->k; p++) {
        const kith_neighbor *near = e->lists + i * e->list_size + p;
        if (near->index >= 0) add(&e->gallery, near->index, pow(fmax(near->score, 0), e->alpha), sum, row);
    }
    for (int64_t k = 0; k < dim; k++) squares += sum[k] * sum[k];
    const double norm = fmax(sqrt(squares), KI_LEAST_NORM);
    for (int64_t k = 0; k < dim; k++) e->to[i * dim + k] = (float)(sum[k] / norm);
}

kith_status kith_query_expand(const kith_array *query, const kith_array *gallery, const kith_neighbor *lists,
                              int64_t list_size, const kith_expansion_options *options, kith_array *ret_query,
                              kith_error *err) {
    KI_NEED(err, query, gallery, lists, ret_query);
    KI_NEED_COUNT(err, list_size);
    kith_status status = KITH_OK;
    kith_array expanded = {0};
    expansion e = {.lists = lists, .list_size = list_size};
    KI_OPTIONS_TAKE(kith_expansion_options, o, options, err);
    KI_TRY(ki_rerank_rows(query, gallery, &e.query, &e.gallery, err));
    if (o.k < 1 || o.k > list_size)
        return ki_fail(err, KITH_EINVAL, "k is %lld; wanted 1 to %lld, the length of a list", (long long)o.k,
                       (long long)list_size);
    if (!(o.alpha >= 0 && o.alpha <= 1000))
        return ki_fail(err, KITH_EINVAL, "alpha is %g; wanted 0 to 1000", o.alpha);
    KI_TRY(ki_rerank_check_lists(lists, e.query.n, list_size, e.gallery.n, err));
    e.k = o.k;
    e.alpha = o.alpha;
    KI_CHECK(kith_array_init(KITH_F32, 2, (int64_t[]){e.query.n, e.query.dim}, &expanded, err));
    KI_CHECK(ki_alloc_or(&e.scratch, (size_t)ki_threads() * 2, (size_t)e.query.dim * sizeof *e.scratch,
                         "a sum of rows", err));
    e.to = expanded.data;
    ki_rerank_each(e.query.n, expand, &e);
    *ret_query = expanded;
done:
    ki_free(e.scratch);
    if (status != KITH_OK) kith_array_release(&expanded);
    return status;
}
