/* Images with random crops, as a learner takes them on the host (floats) and on a device (bytes and windows). Included by one test
 * program each. */
#ifndef TEST_TRAIN_DRAWN_H
#define TEST_TRAIN_DRAWN_H

#include "base/alloc.h"
#include "base/rng.h"
#include "train/learning.h"

enum { WHOLE = 20, MOST_IMAGES = 24, WIDTH = 8 };

/* Images, crops and labels, the same for everybody. */
static uint8_t pixels[MOST_IMAGES * WHOLE * WHOLE * 3];
static int32_t windows[MOST_IMAGES * 3], labels[MOST_IMAGES];
static float floats[MOST_IMAGES * 3 * SIDE * SIDE];

static inline kith_transform transform_of(void) {
    KITH_OPTIONS(kith_transform, t);
    t.resize_to = WHOLE;
    t.crop = KITH_CROP_RANDOM;
    t.crop_to = SIDE;
    t.bgr = true;
    t.pixel_scale = 1.0 / 255;
    for (int k = 0; k < 3; k++) t.mean[k] = 0.4 + 0.05 * k, t.std[k] = 0.2 + 0.03 * k;
    return t;
}

/* The first n images as floats, prepared by a transform that differs from transform_of in order and scale alone. */
static inline void draw_floats(const kith_transform *t, int n, float *ret) {
    for (int i = 0; i < n; i++) {
        const ki_draw draw = {.from = {0, 0, WHOLE, WHOLE},
                              .full_w = WHOLE,
                              .full_h = WHOLE,
                              .window = {windows[3 * i], windows[3 * i + 1], SIDE, SIDE},
                              .mirror = windows[3 * i + 2]};
        ki_transform_scratch scratch = {0};
        /* The last image's last pixel is read as four bytes. */
        static uint8_t copy[WHOLE * WHOLE * 3 + KI_IMAGE_SLACK];
        memcpy(copy, pixels + (size_t)i * WHOLE * WHOLE * 3, WHOLE * WHOLE * 3);
        const ki_image padded = {.w = WHOLE, .h = WHOLE, .channels = 3, .data = copy};
        kith_error err;
        assert_ok(ki_transform_float(t, &padded, &draw, &scratch, ret + i * 3 * SIDE * SIDE, &err), &err);
        ki_transform_scratch_release(&scratch);
    }
}

static inline void draw_images(void) {
    ki_rng rng = ki_rng_at(5, KI_RNG_TEST, 0, 0);
    const kith_transform t = transform_of();
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)ki_rng_u32(&rng);
    for (int i = 0; i < MOST_IMAGES; i++) {
        labels[i] = i / 2 % CLASSES;
        windows[3 * i] = (int32_t)(ki_rng_u32(&rng) % (WHOLE - SIDE + 1));
        windows[3 * i + 1] = (int32_t)(ki_rng_u32(&rng) % (WHOLE - SIDE + 1));
        windows[3 * i + 2] = (int32_t)(ki_rng_u32(&rng) % 2);
    }
    draw_floats(&t, MOST_IMAGES, floats);
}

static inline void release(setup *s) {
    const ki_batch_memory memory = ki_feed_memory(s->backend);
    if (s->pinned) memory.give(memory.user, s->pinned);
    setup_release(s);
}

static inline ki_batch_format format_of(const setup *s) { return s->learner->settings.format; }

/* Images as the learner takes them: floats, or bytes in the setup's memory and their crop windows. */
static inline const void *show(setup *s, int first, int n, const int32_t **ret_window) {
    *ret_window = NULL;
    if (format_of(s) == KI_BATCH_FLOAT) return floats + first * 3 * SIDE * SIDE;
    memcpy(s->pinned, pixels + (size_t)first * WHOLE * WHOLE * 3, (size_t)n * WHOLE * WHOLE * 3);
    *ret_window = windows + 3 * first;
    return s->pinned;
}

static inline void add(setup *s, int first, int n, uint64_t step) {
    kith_error err;
    ki_learner_batch batch = {.n = n, .label = labels + first};
    batch.data = show(s, first, n, &batch.window);
    assert_ok(ki_learner_add(s->learner, &batch, step, &err), &err);
    if (s->pinned) memset(s->pinned, 0x55, sizeof pixels); /* borrowed only until the call returned */
}

#endif
