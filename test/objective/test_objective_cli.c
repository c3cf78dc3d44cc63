/* kith objective and the rest, as a user types it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kith/array.h"
#include "support/testing.h"

enum { N = 24, D = 6 };
static char folder[256], output[1 << 16];

static void write_text(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    testing_write(path, text);
}

static void write_array(const char *name, kith_dtype dtype, int n_dims, const int64_t *dim, void *data) {
    char path[512];
    kith_error err = {0};
    kith_array array = {.dtype = dtype, .n_dims = n_dims, .data = data};
    memcpy(array.dim, dim, (size_t)n_dims * sizeof *dim);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(kith_npy_write(path, &array, &err), &err);
}

static int set_up(void **state) {
    (void)state;
    static float x[N * D];
    static int64_t y[N];
    static int32_t y_short[N - 1];
    snprintf(folder, sizeof folder, "%s", testing_folder());
    setenv("OMP_NUM_THREADS", "1", 1); /* the arrays are small */
    for (int i = 0; i < N; i++) {
        y[i] = i / 4;
        for (int k = 0; k < D; k++) x[i * D + k] = (float)(sin(2.3 * i + k * k) + 1.5 * (k == i / 4));
    }
    for (int i = 0; i < N - 1; i++) y_short[i] = (int32_t)y[i];
    write_array("x.npy", KITH_F32, 2, (int64_t[]){N, D}, x);
    write_array("y.npy", KITH_I64, 1, (int64_t[]){N}, y);
    write_array("y_short.npy", KITH_I32, 1, (int64_t[]){N - 1}, y_short);
    x[13] = NAN;
    write_array("x_nan.npy", KITH_F32, 2, (int64_t[]){N, D}, x);
    write_text("r.yaml",
               "data: {dataset: cub}\nobjective:\n  loss: {name: binomial}\n  regularizers:\n"
               "    - {name: energy_confusion, weight: 0.13, form: log}\n");
    write_text("none.yaml",
               "objective:\n  loss: {name: none}\n  regularizers:\n    - {name: energy_confusion}\n");
    write_text("am.yaml", "objective:\n  loss: {name: amsoftmax}\n");
    write_text("horde.yaml", "objective:\n  loss: {name: binomial}\n  regularizers: [{name: horde}]\n");
    write_text("jrd.yaml",
               "objective:\n  loss: {name: binomial}\n  regularizers: [{name: joint_similarity}]\n");
    write_text("norm.yaml",
               "objective:\n  loss: {name: binomial}\n  regularizers: [{name: row_norm_penalty}]\n");
    static float t[2][N * 9];
    for (int i = 0; i < N * 9; i++) t[0][i] = (float)sin(0.7 * i), t[1][i] = (float)cos(1.9 * i);
    write_array("t0.npy", KITH_F32, 2, (int64_t[]){N, 9}, t[0]);
    write_array("t1.npy", KITH_F32, 2, (int64_t[]){N, 5}, t[1]);
    write_array("t_short.npy", KITH_F32, 2, (int64_t[]){N - 1, 5}, t[1]);
    static int64_t some[N];
    for (int i = 0; i < N; i++) some[i] = i < 12 ? i / 4 : -1;
    write_array("y_some.npy", KITH_I64, 1, (int64_t[]){N}, some);
    write_text("teach.yaml",
               "objective:\n  loss: {name: binomial}\n  regularizers:\n"
               "    - {name: relational, form: softmax, weight: 0.5}\n    - {name: match, teacher: 1}\n");
    write_text("typo.yaml", "objective:\n  loss: {name: binomail}\n");
    return 0;
}

static void expect(int status, const char *wanted, const char *arguments) {
    const int found =
        testing_run(output, sizeof output, "cd %s && %s %s", folder, testing_program(), arguments);
    if (found != status || !strstr(output, wanted))
        fail_msg("kith %s: status %d, wanted %d with \"%s\"; printed: %s", arguments, found, status, wanted,
                 output);
}

static void test_values_and_files(void **state) {
    (void)state;
    expect(0, "\"terms\": {\"binomial\": ",
           "objective r.yaml --labels y.npy --embedding x.npy --out grads --json");
    double total = 0, binomial = 0, confusion = 0;
    const char *at = strstr(output, "\"total\": ");
    assert_non_null(at);
    total = strtod(at + 9, NULL);
    binomial = strtod(strstr(output, "\"binomial\": ") + 12, NULL);
    confusion = strtod(strstr(output, "\"energy_confusion\": ") + 20, NULL);
    assert_true(fabs(total - binomial - 0.13 * confusion) < 1e-9);
    char path[512];
    kith_error err = {0};
    kith_array gradient, weights;
    snprintf(path, sizeof path, "%s/grads/grad_embedding.npy", folder);
    assert_ok(kith_npy_read(path, &gradient, &err), &err);
    assert_int_equal(gradient.dim[0], N);
    assert_int_equal(gradient.dim[1], D);
    snprintf(path, sizeof path, "%s/grads/weights.npy", folder);
    assert_ok(kith_npy_read(path, &weights, &err), &err);
    assert_int_equal(weights.dim[1], N);
    /* Binomial deviance attracts every positive and repels every negative. */
    const float *w = weights.data;
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) assert_true(i == j ? w[i * N + j] == 0 : w[i * N + j] >= 0);
    }
    kith_array_release(&gradient);
    kith_array_release(&weights);
    expect(0, "total", "objective r.yaml --labels y.npy --embedding x.npy");
    char names[512];
    snprintf(names, sizeof names, "%s/y.txt", testing_folder());
    testing_write(names, "a\na\nb\nb\nc\nc\nd\nd\na\na\nb\nb\nc\nc\nd\nd\na\na\nb\nb\nc\nc\nd\nd\n");
    expect(0, "total", "objective r.yaml --labels y.txt --embedding x.npy");
    expect(0, "energy_confusion", "objective none.yaml --labels y.npy --embedding x.npy");
}

static void test_state_comes_and_goes(void **state) {
    (void)state;
    expect(0, "\"total\"", "objective am.yaml --labels y.npy --embedding x.npy --out am --json");
    char path[512];
    kith_error err = {0};
    kith_tensors *file = NULL;
    kith_array view;
    snprintf(path, sizeof path, "%s/am/grad_state.safetensors", folder);
    assert_ok(kith_tensors_open(path, &file, &err), &err);
    assert_ok(kith_tensors_get(file, "proxies", &view, &err), &err);
    assert_int_equal(view.dim[0], N / 4);
    assert_int_equal(view.dim[1], D);
    kith_tensors_free(file);
    /* A gradient has the shape of its parameter, so it will do as one. */
    expect(0, "\"total\"",
           "objective am.yaml --labels y.npy --embedding x.npy --state am/grad_state.safetensors --json");
    expect(1, "belongs to no term",
           "objective r.yaml --labels y.npy --embedding x.npy --state am/grad_state.safetensors");
}

static void test_drawing(void **state) {
    (void)state;
    char path[512];
    expect(0, "", "objective r.yaml --plot made_up.svg");
    expect(0, "total", "objective r.yaml --labels y.npy --embedding x.npy --plot real.svg");
    snprintf(path, sizeof path, "%s/real.svg", folder);
    char *svg = testing_read(path);
    assert_true(strncmp(svg, "<svg", 4) == 0);
    assert_non_null(strstr(svg, "binomial: weight of a pair"));
    int n_dots = 0;
    for (const char *at = svg; (at = strstr(at, "<circle")) != NULL; at++) n_dots++;
    assert_int_equal(n_dots, N * (N - 1) + 2); /* one for each ordered pair, two in the legend */
    assert_string_equal(svg + strlen(svg) - 7, "</svg>\n");
    free(svg);
}

static void test_one_line_for_bad_input(void **state) {
    (void)state;
    expect(1, "unknown device 'cudda'", "objective r.yaml --labels y.npy --embedding x.npy --device cudda");
    expect(1, "device ref does not evaluate objectives itself", "bench objective --batch 8 --device ref");
    expect(1, "x.npy has 24 rows, but there are 23 labels",
           "objective r.yaml --labels y_short.npy --embedding x.npy");
    expect(1, "embedding[2, 1] is NaN", "objective r.yaml --labels y.npy --embedding x_nan.npy");
    expect(1, "did you mean 'binomial'?", "objective typo.yaml --labels y.npy --embedding x.npy");
    expect(1, "the objective reads embedding", "objective r.yaml --labels y.npy");
    expect(1, "x.npy has 2 dimensions; wanted 1", "objective r.yaml --labels x.npy --embedding x.npy");
    expect(1, "none.npy", "objective r.yaml --labels y.npy --embedding none.npy");
    expect(2, "--labels is missing", "objective r.yaml --embedding x.npy");
    expect(1, "the objective has no loss, so there are no pair weights", "objective none.yaml --plot p.svg");
}

static void test_lists_and_benchmark(void **state) {
    (void)state;
    expect(0, "margin = 0.1", "list miners");
    expect(0, "sqeuclidean|euclidean|cosine", "list losses");
    expect(0, "energy_confusion", "list regularizers");
    expect(0, "raw+vthm", "bench objective --loss raw+vthm --batch 32 --dim 16 --steps 3");
    expect(0, "\"product_milliseconds\"",
           "bench objective --loss triplet --batch 32 --dim 16 --steps 3 --json");
    expect(1, "unknown loss", "bench objective --loss rawr --batch 32");
    expect(2, "--batch is", "bench objective --batch many");
}

static void test_example_learns(void **state) {
    (void)state;
    char *slash = NULL, program[1024];
    snprintf(program, sizeof program, "%s", testing_program_path());
    slash = strrchr(program, '/');
    assert_non_null(slash);
    snprintf(slash, sizeof program - (size_t)(slash - program), "/examples/train_projection");
    if (access(program, X_OK) != 0) skip();
    assert_int_equal(testing_run(output, sizeof output, "'%s'", program), 0);
    double before = -1, after = -1;
    const char *at = strstr(output, "trained on: ");
    assert_non_null(at);
    before = strtod(at + 12, NULL);
    at = strstr(at + 1, "trained on: ");
    assert_non_null(at);
    after = strtod(at + 12, NULL);
    if (!(before < 0.2 && after > 0.5)) fail_msg("recall %.3f before, %.3f after", before, after);
}

/* The hint is an option of the command, not a struct of the library. */
static void test_missing_arrays(void **state) {
    (void)state;
    expect(1, "reads map, which is not given (give feature maps [m, c, h, w] with --map M.npy)",
           "objective horde.yaml --labels y.npy --embedding x.npy");
    expect(1, "reads pooled, which is not given (give pooled features [m, c] with --pooled P.npy)",
           "objective jrd.yaml --labels y.npy --embedding x.npy");
    expect(1, "reads embedding, which is not given (give embeddings [m, d] with --embedding X.npy)",
           "objective r.yaml --labels y.npy");
    expect(1, "reads weight, which is not given (give a file that has embedding.weight with --state",
           "objective norm.yaml --labels y.npy --embedding x.npy");
}

static double term(const char *name) {
    char key[64];
    snprintf(key, sizeof key, "\"%s\": ", name);
    const char *at = strstr(output, key);
    if (!at) fail_msg("no %s in %s", name, output);
    return strtod(at + strlen(key), NULL);
}

/* What teachers say is given as arrays, the second for teacher 1; items without a class count for them alone. */
static void test_teachers(void **state) {
    (void)state;
    static const char both[] =
        "objective teach.yaml --embedding x.npy --teacher t0.npy --teacher t1.npy --json";
    char arguments[512];
    snprintf(arguments, sizeof arguments, "%s --labels y.npy --out taught", both);
    expect(0, "\"match\": ", arguments);
    const double relational = term("relational"), match = term("match"), binomial = term("binomial");
    assert_true(relational > 0 && match > 0 && match < 2);
    kith_error err = {0};
    kith_array weights;
    char path[512];
    kith_tensors *file = NULL;
    kith_array view;
    snprintf(path, sizeof path, "%s/taught/grad_state.safetensors", folder);
    assert_ok(kith_tensors_open(path, &file, &err), &err);
    assert_ok(kith_tensors_get(file, "match.1.weight", &view, &err), &err);
    assert_int_equal(view.dim[0], 5);
    assert_int_equal(view.dim[1], D);
    kith_tensors_free(file);
    snprintf(arguments, sizeof arguments, "%s --labels y_some.npy --out some", both);
    expect(0, "\"match\": ", arguments);
    assert_true(term("relational") == relational && term("match") == match && term("binomial") != binomial);
    snprintf(path, sizeof path, "%s/some/weights.npy", folder);
    assert_ok(kith_npy_read(path, &weights, &err), &err);
    assert_int_equal(weights.dim[0], 12);
    assert_int_equal(weights.dim[1], 12);
    kith_array_release(&weights);

    expect(1,
           "reads teacher_1, which is not given (give what each teacher says [m, w] with --teacher T.npy, in "
           "order)",
           "objective teach.yaml --labels y.npy --embedding x.npy --teacher t0.npy");
    expect(1, "t_short.npy has 23 rows, but there are 24 labels",
           "objective teach.yaml --labels y.npy --embedding x.npy --teacher t0.npy --teacher t_short.npy");
    expect(1, "--teacher is given 5 times; at most 4 are possible",
           "objective teach.yaml --labels y.npy --embedding x.npy --teacher t0.npy --teacher t0.npy "
           "--teacher t0.npy "
           "--teacher t0.npy --teacher t0.npy");
    expect(0, "recipe",
           "bench objective --recipe '{loss: none, regularizers: [relational, {name: match, teacher: 1}]}' "
           "--batch 16 --dim 8 --steps 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_and_files), cmocka_unit_test(test_state_comes_and_goes),
        cmocka_unit_test(test_drawing),          cmocka_unit_test(test_one_line_for_bad_input),
        cmocka_unit_test(test_missing_arrays),   cmocka_unit_test(test_lists_and_benchmark),
        cmocka_unit_test(test_example_learns),   cmocka_unit_test(test_teachers),
    };
    return cmocka_run_group_tests_name("objective/cli", tests, set_up, NULL);
}
