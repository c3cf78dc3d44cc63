/* The calibration in a model's file: back as it was written, absent for another network, refused when damaged. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/backend.h"
#include "kith/model.h"
#include "net/calibration.h"
#include "net/model_file.h"
#include "net/weights.h"
#include "support/testing.h"

static const kith_model_options small = {.size = sizeof(kith_model_options),
                                         .backbone = "convnet4",
                                         .settings = "width=8",
                                         .channels = 3,
                                         .height = 16,
                                         .width = 16,
                                         .embedding = 6,
                                         .seed = 3};

static kith_calibration make_curve(void) {
    kith_calibration c = {.metric = KITH_COSINE,
                          .source = "validation",
                          .n_classes = 12,
                          .n_same = 12345,
                          .n_different = 9876543210,
                          .n = KITH_CALIBRATION_POINTS};
    for (int i = 0; i < KITH_CALIBRATION_POINTS; i++) {
        c.threshold[i] = -1.0 / 3 + i * (1.0 / 300);
        c.fmr[i] = (double)(9876543210 / (i * i + 1)) / 9876543210;
        c.tmr[i] = (double)(12345 - 45 * i) / 12345;
    }
    return c;
}

/* A model with the curve (NULL: none) in its file. */
static void save(const char *path, const kith_calibration *c) {
    kith_error err;
    ki_backend *backend = NULL;
    ki_net net;
    ki_params *params = NULL;
    assert_ok(ki_backend_open("ref", NULL, &backend, &err), &err);
    assert_ok(ki_model_file_open(&small, backend, &net, &params, NULL, &err), &err);
    assert_ok(ki_weights_save(&net, params, NULL, c, path, &err), &err);
    ki_params_free(params);
    ki_net_release(&net);
    ki_backend_close(backend);
}

static const char *file_path(void) {
    static char path[512];
    snprintf(path, sizeof path, "%s/calibrated.safetensors", testing_folder());
    return path;
}

static kith_model *open_with(const kith_model_options *more) {
    kith_model_options options = *more;
    kith_model *model = NULL;
    kith_error err;
    options.size = sizeof options;
    options.weights = file_path();
    assert_ok(kith_model_open(&options, &model, &err), &err);
    return model;
}

static void assert_same_curve(const kith_calibration *a, const kith_calibration *b) {
    assert_string_equal(a->source, b->source);
    assert_int_equal(a->metric, b->metric);
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->n_classes, b->n_classes);
    assert_int_equal(a->n_same, b->n_same);
    assert_int_equal(a->n_different, b->n_different);
    assert_memory_equal(a->threshold, b->threshold, sizeof a->threshold);
    assert_memory_equal(a->fmr, b->fmr, sizeof a->fmr);
    assert_memory_equal(a->tmr, b->tmr, sizeof a->tmr);
}

static void test_comes_back(void **state) {
    (void)state;
    const kith_calibration wanted = make_curve();
    kith_calibration found;
    kith_error err;
    save(file_path(), &wanted);
    kith_model *model = open_with(&(kith_model_options){0});
    assert_ok(kith_model_calibration(model, &found, &err), &err);
    assert_same_curve(&found, &wanted);
    /* Saved again, it is still there. */
    assert_ok(kith_model_save(model, file_path(), &err), &err);
    kith_model_free(model);
    model = open_with(&(kith_model_options){0});
    assert_ok(kith_model_calibration(model, &found, &err), &err);
    assert_same_curve(&found, &wanted);
    kith_model_free(model);
}

static void test_not_for_another_model(void **state) {
    (void)state;
    const kith_calibration curve = make_curve();
    static const kith_model_options others[] = {{.pool = "max"},
                                                {.height = 32, .width = 32},
                                                {.embedding = KITH_NONE},
                                                {.heads = 2, .embedding = 12}};
    kith_calibration found;
    kith_error err;
    save(file_path(), &curve);
    for (size_t i = 0; i < N_ROWS(others); i++) {
        kith_model *model = open_with(&others[i]);
        if (kith_model_calibration(model, &found, &err) != KITH_ENOTFOUND) fail_msg("option %zu", i);
        kith_model_free(model);
    }
    kith_model *model = open_with(&(kith_model_options){.pool = "avg", .height = 16, .width = 16});
    assert_ok(kith_model_calibration(model, &found, &err), &err); /* as it was */
    float weight[3 * 8 * 9];
    assert_ok(kith_model_param_get(model, 0, weight, &err), &err);
    assert_ok(kith_model_param_set(model, 0, weight, &err), &err);
    assert_int_equal(kith_model_calibration(model, &found, &err), KITH_ENOTFOUND);
    kith_model_free(model);
    save(file_path(), NULL);
    model = open_with(&(kith_model_options){0});
    assert_int_equal(kith_model_calibration(model, &found, &err), KITH_ENOTFOUND);
    kith_model_free(model);
}

/* With another side it is the nearest thing known, and says so; it is not that of a file saved from there. */
static void test_with_another_side(void **state) {
    (void)state;
    kith_calibration curve = make_curve(), found;
    kith_error err;
    save(file_path(), &curve);
    kith_model *model = open_with(&(kith_model_options){.side = 32});
    assert_ok(kith_model_curve(model, KITH_COSINE, &found, &err), &err);
    strcat(curve.source, ", at 16 px");
    assert_same_curve(&found, &curve);
    assert_int_equal(kith_model_calibration(model, &found, &err), KITH_ENOTFOUND);
    assert_int_equal(kith_model_curve(model, KITH_SQEUCLIDEAN, &found, &err), KITH_ENOTFOUND);
    /* Opened again, as an index does. */
    KITH_OPTIONS(kith_model_options, kept);
    kith_model_options_get(model, &kept);
    kith_model *again = open_with(&kept);
    assert_ok(kith_model_curve(again, KITH_COSINE, &found, &err), &err);
    assert_same_curve(&found, &curve);
    char saved[520];
    snprintf(saved, sizeof saved, "%s.saved", file_path());
    assert_ok(kith_model_save(again, saved, &err), &err);
    kith_model_free(model);
    kith_model_free(again);
    model = NULL;
    KITH_OPTIONS(kith_model_options, o);
    o.weights = saved;
    assert_ok(kith_model_open(&o, &model, &err), &err);
    assert_int_equal(kith_model_calibration(model, &found, &err), KITH_ENOTFOUND);
    kith_model_free(model);
    /* Its own side, and sides that are more than that. */
    const struct {
        kith_model_options options;
        const char *source;
    } rows[] = {{{.side = 16}, "validation"},
                {{.side = 32, .pool = "max"}, NULL},
                {{.side = 32, .resize = "shorter40"}, NULL},
                {{.resize = "shorter40"}, NULL},
                {{.height = 32, .width = 32}, NULL},
                {{.height = 32, .width = 16}, NULL},
                {{.side = 32, .tap = "pooled"}, NULL}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        model = open_with(&rows[i].options);
        const kith_status status = kith_model_curve(model, KITH_COSINE, &found, &err);
        if (rows[i].source) {
            assert_ok(status, &err);
            assert_string_equal(found.source, rows[i].source);
        } else if (status != KITH_ENOTFOUND) {
            fail_msg("options %zu have the curve of %s", i, found.source);
        }
        kith_model_free(model);
    }
}

/* Metadata of a file with one value replaced (NULL: left out). */
static kith_status read_with(const char *key, const char *value, kith_error *err) {
    static const char *const rows[][2] = {{"kith.calibration.source", "validation"},
                                          {"kith.calibration.pairs", "2,10,20"},
                                          {"kith.calibration.threshold", "0.25,0.5"},
                                          {"kith.calibration.false_matches", "20,1"},
                                          {"kith.calibration.true_matches", "10,8"}};
    kith_tensors_writer *writer = NULL;
    kith_tensors *tensors = NULL;
    kith_calibration found;
    kith_error why;
    float one = 1;
    const kith_array array = {KITH_F32, 1, {1}, &one};
    assert_ok(kith_tensors_writer_new(&writer, &why), &why);
    assert_ok(kith_tensors_writer_add(writer, "x", &array, &why), &why);
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const char *text = strcmp(rows[i][0] + strlen("kith.calibration."), key) == 0 ? value : rows[i][1];
        if (text) assert_ok(kith_tensors_writer_metadata(writer, rows[i][0], text, &why), &why);
    }
    assert_ok(kith_tensors_writer_save(writer, file_path(), &why), &why);
    kith_tensors_writer_free(writer);
    assert_ok(kith_tensors_open(file_path(), &tensors, &why), &why);
    const kith_status status = ki_calibration_read(tensors, &found, err);
    kith_tensors_free(tensors);
    if (status == KITH_OK && found.n > 0) assert_true(found.fmr[1] == 0.05 && found.tmr[1] == 0.8);
    return status;
}

static void test_damage_is_refused(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"threshold", "0.25"},     {"threshold", "0.5,0.25"},  {"threshold", "0.25,x"},
        {"threshold", ""},         {"false_matches", "20"},    {"false_matches", "1,20"},
        {"false_matches", "30,1"}, {"true_matches", "10,nan"}, {"true_matches", NULL},
        {"source", NULL},          {"pairs", "2,10"},          {"pairs", "2,0,20"},
        {"pairs", "2,10,1e300"},   {"pairs", "-2,10,20"}};
    kith_error err;
    assert_ok(read_with("", NULL, &err), &err);
    for (size_t i = 0; i < N_ROWS(bad); i++) {
        if (read_with(bad[i][0], bad[i][1], &err) == KITH_OK)
            fail_msg("%s '%s' is read", bad[i][0], bad[i][1] ? bad[i][1] : "");
    }
    char many[4096] = "0";
    for (int i = 0; i < KITH_CALIBRATION_POINTS; i++) strcat(many, ",1");
    assert_int_equal(read_with("threshold", many, &err), KITH_EFORMAT);
    assert_non_null(strstr(err.message, "257 numbers; wanted at most 256"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comes_back),
        cmocka_unit_test(test_not_for_another_model),
        cmocka_unit_test(test_with_another_side),
        cmocka_unit_test(test_damage_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
