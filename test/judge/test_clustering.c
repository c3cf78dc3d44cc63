/* Agreement of clusters and classes beside its definitions: every pair of items looked at, and the expected mutual
 * information as the mean over every order of the labels. */
#include <math.h>
#include <stdio.h>

#include "kith/eval.h"
#include "kith/log.h"
#include "support/testing.h"

enum { MOST = 7 };

static double entropy_of(const int64_t *label, int n) {
    double h = 0;
    for (int i = 0; i < n; i++) { /* each item's share of its group's term */
        int size = 0;
        for (int j = 0; j < n; j++) size += label[j] == label[i];
        h -= log((double)size / n) / n;
    }
    return h;
}

static double information_of(const int64_t *a, const int64_t *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        int size_a = 0, size_b = 0, both = 0;
        for (int j = 0; j < n; j++) {
            size_a += a[j] == a[i], size_b += b[j] == b[i];
            both += a[j] == a[i] && b[j] == b[i];
        }
        sum += log((double)n * both / ((double)size_a * size_b)) / n;
    }
    return sum;
}

/* The sum of information_of over every order of b[first …]. */
static double sum_over_orders(const int64_t *a, int64_t *b, int first, int n, int *n_orders) {
    if (first == n) return (*n_orders)++, information_of(a, b, n);
    double sum = 0;
    for (int i = first; i < n; i++) {
        const int64_t kept = b[first];
        b[first] = b[i], b[i] = kept;
        sum += sum_over_orders(a, b, first + 1, n, n_orders);
        b[i] = b[first], b[first] = kept;
    }
    return sum;
}

static void assert_near(const char *what, size_t row, double found, double wanted) {
    if (!(fabs(found - wanted) <= 1e-12))
        fail_msg("row %zu: %s is %.15g, wanted %.15g", row, what, found, wanted);
}

static const struct {
    int n;
    int64_t cluster[MOST], label[MOST];
} rows[] = {
    {7, {3, 3, 1, 1, 1, 2, 2}, {9, 9, 9, 5, 5, 5, 7}},
    {6, {2, 0, 0, 1, 1, 1}, {0, 0, 0, 0, 1, 2}},
    {7, {0, 1, 2, 3, 3, 3, 3}, {0, 0, 0, 0, 1, 1, 2}},
    {5, {4, 4, 4, 4, 4}, {0, 0, 1, 1, 1}},
    {5, {0, 0, 1, 1, 1}, {4, 4, 4, 4, 4}},
    {5, {0, 1, 2, 3, 4}, {0, 0, 1, 1, 1}},
    {4, {0, 0, 0, 0}, {0, 1, 2, 3}},
    {4, {0, 1, 2, 3}, {0, 0, 0, 0}},
    {6, {1, 1, 2, 2, 3, 3}, {6, 6, 5, 5, 4, 4}},
};

static void test_definitions(void **state) {
    (void)state;
    for (size_t r = 0; r < N_ROWS(rows); r++) {
        const int n = rows[r].n;
        const int64_t *a = rows[r].cluster, *b = rows[r].label;
        kith_clustering c;
        kith_error err = {0};
        assert_ok(kith_clustering_compare(a, b, n, &c, &err), &err);
        const double h_a = entropy_of(a, n), h_b = entropy_of(b, n), information = information_of(a, b, n);
        assert_near("NMI", r, c.nmi, information / ((h_a + h_b) / 2));
        assert_near("NMI by the geometric mean", r, c.nmi_geometric,
                    h_a > 0 && h_b > 0 ? information / sqrt(h_a * h_b) : 0);
        int64_t order[MOST];
        int n_orders = 0, n_a = 0, n_b = 0, n_both = 0;
        for (int i = 0; i < n; i++) order[i] = b[i];
        const double sum = sum_over_orders(a, order, 0, n, &n_orders), expected = sum / n_orders;
        const double room = (h_a + h_b) / 2 - expected;
        if (fabs(room) > 1e-9) assert_near("AMI", r, c.ami, (information - expected) / room);
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < i; j++) {
                n_a += a[i] == a[j], n_b += b[i] == b[j];
                n_both += a[i] == a[j] && b[i] == b[j];
            }
        }
        assert_near("precision", r, c.pair_precision, n_a ? (double)n_both / n_a : 0);
        assert_near("recall", r, c.pair_recall, n_b ? (double)n_both / n_b : 0);
        assert_near("F1", r, c.f1, n_both ? 2.0 * n_both / (n_a + n_b) : 0);
    }
}

/* Both put everything together, or both everything apart. One of the two alone is no agreement. */
static void test_trivial(void **state) {
    (void)state;
    static const int64_t together[] = {3, 3, 3, 3}, apart[] = {0, 1, 2, 3}, pairs[] = {0, 0, 1, 1};
    static const struct {
        const int64_t *a, *b;
        double ami;
    } cases[] = {{together, together, 1}, {apart, apart, 1},    {together, apart, 0},
                 {apart, together, 0},    {together, pairs, 0}, {pairs, apart, 0}};
    for (size_t i = 0; i < N_ROWS(cases); i++) {
        kith_clustering c;
        kith_error err = {0};
        assert_ok(kith_clustering_compare(cases[i].a, cases[i].b, 4, &c, &err), &err);
        assert_near("AMI", i, c.ami, cases[i].ami);
        if (cases[i].ami == 1) {
            assert_near("NMI", i, c.nmi, 1);
            assert_near("NMI by the geometric mean", i, c.nmi_geometric, 1);
        }
    }
}

static void test_nothing_is_kept(void **state) {
    (void)state;
    kith_memory_stats before, after;
    kith_clustering c;
    kith_error err = {0};
    kith_memory_stats_get(&before);
    assert_ok(kith_clustering_compare(rows[0].cluster, rows[0].label, rows[0].n, &c, &err), &err);
    kith_memory_stats_get(&after);
    assert_int_equal(after.live_bytes, before.live_bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_definitions), cmocka_unit_test(test_trivial),
                                       cmocka_unit_test(test_nothing_is_kept)};
    return cmocka_run_group_tests_name("judge/clustering", tests, NULL, NULL);
}
