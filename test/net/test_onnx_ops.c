/* Small nets of ops that no backbone without weights has: what ONNX Runtime makes of their ONNX files, in the tier `make test-onnx`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "net/net.h"
#include "net/onnx.h"
#include "nn/plan.h"
#include "support/testing.h"

enum { MB = 3, C = 4, H = 5, W = 4, N_INPUT = MB * C * H * W };

static char output[65536];

/* From a map to a map or vectors, by one op. */
typedef int build_fn(ki_graph *graph, int x, ki_attr attr);

static int build_act(ki_graph *graph, int x, ki_attr attr) {
    return ki_graph_op(graph, KI_OP_ACT, "op", 1, &x, attr);
}
static int build_layer_norm(ki_graph *graph, int x, ki_attr attr) {
    return ki_graph_op(graph, KI_OP_LAYER_NORM, "op", 1, &x, attr);
}
static int build_layer_scale(ki_graph *graph, int x, ki_attr attr) {
    return ki_graph_op(graph, KI_OP_LAYER_SCALE, "op", 1, &x, attr);
}
static int build_drop_path(ki_graph *graph, int x, ki_attr attr) {
    x = ki_graph_op(graph, KI_OP_DROP_PATH, "op", 1, &x, attr);
    return ki_graph_relu(graph, x);
}
static int build_grn(ki_graph *graph, int x, ki_attr attr) {
    return ki_graph_op(graph, KI_OP_GRN, "op", 1, &x, attr);
}
static int build_gate(ki_graph *graph, int x, ki_attr attr) {
    const int pooled = ki_graph_global_pool(graph, "pool", x, (ki_global_pool_attr){KI_GLOBAL_AVG});
    return ki_graph_op(graph, KI_OP_GATE, "op", 2, (const int[]){x, pooled}, attr);
}
static int build_norm_of_vectors(ki_graph *graph, int x, ki_attr attr) {
    const int pooled = ki_graph_global_pool(graph, "pool", x, (ki_global_pool_attr){KI_GLOBAL_MAX});
    const int norm = ki_graph_op(graph, KI_OP_LAYER_NORM, "op", 1, &pooled, attr);
    return ki_graph_op(graph, KI_OP_LAYER_SCALE, "scale", 1, &norm, (ki_attr){.layer_scale = {0.5}});
}

static const struct {
    const char *name;
    build_fn *build;
    ki_attr attr;
} rows[] = {
    {"gelu", build_act, {.act = {KI_ACT_GELU}}},
    {"gelu_tanh", build_act, {.act = {KI_ACT_GELU_TANH}}},
    {"quick_gelu", build_act, {.act = {KI_ACT_QUICK_GELU}}},
    {"silu", build_act, {.act = {KI_ACT_SILU}}},
    {"sigmoid", build_act, {.act = {KI_ACT_SIGMOID}}},
    {"hard_swish", build_act, {.act = {KI_ACT_HARD_SWISH}}},
    {"hard_sigmoid", build_act, {.act = {KI_ACT_HARD_SIGMOID}}},
    {"layer_norm", build_layer_norm, {.layer_norm = {.eps = 1e-2}}},
    {"rms_norm", build_layer_norm, {.layer_norm = {.eps = 1e-2, .rms = true}}},
    {"norm_of_vectors", build_norm_of_vectors, {.layer_norm = {.eps = 1e-2}}},
    {"rms_of_vectors", build_norm_of_vectors, {.layer_norm = {.eps = 1e-2, .rms = true}}},
    {"layer_scale", build_layer_scale, {.layer_scale = {0.5}}},
    {"drop_path", build_drop_path, {.drop_path = {0.5}}},
    {"gate", build_gate, {{0}}},
    {"grn", build_grn, {.grn = {1e-2}}},
};
enum { N_NETS = N_ROWS(rows) };

static float input[N_INPUT], *wanted[N_NETS];
static int64_t n_wanted[N_NETS];

static const char *path_of(int m, const char *ending) {
    static char path[8][512];
    static int turn;
    turn = (turn + 1) % 8;
    snprintf(path[turn], sizeof path[turn], "%s/%s.%s", testing_folder(), m < 0 ? "list" : rows[m].name,
             ending);
    return path[turn];
}

static void draw_params(ki_params *params) {
    kith_error err;
    for (int i = 0; i < ki_params_count(params); i++) {
        const ki_param *p = ki_params_at(params, i);
        float *x = malloc((size_t)p->n * sizeof *x);
        assert_non_null(x);
        ki_rng rng = ki_rng_at(5, KI_RNG_TEST, (uint32_t)i, 0);
        for (int64_t k = 0; k < p->n; k++) x[k] = (float)(0.5 + ki_rng_double(&rng));
        assert_ok(ki_params_set(params, p, x, &err), &err);
        free(x);
    }
}

/* What kith makes of the input. */
static void run(int m, const ki_graph *graph, ki_params *params, ki_backend *backend) {
    kith_error err;
    ki_plan *plan = NULL;
    ki_shape shape;
    assert_ok(ki_plan_new(graph, params, backend,
                          &(ki_plan_options){.mb = MB, .mode = KI_INFER, .taps = {"out"}}, &plan, &err),
              &err);
    assert_ok(ki_plan_tap_shape(plan, "out", &shape, &err), &err);
    n_wanted[m] = ki_shape_count(&shape);
    wanted[m] = malloc((size_t)n_wanted[m] * sizeof(float));
    assert_non_null(wanted[m]);
    assert_ok(ki_plan_set_input(plan, input, &err), &err);
    assert_ok(ki_plan_forward(plan, &err), &err);
    assert_ok(ki_plan_read(plan, "out", wanted[m], &err), &err);
    ki_plan_free(plan);
}

/* The net of a backbone with another graph, whose input needs no preprocessing. */
static void make_net(int m, ki_backend *backend) {
    kith_error err;
    ki_net net;
    ki_params *params = NULL;
    assert_ok(ki_net_init(&(ki_net_options){.backbone = "convnet4", .c = C}, &net, &err), &err);
    ki_graph_free(net.graph);
    net.h = H, net.w = W;
    net.preprocess = (kith_preprocess){.scale = 1};
    for (int c = 0; c < C; c++) net.preprocess.std[c] = 1;
    assert_ok(ki_graph_new(&net.graph, &err), &err);
    const int x = ki_graph_input(net.graph, C, H, W);
    ki_graph_tap(net.graph, rows[m].build(net.graph, x, rows[m].attr), "out");
    assert_ok(ki_graph_check(net.graph, &err), &err);
    assert_ok(ki_params_new(net.graph, backend, &params, &err), &err);
    draw_params(params);
    run(m, net.graph, params, backend);
    assert_ok(
        ki_onnx_save(&net, params, &(ki_onnx_options){.tap = "out", .resize = ""}, path_of(m, "onnx"), &err),
        &err);
    ki_params_free(params);
    ki_net_release(&net);
}

static int make_nets(void **state) {
    (void)state;
    kith_error err;
    ki_backend *backend = NULL;
    ki_rng rng = ki_rng_at(7, KI_RNG_TEST, 0, 0);
    for (int i = 0; i < N_INPUT; i++) input[i] = (float)(3 * ki_rng_normal(&rng));
    assert_ok(ki_backend_open("ref", NULL, &backend, &err), &err);
    for (int m = 0; m < N_NETS; m++) make_net(m, backend);
    ki_backend_close(backend);
    FILE *file = fopen(path_of(-1, "in"), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(input, sizeof *input, N_INPUT, file), N_INPUT);
    fclose(file);
    return 0;
}

/* Every net was written, whatever the tier. */
static void test_all_are_exported(void **state) {
    (void)state;
    for (int m = 0; m < N_NETS; m++) {
        FILE *file = fopen(path_of(m, "onnx"), "rb");
        if (!file) fail_msg("%s is not there", path_of(m, "onnx"));
        fclose(file);
    }
}

/* The line is read by scripts/count-tests.awk. */
static void skip_outside_the_tier(void) {
    const char *tier = getenv("KITH_TIER");
    if (tier && strcmp(tier, "onnx") == 0) return;
    print_message("skipped: make test-onnx runs these\n");
    skip();
}

static void test_checker(void **state) {
    (void)state;
    skip_outside_the_tier();
    if (testing_run(output, sizeof output,
                    "/usr/bin/python3 -c 'import glob, onnx\n"
                    "for f in glob.glob(\"%s/*.onnx\"): onnx.checker.check_model(f, full_check=True)'",
                    testing_folder()) != 0)
        fail_msg("onnx.checker: %s", output);
}

static void compare(int m) {
    FILE *file = fopen(path_of(m, "out"), "rb");
    if (!file) fail_msg("%s: no output", rows[m].name);
    float *x = malloc((size_t)(n_wanted[m] + 1) * sizeof *x);
    assert_non_null(x);
    const size_t n = fread(x, sizeof *x, (size_t)n_wanted[m] + 1, file);
    fclose(file);
    if ((int64_t)n != n_wanted[m])
        fail_msg("%s: %zu numbers, wanted %lld", rows[m].name, n, (long long)n_wanted[m]);
    double most = 0, largest = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)x[i] - (double)wanted[m][i]));
        largest = fmax(largest, fabs((double)wanted[m][i]));
    }
    free(x);
    print_message("%s: off by %.2g of the largest value\n", rows[m].name, most / largest);
    if (!(largest > 0) || !(most <= 1e-5 * largest))
        fail_msg("%s: off by %g, the largest value is %g", rows[m].name, most, largest);
}

static void test_runtime(void **state) {
    (void)state;
    char text[16384];
    size_t used = 0;
    skip_outside_the_tier();
    for (int m = 0; m < N_NETS; m++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s %s %s %d %d %d %d\n",
                                 path_of(m, "onnx"), path_of(-1, "in"), path_of(m, "out"), MB, C, H, W);
        assert_true(used < sizeof text);
    }
    testing_write(path_of(-1, "txt"), text);
    if (testing_run(output, sizeof output,
                    "S=%s && NODE_PATH=\"$S/test/onnx/node_modules\" node \"$S/test/net/onnx_run.js\" %s",
                    testing_source(), path_of(-1, "txt")) != 0)
        fail_msg("ONNX Runtime: %s", output);
    for (int m = 0; m < N_NETS; m++) compare(m);
}

static int tear_down(void **state) {
    for (int m = 0; m < N_NETS; m++) free(wanted[m]);
    return testing_tear_down(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_exported),
        cmocka_unit_test(test_checker),
        cmocka_unit_test(test_runtime),
    };
    return cmocka_run_group_tests_name("net/onnx ops", tests, make_nets, tear_down);
}
