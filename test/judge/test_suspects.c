/* Labels that look wrong: those that were planted come first. */
#include "kith/suspects.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "support/testing.h"

enum { N_CLASSES = 12, N_EACH = 15, N = N_CLASSES * N_EACH, DIM = 8 };

static float rows[N * DIM];
static int64_t labels[N];

static kith_array array_of(float *values, int64_t n, int64_t dim) {
    return (kith_array){.dtype = KITH_F32, .n_dims = 2, .dim = {n, dim}, .data = values};
}

/* Clusters, one for each class. */
static void make(double spread) {
    ki_rng rng = ki_rng_at(1, KI_RNG_AUGMENT, 0, 0);
    float centre[N_CLASSES * DIM];
    for (int i = 0; i < N_CLASSES * DIM; i++) centre[i] = (float)(ki_rng_double(&rng) - 0.5);
    for (int i = 0; i < N; i++) {
        labels[i] = i % N_CLASSES * 100; /* labels need not be dense */
        for (int d = 0; d < DIM; d++)
            rows[i * DIM + d] =
                centre[i % N_CLASSES * DIM + d] + (float)(spread * (ki_rng_double(&rng) - 0.5));
    }
}

static void test_planted_labels_come_first(void **state) {
    (void)state;
    static const int planted[] = {3, 40, 77, 101, 150};
    kith_error err = {0};
    kith_suspects found = {0};
    make(0.3);
    const kith_array array = array_of(rows, N, DIM);
    for (size_t i = 0; i < N_ROWS(planted); i++) labels[planted[i]] = (labels[planted[i]] + 500) % 1200;
    assert_ok(kith_suspects_find(&array, labels, NULL, &found, &err), &err);
    assert_int_equal(found.n_judged, N);
    assert_true(found.n >= (int64_t)N_ROWS(planted));
    for (size_t i = 0; i < N_ROWS(planted); i++) {
        const kith_suspect *s = &found.suspects[i];
        bool is_planted = false;
        for (size_t j = 0; j < N_ROWS(planted); j++) is_planted |= s->row == planted[j];
        if (!is_planted) fail_msg("suspect %d is row %d, whose label is right", (int)i, (int)s->row);
        assert_int_equal(s->other, s->row % N_CLASSES * 100);
        assert_int_equal(s->label, labels[s->row]);
        if (!(s->agreement < 0.2 && s->other_agreement > 0.8))
            fail_msg("row %d: %g agree, %g with the other", (int)s->row, s->agreement, s->other_agreement);
    }
    kith_suspects_release(&found);
}

/* A line of points, so that neighbours are known. Angles rise from 0; neighbours by cosine are those by angle. */
static void test_votes(void **state) {
    (void)state;
    static const double degrees[] = {0, 1, 2, 3, 40, 41.5, 43.5, 80};
    static const int64_t label[] = {1, 1, 2, 1, 2, 2, 3, -1};
    float x[8 * 2];
    kith_error err = {0};
    kith_suspects found = {0};
    for (int i = 0; i < 8; i++) {
        x[2 * i] = (float)cos(degrees[i] / 57.29577951);
        x[2 * i + 1] = (float)sin(degrees[i] / 57.29577951);
    }
    const kith_array array = array_of(x, 8, 2);
    assert_ok(kith_suspects_find(&array, label, NULL, &found, &err), &err);
    /* Row 6 is alone with its label, row 7 has none. Classes 1 and 2 have 3 rows, so that each asks two neighbours. Row 2 is
     * among class 1. Row 1 asks rows 0 and 2: one each, which is no suspicion. Row 3 asks 2 and 1. Row 5 asks 4 and 6. */
    assert_int_equal(found.n_judged, 6);
    assert_int_equal(found.n, 1);
    assert_int_equal(found.n_found, 1);
    assert_int_equal(found.suspects[0].row, 2);
    assert_int_equal(found.suspects[0].other, 1);
    assert_true(found.suspects[0].agreement == 0);
    assert_true(found.suspects[0].other_agreement == 1);
    kith_suspects_release(&found);
}

/* `most` cuts the list, not the count; 0 is all of it. */
static void test_how_many(void **state) {
    (void)state;
    kith_error err = {0};
    kith_suspects all = {0}, some = {0};
    KITH_OPTIONS(kith_suspects_options, options);
    make(2);
    const kith_array array = array_of(rows, N, DIM);
    options.most = 0;
    assert_ok(kith_suspects_find(&array, labels, &options, &all, &err), &err);
    assert_true(all.n > 20);
    assert_int_equal(all.n, all.n_found);
    options.most = 7;
    assert_ok(kith_suspects_find(&array, labels, &options, &some, &err), &err);
    assert_int_equal(some.n, 7);
    assert_int_equal(some.n_found, all.n_found);
    assert_memory_equal(some.suspects, all.suspects, 7 * sizeof *all.suspects);
    for (int64_t i = 1; i < all.n; i++) {
        const kith_suspect *a = &all.suspects[i - 1], *b = &all.suspects[i];
        if (!(a->other_agreement - a->agreement >= b->other_agreement - b->agreement))
            fail_msg("suspect %d is worse than the one before it", (int)i);
    }
    kith_suspects_release(&all);
    kith_suspects_release(&some);
}

static void test_refusals(void **state) {
    (void)state;
    kith_error err = {0};
    kith_suspects found = {0};
    KITH_OPTIONS(kith_suspects_options, options);
    make(1);
    kith_array array = array_of(rows, N, DIM);
    options.k = 101;
    assert_int_equal(kith_suspects_find(&array, labels, &options, &found, &err), KITH_EINVAL);
    assert_string_equal(err.message, "k is 101 and most 100; wanted 1 to 100, and 0 or more");
    for (int i = 0; i < N; i++) labels[i] = -1;
    assert_int_equal(kith_suspects_find(&array, labels, NULL, &found, &err), KITH_EINVAL);
    assert_string_equal(err.message, "none of 180 rows has a label");
    make(1);
    rows[5 * DIM] = NAN;
    assert_int_equal(kith_suspects_find(&array, labels, NULL, &found, &err), KITH_ENUMERIC);
    array.n_dims = 1;
    assert_int_equal(kith_suspects_find(&array, labels, NULL, &found, &err), KITH_ESHAPE);
    make(1);
    array.n_dims = 2;
    for (int64_t n = 0;; n++) {
        ki_alloc_fail_after(n);
        const kith_status status = kith_suspects_find(&array, labels, NULL, &found, &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (!has_failed) break;
        assert_int_equal(status, KITH_ENOMEM);
    }
    kith_suspects_release(&found);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_planted_labels_come_first),
                                       cmocka_unit_test(test_votes), cmocka_unit_test(test_how_many),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
