/* Every op's gradients against central differences in double.
 *
 * The objective is sum(dst * diff_dst) for drawn diff_dst; eps is 1e-6 and an error counts relative
 * to the largest entry of the gradient it is in. A coordinate where the two one-sided differences
 * disagree lies at a kink: it is skipped, and there may be next to none of those. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/op_case.h"
#include "support/testing.h"

static const double eps = 1e-6, tolerance = 1e-6;
enum { MAX_COORDINATES = 400 };

typedef struct tally {
    int n_checked, n_skipped;
    double worst;
} tally;

/* sum((a - b) * diff_dst): the difference of two objectives without cancellation of their sums. */
static double objective_change(const op_run *run, const ki_real *a, const ki_real *b) {
    double sum = 0;
    for (int64_t i = 0; i < run->n_dst; i++) sum += (a[i] - b[i]) * run->diff_dst[i];
    return sum;
}

static void forward_into(op_run *run, ki_real *dst) {
    kith_error err;
    assert_ok(op_run_forward(run, &err), &err);
    memcpy(dst, run->dst, (size_t)run->n_dst * sizeof *dst);
}

static void check_tensor(op_run *run, const char *name, ki_real *values, const ki_real *diff, int64_t n,
                         tally *t) {
    double largest = 0;
    for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs(diff[i]));
    ki_real *here = malloc(3 * (size_t)run->n_dst * sizeof *here), *up = here + run->n_dst,
            *down = up + run->n_dst;
    assert_non_null(here);
    forward_into(run, here);
    const int64_t stride = n / MAX_COORDINATES + 1;
    for (int64_t i = 0; i < n; i += stride) {
        const ki_real value = values[i];
        values[i] = value + eps;
        const double wide_up = values[i] - value;
        forward_into(run, up);
        values[i] = value - eps;
        const double wide_down = value - values[i];
        forward_into(run, down);
        values[i] = value;
        const double right = objective_change(run, up, here) / wide_up;
        const double left = objective_change(run, here, down) / wide_down;
        if (fabs(right - left) > 1e-3 * fmax(largest, 1e-3)) {
            t->n_skipped++;
            continue;
        }
        const double found = diff[i], wanted = objective_change(run, up, down) / (wide_up + wide_down);
        const double error = fabs(found - wanted) / fmax(largest, 1e-12);
        t->n_checked++;
        t->worst = fmax(t->worst, error);
        /* A gradient that is zero everywhere must be zero by differences too. */
        if (!(error <= tolerance) && !(largest == 0 && fabs(wanted) < 1e-9))
            fail_msg(
                "%s: gradient of %s[%lld] is %.12g, by differences %.12g (error %.2g of the largest %.3g)",
                run->c->line, name, (long long)i, found, wanted, error, largest);
    }
    free(here);
}

static void check_case(const op_case *c, ki_backend *backend, tally *t) {
    op_run run;
    kith_error err;
    assert_ok(op_run_init(&run, c, backend, &err), &err);
    assert_ok(op_run_forward(&run, &err), &err);
    assert_ok(op_run_backward(&run, &err), &err);
    for (int i = 0; i < run.spec.n_src && !c->masked; i++)
        check_tensor(&run, "src", run.src[i], run.diff_src[i], run.n_src[i], t);
    for (int i = 0; i < run.n_params; i++) {
        if (run.param[i].trained)
            check_tensor(&run, run.param[i].name, run.param[i].value, run.param[i].diff, run.param[i].n, t);
    }
    op_run_release(&run);
}

static void test_ops_against_differences(void **state) {
    (void)state;
    op_case cases[OP_MAX_CASES];
    const int n = op_cases_read("small", cases);
    ki_backend *backend = NULL;
    kith_error err;
    assert_ok(ki_backend_open("ref", 0, &backend, &err), &err);
    tally t = {0};
    bool seen[KI_N_OPS] = {[KI_OP_INPUT] = true};
    for (int i = 0; i < n; i++) {
        if (cases[i].infer) continue;
        check_case(&cases[i], backend, &t);
        seen[cases[i].kind] = true;
    }
    ki_backend_close(backend);
    for (int i = 0; i < KI_N_OPS; i++) {
        if (!seen[i]) fail_msg("no case checks the gradient of %s", ki_op_name((ki_op_kind)i));
    }
    print_message("%d coordinates checked, %d at kinks, worst error %.2g\n", t.n_checked, t.n_skipped,
                  t.worst);
    if (t.n_skipped * 1000 > t.n_checked) fail_msg("%d of %d coordinates at kinks", t.n_skipped, t.n_checked);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops_against_differences),
    };
    return cmocka_run_group_tests_name("nn/gradients", tests, NULL, NULL);
}
