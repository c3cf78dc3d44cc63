/* Weight files into nets: what is accepted, and the one line that lists what does not fit. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/shape.h"
#include "kith/export.h"
#include "kith/model.h"
#include "support/testing.h"

typedef struct tensor {
    const char *name;
    kith_dtype dtype;
    int n_dims;
    int64_t dim[4];
} tensor;

enum { MOST = 64 };
static tensor file[MOST];
static int n_tensors;
static char path[256];

static void add(const char *name, kith_dtype dtype, int n_dims, int64_t a, int64_t b, int64_t c, int64_t d) {
    file[n_tensors++] = (tensor){name, dtype, n_dims, {a, b, c, d}};
}

/* convnet4 of width 8 on grey images, as a file would hold it. */
static void begin(void) {
    n_tensors = 0;
    add("conv1.weight", KITH_F32, 4, 8, 1, 3, 3);
    add("conv2.weight", KITH_F32, 4, 8, 8, 3, 3);
    add("conv3.weight", KITH_F32, 4, 8, 8, 3, 3);
    add("conv4.weight", KITH_F32, 4, 8, 8, 3, 3);
    static const char *const bn[] = {"bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var",
                                     "bn2.weight", "bn2.bias", "bn2.running_mean", "bn2.running_var",
                                     "bn3.weight", "bn3.bias", "bn3.running_mean", "bn3.running_var",
                                     "bn4.weight", "bn4.bias", "bn4.running_mean", "bn4.running_var"};
    for (size_t i = 0; i < N_ROWS(bn); i++) add(bn[i], KITH_F32, 1, 8, 0, 0, 0);
}

static tensor *find(const char *name) {
    for (int i = 0; i < n_tensors; i++) {
        if (!strcmp(file[i].name, name)) return &file[i];
    }
    fail_msg("no tensor %s", name);
    return NULL;
}

static void drop(const char *name) {
    tensor *t = find(name);
    *t = file[--n_tensors];
}

static double of_f64 = 0.5;

/* Every value is 0.5, which all the types hold exactly; of_f64 if they are float64. */
static void fill(kith_array *array, const tensor *t) {
    kith_error err = {0};
    assert_ok(kith_array_init(t->dtype, t->n_dims, t->dim, array, &err), &err);
    for (int64_t i = 0; i < kith_array_count(array); i++) {
        switch (t->dtype) {
        case KITH_F32: ((float *)array->data)[i] = 0.5f; break;
        case KITH_F64: ((double *)array->data)[i] = of_f64; break;
        case KITH_F16: ((uint16_t *)array->data)[i] = 0x3800; break;
        case KITH_BF16: ((uint16_t *)array->data)[i] = 0x3f00; break;
        case KITH_I64: ((int64_t *)array->data)[i] = 7; break;
        default: fail_msg("no value for this type");
        }
    }
}

static void write_file(const char *key, const char *value) {
    kith_error err = {0};
    kith_tensors_writer *writer = NULL;
    kith_array arrays[MOST] = {{0}};
    assert_ok(kith_tensors_writer_new(&writer, &err), &err);
    if (key) assert_ok(kith_tensors_writer_metadata(writer, key, value, &err), &err);
    for (int i = 0; i < n_tensors; i++) {
        fill(&arrays[i], &file[i]);
        if (!strcmp(file[i].name, "bn4.bias") && key && !strcmp(key, "nan"))
            ((float *)arrays[i].data)[3] = NAN;
        assert_ok(kith_tensors_writer_add(writer, file[i].name, &arrays[i], &err), &err);
    }
    snprintf(path, sizeof path, "%s/w.safetensors", testing_folder());
    assert_ok(kith_tensors_writer_save(writer, path, &err), &err);
    kith_tensors_writer_free(writer);
    for (int i = 0; i < n_tensors; i++) kith_array_release(&arrays[i]);
}

static kith_model_options base(void) {
    return (kith_model_options){.size = sizeof(kith_model_options),
                                .backbone = "convnet4",
                                .settings = "width=8",
                                .channels = 1,
                                .weights = path};
}

static kith_model *open_ok(const kith_model_options *options) {
    kith_error err = {0};
    kith_model *model = NULL;
    assert_ok(kith_model_open(options, &model, &err), &err);
    return model;
}

static void assert_refused(const kith_model_options *options, kith_status status, const char *part) {
    kith_error err = {0};
    kith_model *model = NULL;
    assert_int_equal(kith_model_open(options, &model, &err), status);
    assert_null(model);
    if (!strstr(err.message, part)) fail_msg("no '%s' in: %s", part, err.message);
    if (strchr(err.message, '\n')) fail_msg("more than one line: %s", err.message);
}

static void assert_all_half(kith_model *model) {
    kith_model_param param;
    for (int i = 0; kith_model_param_at(model, i, &param); i++) {
        kith_error err = {0};
        float *values = ki_alloc((size_t)param.n, sizeof *values);
        assert_non_null(values);
        assert_ok(kith_model_param_get(model, i, values, &err), &err);
        for (int64_t k = 0; k < param.n; k++) {
            if (values[k] != 0.5f)
                fail_msg("%s[%lld] is %g, wanted 0.5", param.name, (long long)k, (double)values[k]);
        }
        ki_free(values);
    }
}

static void test_types_and_leading_axes(void **state) {
    (void)state;
    begin();
    find("conv1.weight")->dtype = KITH_F16;
    find("conv2.weight")->dtype = KITH_BF16;
    find("conv3.weight")->dtype = KITH_F64;
    *find("bn1.weight") = (tensor){"bn1.weight", KITH_F32, 2, {1, 8}};
    *find("bn2.running_var") = (tensor){"bn2.running_var", KITH_F32, 3, {1, 1, 8}};
    add("bn1.num_batches_tracked", KITH_I64, 1, 1, 0, 0, 0);
    write_file(NULL, NULL);
    const kith_model_options options = base();
    kith_model *model = open_ok(&options);
    assert_all_half(model);
    kith_model_free(model);
}

static void test_missing_extra_misshapen_in_one_line(void **state) {
    (void)state;
    begin();
    drop("bn3.bias");
    find("conv2.weight")->dim[1] = 4;
    find("bn4.bias")->dtype = KITH_I64;
    add("conv9.weight", KITH_F32, 1, 3, 0, 0, 0);
    write_file(NULL, NULL);
    const kith_model_options options = base();
    assert_refused(&options, KITH_ESHAPE, "1 missing (bn3.bias)");
    assert_refused(&options, KITH_ESHAPE, "1 extra (conv9.weight)");
    assert_refused(&options, KITH_ESHAPE,
                   "2 misshapen (conv2.weight is float32 [8, 4, 3, 3], wanted [8, 8, 3, 3], ");
    assert_refused(&options, KITH_ESHAPE, "bn4.bias is int64 [8], wanted floats [8]");
    assert_refused(&options, KITH_ESHAPE, "w.safetensors: ");
}

/* The line says which of the tensors. */
static void test_what_float32_does_not_hold(void **state) {
    (void)state;
    begin();
    find("bn2.bias")->dtype = KITH_F64;
    of_f64 = 1e300;
    write_file(NULL, NULL);
    of_f64 = 0.5;
    const kith_model_options options = base();
    assert_refused(&options, KITH_ENUMERIC, "tensor bn2.bias: element [0] is 1e+300");
}

static void test_many_are_cut(void **state) {
    (void)state;
    n_tensors = 0;
    add("something.else", KITH_F32, 1, 3, 0, 0, 0);
    write_file(NULL, NULL);
    const kith_model_options options = base();
    assert_refused(&options, KITH_ESHAPE, "20 missing (");
    assert_refused(&options, KITH_ESHAPE, " … and ");
    assert_refused(&options, KITH_ESHAPE, " more)");
    assert_refused(&options, KITH_ESHAPE, "1 extra (something.else)");
}

static void test_heads(void **state) {
    (void)state;
    begin();
    add("fc.weight", KITH_F32, 2, 5, 8, 0, 0);
    add("fc.bias", KITH_F32, 1, 5, 0, 0, 0);
    add("embedding.weight", KITH_F32, 2, 3, 8, 0, 0);
    write_file(NULL, NULL);
    kith_model_options options = base();
    kith_model_info info;
    kith_model *model = open_ok(&options);
    kith_model_info_get(model, &info);
    assert_int_equal(info.classes, 5);
    assert_int_equal(info.embedding, 3);
    assert_int_equal(info.n_params,
                     8 * 9 + 3 * 64 * 9 + 8 * 8 + 5 * 9 + 3 * 8); /* no embedding bias in the file */
    assert_all_half(model);
    kith_model_free(model);

    options.classes = options.embedding = KITH_NONE;
    model = open_ok(&options);
    kith_model_info_get(model, &info);
    assert_int_equal(info.classes, 0);
    assert_int_equal(info.embedding, 0);
    kith_model_free(model);

    options.classes = 7;
    assert_refused(&options, KITH_ESHAPE, "fc.weight is float32 [5, 8], wanted [7, 8]");
    options.classes = KITH_NONE;
    drop("embedding.weight");
    write_file(NULL, NULL);
    options.embedding = 16; /* nothing of it in the file: a fresh head */
    model = open_ok(&options);
    kith_model_info_get(model, &info);
    assert_int_equal(info.embedding, 16);
    kith_model_free(model);
    drop("fc.bias");
    write_file(NULL, NULL);
    options.classes = 0;
    assert_refused(&options, KITH_ESHAPE, "1 missing (fc.bias)"); /* half a head is no head */
}

static void test_metadata(void **state) {
    (void)state;
    kith_model_options options = base();
    begin();
    static const struct {
        const char *key, *value;
        kith_status status;
        const char *part;
    } rows[] = {
        {"nan", "", KITH_ENUMERIC, "bn4.bias holds nan at 3"},
        {"kith.backbone", "resnet50", KITH_EINVAL, "holds resnet50, asked for was convnet4"},
        {"kith.format", "99", KITH_EUNSUPPORTED, "'99'"},
        {"kith.input", "3,x,7", KITH_EFORMAT, "kith.input is '3,x,7'"},
        {"kith.input", "1e300,28,28", KITH_EFORMAT, "kith.input"},
        {"kith.preprocess.mean", "1,2", KITH_EFORMAT, "kith.preprocess.mean is '1,2'; wanted 1 numbers"},
        {"kith.preprocess.std", "0", KITH_EFORMAT, "positive"},
        {"kith.preprocess.order", "HSV", KITH_EFORMAT, "'HSV'"},
        {"kith.preprocess.resize", "squash0000000000000256", KITH_EFORMAT,
         "kith.preprocess.resize is 'squash0000000000000256'"},
        {"kith.preprocess.filter", "a-filter-of-many-words", KITH_EFORMAT,
         "kith.preprocess.filter is 'a-filter-of-many-words'; wanted bicubic or the like"},
        {"kith.preprocess.background", "1,2", KITH_EFORMAT, "kith.preprocess.background"},
        {"kith.preprocess.background", "1,2,300", KITH_EFORMAT, "wanted three numbers from 0 to 255"},
        {"kith.pool", "min", KITH_ENOTFOUND, "pool 'min'"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        write_file(rows[i].key, rows[i].value);
        assert_refused(&options, rows[i].status, rows[i].part);
    }
    options.backbone = NULL;
    drop("conv1.weight");
    write_file(NULL, NULL);
    assert_refused(&options, KITH_EINVAL, "does not say which network its weights are for");
    options.weights = NULL; /* the model that comes with kith, of a folder without one */
    assert_int_equal(setenv("KITH_MODELS", "/nowhere", 1), 0);
    assert_refused(&options, KITH_ENOTFOUND, "the model general is not installed");
    options.weights = "/nowhere/at.safetensors";
    assert_refused(&options, KITH_EIO, "/nowhere/at.safetensors");
}

/* An embedding layer of another size is an error, unless it is said how a new one starts: then that one is there, and the rest is the
 * file's. */
static void test_a_new_embedding_layer(void **state) {
    (void)state;
    begin();
    add("embedding.weight", KITH_F32, 2, 3, 8, 0, 0);
    write_file(NULL, NULL);
    kith_model_options options = base();
    options.embedding = 5;
    assert_refused(&options, KITH_ESHAPE, "embedding.weight is float32 [3, 8], wanted [5, 8]");
    options.embedding_init = "torch";
    kith_model *model = open_ok(&options);
    kith_model_info info;
    kith_model_info_get(model, &info);
    assert_int_equal(info.embedding, 5);
    kith_model_param param;
    for (int i = 0; kith_model_param_at(model, i, &param); i++) {
        kith_error err = {0};
        float values[3 * 64 * 9 * 8];
        if (strcmp(param.name, "embedding.weight") != 0 && strcmp(param.name, "conv1.weight") != 0) continue;
        assert_in_range(param.n, 1, N_ROWS(values));
        assert_ok(kith_model_param_get(model, i, values, &err), &err);
        assert_true((values[0] == 0.5f) == (strcmp(param.name, "conv1.weight") == 0));
    }
    kith_model_free(model);
    options.embedding = 3; /* as in the file: taken from there */
    model = open_ok(&options);
    assert_all_half(model);
    kith_model_free(model);
}

/* A file of halves has half-width layers and exact vectors, opens as a model with the rounded weights, and says the same of itself. */
static void test_half(void **state) {
    (void)state;
    kith_error err = {0};
    char half[300];
    snprintf(half, sizeof half, "%s/half.safetensors", testing_folder());
    kith_model_options options = base();
    options.weights = NULL;
    options.seed = 5;
    options.embedding = 4;
    kith_model *model = open_ok(&options), *again = NULL;
    assert_ok(kith_model_export_half(model, half, &err), &err);
    kith_tensors *tensors = NULL;
    assert_ok(kith_tensors_open(half, &tensors, &err), &err);
    assert_string_equal(kith_tensors_metadata(tensors, "kith.backbone"), "convnet4");
    kith_tensors_free(tensors);
    assert_ok(kith_model_open(&(kith_model_options){.size = sizeof options, .weights = half}, &again, &err),
              &err);
    assert_int_equal(kith_model_param_count(again), kith_model_param_count(model));
    kith_model_param param;
    int n_rounded = 0;
    for (int i = 0; kith_model_param_at(model, i, &param); i++) {
        float *wanted = ki_alloc((size_t)param.n, sizeof *wanted),
              *found = ki_alloc((size_t)param.n, sizeof *found);
        assert_non_null(wanted);
        assert_non_null(found);
        assert_ok(kith_model_param_get(model, i, wanted, &err), &err);
        assert_ok(kith_model_param_get(again, i, found, &err), &err);
        for (int64_t k = 0; k < param.n; k++) {
            const float value = param.n_dims > 1 ? ki_f16_to_float(ki_float_to_f16(wanted[k])) : wanted[k];
            if (found[k] != value)
                fail_msg("%s[%lld] is %a, wanted %a", param.name, (long long)k, (double)found[k],
                         (double)value);
            n_rounded += value != wanted[k];
        }
        ki_free(wanted);
        ki_free(found);
    }
    assert_true(n_rounded > 1000);
    kith_model_free(again);
    kith_model_free(model);
}

/* Nothing is written when a weight does not fit; a running variance of any size does. */
static void test_half_out_of_range(void **state) {
    (void)state;
    kith_error err = {0};
    char half[300];
    snprintf(half, sizeof half, "%s/large.safetensors", testing_folder());
    kith_model_options options = base();
    options.weights = NULL;
    kith_model *model = open_ok(&options);
    kith_model_param param;
    for (int i = 0; kith_model_param_at(model, i, &param); i++) {
        float *values = ki_alloc((size_t)param.n, sizeof *values);
        assert_non_null(values);
        assert_ok(kith_model_param_get(model, i, values, &err), &err);
        if (!strcmp(param.name, "conv2.weight")) values[3] = -65520;
        if (!strcmp(param.name, "bn2.running_var")) values[0] = 1e9f;
        assert_ok(kith_model_param_set(model, i, values, &err), &err);
        ki_free(values);
    }
    assert_int_equal(kith_model_export_half(model, half, &err), KITH_ENUMERIC);
    if (!strstr(err.message, "conv2.weight holds -65520 at 3")) fail_msg("%s", err.message);
    assert_int_not_equal(access(half, F_OK), 0);
    for (int i = 0; kith_model_param_at(model, i, &param); i++) {
        if (strcmp(param.name, "conv2.weight") != 0) continue;
        float *values = ki_alloc((size_t)param.n, sizeof *values);
        assert_non_null(values);
        for (int64_t k = 0; k < param.n; k++) values[k] = 65504;
        assert_ok(kith_model_param_set(model, i, values, &err), &err);
        ki_free(values);
    }
    assert_ok(kith_model_export_half(model, half, &err), &err);
    kith_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_and_leading_axes),
        cmocka_unit_test(test_missing_extra_misshapen_in_one_line),
        cmocka_unit_test(test_what_float32_does_not_hold),
        cmocka_unit_test(test_many_are_cut),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_a_new_embedding_layer),
        cmocka_unit_test(test_half),
        cmocka_unit_test(test_half_out_of_range),
    };
    return cmocka_run_group_tests_name("net/weights", tests, NULL, NULL);
}
