/* The vectorised passes against plain double arithmetic, on lengths that leave a remainder. */
#include <math.h>

#include "base/rng.h"
#include "objective/vec.h"
#include "support/testing.h"

enum { MOST = 4099 };

static ki_real s[MOST], dst[MOST];
static uint8_t pair[MOST];

static void fill(int64_t n, double width) {
    ki_rng rng = ki_rng_at(4, KI_RNG_TEST, (uint32_t)n, 0);
    for (int64_t j = 0; j < n; j++) {
        s[j] = (ki_real)(width * (2 * ki_rng_double(&rng) - 1));
        pair[j] = (uint8_t)ki_rng_below(&rng, 3);
        dst[j] = -7;
    }
}

static void assert_near(const char *what, double found, double wanted, double tolerance) {
    if (!(fabs(found - wanted) <= tolerance * fmax(1e-30, fabs(wanted))))
        fail_msg("%s: found %.9g, wanted %.9g, relative %.3g", what, found, wanted, fabs(found / wanted - 1));
}

static const int64_t lengths[] = {1, 7, 15, 16, 17, 100, 1023, MOST};

static void test_exp_over_its_whole_range(void **state) {
    (void)state;
    const ki_vec *vec = ki_vec_get();
    for (int64_t j = 0; j < MOST; j++) s[j] = (ki_real)(-87 + 175.0 * (double)j / MOST);
    vec->exp_all(s, 1, 0, dst, MOST);
    for (int64_t j = 0; j < MOST; j++) assert_near("exp", (double)dst[j], exp((double)s[j]), 3e-7);
    const ki_real ends[] = {-1000, -200, -104, 0, 89, 1000, -KI_REAL_MAX};
    ki_real out[7];
    vec->exp_all(ends, 1, 0, out, 7);
    assert_true(out[0] == 0 && out[1] == 0 && out[3] == 1 && out[6] == 0);
    assert_true(isfinite(out[4]) && isfinite(out[5]) && out[5] > (ki_real)3e38);
}

static void test_exp_softplus_hinge(void **state) {
    (void)state;
    const ki_vec *vec = ki_vec_get();
    for (size_t k = 0; k < N_ROWS(lengths); k++) {
        const int64_t n = lengths[k];
        for (int kind = 1; kind <= 2; kind++) {
            double sum = 0, sum_plus = 0, sum_hinge = 0;
            int64_t n_active = 0, active = 0;
            fill(n, 1);
            for (int64_t j = 0; j < n; j++) {
                const double z = 10 * ((double)s[j] - (double)(ki_real)0.3);
                if (pair[j] != kind) continue;
                sum += exp(z);
                sum_plus += z > 0 ? z + log1p(exp(-z)) : log1p(exp(z));
                sum_hinge += z > 0 ? z : 0;
                n_active += z > 0;
            }
            assert_near("exp", (double)vec->exp(s, pair, kind, 10, (ki_real)0.3, dst, n), sum, 1e-5);
            for (int64_t j = 0; j < n; j++) {
                if (pair[j] != kind)
                    assert_true(dst[j] == -7);
                else
                    assert_near("exp entry", (double)dst[j], exp(10 * ((double)s[j] - (double)(ki_real)0.3)),
                                2e-6);
            }
            fill(n, 1);
            assert_near("softplus",
                        (double)vec->softplus(s, pair, kind, 10, (ki_real)0.3, (ki_real)0.25, dst, n),
                        sum_plus, 1e-5);
            for (int64_t j = 0; j < n; j++) {
                const double z = 10 * ((double)s[j] - (double)(ki_real)0.3);
                if (pair[j] != kind)
                    assert_true(dst[j] == -7);
                else
                    assert_near("softplus slope", (double)dst[j], 2.5 / (1 + exp(-z)), 3e-6);
            }
            fill(n, 1);
            assert_near("hinge",
                        (double)vec->hinge(s, pair, kind, 10, (ki_real)0.3, (ki_real)0.25, dst, &active, n),
                        sum_hinge, 1e-5);
            assert_int_equal(active, n_active);
            for (int64_t j = 0; j < n; j++) {
                if (pair[j] != kind)
                    assert_true(dst[j] == -7);
                else
                    assert_true(dst[j] == (s[j] > (ki_real)0.3 ? (ki_real)2.5 : 0));
            }
        }
    }
}

static void test_extremes_counts_and_pruning(void **state) {
    (void)state;
    const ki_vec *vec = ki_vec_get();
    for (size_t k = 0; k < N_ROWS(lengths); k++) {
        const int64_t n = lengths[k];
        for (int kind = 1; kind <= 2; kind++) {
            fill(n, 2);
            ki_real most = -KI_REAL_MAX, least = KI_REAL_MAX;
            int64_t count = 0, kept = 0;
            for (int64_t j = 0; j < n; j++) {
                if (pair[j] != kind) continue;
                most = s[j] > most ? s[j] : most;
                least = s[j] < least ? s[j] : least;
                kept += s[j] > -1 && s[j] < 1;
                count++;
            }
            assert_true(vec->max(s, pair, kind, n) == most);
            assert_true(vec->min(s, pair, kind, n) == least);
            assert_int_equal(vec->count(pair, kind, n), count);
            assert_int_equal(vec->prune(s, kind, -1, 1, pair, n), kept);
            assert_int_equal(vec->count(pair, kind, n), kept);
        }
    }
}

static void test_finite(void **state) {
    (void)state;
    const ki_vec *vec = ki_vec_get();
    fill(MOST, 1);
    s[17] = KI_REAL_MAX;
    assert_true(vec->finite(s, MOST));
    for (int k = 0; k < 3; k++) {
        fill(MOST, 1);
        s[MOST - 1] = (ki_real)(k == 0 ? NAN : k == 1 ? INFINITY : -INFINITY);
        assert_false(vec->finite(s, MOST));
        assert_true(vec->finite(s, MOST - 1));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp_over_its_whole_range),
        cmocka_unit_test(test_exp_softplus_hinge),
        cmocka_unit_test(test_extremes_counts_and_pruning),
        cmocka_unit_test(test_finite),
    };
    return cmocka_run_group_tests_name("objective/vec", tests, NULL, NULL);
}
