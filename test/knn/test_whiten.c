/* Whitening of directions: what the map does to the second moments it was made from. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "knn/whiten.h"
#include "support/testing.h"

enum { DIM = 24 };

/* Rows around one direction, loud in some and quiet in others. */
static float *rows_of(int64_t n) {
    float *rows = NULL;
    kith_error err = {0};
    ki_rng rng = ki_rng_at(7, KI_RNG_TEST, 0, 0);
    assert_ok(ki_alloc_or(&rows, (size_t)n * DIM, sizeof *rows, "rows", &err), &err);
    for (int64_t i = 0; i < n; i++) {
        const double length = 1 + 3 * ki_rng_double(&rng);
        for (int64_t k = 0; k < DIM; k++)
            rows[i * DIM + k] = (float)(length * ((k == 3 ? 4 : 0) + ki_rng_normal(&rng) / (double)(1 + k)));
    }
    return rows;
}

/* M, the mean of x x^T over rows of length 1, and the mean of its eigenvalues without the largest. */
static double moments_of(const float *rows, int64_t n, double m[DIM][DIM]) {
    double direction[DIM], trace = 0, largest = 0;
    memset(m, 0, sizeof(double) * DIM * DIM);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int k = 0; k < DIM; k++) sum += (double)rows[i * DIM + k] * (double)rows[i * DIM + k];
        for (int r = 0; r < DIM; r++) {
            for (int c = 0; c < DIM; c++)
                m[r][c] += (double)rows[i * DIM + r] * (double)rows[i * DIM + c] / sum / (double)n;
        }
    }
    for (int k = 0; k < DIM; k++) direction[k] = 1, trace += m[k][k];
    for (int round = 0; round < 300; round++) { /* the power method */
        double next[DIM] = {0}, sum = 0;
        for (int r = 0; r < DIM; r++) {
            for (int c = 0; c < DIM; c++) next[r] += m[r][c] * direction[c];
            sum += next[r] * next[r];
        }
        largest = sqrt(sum);
        for (int k = 0; k < DIM; k++) direction[k] = next[k] / largest;
    }
    return (trace - largest) / (DIM - 1);
}

/* A (M + 0.1 s I) A = s I, and A is symmetric: A is the only such map with positive eigenvalues. */
static void check(int64_t n) {
    static double a[DIM][DIM], m[DIM][DIM], half[DIM][DIM];
    kith_error err = {0};
    float *rows = rows_of(n);
    const double s = moments_of(rows, n, m);
    assert_ok(ki_whiten_map(rows, n, DIM, &a[0][0], &err), &err);
    for (int k = 0; k < DIM; k++) m[k][k] += 0.1 * s;
    for (int r = 0; r < DIM; r++) {
        for (int c = 0; c < DIM; c++) {
            half[r][c] = 0;
            for (int k = 0; k < DIM; k++) half[r][c] += a[r][k] * m[k][c];
            assert_float_equal(a[r][c], a[c][r], 1e-9);
        }
        assert_true(a[r][r] > 0);
    }
    for (int r = 0; r < DIM; r++) {
        for (int c = 0; c < DIM; c++) {
            double found = 0;
            for (int k = 0; k < DIM; k++) found += half[r][k] * a[k][c];
            if (fabs(found - (r == c ? s : 0)) > 1e-6 * s) fail_msg("%d, %d: %g; s is %g", r, c, found, s);
        }
    }
    ki_free(rows);
}

static void test_second_moments(void **state) {
    (void)state;
    check(500);
}

/* Fewer rows than numbers: directions that no row has are louder than all others. */
static void test_few_rows(void **state) {
    (void)state;
    check(5);
}

static void test_lengths_do_not_count(void **state) {
    (void)state;
    static double a[DIM * DIM], b[DIM * DIM];
    kith_error err = {0};
    float *rows = rows_of(60);
    assert_ok(ki_whiten_map(rows, 60, DIM, a, &err), &err);
    for (int i = 0; i < 60; i++) {
        for (int k = 0; k < DIM; k++) rows[i * DIM + k] *= (float)(1 << (i % 5));
    }
    assert_ok(ki_whiten_map(rows, 60, DIM, b, &err), &err);
    for (int k = 0; k < DIM * DIM; k++) assert_float_equal(a[k], b[k], 1e-6);
    ki_free(rows);
}

static void test_the_same_bits_with_any_threads(void **state) {
    (void)state;
    static double a[DIM * DIM], b[DIM * DIM];
    kith_error err = {0};
    float *rows = rows_of(700);
    const int before = ki_threads();
    ki_threads_set(1);
    assert_ok(ki_whiten_map(rows, 700, DIM, a, &err), &err);
    ki_threads_set(3);
    assert_ok(ki_whiten_map(rows, 700, DIM, b, &err), &err);
    ki_threads_set(before);
    assert_memory_equal(a, b, sizeof a);
    ki_free(rows);
}

static void test_refused(void **state) {
    (void)state;
    static double a[DIM * DIM];
    float rows[3 * DIM] = {0};
    kith_error err = {0};
    for (int i = 0; i < 3; i++) rows[i * DIM] = 1;
    assert_int_equal(ki_whiten_map(rows, 1, DIM, a, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "1 rows to whiten by; wanted at least 2"));
    assert_int_equal(ki_whiten_map(rows, 3, DIM, a, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "one direction"));
}

static void test_out_of_memory(void **state) {
    (void)state;
    static double a[DIM * DIM];
    kith_error err = {0};
    float *rows = rows_of(40);
    kith_status status = KITH_ENOMEM;
    int n_failed = 0;
    for (int64_t n = 0; status == KITH_ENOMEM; n++) {
        ki_alloc_fail_after(n);
        status = ki_whiten_map(rows, 40, DIM, a, &err);
        ki_alloc_fail_after(-1);
        n_failed += status == KITH_ENOMEM;
    }
    assert_ok(status, &err);
    assert_true(n_failed > 2);
    ki_free(rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_second_moments),
        cmocka_unit_test(test_few_rows),
        cmocka_unit_test(test_lengths_do_not_count),
        cmocka_unit_test(test_the_same_bits_with_any_threads),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests_name("knn/whiten", tests, NULL, NULL);
}
