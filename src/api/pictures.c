/* Query images: read, decoded, cut, mirrored, embedded. */
#include "api/pictures.h"

#include <math.h>
#include <string.h>

#include "api/embedder_handle.h"
#include "api/model_handle.h"
#include "core/alloc.h"
#include "embed/preprocess.h"

kith_status ki_pictures_init(ki_pictures *p, kith_embedder *embedder, int64_t room, kith_error *err) {
    const kith_embed_options how = ki_embedder_handle_options(embedder);
    *p = (ki_pictures){.embedder = embedder, .room = room};
    KI_TRY(ki_preprocess_transform(&embedder->model->net, how.resize, &p->transform, err));
    return ki_zalloc_or(&p->picture, (size_t)room, sizeof *p->picture, "pictures", err);
}

void ki_pictures_release(ki_pictures *p) {
    for (int64_t i = 0; p->picture && i < p->room; i++) ki_image_release(&p->picture[i].image);
    ki_free(p->picture);
    ki_bytes_release(&p->file);
    *p = (ki_pictures){0};
}

/* A box is in pixels of the full-size image, so that such an image must be decoded at full size. */
static kith_status decode(ki_pictures *p, const kith_query_image *image, int64_t most_pixels, ki_image *ret,
                          kith_error *err) {
    const ki_net *net = &p->embedder->model->net;
    ki_decode how = {.most_pixels = most_pixels,
                     .least_side = image->has_box ? 0 : ki_transform_least_side(&p->transform, false)};
    memcpy(how.background, net->preprocess.background, sizeof how.background);
    kith_status status = KITH_OK;
    if (image->path) status = ki_bytes_read(&p->file, image->path, err);
    if (status != KITH_OK) return status;
    status = image->path ? ki_image_decode(p->file.data, p->file.n, &how, ret, err)
                         : ki_image_decode(image->bytes, image->n_bytes, &how, ret, err);
    return status == KITH_OK || !image->path ? status : ki_prefix(err, status, "%s", image->path);
}

/* The part of an image in a box, which must not miss it. Sides are whole pixels. */
static kith_status cut(const ki_image *src, const double box[4], ki_picture *to, kith_error *err) {
    const double left = floor(box[0] > 0 ? box[0] : 0), top = floor(box[1] > 0 ? box[1] : 0);
    const double right = ceil(fmin(box[0] + box[2], src->w)), bottom = ceil(fmin(box[1] + box[3], src->h));
    if (!(right > left && bottom > top && box[2] > 0 && box[3] > 0))
        return ki_fail(err, KITH_EINVAL, "the part %g,%g,%g,%g lies outside the image of %d x %d pixels",
                       box[0], box[1], box[2], box[3], (int)src->w, (int)src->h);
    const int64_t x = (int64_t)left, y = (int64_t)top, w = (int64_t)(right - left),
                  h = (int64_t)(bottom - top);
    KI_TRY(ki_image_shape(&to->image, w, h, src->channels, err));
    for (int64_t i = 0; i < h; i++)
        memcpy(to->image.data + i * w * src->channels, src->data + ((y + i) * src->w + x) * src->channels,
               (size_t)(w * src->channels));
    memcpy(to->part, (double[]){left, top, right - left, bottom - top}, sizeof to->part);
    return KITH_OK;
}

static kith_status mirror(const ki_picture *from, ki_picture *to, kith_error *err) {
    const ki_image *src = &from->image;
    const int64_t c = src->channels;
    KI_TRY(ki_image_shape(&to->image, src->w, src->h, src->channels, err));
    for (int64_t y = 0; y < src->h; y++) {
        for (int64_t x = 0; x < src->w; x++)
            memcpy(to->image.data + (y * src->w + src->w - 1 - x) * c, src->data + (y * src->w + x) * c,
                   (size_t)c);
    }
    to->full_w = from->full_w, to->full_h = from->full_h;
    memcpy(to->part, from->part, sizeof to->part);
    to->is_mirrored = true;
    return KITH_OK;
}

static kith_status read_part(ki_pictures *p, const kith_query_image *image, int64_t most_pixels,
                             ki_picture *to, kith_error *err) {
    kith_status status;
    ki_image whole = {0};
    ki_image *decoded = image->has_box ? &whole : &to->image;
    KI_CHECK(decode(p, image, most_pixels, decoded, err));
    to->full_w = decoded->full_w, to->full_h = decoded->full_h;
    memcpy(to->part, (double[]){0, 0, to->full_w, to->full_h}, sizeof to->part);
    if (image->has_box) status = cut(&whole, image->box, to, err);
    if (status != KITH_OK && image->path) ki_prefix(err, status, "%s", image->path);
done:
    ki_image_release(&whole);
    return status;
}

kith_status ki_pictures_add(ki_pictures *p, const kith_query_image *image, bool mirrored, int64_t most_pixels,
                            kith_error *err) {
    ki_picture *to = &p->picture[p->n];
    if (p->n + 1 + mirrored > p->room)
        return ki_fail(err, KITH_EINTERNAL, "more pictures than %lld", (long long)p->room);
    KI_TRY(read_part(p, image, most_pixels, to, err));
    if (mirrored) KI_TRY(mirror(to, to + 1, err));
    p->n += 1 + mirrored;
    return KITH_OK;
}

kith_status ki_pictures_embed(const ki_pictures *p, const char *tap, float *ret_values, kith_error *err) {
    kith_pixels *pixels = NULL;
    kith_embed_options how = ki_embedder_handle_options(p->embedder);
    how.tap = tap;
    KI_TRY(ki_zalloc_or(&pixels, (size_t)p->n, sizeof *pixels, "pictures", err));
    for (int64_t i = 0; i < p->n; i++) {
        const ki_image *image = &p->picture[i].image;
        pixels[i] = (kith_pixels){image->w, image->h, image->channels, image->data};
    }
    const kith_status status =
        kith_model_embed_pixels(p->embedder->model, pixels, p->n, &how, ret_values, err);
    ki_free(pixels);
    return status;
}
