/* Decoded pictures to vectors.
 *
 * A plan of the network is for a number of pictures. Queries come in any number, so they go through in groups of a few sizes, each
 * with a plan that is kept: seven pictures are a group of four and three of one. */
#include <string.h>

#include "api/embedder_handle.h"
#include "api/model_handle.h"
#include "core/alloc.h"
#include "core/argument.h"
#include "data/transform/transform.h"
#include "embed/preprocess.h"

static const int64_t group_size[KI_N_GROUPS] = {16, 4, 1};

void ki_embedder_drop_groups(kith_embedder *e) {
    for (int i = 0; i < KI_N_GROUPS; i++) ki_embedder_free(e->group[i]);
}

kith_status ki_embedder_transform(const kith_embedder *e, kith_transform *ret, kith_error *err) {
    return ki_preprocess_transform(&e->model->net, ki_embedder_handle_options(e).resize, ret, err);
}

kith_status ki_embedder_decoding(const kith_embedder *e, ki_decode *ret, kith_error *err) {
    kith_transform transform;
    KI_TRY(ki_embedder_transform(e, &transform, err));
    *ret = (ki_decode){.least_side = ki_transform_least_side(&transform, false)};
    memcpy(ret->background, e->model->net.preprocess.background, sizeof ret->background);
    return KITH_OK;
}

static kith_status need_group(kith_embedder *e, int which, kith_error *err) {
    if (e->group[which]) return KITH_OK;
    kith_model *model = e->model;
    ki_embedder_settings settings = {
        .backend = model->backend, .net = &model->net, .params = model->params, .batch = group_size[which]};
    KI_TRY(ki_embedder_transform(e, &settings.transform, err));
    return ki_embedder_new(&settings, &e->group[which], err);
}

static kith_status check_pixels(const kith_pixels *images, int64_t n, kith_error *err) {
    for (int64_t i = 0; i < n; i++) {
        const kith_pixels *p = &images[i];
        if (p->width < 1 || p->height < 1 || (p->channels != 1 && p->channels != 3) || !p->data)
            return ki_fail(err, KITH_ESHAPE,
                           "picture %lld is %d x %d with %d channels; wanted 1 or 3 channels, and pixels",
                           (long long)i, p->width, p->height, p->channels);
    }
    return KITH_OK;
}

kith_status kith_embedder_pixels(kith_embedder *embedder, const kith_pixels *images, int64_t n,
                                 float *ret_rows, kith_error *err) {
    KI_NEED(err, embedder, images, ret_rows);
    KI_NEED_COUNT(err, n);
    const kith_embed_options how = ki_embedder_handle_options(embedder);
    const char *tap = kith_model_tap(embedder->model, &how);
    KI_TRY(check_pixels(images, n, err));
    for (int64_t at = 0; at < n;) {
        int which = 0;
        while (which < KI_N_GROUPS - 1 &&
               (group_size[which] > n - at || group_size[which] > embedder->model->most_batch))
            which++;
        ki_image group[16];
        for (int64_t i = 0; i < group_size[which]; i++) {
            const kith_pixels *p = &images[at + i];
            group[i] = (ki_image){.w = p->width,
                                  .h = p->height,
                                  .channels = p->channels,
                                  .data = (uint8_t *)(uintptr_t)p->data};
        }
        KI_TRY(need_group(embedder, which, err));
        KI_TRY(ki_embedder_images(embedder->group[which], group, group_size[which], tap,
                                  ret_rows + at * embedder->dim, err));
        at += group_size[which];
    }
    return KITH_OK;
}
