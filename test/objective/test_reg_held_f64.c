/* In float64, what golden files cannot hold: kernels with the batch's own bandwidth held constant, and
 * energy confusion over random pairs, against central differences. */
#include "base/parallel.h"
#include "objective/taps.h"

static double value_of(const made *m, const ki_batch *batch, ki_result *ret) {
    kith_error err = {0};
    assert_ok(ki_objective_evaluate(m->objective, batch, ret, &err), &err);
    return ret->total;
}

/* Central differences at every coordinate of a tap against `gradient`. */
static void check_tap(const char *what, const made *m, taps *t, ki_real *x, const ki_real *gradient,
                      int64_t n) {
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)gradient[i]));
    assert_true(most > 1e-6);
    for (int64_t i = 0; i < n; i++) {
        ki_result result;
        const ki_real old = x[i];
        x[i] = old + (ki_real)1e-6;
        const double above = value_of(m, &t->batch, &result);
        x[i] = old - (ki_real)1e-6;
        const double below = value_of(m, &t->batch, &result);
        x[i] = old;
        const double slope = (above - below) / 2e-6;
        if (!(fabs(slope - (double)gradient[i]) <= 1e-6 * most + 1e-9))
            fail_msg("%s[%d]: gradient %.12g, difference %.12g", what, (int)i, (double)gradient[i], slope);
    }
}

/* Mean over pairs i != j of the squared (p = 2) or L1 (p = 1) distance. */
static double mean_distance(const ki_real *x, int64_t cols, int p) {
    double sum = 0;
    for (int i = 0; i < TAPS_M; i++) {
        for (int j = 0; j < TAPS_M; j++) {
            for (int64_t k = 0; k < cols; k++) {
                const double d = fabs((double)x[i * cols + k] - (double)x[j * cols + k]);
                sum += p == 2 ? d * d : d;
            }
        }
    }
    return sum / (TAPS_M * (TAPS_M - 1));
}

static void held(const char *reg, const char *kind, int p) {
    static taps t;
    taps_fill(&t, 1);
    char text[512];
    ki_result result;
    snprintf(text, sizeof text,
             "loss: {name: none}\nregularizers: [{name: %s, normalize: false, layers: [pooled, embedding], "
             "kernels: {kind: %s, n: 3}}]",
             reg, kind);
    made own = made_of(text, &taps_sizes);
    snprintf(text, sizeof text,
             "loss: {name: none}\nregularizers: [{name: %s, normalize: false, layers: [pooled, embedding], "
             "kernels: [{kind: %s, n: 3, bandwidth: %.17g}, {kind: %s, n: 3, bandwidth: %.17g}]}]",
             reg, kind, mean_distance(t.pooled, TAPS_C, p), kind, mean_distance(t.x, TAPS_D, p));
    made given = made_of(text, &taps_sizes);
    const double wanted = value_of(&given, &t.batch, &result), found = value_of(&own, &t.batch, &result);
    if (!(fabs(found - wanted) <= 1e-12 * fabs(wanted)))
        fail_msg("%s %.15g, wanted %.15g", reg, found, wanted);
    ki_real pooled[TAPS_M * TAPS_C], x[TAPS_M * TAPS_D];
    memcpy(pooled, result.diff[KI_TAP_POOLED], sizeof pooled);
    memcpy(x, result.diff[KI_TAP_EMBEDDING], sizeof x);
    check_tap("pooled", &given, &t, t.pooled, pooled, TAPS_M * TAPS_C);
    check_tap("embedding", &given, &t, t.x, x, TAPS_M * TAPS_D);
    made_free(&own);
    made_free(&given);
}

static void test_the_batch_gives_the_bandwidth(void **state) {
    (void)state;
    held("joint_similarity", "gaussian", 2);
    held("joint_similarity", "laplace", 1);
    held("joint_mmd", "gaussian", 2);
}

static void test_random_pairs(void **state) {
    (void)state;
    static taps t;
    static const char *const forms[] = {"linear", "log1p", "log"};
    for (size_t f = 0; f < N_ROWS(forms); f++) {
        char text[256];
        ki_result result;
        taps_fill(&t, 1);
        snprintf(text, sizeof text,
                 "loss: {name: none}\nregularizers: [{name: energy_confusion, form: %s, pairs: 40}]",
                 forms[f]);
        made m = made_of(text, &taps_sizes);
        t.batch.step = 3;
        const double at_3 = value_of(&m, &t.batch, &result);
        ki_real x[TAPS_M * TAPS_D];
        memcpy(x, result.diff_stopped, sizeof x);
        check_tap(forms[f], &m, &t, t.x, x, TAPS_M * TAPS_D);
        t.batch.step = 4; /* other pairs */
        assert_true(value_of(&m, &t.batch, &result) != at_3);
        made_free(&m);
        /* Many draws come to the mean over all pairs: classes are of one size. */
        if (f == 1) continue;
        snprintf(text, sizeof text,
                 "loss: {name: none}\nregularizers: [{name: energy_confusion, form: %s, pairs: 200000}]",
                 forms[f]);
        m = made_of(text, &taps_sizes);
        const double drawn = value_of(&m, &t.batch, &result);
        made_free(&m);
        snprintf(text, sizeof text, "loss: {name: none}\nregularizers: [{name: energy_confusion, form: %s}]",
                 forms[f]);
        m = made_of(text, &taps_sizes);
        const double all = value_of(&m, &t.batch, &result);
        if (!(fabs(drawn - all) < 0.02 * fabs(all)))
            fail_msg("%s: %.6g drawn, %.6g of all", forms[f], drawn, all);
        made_free(&m);
    }
}

int main(void) {
    ki_threads_set(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_batch_gives_the_bandwidth),
        cmocka_unit_test(test_random_pairs),
    };
    return cmocka_run_group_tests_name("objective/reg, held constants (float64)", tests, NULL, NULL);
}
