/* Effects: the numbers of torchvision and Pillow, properties, and what does not change. */
#include "data/effect/effect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/effect/colour.h"
#include "data/effect/tone.h"
#include "data/effect/warp.h"
#include "data/input.h"
#include "data/transform/transform.h"
#include "io/yaml.h"
#include "kith/array.h"
#include "support/testing.h"

static kith_array golden(const char *name) {
    char path[4096];
    kith_array array = {0};
    kith_error err = {0};
    snprintf(path, sizeof path, "%s/test/golden/data/effects/%s.npy", KITH_SOURCE_DIR, name);
    assert_ok(kith_npy_read(path, &array, &err), &err);
    return array;
}

static kith_status parse(const char *text, kith_transform *train, kith_transform *test, kith_error *err) {
    ki_arena arena = {0};
    ki_value *root = NULL;
    assert_ok(ki_yaml_parse(text, strlen(text), "recipe", &arena, &root, err), err);
    const kith_status status = ki_input_parse(root, train, test, err);
    ki_arena_release(&arena);
    return status;
}

static kith_transform input(const char *text) {
    kith_error err = {0};
    kith_transform train, test;
    assert_ok(parse(text, &train, &test, &err), &err);
    assert_int_equal(test.n_effects, 0);
    return train;
}

/* The photo of the golden files as a view. */
static void source_view(ki_effect_view *view) {
    KITH_OPTIONS(kith_transform, t);
    kith_error err = {0};
    kith_array a = golden("source");
    t.crop_to = (int)a.dim[0];
    assert_ok(ki_view_shape(view, &t, &err), &err);
    const uint8_t *src = a.data;
    for (int64_t i = 0; i < a.dim[0] * a.dim[1]; i++) {
        for (int c = 0; c < 3; c++) view->plane[c][i] = src[3 * i + c];
    }
    kith_array_release(&a);
}

static void brightness(ki_effect_view *v, double by) { ki_colour_brightness(v, by); }
static void grey(ki_effect_view *v, double by) {
    (void)by;
    ki_colour_grey(v);
}
static void shift_x(ki_effect_view *v, double by) { ki_warp_shift(v, (int32_t)by, 0); }
static void shift_y(ki_effect_view *v, double by) { ki_warp_shift(v, 0, (int32_t)by); }
static void posterize(ki_effect_view *v, double by) { ki_tone_posterize(v, (int)by); }
static void autocontrast(ki_effect_view *v, double by) {
    (void)by;
    ki_tone_autocontrast(v);
}
static void equalize(ki_effect_view *v, double by) {
    (void)by;
    ki_tone_equalize(v);
}
static void blur(ki_effect_view *v, double sigma) {
    char text[128];
    snprintf(text, sizeof text, "{crop: 48, effects: [{name: blur, kernel: 7, sigma: [%g, %g], p: 1}]}",
             sigma, sigma);
    const kith_transform t = input(text);
    const ki_rng rng = ki_rng_at(1, KI_RNG_EFFECT, 0, 0);
    ki_effects_apply(&t, &rng, v);
}

static const struct {
    const char *name;
    void (*apply)(ki_effect_view *v, double by);
    double by;
    double most_mean; /* of the differences to torchvision, in grey levels */
    int most;
} rows[] = {
    {"brightness_0.6", brightness, 0.6, 0.01, 1},
    {"brightness_1.4", brightness, 1.4, 0.01, 1},
    {"contrast_0.6", ki_colour_contrast, 0.6, 0.01, 1},
    {"contrast_1.4", ki_colour_contrast, 1.4, 0.01, 1},
    {"saturation_0.6", ki_colour_saturation, 0.6, 0.01, 1},
    {"saturation_1.4", ki_colour_saturation, 1.4, 0.01, 1},
    {"sharpness_0.6", ki_tone_sharpen, 0.6, 0.01, 1},
    {"sharpness_1.4", ki_tone_sharpen, 1.4, 0.01, 1},
    {"hue_-0.3", ki_colour_hue, -0.3, 0.01, 3},
    {"hue_0.1", ki_colour_hue, 0.1, 0.01, 3},
    {"hue_0.5", ki_colour_hue, 0.5, 0.01, 3},
    {"grey", grey, 0, 0, 0},
    {"blur_0.5", blur, 0.5, 0.01, 1},
    {"blur_1.5", blur, 1.5, 0.01, 1},
    {"shear_x_-0.2", ki_warp_shear_across, -0.2, 0, 0},
    {"shear_x_0.09", ki_warp_shear_across, 0.09, 0, 0},
    {"shear_y_-0.2", ki_warp_shear_down, -0.2, 0, 0},
    {"shear_y_0.09", ki_warp_shear_down, 0.09, 0, 0},
    {"shift_x_-9", shift_x, -9, 0, 0},
    {"shift_y_8", shift_y, 8, 0, 0},
    {"rotate_9", ki_warp_rotate, 9, 0, 0},
    {"rotate_-20", ki_warp_rotate, -20, 0, 0},
    {"posterize_3", posterize, 3, 0, 0},
    {"solarize_178.5", ki_tone_solarize, 178.5, 0, 0},
    {"autocontrast", autocontrast, 0, 0.02, 1},
    {"equalize", equalize, 0, 0, 0},
};

static void test_as_torchvision(void **state) {
    (void)state;
    ki_effect_view v = {0};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_array want = golden(rows[i].name);
        const int64_t n = want.dim[0] * want.dim[1];
        double sum = 0;
        int most = 0;
        source_view(&v);
        rows[i].apply(&v, rows[i].by);
        for (int64_t k = 0; k < 3 * n; k++) {
            const int d = abs(v.plane[k % 3][k / 3] - ((uint8_t *)want.data)[k]);
            sum += d;
            if (d > most) most = d;
        }
        const double mean = sum / (double)(3 * n);
        if (mean > rows[i].most_mean || most > rows[i].most)
            fail_msg("%s: mean difference %g, largest %d", rows[i].name, mean, most);
        kith_array_release(&want);
    }
    ki_view_release(&v);
}

static void test_a_factor_of_one_changes_nothing(void **state) {
    (void)state;
    static void (*const applies[])(ki_effect_view *, double) = {ki_colour_brightness, ki_colour_contrast,
                                                                ki_colour_saturation, ki_tone_sharpen};
    ki_effect_view v = {0}, same = {0};
    source_view(&same);
    const size_t n = (size_t)same.side * (size_t)same.side;
    for (size_t i = 0; i < N_ROWS(applies); i++) {
        source_view(&v);
        applies[i](&v, 1);
        for (int c = 0; c < 3; c++) assert_memory_equal(v.plane[c], same.plane[c], n);
    }
    ki_view_release(&v);
    ki_view_release(&same);
}

/* All effects on photos and flat images of several sizes: nothing is written outside, flat stays flat under blur. */
static void test_any_size(void **state) {
    (void)state;
    static const int sides[] = {1, 2, 3, 7, 33, 64, 227};
    kith_error err = {0};
    ki_effect_view v = {0};
    for (size_t i = 0; i < N_ROWS(sides); i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "{resize: none, crop: %d, background: [9, 9, 9], effects: [{name: randaugment, n: 14}, "
                 "{name: blur, p: "
                 "1}, jitter, grey, {name: erase, p: 1, fill: noise}]}",
                 sides[i]);
        const kith_transform t = input(text);
        for (uint32_t round = 0; round < 20; round++) {
            const ki_rng rng = ki_rng_at(7, KI_RNG_EFFECT, 0, round);
            assert_ok(ki_view_shape(&v, &t, &err), &err);
            for (int c = 0; c < 3; c++) memset(v.plane[c], 77, (size_t)(sides[i] * sides[i]));
            ki_effects_apply(&t, &rng, &v);
        }
        snprintf(text, sizeof text, "{crop: %d, effects: [{name: blur, p: 1}]}", sides[i]);
        const kith_transform flat = input(text);
        const ki_rng rng = ki_rng_at(7, KI_RNG_EFFECT, 0, 0);
        for (int c = 0; c < 3; c++) memset(v.plane[c], 255, (size_t)(sides[i] * sides[i]));
        ki_effects_apply(&flat, &rng, &v);
        for (int k = 0; k < sides[i] * sides[i]; k++) assert_int_equal(v.plane[1][k], 255);
    }
    ki_view_release(&v);
}

/* What an effect draws depends on its place in the list, not on what the others draw; and the crop is that without effects. */
static void test_streams(void **state) {
    (void)state;
    const kith_transform one = input("{crop: 48, effects: [{name: grey, p: 0}, {name: erase, p: 1}]}"),
                         other =
                             input("{crop: 48, effects: [{name: randaugment, p: 0}, {name: erase, p: 1}]}"),
                         none = input("{crop: 48}");
    ki_effect_view a = {0}, b = {0};
    ki_rng r1 = ki_rng_at(3, KI_RNG_AUGMENT, 2, 9), r2 = r1;
    const ki_draw with = ki_transform_draw(&one, 256, 256, &r1),
                  without = ki_transform_draw(&none, 256, 256, &r2);
    assert_int_equal(with.window.x, without.window.x);
    assert_int_equal(with.window.y, without.window.y);
    assert_int_equal(with.mirror, without.mirror);
    source_view(&a);
    source_view(&b);
    ki_effects_apply(&one, &with.effects, &a);
    ki_effects_apply(&other, &with.effects, &b);
    for (int c = 0; c < 3; c++) assert_memory_equal(a.plane[c], b.plane[c], 48 * 48);
    source_view(&b);
    assert_memory_not_equal(a.plane[0], b.plane[0], 48 * 48);
    ki_view_release(&a);
    ki_view_release(&b);
}

/* How often, how much: the rectangles of erase over many draws. */
static void test_erased_share(void **state) {
    (void)state;
    enum { N = 4000 };
    kith_error err = {0};
    const kith_transform t =
        input("{crop: 64, effects: [{name: erase, p: 0.25, fill: colour, value: [1, 2, 3]}]}");
    ki_effect_view v = {0};
    int n_erased = 0;
    double share = 0;
    for (uint32_t i = 0; i < N; i++) {
        const ki_rng rng = ki_rng_at(5, KI_RNG_EFFECT, 0, i);
        int n = 0;
        assert_ok(ki_view_shape(&v, &t, &err), &err);
        for (int c = 0; c < 3; c++) memset(v.plane[c], 200, 64 * 64);
        ki_effects_apply(&t, &rng, &v);
        for (int k = 0; k < 64 * 64; k++) {
            assert_true(v.plane[0][k] == 200 ||
                        (v.plane[0][k] == 1 && v.plane[1][k] == 2 && v.plane[2][k] == 3));
            n += v.plane[2][k] == 3;
        }
        n_erased += n > 0;
        share += n / (64.0 * 64);
        assert_true(n <= 0.34 * 64 * 64);
    }
    assert_float_equal((float)n_erased / N, 0.25, 0.03);
    assert_float_equal((float)share / (float)n_erased, 0.175, 0.01); /* the mean of U(0.02, 0.33) */
    ki_view_release(&v);
}

/* The mean of a model in BGR order is the colour that is erased with; floats and bytes are of the same view. */
static void test_floats_and_bytes(void **state) {
    (void)state;
    kith_error err = {0};
    kith_transform t = input(
        "{resize: none, crop: 32, augment: none, mirror: false, effects: [{name: erase, p: 1, scale: "
        "[0.3, 0.3]}, {name: jitter, p: 1}]}");
    ki_image base = {0};
    ki_transform_scratch scratch = {0};
    float item[3 * 32 * 32];
    uint8_t bytes[3 * 32 * 32];
    t.bgr = true;
    t.pixel_scale = 1;
    t.mean[0] = 104, t.mean[1] = 117, t.mean[2] = 123;
    assert_ok(ki_image_shape(&base, 32, 32, 1, &err), &err);
    for (int i = 0; i < 32 * 32; i++) base.data[i] = (uint8_t)(i / 4);
    ki_rng rng = ki_rng_at(3, KI_RNG_AUGMENT, 2, 9);
    const ki_draw draw = ki_transform_draw(&t, 32, 32, &rng);
    assert_ok(ki_transform_float(&t, &base, &draw, &scratch, item, &err), &err);
    assert_ok(ki_transform_bytes(&t, &base, &draw, &scratch, bytes, &err), &err);
    for (int i = 0; i < 32 * 32; i++) {
        for (int c = 0; c < 3; c++)
            assert_int_equal((int)(item[c * 32 * 32 + i] + (float)t.mean[c]), bytes[3 * i + 2 - c]);
    }
    assert_int_equal(scratch.view.mean[0], 123);
    assert_int_equal(scratch.view.mean[2], 104);
    assert_int_equal(ki_transform_window_side(&t), 0); /* a device cannot make effects */
    assert_true(ki_transform_is_random(&t));
    ki_image_release(&base);
    ki_transform_scratch_release(&scratch);
}

static void test_bad_lists(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"{effects: jitter}", "input: effects is"},
        {"{effects: [jiter]}", "unknown effect 'jiter'"},
        {"{effects: [{p: 1}]}", "input.effects.0"},
        {"{effects: [grey, {name: jitter, p: 2}]}", "input.effects.1 (jitter)"},
        {"{effects: [{name: jitter, hues: 1}]}", "hues"},
        {"{effects: [{name: blur, kernel: 4}]}", "kernel is 4; wanted an odd number"},
        {"{crop: 8, effects: [{name: blur, kernel: 17}]}", "a kernel of 17 taps"},
        {"{effects: [{name: blur, sigma: [2, 1]}]}", "sigma is 2 … 1"},
        {"{effects: [{name: blur, sigma: [.nan, 1]}]}", "sigma is"},
        {"{effects: [{name: erase, scale: [0, 2]}]}", "scale is 0 … 2"},
        {"{effects: [{name: erase, value: [0, 0, 256]}]}", "value has 256"},
        {"{effects: [grey, grey, grey, grey, grey, grey, grey, grey, grey]}", "9 effects"},
    };
    for (size_t i = 0; i < N_ROWS(bad); i++) {
        kith_error err = {0};
        kith_transform train, test;
        const kith_status status = parse(bad[i].text, &train, &test, &err);
        if ((status != KITH_EINVAL && status != KITH_ENOTFOUND) || !strstr(err.message, bad[i].message))
            fail_msg("%s: status %d, %s", bad[i].text, status, err.message);
    }
    kith_transform t = input("{effects: [grey]}");
    kith_error err;
    t.effect[0].kind = 99;
    assert_int_equal(kith_transform_check(&t, &err), KITH_EINVAL);
    t.n_effects = KITH_MOST_EFFECTS + 1;
    assert_int_equal(kith_transform_check(&t, &err), KITH_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_torchvision), cmocka_unit_test(test_a_factor_of_one_changes_nothing),
        cmocka_unit_test(test_any_size),       cmocka_unit_test(test_streams),
        cmocka_unit_test(test_erased_share),   cmocka_unit_test(test_floats_and_bytes),
        cmocka_unit_test(test_bad_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
