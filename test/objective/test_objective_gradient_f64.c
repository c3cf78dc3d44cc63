/* Every golden case in float64: analytic gradients against central differences, at every kind of
 * input: embedding, pooled, map, weight matrix, parameters. Coordinates at a kink (where the
 * difference itself changes with the step) are skipped and counted. */
#include "base/parallel.h"
#include "base/rng.h"
#include "objective/cases.h"

/* Of each array; fewer in the larger batches, whose evaluations take most of the time. */
enum { N_COORDINATES = 24, N_COORDINATES_LARGE = 6, LARGE = 64 };

static int n_checked, n_kinks, n_bad, n_value_bad, n_not_derivative;

static double value_of(golden_case *c) {
    kith_error err = {0};
    ki_result result;
    if (ki_objective_evaluate(c->made.objective, &c->batch, &result, &err) != KITH_OK)
        fail_msg("%s: %s", c->key, err.message);
    return result.total;
}

/* The central difference; *ret_bend is how far the middle lies from between the ends: next to nothing
 * unless there is a kink or a jump at the point itself. */
static double slope(golden_case *c, ki_real *at, double step, double middle, double *ret_bend) {
    const ki_real old = *at;
    *at = (ki_real)(old + step);
    const double above = value_of(c);
    *at = (ki_real)(old - step);
    const double below = value_of(c);
    *at = old;
    *ret_bend = fabs(above + below - 2 * middle) / (2 * step);
    return (above - below) / (2 * step);
}

static void check_array(golden_case *c, const char *what, ki_real *x, const ki_real *gradient, int64_t n) {
    double most = 0, norm = 0, round_off = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)gradient[i])), norm += (double)x[i] * (double)x[i];
    const double step = 1e-6 * fmax(sqrt(norm / (double)n), 1e-3);
    /* What the difference can resolve at all, from the value's own rounding. */
    const double middle = value_of(c);
    round_off = 8e-16 * fmax(1, fabs(middle)) / step;
    ki_rng rng = ki_rng_at(1, KI_RNG_TEST, (uint32_t)n, (uint32_t)strlen(c->key));
    const int n_coordinates = c->batch.m > LARGE ? N_COORDINATES_LARGE : N_COORDINATES;
    for (int k = 0; k < n_coordinates && k < n; k++) {
        const int64_t i = n <= n_coordinates ? k : (int64_t)ki_rng_below(&rng, (uint32_t)n);
        double bend = 0;
        const double narrow = slope(c, x + i, step / 2, middle, &bend),
                     wide = slope(c, x + i, step, middle, &bend);
        const double allowed = 1e-6 * most + round_off;
        if (fabs(wide - narrow) > 2 * allowed || bend > 1e-3 * most + 1e-3 * step) {
            n_kinks++;
            continue;
        }
        n_checked++;
        if (!(fabs(narrow - (double)gradient[i]) <= allowed) &&
            !(fabs(wide - (double)gradient[i]) <= allowed)) {
            print_error("%s%s[%lld]: gradient %.12g, difference %.12g (largest entry %.3g)\n", c->key, what,
                        (long long)i, (double)gradient[i], wide, most);
            n_bad++;
        }
    }
}

static void check_case(golden_case *c) {
    kith_error err = {0};
    ki_result result;
    assert_ok(ki_objective_evaluate(c->made.objective, &c->batch, &result, &err), &err);
    char full[256];
    snprintf(full, sizeof full, "%svalue", c->key);
    ki_real *wanted = golden_reals(c->file, full, NULL);
    if (!(fabs(result.total - (double)wanted[0]) <= 1e-9 * fmax(1, fabs((double)wanted[0])))) {
        print_error("%s: value %.15g, wanted %.15g\n", c->key, result.total, (double)wanted[0]);
        n_value_bad++;
    }
    ki_free(wanted);
    if (strstr(c->recipe, "# the gradient is not the derivative")) {
        n_not_derivative++;
        return;
    }
    ki_real *gradient[KI_N_TAPS] = {0};
    for (int tap = 0; tap < KI_N_TAPS; tap++) {
        if (!result.diff[tap]) continue;
        const int64_t n = c->batch.tap[tap].rows * c->batch.tap[tap].cols;
        gradient[tap] = ki_alloc((size_t)n, sizeof **gradient);
        for (int64_t i = 0; i < n; i++) {
            gradient[tap][i] = result.diff[tap][i];
            if (tap == KI_TAP_EMBEDDING && result.diff_stopped) gradient[tap][i] += result.diff_stopped[i];
        }
    }
    for (int tap = 0; tap < KI_N_TAPS; tap++) {
        if (gradient[tap])
            check_array(c, ki_tap_name((ki_tap)tap), c->tap[tap], gradient[tap],
                        c->batch.tap[tap].rows * c->batch.tap[tap].cols);
        ki_free(gradient[tap]);
    }
    for (size_t i = 0;; i++) {
        ki_state *param = ki_objective_param(c->made.objective, i);
        if (!param) break;
        if (!param->diff) continue;
        ki_objective_clear_diffs(c->made.objective);
        assert_ok(ki_objective_evaluate(c->made.objective, &c->batch, &result, &err), &err);
        ki_real *copy = ki_alloc((size_t)param->count, sizeof *copy);
        memcpy(copy, param->diff, (size_t)param->count * sizeof *copy);
        check_array(c, param->name, param->value, copy, param->count);
        ki_free(copy);
    }
}

static void test_gradients(void **state) {
    (void)state;
    const int n = cases_walk(check_case);
    print_message("%d cases: %d coordinates checked, %d at a kink, %d bad; %d values off\n", n, n_checked,
                  n_kinks, n_bad, n_value_bad);
    assert_int_equal(n_value_bad, 0);
    assert_int_equal(n_bad, 0);
    assert_true(n_checked > 5000);
    assert_true(n_kinks * 8 < n_checked);
    /* Circle with constant paces and kernels with the batch's own bandwidth, as their papers have it;
     * golden values check those gradients, and test_reg_joint_f64.c with the bandwidth held. */
    assert_true(n_not_derivative * 8 < n);
}

int main(void) {
    ki_threads_set(1); /* the batches are small: threads would only wait for each other */
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients)};
    return cmocka_run_group_tests_name("objective/gradient (float64)", tests, NULL, NULL);
}
