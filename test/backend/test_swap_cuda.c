/* An inception block with batch norms on cuda against ref: there the average pool and its projection have changed
 * places, the 1x1 convolutions of one source are one and the batch norms at the ends of the branches too. */
#include <stdio.h>
#include <string.h>

#include "support/net_side.h"
#include "support/op_check.h"
#include "support/testing.h"

enum { MB = 3, SIDE = 9 };

static const ki_bn_attr bn = {.eps = 1e-5, .momentum = 0.1};

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

static void side_init(net_side *s, const char *device, ki_precision precision, bool count_pad, bool frozen) {
    kith_error err;
    ki_graph *graph = NULL;
    assert_ok(ki_graph_new(&graph, &err), &err);
    build(graph, count_pad);
    const ki_plan_options options = {
        .mb = MB, .mode = KI_TRAIN, .frozen_bn = frozen, .grad_taps = {"map", "pooled"}};
    net_side_init(s, op_backend(device, &(ki_backend_options){.precision = precision}), graph, 1, &options);
}

/* A bias before a batch norm of the batch's statistics has no gradient but rounding. */
static bool is_lost(const ki_param *p, bool frozen) {
    const char *dot = strrchr(p->name, '.');
    return !frozen && dot && strcmp(dot, ".bias") == 0 && !strstr(p->name, "_bn.");
}

static void check(ki_precision precision, bool count_pad, bool frozen, int n_swapped, double tolerance) {
    static const char *const taps[] = {"map", "pooled", NULL};
    net_side cuda, ref;
    kith_error err;
    ki_plan_stats stats;
    side_init(&cuda, "cuda", precision, count_pad, frozen);
    side_init(&ref, "ref", KI_FLOAT32, count_pad, frozen);
    ki_plan_stats_get(cuda.plan, &stats);
    assert_int_equal(stats.n_swapped_pools, n_swapped);
    /* Of 7 convolutions, 7 batch norms and 2 pools, with the concat made of slices: the batch norms of 4 branches are
     * one, and so are the 1x1 convolutions of the source, but for the one at the end of a branch. */
    assert_int_equal(stats.n_kernels, 7 + 7 + 2 - 3 - (1 + n_swapped));
    net_side *const sides[] = {&cuda, &ref};
    for (int i = 0; i < 2; i++) {
        assert_ok(ki_params_zero_diffs(sides[i]->params, &err), &err);
        net_side_forward(sides[i], 0);
        net_side_backward(sides[i], taps, 0);
    }
    (void)net_side_taps_near(&cuda, &ref, taps, tolerance);
    for (int i = 0; i < ki_params_count(ref.params); i++) {
        const ki_param *p = ki_params_at(ref.params, i);
        if (p->trained && (is_lost(p, frozen) || precision == KI_BF16)) continue;
        (void)net_side_read_param(&cuda, p->name);
        (void)net_side_read_param(&ref, p->name);
        (void)net_side_near(p->name, &cuda, &ref, p->n, p->trained ? 10 * tolerance : tolerance);
    }
    net_side_release(&cuda);
    net_side_release(&ref);
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
