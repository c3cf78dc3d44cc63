/* Every line of the case files on backend cpu against backend ref: output, gradients of all sources
 * and parameters, running statistics. One test per op, so that a failure names it. */
#include <stdio.h>
#include <string.h>

#include "support/op_check.h"
#include "support/testing.h"

/* Sums of float in another order, and Winograd's transforms in convolutions. */
static double tolerance_of(ki_op_kind kind) { return kind == KI_OP_CONV2D ? 1e-4 : 1e-5; }

static void compare_case(const op_case *c, ki_backend *cpu, ki_backend *ref, double *worst) {
    op_run a, b;
    kith_error err;
    assert_ok(op_run_init(&a, c, cpu, &err), &err);
    assert_ok(op_run_init(&b, c, ref, &err), &err);
    op_run_step(&a);
    op_run_step(&b);
    op_check_near(&a, &b, "cpu", tolerance_of(c->kind), worst);
    op_run_release(&a);
    op_run_release(&b);
}

static ki_backend *cpu, *ref;

static int open_both(void **state) {
    (void)state;
    ref = op_backend("ref", NULL);
    cpu = op_backend("cpu", NULL);
    return 0;
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

#define X(NAME, name) \
    static void test_##name(void **state) { (void)state, compare_op(KI_OP_##NAME); }
#include "device/op.def"
#undef X

int main(void) {
    const struct CMUnitTest tests[] = {
#define X(NAME, name) cmocka_unit_test(test_##name),
#include "device/op.def"
#undef X
    };
    return cmocka_run_group_tests_name("backend/cpu against ref", tests, open_both, close_both);
}
