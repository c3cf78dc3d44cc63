/* Parts of wide rows judged alone, together, and after a PCA. */
#include "judge/orders.h"

#include <string.h>

#include "core/alloc.h"
#include "knn/pca.h"

/* Vectors over other rows, with labels and roles of `of`; not released. */
static ki_vectors rows_like(const ki_vectors *of, int64_t dim, float *rows) {
    ki_vectors v = *of;
    v.dim = dim;
    v.device = NULL;
    v.host = rows;
    return v;
}

/* R@1 by the part of every row that begins at `from`. */
static kith_status score_part(const ki_vectors *all, const float *x, int64_t from, const ki_orders_options *o,
                              double *ret_recall, kith_error *err) {
    const int64_t width = o->width;
    float *part = NULL;
    ki_scores scores = {0};
    KI_TRY(ki_alloc_or(&part, (size_t)all->n, (size_t)width * sizeof *part, "an order's rows", err));
    for (int64_t i = 0; i < all->n; i++)
        memcpy(part + i * width, x + i * all->dim + from, (size_t)width * sizeof *part);
    ki_vectors v = rows_like(all, width, part);
    const kith_status status = ki_judge_scores(&v, o->k, o->n_k, &scores, NULL, err);
    *ret_recall = scores.recall[0];
    ki_free(part);
    return status;
}

static kith_status score_each(ki_vectors *test, const ki_orders_options *o, ki_orders *r, kith_error *err) {
    const int64_t first = test->dim - o->n * o->width;
    const float *x = NULL;
    ki_scores whole = {0};
    KI_TRY(ki_vectors_host(test, &x, err));
    r->recall[0] = o->recall;
    for (int64_t k = 0; k < o->n; k++)
        KI_TRY(score_part(test, x, first + k * o->width, o, &r->recall[1 + k], err));
    r->n = 1 + o->n;
    KI_TRY(ki_judge_scores(test, o->k, o->n_k, &whole, NULL, err));
    r->side_by_side = whole.recall[0];
    return KITH_OK;
}

static kith_status score_projected(ki_vectors *fitted, ki_vectors *test, const ki_orders_options *o,
                                   ki_orders *r, kith_error *err) {
    kith_status status;
    kith_pca pca = {0};
    kith_array projected = {0}, white = {0};
    ki_knn_device device = {0};
    ki_rows rows, wanted;
    int64_t n = o->n_components;
    if (n > test->dim) n = test->dim;
    if (n > fitted->n - 1) n = fitted->n - 1;
    if (test->backend) KI_CHECK(ki_knn_device_beside(test->backend, &device, err));
    KI_CHECK(ki_judge_rows(fitted, &device, &rows, err));
    KI_CHECK(ki_judge_rows(test, &device, &wanted, err));
    KI_CHECK(ki_pca_fit(&rows, &device,
                        &(kith_pca_options){.size = sizeof(kith_pca_options), .n_components = n}, &pca, err));
    KI_CHECK(ki_pca_apply(&pca, &wanted, &device, &projected, err));
    pca.whiten = true;
    KI_CHECK(ki_pca_apply(&pca, &wanted, &device, &white, err));
    r->dim[0] = test->dim;
    r->dim[1] = n;
    ki_vectors v = rows_like(test, n, white.data);
    KI_CHECK(ki_judge_scores(&v, o->k, o->n_k, &r->white, NULL, err));
    v.host = projected.data;
    KI_CHECK(ki_judge_scores(&v, o->k, o->n_k, &r->scores, &r->intervals, err));
    if (o->has_clustering) KI_CHECK(ki_judge_cluster(&v, &r->clustered, err));
done:
    kith_pca_release(&pca);
    kith_array_release(&projected);
    kith_array_release(&white);
    ki_knn_device_close(&device);
    return status;
}

kith_status ki_judge_orders(ki_vectors *fitted, ki_vectors *test, const ki_orders_options *options,
                            ki_orders *ret_orders, kith_error *err) {
    ki_orders r = {0};
    if (options->n > KI_MOST_ORDERS)
        return ki_fail(err, KITH_EINVAL, "%lld vectors side by side; at most %d are possible",
                       (long long)options->n, KI_MOST_ORDERS);
    KI_TRY(score_each(test, options, &r, err));
    KI_TRY(score_projected(fitted, test, options, &r, err));
    *ret_orders = r;
    return KITH_OK;
}
