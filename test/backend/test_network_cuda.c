/* A whole small network on cuda against ref: there the planner fuses ReLUs, lets branches write into slices of their
 * concat and folds batch norms; on ref every node runs alone. In float32, and in bf16 against what bf16 allows. */
#include <math.h>

#include "support/net_side.h"
#include "support/op_check.h"
#include "support/small_net.h"
#include "support/testing.h"

enum { MB = 5 };

static void side_init(net_side *s, const char *device, ki_precision precision,
                      const ki_plan_options *options) {
    net_side_init(s, op_backend(device, &(ki_backend_options){.precision = precision}), small_net_graph(true),
                  0.4, options);
}

static double worst;

static void keep_worst(double off) {
    if (off > worst) worst = off;
}

static void compare_params(net_side *cuda, net_side *ref, double tolerance) {
    double error = 0, total = 0;
    for (int i = 0; i < ki_params_count(ref->params); i++) {
        const ki_param *p = ki_params_at(ref->params, i);
        (void)net_side_read_param(cuda, p->name);
        (void)net_side_read_param(ref, p->name);
        if (tolerance < 1e-3 || !p->trained)
            keep_worst(net_side_near(p->name, cuda, ref, p->n, tolerance < 1e-3 ? tolerance : 2e-2));
        else
            for (int64_t j = 0; j < p->n; j++) {
                const double d = (double)cuda->buffer[j] - (double)ref->buffer[j];
                error += d * d;
                total += (double)ref->buffer[j] * (double)ref->buffer[j];
            }
    }
    /* A value that rounding moves across zero changes its ReLU's gradient wholly, and a maximum its place: on ref,
     * weights moved by 0.2 %, half a step of bf16, move the gradients of most parameters here by 5 to 40 %. So in bf16
     * the gradient is compared as a whole (off by 7 to 28 % over six draws), and this is no more than a check of its
     * direction; test_ops_cuda has the rest. */
    if (!(error <= tolerance * tolerance * total) && total > 0)
        fail_msg("the gradient of all parameters is off by %.3g relative L2, wanted at most %.3g",
                 sqrt(error / total), tolerance);
    if (total > 0) print_message("gradient of all parameters: off by %.3g\n", sqrt(error / total));
}

/* Two micro-batches; the gradients of both are in the store at the end. */
static void check_training(const ki_plan_options *options, ki_precision precision, double tolerance) {
    net_side cuda, ref;
    kith_error err;
    side_init(&cuda, "cuda", precision, options);
    side_init(&ref, "ref", KI_FLOAT32, options);
    net_side *const sides[] = {&cuda, &ref};
    worst = 0;
    for (int i = 0; i < 2; i++) assert_ok(ki_params_zero_diffs(sides[i]->params, &err), &err);
    for (uint32_t batch = 0; batch < 2; batch++) {
        for (int i = 0; i < 2; i++) net_side_forward(sides[i], batch);
        keep_worst(net_side_taps_near(&cuda, &ref, options->grad_taps, tolerance));
        for (int i = 0; i < 2; i++) net_side_backward(sides[i], options->grad_taps, batch);
        if (options->input_grad && precision == KI_FLOAT32) {
            assert_ok(ki_plan_read_input_grad(cuda.plan, cuda.buffer, &err), &err);
            assert_ok(ki_plan_read_input_grad(ref.plan, ref.buffer, &err), &err);
            keep_worst(net_side_near("the input's gradient", &cuda, &ref, net_side_input_count(&ref),
                                     5 * tolerance));
        }
    }
    compare_params(&cuda, &ref, precision == KI_FLOAT32 ? 5 * tolerance : 0.4);
    print_message("worst %.2g\n", worst);
    net_side_release(&cuda);
    net_side_release(&ref);
}

static const ki_plan_options all_taps = {
    .mb = MB, .mode = KI_TRAIN, .seed = 3, .grad_taps = {"map", "pooled", "embedding", "logits"}};
static const ki_plan_options one_tap = {
    .mb = MB, .mode = KI_TRAIN, .seed = 3, .input_grad = true, .grad_taps = {"embedding", "logits"}};
static const ki_plan_options frozen = {
    .mb = MB, .mode = KI_TRAIN, .frozen_bn = true, .grad_taps = {"map", "logits"}};

static void test_training(void **state) {
    (void)state;
    check_training(&all_taps, KI_FLOAT32, 1e-5);
}
static void test_training_one_tap(void **state) {
    (void)state;
    check_training(&one_tap, KI_FLOAT32, 1e-5);
}
static void test_training_with_frozen_statistics(void **state) {
    (void)state;
    check_training(&frozen, KI_FLOAT32, 1e-5);
}
static void test_training_in_bf16(void **state) {
    (void)state;
    check_training(&all_taps, KI_BF16, 2e-2);
}
static void test_training_with_frozen_statistics_in_bf16(void **state) {
    (void)state;
    check_training(&frozen, KI_BF16, 2e-2);
}

static void check_inference(ki_precision precision, double tolerance) {
    const ki_plan_options options = {
        .mb = MB, .mode = KI_INFER, .taps = {"map", "pooled", "embedding", "logits"}};
    net_side cuda, ref;
    ki_plan_stats stats;
    side_init(&cuda, "cuda", precision, &options);
    side_init(&ref, "ref", KI_FLOAT32, &options);
    ki_plan_stats_get(cuda.plan, &stats);
    assert_int_equal(stats.n_folded_bn, 5);
    for (uint32_t batch = 0; batch < 2; batch++) {
        net_side_forward(&cuda, batch);
        net_side_forward(&ref, batch);
        (void)net_side_taps_near(&cuda, &ref, options.taps, tolerance);
    }
    net_side_release(&cuda);
    net_side_release(&ref);
}

static void test_inference(void **state) {
    (void)state;
    check_inference(KI_FLOAT32, 1e-5);
}
static void test_inference_in_bf16(void **state) {
    (void)state;
    check_inference(KI_BF16, 2e-2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_training_one_tap),
        cmocka_unit_test(test_training_with_frozen_statistics),
        cmocka_unit_test(test_training_in_bf16),
        cmocka_unit_test(test_training_with_frozen_statistics_in_bf16),
        cmocka_unit_test(test_inference),
        cmocka_unit_test(test_inference_in_bf16),
    };
    return cmocka_run_group_tests_name("backend/network on cuda against ref", tests, NULL, NULL);
}
