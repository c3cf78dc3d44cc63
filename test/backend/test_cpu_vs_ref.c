/* Every line of the case files on backend cpu against backend ref: output, gradients of all sources
 * and parameters, running statistics. One test per op, so that a failure names it. */
#include <stdio.h>
#include <string.h>

#include "support/op_case.h"
#include "support/testing.h"

/* Sums of float in another order, and Winograd's transforms in convolutions. */
static double tolerance_of(ki_op_kind kind) { return kind == KI_OP_CONV2D ? 1e-4 : 1e-5; }

static void compare(const op_case *c, const char *what, const ki_real *a, const ki_real *b, int64_t n,
                    double *worst) {
    const double error = op_relative_l2(a, b, n);
    if (!(error <= tolerance_of(c->kind)))
        fail_msg("%s: %s is off by %.3g relative L2, wanted at most %.3g", c->line, what, error,
                 tolerance_of(c->kind));
    if (error > *worst) *worst = error;
}

static void compare_case(const op_case *c, ki_backend *cpu, ki_backend *ref, double *worst) {
    op_run a, b;
    kith_error err;
    assert_ok(op_run_init(&a, c, cpu, &err), &err);
    assert_ok(op_run_init(&b, c, ref, &err), &err);
    op_run *const runs[] = {&a, &b};
    for (int i = 0; i < 2; i++) {
        if (op_run_forward(runs[i], &err) != KITH_OK) fail_msg("%s: forward: %s", c->line, err.message);
        if (runs[i]->spec.mode == KI_INFER) continue;
        if (op_run_backward(runs[i], &err) != KITH_OK) fail_msg("%s: backward: %s", c->line, err.message);
    }
    compare(c, "dst", a.dst, b.dst, a.n_dst, worst);
    for (int i = 0; i < a.n_params; i++) {
        if (!a.param[i].trained)
            compare(c, a.param[i].name, a.param[i].value, b.param[i].value, a.param[i].n, worst);
    }
    if (a.spec.mode == KI_TRAIN) {
        char what[64];
        for (int i = 0; i < a.spec.n_src; i++) {
            snprintf(what, sizeof what, "the gradient of source %d", i);
            if (a.spec.wants_diff_src[i]) compare(c, what, a.diff_src[i], b.diff_src[i], a.n_src[i], worst);
        }
        for (int i = 0; i < a.n_params; i++) {
            snprintf(what, sizeof what, "the gradient of %s", a.param[i].name);
            if (a.param[i].trained) compare(c, what, a.param[i].diff, b.param[i].diff, a.param[i].n, worst);
        }
    }
    op_run_release(&a);
    op_run_release(&b);
}

static ki_backend *cpu, *ref;

static int open_both(void **state) {
    (void)state;
    kith_error err;
    if (ki_backend_open("ref", NULL, &ref, &err) == KITH_OK &&
        ki_backend_open("cpu", NULL, &cpu, &err) == KITH_OK)
        return 0;
    print_error("%s\n", err.message);
    return -1;
}

static int close_both(void **state) {
    (void)state;
    ki_backend_close(cpu);
    ki_backend_close(ref);
    return 0;
}

/* The cases of one op: its own file and its lines of small.txt. */
static void compare_op(ki_op_kind kind) {
    op_case cases[2 * OP_MAX_CASES];
    int n = op_cases_read(ki_op_name(kind), cases);
    n += op_cases_read("small", cases + n);
    double worst = 0;
    int n_compared = 0;
    for (int i = 0; i < n; i++) {
        if (cases[i].kind != kind) continue;
        compare_case(&cases[i], cpu, ref, &worst);
        n_compared++;
    }
    print_message("%d cases of %s, worst %.2g\n", n_compared, ki_op_name(kind), worst);
}

#define OP_TEST(NAME, name) \
    static void test_##name(void **state) { (void)state, compare_op(KI_OP_##NAME); }
KI_OP_LIST(OP_TEST)

int main(void) {
    const struct CMUnitTest tests[] = {
#define OP_ROW(NAME, name) cmocka_unit_test(test_##name),
        KI_OP_LIST(OP_ROW)};
    /* The first op, input, is not run. */
    return _cmocka_run_group_tests("backend/cpu against ref", tests + 1, N_ROWS(tests) - 1, open_both,
                                   close_both);
}
