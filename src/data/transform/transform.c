/* Transforms: defaults, checks, the random choices of one image. */
#include "data/transform/transform.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"

enum { MOST_CROP = 4096, MOST_RESIZE = 16384, TRIES = 10 };

KI_OPTIONS_INIT(kith_transform, .resize = KITH_RESIZE_SQUASH, .resize_to = 256, .crop = KITH_CROP_CENTRE,
                .crop_to = 227, .filter = KITH_FILTER_BILINEAR, .scale = {0.08, 1.0},
                .ratio = {3.0 / 4.0, 4.0 / 3.0}, .channels = 3, .pixel_scale = 1.0 / 255.0,
                .std = {1, 1, 1}, )

kith_status kith_transform_check(const kith_transform *transform, kith_error *err) {
    KI_OPTIONS_TAKE(kith_transform, taken, transform, err);
    const kith_transform *t = &taken;
    if (t->crop_to < 1 || t->crop_to > MOST_CROP)
        return ki_fail(err, KITH_EINVAL, "crop is %d; wanted 1 … %d", t->crop_to, MOST_CROP);
    if (t->resize != KITH_RESIZE_NONE && (t->resize_to < 1 || t->resize_to > MOST_RESIZE))
        return ki_fail(err, KITH_EINVAL, "resize is to %d; wanted 1 … %d", t->resize_to, MOST_RESIZE);
    if (t->channels != 1 && t->channels != 3)
        return ki_fail(err, KITH_EINVAL, "channels is %d; wanted 1 or 3", t->channels);
    if (t->crop == KITH_CROP_RESIZED) {
        if (!(t->scale[0] > 0 && t->scale[0] <= t->scale[1] && t->scale[1] <= 1))
            return ki_fail(err, KITH_EINVAL, "scale is %g … %g; wanted 0 < from <= to <= 1", t->scale[0],
                           t->scale[1]);
        if (!(t->ratio[0] > 0 && t->ratio[0] <= t->ratio[1] && isfinite(t->ratio[1])))
            return ki_fail(err, KITH_EINVAL, "ratio is %g … %g; wanted 0 < from <= to", t->ratio[0],
                           t->ratio[1]);
    }
    if (t->crop == KITH_CROP_MULTISCALE &&
        !(t->scale[0] > 0 && t->scale[0] <= t->scale[1] && t->scale[1] <= 4))
        return ki_fail(err, KITH_EINVAL, "scale is %g … %g; wanted 0 < from <= to <= 4", t->scale[0],
                       t->scale[1]);
    KI_TRY(ki_effects_check(t, err));
    if (!isfinite(t->pixel_scale) || t->pixel_scale == 0)
        return ki_fail(err, KITH_EINVAL, "pixel_scale is %g; wanted a number other than 0", t->pixel_scale);
    for (int c = 0; c < t->channels; c++) {
        if (!isfinite(t->mean[c]) || !isfinite(t->std[c]) || t->std[c] <= 0)
            return ki_fail(err, KITH_EINVAL, "channel %d has mean %g and std %g; wanted numbers, std over 0",
                           c, t->mean[c], t->std[c]);
    }
    return KITH_OK;
}

void ki_transform_scratch_release(ki_transform_scratch *scratch) {
    ki_resampler_release(&scratch->resampler);
    ki_image_release(&scratch->part);
    ki_view_release(&scratch->view);
    ki_free(scratch->row);
    *scratch = (ki_transform_scratch){0};
}

int32_t ki_transform_least_side(const kith_transform *t, bool has_box) {
    if (t->resize == KITH_RESIZE_NONE || (t->use_box && has_box)) return 0;
    /* With twice the size, our own filter does most of the smoothing: the mean difference from a full decode
     * is then about one grey level, instead of two to three at the target size itself
     * (bench/data_quality.py). */
    return 2 * t->resize_to;
}

bool ki_transform_is_random(const kith_transform *t) {
    return t->mirror || t->crop != KITH_CROP_CENTRE || t->n_effects > 0;
}

static kith_status cut_box(const double *box, const ki_image *src, ki_rect *ret, kith_error *err) {
    if (!isfinite(box[0] + box[1] + box[2] + box[3]))
        return ki_fail(err, KITH_EINVAL, "the box %g,%g %gx%g is not made of numbers", box[0], box[1], box[2],
                       box[3]);
    const double x0 = fmax(0, floor(box[0])), y0 = fmax(0, floor(box[1]));
    const double x1 = fmin(src->w, ceil(box[0] + box[2])), y1 = fmin(src->h, ceil(box[1] + box[3]));
    if (!(x1 > x0 && y1 > y0))
        return ki_fail(err, KITH_EINVAL, "the box %g,%g %gx%g lies outside the image of %dx%d pixels", box[0],
                       box[1], box[2], box[3], src->w, src->h);
    *ret = (ki_rect){(int32_t)x0, (int32_t)y0, (int32_t)(x1 - x0), (int32_t)(y1 - y0)};
    return KITH_OK;
}

/* The longer side becomes `to`; the shorter keeps the aspect, rounded, and at least one pixel. */
static void fit_longer(int32_t *w, int32_t *h, int32_t to) {
    const double scale = (double)to / (*w > *h ? *w : *h);
    const double shorter = fmax(1, rint(scale * (*w > *h ? *h : *w)));
    const bool is_tall = *w < *h;
    *w = is_tall ? (int32_t)shorter : to;
    *h = is_tall ? to : (int32_t)shorter;
}

/* The shorter side becomes `to`; the longer keeps the aspect, cut to a whole number. */
static void fit_shorter(int32_t *w, int32_t *h, int32_t to) {
    const bool is_tall = *w < *h;
    const int64_t shorter = is_tall ? *w : *h, longer = is_tall ? *h : *w;
    int64_t other = to * longer / shorter;
    if (other > KI_IMAGE_MOST_SIDE) other = KI_IMAGE_MOST_SIDE; /* a very narrow image */
    *w = is_tall ? to : (int32_t)other;
    *h = is_tall ? (int32_t)other : to;
}

static void swap_images(ki_image *a, ki_image *b) {
    const ki_image t = *a;
    *a = *b;
    *b = t;
}

/* src in the middle of a square of background. A grey image on a coloured background becomes a coloured one. */
static kith_status pad(const uint8_t ground[3], const ki_image *src, int32_t side, ki_image *dst,
                       kith_error *err) {
    const bool ground_is_grey = ground[0] == ground[1] && ground[1] == ground[2];
    const int channels = src->channels == 1 && ground_is_grey ? 1 : 3;
    KI_TRY(ki_image_shape(dst, side, side, channels, err));
    const size_t n = (size_t)side * (size_t)side, pixel = (size_t)channels;
    for (size_t i = 0; i < n; i++) memcpy(dst->data + i * pixel, ground, pixel);
    const int32_t left = (side - src->w) / 2, top = (side - src->h) / 2;
    const size_t count = (size_t)src->w;
    for (int32_t y = 0; y < src->h; y++) {
        const uint8_t *from = src->data + (size_t)y * count * (size_t)src->channels;
        uint8_t *to = dst->data + ((size_t)(top + y) * (size_t)side + (size_t)left) * pixel;
        if (src->channels == channels)
            memcpy(to, from, count * pixel);
        else
            for (size_t x = 0; x < count; x++) memset(to + 3 * x, from[x], 3);
    }
    return KITH_OK;
}

/* The size of an image of w x h after resizing, without what pads it to a square. */
static void resize(const kith_transform *t, int32_t *w, int32_t *h) {
    switch (t->resize) {
    case KITH_RESIZE_NONE: break;
    case KITH_RESIZE_SQUASH: *w = *h = t->resize_to; break;
    case KITH_RESIZE_SHORTER: fit_shorter(w, h, t->resize_to); break;
    case KITH_RESIZE_AT_MOST:
        if (t->resize_to < (*w < *h ? *w : *h)) fit_shorter(w, h, t->resize_to);
        break;
    case KITH_RESIZE_PAD: fit_longer(w, h, t->resize_to); break;
    }
}

kith_status ki_transform_base(const kith_transform *t, const double *box, ki_image *src,
                              ki_transform_scratch *scratch, ki_image *ret_base, kith_error *err) {
    ki_rect from = {0, 0, src->w, src->h};
    int32_t w = src->full_w, h = src->full_h;
    if (t->use_box && box) {
        KI_TRY(cut_box(box, src, &from, err));
        w = from.w, h = from.h;
    }
    if (t->resize == KITH_RESIZE_NONE) w = from.w, h = from.h;
    resize(t, &w, &h);
    if (t->resize == KITH_RESIZE_PAD) {
        KI_TRY(ki_resample(&scratch->resampler, src, from, w, h, (ki_rect){0, 0, w, h}, t->filter,
                           &scratch->part, err));
        return pad(t->background, &scratch->part, t->resize_to, ret_base, err);
    }
    if (w == src->w && h == src->h) {
        swap_images(src, ret_base);
        return KITH_OK;
    }
    return ki_resample(&scratch->resampler, src, from, w, h, (ki_rect){0, 0, w, h}, t->filter, ret_base, err);
}

void ki_transform_shrunk(const kith_transform *t, int32_t *w, int32_t *h) {
    int32_t small_w = *w, small_h = *h;
    if (ki_transform_is_random(t)) return;
    if (t->resize == KITH_RESIZE_NONE) {
        if (small_w > t->crop_to) small_w = t->crop_to;
        if (small_h > t->crop_to) small_h = t->crop_to;
    } else {
        resize(t, &small_w, &small_h);
    }
    if ((int64_t)small_w * small_h >= (int64_t)*w * *h) return;
    *w = small_w;
    *h = small_h;
}

kith_status ki_transform_shrink(const kith_transform *t, const ki_image *src, ki_rect from,
                                ki_transform_scratch *scratch, ki_image *dst, ki_rect *ret_shown,
                                kith_error *err) {
    const bool is_whole = from.w == src->w && from.h == src->h;
    int32_t w = from.w, h = from.h;
    /* The aspect is that of the file, also where it was decoded at a part of its size: as in ki_transform_base. */
    if (is_whole && t->resize != KITH_RESIZE_NONE) w = src->full_w, h = src->full_h;
    ki_transform_shrunk(t, &w, &h);
    if ((int64_t)w * h >= (int64_t)from.w * from.h) w = from.w, h = from.h;
    *ret_shown = from;
    if (t->resize == KITH_RESIZE_NONE || (w == from.w && h == from.h)) {
        *ret_shown = (ki_rect){from.x + (from.w - w) / 2, from.y + (from.h - h) / 2, w, h};
        const double box[4] = {ret_shown->x, ret_shown->y, w, h};
        return ki_image_cut(src, box, dst, NULL, err);
    }
    return ki_resample(&scratch->resampler, src, from, w, h, (ki_rect){0, 0, w, h}, t->filter, dst, err);
}

kith_status ki_transform_shrink_part(const kith_transform *t, const ki_image *src, const double *box,
                                     bool is_mirrored, ki_transform_scratch *scratch, ki_image *dst,
                                     double ret_shown[4], kith_error *err) {
    double part[4] = {0, 0, src->w, src->h};
    if (box) KI_TRY(ki_image_part(src->w, src->h, box, part, err));
    ki_rect from = {(int32_t)part[0], (int32_t)part[1], (int32_t)part[2], (int32_t)part[3]}, shown;
    if (is_mirrored) from.x = src->w - from.x - from.w;
    KI_TRY(ki_transform_shrink(t, src, from, scratch, dst, &shown, err));
    if (is_mirrored) shown.x = src->w - shown.x - shown.w;
    const double across = (double)src->full_w / src->w, down = (double)src->full_h / src->h;
    const double place[4] = {across * shown.x, down * shown.y, across * shown.w, down * shown.h};
    memcpy(ret_shown, place, sizeof place);
    return KITH_OK;
}

static double uniform(ki_rng *rng, const double range[2]) {
    return range[0] + (range[1] - range[0]) * ki_rng_double(rng);
}

static int32_t pick(ki_rng *rng, int32_t n) { return n > 1 ? (int32_t)ki_rng_below(rng, (uint32_t)n) : 0; }

/* Area and aspect as in torchvision's RandomResizedCrop: ten tries, then the largest centred part whose
 * aspect is allowed. */
static ki_rect draw_part(const kith_transform *t, int32_t w, int32_t h, ki_rng *rng) {
    const double log_ratio[2] = {log(t->ratio[0]), log(t->ratio[1])};
    for (int i = 0; i < TRIES; i++) {
        const double area = (double)w * h * uniform(rng, t->scale), ratio = exp(uniform(rng, log_ratio));
        const double part_w = rint(sqrt(area * ratio)), part_h = rint(sqrt(area / ratio));
        if (part_w >= 1 && part_w <= w && part_h >= 1 && part_h <= h) {
            const int32_t y = pick(rng, h - (int32_t)part_h + 1), x = pick(rng, w - (int32_t)part_w + 1);
            return (ki_rect){x, y, (int32_t)part_w, (int32_t)part_h};
        }
    }
    const double ratio = (double)w / h;
    int32_t part_w = w, part_h = h;
    if (ratio < t->ratio[0])
        part_h = (int32_t)rint(w / t->ratio[0]);
    else if (ratio > t->ratio[1])
        part_w = (int32_t)rint(h * t->ratio[1]);
    if (part_h < 1) part_h = 1;
    if (part_w < 1) part_w = 1;
    return (ki_rect){(w - part_w) / 2, (h - part_h) / 2, part_w, part_h};
}

/* Where a crop of length n begins on an axis of length `have`: at a random place or in the middle. If the
 * axis is shorter, all of it goes to the middle of the output. */
static void place(int32_t have, int32_t n, bool at_random, ki_rng *rng, int32_t *ret_from, int32_t *ret_n,
                  int32_t *ret_to) {
    *ret_n = have < n ? have : n;
    *ret_to = (n - *ret_n) / 2;
    *ret_from = 0;
    if (have > n) *ret_from = at_random ? pick(rng, have - n + 1) : (have - n) / 2;
}

ki_draw ki_transform_draw(const kith_transform *t, int32_t base_w, int32_t base_h, ki_rng *rng) {
    ki_draw draw = {.from = {0, 0, base_w, base_h}, .full_w = base_w, .full_h = base_h};
    draw.effects = ki_rng_beside(rng, KI_RNG_EFFECT);
    if (t->mirror) draw.mirror = ki_rng_u32(rng) >> 31;
    const int32_t crop = t->crop_to;
    if (t->crop == KITH_CROP_RESIZED) {
        draw.from = draw_part(t, base_w, base_h, rng);
        draw.full_w = draw.full_h = crop;
    } else if (t->crop == KITH_CROP_MULTISCALE) {
        const double side = rint(uniform(rng, t->scale) * crop);
        fit_longer(&draw.full_w, &draw.full_h, side < 1 ? 1 : (int32_t)side);
    }
    const bool at_random = t->crop != KITH_CROP_CENTRE;
    place(draw.full_h, crop, at_random, rng, &draw.window.y, &draw.window.h, &draw.y);
    place(draw.full_w, crop, at_random, rng, &draw.window.x, &draw.window.w, &draw.x);
    return draw;
}

void ki_draw_test_view(const kith_transform *t, int view, ki_draw *draw) {
    static const struct {
        bool mirror;
        int x, y; /* 0: where it is; -1, 1: the least and the most */
    } views[KI_N_TEST_VIEWS] = {{false, 0, 0},  {true, 0, 0},   {false, -1, -1}, {false, 1, 1},
                                {false, 1, -1}, {false, -1, 1}, {true, -1, -1},  {true, 1, 1},
                                {true, 1, -1},  {true, -1, 1}};
    const int32_t room_x = draw->full_w - t->crop_to, room_y = draw->full_h - t->crop_to;
    draw->mirror = views[view].mirror;
    if (views[view].x && room_x > 0) draw->window.x = views[view].x < 0 ? 0 : room_x;
    if (views[view].y && room_y > 0) draw->window.y = views[view].y < 0 ? 0 : room_y;
}

ki_draw ki_transform_draw_image(const kith_transform *t, int32_t w, int32_t h) {
    int32_t full_w = w, full_h = h;
    ki_rng unused = ki_rng_at(0, KI_RNG_AUGMENT, 0, 0);
    resize(t, &full_w, &full_h);
    ki_draw draw = ki_transform_draw(t, full_w, full_h, &unused);
    draw.from = (ki_rect){0, 0, w, h};
    return draw;
}

void ki_transform_view(const kith_transform *t, int32_t w, int32_t h, double ret_view[4]) {
    const bool is_padded = t->resize == KITH_RESIZE_PAD;
    int32_t small_w = w, small_h = h;
    ki_rng unused = ki_rng_at(0, KI_RNG_AUGMENT, 0, 0);
    resize(t, &small_w, &small_h);
    const int32_t base_w = is_padded ? t->resize_to : small_w, base_h = is_padded ? t->resize_to : small_h;
    const ki_draw draw = ki_transform_draw(t, base_w, base_h, &unused);
    const int32_t left = (base_w - small_w) / 2, top = (base_h - small_h) / 2;
    const double across = (double)w / small_w, down = (double)h / small_h;
    ret_view[0] = across * (draw.window.x - draw.x - left);
    ret_view[1] = down * (draw.window.y - draw.y - top);
    ret_view[2] = across * t->crop_to;
    ret_view[3] = down * t->crop_to;
}
