/* Trials against all pairs compared one by one, for labels of every size. */
#include "judge/trials.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "kith/threads.h"
#include "support/testing.h"

enum { MOST_N = 900, DIM = 6, MOST_K = 12 };

typedef struct input {
    int64_t n;
    float x[MOST_N * DIM];
    int64_t label[MOST_N];
} input;

static input in;

/* Small whole numbers: inner products are exact in float32, and many are equal; so are squared distances but for the mean. One label has 300 rows that
 * are near each other, one 120, the others 1 to 9. */
static void make(int64_t n) {
    ki_rng rng = ki_rng_at(5, KI_RNG_TEST, 1, 0);
    in.n = n;
    for (int64_t i = 0; i < n; i++) {
        const int64_t big = i % 3 == 0 ? 0 : i % 15 == 1 ? 1 : -1;
        in.label[i] = big >= 0 ? 1000 * big : 7 * (2 + (int64_t)(ki_rng_u32(&rng) % 100));
        for (int d = 0; d < DIM; d++) {
            const float about = big < 0 ? 0 : d == big ? 8 : 1;
            in.x[i * DIM + d] = about + (float)(ki_rng_u32(&rng) % 5) - 2;
        }
    }
}

static kith_array rows_of(const input *of) {
    return (kith_array){KITH_F32, 2, {of->n, DIM}, (void *)(uintptr_t)of->x};
}

/* The larger, the nearer. */
static double compare(kith_metric metric, int64_t i, int64_t j) {
    double product = 0, distance = 0, a = 0, b = 0;
    for (int d = 0; d < DIM; d++) {
        const double x = in.x[i * DIM + d], y = in.x[j * DIM + d];
        product += x * y;
        distance += (x - y) * (x - y);
        a += x * x;
        b += y * y;
    }
    if (metric == KITH_COSINE) return a > 0 && b > 0 ? product / sqrt(a * b) : 0;
    return metric == KITH_SQEUCLIDEAN ? -distance : product;
}

typedef struct scored {
    double score;
    int64_t row;
} scored;

static int by_score(const void *a, const void *b) {
    const scored *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static void check_list(kith_metric metric, int64_t i, bool is_without, const ki_trial_hit *list, int64_t k) {
    static scored all[MOST_N];
    int64_t n = 0;
    for (int64_t j = 0; j < in.n; j++) {
        if (j != i && !(is_without && in.label[j] == in.label[i]))
            all[n++] = (scored){compare(metric, i, j), j};
    }
    qsort(all, (size_t)n, sizeof *all, by_score);
    for (int64_t r = 0; r < k; r++) {
        if (r >= n) {
            if (list[r].row != -1 || !isnan(list[r].score))
                fail_msg("query %d: hit %d of %d is row %d", (int)i, (int)r, (int)n, list[r].row);
            continue;
        }
        const double wanted = metric == KITH_SQEUCLIDEAN ? -all[r].score : all[r].score;
        const double got = (double)list[r].score, most = metric == KITH_COSINE ? 1e-6 : 0;
        if (!(fabs(got - wanted) <= most) || (metric == KITH_INNER && list[r].row != all[r].row))
            fail_msg("%s, query %d, hit %d, %s: row %d with %.9g; wanted row %d with %.9g",
                     kith_metric_name(metric), (int)i, (int)r, is_without ? "without" : "with", list[r].row,
                     got, (int)all[r].row, wanted);
        if (is_without) assert_int_not_equal(in.label[list[r].row], in.label[i]);
    }
}

static void check(int64_t n, kith_metric metric, int64_t k) {
    ki_trials t = {0};
    kith_error err = {0};
    make(n);
    const kith_array rows = rows_of(&in);
    assert_ok(ki_trials_run(&rows, in.label, metric, k, &t, &err), &err);
    assert_int_equal(t.n, n);
    assert_int_equal(t.n_rows, n);
    assert_int_equal(t.k, k);
    for (int64_t i = 0; i < n; i++) {
        check_list(metric, i, false, t.with + i * k, k);
        check_list(metric, i, true, t.without + i * k, k);
        for (int64_t j = 0; j < n; j++) {
            if ((in.label[i] < in.label[j]) != (t.label[i] < t.label[j]))
                fail_msg("labels %d and %d have numbers %d and %d", (int)in.label[i], (int)in.label[j],
                         (int)t.label[i], (int)t.label[j]);
        }
    }
    ki_trials_release(&t);
}

static void test_all_pairs(void **state) {
    (void)state;
    for (int metric = KITH_COSINE; metric <= KITH_SQEUCLIDEAN; metric++) {
        check(MOST_N, (kith_metric)metric, MOST_K);
        check(MOST_N, (kith_metric)metric, 1);
        check(20, (kith_metric)metric, 40);
    }
}

static void test_same_bits_for_any_threads(void **state) {
    (void)state;
    ki_trials one = {0}, three = {0};
    kith_error err = {0};
    make(MOST_N);
    const kith_array rows = rows_of(&in);
    const size_t bytes = MOST_N * MOST_K * sizeof(ki_trial_hit);
    assert_ok(kith_threads_set(1, &err), &err);
    assert_ok(ki_trials_run(&rows, in.label, KITH_COSINE, MOST_K, &one, &err), &err);
    assert_ok(kith_threads_set(3, &err), &err);
    assert_ok(ki_trials_run(&rows, in.label, KITH_COSINE, MOST_K, &three, &err), &err);
    assert_memory_equal(one.with, three.with, bytes);
    assert_memory_equal(one.without, three.without, bytes);
    ki_trials_release(&one);
    ki_trials_release(&three);
}

static void test_refusals(void **state) {
    (void)state;
    ki_trials t = {0};
    kith_error err = {0};
    make(30);
    kith_array rows = rows_of(&in);
    assert_int_equal(ki_trials_run(&rows, in.label, KITH_COSINE, 0, &t, &err), KITH_EINVAL);
    assert_string_equal(err.message, "k is 0; wanted 1 to 1000");
    in.label[4] = -3;
    assert_int_equal(ki_trials_run(&rows, in.label, KITH_COSINE, 1, &t, &err), KITH_EINVAL);
    assert_string_equal(err.message, "row 4 has label -3; wanted 0 or more");
    for (int i = 0; i < 30; i++) in.label[i] = 12;
    assert_int_equal(ki_trials_run(&rows, in.label, KITH_COSINE, 1, &t, &err), KITH_ENOTFOUND);
    assert_string_equal(err.message, "30 rows have 1 labels; wanted at least 2");
    make(30);
    in.x[7 * DIM + 1] = NAN;
    assert_int_equal(ki_trials_run(&rows, in.label, KITH_COSINE, 1, &t, &err), KITH_ENUMERIC);
    rows.n_dims = 1;
    assert_int_equal(ki_trials_run(&rows, in.label, KITH_COSINE, 1, &t, &err), KITH_EINVAL);
    assert_null(t.with);
}

static void test_no_memory(void **state) {
    (void)state;
    kith_error err = {0};
    make(600);
    const kith_array rows = rows_of(&in);
    for (int64_t n = 0;; n++) {
        ki_trials t = {0};
        ki_alloc_fail_after(n);
        const kith_status status = ki_trials_run(&rows, in.label, KITH_COSINE, 3, &t, &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        ki_trials_release(&t);
        if (!has_failed) break;
        assert_int_equal(status, KITH_ENOMEM);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_pairs),
                                       cmocka_unit_test(test_same_bits_for_any_threads),
                                       cmocka_unit_test(test_refusals), cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
