/* Small networks of other libraries: kith's families of convolutions and Swin, with their weights under their names, give the features and
 * gradients that the libraries gave (test/golden/net/README.md says how the files were made). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "kith/array.h"
#include "net/convnext.h"
#include "net/mobile.h"
#include "net/names/names.h"
#include "net/resnet.h"
#include "net/swin.h"
#include "nn/plan.h"
#include "support/testing.h"

/* Of the largest number. */
static const double of_features = 1e-5, of_gradients = 1e-4;

/* ---- the networks ---- */

static int add_resnet_basic(ki_graph *graph, int input) {
    static const ki_resnet net = {true, {2, 1, 1, 1}, {6, 8, 10, 12}};
    return ki_resnet_add(graph, input, &net, KI_RESNET_STRIDE_3X3);
}

static int add_resnet_bottleneck(ki_graph *graph, int input) {
    static const ki_resnet net = {false, {2, 1, 1, 1}, {4, 4, 6, 8}};
    return ki_resnet_add(graph, input, &net, KI_RESNET_STRIDE_3X3);
}

/* Stages have other numbers in torchvision's network, whose names say nothing of them. */
static int add_mobilenet_torchvision(ki_graph *graph, int input) {
    static const ki_mobilenet_row rows[] = {{0, 0, 3, 8, 8, false, KI_MOBILE_RELU, 1},
                                            {1, 0, 3, 16, 8, true, KI_MOBILE_RELU, 2},
                                            {1, 1, 5, 24, 8, true, KI_MOBILE_HARD_SWISH, 1},
                                            {2, 0, 5, 24, 8, false, KI_MOBILE_HARD_SWISH, 2}};
    static const ki_mobilenet net = {8, N_ROWS(rows), rows, 6, {1e-3, 0.01}};
    return ki_mobilenet_add(graph, input, &net);
}

static int add_mobilenet_timm(ki_graph *graph, int input) {
    static const ki_mobilenet_row rows[] = {{0, 0, 3, 8, 8, false, KI_MOBILE_RELU, 1},
                                            {1, 0, 3, 16, 8, true, KI_MOBILE_RELU, 2},
                                            {2, 0, 5, 24, 8, true, KI_MOBILE_HARD_SWISH, 1},
                                            {3, 0, 5, 24, 8, false, KI_MOBILE_HARD_SWISH, 2}};
    static const ki_mobilenet net = {8, N_ROWS(rows), rows, 4, {1e-5, 0.1}};
    return ki_mobilenet_add(graph, input, &net);
}

static int mobilenet_neck(ki_graph *graph, int pooled, const void *settings) {
    (void)settings;
    const int x = ki_graph_linear(graph, "conv_head", pooled, (ki_linear_attr){.oc = 24, .bias = true});
    return ki_mobile_act_add(graph, x, KI_MOBILE_HARD_SWISH);
}

static int add_efficientnet(ki_graph *graph, int input) {
    static const ki_efficientnet_stage stages[] = {{1, 3, 1, 8, 1}, {4, 3, 2, 8, 2}, {3, 5, 2, 16, 1}};
    return ki_efficientnet_add(graph, input, 8, N_ROWS(stages), stages, (ki_bn_attr){1e-5, 0.1}, 0);
}

static int add_convnext(ki_graph *graph, int input) {
    static const ki_convnext net = {{1, 1, 2, 1}, {6, 8, 12, 16}, false, 0};
    return ki_convnext_add(graph, input, &net);
}

static int add_convnext_v2(ki_graph *graph, int input) {
    static const ki_convnext net = {{1, 1, 2, 1}, {6, 8, 12, 16}, true, 0};
    return ki_convnext_add(graph, input, &net);
}

static int add_swin(ki_graph *graph, int input) {
    static const ki_swin net = {.patch = 2,
                                .window = 4,
                                .width = 6,
                                .n_stages = 3,
                                .n_blocks = {2, 2, 1},
                                .heads = {1, 2, 4},
                                .mlp_ratio = 2};
    return ki_swin_add(graph, input, &net);
}

/* ---- a network on a backend ---- */

typedef struct golden {
    const char *file;
    int (*add)(ki_graph *graph, int input);
    int (*neck)(ki_graph *graph, int pooled, const void *settings);
    bool is_channels_last; /* features [mb, h, w, c] or [mb, h * w, c] */
    bool only_first_size;  /* the library computes otherwise with images of the second */
} golden;

typedef struct net {
    const golden *row;
    ki_backend *backend;
    ki_graph *graph;
    ki_params *params;
    ki_plan *plan;
    kith_tensors *weights, *wanted;
    ki_named *named;
} net;

static kith_tensors *open_file(const char *file, const char *ending) {
    char path[512];
    kith_error err = {0};
    kith_tensors *tensors = NULL;
    snprintf(path, sizeof path, "%s/test/golden/net/%s%s", KITH_SOURCE_DIR, file, ending);
    assert_ok(kith_tensors_open(path, &tensors, &err), &err);
    return tensors;
}

static kith_array get(const net *n, const char *name) {
    kith_error err = {0};
    kith_array view;
    assert_ok(kith_tensors_get(n->wanted, name, &view, &err), &err);
    assert_int_equal(view.dtype, KITH_F32);
    return view;
}

static float *copy_of(const kith_array *view) {
    const size_t n = (size_t)kith_array_count(view);
    float *values = ki_alloc(n, sizeof *values);
    assert_non_null(values);
    memcpy(values, view->data, n * sizeof *values);
    return values;
}

static void read_params(net *n) {
    kith_error err = {0};
    for (int i = 0; i < ki_params_count(n->params); i++) {
        const ki_param *param = ki_params_at(n->params, i);
        float *values = ki_alloc((size_t)param->n, sizeof *values);
        assert_non_null(values);
        if (ki_named_values(n->named, param->name, values, param->n, &err) != KITH_OK)
            fail_msg("%s: %s: %s", n->row->file, param->name, err.message);
        assert_ok(ki_params_set(n->params, param, values, &err), &err);
        ki_free(values);
    }
}

static void set_up(net *n, const golden *row, const char *device, ki_mode mode, const kith_array *input) {
    kith_error err = {0};
    *n = (net){.row = row, .weights = open_file(row->file, ".safetensors")};
    n->wanted = open_file(row->file, ".golden.safetensors");
    assert_ok(ki_named_new(n->weights, "", &n->named, &err), &err);
    assert_ok(ki_backend_open(device, NULL, &n->backend, &err), &err);
    assert_ok(ki_graph_new(&n->graph, &err), &err);
    const int map = row->add(n->graph, ki_graph_input(n->graph, input->dim[1], input->dim[2], input->dim[3]));
    ki_graph_tap(n->graph, map, "map");
    int pooled = ki_graph_global_pool(n->graph, "pool", map, (ki_global_pool_attr){KI_GLOBAL_AVG});
    if (row->neck) pooled = row->neck(n->graph, pooled, NULL);
    ki_graph_tap(n->graph, pooled, "pooled");
    assert_ok(ki_graph_check(n->graph, &err), &err);
    assert_ok(ki_params_new(n->graph, n->backend, &n->params, &err), &err);
    read_params(n);
    const ki_plan_options options = {.mb = input->dim[0],
                                     .mode = mode,
                                     .frozen_bn = true,
                                     .taps = {"map", "pooled"},
                                     .grad_taps = {mode == KI_TRAIN ? "map" : NULL, "pooled"}};
    assert_ok(ki_plan_new(n->graph, n->params, n->backend, &options, &n->plan, &err), &err);
}

static void tear_down(net *n) {
    ki_plan_free(n->plan);
    ki_params_free(n->params);
    ki_graph_free(n->graph);
    ki_backend_close(n->backend);
    ki_named_free(n->named);
    kith_tensors_free(n->wanted);
    kith_tensors_free(n->weights);
}

/* ---- comparing ---- */

static void assert_close(const net *n, const char *what, const float *found, const float *wanted,
                         int64_t count, double tolerance) {
    double most = 0;
    for (int64_t i = 0; i < count; i++) most = fmax(most, fabs((double)wanted[i]));
    for (int64_t i = 0; i < count; i++) {
        const double off = fabs((double)found[i] - (double)wanted[i]);
        if (!(off <= tolerance * most))
            fail_msg("%s: %s[%d] is %.8g, wanted %.8g (of at most %g)", n->row->file, what, (int)i,
                     (double)found[i], (double)wanted[i], most);
    }
}

/* [mb, c, pixels] from the library's order, [mb, pixels, c] if channels are last. */
static float *as_map(const net *n, const kith_array *view, const ki_shape *map) {
    float *values = copy_of(view);
    if (!n->row->is_channels_last) return values;
    const float *from = view->data;
    const int64_t c = map->dim[1], pixels = map->dim[2] * map->dim[3];
    for (int64_t row = 0; row < map->dim[0]; row++)
        for (int64_t p = 0; p < pixels; p++)
            for (int64_t k = 0; k < c; k++)
                values[(row * c + k) * pixels + p] = from[(row * pixels + p) * c + k];
    return values;
}

static void check_taps(net *n, const char *features, const char *pooled) {
    kith_error err = {0};
    ki_shape shape;
    const kith_array map = get(n, features), vector = get(n, pooled);
    assert_ok(ki_plan_tap_shape(n->plan, "map", &shape, &err), &err);
    assert_int_equal(ki_shape_count(&shape), kith_array_count(&map));
    float *found = copy_of(&map), *wanted = as_map(n, &map, &shape);
    assert_ok(ki_plan_read(n->plan, "map", found, &err), &err);
    assert_close(n, features, found, wanted, ki_shape_count(&shape), of_features);
    ki_free(wanted);
    ki_free(found);
    found = copy_of(&vector);
    wanted = copy_of(&vector);
    assert_ok(ki_plan_tap_shape(n->plan, "pooled", &shape, &err), &err);
    assert_int_equal(ki_shape_count(&shape), kith_array_count(&vector));
    assert_ok(ki_plan_read(n->plan, "pooled", found, &err), &err);
    assert_close(n, pooled, found, wanted, ki_shape_count(&shape), of_features);
    ki_free(wanted);
    ki_free(found);
}

static void forward(net *n, const kith_array *input) {
    kith_error err = {0};
    float *values = copy_of(input);
    assert_ok(ki_plan_set_input(n->plan, values, &err), &err);
    assert_ok(ki_plan_forward(n->plan, &err), &err);
    ki_free(values);
}

/* Our parameter of theirs. */
static const ki_param *param_of(const net *n, const char *theirs) {
    for (int i = 0; i < ki_named_count(n->named); i++) {
        if (strcmp(ki_named_theirs(n->named, i), theirs) == 0)
            return ki_params_find(n->params, ki_named_name(n->named, i));
    }
    return NULL;
}

/* All gradients whose names begin with this, which are of the sum of the tap times r. */
static int check_grads(net *n, const char *tap, const char *r, const char *prefix) {
    kith_error err = {0};
    ki_shape shape;
    int n_checked = 0;
    const kith_array factors = get(n, r);
    assert_ok(ki_plan_tap_shape(n->plan, tap, &shape, &err), &err);
    float *grad = strcmp(tap, "map") == 0 ? as_map(n, &factors, &shape) : copy_of(&factors);
    assert_ok(ki_params_zero_diffs(n->params, &err), &err);
    assert_ok(ki_plan_set_grad(n->plan, tap, grad, &err), &err);
    assert_ok(ki_plan_backward(n->plan, &err), &err);
    ki_free(grad);
    for (int64_t i = 0; i < kith_tensors_count(n->wanted); i++) {
        const char *name = kith_tensors_name(n->wanted, i);
        if (strncmp(name, prefix, strlen(prefix)) != 0) continue;
        const ki_param *param = param_of(n, name + strlen(prefix));
        if (!param) fail_msg("%s: no parameter for %s", n->row->file, name);
        const kith_array view = get(n, name);
        float *found = ki_alloc((size_t)param->n, sizeof *found), *wanted = copy_of(&view);
        assert_non_null(found);
        assert_ok(ki_params_get_diff(n->params, param, found, &err), &err);
        /* of several that are joined in ours, the first */
        assert_in_range(kith_array_count(&view), 1, param->n);
        assert_close(n, name, found, wanted, kith_array_count(&view), of_gradients);
        ki_free(wanted);
        ki_free(found);
        n_checked++;
    }
    return n_checked;
}

static bool has(const net *n, const char *name) {
    kith_array view;
    return kith_tensors_get(n->wanted, name, &view, NULL) == KITH_OK;
}

static void check(const golden *row, const char *device, ki_mode mode) {
    kith_tensors *wanted = open_file(row->file, ".golden.safetensors");
    for (int i = 0; i < (row->only_first_size ? 1 : 2); i++) {
        net n;
        kith_array input;
        kith_error err = {0};
        assert_ok(kith_tensors_get(wanted, i ? "input2" : "input", &input, &err), &err);
        set_up(&n, row, device, mode, &input);
        forward(&n, &input);
        check_taps(&n, i ? "features2" : "features", i ? "pooled2" : "pooled");
        if (i == 0 && mode == KI_TRAIN) {
            assert_true(check_grads(&n, "map", "r", "grad:") > 2);
            if (has(&n, "r_pooled")) {
                forward(&n, &input);
                assert_true(check_grads(&n, "pooled", "r_pooled", "pooled_grad:") > 0);
            }
        }
        tear_down(&n);
    }
    kith_tensors_free(wanted);
}

static void check_all(const golden *rows, size_t n) {
    for (size_t i = 0; i < n; i++) {
        check(&rows[i], "ref", KI_TRAIN);
        check(&rows[i], "cpu", KI_TRAIN);
        check(&rows[i], "ref", KI_INFER);
        check(&rows[i], "cpu", KI_INFER);
    }
}

static void test_resnet(void **state) {
    (void)state;
    static const golden rows[] = {
        {"torchvision/resnet_basic", add_resnet_basic, NULL, false, false},
        {"torchvision/resnet_bottleneck", add_resnet_bottleneck, NULL, false, false}};
    check_all(rows, N_ROWS(rows));
}

static void test_mobilenet(void **state) {
    (void)state;
    static const golden rows[] = {
        {"torchvision/mobilenet_v3", add_mobilenet_torchvision, mobilenet_neck, false, false},
        {"timm/mobilenetv3", add_mobilenet_timm, mobilenet_neck, false, false}};
    check_all(rows, N_ROWS(rows));
}

static void test_efficientnet(void **state) {
    (void)state;
    static const golden rows[] = {{"torchvision/efficientnet", add_efficientnet, NULL, false, false},
                                  {"timm/efficientnet", add_efficientnet, NULL, false, false}};
    check_all(rows, N_ROWS(rows));
}

static void test_convnext(void **state) {
    (void)state;
    static const golden rows[] = {
        {"torchvision/convnext", add_convnext, ki_convnext_neck, false, false},
        {"timm/convnext", add_convnext, ki_convnext_neck, false, false},
        {"timm/convnextv2", add_convnext_v2, ki_convnext_neck, false, false},
        {"transformers/convnext", add_convnext, ki_convnext_neck, false, false},
        {"transformers/convnextv2", add_convnext_v2, ki_convnext_neck, false, false}};
    check_all(rows, N_ROWS(rows));
}

/* timm pads after it has rolled, the others before. */
static void test_swin(void **state) {
    (void)state;
    static const golden rows[] = {{"torchvision/swin", add_swin, NULL, true, false},
                                  {"timm/swin", add_swin, NULL, true, true},
                                  {"transformers/swin", add_swin, NULL, true, false}};
    check_all(rows, N_ROWS(rows));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resnet),       cmocka_unit_test(test_mobilenet),
        cmocka_unit_test(test_efficientnet), cmocka_unit_test(test_convnext),
        cmocka_unit_test(test_swin),
    };
    return cmocka_run_group_tests_name("net/convs_golden", tests, NULL, NULL);
}
