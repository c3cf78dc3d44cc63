/* Every golden case in float32: value to 1e-5, gradients to 1e-4 relative L2. */
#include "base/parallel.h"
#include "objective/cases.h"

static int n_bad;

/* Relative L2, but not finer than `floor_`: both sides may be nothing but rounding around 0. */
static void check_gradient(const golden_case *c, const char *what, const ki_real *found, double floor_) {
    char full[256];
    kith_array view;
    snprintf(full, sizeof full, "%s%s", c->key, what);
    ki_real *wanted = golden_reals(c->file, full, &view);
    if (!wanted) return;
    if (!found) fail_msg("%s: no gradient", full);
    double error = 0, size = 0;
    for (int64_t i = 0; i < kith_array_count(&view); i++) {
        error += pow((double)found[i] - (double)wanted[i], 2);
        size += pow((double)wanted[i], 2);
    }
    error = sqrt(error), size = sqrt(size);
    if (!(error <= 1e-4 * size + floor_)) {
        print_error("%s: |found - wanted| %.3g, |wanted| %.3g, relative %.3g\n", full, error, size,
                    error / size);
        n_bad++;
    }
    ki_free(wanted);
}

static void check_case(golden_case *c) {
    kith_error err = {0};
    ki_result result;
    const double rounding = case_rounding(c);
    if (ki_objective_evaluate(c->made.objective, &c->batch, &result, &err) != KITH_OK)
        fail_msg("%s: %s (%s)", c->key, err.message, err.hint);
    char full[256];
    snprintf(full, sizeof full, "%svalue", c->key);
    kith_array value;
    assert_ok(kith_tensors_get(c->file, full, &value, &err), &err);
    const double wanted = ((double *)value.data)[0];
    if (!(fabs(result.total - wanted) <= 1e-5 * fmax(1, fabs(wanted)))) {
        print_error("%s: value %.9g, wanted %.9g\n", c->key, result.total, wanted);
        n_bad++;
    }
    /* The gradient at the embedding is the whole one, wherever it is meant to stop. */
    const int64_t n = c->batch.m * c->batch.tap[KI_TAP_EMBEDDING].cols;
    ki_real *whole = ki_zalloc((size_t)n, sizeof *whole);
    double norm = 0;
    for (int64_t i = 0; i < n; i++) {
        if (result.diff[KI_TAP_EMBEDDING]) whole[i] += result.diff[KI_TAP_EMBEDDING][i];
        if (result.diff_stopped) whole[i] += result.diff_stopped[i];
        norm += pow((double)c->tap[KI_TAP_EMBEDDING][i], 2);
    }
    norm = sqrt(norm / (double)c->batch.m);
    check_gradient(c, "grad", whole,
                   strcmp(c->shape, "coincide") == 0 ? rounding * fmax(norm, 1 / norm) : 1e-12);
    check_gradient(c, "grad_pooled", result.diff[KI_TAP_POOLED], 1e-6);
    check_gradient(c, "grad_map", result.diff[KI_TAP_MAP], 1e-6);
    check_gradient(c, "grad_state/embedding.weight", result.diff[KI_TAP_WEIGHT], 1e-6);
    for (size_t i = 0;; i++) {
        const ki_state *param = ki_objective_param(c->made.objective, i);
        if (!param) break;
        snprintf(full, sizeof full, "grad_state/%s", param->name);
        if (param->diff) check_gradient(c, full, param->diff, 1e-6);
    }
    ki_free(whole);
}

static void test_golden_cases(void **state) {
    (void)state;
    const int n = cases_walk(check_case);
    print_message("%d cases, %d differences\n", n, n_bad);
    assert_true(n > 200);
    assert_int_equal(n_bad, 0);
}

/* Names of methods that some case's recipe uses. */
static char used[1 << 16];
static void note_case(golden_case *c) {
    if (strlen(used) + strlen(c->recipe) + 2 < sizeof used && !strstr(used, c->recipe))
        strcat(strcat(used, c->recipe), "\n");
}

static void assert_used(const char *kind, const char *name) {
    char key[64];
    snprintf(key, sizeof key, "{name: %s", name);
    if (!strstr(used, key)) fail_msg("%s %s has no golden case", kind, name);
}

static void test_every_method_has_a_case(void **state) {
    (void)state;
    cases_walk(note_case);
    for (size_t i = 0; ki_loss_at(i); i++) assert_used("loss", ki_loss_at(i)->method.name);
    for (size_t i = 0; ki_reg_at(i); i++) assert_used("regularizer", ki_reg_at(i)->method.name);
}

int main(void) {
    ki_threads_set(1); /* the batches are small: threads would only wait for each other */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_cases),
        cmocka_unit_test(test_every_method_has_a_case),
    };
    return cmocka_run_group_tests_name("objective/golden", tests, NULL, NULL);
}
