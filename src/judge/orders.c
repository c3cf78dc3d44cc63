/* Parts of wide rows judged alone, together, after a PCA, and whitened each by itself before one. */
#include "judge/orders.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "knn/pca.h"
#include "knn/whiten.h"

/* Vectors over other rows, with labels and roles of `of`; not released. */
static ki_vectors rows_like(const ki_vectors *of, int64_t dim, float *rows) {
    ki_vectors v = *of;
    v.dim = dim;
    v.device = NULL;
    v.host = rows;
    return v;
}

/* Numbers of every row. */
typedef struct part {
    int64_t from, width;
} part;

/* The part's numbers of every row, in memory of its own. */
static kith_status copy_part(ki_vectors *all, part p, float **ret_rows, kith_error *err) {
    const float *x = NULL;
    float *rows = NULL;
    KI_TRY(ki_vectors_host(all, &x, err));
    KI_TRY(ki_alloc_or(&rows, (size_t)all->n, (size_t)p.width * sizeof *rows, "an order's rows", err));
    for (int64_t i = 0; i < all->n; i++)
        memcpy(rows + i * p.width, x + i * all->dim + p.from, (size_t)p.width * sizeof *rows);
    *ret_rows = rows;
    return KITH_OK;
}

static kith_status score_part(ki_vectors *all, part p, const ki_orders_options *o, ki_scores *ret,
                              kith_error *err) {
    float *rows = NULL;
    KI_TRY(copy_part(all, p, &rows, err));
    ki_vectors v = rows_like(all, p.width, rows);
    const kith_status status = ki_judge_scores(&v, o->k, o->n_k, NULL, ret, NULL, err);
    ki_free(rows);
    return status;
}

static kith_status check(const ki_vectors *v, const ki_orders_options *o, kith_error *err) {
    if (o->n > KI_MOST_ORDERS)
        return ki_fail(err, KITH_EINVAL, "%lld vectors side by side; at most %d are possible",
                       (long long)o->n, KI_MOST_ORDERS);
    if (o->n * o->width > v->dim)
        return ki_fail(err, KITH_EINTERNAL, "%lld vectors of %lld numbers do not fit into rows of %lld",
                       (long long)o->n, (long long)o->width, (long long)v->dim);
    return KITH_OK;
}

/* The vectors behind the embedding, whose R@1 is known. */
static kith_status score_orders(ki_vectors *v, const ki_orders_options *o, double embedding,
                                ki_order_recall *ret, kith_error *err) {
    const int64_t first = v->dim - o->n * o->width;
    ki_order_recall r = {.n = 1 + o->n, .at_1 = {embedding}};
    for (int64_t k = 0; k < o->n; k++) {
        ki_scores scores = {0};
        KI_TRY(score_part(v, (part){first + k * o->width, o->width}, o, &scores, err));
        r.at_1[1 + k] = scores.recall[0];
    }
    *ret = r;
    return KITH_OK;
}

kith_status ki_judge_each_order(ki_vectors *v, const ki_orders_options *o, ki_scores *ret_embedding,
                                ki_order_recall *ret_alone, kith_error *err) {
    ki_scores embedding = {0};
    KI_TRY(check(v, o, err));
    const int64_t first = v->dim - o->n * o->width;
    if (first == 0) return ki_fail(err, KITH_EINTERNAL, "the rows do not begin with an embedding");
    KI_TRY(score_part(v, (part){0, first}, o, &embedding, err));
    KI_TRY(score_orders(v, o, embedding.recall[0], ret_alone, err));
    *ret_embedding = embedding;
    return KITH_OK;
}

/* What is scored beside the plain projection. */
enum { WITH_WHITE = 1, WITH_CLUSTERS = 2 };

static kith_status score_projected(ki_vectors *fitted, ki_vectors *test, const ki_orders_options *o,
                                   const ki_knn_device *device, int with, ki_projected *r, kith_error *err) {
    kith_status status;
    kith_pca pca = {0};
    kith_array projected = {0}, white = {0};
    ki_rows rows, wanted;
    int64_t n = o->n_components;
    if (n > test->dim) n = test->dim;
    if (n > fitted->n - 1) n = fitted->n - 1;
    KI_CHECK(ki_judge_rows(fitted, device, &rows, err));
    KI_CHECK(ki_judge_rows(test, device, &wanted, err));
    KI_CHECK(ki_pca_fit(&rows, device,
                        &(kith_pca_options){.size = sizeof(kith_pca_options), .n_components = n}, &pca, err));
    KI_CHECK(ki_pca_apply(&pca, &wanted, device, &projected, err));
    r->dim[0] = test->dim;
    r->dim[1] = n;
    ki_vectors v = rows_like(test, n, projected.data);
    KI_CHECK(ki_judge_scores(&v, o->k, o->n_k, NULL, &r->plain, &r->intervals, err));
    if (with & WITH_CLUSTERS) KI_CHECK(ki_judge_cluster(&v, &r->clustered, err));
    if (with & WITH_WHITE) {
        pca.whiten = true;
        KI_CHECK(ki_pca_apply(&pca, &wanted, device, &white, err));
        v.host = white.data;
        KI_CHECK(ki_judge_scores(&v, o->k, o->n_k, NULL, &r->white, NULL, err));
    }
done:
    kith_pca_release(&pca);
    kith_array_release(&projected);
    kith_array_release(&white);
    return status;
}

/* ---- every vector whitened by itself, before they are put side by side ---- */

/* Rows that are being put together: `at` numbers of each are there. */
typedef struct wide {
    float *rows; /* [n, dim] */
    int64_t dim, at;
} wide;

/* Behind what is there already, each of this length. */
static void put_beside(wide *to, const float *rows, int64_t n, int64_t width, double length) {
    for (int64_t i = 0; i < n; i++) {
        const float *x = rows + i * width;
        double sum = 0;
        for (int64_t k = 0; k < width; k++) sum += (double)x[k] * (double)x[k];
        const float factor = sum > 0 ? (float)(length / sqrt(sum)) : 0;
        for (int64_t k = 0; k < width; k++) to->rows[i * to->dim + to->at + k] = factor * x[k];
    }
    to->at += width;
}

static void whiten_softly(kith_pca *pca) {
    double *variance = pca->variance.data, sum = 0;
    const int64_t n = pca->variance.dim[0];
    for (int64_t j = 0; j < n; j++) sum += variance[j];
    for (int64_t j = 0; j < n; j++) variance[j] += KI_WHITEN_SOFTNESS * sum / (double)n;
    pca->whiten = true;
}

static kith_status whiten_part(ki_vectors *fitted, ki_vectors *test, part p, int64_t n_components,
                               double length, const ki_knn_device *device, wide *to_fitted, wide *to_test,
                               kith_error *err) {
    kith_status status;
    kith_pca pca = {0};
    kith_array white = {0};
    float *rows[2] = {NULL, NULL};
    ki_vectors *const from[2] = {fitted, test};
    wide *const to[2] = {to_fitted, to_test};
    for (int i = 0; i < 2; i++) KI_CHECK(copy_part(from[i], p, &rows[i], err));
    for (int i = 0; i < 2; i++) {
        ki_vectors v = rows_like(from[i], p.width, rows[i]);
        ki_rows view;
        KI_CHECK(ki_judge_rows(&v, device, &view, err));
        if (i == 0) {
            const kith_pca_options options = {.size = sizeof options, .n_components = n_components};
            KI_CHECK(ki_pca_fit(&view, device, &options, &pca, err));
            whiten_softly(&pca);
        }
        KI_CHECK(ki_pca_apply(&pca, &view, device, &white, err));
        put_beside(to[i], white.data, from[i]->n, n_components, length);
        kith_array_release(&white);
    }
done:
    for (int i = 0; i < 2; i++) ki_free(rows[i]);
    kith_array_release(&white);
    kith_pca_release(&pca);
    return status;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static kith_status score_each_white(ki_vectors *fitted, ki_vectors *test, const ki_orders_options *o,
                                    const ki_knn_device *device, ki_orders *r, kith_error *err) {
    kith_status status;
    wide f = {0}, t = {0};
    const int64_t first = test->dim - o->n * o->width, most = least(o->n_components, fitted->n - 1);
    const int64_t n_first = least(first, most), n_order = least(o->width, most);
    f.dim = t.dim = n_first + o->n * n_order;
    KI_CHECK(ki_alloc_or(&f.rows, (size_t)fitted->n, (size_t)f.dim * sizeof *f.rows, "whitened orders", err));
    KI_CHECK(ki_alloc_or(&t.rows, (size_t)test->n, (size_t)t.dim * sizeof *t.rows, "whitened orders", err));
    if (first > 0) {
        const double length = sqrt((double)o->n); /* as much as all others together */
        KI_CHECK(whiten_part(fitted, test, (part){0, first}, n_first, length, device, &f, &t, err));
    }
    for (int64_t k = 0; k < o->n; k++) {
        const part p = {first + k * o->width, o->width};
        KI_CHECK(whiten_part(fitted, test, p, n_order, 1, device, &f, &t, err));
    }
    ki_vectors wide_fitted = rows_like(fitted, f.dim, f.rows), wide_test = rows_like(test, t.dim, t.rows);
    KI_CHECK(score_projected(&wide_fitted, &wide_test, o, device, 0, &r->each_white, err));
    if (first > 0) KI_CHECK(score_part(&wide_test, (part){0, n_first}, o, &r->first_white, err));
done:
    ki_free(f.rows);
    ki_free(t.rows);
    return status;
}

kith_status ki_judge_orders(ki_vectors *fitted, ki_vectors *test, const ki_orders_options *o,
                            ki_orders *ret_orders, kith_error *err) {
    kith_status status;
    ki_orders r = {0};
    ki_scores whole = {0};
    ki_knn_device device = {0};
    KI_TRY(check(test, o, err));
    KI_TRY(score_orders(test, o, o->recall, &r.alone, err));
    KI_TRY(ki_judge_scores(test, o->k, o->n_k, NULL, &whole, NULL, err));
    r.side_by_side = whole.recall[0];
    if (test->backend) KI_TRY(ki_knn_device_beside(test->backend, &device, err));
    const int with = o->has_clustering ? WITH_WHITE | WITH_CLUSTERS : WITH_WHITE;
    KI_CHECK(score_projected(fitted, test, o, &device, with, &r.fair, err));
    KI_CHECK(score_each_white(fitted, test, o, &device, &r, err));
    KI_CHECK(score_projected(test, test, o, &device, WITH_WHITE, &r.transductive, err));
    *ret_orders = r;
done:
    ki_knn_device_close(&device);
    return status;
}
