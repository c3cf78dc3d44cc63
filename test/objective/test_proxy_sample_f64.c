/* Classes drawn for a step, in double: gradients by differences, and over ranks as one process has it, to 1e-12. */
#include "objective/sample.h"

static double value_of(ki_objective *objective, const ki_batch *batch) {
    ki_result result;
    kith_error err;
    assert_ok(ki_objective_evaluate(objective, batch, &result, &err), &err);
    return result.total;
}

static void check(const char *loss, const char *what, ki_objective *objective, const ki_batch *batch,
                  ki_real *x, const ki_real *diff, int64_t n) {
    const double eps = 1e-6;
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)diff[i]));
    for (int64_t i = 0; i < n; i++) {
        const ki_real at = x[i];
        x[i] = at + eps;
        const double up = value_of(objective, batch);
        x[i] = at - eps;
        const double slope = (up - value_of(objective, batch)) / (2 * eps);
        x[i] = at;
        if (!(fabs(slope - (double)diff[i]) <= 1e-6 * most))
            fail_msg("%s: d/d%s[%lld] is %.12g; by differences %.12g (largest %g)", loss, what, (long long)i,
                     (double)diff[i], slope, most);
    }
}

static void test_gradients(void **state) {
    (void)state;
    for (size_t l = 0; l < N_ROWS(sample_losses); l++) {
        sample_case c = sample_new(sample_losses[l], 0.3, 11);
        sample_found f = sample_one(&c);
        made m = sample_made(&c, c.share, SAMPLE_CLASSES, 0, 0);
        const ki_batch batch = sample_batch(&c, 0, SAMPLE_M);
        const ki_state *p = ki_objective_param(m.objective, 0);
        check(c.loss, "x", m.objective, &batch, c.x, f.diff, SAMPLE_M * SAMPLE_DIM);
        check(c.loss, "proxies", m.objective, &batch, p->value, f.proxies, p->count);
        made_free(&m);
        free(f.proxies);
    }
}

static void test_over_ranks(void **state) {
    (void)state;
    sample_over_ranks(1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_many_as_the_share_says),
                                       cmocka_unit_test(test_every_class_has_its_turn),
                                       cmocka_unit_test(test_a_step_is_the_loss_over_the_drawn),
                                       cmocka_unit_test(test_gradients), cmocka_unit_test(test_over_ranks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
