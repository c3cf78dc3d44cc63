/* Transforms: resizing as Pillow does, crops, boxes, statistics. */
#include "data/transform/transform.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/input.h"
#include "io/yaml.h"
#include "kith/array.h"
#include "support/testing.h"

static kith_array golden(const char *name) {
    char path[4096];
    kith_array array = {0};
    kith_error err = {0};
    snprintf(path, sizeof path, "%s/test/golden/data/resize/%s.npy", KITH_SOURCE_DIR, name);
    assert_ok(kith_npy_read(path, &array, &err), &err);
    return array;
}

static void source_image(int channels, ki_image *image) {
    kith_array a = golden("source");
    kith_error err = {0};
    assert_ok(ki_image_shape(image, a.dim[1], a.dim[0], channels, &err), &err);
    const uint8_t *src = a.data;
    const int64_t n = a.dim[0] * a.dim[1];
    for (int64_t i = 0; i < n; i++) {
        if (channels == 3)
            memcpy(image->data + 3 * i, src + 3 * i, 3);
        else
            image->data[i] = src[3 * i + 2];
    }
    kith_array_release(&a);
}

static void test_resize_as_pillow(void **state) {
    (void)state;
    static const int sizes[][2] = {{32, 32}, {59, 20}, {24, 41}, {80, 64}, {7, 5}};
    static const char *const filters[] = {"bilinear", "bicubic", "lanczos"};
    ki_resampler r = {0};
    ki_image src = {0}, dst = {0};
    kith_error err = {0};
    for (int channels = 1; channels <= 3; channels += 2) {
        source_image(channels, &src);
        for (int f = 0; f < (int)N_ROWS(filters); f++) {
            for (size_t i = 0; i < N_ROWS(sizes); i++) {
                const int w = sizes[i][0], h = sizes[i][1];
                char name[64];
                snprintf(name, sizeof name, "%s_%s_%dx%d", channels == 3 ? "rgb" : "grey", filters[f], w, h);
                kith_array want = golden(name);
                assert_ok(ki_resample(&r, &src, (ki_rect){0, 0, src.w, src.h}, w, h, (ki_rect){0, 0, w, h},
                                      (kith_filter)f, &dst, &err),
                          &err);
                double sum = 0;
                int most = 0;
                for (int64_t k = 0; k < kith_array_count(&want); k++) {
                    const int d = abs(dst.data[k] - ((uint8_t *)want.data)[k]);
                    sum += d;
                    if (d > most) most = d;
                }
                const double mean = sum / (double)kith_array_count(&want);
                if (mean > 0.1 || most > 1) fail_msg("%s: mean difference %g, largest %d", name, mean, most);
                kith_array_release(&want);
            }
        }
    }
    ki_image_release(&src);
    ki_image_release(&dst);
    ki_resampler_release(&r);
}

/* A window of the result is the same bytes as that window cut out of the whole. */
static void test_windows(void **state) {
    (void)state;
    ki_resampler r = {0};
    ki_image src = {0}, whole = {0}, part = {0};
    kith_error err = {0};
    for (int channels = 1; channels <= 3; channels += 2) {
        source_image(channels, &src);
        ki_rng rng = ki_rng_at(3, KI_RNG_TEST, 0, 0);
        for (int round = 0; round < 300; round++) {
            const ki_rect from = {(int32_t)ki_rng_below(&rng, 20), (int32_t)ki_rng_below(&rng, 20),
                                  1 + (int32_t)ki_rng_below(&rng, 39), 1 + (int32_t)ki_rng_below(&rng, 21)};
            const int32_t w = round % 7 ? 1 + (int32_t)ki_rng_below(&rng, 70) : from.w;
            const int32_t h = round % 5 ? 1 + (int32_t)ki_rng_below(&rng, 70) : from.h;
            const int32_t x = (int32_t)ki_rng_below(&rng, (uint32_t)w),
                          y = (int32_t)ki_rng_below(&rng, (uint32_t)h);
            const ki_rect window = {x, y, 1 + (int32_t)ki_rng_below(&rng, (uint32_t)(w - x)),
                                    1 + (int32_t)ki_rng_below(&rng, (uint32_t)(h - y))};
            const kith_filter f = (kith_filter)(round % 3);
            assert_ok(ki_resample(&r, &src, from, w, h, (ki_rect){0, 0, w, h}, f, &whole, &err), &err);
            assert_ok(ki_resample(&r, &src, from, w, h, window, f, &part, &err), &err);
            const size_t row = (size_t)window.w * (size_t)channels;
            for (int32_t i = 0; i < window.h; i++)
                assert_memory_equal(
                    part.data + (size_t)i * row,
                    whole.data + ((size_t)(window.y + i) * (size_t)w + (size_t)window.x) * (size_t)channels,
                    row);
        }
    }
    ki_image_release(&src);
    ki_image_release(&whole);
    ki_image_release(&part);
    ki_resampler_release(&r);
}

static void test_flat_stays_flat(void **state) {
    (void)state;
    ki_resampler r = {0};
    ki_image src = {0}, dst = {0};
    kith_error err = {0};
    assert_ok(ki_image_shape(&src, 900, 700, 3, &err), &err);
    memset(src.data, 201, 900 * 700 * 3);
    static const int sizes[][2] = {{3, 2}, {899, 701}, {256, 256}, {1, 1}, {2000, 10}};
    for (size_t i = 0; i < N_ROWS(sizes); i++) {
        for (int f = 0; f < 3; f++) {
            const ki_rect all = {0, 0, sizes[i][0], sizes[i][1]};
            assert_ok(ki_resample(&r, &src, (ki_rect){0, 0, 900, 700}, all.w, all.h, all, (kith_filter)f,
                                  &dst, &err),
                      &err);
            for (int k = 0; k < all.w * all.h * 3; k++) assert_int_equal(dst.data[k], 201);
        }
    }
    ki_image_release(&src);
    ki_image_release(&dst);
    ki_resampler_release(&r);
}

/* An image whose pixel (x, y) is (x, y, x + y). */
static void coordinates(ki_image *image, int32_t w, int32_t h) {
    kith_error err = {0};
    assert_ok(ki_image_shape(image, w, h, 3, &err), &err);
    for (int32_t i = 0; i < w * h; i++) {
        image->data[3 * i] = (uint8_t)(i % w);
        image->data[3 * i + 1] = (uint8_t)(i / w);
        image->data[3 * i + 2] = (uint8_t)(i % w + i / w);
    }
}

static void test_base_sizes(void **state) {
    (void)state;
    static const struct {
        kith_resize resize;
        int to;
        int32_t w, h, want_w, want_h;
    } rows[] = {
        {KITH_RESIZE_NONE, 0, 50, 31, 50, 31},     {KITH_RESIZE_SQUASH, 20, 50, 31, 20, 20},
        {KITH_RESIZE_SHORTER, 20, 50, 31, 32, 20}, {KITH_RESIZE_SHORTER, 20, 31, 50, 20, 32},
        {KITH_RESIZE_AT_MOST, 20, 50, 31, 32, 20}, {KITH_RESIZE_AT_MOST, 40, 50, 31, 50, 31},
        {KITH_RESIZE_SHORTER, 40, 50, 31, 64, 40}, {KITH_RESIZE_SHORTER, 31, 50, 31, 50, 31},
        {KITH_RESIZE_PAD, 20, 50, 31, 20, 20},     {KITH_RESIZE_PAD, 64, 31, 50, 64, 64},
    };
    ki_transform_scratch scratch = {0};
    ki_image src = {0}, base = {0};
    kith_error err = {0};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        KITH_OPTIONS(kith_transform, t);
        t.resize = rows[i].resize;
        t.resize_to = rows[i].to;
        coordinates(&src, rows[i].w, rows[i].h);
        assert_ok(ki_transform_base(&t, NULL, &src, &scratch, &base, &err), &err);
        assert_int_equal(base.w, rows[i].want_w);
        assert_int_equal(base.h, rows[i].want_h);
    }
    ki_image_release(&src);
    ki_image_release(&base);
    ki_transform_scratch_release(&scratch);
}

/* What lies where in a padded base: the ground above and below a lying image, left and right of a standing one. */
static void test_padding(void **state) {
    (void)state;
    ki_transform_scratch scratch = {0};
    ki_image src = {0}, base = {0};
    kith_error err = {0};
    KITH_OPTIONS(kith_transform, t);
    t.resize = KITH_RESIZE_PAD;
    t.resize_to = 40;
    memcpy(t.background, (uint8_t[]){250, 251, 252}, 3);
    for (int tall = 0; tall < 2; tall++) {
        for (int channels = 1; channels <= 3; channels += 2) {
            const int32_t w = tall ? 30 : 80, h = tall ? 80 : 30;
            assert_ok(ki_image_shape(&src, w, h, channels, &err), &err);
            memset(src.data, 7, (size_t)(w * h * channels));
            assert_ok(ki_transform_base(&t, NULL, &src, &scratch, &base, &err), &err);
            assert_int_equal(base.w, 40);
            assert_int_equal(base.h, 40);
            assert_int_equal(base.channels, 3); /* a grey image, too: the ground has a colour */
            for (int y = 0; y < 40; y++) {
                for (int x = 0; x < 40; x++) {
                    const int across = tall ? x : y; /* 15 of 40 are the image: 12 to 26 */
                    const bool is_image = across >= 12 && across < 27;
                    for (int c = 0; c < 3; c++)
                        assert_int_equal(base.data[3 * (40 * y + x) + c], is_image ? 7 : 250 + c);
                }
            }
        }
    }
    /* On a grey ground a grey image stays grey. */
    memset(t.background, 255, 3);
    assert_ok(ki_image_shape(&src, 10, 5, 1, &err), &err);
    memset(src.data, 9, 50);
    assert_ok(ki_transform_base(&t, NULL, &src, &scratch, &base, &err), &err);
    assert_int_equal(base.channels, 1);
    assert_int_equal(base.data[0], 255);
    assert_int_equal(base.data[40 * 20 + 20], 9);
    /* A device may cut windows out of it. */
    t.crop = KITH_CROP_RANDOM;
    t.crop_to = 32;
    assert_int_equal(ki_transform_window_side(&t), 40);
    ki_image_release(&src);
    ki_image_release(&base);
    ki_transform_scratch_release(&scratch);
}

static void test_boxes(void **state) {
    (void)state;
    ki_transform_scratch scratch = {0};
    ki_image src = {0}, base = {0};
    kith_error err = {0};
    KITH_OPTIONS(kith_transform, t);
    t.resize = KITH_RESIZE_NONE;
    t.use_box = true;
    coordinates(&src, 50, 30);
    assert_ok(ki_transform_base(&t, (double[]){10, 5, 20, 8}, &src, &scratch, &base, &err), &err);
    assert_int_equal(base.w, 20);
    assert_int_equal(base.h, 8);
    assert_int_equal(base.data[0], 10);
    assert_int_equal(base.data[1], 5);
    assert_ok(ki_transform_base(&t, (double[]){40, 20, 500, 500}, &src, &scratch, &base, &err), &err);
    assert_int_equal(base.w, 10);
    assert_int_equal(base.h, 10);
    assert_int_equal(ki_transform_base(&t, (double[]){60, 5, 20, 8}, &src, &scratch, &base, &err),
                     KITH_EINVAL);
    assert_string_equal(err.message, "the box 60,5 20x8 lies outside the image of 50x30 pixels");
    assert_int_equal(ki_transform_base(&t, (double[]){NAN, 5, 20, 8}, &src, &scratch, &base, &err),
                     KITH_EINVAL);
    ki_image_release(&src);
    ki_image_release(&base);
    ki_transform_scratch_release(&scratch);
}

/* Centre crop of 4 out of 10 x 8, both directions of mirroring and both channel orders, by hand. */
static void test_float_items(void **state) {
    (void)state;
    ki_transform_scratch scratch = {0};
    ki_image base = {0};
    kith_error err = {0};
    float item[3 * 16];
    coordinates(&base, 10, 8);
    for (int round = 0; round < 4; round++) {
        KITH_OPTIONS(kith_transform, t);
        t.crop_to = 4;
        t.bgr = round & 1;
        t.pixel_scale = 2;
        for (int c = 0; c < 3; c++) t.mean[c] = 10 + c, t.std[c] = 4;
        ki_rng rng = ki_rng_at(1, KI_RNG_TEST, 0, 0);
        ki_draw draw = ki_transform_draw(&t, base.w, base.h, &rng);
        draw.mirror = round >> 1;
        assert_ok(ki_transform_float(&t, &base, &draw, &scratch, item, &err), &err);
        for (int y = 0; y < 4; y++) {
            for (int x = 0; x < 4; x++) {
                const int px = 3 + (draw.mirror ? 3 - x : x), py = 2 + y;
                const int value[3] = {px, py, px + py};
                for (int c = 0; c < 3; c++) {
                    const double want = (value[t.bgr ? 2 - c : c] * 2.0 - t.mean[c]) / 4;
                    if (fabs((double)item[16 * c + 4 * y + x] - want) > 1e-6)
                        fail_msg("round %d channel %d (%d, %d): %g, wanted %g", round, c, x, y,
                                 (double)item[16 * c + 4 * y + x], want);
                }
            }
        }
        uint8_t bytes[3 * 16];
        assert_ok(ki_transform_bytes(&t, &base, &draw, &scratch, bytes, &err), &err);
        for (int i = 0; i < 16; i++) {
            const int px = 3 + (draw.mirror ? 3 - i % 4 : i % 4), py = 2 + i / 4;
            assert_int_equal(bytes[3 * i], px);
            assert_int_equal(bytes[3 * i + 1], py);
            assert_int_equal(bytes[3 * i + 2], px + py);
        }
    }
    ki_image_release(&base);
    ki_transform_scratch_release(&scratch);
}

static void make_item(const kith_transform *t, const ki_image *from, float *item) {
    ki_transform_scratch scratch = {0};
    ki_image copy = {0}, base = {0};
    kith_error err = {0};
    ki_rng rng = ki_rng_at(1, KI_RNG_TEST, 0, 0);
    assert_ok(ki_image_shape(&copy, from->w, from->h, from->channels, &err), &err);
    memcpy(copy.data, from->data, (size_t)from->w * (size_t)from->h * (size_t)from->channels);
    assert_ok(ki_transform_base(t, NULL, &copy, &scratch, &base, &err), &err);
    const ki_draw draw = ki_transform_draw(t, base.w, base.h, &rng);
    assert_ok(ki_transform_float(t, &base, &draw, &scratch, item, &err), &err);
    ki_image_release(&copy);
    ki_image_release(&base);
    ki_transform_scratch_release(&scratch);
}

/* What is sent in place of a large part gives the same bits, and is never larger. */
static void test_shrunk_parts_give_the_same_item(void **state) {
    (void)state;
    static const kith_resize resizes[] = {KITH_RESIZE_NONE, KITH_RESIZE_SQUASH, KITH_RESIZE_SHORTER,
                                          KITH_RESIZE_AT_MOST, KITH_RESIZE_PAD};
    static const kith_filter filters[] = {KITH_FILTER_BILINEAR, KITH_FILTER_BICUBIC};
    static const ki_rect parts[] = {
        {0, 0, 301, 203}, {17, 5, 120, 190}, {0, 100, 301, 9}, {3, 0, 7, 203}, {30, 30, 20, 20}};
    enum { CROP = 32 };
    ki_image src = {0};
    kith_error err = {0};
    int n_smaller = 0;
    for (int channels = 1; channels <= 3; channels += 2) {
        assert_ok(ki_image_shape(&src, 301, 203, channels, &err), &err);
        ki_rng rng = ki_rng_at(5, KI_RNG_TEST, 0, 0);
        for (int i = 0; i < 301 * 203 * channels; i++) src.data[i] = (uint8_t)ki_rng_u32(&rng);
        for (size_t i = 0; i < N_ROWS(resizes) * N_ROWS(filters) * N_ROWS(parts); i++) {
            KITH_OPTIONS(kith_transform, t);
            t.resize = resizes[i % N_ROWS(resizes)];
            t.filter = filters[i / N_ROWS(resizes) % N_ROWS(filters)];
            t.resize_to = 40;
            t.crop_to = CROP;
            t.background[1] = 77;
            const ki_rect from = parts[i / N_ROWS(resizes) / N_ROWS(filters)];
            const double box[4] = {from.x, from.y, from.w, from.h};
            ki_image part = {0}, small = {0};
            ki_transform_scratch scratch = {0};
            ki_rect shown = {0};
            float wanted[3 * CROP * CROP], found[3 * CROP * CROP];
            assert_ok(ki_image_cut(&src, box, &part, NULL, &err), &err);
            assert_ok(ki_transform_shrink(&t, &src, from, &scratch, &small, &shown, &err), &err);
            if (small.w * small.h > from.w * from.h)
                fail_msg("case %zu: %d x %d of %d x %d", i, small.w, small.h, from.w, from.h);
            n_smaller += small.w * small.h < from.w * from.h;
            if (t.resize != KITH_RESIZE_NONE) assert_memory_equal(&shown, &from, sizeof from);
            make_item(&t, &part, wanted);
            make_item(&t, &small, found);
            if (memcmp(wanted, found, sizeof wanted) != 0) fail_msg("case %zu: another item", i);
            /* And so does the part itself, without the base between them. */
            if (t.resize != KITH_RESIZE_PAD) {
                const ki_draw draw = ki_transform_draw_image(&t, part.w, part.h);
                assert_ok(ki_transform_float(&t, &part, &draw, &scratch, found, &err), &err);
                if (memcmp(wanted, found, sizeof wanted) != 0) fail_msg("case %zu: another item, drawn", i);
            }
            ki_image_release(&part);
            ki_image_release(&small);
            ki_transform_scratch_release(&scratch);
        }
    }
    assert_int_equal(n_smaller, 60);
    ki_image_release(&src);
}

static void test_small_images_are_centred(void **state) {
    (void)state;
    ki_transform_scratch scratch = {0};
    ki_image base = {0};
    kith_error err = {0};
    uint8_t bytes[3 * 81];
    coordinates(&base, 4, 12);
    KITH_OPTIONS(kith_transform, t);
    t.crop_to = 9;
    t.background[0] = 200;
    ki_rng rng = ki_rng_at(1, KI_RNG_TEST, 0, 0);
    const ki_draw draw = ki_transform_draw(&t, base.w, base.h, &rng);
    assert_ok(ki_transform_bytes(&t, &base, &draw, &scratch, bytes, &err), &err);
    for (int i = 0; i < 81; i++) {
        const int x = i % 9 - 2, y = i / 9 + 1;
        const bool inside = x >= 0 && x < 4;
        assert_int_equal(bytes[3 * i], inside ? x : 200);
        assert_int_equal(bytes[3 * i + 1], inside ? y : 0);
    }
    ki_image_release(&base);
    ki_transform_scratch_release(&scratch);
}

static void test_grey_and_colour(void **state) {
    (void)state;
    ki_transform_scratch scratch = {0};
    ki_image base = {0};
    kith_error err = {0};
    KITH_OPTIONS(kith_transform, t);
    t.crop_to = 2;
    t.pixel_scale = 1;
    float item[12];
    assert_ok(ki_image_shape(&base, 2, 2, 1, &err), &err);
    memcpy(base.data, (uint8_t[]){10, 20, 30, 40}, 4);
    ki_rng rng = ki_rng_at(1, KI_RNG_TEST, 0, 0);
    ki_draw draw = ki_transform_draw(&t, 2, 2, &rng);
    assert_ok(ki_transform_float(&t, &base, &draw, &scratch, item, &err), &err);
    for (int i = 0; i < 12; i++) assert_true(item[i] == (float)(10 * (i % 4 + 1)));
    assert_ok(ki_image_shape(&base, 2, 2, 3, &err), &err);
    memcpy(base.data, (uint8_t[]){255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255}, 12);
    t.channels = 1;
    assert_ok(ki_transform_float(&t, &base, &draw, &scratch, item, &err), &err);
    const float want[4] = {76, 150, 29, 255}; /* ITU-R 601 */
    for (int i = 0; i < 4; i++) assert_true(item[i] == want[i]);
    ki_image_release(&base);
    ki_transform_scratch_release(&scratch);
}

/* RandomResizedCrop: parts lie inside, areas and aspects fill their ranges, and their means are those of the
 * definition (area uniform, aspect log-uniform) on an image so large that no try is thrown away. */
static void test_resized_crop_statistics(void **state) {
    (void)state;
    KITH_OPTIONS(kith_transform, t);
    t.crop = KITH_CROP_RESIZED;
    t.scale[0] = 0.16;
    t.scale[1] = 0.5;
    double area = 0, log_ratio = 0, least = 1, most = 0;
    int n_mirrored = 0;
    t.mirror = true;
    enum { N = 20000 };
    for (uint32_t i = 0; i < N; i++) {
        ki_rng rng = ki_rng_at(5, KI_RNG_AUGMENT, 0, i);
        const ki_draw d = ki_transform_draw(&t, 4000, 4000, &rng);
        assert_true(d.from.x >= 0 && d.from.y >= 0 && d.from.w > 0 && d.from.h > 0);
        assert_true(d.from.x + d.from.w <= 4000 && d.from.y + d.from.h <= 4000);
        const double a = (double)d.from.w * d.from.h / 16e6;
        area += a / N;
        least = fmin(least, a);
        most = fmax(most, a);
        log_ratio += log((double)d.from.w / d.from.h) / N;
        n_mirrored += d.mirror;
    }
    assert_true(fabs(area - 0.33) < 0.003 && fabs(log_ratio) < 0.01);
    assert_true(least > 0.159 && least < 0.162 && most > 0.498 && most < 0.501);
    assert_in_range(n_mirrored, N / 2 - 300, N / 2 + 300);
    /* No try fits: the centred fallback keeps the aspect within its range. */
    t.scale[0] = t.scale[1] = 1;
    ki_rng rng = ki_rng_at(5, KI_RNG_AUGMENT, 0, 0);
    const ki_draw d = ki_transform_draw(&t, 1000, 100, &rng);
    assert_int_equal(d.from.w, 133);
    assert_int_equal(d.from.h, 100);
    assert_int_equal(d.from.x, 433);
}

static void test_multiscale(void **state) {
    (void)state;
    KITH_OPTIONS(kith_transform, t);
    t.crop = KITH_CROP_MULTISCALE;
    t.crop_to = 100;
    t.scale[0] = 0.8;
    t.scale[1] = 1.8;
    double mean = 0;
    int n_padded = 0;
    enum { N = 5000 };
    for (uint32_t i = 0; i < N; i++) {
        ki_rng rng = ki_rng_at(5, KI_RNG_AUGMENT, 0, i);
        /* The aspect stays: the longer side is drawn, lying or standing. */
        const ki_draw d = ki_transform_draw(&t, 300, 200, &rng);
        assert_in_range(d.full_w, 80, 180);
        assert_int_equal(d.full_h, (int)rint(d.full_w * (200.0 / 300.0)));
        ki_rng again = ki_rng_at(5, KI_RNG_AUGMENT, 0, i);
        const ki_draw tall = ki_transform_draw(&t, 200, 300, &again);
        assert_int_equal(tall.full_h, d.full_w);
        assert_int_equal(tall.full_w, d.full_h);
        if (d.full_h < 100) {
            assert_int_equal(d.y, (100 - d.full_h) / 2);
            assert_int_equal(d.window.h, d.full_h);
        }
        mean += (double)d.full_w / N;
        if (d.full_w < 100) {
            assert_int_equal(d.x, (100 - d.full_w) / 2);
            assert_int_equal(d.window.w, d.full_w);
            n_padded++;
        } else {
            assert_int_equal(d.x, 0);
            assert_int_equal(d.window.w, 100);
            assert_in_range(d.window.x, 0, d.full_w - 100);
        }
    }
    assert_true(fabs(mean - 130) < 1.5);
    assert_in_range(n_padded, 850, 1150); /* a fifth */
    /* A square stays one, and the thinnest image keeps a pixel. */
    ki_rng rng = ki_rng_at(5, KI_RNG_AUGMENT, 0, 0);
    const ki_draw square = ki_transform_draw(&t, 256, 256, &rng);
    assert_int_equal(square.full_w, square.full_h);
    assert_int_equal(ki_transform_draw(&t, 4000, 1, &rng).full_h, 1);
}

static void test_checks(void **state) {
    (void)state;
    kith_error err = {0};
    KITH_OPTIONS(kith_transform, t);
    assert_ok(kith_transform_check(&t, &err), &err);
    t.crop_to = 0;
    assert_int_equal(kith_transform_check(&t, &err), KITH_EINVAL);
    assert_string_equal(err.message, "crop is 0; wanted 1 … 4096");
    kith_transform_init(&t, sizeof t);
    t.std[1] = 0;
    assert_int_equal(kith_transform_check(&t, &err), KITH_EINVAL);
    kith_transform_init(&t, sizeof t);
    t.crop = KITH_CROP_RESIZED;
    t.scale[0] = 0;
    assert_int_equal(kith_transform_check(&t, &err), KITH_EINVAL);
    t.scale[0] = (double)NAN;
    assert_int_equal(kith_transform_check(&t, &err), KITH_EINVAL);
}

static kith_status parse_input(const char *text, kith_transform *train, kith_transform *test,
                               kith_error *err) {
    ki_arena arena = {0};
    ki_value *root = NULL;
    assert_ok(ki_yaml_parse(text, strlen(text), "recipe", &arena, &root, err), err);
    const kith_status status = ki_input_parse(root, train, test, err);
    ki_arena_release(&arena);
    return status;
}

static void test_input_section(void **state) {
    (void)state;
    kith_error err = {0};
    kith_transform train, test;
    assert_ok(parse_input("{resize: squash256, crop: 227, mirror: true}", &train, &test, &err), &err);
    assert_int_equal(train.resize, KITH_RESIZE_SQUASH);
    assert_int_equal(train.crop, KITH_CROP_RANDOM);
    assert_true(train.mirror);
    assert_int_equal(test.crop, KITH_CROP_CENTRE);
    assert_int_equal(test.resize_to, 256);
    assert_false(test.mirror);
    assert_ok(
        parse_input("{resize: none, augment: resized, scale: [0.16, 1], crop: 224}", &train, &test, &err),
        &err);
    assert_int_equal(train.crop, KITH_CROP_RESIZED);
    assert_true(train.scale[0] == 0.16);
    assert_int_equal(test.resize, KITH_RESIZE_SHORTER);
    assert_int_equal(test.resize_to, 256);
    assert_ok(parse_input("{resize: none, augment: multiscale, crop: 256, test_resize: squash293}", &train,
                          &test, &err),
              &err);
    assert_true(train.scale[0] == 0.8 && train.scale[1] == 1.8);
    assert_int_equal(test.resize, KITH_RESIZE_SQUASH);
    assert_int_equal(test.resize_to, 293);
    assert_int_equal(parse_input("{resize: squish256}", &train, &test, &err), KITH_EINVAL);
    assert_string_equal(err.message, "input: resize is 'squish256'");
    assert_int_equal(parse_input("{croop: 227}", &train, &test, &err), KITH_ENOTFOUND);
    assert_string_equal(err.hint, "did you mean 'crop'?");
    assert_int_equal(parse_input("{scale: 3}", &train, &test, &err), KITH_EINVAL);
}

static void test_tests_may_be_larger(void **state) {
    (void)state;
    kith_error err = {0};
    kith_transform train, test;
    assert_ok(parse_input("{augment: resized, crop: 224, test_crop: 256}", &train, &test, &err), &err);
    assert_int_equal(train.crop_to, 224);
    assert_int_equal(test.crop_to, 256);
    assert_int_equal(test.resize_to, 293);
    assert_int_equal(parse_input("{crop: 227, test_crop: 288}", &train, &test, &err), KITH_EINVAL);
    assert_string_equal(err.message, "input: test_crop is 288, of test images of 256 pixels");
    /* More of the longer side, with background along the shorter one; not more background than picture. */
    assert_ok(parse_input("{crop: 256, test_resize: shorter256, test_crop: 288}", &train, &test, &err), &err);
    assert_int_equal(test.crop_to, 288);
    assert_int_equal(test.resize_to, 256);
    assert_int_equal(parse_input("{crop: 256, test_resize: shorter256, test_crop: 513}", &train, &test, &err),
                     KITH_EINVAL);
    assert_int_equal(parse_input("{crop: 256, test_resize: pad256, test_crop: 288}", &train, &test, &err),
                     KITH_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resize_as_pillow),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_flat_stays_flat),
        cmocka_unit_test(test_base_sizes),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_boxes),
        cmocka_unit_test(test_float_items),
        cmocka_unit_test(test_shrunk_parts_give_the_same_item),
        cmocka_unit_test(test_small_images_are_centred),
        cmocka_unit_test(test_grey_and_colour),
        cmocka_unit_test(test_resized_crop_statistics),
        cmocka_unit_test(test_multiscale),
        cmocka_unit_test(test_checks),
        cmocka_unit_test(test_input_section),
        cmocka_unit_test(test_tests_may_be_larger),
    };
    return cmocka_run_group_tests_name("data/transform", tests, NULL, NULL);
}
