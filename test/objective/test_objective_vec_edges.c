/* The vectorised passes at their borders, where a < and a <= part: whole numbers, so that every sum is exact, on
 * lengths with a remainder and beyond one stretch. */
#include <math.h>

#include "objective/vec.h"
#include "support/testing.h"

enum { MOST = 4096 + 4096 + 3 };
static const int64_t lengths[] = {1, 5, 16, 67, 4095, 4096, 4097, MOST};

static ki_real a[MOST], b[MOST], dst[MOST];
static uint8_t pair[MOST];

/* Entries -3 … 3 in turn, of kinds 0, 1, 2 in another turn. */
static void fill(void) {
    for (int64_t j = 0; j < MOST; j++) {
        a[j] = (ki_real)(j % 7 - 3), b[j] = (ki_real)(j % 5 - 2);
        pair[j] = (uint8_t)(j * 2 % 9 % 3);
        dst[j] = (ki_real)(j % 3);
    }
}

static void assert_same(const char *what, int64_t n, int64_t j, ki_real found, double wanted) {
    if ((double)found != wanted)
        fail_msg("%s of %lld, entry %lld: found %g, wanted %g", what, (long long)n, (long long)j,
                 (double)found, wanted);
}

static void test_a_hinge_is_off_at_its_corner(void **state) {
    (void)state;
    const ki_vec *vec = ki_vec_get();
    for (size_t k = 0; k < N_ROWS(lengths); k++) {
        const int64_t n = lengths[k];
        for (int kind = 0; kind <= 2; kind++) {
            double sum = 0;
            int64_t wanted = 0, active = -1;
            fill();
            for (int64_t j = 0; j < n; j++) {
                if (pair[j] == kind && a[j] > 1) sum += 2 * ((double)a[j] - 1), wanted++;
            }
            assert_same("hinge", n, -1, vec->hinge(a, pair, kind, 2, 1, 5, dst, &active, n), sum);
            assert_int_equal(active, wanted);
            for (int64_t j = 0; j < n; j++)
                assert_same("hinge's slope", n, j, dst[j],
                            pair[j] != kind ? (double)(j % 3)
                            : a[j] > 1      ? 10
                                            : 0);
        }
    }
}

static void test_a_window_is_open(void **state) {
    (void)state;
    const ki_vec *vec = ki_vec_get();
    for (size_t k = 0; k < N_ROWS(lengths); k++) {
        const int64_t n = lengths[k];
        double sum = 0;
        int64_t inside = 0, kept = 0, active = -1;
        fill();
        for (int64_t j = 0; j < n; j++) {
            kept += pair[j] == 2 && a[j] > -2 && a[j] < 2;
            if (b[j] > -2 && b[j] < 2 && a[j] < 1) sum += 1 - (double)a[j], inside++;
        }
        assert_same("triplet", n, -1, vec->triplet(a, b, -2, 2, 1, dst, &active, n), sum);
        assert_int_equal(active, inside);
        for (int64_t j = 0; j < n; j++)
            assert_same("triplet's count", n, j, dst[j],
                        (double)(j % 3) + (b[j] > -2 && b[j] < 2 && a[j] < 1 ? 1 : 0));
        assert_int_equal(vec->prune(a, 2, -2, 2, pair, n), kept);
        for (int64_t j = 0; j < n; j++) {
            const int old = (int)(j * 2 % 9 % 3);
            assert_int_equal(pair[j], old == 2 && !(a[j] > -2 && a[j] < 2) ? KI_PAIR_NONE : old);
        }
        for (int64_t j = n; j < MOST; j++) assert_int_equal(pair[j], j * 2 % 9 % 3);
    }
}

static void test_limits_belong_to_what_is_below(void **state) {
    (void)state;
    const ki_vec *vec = ki_vec_get();
    const ki_real limit[3] = {3, 2, 1};
    for (size_t k = 0; k < N_ROWS(lengths); k++) {
        const int64_t n = lengths[k];
        double below[3] = {0}, most = 0, sum = 0;
        int64_t above = 0;
        ki_real found[3];
        fill();
        for (int64_t j = 0; j < n; j++) {
            const double size = fabs((double)a[j]);
            for (int l = 0; l < 3; l++) below[l] += size > (double)limit[l] ? 0 : size;
            above += size > 2;
            most = fmax(most, size);
            sum += (double)a[j];
        }
        vec->sums_below(a, limit, found, n);
        for (int l = 0; l < 3; l++) assert_same("sums_below", n, l, found[l], below[l]);
        assert_int_equal(vec->count_above(a, 2, n), above);
        assert_same("max_size", n, -1, vec->max_size(a, n), most);
        assert_same("sum", n, -1, vec->sum(a, n), sum);
    }
    const ki_real small[2] = {(ki_real)-0.25, (ki_real)0.125};
    assert_same("max_size below one", 2, -1, vec->max_size(small, 2), 0.25);
}

static void test_plain_arrays(void **state) {
    (void)state;
    const ki_vec *vec = ki_vec_get();
    for (size_t k = 0; k < N_ROWS(lengths); k++) {
        const int64_t n = lengths[k];
        double dot = 0, l1 = 0;
        fill();
        for (int64_t j = 0; j < n; j++)
            dot += (double)a[j] * (double)b[j], l1 += fabs((double)a[j] - (double)b[j]);
        assert_same("dot", n, -1, vec->dot(a, b, n), dot);
        assert_same("l1", n, -1, vec->l1(a, b, n), l1);
        vec->l1_backward(a, b, 4, dst, n);
        for (int64_t j = 0; j < n; j++)
            assert_same("l1's slope", n, j, dst[j],
                        (double)(j % 3) + (a[j] > b[j]   ? 4
                                           : a[j] < b[j] ? -4
                                                         : 0));
        fill();
        vec->add(a, 3, dst, n);
        for (int64_t j = 0; j < n; j++) assert_same("add", n, j, dst[j], (double)(j % 3) + 3 * (double)a[j]);
        vec->copy(a, 3, dst, n);
        for (int64_t j = 0; j < n; j++) assert_same("copy", n, j, dst[j], 3 * (double)a[j]);
        vec->less(a, b, 3, 2, dst, n);
        for (int64_t j = 0; j < n; j++)
            assert_same("less", n, j, dst[j], 3 * ((double)a[j] - 2 * (double)b[j]));
        fill();
        vec->add_less(a, b, 3, 2, dst, n);
        for (int64_t j = 0; j < n; j++)
            assert_same("add_less", n, j, dst[j], (double)(j % 3) + 3 * ((double)a[j] - 2 * (double)b[j]));
        fill();
        vec->scale(pair, 1, 3, dst, n);
        for (int64_t j = 0; j < MOST; j++)
            assert_same("scale", n, j, dst[j], (double)(j % 3) * (j < n && pair[j] == 1 ? 3 : 1));
    }
}

static void test_kinds_come_from_labels(void **state) {
    (void)state;
    static int32_t label[MOST];
    const ki_vec *vec = ki_vec_get();
    for (int64_t j = 0; j < MOST; j++) label[j] = (int32_t)(j % 3);
    for (size_t k = 0; k < N_ROWS(lengths); k++) {
        const int64_t n = lengths[k];
        fill();
        vec->compare(label, 1, pair, n);
        for (int64_t j = 0; j < MOST; j++) {
            const int wanted = j >= n       ? (int)(j * 2 % 9 % 3)
                               : j % 3 == 1 ? KI_PAIR_POSITIVE
                                            : KI_PAIR_NEGATIVE;
            assert_int_equal(pair[j], wanted);
        }
        assert_int_equal(vec->count(pair, KI_PAIR_POSITIVE, n), (n + 1) / 3);
    }
}

/* s holds inner products of a point of square 4 with others. */
static void test_distances_from_inner_products(void **state) {
    (void)state;
    const ki_vec *vec = ki_vec_get();
    ki_real s[5] = {4, 0, -2, 5, 1}, sq[5] = {4, 4, 1, 4, 16};
    const double wanted[5] = {0, 8, 9, 0, 18};
    assert_same("nearest, relative", 5, -1, vec->distance(s, 4, sq, 5), 0);
    for (int j = 0; j < 5; j++) assert_same("distance", 5, j, s[j], wanted[j]);
    ki_real far[2] = {1, 1}, far_sq[2] = {4, 12};
    assert_same("nearest, relative", 2, -1, vec->distance(far, 4, far_sq, 2), 0.75);
    ki_real near[1] = {(ki_real)3.75}, near_sq[1] = {4}; /* below 1, and not yet too near to be trusted */
    assert_same("near", 1, -1, vec->distance(near, 4, near_sq, 1), 0.0625);
    assert_same("near", 1, 0, near[0], 0.5);
    ki_real none[1] = {0}, none_sq[1] = {0};
    assert_same("two zero vectors", 1, -1, vec->distance(none, 0, none_sq, 1), 0);
    assert_same("two zero vectors", 1, 0, none[0], 0);
    ki_real opposite[1] = {-4}, opposite_sq[1] = {4}; /* 16 of 8: never more than 1 is told */
    assert_same("opposite", 1, -1, vec->distance(opposite, 4, opposite_sq, 1), 1);
    ki_real rounded[] = {(ki_real)4.25}, rounded_sq[] = {4}; /* a little below 0 is 0 */
    assert_same("rounded", 1, -1, vec->distance(rounded, 4, rounded_sq, 1), 0);
    assert_same("rounded", 1, 0, rounded[0], 0);
}

/* One entry at a time: in a sum an error of the logarithm would hide behind the large ones. */
static void test_softplus_of_one(void **state) {
    (void)state;
    const ki_vec *vec = ki_vec_get();
    const uint8_t on = 1;
    const double tolerance = sizeof(ki_real) == sizeof(float) ? 5e-7 : 1e-15;
    for (int k = -160; k <= 160; k++) {
        const ki_real z = (ki_real)k / 8;
        ki_real slope = 0;
        const double found = (double)vec->softplus(&z, &on, 1, 1, 0, 1, &slope, 1);
        const double wanted = (k > 0 ? (double)z : 0) + log1p(exp(-fabs((double)z)));
        if (!(fabs(found - wanted) <= tolerance * wanted))
            fail_msg("softplus(%g): found %.9g, wanted %.9g", (double)z, found, wanted);
        const double sigmoid = 1 / (1 + exp(-(double)z));
        if (!(fabs((double)slope - sigmoid) <= tolerance * sigmoid))
            fail_msg("sigmoid(%g): found %.9g, wanted %.9g", (double)z, (double)slope, sigmoid);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_hinge_is_off_at_its_corner),
        cmocka_unit_test(test_a_window_is_open),
        cmocka_unit_test(test_limits_belong_to_what_is_below),
        cmocka_unit_test(test_plain_arrays),
        cmocka_unit_test(test_kinds_come_from_labels),
        cmocka_unit_test(test_distances_from_inner_products),
        cmocka_unit_test(test_softplus_of_one),
    };
    return cmocka_run_group_tests_name("objective/vec_edges", tests, NULL, NULL);
}
