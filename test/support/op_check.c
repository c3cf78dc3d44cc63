/* Checks of an op's results. */
#include "support/op_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/testing.h"

ki_backend *op_backend(const char *device, const ki_backend_options *options) {
    ki_backend *backend = NULL;
    kith_error err;
    const kith_status status = ki_backend_open(device, options, &backend, &err);
    if (status == KITH_OK) return backend;
    print_message("%s\n", err.message);
    exit(status == KITH_EUNSUPPORTED ? 77 : 1);
}

void op_run_step(op_run *run) {
    kith_error err;
    if (op_run_forward(run, &err) != KITH_OK) fail_msg("%s: forward: %s", run->c->line, err.message);
    if (run->spec.mode == KI_TRAIN && op_run_backward(run, &err) != KITH_OK)
        fail_msg("%s: backward: %s", run->c->line, err.message);
}

/* Compares one tensor of two runs. */
typedef void compare_fn(const void *with, const op_run *run, const char *what, const ki_real *a,
                        const ki_real *b, int64_t n);

static void compare_all(const op_run *a, const op_run *b, compare_fn *compare, const void *with) {
    char what[64];
    compare(with, a, "dst", a->dst, b->dst, a->n_dst);
    for (int i = 0; i < a->n_params; i++)
        compare(with, a, a->param[i].name, a->param[i].value, b->param[i].value, a->param[i].n);
    if (a->spec.mode != KI_TRAIN) return;
    for (int i = 0; i < a->spec.n_src; i++) {
        snprintf(what, sizeof what, "the gradient of source %d", i);
        if (a->spec.wants_diff_src[i]) compare(with, a, what, a->diff_src[i], b->diff_src[i], a->n_src[i]);
    }
    for (int i = 0; i < a->n_params; i++) {
        snprintf(what, sizeof what, "the gradient of %s", a->param[i].name);
        if (a->param[i].trained) compare(with, a, what, a->param[i].diff, b->param[i].diff, a->param[i].n);
    }
}

typedef struct nearness {
    const char *how;
    double tolerance, *worst;
} nearness;

static void compare_near(const void *with, const op_run *run, const char *what, const ki_real *a,
                         const ki_real *b, int64_t n) {
    const nearness *near = with;
    const double error = op_relative_l2(a, b, n);
    if (!(error <= near->tolerance))
        fail_msg("%s (%s): %s is off by %.3g relative L2, wanted at most %.3g", run->c->line, near->how, what,
                 error, near->tolerance);
    if (error > *near->worst) *near->worst = error;
}

void op_check_near(const op_run *a, const op_run *b, const char *how, double tolerance, double *worst) {
    const nearness near = {how, tolerance, worst};
    compare_all(a, b, compare_near, &near);
}

static void compare_bits(const void *how, const op_run *run, const char *what, const ki_real *a,
                         const ki_real *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (memcmp(&a[i], &b[i], sizeof *a) != 0)
            fail_msg("%s (%s): %s[%lld] is %.9g, then %.9g", run->c->line, (const char *)how, what,
                     (long long)i, (double)a[i], (double)b[i]);
    }
}

void op_check_same(const op_run *a, const op_run *b, const char *how) {
    compare_all(a, b, compare_bits, how);
}

int op_check_accumulates(ki_backend *backend, const char *how) {
    op_case cases[OP_MAX_CASES];
    const int n = op_cases_read("small", cases);
    int n_params = 0;
    for (int i = 0; i < n; i++) {
        op_run once, twice;
        kith_error err;
        if (cases[i].infer || !backend->type->kernels.of[cases[i].kind]) continue;
        assert_ok(op_run_init(&once, &cases[i], backend, &err), &err);
        assert_ok(op_run_init(&twice, &cases[i], backend, &err), &err);
        op_run_step(&once);
        op_run_step(&twice);
        twice.keeps_diffs = true;
        op_run_step(&twice);
        for (int p = 0; p < once.n_params; p++) {
            if (!once.param[p].trained) continue;
            for (int64_t j = 0; j < once.param[p].n; j++) once.param[p].diff[j] *= 2;
            const double error = op_relative_l2(twice.param[p].diff, once.param[p].diff, once.param[p].n);
            if (!(error < 1e-6))
                fail_msg("%s (%s): two backwards give %s a gradient %.3g off twice one", cases[i].line, how,
                         once.param[p].name, error);
            n_params++;
        }
        op_run_release(&once);
        op_run_release(&twice);
    }
    return n_params;
}
