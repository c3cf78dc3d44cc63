/* Who a model is: its file, by whatever name, its hash, and the words that indexes hold. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kith/eval.h"
#include "kith/model.h"
#include "model/handle.h"
#include "support/testing.h"

enum { DIM = 8, SIDE = 16 };

static kith_model *open_random(uint64_t seed) {
    kith_model *model = NULL;
    kith_error err;
    KITH_OPTIONS(kith_model_options, o);
    o.backbone = "convnet4";
    o.settings = "width=8";
    o.height = o.width = SIDE;
    o.embedding = DIM;
    o.seed = seed;
    assert_ok(kith_model_open(&o, &model, &err), &err);
    return model;
}

/* FOLDER/NAME, with the curve of false-match rates that training writes if has_curve says so. */
static const char *save(const char *folder, const char *name, uint64_t seed, bool has_curve) {
    static char path[PATH_MAX];
    kith_error err;
    kith_model *model = open_random(seed);
    if (has_curve) {
        kith_calibration *curve = &model->curve.calibration;
        *curve = (kith_calibration){.metric = KITH_COSINE,
                                    .source = "validation",
                                    .n_classes = 9,
                                    .n_same = 100,
                                    .n_different = 1000,
                                    .n = 2};
        curve->threshold[0] = 0.5, curve->fmr[0] = 0.1, curve->tmr[0] = 0.9;
        curve->threshold[1] = 0.9, curve->fmr[1] = 0.01, curve->tmr[1] = 0.5;
    }
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(kith_model_save(model, path, &err), &err);
    kith_model_free(model);
    return path;
}

static kith_model *open_path(const char *path) {
    kith_model *model = NULL;
    kith_error err;
    KITH_OPTIONS(kith_model_options, o);
    o.weights = path;
    assert_ok(kith_model_open(&o, &model, &err), &err);
    return model;
}

/* A run's model, else its best; a run that has neither is one line. */
static void test_a_run_is_its_model(void **state) {
    (void)state;
    char run[1024], found[PATH_MAX], wanted[PATH_MAX];
    kith_error err = {0};
    snprintf(run, sizeof run, "%s/run", testing_folder());
    mkdir(run, 0777);
    KITH_OPTIONS(kith_model_options, o);
    kith_model *model = NULL;
    o.weights = run;
    assert_int_equal(kith_model_open(&o, &model, &err), KITH_EIO);
    snprintf(wanted, sizeof wanted, "%s has neither a model.safetensors nor a best.safetensors", run);
    assert_string_equal(err.message, wanted);
    static const char *const files[] = {"best.safetensors", "model.safetensors"};
    for (int i = 0; i < 2; i++) {
        snprintf(wanted, sizeof wanted, "%s", save(run, files[i], (uint64_t)i + 1, false));
        assert_ok(kith_model_find(run, found, sizeof found, &err), &err);
        assert_string_equal(found, wanted);
        kith_model *by_run = open_path(run), *by_file = open_path(wanted);
        kith_model_identity who, same;
        assert_ok(kith_model_identify(by_run, &who, &err), &err);
        assert_ok(kith_model_identify(by_file, &same, &err), &err);
        assert_string_equal(who.hash, same.hash);
        assert_string_equal(who.file, same.file);
        kith_model_free(by_run);
        kith_model_free(by_file);
    }
    /* Any other name stands for itself, whether it is there or not. */
    assert_ok(kith_model_find("no/such/file", found, sizeof found, &err), &err);
    assert_string_equal(found, "no/such/file");
    assert_int_equal(kith_model_find(run, found, strlen(run) + 3, &err), KITH_EINVAL);
}

/* Words in indexes that exist: they may not change. */
static void test_the_words(void **state) {
    (void)state;
    const char *path = save(testing_folder(), "words.safetensors", 1, false);
    char hash[65];
    kith_error err;
    kith_model_identity who;
    kith_model *model = open_path(path);
    assert_ok(kith_model_identify(model, &who, &err), &err);
    assert_ok(kith_file_hash(path, hash, &err), &err);
    assert_string_equal(who.hash, hash);
    assert_int_equal(who.file[0], '/');
    assert_int_equal(who.dim, DIM);
    assert_int_equal(kith_model_dim(model), DIM);
    assert_string_equal(who.preprocess,
                        "embedding of convnet4 (pool avg), squash256, 16 x 16, rgb, "
                        "(pixel * 0.00392157 - (0.5, 0.5, 0.5)) / (0.5, 0.5, 0.5)");
    kith_model_free(model);
    KITH_OPTIONS(kith_model_options, o);
    o.weights = path;
    o.settings = "width=8";
    o.pool = "max";
    o.tap = "map";
    o.resize = "shorter20";
    o.height = o.width = 32;
    assert_ok(kith_model_open(&o, &model, &err), &err);
    assert_ok(kith_model_identify(model, &who, &err), &err);
    assert_string_equal(who.preprocess,
                        "map of convnet4 with width=8 (pool max), shorter20, 32 x 32, rgb, "
                        "(pixel * 0.00392157 - (0.5, 0.5, 0.5)) / (0.5, 0.5, 0.5)");
    int n_dims = 0;
    int64_t dim[KITH_MAX_DIMS];
    assert_ok(kith_model_tap_shape(model, "map", &n_dims, dim, &err), &err);
    assert_int_equal(who.dim, dim[0] * dim[1] * dim[2]);
    kith_model_free(model);
}

static void expect_unknown(kith_model *model, const char *words) {
    kith_error err = {0};
    kith_model_identity who;
    assert_int_equal(kith_model_identify(model, &who, &err), KITH_EINVAL);
    if (!strstr(err.message, words)) fail_msg("'%s' does not say '%s'", err.message, words);
}

/* What nobody could open again has no identity. */
static void test_models_without_identity(void **state) {
    (void)state;
    kith_error err;
    float bias[DIM] = {1};
    kith_model *model = open_random(1);
    expect_unknown(model, "random weights");
    kith_model_free(model);
    const char *path = save(testing_folder(), "set.safetensors", 1, false);
    model = open_path(path);
    for (int64_t i = 0; i < kith_model_param_count(model); i++) {
        kith_model_param param;
        assert_true(kith_model_param_at(model, i, &param));
        if (strcmp(param.name, "embedding.bias") == 0)
            assert_ok(kith_model_param_set(model, i, bias, &err), &err);
    }
    expect_unknown(model, "were set");
    kith_model_free(model);
    KITH_OPTIONS(kith_model_options, o);
    o.weights = path;
    o.embedding = DIM;
    assert_ok(kith_model_open(&o, &model, &err), &err);
    expect_unknown(model, "other heads or channels");
    kith_model_free(model);
    model = open_path(path);
    assert_int_equal(rename(save(testing_folder(), "other.safetensors", 2, false), model->options.weights),
                     0);
    expect_unknown(model, "has changed since");
    kith_model_free(model);
}

/* A hash that was made stays that of the model, whatever becomes of its file. */
static void test_the_hash_is_made_once(void **state) {
    (void)state;
    kith_error err;
    kith_model_identity before, after;
    kith_model *model = open_path(save(testing_folder(), "once.safetensors", 1, false));
    assert_ok(kith_model_identify(model, &before, &err), &err);
    assert_int_equal(remove(before.file), 0);
    assert_ok(kith_model_identify(model, &after, &err), &err);
    assert_ptr_equal(before.hash, after.hash);
    kith_model_free(model);
}

/* The tap and the resizing of opening are what a call means that says nothing; a call can say others. */
static void test_defaults_of_opening(void **state) {
    (void)state;
    static uint8_t pixels[40 * 30 * 3];
    float plain[64], opened[64], back[DIM], wanted[DIM];
    kith_error err = {0};
    kith_model *model = NULL, *other = NULL;
    const char *path = save(testing_folder(), "defaults.safetensors", 1, false);
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)(i * 7 % 251);
    const kith_pixels image = {40, 30, 3, pixels};
    model = open_path(path);
    KITH_OPTIONS(kith_model_options, o);
    o.weights = path;
    o.tap = "pooled";
    o.resize = "shorter18";
    assert_ok(kith_model_open(&o, &other, &err), &err);
    KITH_OPTIONS(kith_embed_options, how);
    assert_string_equal(kith_model_tap(model, NULL), "embedding");
    assert_string_equal(kith_model_tap(other, &how), "pooled");
    assert_true(kith_model_dim(other) <= 64);
    how.tap = "pooled";
    how.resize = "shorter18";
    assert_ok(kith_model_embed_pixels(model, &image, 1, &how, plain, &err), &err);
    assert_ok(kith_model_embed_pixels(other, &image, 1, NULL, opened, &err), &err);
    assert_memory_equal(plain, opened, (size_t)kith_model_dim(other) * sizeof(float));
    how.tap = "embedding";
    how.resize = "squash256";
    assert_ok(kith_model_embed_pixels(other, &image, 1, &how, back, &err), &err);
    assert_ok(kith_model_embed_pixels(model, &image, 1, NULL, wanted, &err), &err);
    assert_memory_equal(back, wanted, sizeof back);
    kith_model_free(other);
    kith_model_free(model);
    o.tap = "nose";
    assert_int_equal(kith_model_open(&o, &other, &err), KITH_ENOTFOUND);
}

static void test_options_are_kept(void **state) {
    (void)state;
    char path[PATH_MAX], whole[PATH_MAX], tap[] = "pooled";
    kith_error err;
    kith_model *model = NULL;
    snprintf(path, sizeof path, "%s", save(testing_folder(), "kept.safetensors", 1, false));
    assert_non_null(realpath(path, whole));
    KITH_OPTIONS(kith_model_options, o);
    o.weights = path;
    o.tap = tap;
    o.batch = 5;
    assert_ok(kith_model_open(&o, &model, &err), &err);
    memset(path, 'x', 3);
    memset(tap, 'x', 3);
    KITH_OPTIONS(kith_model_options, kept);
    kith_model_options_get(model, &kept);
    assert_string_equal(kept.weights, whole);
    assert_string_equal(kept.tap, "pooled");
    assert_int_equal(kept.batch, 5);
    assert_null(kept.resize);
    kith_model_free(model);
}

/* The curve of the file is of its embeddings, prepared as it says. */
static void test_the_curve(void **state) {
    (void)state;
    const char *path = save(testing_folder(), "curve.safetensors", 1, true);
    const struct {
        const char *tap, *resize;
        kith_metric metric;
        bool holds;
    } rows[] = {{NULL, NULL, KITH_COSINE, true},
                {"embedding", NULL, KITH_COSINE, true},
                {"pooled", NULL, KITH_COSINE, false},
                {NULL, "squash256", KITH_COSINE, false},
                {NULL, NULL, KITH_SQEUCLIDEAN, false}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        kith_model *model = NULL;
        kith_calibration curve;
        KITH_OPTIONS(kith_model_options, o);
        o.weights = path;
        o.tap = rows[i].tap;
        o.resize = rows[i].resize;
        assert_ok(kith_model_open(&o, &model, &err), &err);
        const kith_status status = kith_model_curve(model, rows[i].metric, &curve, &err);
        if (status != (rows[i].holds ? KITH_OK : KITH_ENOTFOUND))
            fail_msg("case %zu: %s, %s", i, kith_status_name(status), err.message);
        if (rows[i].holds) assert_int_equal(curve.n, 2);
        kith_model_free(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_is_its_model),
        cmocka_unit_test(test_the_words),
        cmocka_unit_test(test_models_without_identity),
        cmocka_unit_test(test_the_hash_is_made_once),
        cmocka_unit_test(test_defaults_of_opening),
        cmocka_unit_test(test_options_are_kept),
        cmocka_unit_test(test_the_curve),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
