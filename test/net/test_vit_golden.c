/* Vision transformers of other libraries, from the files that these wrote: all tokens behind the last norm at two sizes of images, the
 * pooled vector, and gradients, as the libraries computed them (test/golden/net). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/net.h"
#include "net/recognise.h"
#include "net/weights.h"
#include "nn/plan.h"
#include "support/testing.h"

typedef struct row {
    const char *file, *backbone, *before; /* the node whose output are the features; NULL: the last norm */
    const char *pooled;                   /* the tap that `pooled` of the file is; NULL: none of ours */
    ki_pooling pool;
    bool resizes;
} row;

static const row rows[] = {
    {"timm/vit", "vit_t", NULL, "pooled", KI_POOLING_CLASS, true},
    {"timm/vit_reg4_dinov2", "vit_t", NULL, "pooled", KI_POOLING_CLASS, true},
    /* behind a pooler of its own */
    {"transformers/vit", "vit_t", NULL, NULL, KI_POOLING_CLASS, true},
    {"transformers/dinov2", "vit_t", NULL, "pooled", KI_POOLING_CLASS, true},
    {"transformers/dinov2_swiglu", "vit_t", NULL, "pooled", KI_POOLING_CLASS, true},
    {"transformers/dinov2_with_registers", "vit_t", NULL, "pooled", KI_POOLING_CLASS, true},
    {"transformers/clip", "vit_t", "blocks.1.add2", "pooled", KI_POOLING_CLASS, true},
    {"transformers/siglip", "vit_t", NULL, "pooled", KI_POOLING_ATTENTION, true},
    /* positions are resampled in another way, which its network itself never does */
    {"torchvision/vit", "vit_t", NULL, "pooled", KI_POOLING_CLASS, false},
    {"original/dino", "vit_t", NULL, "pooled", KI_POOLING_CLASS, true},
    {"original/dinov2", "vit_t", NULL, "pooled", KI_POOLING_CLASS, true},
    {"original/dinov2_reg", "vit_t", NULL, "pooled", KI_POOLING_CLASS, true},
    /* behind a projection */
    {"original/clip", "vit_t", "blocks.0.add2", NULL, KI_POOLING_CLASS, false},
};

/* A file's network on one backend. */
typedef struct side {
    kith_tensors *weights, *golden;
    ki_named *named;
    ki_contract config;
    ki_arena arena;
    ki_backend *backend;
    ki_net net;
    ki_params *params;
} side;

static void read_config(side *s, const char *path) {
    char *text = testing_read(path);
    kith_error err = {0};
    assert_ok(ki_contract_parse(text, strlen(text), &s->config, &err), &err);
    free(text);
}

static void open_side(side *s, const row *r, const char *device, int64_t h, int64_t w) {
    char path[600];
    kith_error err = {0};
    const ki_backbone *found = NULL;
    ki_recognised known;
    ki_net_options options = {.h = h, .w = w};
    *s = (side){0};
    snprintf(path, sizeof path, "%s/test/golden/net/%s.safetensors", KITH_SOURCE_DIR, r->file);
    assert_ok(kith_tensors_open(path, &s->weights, &err), &err);
    snprintf(path, sizeof path, "%s/test/golden/net/%s.golden.safetensors", KITH_SOURCE_DIR, r->file);
    assert_ok(kith_tensors_open(path, &s->golden, &err), &err);
    snprintf(path, sizeof path, "%s/test/golden/net/%s.config.json", KITH_SOURCE_DIR, r->file);
    read_config(s, path);
    assert_ok(ki_named_new(s->weights, "", &s->named, &err), &err);
    assert_ok(ki_backbone_recognise(s->named, &s->config, &found, &known, &err), &err);
    assert_string_equal(found->name, r->backbone);
    assert_int_equal(known.pool, r->pool);
    assert_ok(ki_settings_parse(&s->arena, known.settings, NULL, &options.settings, &err), &err);
    options.backbone = found->name;
    options.pool = known.pool;
    assert_ok(ki_net_init(&options, &s->net, &err), &err);
    const int features = ki_graph_find(s->net.graph, r->before ? r->before : "norm");
    if (features < 0) fail_msg("%s has no %s", r->file, r->before);
    ki_graph_tap(s->net.graph, features, "features");
    assert_ok(ki_backend_open(device, NULL, &s->backend, &err), &err);
    assert_ok(ki_params_new(s->net.graph, s->backend, &s->params, &err), &err);
    assert_ok(ki_weights_import_named(s->named, &s->net, s->params, &err), &err);
}

static void close_side(side *s) {
    ki_params_free(s->params);
    ki_net_release(&s->net);
    ki_backend_close(s->backend);
    ki_named_free(s->named);
    ki_contract_release(&s->config);
    ki_arena_release(&s->arena);
    kith_tensors_free(s->weights);
    kith_tensors_free(s->golden);
}

/* The largest difference, relative to the largest number. */
static void assert_near(const char *what, const char *which, const float *a, const float *b, int64_t n,
                        double tolerance) {
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
        largest = fmax(largest, fabs((double)b[i]));
    }
    if (!(worst <= tolerance * largest))
        fail_msg("%s: %s is off by %g of %g, wanted %g of it at most", what, which, worst, largest,
                 tolerance);
}

static void assert_tap(const side *s, const row *r, ki_plan *plan, const char *tap, const char *golden) {
    kith_error err = {0};
    kith_array wanted;
    ki_shape shape;
    assert_ok(kith_tensors_get(s->golden, golden, &wanted, &err), &err);
    assert_ok(ki_plan_tap_shape(plan, tap, &shape, &err), &err);
    const int64_t n = kith_array_count(&wanted);
    assert_int_equal(ki_shape_count(&shape), n);
    float *found = malloc((size_t)n * sizeof *found);
    assert_non_null(found);
    assert_ok(ki_plan_read(plan, tap, found, &err), &err);
    assert_near(r->file, golden, found, wanted.data, n, 1e-5);
    free(found);
}

/* "input", "features", "pooled", each with `suffix`. */
static void check_size(const row *r, const char *device, const char *suffix) {
    char input[16], features[16], pooled[16], path[600];
    kith_error err = {0};
    kith_tensors *golden = NULL;
    kith_array x;
    side s;
    ki_plan *plan = NULL;
    snprintf(input, sizeof input, "input%s", suffix);
    snprintf(features, sizeof features, "features%s", suffix);
    snprintf(pooled, sizeof pooled, "pooled%s", suffix);
    snprintf(path, sizeof path, "%s/test/golden/net/%s.golden.safetensors", KITH_SOURCE_DIR, r->file);
    assert_ok(kith_tensors_open(path, &golden, &err), &err);
    assert_ok(kith_tensors_get(golden, input, &x, &err), &err);
    open_side(&s, r, device, x.dim[2], x.dim[3]);
    const ki_plan_options options = {.mb = x.dim[0], .mode = KI_INFER, .taps = {"features", "pooled", "map"}};
    assert_ok(ki_plan_new(s.net.graph, s.params, s.backend, &options, &plan, &err), &err);
    assert_ok(ki_plan_set_input(plan, x.data, &err), &err);
    assert_ok(ki_plan_forward(plan, &err), &err);
    assert_tap(&s, r, plan, "features", features);
    if (r->pooled) assert_tap(&s, r, plan, r->pooled, pooled);
    ki_plan_free(plan);
    close_side(&s);
    kith_tensors_free(golden);
}

static void test_features(void **state) {
    (void)state;
    static const char *const devices[] = {"ref", "cpu"};
    for (size_t d = 0; d < N_ROWS(devices); d++) {
        for (size_t i = 0; i < N_ROWS(rows); i++) {
            check_size(&rows[i], devices[d], "");
            if (rows[i].resizes) check_size(&rows[i], devices[d], "2");
        }
    }
}

/* The file's tensors with other values: the gradient `prefix`NAME, or ones for it, and zeros where there is none. What renames weights then
 * renames gradients. */
static kith_tensors *make_grads(const side *s, const char *prefix, bool ones, const char *file) {
    kith_error err = {0};
    kith_tensors_writer *writer = NULL;
    kith_tensors *made = NULL;
    char path[600], name[300];
    kith_array arrays[128] = {0};
    const int64_t n = kith_tensors_count(s->weights);
    assert_in_range(n, 1, N_ROWS(arrays));
    assert_ok(kith_tensors_writer_new(&writer, &err), &err);
    for (int64_t i = 0; i < n; i++) {
        const char *weight = kith_tensors_name(s->weights, i);
        kith_array view, grad;
        assert_ok(kith_tensors_get(s->weights, weight, &view, &err), &err);
        assert_ok(kith_array_init(KITH_F32, view.n_dims, view.dim, &arrays[i], &err), &err);
        snprintf(name, sizeof name, "%s%s", prefix, weight);
        if (kith_tensors_get(s->golden, name, &grad, NULL) == KITH_OK) {
            float *to = arrays[i].data;
            for (int64_t k = 0; k < kith_array_count(&grad); k++) to[k] = ones ? 1 : ((float *)grad.data)[k];
        }
        assert_ok(kith_tensors_writer_add(writer, weight, &arrays[i], &err), &err);
    }
    snprintf(path, sizeof path, "%s/%s", testing_folder(), file);
    assert_ok(kith_tensors_writer_save(writer, path, &err), &err);
    assert_ok(kith_tensors_open(path, &made, &err), &err);
    kith_tensors_writer_free(writer);
    for (int64_t i = 0; i < n; i++) kith_array_release(&arrays[i]);
    return made;
}

/* Of one parameter: its gradient where the file has one. Returns how many numbers these are. */
static int64_t check_param(const side *s, const row *r, const ki_param *param, const ki_named *grads,
                           const ki_named *masks) {
    kith_error err = {0};
    float *found = malloc(3 * (size_t)param->n * sizeof *found);
    assert_non_null(found);
    float *wanted = found + param->n, *mask = wanted + param->n;
    int64_t n = 0;
    assert_ok(ki_params_get_diff(s->params, param, found, &err), &err);
    assert_ok(ki_named_values(grads, param->name, wanted, param->n, &err), &err);
    assert_ok(ki_named_values(masks, param->name, mask, param->n, &err), &err);
    for (int64_t i = 0; i < param->n; i++) {
        if (!(mask[i] > 0)) continue;
        found[n] = found[i];
        wanted[n++] = wanted[i];
    }
    assert_near(r->file, param->name, found, wanted, n, 1e-4);
    free(found);
    return n;
}

static int64_t check_params(const side *s, const row *r, const char *prefix) {
    kith_error err = {0};
    ki_named *grads = NULL, *masks = NULL;
    int64_t n = 0;
    kith_tensors *grad = make_grads(s, prefix, false, "grads.safetensors");
    kith_tensors *mask = make_grads(s, prefix, true, "masks.safetensors");
    assert_ok(ki_named_new(grad, "", &grads, &err), &err);
    assert_ok(ki_named_new(mask, "", &masks, &err), &err);
    for (int i = 0; i < ki_params_count(s->params); i++) {
        kith_array shape;
        const ki_param *param = ki_params_at(s->params, i);
        if (ki_named_get(grads, param->name, &shape)) n += check_param(s, r, param, grads, masks);
    }
    ki_named_free(grads);
    ki_named_free(masks);
    kith_tensors_free(grad);
    kith_tensors_free(mask);
    return n;
}

/* The gradients of sum(tap * r). */
static void check_grads(const row *r, const char *device, const char *tap, const char *weight,
                        const char *prefix) {
    kith_error err = {0};
    kith_tensors *golden = NULL;
    kith_array x, g;
    side s;
    ki_plan *plan = NULL;
    char path[600];
    snprintf(path, sizeof path, "%s/test/golden/net/%s.golden.safetensors", KITH_SOURCE_DIR, r->file);
    assert_ok(kith_tensors_open(path, &golden, &err), &err);
    assert_ok(kith_tensors_get(golden, "input", &x, &err), &err);
    assert_ok(kith_tensors_get(golden, weight, &g, &err), &err);
    open_side(&s, r, device, x.dim[2], x.dim[3]);
    const ki_plan_options options = {.mb = x.dim[0], .mode = KI_TRAIN, .grad_taps = {tap}};
    assert_ok(ki_plan_new(s.net.graph, s.params, s.backend, &options, &plan, &err), &err);
    assert_ok(ki_plan_set_input(plan, x.data, &err), &err);
    assert_ok(ki_plan_forward(plan, &err), &err);
    assert_ok(ki_plan_set_grad(plan, tap, g.data, &err), &err);
    assert_ok(ki_plan_backward(plan, &err), &err);
    if (check_params(&s, r, prefix) == 0) fail_msg("%s has no gradients %s", r->file, prefix);
    ki_plan_free(plan);
    close_side(&s);
    kith_tensors_free(golden);
}

static void test_gradients(void **state) {
    (void)state;
    static const char *const devices[] = {"ref", "cpu"};
    for (size_t d = 0; d < N_ROWS(devices); d++) {
        for (size_t i = 0; i < N_ROWS(rows); i++) {
            const bool is_tower = strstr(rows[i].file, "transformers/clip") || strstr(rows[i].file, "siglip");
            check_grads(&rows[i], devices[d], "features", "r", "grad:");
            if (is_tower) check_grads(&rows[i], devices[d], "pooled", "r_pooled", "pooled_grad:");
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
