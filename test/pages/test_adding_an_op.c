/* The op of docs/adding-an-op.md, linked in as the page says: the CPU against the reference, and in a network. */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "nn/plan.h"
#include "pages/op_lines.h"
#include "support/op_check.h"

static ki_backend *both[2];

static int open_both(void **state) {
    (void)state;
    both[0] = op_backend("ref", NULL);
    both[1] = op_backend("cpu", NULL);
    return 0;
}

static int close_both(void **state) {
    (void)state;
    ki_backend_close(both[0]);
    ki_backend_close(both[1]);
    return 0;
}

static void compare(const op_case *c, void *user) {
    op_run run[2];
    for (int i = 0; i < 2; i++) {
        kith_error err;
        assert_ok(op_run_init(&run[i], c, both[i], &err), &err);
        op_run_step(&run[i]);
    }
    op_check_near(&run[1], &run[0], "cpu", 1e-6, user);
    op_run_release(&run[0]);
    op_run_release(&run[1]);
}

static void test_cpu_against_ref(void **state) {
    (void)state;
    double worst = 0;
    op_lines("leaky_relu", "leaky_relu", 5, compare, &worst);
    op_lines("small", "leaky_relu", 2, compare, &worst);
}

static int add(ki_graph *graph, int src, double slope) {
    return ki_graph_op(graph, KI_OP_LEAKY_RELU, NULL, 1, &src, (ki_attr){.leaky_relu = {slope}});
}

static void test_rules(void **state) {
    (void)state;
    kith_error err = {0};
    ki_graph *graph = NULL;
    assert_ok(ki_graph_new(&graph, &err), &err);
    const int x = add(graph, ki_graph_input(graph, 3, 5, 4), 0.2);
    assert_string_equal(ki_graph_node(graph, x)->name, "leaky_relu#1");
    assert_true(ki_shape_equal(&ki_graph_node(graph, x)->shape, &KI_SHAPE4(1, 3, 5, 4)));
    assert_int_equal(add(graph, x, 1), -1);
    assert_int_equal(ki_graph_check(graph, &err), KITH_EINVAL);
    assert_string_equal(err.message,
                        "node leaky_relu#2 (leaky_relu): slope is 1; wanted at least 0 and below 1");
    ki_graph_free(graph);
}

enum { MB = 2, C = 3, SIDE = 6, N = MB * C * SIDE * SIDE };

/* Behind a convolution of ones, in a plan: forward, and the gradient of the input. */
static void run_network(ki_backend *backend, const ki_real *input, ki_real *ret_pooled, ki_real *ret_diff) {
    kith_error err = {0};
    ki_graph *graph = NULL;
    ki_params *params = NULL;
    ki_plan *plan = NULL;
    ki_real ones[C * C * 9], grad[MB * C] = {1, -2, 3, -4, 5, -6};
    for (size_t i = 0; i < N_ROWS(ones); i++) ones[i] = (ki_real)(i % 5) - 2;
    const ki_conv_attr conv = {.oc = C, .kh = 3, .kw = 3, .sh = 1, .sw = 1, .ph = 1, .pw = 1};
    assert_ok(ki_graph_new(&graph, &err), &err);
    const int x = add(graph, ki_graph_conv(graph, "conv", ki_graph_input(graph, C, SIDE, SIDE), conv), 0.25);
    ki_graph_tap(graph, ki_graph_global_pool(graph, "pool", x, (ki_global_pool_attr){KI_GLOBAL_AVG}),
                 "pooled");
    assert_ok(ki_graph_check(graph, &err), &err);
    assert_ok(ki_params_new(graph, backend, &params, &err), &err);
    assert_ok(ki_params_set(params, ki_params_find(params, "conv.weight"), ones, &err), &err);
    const ki_plan_options options = {.mb = MB, .mode = KI_TRAIN, .input_grad = true, .grad_taps = {"pooled"}};
    assert_ok(ki_plan_new(graph, params, backend, &options, &plan, &err), &err);
    assert_ok(ki_plan_set_input(plan, input, &err), &err);
    assert_ok(ki_plan_forward(plan, &err), &err);
    assert_ok(ki_plan_read(plan, "pooled", ret_pooled, &err), &err);
    assert_ok(ki_plan_set_grad(plan, "pooled", grad, &err), &err);
    assert_ok(ki_plan_backward(plan, &err), &err);
    assert_ok(ki_plan_read_input_grad(plan, ret_diff, &err), &err);
    ki_plan_free(plan);
    ki_params_free(params);
    ki_graph_free(graph);
}

static void test_in_a_network(void **state) {
    (void)state;
    ki_real input[N], pooled[2][MB * C], diff[2][N];
    double n_below = 0;
    for (int i = 0; i < N; i++) input[i] = (ki_real)sin(1.1 * i + 0.2);
    for (int k = 0; k < 2; k++) run_network(both[k], input, pooled[k], diff[k]);
    for (int i = 0; i < MB * C; i++) {
        if (!(fabs((double)(pooled[0][i] - pooled[1][i])) < 1e-5))
            fail_msg("pooled[%d]: cpu %g, ref %g", i, (double)pooled[1][i], (double)pooled[0][i]);
    }
    for (int i = 0; i < N; i++) {
        if (!(fabs((double)(diff[0][i] - diff[1][i])) < 1e-5))
            fail_msg("diff[%d]: cpu %g, ref %g", i, (double)diff[1][i], (double)diff[0][i]);
        n_below += diff[0][i] != 0;
    }
    assert_true(n_below > N / 2);
}

int main(void) {
    ki_threads_set(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_against_ref),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_in_a_network),
    };
    return cmocka_run_group_tests_name("docs/adding-an-op", tests, open_both, close_both);
}
