/* The small cases against PyTorch (test/golden/nn/make_ops.py), on ref and on cpu. */
#include <stdio.h>
#include <string.h>

#include "kith/array.h"
#include "support/op_case.h"
#include "support/testing.h"

typedef struct golden {
    kith_tensors *tensors;
    const op_case *c;
    const char *backend;
    double tolerance, *worst;
} golden;

static kith_array golden_get(const golden *g, const char *what) {
    char name[256];
    kith_array view;
    kith_error err;
    assert_true(snprintf(name, sizeof name, "%.199s|%.50s", g->c->line, what) < (int)sizeof name);
    assert_ok(kith_tensors_get(g->tensors, name, &view, &err), &err);
    return view;
}

static void take(const golden *g, const char *what, ki_real *values, int64_t n) {
    const kith_array view = golden_get(g, what);
    assert_int_equal(view.dtype, KITH_F32);
    assert_int_equal(kith_array_count(&view), n);
    memcpy(values, view.data, (size_t)n * sizeof(float));
}

static void compare(const golden *g, const char *what, const ki_real *values, int64_t n) {
    const kith_array view = golden_get(g, what);
    assert_int_equal(kith_array_count(&view), n);
    const double error = op_relative_l2(values, view.data, n);
    if (!(error <= g->tolerance))
        fail_msg("%s on %s: %s is off by %.3g relative L2, wanted at most %.3g", g->c->line, g->backend, what,
                 error, g->tolerance);
    if (error > *g->worst) *g->worst = error;
}

static void check_case(const golden *g, ki_backend *backend) {
    op_run run;
    kith_error err;
    char name[64];
    assert_ok(op_run_init(&run, g->c, backend, &err), &err);
    for (int i = 0; i < run.spec.n_src; i++) {
        snprintf(name, sizeof name, "src%d", i);
        take(g, name, run.src[i], run.n_src[i]);
    }
    for (int i = 0; i < run.n_params; i++) take(g, run.param[i].name, run.param[i].value, run.param[i].n);
    assert_ok(op_run_forward(&run, &err), &err);
    compare(g, "dst", run.dst, run.n_dst);
    for (int i = 0; i < run.n_params; i++) {
        snprintf(name, sizeof name, "new_%s", run.param[i].name);
        if (!run.param[i].trained) compare(g, name, run.param[i].value, run.param[i].n);
    }
    if (run.spec.mode == KI_TRAIN) {
        take(g, "diff_dst", run.diff_dst, run.n_dst);
        assert_ok(op_run_backward(&run, &err), &err);
        for (int i = 0; i < run.spec.n_src; i++) {
            snprintf(name, sizeof name, "diff_src%d", i);
            compare(g, name, run.diff_src[i], run.n_src[i]);
        }
        for (int i = 0; i < run.n_params; i++) {
            snprintf(name, sizeof name, "diff_%s", run.param[i].name);
            if (run.param[i].trained) compare(g, name, run.param[i].diff, run.param[i].n);
        }
    }
    op_run_release(&run);
}

/* Masks are ours alone. */
static bool is_drawn(const op_case *c) {
    return (c->kind == KI_OP_DROPOUT || c->kind == KI_OP_DROP_PATH) && !c->infer;
}

static void check_backend(const char *name, double tolerance) {
    op_case cases[OP_MAX_CASES];
    const int n = op_cases_read("small", cases);
    kith_tensors *tensors = NULL;
    ki_backend *backend = NULL;
    kith_error err;
    assert_ok(kith_tensors_open(KITH_SOURCE_DIR "/test/golden/nn/ops.safetensors", &tensors, &err), &err);
    assert_ok(ki_backend_open(name, NULL, &backend, &err), &err);
    double worst = 0;
    int n_checked = 0;
    for (int i = 0; i < n; i++) {
        if (is_drawn(&cases[i])) continue;
        const golden g = {tensors, &cases[i], name, tolerance, &worst};
        check_case(&g, backend);
        n_checked++;
    }
    print_message("%d cases, worst %.2g\n", n_checked, worst);
    ki_backend_close(backend);
    kith_tensors_free(tensors);
}

static void test_ref(void **state) {
    (void)state;
    check_backend("ref", 1e-6);
}

static void test_cpu(void **state) {
    (void)state;
    check_backend("cpu", 1e-5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ref),
        cmocka_unit_test(test_cpu),
    };
    return cmocka_run_group_tests_name("nn/op against PyTorch", tests, NULL, NULL);
}
