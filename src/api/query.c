/* Query images to one vector: decoded, cut, mirrored, embedded, weighed and added. */
#include <math.h>
#include <string.h>

#include "api/embedder_handle.h"
#include "api/model_handle.h"
#include "core/alloc.h"
#include "core/argument.h"
#include "data/transform/transform.h"
#include "embed/preprocess.h"

enum { MOST_IMAGES = 1024 };

KI_OPTIONS_INIT(kith_query_options, 0)

typedef struct asking {
    kith_embedder *embedder;
    const kith_query_options *options;
    kith_transform transform; /* for the scale at which a JPEG is decoded */
    int64_t n, n_views;       /* images, and pictures made of each */
    ki_image *picture;        /* [n * n_views] */
    float *value;             /* [n * n_views, dim] */
    ki_bytes file;
} asking;

/* The part of an image in a box, which must not miss it. Sides are whole pixels. */
static kith_status cut(const ki_image *src, const double box[4], ki_image *dst, kith_error *err) {
    const double left = floor(box[0] > 0 ? box[0] : 0), top = floor(box[1] > 0 ? box[1] : 0);
    const double right = ceil(fmin(box[0] + box[2], src->w)), bottom = ceil(fmin(box[1] + box[3], src->h));
    if (!(right > left && bottom > top && box[2] > 0 && box[3] > 0))
        return ki_fail(err, KITH_EINVAL, "the part %g,%g,%g,%g lies outside the image of %d x %d pixels",
                       box[0], box[1], box[2], box[3], (int)src->w, (int)src->h);
    const int64_t x = (int64_t)left, y = (int64_t)top, w = (int64_t)(right - left),
                  h = (int64_t)(bottom - top);
    KI_TRY(ki_image_shape(dst, w, h, src->channels, err));
    for (int64_t i = 0; i < h; i++)
        memcpy(dst->data + i * w * src->channels, src->data + ((y + i) * src->w + x) * src->channels,
               (size_t)(w * src->channels));
    return KITH_OK;
}

static kith_status mirror(const ki_image *src, ki_image *dst, kith_error *err) {
    const int64_t c = src->channels;
    KI_TRY(ki_image_shape(dst, src->w, src->h, src->channels, err));
    for (int64_t y = 0; y < src->h; y++) {
        for (int64_t x = 0; x < src->w; x++)
            memcpy(dst->data + (y * src->w + src->w - 1 - x) * c, src->data + (y * src->w + x) * c,
                   (size_t)c);
    }
    return KITH_OK;
}

static kith_status decode(asking *a, const kith_query_image *image, ki_image *ret, kith_error *err) {
    const ki_net *net = &a->embedder->model->net;
    ki_decode how = {.most_pixels = a->options->most_pixels,
                     .least_side = ki_transform_least_side(&a->transform, image->has_box)};
    memcpy(how.background, net->preprocess.background, sizeof how.background);
    kith_status status = KITH_OK;
    if (image->path) status = ki_bytes_read(&a->file, image->path, err);
    if (status != KITH_OK) return status;
    status = image->path ? ki_image_decode(a->file.data, a->file.n, &how, ret, err)
                         : ki_image_decode(image->bytes, image->n_bytes, &how, ret, err);
    return status == KITH_OK || !image->path ? status : ki_prefix(err, status, "%s", image->path);
}

/* The pictures of one image: it, or the part in its box, and its mirror image. */
static kith_status prepare(asking *a, const kith_query_image *image, ki_image *picture, kith_error *err) {
    kith_status status = KITH_OK;
    ki_image whole = {0};
    KI_CHECK(decode(a, image, image->has_box ? &whole : picture, err));
    if (image->has_box) {
        status = cut(&whole, image->box, picture, err);
        if (status != KITH_OK && image->path) ki_prefix(err, status, "%s", image->path);
    }
    if (status == KITH_OK && a->options->flips) status = mirror(picture, picture + 1, err);
done:
    ki_image_release(&whole);
    return status;
}

static kith_status embed(asking *a, kith_error *err) {
    kith_status status;
    kith_pixels *pixels = NULL;
    const int64_t n = a->n * a->n_views;
    const kith_embed_options how = ki_embedder_handle_options(a->embedder);
    KI_CHECK(ki_zalloc_or(&pixels, (size_t)n, sizeof *pixels, "pictures", err));
    for (int64_t i = 0; i < n; i++) {
        const ki_image *p = &a->picture[i];
        pixels[i] = (kith_pixels){p->w, p->h, p->channels, p->data};
    }
    KI_CHECK(kith_model_embed_pixels(a->embedder->model, pixels, n, &how, a->value, err));
done:
    ki_free(pixels);
    return status;
}

/* sum += weight * row / |row|. A row of zeros adds nothing. */
static void add_normalised(const float *row, int64_t dim, double weight, double *sum) {
    double squares = 0;
    for (int64_t i = 0; i < dim; i++) squares += (double)row[i] * (double)row[i];
    const double factor = squares > 0 ? weight / sqrt(squares) : 0;
    for (int64_t i = 0; i < dim; i++) sum[i] += factor * (double)row[i];
}

static kith_status combine(const asking *a, const kith_query_image *images, float *ret_row, kith_error *err) {
    const int64_t dim = a->embedder->dim;
    double *sum = NULL, largest = 0;
    if (a->n * a->n_views == 1) {
        memcpy(ret_row, a->value, (size_t)dim * sizeof *ret_row);
        return KITH_OK;
    }
    KI_TRY(ki_zalloc_or(&sum, (size_t)dim, sizeof *sum, "a query", err));
    for (int64_t i = 0; i < a->n * a->n_views; i++)
        add_normalised(a->value + i * dim, dim, images[i / a->n_views].weight / (double)a->n_views, sum);
    for (int64_t i = 0; i < dim; i++) largest = fmax(largest, fabs(sum[i]));
    for (int64_t i = 0; i < dim && largest > 1e-6; i++) ret_row[i] = (float)sum[i];
    ki_free(sum);
    if (largest > 1e-6) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "the query's images cancel out: nothing is left to look for");
}

static kith_status check(const kith_query_image *images, int64_t n, kith_error *err) {
    bool is_like = false;
    if (n < 1 || n > MOST_IMAGES)
        return ki_fail(err, KITH_EINVAL, "a query of %lld images; wanted 1 to %d", (long long)n, MOST_IMAGES);
    for (int64_t i = 0; i < n; i++) {
        if (!images[i].path && !images[i].bytes)
            return ki_fail(err, KITH_EINVAL, "image %lld of the query has neither a path nor bytes",
                           (long long)i);
        if (!isfinite(images[i].weight))
            return ki_fail(err, KITH_EINVAL, "the weight of image %lld is not a finite number", (long long)i);
        is_like |= images[i].weight > 0;
    }
    return is_like ? KITH_OK
                   : ki_fail(err, KITH_EINVAL, "no image of the query has a weight above 0; wanted one");
}

kith_status kith_embedder_query(kith_embedder *embedder, const kith_query_image *images, int64_t n,
                                const kith_query_options *options, float *ret_row, kith_error *err) {
    KI_NEED(err, embedder, images, ret_row);
    KI_NEED_COUNT(err, n);
    KI_OPTIONS_TAKE(kith_query_options, o, options, err);
    kith_status status;
    asking a = {.embedder = embedder, .options = &o, .n = n, .n_views = o.flips ? 2 : 1};
    const kith_embed_options how = ki_embedder_handle_options(embedder);
    KI_TRY(check(images, n, err));
    KI_TRY(ki_preprocess_transform(&embedder->model->net, how.resize, &a.transform, err));
    const size_t n_pictures = (size_t)(n * a.n_views);
    KI_CHECK(ki_zalloc_or(&a.picture, n_pictures, sizeof *a.picture, "pictures", err));
    KI_CHECK(ki_alloc_or(&a.value, n_pictures * (size_t)embedder->dim, sizeof *a.value, "vectors", err));
    for (int64_t i = 0; i < n; i++) KI_CHECK(prepare(&a, &images[i], &a.picture[i * a.n_views], err));
    KI_CHECK(embed(&a, err));
    status = combine(&a, images, ret_row, err);
done:
    for (size_t i = 0; a.picture && i < n_pictures; i++) ki_image_release(&a.picture[i]);
    ki_free(a.picture);
    ki_free(a.value);
    ki_bytes_release(&a.file);
    return status;
}
