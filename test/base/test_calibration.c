/* Calibration curves: from rates to thresholds and back, and what is no curve. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/calibration.h"
#include "support/testing.h"

/* Every threshold 0.1 up, a tenth of the false matches. */
static const kith_calibration plain = {.metric = KITH_COSINE,
                                       .source = "validation",
                                       .n_classes = 9,
                                       .n_same = 200,
                                       .n_different = 1000,
                                       .n = 4,
                                       .threshold = {0.1, 0.2, 0.3, 0.4},
                                       .fmr = {1, 0.1, 0.01, 0.001},
                                       .tmr = {1, 0.9, 0.5, 0.25}};

static void check(double found, double wanted) {
    if (!(fabs(found - wanted) <= 1e-12)) fail_msg("%.17g, wanted %.17g", found, wanted);
}

static void test_points_and_between(void **state) {
    (void)state;
    check(kith_calibration_threshold(&plain, 0.1), 0.2);
    check(kith_calibration_threshold(&plain, 0.001), 0.4);
    check(kith_calibration_threshold(&plain, sqrt(0.1 * 0.01)), 0.25);
    check(kith_calibration_false_match_rate(&plain, 0.2), 0.1);
    check(kith_calibration_false_match_rate(&plain, 0.25), sqrt(0.1 * 0.01));
    check(kith_calibration_match_rate(&plain, 0.25), 0.7);
    check(kith_calibration_match_rate(&plain, 0.2), 0.9);
}

/* Beyond the curve nothing is promised that was not counted. */
static void test_ends(void **state) {
    (void)state;
    check(kith_calibration_false_match_rate(&plain, 0.05), 1);
    check(kith_calibration_false_match_rate(&plain, -INFINITY), 1);
    check(kith_calibration_false_match_rate(&plain, 0.9), 0.001);
    check(kith_calibration_false_match_rate(&plain, INFINITY), 0.001);
    check(kith_calibration_match_rate(&plain, 0.9), 0.25);
    check(kith_calibration_match_rate(&plain, 0), 1);
    check(kith_calibration_threshold(&plain, 1), 0.1);
    check(kith_calibration_threshold(&plain, 3), 0.1);
    assert_true(isnan(kith_calibration_threshold(&plain, 0.0009)));
    assert_true(isnan(kith_calibration_threshold(&plain, 0)));
    assert_true(isnan(kith_calibration_threshold(&plain, NAN)));
    assert_true(isnan(kith_calibration_false_match_rate(&plain, NAN)));
    /* The strictest point may have no false match at all: then one of all pairs is what can be told. */
    kith_calibration none = plain;
    none.fmr[3] = 0;
    check(kith_calibration_false_match_rate(&none, 0.4), 0.001);
    check(kith_calibration_threshold(&none, 0.001), 0.4);
    /* The loosest may keep some pairs out. */
    none.fmr[0] = 0.5;
    check(kith_calibration_threshold(&none, 0.7), 0.1);
}

/* Printed with three digits and typed again, it has a threshold. */
static void test_the_least_rate(void **state) {
    (void)state;
    check(kith_calibration_least(&plain), 0.001);
    for (int64_t n = 1; n < 20000; n += 7) {
        kith_calibration c = plain;
        char text[32];
        c.n_different = n;
        c.fmr[3] = 0;
        for (int i = 0; i < 3; i++) c.fmr[i] = fmax(c.fmr[i], 1 / (double)n);
        const double least = kith_calibration_least(&c);
        snprintf(text, sizeof text, "%.3g", least);
        if (isnan(kith_calibration_threshold(&c, atof(text)))) fail_msg("1/%lld as %s", (long long)n, text);
        assert_true(least <= 1 && least >= (1 - 1e-9) / (double)n && least < 1.01 / (double)n);
    }
    const kith_calibration none = {0};
    assert_true(isnan(kith_calibration_least(&none)));
    assert_true(isnan(kith_calibration_least(NULL)));
}

static void test_no_curve(void **state) {
    (void)state;
    const kith_calibration none = {0};
    assert_true(isnan(kith_calibration_threshold(&none, 0.1)));
    assert_true(isnan(kith_calibration_false_match_rate(&none, 0.1)));
    assert_true(isnan(kith_calibration_match_rate(&none, 0.1)));
    assert_true(isnan(kith_calibration_threshold(NULL, 0.1)));
}

/* Of distances the smaller ones match. */
static void test_distances(void **state) {
    (void)state;
    kith_calibration c = plain;
    const double threshold[] = {0.4, 0.3, 0.2, 0.1};
    kith_error err;
    c.metric = KITH_SQEUCLIDEAN;
    memcpy(c.threshold, threshold, sizeof threshold);
    assert_ok(kith_calibration_check(&c, &err), &err);
    check(kith_calibration_threshold(&c, 0.01), 0.2);
    check(kith_calibration_false_match_rate(&c, 0.5), 1);
    check(kith_calibration_false_match_rate(&c, 0.25), sqrt(0.1 * 0.01));
    check(kith_calibration_false_match_rate(&c, 0), 0.001);
}

static void test_what_is_no_curve(void **state) {
    (void)state;
    kith_error err;
    assert_ok(kith_calibration_check(&plain, &err), &err);
    kith_calibration bad[8];
    for (size_t i = 0; i < N_ROWS(bad); i++) bad[i] = plain;
    bad[0].n = 0;
    bad[1].n = KITH_CALIBRATION_POINTS + 1;
    bad[2].threshold[2] = 0.2;
    bad[3].fmr[2] = 0.2;
    bad[4].tmr[3] = NAN;
    bad[5].fmr[0] = 1.5;
    bad[6].n_different = 0;
    memset(bad[7].source, 'x', sizeof bad[7].source);
    for (size_t i = 0; i < N_ROWS(bad); i++) {
        if (kith_calibration_check(&bad[i], &err) != KITH_EFORMAT) fail_msg("number %zu passes", i);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points_and_between), cmocka_unit_test(test_ends),
        cmocka_unit_test(test_no_curve),           cmocka_unit_test(test_distances),
        cmocka_unit_test(test_what_is_no_curve),   cmocka_unit_test(test_the_least_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
