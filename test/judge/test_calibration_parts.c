/* The curve of several sets: pairs within the sets alone, as counted one by one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "judge/verification.h"
#include "support/testing.h"

enum { N = 240, DIM = 6, PARTS = 3, CLASSES = 4 };

static float rows[N * DIM];
static int64_t labels[N], items[N];
static int32_t parts[N];

/* Sets lie in corners of their own; the classes of a set lie around it, more spread in later sets. */
static ki_vectors draw(void) {
    ki_rng rng = ki_rng_at(11, KI_RNG_TEST, 0, 0);
    for (int i = 0; i < N; i++) {
        parts[i] = i % PARTS;
        labels[i] = parts[i] * CLASSES + i / PARTS % CLASSES;
        items[i] = i;
        for (int k = 0; k < DIM; k++) {
            const double centre = (k == parts[i]) + 0.2 * (k == 3 + labels[i] % 3);
            rows[i * DIM + k] = (float)(centre + 0.1 * (1 + parts[i]) * ki_rng_normal(&rng));
        }
    }
    return (ki_vectors){.n = N, .dim = DIM, .n_room = N, .host = rows, .label = labels, .item = items};
}

static double cosine(int i, int j) {
    double ij = 0, ii = 0, jj = 0;
    for (int k = 0; k < DIM; k++) {
        ij += (double)rows[i * DIM + k] * (double)rows[j * DIM + k];
        ii += (double)rows[i * DIM + k] * (double)rows[i * DIM + k];
        jj += (double)rows[j * DIM + k] * (double)rows[j * DIM + k];
    }
    return ij / sqrt(ii * jj);
}

/* Pairs of one kind within the sets that reach a score. */
static int64_t reach(bool is_same, double least) {
    int64_t n = 0;
    for (int i = 0; i < N; i++) {
        for (int j = i + 1; j < N; j++)
            n += parts[i] == parts[j] && (labels[i] == labels[j]) == is_same && cosine(i, j) >= least;
    }
    return n;
}

static void test_pairs_within_sets(void **state) {
    (void)state;
    kith_error err;
    kith_calibration c, across;
    ki_vectors v = draw();
    assert_ok(ki_judge_calibrate_parts(&v, parts, PARTS, "validation", &c, &err), &err);
    assert_ok(kith_calibration_check(&c, &err), &err);
    assert_string_equal(c.source, "validation");
    assert_int_equal(c.n_classes, PARTS * CLASSES);
    assert_int_equal(c.n_same, reach(true, -2));
    assert_int_equal(c.n_different, reach(false, -2));
    for (int64_t i = 0; i < c.n; i++) {
        const double counted = (double)reach(false, c.threshold[i] - 1e-6) / (double)c.n_different;
        if (!(fabs(c.fmr[i] - counted) <= 2.0 / (double)c.n_different))
            fail_msg("at %.9g: %g, counted %g", c.threshold[i], c.fmr[i], counted);
    }
    /* With the pairs across the sets, which are nothing alike, the same score would look safer. */
    assert_ok(ki_judge_calibrate(&v, "validation", &across, &err), &err);
    assert_true(across.n_different > 2 * c.n_different);
    assert_true(kith_calibration_threshold(&c, 0.01) > kith_calibration_threshold(&across, 0.01));
}

static void test_one_set_is_as_ever(void **state) {
    (void)state;
    static const int32_t one[N];
    kith_error err;
    kith_calibration a, b;
    ki_vectors v = draw();
    assert_ok(ki_judge_calibrate_parts(&v, one, 1, "validation", &a, &err), &err);
    assert_ok(ki_judge_calibrate(&v, "validation", &b, &err), &err);
    assert_int_equal(a.n, b.n);
    for (int64_t i = 0; i < a.n; i++) {
        assert_true(a.threshold[i] == b.threshold[i]);
        assert_true(a.fmr[i] == b.fmr[i] && a.tmr[i] == b.tmr[i]);
    }
}

/* Sets of one class, of lone rows, or without any say nothing; if none says anything there is no curve. */
static void test_sets_that_say_nothing(void **state) {
    (void)state;
    kith_error err;
    kith_calibration c;
    ki_vectors v = draw();
    for (int i = 0; i < N; i++) {
        if (parts[i] == 0) labels[i] = 0;
        if (parts[i] == 1) labels[i] = 100 + i;
    }
    assert_ok(ki_judge_calibrate_parts(&v, parts, PARTS + 1, "validation", &c, &err), &err);
    assert_int_equal(c.n_classes, CLASSES);
    for (int i = 0; i < N; i++) labels[i] = 7;
    assert_ok(ki_judge_calibrate_parts(&v, parts, PARTS, "validation", &c, &err), &err);
    assert_int_equal(c.n, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs_within_sets),
                                       cmocka_unit_test(test_one_set_is_as_ever),
                                       cmocka_unit_test(test_sets_that_say_nothing)};
    return cmocka_run_group_tests_name("judge/calibration of parts", tests, NULL, NULL);
}
