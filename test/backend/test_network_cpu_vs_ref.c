/* A whole small network on cpu against ref: there the planner fuses ReLUs, folds batch norms, hands
 * masks to concat and joins to kernels; on ref every node runs alone. */
#include <stdio.h>
#include <stdlib.h>

#include "core/rng.h"
#include "nn/plan.h"
#include "support/op_case.h"
#include "support/small_net.h"
#include "support/testing.h"

enum { MB = 5, MAX_VALUES = 1 << 16 };

typedef struct side {
    ki_backend *backend;
    ki_graph *graph;
    ki_params *params;
    ki_plan *plan;
    ki_real *buffer;
} side;

static void side_init(side *s, const char *backend, const ki_plan_options *options) {
    kith_error err;
    *s = (side){.buffer = malloc(MAX_VALUES * sizeof(ki_real))};
    assert_ok(ki_backend_open(backend, NULL, &s->backend, &err), &err);
    assert_ok(ki_graph_new(&s->graph, &err), &err);
    small_net_build(s->graph, true);
    assert_ok(ki_params_new(s->graph, s->backend, &s->params, &err), &err);
    assert_ok(ki_params_init(s->params, 5, &err), &err);
    /* Off the initial values, at which a batch norm's folding would hardly show. */
    for (int i = 0; i < ki_params_count(s->params); i++) {
        const ki_param *p = ki_params_at(s->params, i);
        ki_rng rng = ki_rng_at(9, KI_RNG_TEST, (uint32_t)i, 0);
        assert_ok(ki_params_get(s->params, p, s->buffer, &err), &err);
        for (int64_t j = 0; j < p->n; j++) s->buffer[j] += (ki_real)(0.4 * (ki_rng_double(&rng) - 0.5));
        assert_ok(ki_params_set(s->params, p, s->buffer, &err), &err);
    }
    assert_ok(ki_plan_new(s->graph, s->params, s->backend, options, &s->plan, &err), &err);
}

static void side_release(side *s) {
    ki_plan_free(s->plan);
    ki_params_free(s->params);
    ki_graph_free(s->graph);
    ki_backend_close(s->backend);
    free(s->buffer);
}

static int64_t draw(ki_real *values, uint32_t stream, int64_t n) {
    ki_rng rng = ki_rng_at(10, KI_RNG_TEST, stream, 0);
    assert_true(n <= MAX_VALUES);
    for (int64_t i = 0; i < n; i++) values[i] = (ki_real)ki_rng_normal(&rng);
    return n;
}

static int64_t tap_count(const side *s, const char *tap) {
    ki_shape shape;
    kith_error err;
    assert_ok(ki_plan_tap_shape(s->plan, tap, &shape, &err), &err);
    return ki_shape_count(&shape);
}

static void side_forward(side *s, uint32_t stream) {
    static const int32_t labels[MB] = {0, 1, 2, 3, 4};
    kith_error err;
    draw(s->buffer, stream, (int64_t)MB * SMALL_NET_C * SMALL_NET_H * SMALL_NET_W);
    assert_ok(ki_plan_set_input(s->plan, s->buffer, &err), &err);
    assert_ok(ki_plan_set_labels(s->plan, labels, &err), &err);
    assert_ok(ki_plan_forward(s->plan, &err), &err);
}

static void side_backward(side *s, const char *const *taps, uint32_t stream) {
    kith_error err;
    for (int i = 0; taps[i]; i++) {
        draw(s->buffer, stream + 100 + (uint32_t)i, tap_count(s, taps[i]));
        assert_ok(ki_plan_set_grad(s->plan, taps[i], s->buffer, &err), &err);
    }
    assert_ok(ki_plan_backward(s->plan, &err), &err);
}

static void compare(const char *what, const ki_real *a, const ki_real *b, int64_t n, double tolerance) {
    const double error = op_relative_l2(a, b, n);
    if (!(error <= tolerance))
        fail_msg("%s is off by %.3g relative L2, wanted at most %.3g", what, error, tolerance);
}

static void compare_taps(side *cpu, side *ref, const char *const *taps) {
    kith_error err;
    for (int i = 0; taps[i]; i++) {
        assert_ok(ki_plan_read(cpu->plan, taps[i], cpu->buffer, &err), &err);
        assert_ok(ki_plan_read(ref->plan, taps[i], ref->buffer, &err), &err);
        compare(taps[i], cpu->buffer, ref->buffer, tap_count(ref, taps[i]), 1e-5);
    }
}

static void compare_params(side *cpu, side *ref) {
    kith_error err;
    for (int i = 0; i < ki_params_count(ref->params); i++) {
        const ki_param *a = ki_params_at(cpu->params, i), *b = ki_params_at(ref->params, i);
        assert_string_equal(a->name, b->name);
        if (b->trained) {
            assert_ok(ki_params_get_diff(cpu->params, a, cpu->buffer, &err), &err);
            assert_ok(ki_params_get_diff(ref->params, b, ref->buffer, &err), &err);
        } else {
            assert_ok(ki_params_get(cpu->params, a, cpu->buffer, &err), &err);
            assert_ok(ki_params_get(ref->params, b, ref->buffer, &err), &err);
        }
        compare(b->name, cpu->buffer, ref->buffer, b->n, 5e-5);
    }
}

/* Three micro-batches; the gradients of all of them are in the store at the end. */
static void check_training(const ki_plan_options *options, int n_fused) {
    side cpu, ref;
    ki_plan_stats stats;
    kith_error err;
    side_init(&cpu, "cpu", options);
    side_init(&ref, "ref", options);
    ki_plan_stats_get(cpu.plan, &stats);
    assert_int_equal(stats.n_fused_relu, n_fused);
    ki_plan_stats_get(ref.plan, &stats);
    assert_int_equal(stats.n_fused_relu, 0);
    side *const sides[] = {&cpu, &ref};
    for (int i = 0; i < 2; i++) assert_ok(ki_params_zero_diffs(sides[i]->params, &err), &err);
    for (uint32_t batch = 0; batch < 3; batch++) {
        for (int i = 0; i < 2; i++) side_forward(sides[i], batch);
        compare_taps(&cpu, &ref, options->grad_taps);
        for (int i = 0; i < 2; i++) side_backward(sides[i], options->grad_taps, batch);
        if (options->input_grad) {
            assert_ok(ki_plan_read_input_grad(cpu.plan, cpu.buffer, &err), &err);
            assert_ok(ki_plan_read_input_grad(ref.plan, ref.buffer, &err), &err);
            compare("the input's gradient", cpu.buffer, ref.buffer,
                    (int64_t)MB * SMALL_NET_C * SMALL_NET_H * SMALL_NET_W, 5e-5);
        }
    }
    compare_params(&cpu, &ref);
    side_release(&cpu);
    side_release(&ref);
}

static void test_training(void **state) {
    (void)state;
    const ki_plan_options options = {
        .mb = MB, .mode = KI_TRAIN, .seed = 3, .grad_taps = {"map", "pooled", "embedding", "logits", "loss"}};
    check_training(&options, 8);
}

static void test_training_one_tap(void **state) {
    (void)state;
    const ki_plan_options options = {
        .mb = MB, .mode = KI_TRAIN, .seed = 3, .input_grad = true, .grad_taps = {"embedding", "loss"}};
    check_training(&options, 8);
}

static void test_training_with_frozen_statistics(void **state) {
    (void)state;
    const ki_plan_options options = {
        .mb = MB, .mode = KI_TRAIN, .frozen_bn = true, .grad_taps = {"map", "loss"}};
    check_training(&options, 8);
}

static void test_inference(void **state) {
    (void)state;
    const ki_plan_options options = {
        .mb = MB, .mode = KI_INFER, .taps = {"map", "pooled", "embedding", "logits", "loss"}};
    side cpu, ref;
    ki_plan_stats stats;
    side_init(&cpu, "cpu", &options);
    side_init(&ref, "ref", &options);
    ki_plan_stats_get(cpu.plan, &stats);
    assert_int_equal(stats.n_folded_bn, 5);
    for (uint32_t batch = 0; batch < 2; batch++) {
        side_forward(&cpu, batch);
        side_forward(&ref, batch);
        compare_taps(&cpu, &ref, options.taps);
    }
    side_release(&cpu);
    side_release(&ref);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_training_one_tap),
        cmocka_unit_test(test_training_with_frozen_statistics),
        cmocka_unit_test(test_inference),
    };
    return cmocka_run_group_tests_name("backend/network on cpu against ref", tests, NULL, NULL);
}
