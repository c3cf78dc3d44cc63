/* The last step: from a crop of bytes to one item of a batch. Each row is first expanded to one 32-bit word
 * per output pixel (0x00BBGGRR), and mirrored and padded at the same time. The words are then written as
 * planes of floats or as packed bytes. */
#include <string.h>

#include "base/alloc.h"
#include "data/transform/simd.h"
#include "data/transform/transform.h"

typedef struct part {
    const ki_image *image;
    int32_t x, y; /* of the image */
    ki_draw draw;
} part;

/* The pixels to show: those of the base itself if the draw asks for no resizing, otherwise those of the
 * resized window. */
static kith_status cut_part(const kith_transform *t, const ki_image *base, const ki_draw *draw,
                            ki_transform_scratch *scratch, part *ret, kith_error *err) {
    *ret = (part){
        .image = base, .x = draw->from.x + draw->window.x, .y = draw->from.y + draw->window.y, .draw = *draw};
    if (draw->from.w == draw->full_w && draw->from.h == draw->full_h) return KITH_OK;
    KI_TRY(ki_resample(&scratch->resampler, base, draw->from, draw->full_w, draw->full_h, draw->window,
                       t->filter, &scratch->part, err));
    ret->image = &scratch->part;
    ret->x = ret->y = 0;
    return KITH_OK;
}

static uint32_t word_of(const uint8_t *pixel, int channels) {
    if (channels == 1) return pixel[0] * 0x010101u;
    return (uint32_t)pixel[0] | (uint32_t)pixel[1] << 8 | (uint32_t)pixel[2] << 16;
}

/* Row y of the output as words. The fourth byte of a word is whatever follows the pixel in memory: readers
 * mask it off. */
static void spread_row(const part *p, int32_t crop, int32_t y, uint32_t ground, uint32_t *row) {
    const ki_draw *d = &p->draw;
    if (y < d->y || y >= d->y + d->window.h) {
        for (int32_t x = 0; x < crop; x++) row[x] = ground;
        return;
    }
    const int channels = p->image->channels;
    const size_t at = (size_t)(p->y + y - d->y) * (size_t)p->image->w + (size_t)p->x;
    const uint8_t *src = p->image->data + at * (size_t)channels;
    const int32_t n = d->window.w, left = d->mirror ? crop - d->x - n : d->x;
    for (int32_t x = 0; x < left; x++) row[x] = ground;
    uint32_t *to = row + left;
    if (channels == 1) {
        if (d->mirror)
            for (int32_t x = 0; x < n; x++) to[n - 1 - x] = src[x] * 0x010101u;
        else
            for (int32_t x = 0; x < n; x++) to[x] = src[x] * 0x010101u;
    } else if (d->mirror) {
        for (int32_t x = 0; x < n; x++) memcpy(&to[n - 1 - x], src + 3 * x, 4);
    } else {
        for (int32_t x = 0; x < n; x++) memcpy(&to[x], src + 3 * x, 4);
    }
    for (int32_t x = left + n; x < crop; x++) row[x] = ground;
}

/* Difference first, then the product: no fused operation can change the last bit. */
KI_SIMD static void emit_plane(const uint32_t *row, int32_t n, int shift, float mean, float factor,
                               float *dst) {
    for (int32_t x = 0; x < n; x++) dst[x] = ((float)(int32_t)((row[x] >> shift) & 255u) - mean) * factor;
}

/* ITU-R 601 luma, 16-bit fixed point; the result in the lowest byte. */
static void turn_grey(uint32_t *row, int32_t n) {
    for (int32_t x = 0; x < n; x++) {
        const uint32_t r = row[x] & 255u, g = row[x] >> 8 & 255u, b = row[x] >> 16 & 255u;
        row[x] = (r * 19595u + g * 38470u + b * 7471u + 32768u) >> 16;
    }
}

/* ---- with effects: rows to planes, the effects, planes to the item ---- */

KI_SIMD static void split_row(const uint32_t *row, int32_t n, uint8_t *red, uint8_t *green, uint8_t *blue) {
    for (int32_t x = 0; x < n; x++) {
        red[x] = (uint8_t)row[x];
        green[x] = (uint8_t)(row[x] >> 8);
        blue[x] = (uint8_t)(row[x] >> 16);
    }
}

KI_SIMD static void join_row(const uint8_t *red, const uint8_t *green, const uint8_t *blue, int32_t n,
                             uint32_t *row) {
    for (int32_t x = 0; x < n; x++) row[x] = red[x] | (uint32_t)green[x] << 8 | (uint32_t)blue[x] << 16;
}

static kith_status make_view(const kith_transform *t, const part *p, uint32_t ground,
                             ki_transform_scratch *scratch, kith_error *err) {
    ki_effect_view *v = &scratch->view;
    const size_t n = (size_t)t->crop_to;
    KI_TRY(ki_view_shape(v, t, err));
    for (size_t y = 0; y < n; y++) {
        spread_row(p, t->crop_to, (int32_t)y, ground, scratch->row);
        split_row(scratch->row, t->crop_to, v->plane[0] + y * n, v->plane[1] + y * n, v->plane[2] + y * n);
    }
    ki_effects_apply(t, &p->draw.effects, v);
    return KITH_OK;
}

/* Row y of what the network sees, from the view where there are effects. */
static void take_row(const kith_transform *t, const part *p, int32_t y, uint32_t ground,
                     ki_transform_scratch *scratch) {
    const size_t at = (size_t)y * (size_t)t->crop_to;
    uint8_t *const *plane = scratch->view.plane;
    if (t->n_effects == 0)
        spread_row(p, t->crop_to, y, ground, scratch->row);
    else
        join_row(plane[0] + at, plane[1] + at, plane[2] + at, t->crop_to, scratch->row);
    if (t->channels == 1) turn_grey(scratch->row, t->crop_to);
}

static kith_status begin(const kith_transform *t, const ki_image *base, const ki_draw *draw,
                         ki_transform_scratch *scratch, part *ret_part, uint32_t *ret_ground,
                         kith_error *err) {
    KI_TRY(cut_part(t, base, draw, scratch, ret_part, err));
    *ret_ground = word_of(t->background, 3);
    KI_TRY(ki_grow(&scratch->row, &scratch->row_capacity, (size_t)t->crop_to, sizeof *scratch->row, "a row",
                   err));
    return t->n_effects > 0 ? make_view(t, ret_part, *ret_ground, scratch, err) : KITH_OK;
}

kith_status ki_transform_float(const kith_transform *t, const ki_image *base, const ki_draw *draw,
                               ki_transform_scratch *scratch, float *ret_item, kith_error *err) {
    part p;
    uint32_t ground = 0;
    KI_TRY(begin(t, base, draw, scratch, &p, &ground, err));
    const int32_t n = t->crop_to;
    const size_t plane = (size_t)n * (size_t)n;
    for (int32_t y = 0; y < n; y++) {
        take_row(t, &p, y, ground, scratch);
        for (int c = 0; c < t->channels; c++) {
            const int shift = t->channels == 1 ? 0 : 8 * (t->bgr ? 2 - c : c);
            const float mean = (float)(t->mean[c] / t->pixel_scale),
                        factor = (float)(t->pixel_scale / t->std[c]);
            emit_plane(scratch->row, n, shift, mean, factor,
                       ret_item + (size_t)c * plane + (size_t)y * (size_t)n);
        }
    }
    return KITH_OK;
}

kith_status ki_transform_bytes(const kith_transform *t, const ki_image *base, const ki_draw *draw,
                               ki_transform_scratch *scratch, uint8_t *ret_item, kith_error *err) {
    part p;
    uint32_t ground = 0;
    KI_TRY(begin(t, base, draw, scratch, &p, &ground, err));
    const int32_t n = t->crop_to;
    const int channels = t->channels;
    uint8_t *dst = ret_item;
    for (int32_t y = 0; y < n; y++) {
        take_row(t, &p, y, ground, scratch);
        for (int32_t x = 0; x < n; x++, dst += channels) {
            for (int c = 0; c < channels; c++) dst[c] = (uint8_t)(scratch->row[x] >> 8 * c);
        }
    }
    return KITH_OK;
}

int32_t ki_transform_window_side(const kith_transform *t) {
    const bool is_window = t->crop == KITH_CROP_CENTRE || t->crop == KITH_CROP_RANDOM;
    const bool is_square = t->resize == KITH_RESIZE_SQUASH || t->resize == KITH_RESIZE_PAD;
    return is_square && is_window && t->n_effects == 0 && t->crop_to <= t->resize_to ? t->resize_to : 0;
}

kith_status ki_transform_whole(const kith_transform *t, const ki_image *base, uint8_t *ret_item,
                               kith_error *err) {
    const int32_t side = ki_transform_window_side(t);
    const size_t n = (size_t)side * (size_t)side;
    if (base->w != side || base->h != side)
        return ki_fail(err, KITH_EINTERNAL, "a prepared image is %dx%d, wanted %dx%d", base->w, base->h, side,
                       side);
    if (base->channels == t->channels) {
        memcpy(ret_item, base->data, n * (size_t)t->channels);
        return KITH_OK;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t word = word_of(base->data + i * (size_t)base->channels, base->channels);
        if (t->channels == 1) turn_grey(&word, 1);
        for (int c = 0; c < t->channels; c++) *ret_item++ = (uint8_t)(word >> 8 * c);
    }
    return KITH_OK;
}
