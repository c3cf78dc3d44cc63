/* A whole small network on cpu against ref: there the planner fuses ReLUs, folds batch norms, hands
 * masks to concat and joins to kernels; on ref every node runs alone. */
#include "support/net_side.h"
#include "support/op_check.h"
#include "support/small_net.h"
#include "support/testing.h"

enum { MB = 5 };

static void side_init(net_side *s, const char *device, const ki_plan_options *options) {
    net_side_init(s, op_backend(device, NULL), small_net_graph(true), 0.4, options);
}

static void compare_params(net_side *cpu, net_side *ref) {
    for (int i = 0; i < ki_params_count(ref->params); i++) {
        const char *name = ki_params_at(ref->params, i)->name;
        (void)net_side_read_param(cpu, name);
        (void)net_side_near(name, cpu, ref, net_side_read_param(ref, name), 5e-5);
    }
}

/* Three micro-batches; the gradients of all of them are in the store at the end. */
static void check_training(const ki_plan_options *options, int n_fused) {
    net_side cpu, ref;
    ki_plan_stats stats;
    kith_error err;
    side_init(&cpu, "cpu", options);
    side_init(&ref, "ref", options);
    ki_plan_stats_get(cpu.plan, &stats);
    assert_int_equal(stats.n_fused_relu, n_fused);
    ki_plan_stats_get(ref.plan, &stats);
    assert_int_equal(stats.n_fused_relu, 0);
    net_side *const sides[] = {&cpu, &ref};
    for (int i = 0; i < 2; i++) assert_ok(ki_params_zero_diffs(sides[i]->params, &err), &err);
    for (uint32_t batch = 0; batch < 3; batch++) {
        for (int i = 0; i < 2; i++) net_side_forward(sides[i], batch);
        (void)net_side_taps_near(&cpu, &ref, options->grad_taps, 1e-5);
        for (int i = 0; i < 2; i++) net_side_backward(sides[i], options->grad_taps, batch);
        if (options->input_grad) {
            assert_ok(ki_plan_read_input_grad(cpu.plan, cpu.buffer, &err), &err);
            assert_ok(ki_plan_read_input_grad(ref.plan, ref.buffer, &err), &err);
            (void)net_side_near("the input's gradient", &cpu, &ref, net_side_input_count(&ref), 5e-5);
        }
    }
    compare_params(&cpu, &ref);
    net_side_release(&cpu);
    net_side_release(&ref);
}

static void test_training(void **state) {
    (void)state;
    const ki_plan_options options = {
        .mb = MB, .mode = KI_TRAIN, .seed = 3, .grad_taps = {"map", "pooled", "embedding", "logits"}};
    check_training(&options, 8);
}

static void test_training_one_tap(void **state) {
    (void)state;
    const ki_plan_options options = {
        .mb = MB, .mode = KI_TRAIN, .seed = 3, .input_grad = true, .grad_taps = {"embedding", "logits"}};
    check_training(&options, 8);
}

static void test_training_with_frozen_statistics(void **state) {
    (void)state;
    const ki_plan_options options = {
        .mb = MB, .mode = KI_TRAIN, .frozen_bn = true, .grad_taps = {"map", "logits"}};
    check_training(&options, 8);
}

static void test_inference(void **state) {
    (void)state;
    const ki_plan_options options = {
        .mb = MB, .mode = KI_INFER, .taps = {"map", "pooled", "embedding", "logits"}};
    net_side cpu, ref;
    ki_plan_stats stats;
    side_init(&cpu, "cpu", &options);
    side_init(&ref, "ref", &options);
    ki_plan_stats_get(cpu.plan, &stats);
    assert_int_equal(stats.n_folded_bn, 5);
    for (uint32_t batch = 0; batch < 2; batch++) {
        net_side_forward(&cpu, batch);
        net_side_forward(&ref, batch);
        (void)net_side_taps_near(&cpu, &ref, options.taps, 1e-5);
    }
    net_side_release(&cpu);
    net_side_release(&ref);
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
