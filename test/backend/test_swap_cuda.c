/* An inception block with batch norms on cuda against ref: there the average pool and its projection have changed
 * places, the 1x1 convolutions of one source are one and the batch norms at the ends of the branches too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "nn/plan.h"
#include "support/op_case.h"
#include "support/small_net.h"
#include "support/testing.h"

enum { MB = 3, SIDE = 9, MAX_VALUES = 1 << 15 };

static const ki_bn_attr bn = {.eps = 1e-5, .momentum = 0.1};

typedef struct side {
    ki_backend *backend;
    ki_graph *graph;
    ki_params *params;
    ki_plan *plan;
} side;

static int branch(ki_graph *g, const char *name, int src, int64_t oc, int64_t k) {
    char norm[32];
    snprintf(norm, sizeof norm, "%s_bn", name);
    const int x = ki_graph_conv(
        g, name, src,
        (ki_conv_attr){.oc = oc, .kh = k, .kw = k, .sh = 1, .sw = 1, .ph = k / 2, .pw = k / 2, .bias = true});
    return ki_graph_relu(g, ki_graph_batch_norm(g, norm, x, bn));
}

/* Parameters are padded to 16 numbers: with fewer channels those of neighbours would not lie one behind the other,
 * and nothing would become one. */
static void build(ki_graph *g, bool count_pad) {
    const int src = branch(g, "stem", ki_graph_input(g, 3, SIDE, SIDE), 24, 3);
    int part[4];
    part[0] = branch(g, "one", src, 16, 1);
    part[1] = branch(g, "three", branch(g, "three_reduce", src, 16, 1), 16, 3);
    part[2] = branch(g, "double", branch(g, "double_reduce", src, 16, 1), 32, 3);
    const ki_pool_attr pool = {.average = true, .k = 3, .s = 1, .p = 1, .count_pad = count_pad};
    part[3] = branch(g, "proj", ki_graph_pool(g, "pool", src, pool), 16, 1);
    const int map = ki_graph_concat(g, "block", 4, part);
    ki_graph_tap(g, map, "map");
    ki_graph_tap(g, ki_graph_global_pool(g, "all", map, (ki_global_pool_attr){KI_GLOBAL_AVG}), "pooled");
}

static void side_init(side *s, const char *backend, ki_precision precision, bool count_pad, bool frozen,
                      ki_real *buffer) {
    kith_error err;
    *s = (side){0};
    if (ki_backend_open(backend, &(ki_backend_options){.precision = precision}, &s->backend, &err) !=
        KITH_OK) {
        print_message("%s\n", err.message);
        exit(77);
    }
    assert_ok(ki_graph_new(&s->graph, &err), &err);
    build(s->graph, count_pad);
    assert_ok(ki_params_new(s->graph, s->backend, &s->params, &err), &err);
    assert_ok(ki_params_init(s->params, 5, &err), &err);
    small_net_shake(s->params, 1, buffer);
    const ki_plan_options options = {
        .mb = MB, .mode = KI_TRAIN, .frozen_bn = frozen, .grad_taps = {"map", "pooled"}};
    assert_ok(ki_plan_new(s->graph, s->params, s->backend, &options, &s->plan, &err), &err);
}

static void side_release(side *s) {
    ki_plan_free(s->plan);
    ki_params_free(s->params);
    ki_graph_free(s->graph);
    ki_backend_close(s->backend);
}

static int64_t draw_tap(const side *s, const char *tap, ki_real *values) {
    ki_shape shape;
    kith_error err;
    assert_ok(ki_plan_tap_shape(s->plan, tap, &shape, &err), &err);
    ki_rng rng = ki_rng_at(6, KI_RNG_TEST, (uint32_t)tap[0], 0);
    const int64_t n = ki_shape_count(&shape);
    assert_true(n <= MAX_VALUES);
    for (int64_t i = 0; i < n; i++) values[i] = (ki_real)ki_rng_normal(&rng);
    return n;
}

static void side_run(side *s, ki_real *buffer) {
    static const char *const taps[] = {"map", "pooled"};
    kith_error err;
    ki_rng rng = ki_rng_at(7, KI_RNG_TEST, 0, 0);
    for (int i = 0; i < MB * 3 * SIDE * SIDE; i++) buffer[i] = (ki_real)ki_rng_normal(&rng);
    assert_ok(ki_params_zero_diffs(s->params, &err), &err);
    assert_ok(ki_plan_set_input(s->plan, buffer, &err), &err);
    assert_ok(ki_plan_forward(s->plan, &err), &err);
    for (int i = 0; i < 2; i++) {
        assert_ok(s->backend->type->sync(s->backend, &err), &err);
        (void)draw_tap(s, taps[i], buffer);
        assert_ok(ki_plan_set_grad(s->plan, taps[i], buffer, &err), &err);
    }
    assert_ok(ki_plan_backward(s->plan, &err), &err);
    assert_ok(s->backend->type->sync(s->backend, &err), &err);
}

static void near(const char *what, const ki_real *a, const ki_real *b, int64_t n, double tolerance) {
    const double off = op_relative_l2(a, b, n);
    if (!(off <= tolerance))
        fail_msg("%s is off by %.3g relative L2, wanted at most %.3g", what, off, tolerance);
}

/* A bias before a batch norm of the batch's statistics has no gradient but rounding. */
static bool is_lost(const ki_param *p, bool frozen) {
    const char *dot = strrchr(p->name, '.');
    return !frozen && dot && strcmp(dot, ".bias") == 0 && !strstr(p->name, "_bn.");
}

static void check(ki_precision precision, bool count_pad, bool frozen, int n_swapped, double tolerance) {
    ki_real *x = malloc(MAX_VALUES * sizeof *x), *y = malloc(MAX_VALUES * sizeof *y);
    side cuda, ref;
    kith_error err;
    ki_plan_stats stats;
    side_init(&cuda, "cuda", precision, count_pad, frozen, x);
    side_init(&ref, "ref", KI_FLOAT32, count_pad, frozen, x);
    ki_plan_stats_get(cuda.plan, &stats);
    assert_int_equal(stats.n_swapped_pools, n_swapped);
    /* Of 7 convolutions, 7 batch norms and 2 pools, with the concat made of slices: the batch norms of 4 branches are
     * one, and so are the 1x1 convolutions of the source, but for the one at the end of a branch. */
    assert_int_equal(stats.n_kernels, 7 + 7 + 2 - 3 - (1 + n_swapped));
    side_run(&cuda, x);
    side_run(&ref, x);
    const int64_t n = draw_tap(&ref, "map", x);
    assert_ok(ki_plan_read(cuda.plan, "map", x, &err), &err);
    assert_ok(ki_plan_read(ref.plan, "map", y, &err), &err);
    near("the map", x, y, n, tolerance);
    for (int i = 0; i < ki_params_count(ref.params); i++) {
        const ki_param *b = ki_params_at(ref.params, i), *a = ki_params_find(cuda.params, b->name);
        if (b->trained && (is_lost(b, frozen) || precision == KI_BF16)) continue;
        if (b->trained) {
            assert_ok(ki_params_get_diff(cuda.params, a, x, &err), &err);
            assert_ok(ki_params_get_diff(ref.params, b, y, &err), &err);
        } else { /* running statistics */
            assert_ok(ki_params_get(cuda.params, a, x, &err), &err);
            assert_ok(ki_params_get(ref.params, b, y, &err), &err);
        }
        near(b->name, x, y, b->n, b->trained ? 10 * tolerance : tolerance);
    }
    side_release(&cuda);
    side_release(&ref);
    free(x);
    free(y);
}

static void test_padding_counts(void **state) {
    (void)state;
    check(KI_FLOAT32, true, false, 1, 1e-5);
}
static void test_in_bf16(void **state) {
    (void)state;
    check(KI_BF16, true, false, 1, 2e-2);
}
/* Averages of what is inside only: no padding could make up for that. */
static void test_padding_does_not_count(void **state) {
    (void)state;
    check(KI_FLOAT32, false, false, 0, 1e-5);
}
/* The bias has a gradient. */
static void test_frozen_statistics(void **state) {
    (void)state;
    check(KI_FLOAT32, true, true, 0, 1e-5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_padding_counts),
        cmocka_unit_test(test_in_bf16),
        cmocka_unit_test(test_padding_does_not_count),
        cmocka_unit_test(test_frozen_statistics),
    };
    return cmocka_run_group_tests_name("backend/pools that change places", tests, NULL, NULL);
}
