/* Gradients against central differences in double: every op on its small cases, and a whole network
 * with gradients injected at three taps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/rng.h"
#include "nn/plan.h"
#include "support/differences.h"
#include "support/op_case.h"
#include "support/small_net.h"
#include "support/testing.h"

static void op_forward(void *context, double *dst) {
    op_run *run = context;
    kith_error err;
    assert_ok(op_run_forward(run, &err), &err);
    memcpy(dst, run->dst, (size_t)run->n_dst * sizeof *dst);
}

static void check_case(const op_case *c, ki_backend *backend, subject *total) {
    op_run run;
    kith_error err;
    assert_ok(op_run_init(&run, c, backend, &err), &err);
    assert_ok(op_run_forward(&run, &err), &err);
    assert_ok(op_run_backward(&run, &err), &err);
    subject s = *total;
    s.name = c->line;
    s.context = &run;
    s.n_dst = run.n_dst;
    s.diff_dst = run.diff_dst;
    for (int i = 0; i < run.spec.n_src && !c->masked; i++)
        check_tensor(&s, "src", run.src[i], run.diff_src[i], run.n_src[i]);
    for (int i = 0; i < run.n_params; i++) {
        if (run.param[i].trained)
            check_tensor(&s, run.param[i].name, run.param[i].value, run.param[i].diff, run.param[i].n);
    }
    total->n_checked = s.n_checked;
    total->n_kinks = s.n_kinks;
    total->worst = s.worst;
    op_run_release(&run);
}

static void test_ops(void **state) {
    (void)state;
    op_case cases[OP_MAX_CASES];
    const int n = op_cases_read("small", cases);
    ki_backend *backend = NULL;
    kith_error err;
    assert_ok(ki_backend_open("ref", NULL, &backend, &err), &err);
    subject total = {.name = "ops", .forward = op_forward, .max_coordinates = 400};
    bool seen[KI_N_OPS] = {[KI_OP_INPUT] = true};
    for (int i = 0; i < n; i++) {
        if (cases[i].infer) continue;
        check_case(&cases[i], backend, &total);
        seen[cases[i].kind] = true;
    }
    ki_backend_close(backend);
    for (int i = 0; i < KI_N_OPS; i++) {
        if (!seen[i]) fail_msg("no case checks the gradient of %s", ki_op_name((ki_op_kind)i));
    }
    report(&total);
}

enum { MB = 3, N_TAPS = 3, N_INPUT = MB * SMALL_NET_C * SMALL_NET_H * SMALL_NET_W, MAX_NET_PARAMS = 48 };
static const char *const taps[N_TAPS] = {"map", "embedding", "logits"};

typedef struct net {
    ki_params *params;
    ki_plan *plan;
    double *input, *value[MAX_NET_PARAMS], *diff[MAX_NET_PARAMS];
    int64_t n_tap[N_TAPS], n_dst;
} net;

static double *draw(uint32_t stream, int64_t n) {
    double *values = malloc((size_t)n * sizeof *values);
    assert_non_null(values);
    ki_rng rng = ki_rng_at(21, KI_RNG_TEST, stream, 0);
    for (int64_t i = 0; i < n; i++) values[i] = ki_rng_normal(&rng);
    return values;
}

static void net_forward(void *context, double *dst) {
    net *t = context;
    kith_error err;
    assert_ok(ki_plan_set_input(t->plan, t->input, &err), &err);
    for (int i = 0; i < ki_params_count(t->params); i++) {
        const ki_param *p = ki_params_at(t->params, i);
        if (p->trained) assert_ok(ki_params_set(t->params, p, t->value[i], &err), &err);
    }
    assert_ok(ki_plan_forward(t->plan, &err), &err);
    for (int i = 0; i < N_TAPS; i++) {
        assert_ok(ki_plan_read(t->plan, taps[i], dst, &err), &err);
        dst += t->n_tap[i];
    }
}

static void net_backward(net *t, const double *diff_dst, double *input_diff) {
    kith_error err;
    assert_ok(ki_params_zero_diffs(t->params, &err), &err);
    for (int i = 0; i < N_TAPS; i++) {
        assert_ok(ki_plan_set_grad(t->plan, taps[i], diff_dst, &err), &err);
        diff_dst += t->n_tap[i];
    }
    assert_ok(ki_plan_backward(t->plan, &err), &err);
    assert_ok(ki_plan_read_input_grad(t->plan, input_diff, &err), &err);
    for (int i = 0; i < ki_params_count(t->params); i++) {
        const ki_param *p = ki_params_at(t->params, i);
        if (p->trained) assert_ok(ki_params_get_diff(t->params, p, t->diff[i], &err), &err);
    }
}

static void check_network(const char *name, bool frozen_bn) {
    ki_backend *backend = NULL;
    ki_graph *graph = NULL;
    kith_error err;
    net t = {0};
    assert_ok(ki_backend_open("ref", NULL, &backend, &err), &err);
    assert_ok(ki_graph_new(&graph, &err), &err);
    small_net_build(graph, false);
    assert_ok(ki_graph_check(graph, &err), &err);
    assert_ok(ki_params_new(graph, backend, &t.params, &err), &err);
    const ki_plan_options options = {.mb = MB,
                                     .mode = KI_TRAIN,
                                     .input_grad = true,
                                     .frozen_bn = frozen_bn,
                                     .grad_taps = {taps[0], taps[1], taps[2]}};
    assert_ok(ki_plan_new(graph, t.params, backend, &options, &t.plan, &err), &err);

    for (int i = 0; i < N_TAPS; i++) {
        ki_shape shape;
        assert_ok(ki_plan_tap_shape(t.plan, taps[i], &shape, &err), &err);
        t.n_tap[i] = ki_shape_count(&shape);
        t.n_dst += t.n_tap[i];
    }
    t.input = draw(0, N_INPUT);
    assert_true(ki_params_count(t.params) <= MAX_NET_PARAMS);
    for (int i = 0; i < ki_params_count(t.params); i++) {
        const ki_param *p = ki_params_at(t.params, i);
        t.value[i] = malloc((size_t)p->n * sizeof(double));
        t.diff[i] = malloc((size_t)p->n * sizeof(double));
        assert_ok(ki_params_get(t.params, p, t.value[i], &err), &err);
        /* Off the initial values, at which every shift is 0 and every scale 1. */
        ki_rng rng = ki_rng_at(21, KI_RNG_TEST, 100 + (uint32_t)i, 0);
        for (int64_t j = 0; j < p->n; j++) t.value[i][j] += 0.2 * (ki_rng_double(&rng) - 0.5);
    }
    double *dst = malloc((size_t)t.n_dst * sizeof *dst), *diff_dst = draw(1, t.n_dst),
           *input_diff = draw(2, N_INPUT);
    net_forward(&t, dst);
    net_backward(&t, diff_dst, input_diff);

    subject s = {.name = name,
                 .context = &t,
                 .forward = net_forward,
                 .n_dst = t.n_dst,
                 .diff_dst = diff_dst,
                 .max_coordinates = 40};
    check_tensor(&s, "input", t.input, input_diff, N_INPUT);
    for (int i = 0; i < ki_params_count(t.params); i++) {
        const ki_param *p = ki_params_at(t.params, i);
        if (p->trained) check_tensor(&s, p->name, t.value[i], t.diff[i], p->n);
    }
    report(&s);
    for (int i = 0; i < ki_params_count(t.params); i++) {
        free(t.value[i]);
        free(t.diff[i]);
    }
    free(t.input);
    free(dst);
    free(diff_dst);
    free(input_diff);
    ki_plan_free(t.plan);
    ki_params_free(t.params);
    ki_graph_free(graph);
    ki_backend_close(backend);
}

static void test_network(void **state) {
    (void)state;
    check_network("network", false);
}

static void test_network_with_frozen_statistics(void **state) {
    (void)state;
    check_network("network with frozen statistics", true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops),
        cmocka_unit_test(test_network),
        cmocka_unit_test(test_network_with_frozen_statistics),
    };
    ki_threads_set(1); /* tensors this small are not worth a second thread */
    return cmocka_run_group_tests_name("nn/gradients", tests, NULL, NULL);
}
