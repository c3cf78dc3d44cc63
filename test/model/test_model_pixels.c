/* Decoded pictures to vectors, in any number, and several vectors to one query. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/image/image.h"
#include "kith/log.h"
#include "kith/model.h"
#include "support/testing.h"

enum { N = 23, W = 50, H = 40, DIM = 8 };

static uint8_t pixels[N][W * H * 3];
static kith_pixels picture[N];
static kith_model *model;

static int set_up(void **state) {
    (void)state;
    kith_error err;
    kith_model *made = NULL;
    char path[1024];
    snprintf(path, sizeof path, "%s/m.safetensors", testing_folder());
    KITH_OPTIONS(kith_model_options, how);
    how.backbone = "convnet4";
    how.embedding = DIM;
    how.seed = 5;
    assert_ok(kith_model_open(&how, &made, &err), &err);
    assert_ok(kith_model_save(made, path, &err), &err);
    kith_model_free(made);
    KITH_OPTIONS(kith_model_options, options);
    options.weights = path;
    assert_ok(kith_model_open(&options, &model, &err), &err);
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < W * H * 3; j++) pixels[i][j] = (uint8_t)((j * (i + 3) + j / (7 + i)) % 251);
        picture[i] = (kith_pixels){W, H, 3, pixels[i]};
    }
    return 0;
}

static int tear_down(void **state) {
    kith_model_free(model);
    return testing_tear_down(state);
}

/* Twenty-three are a group of sixteen, one of four and three of one: each has the vector that it has alone. */
static void test_any_number(void **state) {
    (void)state;
    kith_error err;
    float all[N * DIM], one[DIM];
    assert_ok(kith_model_embed_pixels(model, picture, N, NULL, all, &err), &err);
    for (int i = 0; i < N; i++) {
        assert_ok(kith_model_embed_pixels(model, &picture[i], 1, NULL, one, &err), &err);
        const double error = testing_relative_l2(all + i * DIM, one, DIM);
        if (!(error < 1e-5)) fail_msg("picture %d differs by %g", i, error);
    }
    if (!(testing_relative_l2(all, all + DIM, DIM) > 1e-3)) fail_msg("all pictures have one vector");
    assert_ok(kith_model_embed_pixels(model, picture, 0, NULL, all, &err), &err);
}

/* A file of the same pixels is the same query, to the bit. */
static void test_as_a_file(void **state) {
    (void)state;
    kith_error err;
    ki_bytes png = {0};
    const ki_image image = {.w = W, .h = H, .channels = 3, .data = pixels[0]};
    float file[DIM], decoded[DIM];
    assert_ok(ki_png_encode(&image, &png, &err), &err);
    const kith_query_image query = {.bytes = png.data, .n_bytes = png.n, .weight = 1};
    assert_ok(kith_model_query(model, &query, 1, NULL, file, &err), &err);
    assert_ok(kith_model_embed_pixels(model, &picture[0], 1, NULL, decoded, &err), &err);
    assert_memory_equal(file, decoded, sizeof file);
    ki_bytes_release(&png);
}

/* A large file that is named often: only what the network takes of it is kept. */
static void test_a_file_named_often(void **state) {
    (void)state;
    enum { SIDE = 2000, N_TIMES = 8, WHOLE = 3 * SIDE * SIDE };
    kith_error err;
    ki_bytes png = {0};
    ki_image image = {0};
    float once[DIM], often[DIM];
    kith_memory_stats before, after;
    kith_query_image query[N_TIMES];
    KITH_OPTIONS(kith_query_options, options);
    options.flips = true;
    assert_ok(ki_image_shape(&image, SIDE, SIDE, 3, &err), &err);
    for (int i = 0; i < WHOLE; i++) image.data[i] = (uint8_t)(i / 3 % SIDE * 255 / SIDE);
    assert_ok(ki_png_encode(&image, &png, &err), &err);
    ki_image_release(&image);
    for (int i = 0; i < N_TIMES; i++)
        query[i] = (kith_query_image){.bytes = png.data,
                                      .n_bytes = png.n,
                                      .weight = 1,
                                      .has_box = true,
                                      .box = {1, 2, SIDE - 3, SIDE - 5}};
    assert_ok(kith_model_query(model, query, 1, &options, once, &err), &err);
    kith_memory_stats_get(&before);
    assert_ok(kith_model_query(model, query, N_TIMES, &options, often, &err), &err);
    kith_memory_stats_get(&after);
    if (after.peak_bytes - before.live_bytes > 4 * (uint64_t)WHOLE)
        fail_msg("%llu bytes at most, %llu before", (unsigned long long)after.peak_bytes,
                 (unsigned long long)before.live_bytes);
    /* The sum of eight is eight times as long. */
    for (int i = 0; i < DIM; i++) once[i] *= N_TIMES;
    const double error = testing_relative_l2(often, once, DIM);
    if (!(error < 1e-5)) fail_msg("differs by %g", error);
    ki_bytes_release(&png);
}

/* A narrow picture, resized by its shorter side, is not made thousands of times as large on the way. */
static void test_a_narrow_picture(void **state) {
    (void)state;
    enum { LONG = 60000, MOST = 8 << 20 };
    kith_error err;
    kith_model *narrow = NULL;
    static uint8_t line[3 * LONG];
    char path[1024];
    float row[DIM];
    kith_memory_stats before, after;
    snprintf(path, sizeof path, "%s/m.safetensors", testing_folder());
    KITH_OPTIONS(kith_model_options, options);
    options.weights = path;
    options.resize = "shorter256";
    assert_ok(kith_model_open(&options, &narrow, &err), &err);
    assert_ok(kith_model_embed_pixels(narrow, &picture[0], 1, NULL, row, &err), &err);
    const kith_pixels one = {LONG, 1, 3, line};
    kith_memory_stats_get(&before);
    assert_ok(kith_model_embed_pixels(narrow, &one, 1, NULL, row, &err), &err);
    kith_memory_stats_get(&after);
    if (after.peak_bytes > before.peak_bytes && after.peak_bytes > before.live_bytes + MOST)
        fail_msg("%llu bytes at most, %llu before", (unsigned long long)after.peak_bytes,
                 (unsigned long long)before.live_bytes);
    kith_model_free(narrow);
}

static void test_pictures_that_are_none(void **state) {
    (void)state;
    kith_error err;
    float row[DIM];
    const kith_pixels bad[] = {
        {0, 5, 3, pixels[0]}, {5, 0, 3, pixels[0]}, {5, 5, 2, pixels[0]}, {5, 5, 3, NULL}};
    for (size_t i = 0; i < N_ROWS(bad); i++)
        assert_int_equal(kith_model_embed_pixels(model, &bad[i], 1, NULL, row, &err),
                         bad[i].data ? KITH_ESHAPE : KITH_EINVAL);
}

static void test_combining(void **state) {
    (void)state;
    kith_error err;
    const float rows[] = {3, 0, 0, 4}, zero[] = {0, 0, 0, 2};
    float row[2];
    assert_ok(kith_query_combine(rows, (double[]){0.5}, 1, 2, row, &err), &err);
    assert_true(row[0] == 3 && row[1] == 0); /* the only row as it is */
    assert_ok(kith_query_combine(rows, (double[]){1, -0.5}, 2, 2, row, &err), &err);
    assert_true(row[0] == 1 && row[1] == -0.5F);
    assert_ok(kith_query_combine(zero, (double[]){1, 1}, 2, 2, row, &err), &err);
    assert_true(row[0] == 0 && row[1] == 1);
    const float twice[] = {1, 0, 1, 0};
    assert_int_equal(kith_query_combine(twice, (double[]){1, -1}, 2, 2, row, &err), KITH_EINVAL);
    assert_int_equal(kith_query_combine(rows, (double[]){0, -1}, 2, 2, row, &err), KITH_EINVAL);
    assert_int_equal(kith_query_combine(rows, (double[]){1, (double)INFINITY}, 2, 2, row, &err), KITH_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_number),
        cmocka_unit_test(test_as_a_file),
        cmocka_unit_test(test_a_narrow_picture),
        cmocka_unit_test(test_a_file_named_often),
        cmocka_unit_test(test_pictures_that_are_none),
        cmocka_unit_test(test_combining),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
