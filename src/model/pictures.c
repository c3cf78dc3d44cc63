/* Query images: read, decoded, cut, mirrored, embedded. */
#include "model/pictures.h"

#include <string.h>

#include "base/alloc.h"
#include "model/handle.h"

kith_status ki_pictures_init(ki_pictures *p, kith_model *model, int64_t room, kith_error *err) {
    *p = (ki_pictures){.model = model, .room = room};
    KI_TRY(ki_model_transform(model, &p->transform, err));
    return ki_zalloc_or(&p->picture, (size_t)room, sizeof *p->picture, "pictures", err);
}

void ki_pictures_release(ki_pictures *p) {
    for (int64_t i = 0; p->picture && i < p->room; i++) ki_image_release(&p->picture[i].image);
    ki_free(p->picture);
    ki_bytes_release(&p->file);
    ki_image_release(&p->whole);
    ki_transform_scratch_release(&p->scratch);
    *p = (ki_pictures){0};
}

static kith_status take_pixels(const kith_pixels *pixels, int64_t most_pixels, ki_image *ret,
                               kith_error *err) {
    if (pixels->width < 1 || pixels->height < 1 || (pixels->channels != 1 && pixels->channels != 3) ||
        !pixels->data)
        return ki_fail(err, KITH_ESHAPE,
                       "pixels are %d x %d with %d channels; wanted 1 or 3 channels, and pixels",
                       pixels->width, pixels->height, pixels->channels);
    KI_TRY(ki_image_check_size((uint64_t)pixels->width, (uint64_t)pixels->height,
                               most_pixels > 0 ? most_pixels : KI_IMAGE_MOST_PIXELS, err));
    KI_TRY(ki_image_shape(ret, pixels->width, pixels->height, pixels->channels, err));
    memcpy(ret->data, pixels->data,
           (size_t)pixels->width * (size_t)pixels->height * (size_t)pixels->channels);
    return KITH_OK;
}

/* A box is in pixels of the full-size image, so that such an image must be decoded at full size. */
static kith_status decode(ki_pictures *p, const kith_query_image *image, int64_t most_pixels, ki_image *ret,
                          kith_error *err) {
    ki_decode how;
    if (image->pixels) return take_pixels(image->pixels, most_pixels, ret, err);
    KI_TRY(ki_model_decoding(p->model, &how, err));
    how.most_pixels = most_pixels;
    if (image->has_box) how.least_side = 0;
    kith_status status = KITH_OK;
    if (image->path) status = ki_bytes_read(&p->file, image->path, err);
    if (status != KITH_OK) return status;
    status = image->path ? ki_image_decode(p->file.data, p->file.n, &how, ret, err)
                         : ki_image_decode(image->bytes, image->n_bytes, &how, ret, err);
    return status == KITH_OK || !image->path ? status : ki_prefix(err, status, "%s", image->path);
}

/* What the model takes of the decoded image. The mirror image is made before that: resizing is not symmetric to the bit. */
static kith_status take_part(ki_pictures *p, const kith_query_image *image, bool is_mirrored,
                             kith_error *err) {
    ki_picture *to = &p->picture[p->n];
    to->full_w = p->whole.full_w, to->full_h = p->whole.full_h;
    to->is_mirrored = is_mirrored;
    if (is_mirrored) ki_image_swap_sides(&p->whole);
    KI_TRY(ki_transform_shrink_part(&p->transform, &p->whole, image->has_box ? image->box : NULL, is_mirrored,
                                    &p->scratch, &to->image, to->part, err));
    p->n++;
    return KITH_OK;
}

kith_status ki_pictures_add(ki_pictures *p, const kith_query_image *image, bool mirrored, int64_t most_pixels,
                            kith_error *err) {
    if (p->n + 1 + mirrored > p->room)
        return ki_fail(err, KITH_EINTERNAL, "more pictures than %lld", (long long)p->room);
    KI_TRY(decode(p, image, most_pixels, &p->whole, err));
    kith_status status = take_part(p, image, false, err);
    if (status == KITH_OK && mirrored) status = take_part(p, image, true, err);
    return status == KITH_OK || !image->path ? status : ki_prefix(err, status, "%s", image->path);
}

kith_status ki_pictures_embed(const ki_pictures *p, const char *tap, float *ret_values, kith_error *err) {
    kith_pixels *pixels = NULL;
    KITH_OPTIONS(kith_embed_options, how);
    how.tap = tap;
    KI_TRY(ki_zalloc_or(&pixels, (size_t)p->n, sizeof *pixels, "pictures", err));
    for (int64_t i = 0; i < p->n; i++) {
        const ki_image *image = &p->picture[i].image;
        pixels[i] = (kith_pixels){image->w, image->h, image->channels, image->data};
    }
    const kith_status status = kith_model_embed_pixels(p->model, pixels, p->n, &how, ret_values, err);
    ki_free(pixels);
    return status;
}
