/* Rows into groups by their lists of neighbours: known clusters are found, bridges join nothing, and nothing depends on threads or order. */
#include "judge/together.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "kith/knn.h"
#include "support/testing.h"

enum { DIM = 12, MOST = 400 };

static float rows[MOST * DIM];
static int64_t label[MOST], near[MOST * KI_GROUPS_K], group[MOST];
static double score[MOST * KI_GROUPS_K];

static double noise(ki_rng *rng) {
    return ki_rng_double(rng) + ki_rng_double(rng) + ki_rng_double(rng) - 1.5;
}

/* Clusters of n_each rows; rows of one cluster lie n_clusters apart. */
static int64_t make_clusters(int64_t n_clusters, int64_t n_each, double spread) {
    ki_rng rng = ki_rng_at(1, KI_RNG_AUGMENT, 0, 0);
    float centre[MOST * DIM];
    for (int64_t i = 0; i < n_clusters * DIM; i++) centre[i] = (float)noise(&rng);
    for (int64_t i = 0; i < n_clusters * n_each; i++) {
        label[i] = i % n_clusters;
        for (int d = 0; d < DIM; d++)
            rows[i * DIM + d] = centre[i % n_clusters * DIM + d] + (float)(spread * noise(&rng));
    }
    return n_clusters * n_each;
}

static ki_near_lists lists_of(int64_t n) {
    kith_error err;
    kith_gallery *gallery = NULL;
    static kith_neighbor found[MOST * KI_GROUPS_K];
    const kith_array array = {.dtype = KITH_F32, .n_dims = 2, .dim = {n, DIM}, .data = rows};
    const int64_t k = ki_groups_k(n);
    assert_ok(kith_gallery_new(&array, NULL, &gallery, &err), &err);
    assert_ok(kith_gallery_self(gallery, k, found, &err), &err);
    kith_gallery_free(gallery);
    for (int64_t i = 0; i < n * k; i++) {
        near[i] = found[i].index;
        score[i] = found[i].score;
    }
    return (ki_near_lists){.n = n, .n_rows = n, .k = k, .near = near, .score = score};
}

static ki_group_tree tree_of(const ki_near_lists *lists) {
    kith_error err;
    ki_group_tree tree = {0};
    assert_ok(ki_group_tree_make(lists, &tree, &err), &err);
    assert_int_equal(tree.n, lists->n);
    for (int64_t i = 1; i < tree.n_joined; i++) {
        if (tree.joined[i].likeness > tree.joined[i - 1].likeness)
            fail_msg("join %d is not in order", (int)i);
    }
    return tree;
}

static void cut(int64_t n, double least) {
    const ki_near_lists lists = lists_of(n);
    ki_group_tree tree = tree_of(&lists);
    ki_group_tree_cut(&tree, least, group);
    ki_group_tree_release(&tree);
}

static ki_pairs_found pairs_of(int64_t n) {
    kith_error err;
    ki_pairs_found found;
    assert_ok(ki_group_pairs(group, label, n, &found, &err), &err);
    return found;
}

static void test_known_clusters(void **state) {
    (void)state;
    const int64_t n = make_clusters(20, 10, 0.15);
    cut(n, ki_group_level_guess(0.01));
    const ki_pairs_found found = pairs_of(n);
    assert_int_equal(found.n_same, 20 * 45);
    assert_int_equal(found.n_wrong, 0);
    assert_int_equal(found.n_together, 20 * 45);
    for (int64_t i = 0; i < n; i++) assert_int_equal(group[i], i % 20); /* the lowest row */
}

/* Two clusters, and rows on the line between them. */
static void test_bridge(void **state) {
    (void)state;
    int64_t n = make_clusters(2, 60, 0.15);
    for (int step = 1; step < 12; step++, n++) {
        label[n] = -1;
        for (int d = 0; d < DIM; d++)
            rows[n * DIM + d] = rows[d] + (rows[DIM + d] - rows[d]) * (float)step / 12;
    }
    for (int level = 10; level <= 100; level += 10) {
        cut(n, level / 100.0);
        assert_int_equal(pairs_of(n).n_wrong, 0);
    }
    cut(n, 0.1);
    if (pairs_of(n).n_together < 2000) fail_msg("only %d pairs together", (int)pairs_of(n).n_together);
}

static void test_threads(void **state) {
    (void)state;
    const int64_t n = make_clusters(30, 10, 0.6);
    const ki_near_lists lists = lists_of(n);
    ki_group_tree one, three;
    ki_threads_set(1);
    one = tree_of(&lists);
    ki_threads_set(3);
    three = tree_of(&lists);
    ki_threads_set(0);
    assert_int_equal(one.n_joined, three.n_joined);
    assert_memory_equal(one.joined, three.joined, (size_t)one.n_joined * sizeof *one.joined);
    ki_group_tree_release(&one);
    ki_group_tree_release(&three);
}

/* The same rows in another order fall into the same groups. */
static void test_order(void **state) {
    (void)state;
    static float before[MOST * DIM];
    static int64_t group_before[MOST];
    const int64_t n = make_clusters(30, 10, 0.6);
    cut(n, 0.2);
    memcpy(before, rows, sizeof before);
    memcpy(group_before, group, sizeof group_before);
    for (int64_t i = 0; i < n; i++)
        memcpy(rows + i * DIM, before + i * 7 % n * DIM,
               DIM * sizeof *rows); /* 7 and 300 have no common divisor */
    cut(n, 0.2);
    int64_t n_joined = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++) {
            const bool was = group_before[i * 7 % n] == group_before[j * 7 % n], is = group[i] == group[j];
            if (was != is)
                fail_msg("rows %d and %d: %d in one order, %d in another", (int)i, (int)j, was, is);
            n_joined += is;
        }
    }
    assert_true(n_joined > 300);
}

/* Seeds are together from the start, and two of them never become one. */
static void test_seeds(void **state) {
    (void)state;
    static int64_t seed[MOST];
    const int64_t n = make_clusters(10, 10, 0.15);
    ki_near_lists lists = lists_of(n);
    for (int64_t i = 0; i < n; i++) seed[i] = i >= 50 ? -1 : i % 10 == 3 ? i / 10 % 2 : i % 10 == 4 ? 5 : -1;
    lists.seed = seed;
    ki_group_tree tree = tree_of(&lists);
    ki_group_tree_cut(&tree, 0.5, group);
    assert_int_not_equal(group[3], group[13]); /* one cluster, two seeds */
    assert_int_equal(group[3], group[23]);
    assert_int_equal(group[4], group[94]); /* one that a seed did not part */
    ki_group_tree_release(&tree);
    seed[0] = n;
    kith_error err;
    assert_int_equal(ki_group_tree_make(&lists, &tree, &err), KITH_EINVAL);
}

/* Copies of one row are each other's neighbours: hundreds of them meet in a few, and that takes no time and no wrong turn. */
static void test_copies(void **state) {
    (void)state;
    for (int64_t i = 0; i < MOST * DIM; i++) rows[i] = (float)(1 + i % DIM);
    for (int64_t i = 0; i < MOST; i++) label[i] = 0;
    cut(MOST, 0.5);
    for (int64_t i = 0; i < 20; i++) assert_int_equal(group[i], 0);
}

static void test_level(void **state) {
    (void)state;
    kith_error err;
    ki_pairs_found found;
    double level;
    const int64_t n = make_clusters(30, 10, 0.75);
    const ki_near_lists lists = lists_of(n);
    ki_group_tree tree = tree_of(&lists);
    double before = 1;
    static const double errors[] = {0.02, 0.1, 0.3};
    for (size_t i = 0; i < N_ROWS(errors); i++) {
        assert_ok(ki_group_level(&tree, label, errors[i], &level, &found, &err), &err);
        assert_true(level > 0 && level <= before);
        ki_group_tree_cut(&tree, level, group);
        assert_int_equal(pairs_of(n).n_together, found.n_together);
        if ((double)found.n_wrong > errors[i] * (double)found.n_together)
            fail_msg("%d of %d pairs are wrong; wanted %g", (int)found.n_wrong, (int)found.n_together,
                     errors[i]);
        before = level;
    }
    /* A hundred pairs are needed for 1 %, and there are none of nobody. */
    for (int64_t i = 0; i < n; i++) label[i] = -1;
    assert_ok(ki_group_level(&tree, label, 0.01, &level, &found, &err), &err);
    assert_true(level == 0);
    /* Without labels nothing speaks against a guess; with all rows different everything does. */
    assert_ok(ki_group_level_unrefuted(&tree, label, 0.01, 0.5, &level, &err), &err);
    assert_true(level == 0.5);
    for (int64_t i = 0; i < n; i++) label[i] = i;
    assert_ok(ki_group_level_unrefuted(&tree, label, 0.01, 0.01, &level, &err), &err);
    ki_group_tree_cut(&tree, level, group);
    assert_true(pairs_of(n).n_wrong <= 1);
    assert_true(ki_group_level_guess(0.001) >= ki_group_level_guess(0.03));
    assert_true(ki_group_level_guess(0.03) >= ki_group_level_guess(0.3));
    assert_true(ki_group_level_guess(0.9) > 0);
    ki_group_tree_release(&tree);
}

static void test_refusals(void **state) {
    (void)state;
    kith_error err;
    ki_group_tree tree = {0};
    const int64_t n = make_clusters(5, 10, 0.2);
    ki_near_lists lists = lists_of(n);
    static const int64_t bad[] = {50, -2, 0, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < N_ROWS(bad); i++) {
        const int64_t before = near[0];
        near[0] = bad[i];
        assert_int_equal(ki_group_tree_make(&lists, &tree, &err), KITH_EINVAL);
        near[0] = before;
    }
    lists.k = 0;
    assert_int_equal(ki_group_tree_make(&lists, &tree, &err), KITH_EINVAL);
    assert_string_equal(err.message, "lists have 0 neighbours; wanted 1 to 20");
    assert_null(tree.joined);
    /* Lists of nothing: everybody is alone. */
    lists = lists_of(n);
    for (int64_t i = 0; i < n * lists.k; i++) near[i] = -1;
    for (int64_t i = 0; i < n * lists.k; i++) score[i] = NAN;
    tree = tree_of(&lists);
    assert_int_equal(tree.n_joined, 0);
    ki_group_tree_release(&tree);
    lists.n = lists.n_rows = 0;
    tree = tree_of(&lists);
    ki_group_tree_release(&tree);
}

static void test_no_memory(void **state) {
    (void)state;
    kith_error err;
    ki_group_tree tree = {0};
    const int64_t n = make_clusters(3, 8, 0.2);
    const ki_near_lists lists = lists_of(n);
    for (int64_t i = 0;; i++) {
        ki_alloc_fail_after(i);
        const kith_status status = ki_group_tree_make(&lists, &tree, &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (!has_failed) break;
        assert_int_equal(status, KITH_ENOMEM);
        assert_null(tree.joined);
    }
    ki_group_tree_release(&tree);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known_clusters), cmocka_unit_test(test_bridge),
                                       cmocka_unit_test(test_threads),        cmocka_unit_test(test_order),
                                       cmocka_unit_test(test_seeds),          cmocka_unit_test(test_copies),
                                       cmocka_unit_test(test_level),          cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
