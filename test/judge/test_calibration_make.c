/* The curve of counted pairs: at every score a rate that is hardly below the counted one, whatever ties there are. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "judge/verification.h"
#include "support/testing.h"

enum { ROUNDS = 300, MOST_STEPS = 3000 };

/* Falling scores with ties of any size; some differ by less than a float shows. */
static int64_t draw(ki_rng *rng, ki_pair_step *ret) {
    const int64_t n = 1 + (int64_t)ki_rng_below(rng, MOST_STEPS);
    double score = 1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t tie = ki_rng_below(rng, 50) == 0 ? 1 + (int64_t)ki_rng_below(rng, 100000) : 1;
        ret[i] = (ki_pair_step){score, (int64_t)ki_rng_below(rng, 3), ki_rng_below(rng, 4) ? tie : 0};
        score -= ki_rng_below(rng, 5) ? 1e-3 * ki_rng_double(rng) : 1e-13;
    }
    ret[n / 2].n_same++;
    ret[n - 1].n_different++;
    return n;
}

/* Pairs that a search with this threshold shows. */
static double counted(const ki_pair_counts *p, double threshold) {
    int64_t n = 0;
    for (int64_t i = 0; i < p->n_steps && (double)(float)p->step[i].score >= threshold; i++)
        n += p->step[i].n_different;
    return (double)n / (double)p->n_different;
}

static void check_at(const kith_calibration *c, const ki_pair_counts *p, double score) {
    /* Two of the factors that points lie apart; one pair is the least that is told. */
    const double slack = pow((double)p->n_different, 2.0 / (KITH_CALIBRATION_POINTS - 1)) * (1 + 1e-9);
    const double told = kith_calibration_false_match_rate(c, score), true_rate = counted(p, score);
    if (told * slack < true_rate) fail_msg("at %.9g: told %g, counted %g", score, told, true_rate);
}

static void test_rates_are_those_counted(void **state) {
    (void)state;
    ki_pair_step *step = malloc(sizeof *step * MOST_STEPS);
    assert_non_null(step);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        ki_rng rng = ki_rng_at(5, KI_RNG_TEST, round, 0);
        ki_pair_counts p = {.n_steps = draw(&rng, step), .step = step, .is_exact = true};
        for (int64_t i = 0; i < p.n_steps; i++) {
            p.n_same += step[i].n_same;
            p.n_different += step[i].n_different;
        }
        kith_calibration c;
        kith_error err;
        ki_calibration_make(&p, KITH_COSINE, 10, &c);
        snprintf(c.source, sizeof c.source, "test");
        assert_ok(kith_calibration_check(&c, &err), &err);
        for (int64_t i = 0; i < p.n_steps; i += 1 + p.n_steps / 100) {
            const double shown = (double)(float)step[i].score;
            check_at(&c, &p, shown);
            check_at(&c, &p, shown - 1e-5);
        }
        for (double rate = 1; rate > 1e-7; rate /= 3) {
            const double threshold = kith_calibration_threshold(&c, rate);
            if (!isnan(threshold) && counted(&p, threshold) > rate * (1 + 1e-9) &&
                counted(&p, threshold) > rate * pow((double)p.n_different, 2.0 / 255))
                fail_msg("round %u, rate %g: %g at %.9g", round, rate, counted(&p, threshold), threshold);
        }
    }
    free(step);
}

/* Nearly all pairs at one score, and a few below it: the case in which a point for each factor alone misses the tie. */
static void test_a_tie_in_the_middle(void **state) {
    (void)state;
    ki_pair_step step[] = {{0.9, 50, 90}, {0, 25, 8000}, {-0.25, 25, 200}, {-0.5, 1, 1710}};
    const ki_pair_counts p = {
        .n_same = 101, .n_different = 10000, .n_steps = 4, .step = step, .is_exact = true};
    kith_calibration c;
    ki_calibration_make(&p, KITH_COSINE, 10, &c);
    assert_true(kith_calibration_false_match_rate(&c, 0) >= 0.809 - 1e-12);
    assert_true(kith_calibration_false_match_rate(&c, -0.1) >= 0.809 - 1e-12);
    assert_true(kith_calibration_threshold(&c, 0.5) > 0);
    assert_true(kith_calibration_threshold(&c, 0.8) > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates_are_those_counted),
        cmocka_unit_test(test_a_tie_in_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
