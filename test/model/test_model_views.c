/* Several views of every image: what they are, and the mean of their vectors, on every way that leads to a model. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "data/image/image.h"
#include "data/transform/transform.h"
#include "embed/views.h"
#include "kith/model.h"
#include "support/testing.h"

enum { SIZE = 20, W = 34, H = 26, DIM = 6 };

static const kith_model_options small = {
    .size = sizeof(kith_model_options),
    .backbone = "convnet4",
    .settings = "width=8",
    .channels = 3,
    .height = SIZE,
    .width = SIZE,
    .embedding = DIM,
    .resize = "shorter26", /* as large as it is: views are windows of its pixels */
    .seed = 3};

static uint8_t pixels[W * H * 3 + KI_IMAGE_SLACK];
static char path[4096];

static void make_picture(void) {
    kith_error err = {0};
    ki_rng rng = ki_rng_at(1, KI_RNG_TEST, 0, 0);
    ki_bytes png = {0};
    for (int i = 0; i < W * H * 3; i++) pixels[i] = (uint8_t)ki_rng_below(&rng, 256);
    const ki_image image = {.w = W, .h = H, .full_w = W, .full_h = H, .channels = 3, .data = pixels};
    assert_ok(ki_png_encode(&image, &png, &err), &err);
    snprintf(path, sizeof path, "%s/a.png", testing_folder());
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(png.data, 1, png.n, file), png.n);
    assert_int_equal(fclose(file), 0);
    ki_bytes_release(&png);
}

static kith_model *open_views(int64_t n) {
    kith_error err = {0};
    kith_model_options options = small;
    kith_model *model = NULL;
    options.views = n;
    assert_ok(kith_model_open(&options, &model, &err), &err);
    return model;
}

/* The window at x, y of the picture, maybe mirrored. */
static void cut(int x0, int y0, bool mirror, uint8_t *to) {
    for (int y = 0; y < SIZE; y++) {
        for (int x = 0; x < SIZE; x++)
            memcpy(to + 3 * (y * SIZE + x), pixels + 3 * ((y0 + y) * W + x0 + (mirror ? SIZE - 1 - x : x)),
                   3);
    }
}

/* The mean of the windows' vectors, each cut out here and embedded as a picture of its own. */
static void wanted_vector(kith_model *one, int n_views, float *ret) {
    static const struct {
        int x, y;
        bool mirror;
    } windows[KI_N_TEST_VIEWS] = {{7, 3, false}, {7, 3, true}, {0, 0, false}, {14, 6, false}, {14, 0, false},
                                  {0, 6, false}, {0, 0, true}, {14, 6, true}, {14, 0, true},  {0, 6, true}};
    double sum[DIM] = {0}, square = 0;
    kith_error err = {0};
    KITH_OPTIONS(kith_embed_options, how);
    how.resize = "none";
    for (int v = 0; v < n_views; v++) {
        static uint8_t window[SIZE * SIZE * 3 + KI_IMAGE_SLACK];
        float x[DIM];
        double length = 0;
        cut(windows[v].x, windows[v].y, windows[v].mirror, window);
        const kith_pixels image = {SIZE, SIZE, 3, window};
        assert_ok(kith_model_embed_pixels(one, &image, 1, &how, x, &err), &err);
        for (int k = 0; k < DIM; k++) length += (double)x[k] * (double)x[k];
        for (int k = 0; k < DIM; k++) sum[k] += (double)x[k] / sqrt(length);
    }
    for (int k = 0; k < DIM; k++) square += sum[k] * sum[k];
    for (int k = 0; k < DIM; k++) ret[k] = (float)(sum[k] / sqrt(square));
}

static void assert_near(const char *what, int n_views, const float *found, const float *wanted) {
    const double distance = testing_relative_l2(found, wanted, DIM);
    if (!(distance < 1e-5)) fail_msg("%s, %d views: %g from what is wanted", what, n_views, distance);
}

static void test_mean_of_views(void **state) {
    (void)state;
    make_picture();
    kith_model *one = open_views(0);
    const char *const paths[] = {path, path, path};
    float before[DIM] = {0};
    for (int n = 2; n <= KI_N_TEST_VIEWS; n++) {
        float wanted[DIM], files[3 * DIM], decoded[DIM];
        kith_error err = {0};
        kith_model *model = open_views(n);
        const kith_pixels image = {W, H, 3, pixels};
        wanted_vector(one, n, wanted);
        assert_ok(kith_model_embed_files(model, paths, 3, NULL, files, NULL, &err), &err);
        assert_near("the first file", n, files, wanted);
        assert_near("the last file", n, files + 2 * DIM, wanted);
        assert_ok(kith_model_embed_pixels(model, &image, 1, NULL, decoded, &err), &err);
        assert_near("pixels", n, decoded, wanted);
        assert_true(testing_relative_l2(wanted, before, DIM) > 1e-4); /* every view counts */
        memcpy(before, wanted, sizeof before);
        kith_model_free(model);
    }
    kith_model_free(one);
}

/* Where there is no room beside the crop, its corners are the middle; where an image is smaller, it stays in the middle. */
static void test_small_images(void **state) {
    (void)state;
    KITH_OPTIONS(kith_transform, t);
    t.crop_to = 20;
    ki_rng rng = ki_rng_at(0, KI_RNG_TEST, 0, 0);
    for (int view = 0; view < KI_N_TEST_VIEWS; view++) {
        t.crop = KITH_CROP_CENTRE;
        const ki_draw plain = ki_transform_draw(&t, 30, 16, &rng);
        ki_draw draw = plain;
        ki_draw_test_view(&t, view, &draw);
        assert_int_equal(draw.window.y, plain.window.y);
        assert_int_equal(draw.y, 2);
        assert_true(draw.window.x == 5 || draw.window.x == 0 || draw.window.x == 10);
        assert_int_equal(draw.window.x == 5, view < 2);
    }
}

static void test_refused(void **state) {
    (void)state;
    make_picture();
    kith_error err = {0};
    kith_model_options options = small;
    kith_model *model = NULL;
    float values[4096];
    const char *const paths[] = {path};
    options.views = 11;
    assert_int_equal(kith_model_open(&options, &model, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "11 views of an image; wanted 1 to 10"));
    model = open_views(3);
    KITH_OPTIONS(kith_embed_options, how);
    how.tap = "map";
    assert_int_equal(kith_model_embed_files(model, paths, 1, &how, values, NULL, &err), KITH_EUNSUPPORTED);
    how.tap = NULL;
    how.resize = "none";
    assert_int_equal(kith_model_embed_files(model, paths, 1, &how, values, NULL, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "3 views of images that are not resized"));
    static const struct {
        const char *resize;
        int side;
        bool has_corners;
    } rows[] = {{"squash", SIZE, false},    {"pad", SIZE, false},    {"pad", SIZE - 4, false},
                {"squash", SIZE + 4, true}, {"pad", SIZE + 4, true}, {"shorter", SIZE, true}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char resize[32];
        snprintf(resize, sizeof resize, "%s%d", rows[i].resize, rows[i].side);
        how.resize = resize;
        const kith_status found = kith_model_embed_files(model, paths, 1, &how, values, NULL, &err);
        if (found != (rows[i].has_corners ? KITH_OK : KITH_EINVAL) ||
            (found != KITH_OK && !strstr(err.message, "have no corners")))
            fail_msg("%s: status %d, %s", resize, (int)found, err.message);
    }
    /* An image that cannot be read says so, and the others have their vectors. */
    char bad[4096];
    snprintf(bad, sizeof bad, "%s/bad.png", testing_folder());
    testing_write(bad, "no image");
    const char *const both[] = {bad, path};
    kith_status status[2];
    assert_ok(kith_model_embed_files(model, both, 2, NULL, values, status, &err), &err);
    assert_int_equal(status[0], KITH_EUNSUPPORTED);
    assert_int_equal(status[1], KITH_OK);
    double square = 0;
    for (int k = 0; k < DIM; k++) square += (double)values[DIM + k] * (double)values[DIM + k];
    assert_true(fabs(square - 1) < 1e-5);
    kith_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean_of_views),
        cmocka_unit_test(test_small_images),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("model/views", tests, NULL, testing_tear_down);
}
