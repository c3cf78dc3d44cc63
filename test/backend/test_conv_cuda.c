/* Every convolution and linear layer of the case files on cuda (the real one or the emulated) against ref, in
 * float32 and bf16: output, gradients of source and parameters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/op_case.h"
#include "support/testing.h"

static ki_backend *ref;

static void compare(const op_case *c, const char *what, const ki_real *a, const ki_real *b, int64_t n,
                    double tolerance, double *worst) {
    const double error = op_relative_l2(a, b, n);
    if (!(error <= tolerance))
        fail_msg("%s: %s is off by %.3g relative L2, wanted at most %.3g", c->line, what, error, tolerance);
    if (error > *worst) *worst = error;
}

static void run(op_run *r, const op_case *c, ki_backend *backend, bool keeps_diffs) {
    kith_error err;
    if (op_run_init(r, c, backend, &err) != KITH_OK) fail_msg("%s: %s", c->line, err.message);
    r->keeps_diffs = keeps_diffs;
    for (int i = 0; keeps_diffs && i < r->n_params; i++) {
        for (int64_t j = 0; r->param[i].diff && j < r->param[i].n; j++) r->param[i].diff[j] = (ki_real)(j % 7) - 3;
    }
    if (op_run_forward(r, &err) != KITH_OK) fail_msg("%s: forward: %s", c->line, err.message);
    if (r->spec.mode == KI_INFER) return;
    if (op_run_backward(r, &err) != KITH_OK) fail_msg("%s: backward: %s", c->line, err.message);
}

static void compare_case(const op_case *c, ki_backend *cuda, bool keeps_diffs, double tolerance, double *worst) {
    op_run a, b;
    run(&a, c, cuda, keeps_diffs);
    run(&b, c, ref, keeps_diffs);
    compare(c, "dst", a.dst, b.dst, a.n_dst, tolerance, worst);
    if (a.spec.mode == KI_TRAIN) {
        if (a.spec.wants_diff_src[0])
            compare(c, "the gradient of the source", a.diff_src[0], b.diff_src[0], a.n_src[0], tolerance, worst);
        for (int i = 0; i < a.n_params; i++) {
            if (a.param[i].trained)
                compare(c, a.param[i].name, a.param[i].diff, b.param[i].diff, a.param[i].n, tolerance, worst);
        }
    }
    op_run_release(&a);
    op_run_release(&b);
}

/* The files are made of real layers; the emulator, a thousand times slower than a device, takes the small. */
static bool is_too_large(const op_case *c) {
#ifdef KI_EMULATE_TESTS
    return c->src[0].n_dims == 4 && ki_shape_count(&c->src[0]) > 300000;
#else
    return (void)c, false;
#endif
}

static void compare_op(ki_op_kind kind, ki_backend_options options, double tolerance) {
    ki_backend *cuda = NULL;
    kith_error err;
    assert_ok(ki_backend_open("cuda", &options, &cuda, &err), &err);
    op_case cases[2 * OP_MAX_CASES];
    int n = op_cases_read(ki_op_name(kind), cases), n_compared = 0;
    n += op_cases_read("small", cases + n);
    double worst = 0;
    for (int i = 0; i < n; i++) {
        if (cases[i].kind != kind || is_too_large(&cases[i])) continue;
        compare_case(&cases[i], cuda, n_compared % 4 == 3, tolerance, &worst);
        n_compared++;
    }
    print_message("%d cases of %s, worst %.2g\n", n_compared, ki_op_name(kind), worst);
    assert_true(n_compared > 3);
    ki_backend_close(cuda);
}

static void test_conv2d_float32(void **state) {
    (void)state;
    compare_op(KI_OP_CONV2D, (ki_backend_options){0}, 1e-5);
}

static void test_conv2d_bf16(void **state) {
    (void)state;
    compare_op(KI_OP_CONV2D, (ki_backend_options){.precision = KI_BF16}, 2e-2);
}

static void test_conv2d_deterministic(void **state) {
    (void)state;
    compare_op(KI_OP_CONV2D, (ki_backend_options){.deterministic = true}, 1e-5);
}

static void test_linear(void **state) {
    (void)state;
    compare_op(KI_OP_LINEAR, (ki_backend_options){0}, 1e-5);
}

static void test_linear_beside_bf16(void **state) {
    (void)state;
    compare_op(KI_OP_LINEAR, (ki_backend_options){.precision = KI_BF16}, 1e-5);
}

static int open_ref(void **state) {
    (void)state;
    kith_error err;
    ki_backend *cuda = NULL;
    if (ki_backend_open("cuda", NULL, &cuda, &err) != KITH_OK) {
        print_message("%s\n", err.message);
        exit(77);
    }
    ki_backend_close(cuda);
    return ki_backend_open("ref", NULL, &ref, &err) == KITH_OK ? 0 : -1;
}

static int close_ref(void **state) {
    (void)state;
    ki_backend_close(ref);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv2d_float32),       cmocka_unit_test(test_conv2d_bf16),
        cmocka_unit_test(test_conv2d_deterministic), cmocka_unit_test(test_linear),
        cmocka_unit_test(test_linear_beside_bf16),
    };
    return cmocka_run_group_tests_name("backend/cuda convolutions", tests, open_ref, close_ref);
}
