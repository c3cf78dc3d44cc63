/* Whole backbones on cuda against cpu: slices, fusions, folded batch norms, joins and masks together.
 *
 * A gradient of a whole network is not a smooth function: where rounding turns a ReLU or the place of a maximum the
 * other way, all layers before it move. How much is seen on the cpu itself, which runs a second time with input
 * that is off by a few last bits: cuda may be as far off as that. For bf16 it runs a second time with weights that are
 * rounded to bf16, which alone moves the gradients of some layers by a third. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "net/net.h"
#include "nn/plan.h"
#include "support/op_check.h"
#include "support/testing.h"

#ifdef KI_EMULATE_TESTS
enum { MB = 1, IS_EMULATED = 1 }; /* no device: what takes long is left out */
#else
enum { MB = 4, IS_EMULATED = 0 };
#endif
enum { DIM = 16 };
#define MOST_FLIPPED 2e-2 /* however much the cpu's own gradients move */

typedef struct side {
    ki_backend *backend;
    ki_net net;
    ki_params *params;
    ki_plan *plan;
} side;

/* A backbone's name, `heads` for an ensemble, and settings other than the defaults. */
typedef struct subject {
    const char *backbone;
    int64_t heads;
    const char *settings;
} subject;

static void open_side(side *s, const char *device, ki_precision precision, subject what, int64_t size,
                      ki_mode mode) {
    kith_error err;
    ki_arena arena = {0};
    const ki_value *settings = NULL;
    *s = (side){0};
    s->backend = op_backend(device, &(ki_backend_options){.precision = precision});
    assert_ok(ki_settings_parse(&arena, what.settings, NULL, &settings, &err), &err);
    const ki_net_options net = {.backbone = what.backbone,
                                .heads = what.heads,
                                .settings = settings,
                                .c = 3,
                                .h = size,
                                .w = size,
                                .embedding = DIM};
    assert_ok(ki_net_init(&net, &s->net, &err), &err);
    ki_arena_release(&arena);
    assert_ok(ki_params_new(s->net.graph, s->backend, &s->params, &err), &err);
    assert_ok(ki_params_init(s->params, 7, &err), &err);
    const bool train = mode == KI_TRAIN;
    const ki_plan_options plan = {.mb = MB,
                                  .mode = mode,
                                  .frozen_bn = true, /* a few small images make poor statistics */
                                  .taps = {"map", "embedding"},
                                  .grad_taps = {train ? "map" : NULL, "embedding"}};
    assert_ok(ki_plan_new(s->net.graph, s->params, s->backend, &plan, &s->plan, &err), &err);
}

static void close_side(side *s) {
    ki_plan_free(s->plan);
    ki_params_free(s->params);
    ki_net_release(&s->net);
    ki_backend_close(s->backend);
}

static float *drawn(int64_t n, uint32_t stream) {
    float *x = malloc((size_t)n * sizeof *x);
    ki_rng rng = ki_rng_at(2, KI_RNG_TEST, stream, 0);
    for (int64_t i = 0; i < n; i++) x[i] = (float)ki_rng_normal(&rng);
    return x;
}

static int64_t tap_count(const side *s, const char *tap) {
    ki_shape shape;
    kith_error err;
    assert_ok(ki_plan_tap_shape(s->plan, tap, &shape, &err), &err);
    return ki_shape_count(&shape);
}

static void run(side *s, ki_mode mode, const float *input, const float *grad_map, const float *grad) {
    kith_error err;
    for (int round = 0; round < 2; round++) {
        assert_ok(ki_params_zero_diffs(s->params, &err), &err);
        assert_ok(ki_plan_set_input(s->plan, input, &err), &err);
        assert_ok(ki_plan_forward(s->plan, &err), &err);
        if (mode != KI_TRAIN) continue;
        assert_ok(ki_plan_set_grad(s->plan, "map", grad_map, &err), &err);
        assert_ok(ki_plan_set_grad(s->plan, "embedding", grad, &err), &err);
        assert_ok(ki_plan_backward(s->plan, &err), &err);
    }
}

static void read_diff(const side *s, const char *name, float *diff) {
    kith_error err;
    assert_ok(ki_params_get_diff(s->params, ki_params_find(s->params, name), diff, &err), &err);
}

/* How far the gradient of a parameter is from that of another side. */
static double gradient_off(const ki_param *p, const side *found, const side *wanted) {
    float *d[2] = {malloc((size_t)p->n * sizeof(float)), malloc((size_t)p->n * sizeof(float))};
    read_diff(found, p->name, d[0]);
    read_diff(wanted, p->name, d[1]);
    const double off = testing_relative_l2(d[0], d[1], p->n);
    free(d[0]);
    free(d[1]);
    return off;
}

typedef struct distance {
    double worst, mean;
    const char *name; /* of the worst */
} distance;

static distance distance_of(const side *a, const side *b) {
    distance d = {.name = ""};
    int n = 0;
    for (int i = 0; i < ki_params_count(a->params); i++) {
        const ki_param *p = ki_params_at(a->params, i);
        if (!p->trained) continue;
        const double off = gradient_off(p, b, a);
        d.mean += off;
        n++;
        if (off > d.worst) d.worst = off, d.name = p->name;
    }
    d.mean /= n;
    return d;
}

/* The gradients of b against those of a; c has a's as rounding alone moves them. */
static void check_gradients(const char *backbone, const side *a, const side *b, const side *c,
                            ki_precision precision, double tolerance, double slack) {
    const distance off = distance_of(a, b), moved = distance_of(a, c);
    const bool is_exact = precision == KI_FLOAT32;
    const double allowed =
        fmax(tolerance, is_exact ? fmin(slack * moved.worst, MOST_FLIPPED) : slack * moved.worst);
    print_message(
        "%s: gradients off by %.2g at most (%s), %.2g in the mean; the cpu's own move by %.2g, %.2g\n",
        backbone, off.worst, off.name, off.mean, moved.worst, moved.mean);
    if (!(off.worst <= allowed))
        fail_msg("%s: the gradient of %s is off by %.3g, at most %.3g wanted", backbone, off.name, off.worst,
                 allowed);
    if (!is_exact && !(off.mean <= slack * moved.mean))
        fail_msg("%s: gradients are off by %.3g in the mean, at most %.3g wanted", backbone, off.mean,
                 slack * moved.mean);
}

static float *read_tap(const side *s, const char *tap, int64_t n) {
    kith_error err;
    float *x = malloc((size_t)n * sizeof *x);
    assert_ok(ki_plan_read(s->plan, tap, x, &err), &err);
    return x;
}

/* A tap of b against that of a. A tolerance of 0: four times as far as c's is. */
static void check_tap(const char *backbone, const char *tap, const side *a, const side *b, const side *c,
                      int64_t n, double tolerance) {
    float *x[] = {read_tap(a, tap, n), read_tap(b, tap, n), read_tap(c, tap, n)};
    const double off = testing_relative_l2(x[1], x[0], n), moved = testing_relative_l2(x[2], x[0], n);
    const double allowed = tolerance > 0 ? tolerance : 4 * moved;
    if (!(off <= allowed))
        fail_msg("%s: the %s is off by %.3g, at most %.3g wanted", backbone, tap, off, allowed);
    for (size_t i = 0; i < N_ROWS(x); i++) free(x[i]);
}

static void round_params(side *s) {
    kith_error err;
    for (int i = 0; i < ki_params_count(s->params); i++) {
        const ki_param *p = ki_params_at(s->params, i);
        float *x = malloc((size_t)p->n * sizeof *x);
        assert_ok(ki_params_get(s->params, p, x, &err), &err);
        for (int64_t k = 0; k < p->n; k++) {
            uint32_t bits;
            memcpy(&bits, &x[k], sizeof bits);
            bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u; /* to nearest, ties to even */
            memcpy(&x[k], &bits, sizeof bits);
        }
        assert_ok(ki_params_set(s->params, p, x, &err), &err);
        free(x);
    }
}

/* A tolerance of 0: what the cpu's own rounding of weights says. On cuda all maps are rounded, too, forward and backward, which the factor
 * of 4 allows for. */
static void check_subject(subject what, int64_t size, ki_mode mode, ki_precision precision, double tolerance,
                          double grad_tolerance) {
    const char *backbone = what.backbone;
    const double slack = tolerance > 0 ? 2 : 4;
    side a, b, c;
    open_side(&a, "cpu", KI_FLOAT32, what, size, mode);
    open_side(&b, "cuda", precision, what, size, mode);
    open_side(&c, "cpu", KI_FLOAT32, what, size, mode);
    const int64_t n_map = tap_count(&a, "map"), n_out = tap_count(&a, "embedding");
    float *input = drawn(MB * 3 * size * size, 0), *grad_map = drawn(n_map, 1), *grad = drawn(n_out, 2);
    for (int64_t i = 0; i < n_map; i++) grad_map[i] *= 0.01f;
    run(&a, mode, input, grad_map, grad);
    run(&b, mode, input, grad_map, grad);
    ki_rng rng = ki_rng_at(2, KI_RNG_TEST, 3, 0);
    if (precision == KI_BF16) round_params(&c);
    for (int64_t i = 0; precision == KI_FLOAT32 && i < MB * 3 * size * size; i++)
        input[i] *= (float)(1 + 1e-6 * ki_rng_normal(&rng));
    run(&c, mode, input, grad_map, grad);
    check_tap(backbone, "map", &a, &b, &c, n_map, tolerance);
    check_tap(backbone, "embedding", &a, &b, &c, n_out, tolerance);
    if (mode == KI_TRAIN) check_gradients(backbone, &a, &b, &c, precision, grad_tolerance, slack);
    free(input);
    free(grad_map);
    free(grad);
    close_side(&a);
    close_side(&b);
    close_side(&c);
}

static void check(const char *backbone, int64_t size, ki_mode mode, ki_precision precision, double tolerance,
                  double grad_tolerance) {
    check_subject((subject){backbone, 1, NULL}, size, mode, precision, tolerance, grad_tolerance);
}

static void test_googlenet(void **state) {
    (void)state;
    check("googlenet", 47, KI_TRAIN, KI_FLOAT32, 1e-5, 1e-4);
    if (!IS_EMULATED) check("googlenet", 227, KI_TRAIN, KI_FLOAT32, 1e-5, 1e-4);
    if (!IS_EMULATED) check("googlenet", 47, KI_INFER, KI_FLOAT32, 1e-5, 0);
}

static void test_bn_inception(void **state) {
    (void)state;
    if (!IS_EMULATED) check("bn_inception", 63, KI_TRAIN, KI_FLOAT32, 1e-5, 1e-4);
    if (!IS_EMULATED) check("bn_inception", 227, KI_TRAIN, KI_FLOAT32, 1e-5, 1e-4);
    check("bn_inception", 63, KI_INFER, KI_FLOAT32, 1e-5, 0);
}

static void test_resnet50(void **state) {
    (void)state;
    if (IS_EMULATED) skip();
    check("resnet50", 33, KI_TRAIN, KI_FLOAT32, 1e-5, 1e-4);
    check("resnet50", 227, KI_TRAIN, KI_FLOAT32, 1e-5, 1e-4);
    check("resnet50", 33, KI_INFER, KI_FLOAT32, 1e-5, 0);
}

/* Rounding of every map to 8 bits of mantissa, layer after layer. */
static void test_bf16(void **state) {
    (void)state;
    if (IS_EMULATED) skip();
    check("googlenet", 47, KI_TRAIN, KI_BF16, 3e-2, 0);
    check("googlenet", 47, KI_INFER, KI_BF16, 3e-2, 0);
}

/* An ensemble of eight heads: its masks are a convolution of 3,840 channels without a ReLU, and what follows them runs on eight
 * times the batch. */
static void test_ensemble(void **state) {
    (void)state;
    const subject googlenet = {"googlenet", 8, NULL};
    check_subject(googlenet, 47, KI_TRAIN, KI_FLOAT32, 1e-5, 1e-4);
    if (IS_EMULATED) return;
    check_subject(googlenet, 227, KI_TRAIN, KI_FLOAT32, 1e-5, 1e-4);
    check_subject(googlenet, 47, KI_TRAIN, KI_BF16, 3e-2, 0);
    check_subject(googlenet, 227, KI_TRAIN, KI_BF16, 3e-2, 0);
}

/* The rows of a family are the same network with small settings. */
static bool is_another(const ki_backbone *b, const ki_backbone *before) {
    return b->small &&
           !(before && before->small && before->build == b->build && strcmp(before->small, b->small) == 0);
}

/* The backbones that name small settings. */
static void check_small(ki_precision precision, double tolerance, double grad_tolerance) {
    int n = 0;
    for (int i = 0; ki_backbone_at(i); i++) {
        const ki_backbone *b = ki_backbone_at(i);
        if (!is_another(b, i > 0 ? ki_backbone_at(i - 1) : NULL)) continue;
        const subject what = {b->name, 1, b->small};
        check_subject(what, 64, KI_TRAIN, precision, tolerance, grad_tolerance);
        if (precision == KI_FLOAT32) check_subject(what, 64, KI_INFER, precision, tolerance, 0);
        n++;
    }
    assert_true(n > 5);
}

static void test_small_ones(void **state) {
    (void)state;
    check_small(KI_FLOAT32, 1e-5, 1e-4);
}

static void test_small_ones_in_bf16(void **state) {
    (void)state;
    check_small(KI_BF16, 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_googlenet),         cmocka_unit_test(test_bn_inception),
        cmocka_unit_test(test_resnet50),          cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_ensemble),          cmocka_unit_test(test_small_ones),
        cmocka_unit_test(test_small_ones_in_bf16)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
