/* kith_model: batches, taps, saving, failures. */
#include "kith/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "kith/experimental/bench.h"
#include "kith/log.h"
#include "net/hashed.h"
#include "support/testing.h"

enum { N = 5, SIZE = 20, N_IN = 3 * SIZE * SIZE, WIDTH = 8 };

static const kith_model_options small = {.size = sizeof(kith_model_options),
                                         .backbone = "convnet4",
                                         .settings = "width=8",
                                         .channels = 3,
                                         .height = SIZE,
                                         .width = SIZE,
                                         .embedding = 6,
                                         .seed = 3};

static float images[N * N_IN];

static kith_model *open_ok(const kith_model_options *options) {
    kith_error err = {0};
    kith_model *model = NULL;
    assert_ok(kith_model_open(options, &model, &err), &err);
    return model;
}

/* A batch that does not divide the number of images gives the same rows as one image at a time. */
static void test_batches(void **state) {
    (void)state;
    kith_error err = {0};
    kith_model_options options = small;
    options.batch = 2;
    kith_model *model = open_ok(&options);
    float all[N * 6], one[6];
    assert_ok(kith_model_embed_floats(model, images, N, "embedding", all, &err), &err);
    for (int i = 0; i < N; i++) {
        assert_ok(kith_model_embed_floats(model, images + i * N_IN, 1, "embedding", one, &err), &err);
        const double distance = testing_relative_l2(one, all + i * 6, 6);
        if (!(distance < 1e-6)) fail_msg("image %d differs by %g", i, distance);
    }
    assert_ok(kith_model_embed_floats(model, images, 0, "embedding", all, &err), &err);
    kith_model_free(model);
}

static void test_embedding_allocates_nothing_after_the_first(void **state) {
    (void)state;
    kith_error err = {0};
    kith_model *model = open_ok(&small);
    float values[N * 6];
    assert_ok(kith_model_embed_floats(model, images, N, "embedding", values, &err), &err);
    kith_memory_stats before, after;
    kith_memory_stats_get(&before);
    assert_ok(kith_model_embed_floats(model, images, N, "embedding", values, &err), &err);
    kith_memory_stats_get(&after);
    assert_int_equal(after.n_allocations, before.n_allocations);
    kith_model_free(model);
}

static void test_taps(void **state) {
    (void)state;
    kith_error err = {0};
    kith_model *model = open_ok(&small);
    int n_dims = 0;
    int64_t dim[KITH_MAX_DIMS];
    assert_ok(kith_model_tap_shape(model, "map", &n_dims, dim, &err), &err);
    assert_int_equal(n_dims, 3);
    assert_int_equal(dim[0] * dim[1] * dim[2], WIDTH);
    float map[N * WIDTH], pooled[N * WIDTH];
    assert_ok(kith_model_embed_floats(model, images, N, "map", map, &err), &err);
    assert_ok(kith_model_embed_floats(model, images, N, "pooled", pooled, &err), &err);
    for (int i = 0; i < N * WIDTH; i++) { /* the map is 1x1 here; 0 may be -0 in one of them */
        if (!(map[i] == pooled[i])) fail_msg("value %d is %a in the map, pooled %a", i, map[i], pooled[i]);
    }
    assert_int_equal(kith_model_tap_shape(model, "logits", &n_dims, dim, &err), KITH_ENOTFOUND);
    assert_int_equal(kith_model_embed_floats(model, images, N, "pooledd", map, &err), KITH_ENOTFOUND);
    kith_model_free(model);
}

static void test_seeds(void **state) {
    (void)state;
    kith_error err = {0};
    kith_model_options other = small;
    other.seed = 4;
    float a[6], b[6], c[6];
    kith_model *model = open_ok(&small);
    assert_ok(kith_model_embed_floats(model, images, 1, "embedding", a, &err), &err);
    kith_model_free(model);
    model = open_ok(&small);
    assert_ok(kith_model_embed_floats(model, images, 1, "embedding", b, &err), &err);
    kith_model_free(model);
    model = open_ok(&other);
    assert_ok(kith_model_embed_floats(model, images, 1, "embedding", c, &err), &err);
    kith_model_free(model);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a, c, sizeof a);
}

static void test_not_finite(void **state) {
    (void)state;
    kith_error err = {0};
    kith_model *model = open_ok(&small);
    static float broken[N * N_IN];
    memcpy(broken, images, sizeof broken);
    broken[3 * N_IN + 17] = NAN;
    float values[N * 6];
    assert_int_equal(kith_model_embed_floats(model, broken, N, "embedding", values, &err), KITH_ENUMERIC);
    assert_string_equal(err.message, "input of image 3 holds nan at 17; wanted finite numbers");
    kith_model_free(model);
}

/* A saved file needs no options and gives the same bits, with settings and preprocessing. */
static void test_save_and_open(void **state) {
    (void)state;
    kith_error err = {0};
    char path[256];
    snprintf(path, sizeof path, "%s/model.safetensors", testing_folder());
    kith_model_options options = small;
    options.pool = "both";
    options.classes = 4;
    kith_model *model = open_ok(&options);
    float a[N * 6], b[N * 6];
    assert_ok(kith_model_embed_floats(model, images, N, "embedding", a, &err), &err);
    assert_ok(kith_model_save(model, path, &err), &err);
    kith_model_info before, after;
    kith_model_info_get(model, &before);
    const kith_preprocess preprocess = before.preprocess;
    kith_model_free(model);

    model = open_ok(&(kith_model_options){.size = sizeof(kith_model_options), .weights = path});
    kith_model_info_get(model, &after);
    assert_string_equal(after.backbone, "convnet4");
    assert_string_equal(after.pool, "both");
    assert_int_equal(after.height, SIZE);
    assert_int_equal(after.embedding, 6);
    assert_int_equal(after.classes, 4);
    for (int i = 0; i < 3; i++) {
        assert_true(after.preprocess.mean[i] == preprocess.mean[i]);
        assert_true(after.preprocess.std[i] == preprocess.std[i]);
    }
    assert_true(after.preprocess.scale == preprocess.scale);
    assert_ok(kith_model_embed_floats(model, images, N, "embedding", b, &err), &err);
    assert_memory_equal(a, b, sizeof a);
    kith_model_free(model);

    model = open_ok(&(kith_model_options){.size = sizeof(kith_model_options),
                                          .weights = path,
                                          .height = 32,
                                          .width = 48}); /* any size it allows */
    kith_model_info_get(model, &after);
    assert_int_equal(after.width, 48);
    kith_model_free(model);
    snprintf(path, sizeof path, "%s/nowhere/model.safetensors", testing_folder());
    model = open_ok(&small);
    assert_int_equal(kith_model_save(model, path, &err), KITH_EIO);
    kith_model_free(model);
}

static void test_parameters(void **state) {
    (void)state;
    kith_error err = {0};
    kith_model *model = open_ok(&small);
    kith_model_param param;
    const int64_t n = kith_model_param_count(model);
    assert_int_equal(n, 4 * 5 + 2);
    kith_model_info info;
    kith_model_info_get(model, &info);
    assert_int_equal(info.n_params, 8 * 27 + 3 * 8 * 72 + 4 * 16 + 6 * 8 + 6);
    assert_false(kith_model_param_at(model, n, &param));
    assert_false(kith_model_param_at(model, -1, &param));
    float value = 0;
    assert_int_equal(kith_model_param_get(model, n, &value, &err), KITH_EINVAL);
    int embedding = 0;
    while (kith_model_param_at(model, embedding, &param) && strcmp(param.name, "embedding.bias") != 0)
        embedding++;
    assert_string_equal(param.name, "embedding.bias");
    float bias[6] = {1, 2, 3, 4, 5, 6}, before[6], after[6];
    assert_ok(kith_model_embed_floats(model, images, 1, "embedding", before, &err), &err);
    assert_ok(kith_model_param_set(model, embedding, bias, &err), &err);
    assert_ok(kith_model_embed_floats(model, images, 1, "embedding", after, &err), &err);
    for (int i = 0; i < 6; i++) assert_true(fabsf(after[i] - before[i] - bias[i]) < 1e-4f);
    kith_model_free(model);
}

/* Whichever allocation fails, the call says so and nothing leaks (seen under the sanitizers). */
static void test_every_allocation_may_fail(void **state) {
    (void)state;
    kith_error err = {0};
    char path[256];
    snprintf(path, sizeof path, "%s/small.safetensors", testing_folder());
    kith_model *model = open_ok(&small);
    assert_ok(kith_model_save(model, path, &err), &err);
    kith_model_free(model);
    const kith_model_options options = {.size = sizeof(kith_model_options), .weights = path};
    float values[N * 6];
    int n_failed = 0;
    for (int64_t i = 0;; i++) {
        model = NULL;
        ki_alloc_fail_after(i);
        kith_status status = kith_model_open(&options, &model, &err);
        if (status == KITH_OK) status = kith_model_embed_floats(model, images, N, "embedding", values, &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        kith_model_free(model);
        if (!has_failed) {
            assert_int_equal(status, KITH_OK);
            break;
        }
        n_failed++;
        if (status != KITH_ENOMEM) fail_msg("allocation %lld: %s", (long long)i, kith_status_name(status));
        assert_true(i < 5000);
    }
    print_message("%d allocations failed one by one\n", n_failed);
    assert_true(n_failed > 20);
}

/* With a real model: what crashed was the copy of images that are not there. */
static void test_arguments_are_refused(void **state) {
    (void)state;
    kith_error err;
    float out[64];
    kith_model *model = open_ok(&small);
    const char *tap = kith_model_tap(model, NULL), *paths[] = {"a.png", NULL};
    assert_int_equal(kith_model_embed_floats(model, NULL, 1, tap, out, &err), KITH_EINVAL);
    assert_string_equal(err.message, "kith_model_embed_floats: images is NULL");
    assert_int_equal(kith_model_embed_files(model, paths, 2, NULL, out, NULL, &err), KITH_EINVAL);
    assert_string_equal(err.message, "paths[1] is NULL");
    KITH_OPTIONS(kith_embed_options, options);
    options.n_workers = -1;
    assert_int_equal(kith_model_embed_files(model, paths, 1, &options, out, NULL, &err), KITH_EINVAL);
    kith_model_free(model);
    kith_model_options negative = small;
    negative.height = -1;
    assert_int_equal(kith_model_open(&negative, &model, &err), KITH_EINVAL);
    assert_string_equal(err.message, "height is -1; wanted at least 0");
}

static void test_bench(void **state) {
    (void)state;
    kith_error err = {0};
    for (int train = 0; train < 2; train++) {
        kith_bench_result result = {0};
        const kith_bench_options options = {
            .size = sizeof(kith_bench_options), .model = &small, .train = train, .batch = 4, .n_steps = 5};
        assert_ok(kith_bench_run(&options, &result, &err), &err);
        assert_true(result.images_per_second > 0 && result.gflops > 0 && result.peak_rss_bytes > 0);
        assert_int_equal(result.n_steps, 5);
        if (result.allocations_per_step != 0)
            fail_msg("%s: a step allocates %g times", train ? "train" : "embed", result.allocations_per_step);
    }
    kith_bench_result result;
    assert_int_equal(
        kith_bench_run(
            &(kith_bench_options){.size = sizeof(kith_bench_options), .model = &small, .batch = -1}, &result,
            &err),
        KITH_EINVAL);
}

int main(void) {
    hashed_fill("images", images, N * N_IN, -1, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_embedding_allocates_nothing_after_the_first),
        cmocka_unit_test(test_taps),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_save_and_open),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_arguments_are_refused),
        cmocka_unit_test(test_bench),
    };
    return cmocka_run_group_tests_name("model/model", tests, NULL, NULL);
}
