/* Decoded pictures to vectors.
 *
 * A plan of the network is for a number of pictures. Queries come in any number, so they go through in groups of a few sizes, each
 * with a plan that is kept: seven pictures are a group of four and three of one. */
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "data/transform/transform.h"
#include "embed/preprocess.h"
#include "embed/views.h"
#include "model/handle.h"

kith_status ki_model_transform(const kith_model *model, kith_transform *ret, kith_error *err) {
    return ki_preprocess_transform(&model->net, model->options.resize, ret, err);
}

kith_status ki_model_decoding(const kith_model *model, ki_decode *ret, kith_error *err) {
    kith_transform transform;
    KI_TRY(ki_model_transform(model, &transform, err));
    *ret = (ki_decode){.least_side = ki_transform_least_side(&transform, false)};
    memcpy(ret->background, model->net.preprocess.background, sizeof ret->background);
    return KITH_OK;
}

static kith_status check_pixels(const kith_pixels *images, int64_t n, kith_error *err) {
    for (int64_t i = 0; i < n; i++) {
        const kith_pixels *p = &images[i];
        if (p->width < 1 || p->height < 1 || (p->channels != 1 && p->channels != 3))
            return ki_fail(err, KITH_ESHAPE,
                           "image %lld is %d x %d with %d channels; wanted 1 or 3 channels, and pixels",
                           (long long)i, p->width, p->height, p->channels);
        if (!p->data)
            return ki_fail(err, KITH_EINVAL, "image %lld: data is NULL; wanted its pixels", (long long)i);
    }
    return KITH_OK;
}

/* The largest group of what is left, at most the model's batch. A device gains by that whole batch, the host does not. */
static int64_t group_of(const kith_model *model, int64_t n_left) {
    static const int64_t sizes[] = {16, 4, 1};
    const int64_t most = model->most_batch;
    if (!model->backend->type->is_host && most > sizes[0] && n_left >= most) return most;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (sizes[i] <= n_left && sizes[i] <= most) return sizes[i];
    }
    return 1;
}

kith_status kith_model_embed_pixels(kith_model *model, const kith_pixels *images, int64_t n,
                                    const kith_embed_options *options, float *ret_values, kith_error *err) {
    KI_NEED(err, model, images, ret_values);
    KI_NEED_COUNT(err, n);
    kith_status status;
    ki_image *group = NULL;
    int64_t n_each = 0, n_views = 1;
    KI_OPTIONS_TAKE(kith_embed_options, o, options, err);
    const char *tap = kith_model_tap(model, &o);
    KI_TRY(ki_model_tap_count(model, tap, &n_each, err));
    KI_TRY(ki_model_n_views(model, tap, &o, &n_views, err));
    KI_TRY(check_pixels(images, n, err));
    if (n == 0) return KITH_OK;
    KI_CHECK(ki_zalloc_or(&group, (size_t)group_of(model, n), sizeof *group, "images", err));
    for (int64_t at = 0, size; at < n; at += size) {
        ki_embedder *embedder = NULL;
        size = group_of(model, n - at);
        for (int64_t i = 0; i < size; i++) {
            const kith_pixels *p = &images[at + i];
            group[i] = (ki_image){.w = p->width,
                                  .h = p->height,
                                  .channels = p->channels,
                                  .data = (uint8_t *)(uintptr_t)p->data};
        }
        KI_CHECK(ki_model_plan_get(model, KI_PLAN_PIXELS, tap, size, &o, &embedder, err));
        KI_CHECK(ki_views_images(embedder, group, size, tap, n_views, n_each, ret_values + at * n_each, err));
    }
done:
    ki_free(group);
    return status;
}
