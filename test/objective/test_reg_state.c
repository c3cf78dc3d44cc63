/* What regularizers keep and where their gradients go: densities of the starting network, terms that stop
 * at the embedding, logits that come from the proxies. */
#include "base/parallel.h"
#include "objective/taps.h"

static void test_density_measured(void **state) {
    (void)state;
    /* Class 0: (0,0) (2,0): mean (1,0), density 1. Class 2: one point. Class 3: density (4+4+16)/3 about (0,2). */
    static const ki_real x[] = {0, 0, 2, 0, 5, 5, 0, 0, 0, 0, 0, 6};
    static const int32_t label[] = {0, 0, 2, 3, 3, 3};
    const ki_features features = {.x = x, .label = label, .n = 6, .dim = 2};
    const ki_sizes four = {.n_classes = 4, .embedding = 2}, three = {.n_classes = 3, .embedding = 2};
    kith_error err = {0};
    made m = made_of("loss: {name: none}\nregularizers: [{name: density}]", &four);
    const ki_real *d0 = ki_objective_param_named(m.objective, "density.d0")->value;
    assert_int_equal(ki_objective_start_taps(m.objective), KI_TAP_BIT(KI_TAP_POOLED));
    assert_ok(ki_objective_start(m.objective, KI_TAP_EMBEDDING, &features, &err), &err);
    assert_true(d0[0] == 0); /* nobody starts from there */
    assert_ok(ki_objective_start(m.objective, KI_TAP_POOLED, &features, &err), &err);
    static const double wanted[] = {1, 0, 0, 8};
    for (int c = 0; c < 4; c++) {
        if (fabs((double)d0[c] - wanted[c]) > 1e-6)
            fail_msg("class %d: %g, wanted %g", c, (double)d0[c], wanted[c]);
    }
    for (int64_t n = 0; n < 3; n++) {
        ki_alloc_fail_after(n);
        assert_int_equal(ki_objective_start(m.objective, KI_TAP_POOLED, &features, &err), KITH_ENOMEM);
        ki_alloc_fail_after(-1);
    }
    made_free(&m);
    m = made_of("loss: {name: none}\nregularizers: [{name: density}]", &three);
    assert_int_equal(ki_objective_start(m.objective, KI_TAP_POOLED, &features, &err), KITH_EINVAL);
    assert_string_equal(err.message, "label[3] is 3; wanted a class id from 0 to 2");
    static const int32_t below[] = {0, -1};
    const ki_features unlabelled = {.x = x, .label = below, .n = 2, .dim = 2};
    assert_int_equal(ki_objective_start(m.objective, KI_TAP_POOLED, &unlabelled, &err), KITH_EINVAL);
    assert_string_equal(err.message, "label[1] is -1; wanted a class id from 0 to 2");
    made_free(&m);
    m = made_of("loss: {name: raw}", &four);
    assert_int_equal(ki_objective_start_taps(m.objective), 0);
    made_free(&m);
}

static double value_of(const char *recipe, ki_real d0, ki_real **ret_alpha_diff) {
    static taps t;
    static ki_real copy[TAPS_CLASSES];
    ki_result result;
    kith_error err = {0};
    taps_fill(&t, 1);
    made m = made_of(recipe, &taps_sizes);
    ki_state *state = ki_objective_param_named(m.objective, "density.d0");
    for (int64_t i = 0; i < state->count; i++) state->value[i] = d0 * (ki_real)(i + 1);
    assert_ok(ki_objective_evaluate(m.objective, &t.batch, &result, &err), &err);
    memcpy(copy, ki_objective_param_named(m.objective, "density.alpha")->diff, sizeof copy);
    if (ret_alpha_diff) *ret_alpha_diff = copy;
    made_free(&m);
    return result.total;
}

static void test_density_without_originals(void **state) {
    (void)state;
    ki_real *diff = NULL;
    const double apart =
        value_of("loss: {name: none}\nregularizers: [{name: density, correlation: false}]", 1, NULL);
    const double unmeasured = value_of("loss: {name: none}\nregularizers: [{name: density}]", 0, NULL);
    const double measured = value_of("loss: {name: none}\nregularizers: [{name: density}]", 1, &diff);
    assert_true(apart == unmeasured);
    assert_true(measured > apart);
    for (int c = TAPS_M / 4; c < TAPS_CLASSES; c++) assert_true(diff[c] == 0); /* not in the batch */
}

/* Densities of the batch at hand, as they are and of unit features, are those that a start from the same items gives. */
static void test_density_of_the_batch(void **state) {
    (void)state;
    static taps t;
    taps_fill(&t, 1);
    for (int unit = 0; unit < 2; unit++) {
        char recipe[160];
        double value[2];
        for (int now = 0; now < 2; now++) {
            kith_error err = {0};
            ki_result result;
            snprintf(recipe, sizeof recipe,
                     "loss: {name: none}\nregularizers: [{name: density, d0: %s, d0_unit: %s}]",
                     now ? "batch" : "start", unit ? "true" : "false");
            made m = made_of(recipe, &taps_sizes);
            assert_int_equal(ki_objective_start_taps(m.objective), now ? 0 : KI_TAP_BIT(KI_TAP_POOLED));
            const ki_tap_data *pooled = &t.batch.tap[KI_TAP_POOLED];
            const ki_features all = {
                .x = pooled->data, .label = t.batch.label, .n = t.batch.m, .dim = pooled->cols};
            assert_ok(ki_objective_start(m.objective, KI_TAP_POOLED, &all, &err), &err);
            assert_true((ki_objective_param_named(m.objective, "density.d0")->value[0] == 0) == (now == 1));
            assert_ok(ki_objective_evaluate(m.objective, &t.batch, &result, &err), &err);
            value[now] = result.total;
            made_free(&m);
        }
        if (!(fabs(value[1] - value[0]) <= 1e-6 * fabs(value[0])))
            fail_msg("unit %d: %g by the batch, %g by a start", unit, value[1], value[0]);
    }
}

/* Where the gradient of a term goes. */
static void test_stops_at_the_embedding(void **state) {
    (void)state;
    static const struct {
        const char *reg;
        bool stops;
    } rows[] = {
        {"energy_confusion", true},
        {"energy_confusion, stops_at_embedding: false", false},
        {"energy_confusion, normalize: true", true},
        {"global_orthogonal", false},
        {"global_orthogonal, stops_at_embedding: true", true},
    };
    static taps t;
    taps_fill(&t, 1);
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char recipe[256];
        ki_result result;
        kith_error err = {0};
        double through = 0, stopped = 0;
        snprintf(recipe, sizeof recipe, "loss: {name: none}\nregularizers: [{name: %s}]", rows[i].reg);
        made m = made_of(recipe, &taps_sizes);
        assert_ok(ki_objective_evaluate(m.objective, &t.batch, &result, &err), &err);
        for (int k = 0; k < TAPS_M * TAPS_D; k++) {
            through += fabs((double)result.diff[KI_TAP_EMBEDDING][k]);
            stopped += result.diff_stopped ? fabs((double)result.diff_stopped[k]) : 0;
        }
        if ((stopped > 0) != rows[i].stops || (through > 0) == rows[i].stops)
            fail_msg("%s: %g through, %g stopped", rows[i].reg, through, stopped);
        made_free(&m);
    }
}

/* JRD reads the cosines to the loss's own proxies, and trains them. */
static void test_logits_share_the_proxies(void **state) {
    (void)state;
    static taps t;
    double value[2], slope[2];
    taps_fill(&t, 1);
    for (int with = 0; with < 2; with++) {
        char recipe[256];
        ki_result result;
        kith_error err = {0};
        snprintf(recipe, sizeof recipe,
                 "loss: {name: normsoftmax}\nregularizers: [{name: joint_similarity, weight: %d}]", with);
        made m = made_of(recipe, &taps_sizes);
        assert_non_null(ki_objective_param_named(m.objective, "proxies"));
        assert_null(ki_objective_param(m.objective, 1));
        assert_ok(ki_objective_evaluate(m.objective, &t.batch, &result, &err), &err);
        assert_int_equal(result.n_terms, 2);
        value[with] = result.term[1].value;
        slope[with] = (double)ki_objective_param(m.objective, 0)->diff[0];
        made_free(&m);
    }
    assert_true(value[0] == value[1] && value[0] > 0);
    assert_true(slope[0] != slope[1]);
}

int main(void) {
    ki_threads_set(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_density_measured),         cmocka_unit_test(test_density_without_originals),
        cmocka_unit_test(test_density_of_the_batch),     cmocka_unit_test(test_stops_at_the_embedding),
        cmocka_unit_test(test_logits_share_the_proxies),
    };
    return cmocka_run_group_tests_name("objective/reg state", tests, NULL, NULL);
}
