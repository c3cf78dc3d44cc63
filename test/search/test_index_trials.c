/* Trials of an index: those of its rows where they are few, and of a sample in the whole index where they are many. */
#include "base/alloc.h"
#include "made_index.h"
#include "search/labelled.h"

enum { K = 5, MANY = 10500 };

static ki_trials try_index(const kith_index *index) {
    ki_trials t = {0};
    kith_error err;
    assert_ok(ki_index_trials(index, K, 10, &t, &err), &err);
    return t;
}

static kith_index *labelled(int64_t n, int64_t n_labels) {
    kith_error err;
    kith_index *index = made_create(made_path("own.kith"), KITH_COSINE);
    made_add_labelled(index, 0, n, n_labels);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    return index;
}

static ki_trials try_rows(const kith_index *index, int64_t n, int64_t n_labels) {
    kith_error err;
    ki_trials t = {0};
    float *rows = malloc((size_t)(n * MADE_DIM) * sizeof *rows);
    int64_t *ids = malloc((size_t)n * sizeof *ids), *labels = malloc((size_t)n * sizeof *labels);
    for (int64_t i = 0; i < n; i++) ids[i] = i, labels[i] = i % n_labels;
    assert_ok(kith_index_vectors(index, ids, n, rows, &err), &err);
    const kith_array array = {KITH_F32, 2, {n, MADE_DIM}, rows};
    assert_ok(ki_trials_run(&array, labels, KITH_COSINE, K, &t, &err), &err);
    free(rows);
    free(ids);
    free(labels);
    return t;
}

static void assert_same_scores(const ki_trial_hit *a, const ki_trial_hit *b, const char *what,
                               int64_t query) {
    for (int i = 0; i < K; i++) {
        if (!((double)a[i].score - (double)b[i].score < 1e-6 &&
              (double)b[i].score - (double)a[i].score < 1e-6))
            fail_msg("%s, query %d, hit %d: %.9g and %.9g", what, (int)query, i, (double)a[i].score,
                     (double)b[i].score);
    }
}

static void test_few(void **state) {
    (void)state;
    kith_index *index = labelled(300, 20);
    ki_trials t = try_index(index), rows = try_rows(index, 300, 20);
    assert_int_equal(t.n, 300);
    assert_int_equal(t.n_rows, 300);
    assert_int_equal(t.n_labels, 20);
    for (int64_t i = 0; i < 300; i++) {
        assert_same_scores(t.with + i * K, rows.with + i * K, "with", i);
        assert_same_scores(t.without + i * K, rows.without + i * K, "without", i);
    }
    ki_trials_release(&t);
    ki_trials_release(&rows);
    kith_index_free(index);
}

/* 14 labels: a query's own label has 750 items, more than the spare hits of the first search. */
static void test_many(void **state) {
    (void)state;
    kith_index *index = labelled(MANY, 14);
    ki_labelled sample = {0};
    kith_error err;
    ki_trials t = try_index(index), rows = try_rows(index, MANY, 14);
    assert_int_equal(t.n, 3000);
    assert_int_equal(t.n_rows, MANY);
    assert_int_equal(t.n_labels, 14);
    assert_ok(ki_labelled_take(index, 3000, &sample, &err), &err);
    for (int64_t q = 0; q < t.n; q++) {
        const int64_t id = sample.id[q];
        assert_same_scores(t.with + q * K, rows.with + id * K, "with", q);
        assert_same_scores(t.without + q * K, rows.without + id * K, "without", q);
        for (int i = 0; i < K; i++) assert_int_not_equal(t.label[t.without[q * K + i].row], t.label[q]);
    }
    ki_labelled_release(&sample);
    ki_trials_release(&t);
    ki_trials_release(&rows);
    kith_index_free(index);
}

static void test_too_few(void **state) {
    (void)state;
    kith_error err;
    ki_trials t = {0};
    kith_index *index = labelled(60, 9);
    assert_int_equal(ki_index_trials(index, K, 10, &t, &err), KITH_ENOTFOUND);
    assert_non_null(strstr(err.message, "has 9 labels of two items or more; wanted 10"));
    for (int64_t n = 0;; n++) {
        ki_alloc_fail_after(n);
        const kith_status status = ki_index_trials(index, K, 9, &t, &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (!has_failed) break;
        assert_int_equal(status, KITH_ENOMEM);
    }
    ki_trials_release(&t);
    kith_index_free(index);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_few), cmocka_unit_test(test_many),
                                       cmocka_unit_test(test_too_few)};
    const int n_failed = cmocka_run_group_tests_name("search/index_trials", tests, NULL, NULL);
    testing_clean_up();
    return n_failed;
}
