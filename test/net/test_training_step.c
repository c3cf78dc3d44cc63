/* One training step of googlenet, bn_inception, resnet50 and convnet4, with batch statistics and with frozen ones, against PyTorch in
 * double: taps, running statistics and the gradient of every parameter, by the projections stored in
 * test/golden/net/NET.{step,frozen}.txt (make_steps.py says why that is enough). The other networks: test_vit_golden.c, test_convs_golden.c. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "net/hashed.h"
#include "net/net.h"
#include "nn/plan.h"
#include "support/testing.h"

enum { N_PROJECTIONS = 8 };
static const double tolerance = 1e-3; /* relative L2, per tensor */

typedef struct row {
    char kind[8], name[80];
    double norm, projection[N_PROJECTIONS];
} row;

typedef struct fixture {
    ki_backend *backend;
    ki_net net;
    ki_params *params;
    ki_plan *plan;
    int64_t batch, channels, size;
    FILE *golden;
    float *values; /* room for the largest tensor */
} fixture;

static float *new_floats(int64_t n) {
    float *values = ki_alloc((size_t)n, sizeof *values);
    assert_non_null(values);
    return values;
}

static bool has_stats(const ki_params *params, const char *name) {
    char stat[128];
    snprintf(stat, sizeof stat, "%.*s.running_var", (int)(strrchr(name, '.') - name), name);
    return ki_params_find(params, stat) != NULL;
}

static void set_up(fixture *f, const char *backbone, bool frozen, const char *device) {
    kith_error err = {0};
    char path[512], settings[] = "dropout=0";
    snprintf(path, sizeof path, "%s/test/golden/net/%s.%s.txt", KITH_SOURCE_DIR, backbone,
             frozen ? "frozen" : "step");
    f->golden = fopen(path, "r");
    assert_non_null(f->golden);
    long long batch, channels, size;
    assert_int_equal(fscanf(f->golden, "%lld %lld %lld", &batch, &channels, &size), 3);
    f->batch = batch, f->channels = channels, f->size = size;

    ki_arena arena = {0};
    const ki_value *map = NULL;
    const bool has_dropout = !strcmp(backbone, "googlenet") || !strcmp(backbone, "bn_inception");
    assert_ok(ki_settings_parse(&arena, has_dropout ? settings : NULL, NULL, &map, &err), &err);
    const ki_net_options options = {.backbone = backbone,
                                    .settings = map,
                                    .c = f->channels,
                                    .h = f->size,
                                    .w = f->size,
                                    .embedding = 32,
                                    .classes = 10};
    assert_ok(ki_net_init(&options, &f->net, &err), &err);
    ki_arena_release(&arena);
    assert_ok(ki_backend_open(device, NULL, &f->backend, &err), &err);
    assert_ok(ki_params_new(f->net.graph, f->backend, &f->params, &err), &err);
    int64_t most = f->batch * 2048 * 16 * 16;
    for (int i = 0; i < ki_params_count(f->params); i++)
        most = ki_params_at(f->params, i)->n > most ? ki_params_at(f->params, i)->n : most;
    f->values = new_floats(most);
    for (int i = 0; i < ki_params_count(f->params); i++) {
        const ki_param *param = ki_params_at(f->params, i);
        hashed_param(param->name, &param->shape, has_stats(f->params, param->name), f->values);
        assert_ok(ki_params_set(f->params, param, f->values, &err), &err);
    }
    const ki_plan_options plan = {.mb = f->batch,
                                  .mode = KI_TRAIN,
                                  .frozen_bn = frozen,
                                  .taps = {"map", "pooled", "embedding", "logits"},
                                  .grad_taps = {"embedding", "logits"}};
    assert_ok(ki_plan_new(f->net.graph, f->params, f->backend, &plan, &f->plan, &err), &err);
}

static void tear_down(fixture *f) {
    ki_plan_free(f->plan);
    ki_params_free(f->params);
    ki_net_release(&f->net);
    ki_backend_close(f->backend);
    ki_free(f->values);
    fclose(f->golden);
}

static void run_step(fixture *f) {
    kith_error err = {0};
    const int64_t n = f->batch * f->channels * f->size * f->size;
    hashed_fill("input", f->values, n, -1, 1);
    assert_ok(ki_plan_set_input(f->plan, f->values, &err), &err);
    assert_ok(ki_plan_forward(f->plan, &err), &err);
    assert_ok(ki_params_zero_diffs(f->params, &err), &err);
    hashed_fill("diff.embedding", f->values, f->batch * 32, -1, 1);
    assert_ok(ki_plan_set_grad(f->plan, "embedding", f->values, &err), &err);
    hashed_fill("diff.logits", f->values, f->batch * 10, -1, 1);
    assert_ok(ki_plan_set_grad(f->plan, "logits", f->values, &err), &err);
    assert_ok(ki_plan_backward(f->plan, &err), &err);
}

static bool read_row(FILE *file, row *r) {
    if (fscanf(file, "%7s %79s %lf", r->kind, r->name, &r->norm) != 3) return false;
    for (int k = 0; k < N_PROJECTIONS; k++) assert_int_equal(fscanf(file, "%lf", &r->projection[k]), 1);
    return true;
}

/* The row's tensor into f->values; returns its size. */
static int64_t fetch(fixture *f, const row *r) {
    kith_error err = {0};
    if (!strcmp(r->kind, "tap")) {
        ki_shape shape;
        assert_ok(ki_plan_tap_shape(f->plan, r->name, &shape, &err), &err);
        assert_ok(ki_plan_read(f->plan, r->name, f->values, &err), &err);
        return ki_shape_count(&shape);
    }
    const ki_param *param = ki_params_find(f->params, r->name);
    assert_non_null(param);
    if (!strcmp(r->kind, "grad"))
        assert_ok(ki_params_get_diff(f->params, param, f->values, &err), &err);
    else
        assert_ok(ki_params_get(f->params, param, f->values, &err), &err);
    return param->n;
}

static double distance(const row *r, const float *values, int64_t n) {
    double squares = 0;
    for (int k = 0; k < N_PROJECTIONS; k++) {
        char name[96];
        snprintf(name, sizeof name, "%s#%d", r->name, k);
        const uint64_t seed = hashed_name(name);
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += (hashed_word(seed, i) >> 63) ? (double)values[i] : -(double)values[i];
        squares += (sum - r->projection[k]) * (sum - r->projection[k]);
    }
    return sqrt(squares / N_PROJECTIONS);
}

static void check_backbone(const char *backbone, bool frozen, const char *device) {
    fixture f = {0};
    set_up(&f, backbone, frozen, device);
    run_step(&f);
    row r;
    int n_rows = 0, n_bad = 0;
    double worst = 0, weight_norm = 0, squares = 0, all = 0;
    while (read_row(f.golden, &r)) {
        const int64_t n = fetch(&f, &r);
        const double d = distance(&r, f.values, n);
        /* A bias under a batch norm has no effect: its gradient is rounding, judged by its weight's. */
        const bool is_null = r.norm < 1e-9 * weight_norm;
        const double scale = is_null ? weight_norm : r.norm;
        const char *role = strrchr(r.name, '.');
        if (role && !strcmp(role, ".weight")) weight_norm = r.norm;
        if (!strcmp(r.kind, "grad")) squares += d * d, all += r.norm * r.norm;
        if (d / scale > worst) worst = d / scale;
        n_rows++;
        if (d <= tolerance * scale) continue;
        if (n_bad++ < 10)
            print_error("%s %s: distance %.3g of norm %.6g, relative %.3g\n", r.kind, r.name, d, scale,
                        d / scale);
    }
    print_message("%s on %s: %d tensors, worst %.2e, all gradients %.2e\n", backbone, device, n_rows, worst,
                  sqrt(squares / all));
    tear_down(&f);
    assert_true(n_rows > 12);
    if (n_bad) fail_msg("%d of %d tensors differ by more than %g", n_bad, n_rows, tolerance);
    if (!(sqrt(squares / all) < tolerance))
        fail_msg("all gradients together differ by %g", sqrt(squares / all));
}

static void test_googlenet(void **state) { (void)state, check_backbone("googlenet", false, "cpu"); }
static void test_bn_inception(void **state) { (void)state, check_backbone("bn_inception", false, "cpu"); }
static void test_bn_inception_frozen(void **state) {
    (void)state, check_backbone("bn_inception", true, "cpu");
}
static void test_resnet50(void **state) { (void)state, check_backbone("resnet50", false, "cpu"); }
static void test_resnet50_frozen(void **state) { (void)state, check_backbone("resnet50", true, "cpu"); }
static void test_convnet4(void **state) { (void)state, check_backbone("convnet4", false, "cpu"); }
static void test_convnet4_on_ref(void **state) { (void)state, check_backbone("convnet4", false, "ref"); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_googlenet),           cmocka_unit_test(test_bn_inception),
        cmocka_unit_test(test_bn_inception_frozen), cmocka_unit_test(test_resnet50),
        cmocka_unit_test(test_resnet50_frozen),     cmocka_unit_test(test_convnet4),
        cmocka_unit_test(test_convnet4_on_ref),
    };
    return cmocka_run_group_tests_name("net/training_step", tests, NULL, NULL);
}
