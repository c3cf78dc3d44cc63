/* Query images to one vector: embedded, weighed and added. */
#include "model/query.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "model/pictures.h"

enum { MOST_IMAGES = 1024 };

KI_OPTIONS_INIT(kith_query_options, 0)

kith_status ki_query_check(const kith_query_image *images, int64_t n, kith_error *err) {
    bool is_like = false;
    if (n < 1 || n > MOST_IMAGES)
        return ki_fail(err, KITH_EINVAL, "a query of %lld images; wanted 1 to %d", (long long)n, MOST_IMAGES);
    for (int64_t i = 0; i < n; i++) {
        if (!images[i].path && !images[i].bytes && !images[i].pixels)
            return ki_fail(err, KITH_EINVAL, "image %lld of the query has neither a path nor bytes",
                           (long long)i);
        if (!isfinite(images[i].weight))
            return ki_fail(err, KITH_EINVAL, "the weight of image %lld is not a finite number", (long long)i);
        is_like |= images[i].weight > 0;
    }
    return is_like ? KITH_OK
                   : ki_fail(err, KITH_EINVAL, "no image of the query has a weight above 0; wanted one");
}

void ki_query_weights(const kith_query_image *images, int64_t n, int64_t n_views, double *ret_weights) {
    for (int64_t i = 0; i < n * n_views; i++) ret_weights[i] = images[i / n_views].weight / (double)n_views;
}

kith_status ki_query_sum(const double *rows, int64_t dim, const double *weights, int64_t n, double *ret_query,
                         double *ret_factor, kith_error *err) {
    double largest = 0;
    memset(ret_query, 0, (size_t)dim * sizeof *ret_query);
    for (int64_t i = 0; i < n; i++) {
        const double *row = rows + i * dim;
        double squares = 0;
        for (int64_t j = 0; j < dim; j++) squares += row[j] * row[j];
        /* A row of zeros adds nothing. */
        ret_factor[i] = n == 1 ? 1 : squares > 0 ? weights[i] / sqrt(squares) : 0;
        for (int64_t j = 0; j < dim; j++) ret_query[j] += ret_factor[i] * row[j];
    }
    for (int64_t j = 0; j < dim; j++) largest = fmax(largest, fabs(ret_query[j]));
    if (n == 1 || largest > 1e-6) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "the query's images cancel out: nothing is left to look for");
}

static kith_status check_weights(const double *weights, int64_t n, kith_error *err) {
    bool is_like = false;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(weights[i]))
            return ki_fail(err, KITH_EINVAL, "the weight of image %lld is not a finite number", (long long)i);
        is_like |= weights[i] > 0;
    }
    return is_like ? KITH_OK
                   : ki_fail(err, KITH_EINVAL, "no image of the query has a weight above 0; wanted one");
}

kith_status kith_query_combine(const float *rows, const double *weights, int64_t n, int64_t dim,
                               float *ret_row, kith_error *err) {
    KI_NEED(err, rows, weights, ret_row);
    KI_NEED_COUNT(err, n);
    KI_NEED_COUNT(err, dim);
    kith_status status;
    const size_t n_rows = (size_t)n, width = (size_t)dim;
    double *wide = NULL, *query = NULL, *factor = NULL;
    KI_TRY(check_weights(weights, n, err));
    KI_CHECK(ki_alloc_or(&wide, n_rows * width, sizeof *wide, "vectors", err));
    KI_CHECK(ki_alloc_or(&query, width, sizeof *query, "a query", err));
    KI_CHECK(ki_alloc_or(&factor, n_rows, sizeof *factor, "weights", err));
    for (size_t i = 0; i < n_rows * width; i++) wide[i] = (double)rows[i];
    KI_CHECK(ki_query_sum(wide, dim, weights, n, query, factor, err));
    for (size_t i = 0; i < width; i++) ret_row[i] = (float)query[i];
done:
    ki_free(wide);
    ki_free(query);
    ki_free(factor);
    return status;
}

kith_status kith_model_query(kith_model *model, const kith_query_image *images, int64_t n,
                             const kith_query_options *options, float *ret_row, kith_error *err) {
    KI_NEED(err, model, images, ret_row);
    KI_NEED_COUNT(err, n);
    KI_OPTIONS_TAKE(kith_query_options, o, options, err);
    kith_status status;
    ki_pictures pictures = {0};
    float *rows = NULL;
    double *weights = NULL;
    const int64_t n_views = o.flips ? 2 : 1, dim = kith_model_dim(model);
    KI_TRY(ki_query_check(images, n, err));
    KI_CHECK(ki_pictures_init(&pictures, model, n * n_views, err));
    KI_CHECK(ki_alloc_or(&rows, (size_t)(n * n_views * dim), sizeof *rows, "vectors", err));
    for (int64_t i = 0; i < n; i++)
        KI_CHECK(ki_pictures_add(&pictures, &images[i], o.flips, o.most_pixels, err));
    KI_CHECK(ki_pictures_embed(&pictures, NULL, rows, err));
    KI_CHECK(ki_alloc_or(&weights, (size_t)(n * n_views), sizeof *weights, "weights", err));
    ki_query_weights(images, n, n_views, weights);
    status = kith_query_combine(rows, weights, n * n_views, dim, ret_row, err);
done:
    ki_free(weights);
    ki_pictures_release(&pictures);
    ki_free(rows);
    return status;
}
