/* Every line of the case files on backend cpu against backend ref: output, gradients of all sources
 * and parameters, running statistics. One test per op, so that a failure names it. */
#include <stdio.h>
#include <string.h>

#include "support/op_check.h"
#include "support/testing.h"

/* Sums of float in another order, and Winograd's transforms in convolutions. */
static double tolerance_of(ki_op_kind kind) { return kind == KI_OP_CONV2D ? 1e-4 : 1e-5; }

static int64_t count_nonzero(const float *values, int64_t n) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) count += !(values[i] == 0);
    return count;
}

/* In a native map there is nothing but its values and zeros. */
static void check_padding(const op_run *run, const ki_edge *edge, const void *device, const ki_real *values,
                          const char *what) {
    if (edge->layout != KI_NATIVE || !device) return;
    const int64_t found = count_nonzero(device, (int64_t)(edge->bytes / sizeof(float))),
                  wanted = count_nonzero(values, ki_shape_count(&edge->shape));
    if (found != wanted)
        fail_msg("%s: %s has %lld numbers that are not 0, wanted %lld: its padding is not clear",
                 run->c->line, what, (long long)found, (long long)wanted);
}

/* The host may have changed the values behind what the kernel fuses less. */
static void check_dst_padding(const op_run *run) {
    const op_case *c = run->c;
    if (!c->relu && !(c->has_act && !run->fused_act) && !c->folded && !c->added)
        check_padding(run, &run->spec.dst, run->device_dst, run->dst, "dst");
}

static void check_diff_padding(const op_run *run) {
    if (run->info.shares_diff || run->c->masked) return;
    for (int i = 0; i < run->spec.n_src; i++)
        check_padding(run, &run->spec.src[i], run->device_diff_src[i], run->diff_src[i],
                      "the gradient of a source");
}

/* Forward, and backward unless the case is for inference. */
static void run_cpu(op_run *run) {
    kith_error err;
    assert_ok(op_run_forward(run, &err), &err);
    check_dst_padding(run);
    if (run->spec.mode != KI_TRAIN) return;
    assert_ok(op_run_backward(run, &err), &err);
    check_diff_padding(run);
}

static void compare_case(const op_case *c, ki_backend *cpu, ki_backend *ref, double *worst) {
    op_run a, b;
    kith_error err;
    assert_ok(op_run_init(&a, c, cpu, &err), &err);
    assert_ok(op_run_init(&b, c, ref, &err), &err);
    run_cpu(&a);
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
