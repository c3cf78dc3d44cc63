/* The stricter of two curves: never below either, not far above both, and a curve again. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "judge/verification.h"
#include "support/testing.h"

enum { ROUNDS = 200, SCORES = 2000, MOST = KITH_CALIBRATION_POINTS };

static double strictness(const kith_calibration *c, double score) {
    return c->metric == KITH_SQEUCLIDEAN ? -score : score;
}

/* A curve with steps of any height: rates may stay the same, begin below 1, and end at 0. */
static kith_calibration draw(ki_rng *rng, kith_metric metric) {
    kith_calibration c = {.metric = metric,
                          .source = "validation",
                          .n_classes = 10 + (int64_t)ki_rng_below(rng, 100),
                          .n_same = 1 + (int64_t)ki_rng_below(rng, 10000),
                          .n_different = 10 + (int64_t)ki_rng_below(rng, 1000000),
                          .n = 1 + (int64_t)ki_rng_below(rng, MOST)};
    double at = ki_rng_double(rng), fmr = ki_rng_below(rng, 2) ? 1 : ki_rng_double(rng), tmr = 1;
    for (int64_t i = 0; i < c.n; i++) {
        c.threshold[i] = metric == KITH_SQEUCLIDEAN ? 4 - at : at;
        c.fmr[i] = fmr;
        c.tmr[i] = tmr;
        /* on a grid, so that two curves share some thresholds */
        at += (1 + (double)ki_rng_below(rng, 16)) / 1024;
        if (ki_rng_below(rng, 3)) fmr *= 1 - 0.1 * ki_rng_double(rng);
        if (ki_rng_below(rng, 20) == 0) fmr *= ki_rng_double(rng);
        tmr *= 1 - 0.02 * ki_rng_double(rng);
    }
    if (ki_rng_below(rng, 4) == 0) c.fmr[c.n - 1] = 0;
    return c;
}

static void assert_at_least(const char *what, double found, double least) {
    if (!(found >= least)) fail_msg("%s: %.15g, wanted %.15g or more", what, found, least);
}

/* Rates at scores inside the curves and beyond them. 1e-9: rounding of logarithms where a curve is steep. */
static void check_rates(ki_rng *rng, const kith_calibration *c, const kith_calibration *a,
                        const kith_calibration *b) {
    for (int i = 0; i < SCORES; i++) {
        const double score = ki_rng_double(rng) * 5 - 0.5;
        const double wanted =
            fmax(kith_calibration_false_match_rate(a, score), kith_calibration_false_match_rate(b, score));
        assert_at_least("false-match rate", kith_calibration_false_match_rate(c, score), wanted * (1 - 1e-9));
    }
}

static void check_thresholds(const kith_calibration *c, const kith_calibration *a,
                             const kith_calibration *b) {
    for (double rate = 0.99; rate > 1e-7; rate *= 0.97) {
        const double found = kith_calibration_threshold(c, rate), x = kith_calibration_threshold(a, rate),
                     y = kith_calibration_threshold(b, rate);
        if (isnan(x) || isnan(y)) assert_true(isnan(found));
        if (isnan(found)) continue;
        assert_at_least("threshold", strictness(c, found), strictness(c, x) - 1e-9);
        assert_at_least("threshold", strictness(c, found), strictness(c, y) - 1e-9);
    }
}

/* At a point of both lists the rate is the larger of the two, times two factors of the grid at most. A curve that begins below 1
 * jumps at its loosest threshold; there the upper end counts. */
static void check_not_far_above(const kith_calibration *c, const kith_calibration *a,
                                const kith_calibration *b) {
    const double factor = pow((double)c->n_different, 2.0 / (MOST - 1)) * (1 + 1e-9);
    for (int64_t i = 0; i < c->n; i++) {
        const double t = c->threshold[i];
        const bool jumps = t == a->threshold[0] || t == b->threshold[0];
        const double wanted =
            fmax(kith_calibration_false_match_rate(a, t), kith_calibration_false_match_rate(b, t));
        if (!jumps) assert_at_least("largest rate", wanted * factor, c->fmr[i]);
        assert_true(c->tmr[i] == kith_calibration_match_rate(a, t));
    }
}

static void test_never_below_either(void **state) {
    (void)state;
    kith_error err;
    ki_rng rng = ki_rng_at(3, KI_RNG_TEST, 0, 0);
    int64_t n_most = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const kith_metric metric = round % 2 ? KITH_SQEUCLIDEAN : KITH_COSINE;
        const kith_calibration a = draw(&rng, metric), b = draw(&rng, metric);
        kith_calibration c;
        assert_ok(kith_calibration_check(&a, &err), &err);
        assert_ok(kith_calibration_check(&b, &err), &err);
        ki_calibration_stricter(&a, &b, &c);
        assert_ok(kith_calibration_check(&c, &err), &err);
        check_rates(&rng, &c, &a, &b);
        check_thresholds(&c, &a, &b);
        check_not_far_above(&c, &a, &b);
        assert_int_equal(c.n_different, a.n_different < b.n_different ? a.n_different : b.n_different);
        assert_int_equal(c.n_same, a.n_same);
        assert_int_equal(c.n_classes, a.n_classes);
        if (a.n + b.n > MOST) n_most++;
    }
    assert_true(n_most > ROUNDS / 10); /* points were left out */
}

/* Where one curve is the stricter one everywhere, it is the result. */
static void test_one_is_stricter(void **state) {
    (void)state;
    kith_calibration easy = {.metric = KITH_COSINE,
                             .source = "validation",
                             .n_classes = 20,
                             .n_same = 50,
                             .n_different = 5000,
                             .n = 3,
                             .threshold = {0, 0.5, 0.7},
                             .fmr = {1, 0.1, 0.01},
                             .tmr = {1, 0.9, 0.8}};
    kith_calibration hard = easy, c;
    snprintf(hard.source, sizeof hard.source, "index");
    hard.n_different = 8000;
    hard.threshold[1] = 0.6;
    hard.threshold[2] = 0.9;
    for (int i = 0; i < 2; i++) {
        ki_calibration_stricter(i ? &easy : &hard, i ? &hard : &easy, &c);
        assert_string_equal(c.source, i ? "index, validation" : "validation, index");
        assert_int_equal(c.n_different, 5000);
        assert_true(kith_calibration_threshold(&c, 0.1) == 0.6);
        assert_true(kith_calibration_threshold(&c, 0.01) == 0.9);
        assert_true(kith_calibration_false_match_rate(&c, 0.9) == 0.01);
        assert_true(kith_calibration_match_rate(&c, 0.9) == 0.8);
    }
    /* A source that does not fit beside the other is not cut in two. */
    snprintf(easy.source, sizeof easy.source, "my own pictures of last year");
    ki_calibration_stricter(&hard, &easy, &c);
    assert_string_equal(c.source, "other, index");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_never_below_either),
                                       cmocka_unit_test(test_one_is_stricter)};
    return cmocka_run_group_tests_name("judge/calibration_stricter", tests, NULL, NULL);
}
