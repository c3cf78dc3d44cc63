/* False-match rates of an index from its own labels: those of verification on the same rows, of a sample where there are many. */
#include "base/alloc.h"
#include "judge/verification.h"
#include "made_index.h"

enum { MOST_ITEMS = 10000 };

static void commit(kith_index *index) {
    kith_error err;
    assert_ok(kith_index_commit(index, NULL, &err), &err);
}

/* An index of n items with labels that repeat. */
static kith_index *labelled(kith_metric metric, int64_t n, int64_t n_labels) {
    kith_index *index = made_create(made_path("own.kith"), metric);
    if (n > 0) made_add_labelled(index, 0, n, n_labels);
    commit(index);
    return index;
}

static kith_calibration measure(kith_index *index, const kith_calibration *beside) {
    kith_error err;
    kith_calibration curve;
    memset(&curve, 0, sizeof curve);
    assert_ok(kith_index_calibrate_own(index, beside, &curve, &err), &err);
    return curve;
}

static void assert_same_curve(const kith_calibration *a, const kith_calibration *b) {
    assert_int_equal(a->metric, b->metric);
    assert_int_equal(a->n_classes, b->n_classes);
    assert_int_equal(a->n_same, b->n_same);
    assert_int_equal(a->n_different, b->n_different);
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->threshold, b->threshold, sizeof a->threshold);
    assert_memory_equal(a->fmr, b->fmr, sizeof a->fmr);
    assert_memory_equal(a->tmr, b->tmr, sizeof a->tmr);
}

/* Verification of these ids, whose labels repeat after n_labels. */
static kith_calibration verify(const kith_index *index, const int64_t *ids, int64_t n, int64_t n_labels) {
    kith_error err;
    float *rows = malloc((size_t)(n * MADE_DIM) * sizeof *rows);
    int64_t *labels = malloc((size_t)n * sizeof *labels);
    kith_verification v;
    for (int64_t i = 0; i < n; i++) labels[i] = ids[i] % n_labels;
    assert_ok(kith_index_vectors(index, ids, n, rows, &err), &err);
    const kith_array array = {KITH_F32, 2, {n, MADE_DIM}, rows};
    const kith_retrieval_input in = {.embedding = &array, .labels = labels, .n_labels = n};
    KITH_OPTIONS(kith_verification_options, options);
    options.metric = made_info(index).metric;
    options.has_intervals = false;
    assert_ok(kith_verification_run(&in, &options, &v, &err), &err);
    free(labels);
    free(rows);
    return v.curve;
}

/* Items without a label, with an empty one, and those that were removed do not count. */
static void test_same_as_verification(void **state) {
    (void)state;
    enum { N = 300, LABELS = 20 };
    kith_error err;
    const int64_t gone[] = {0, 17, 299};
    for (int metric = 0; metric < 3; metric++) {
        kith_index *index = labelled((kith_metric)metric, N, LABELS);
        float row[2 * MADE_DIM];
        made_row(5, row);
        made_row(6, row + MADE_DIM);
        const kith_array rows = {KITH_F32, 2, {2, MADE_DIM}, row};
        const kith_index_item items[] = {{.bytes = -1, .mtime_ns = -1},
                                         {.label = "", .bytes = -1, .mtime_ns = -1}};
        assert_ok(kith_index_add(index, &rows, items, NULL, &err), &err);
        assert_ok(kith_index_remove(index, gone, 3, &err), &err);
        commit(index);
        int64_t ids[N], n = 0;
        for (int64_t i = 0; i < N; i++) {
            if (i != gone[0] && i != gone[1] && i != gone[2]) ids[n++] = i;
        }
        const kith_calibration wanted = verify(index, ids, n, LABELS), found = measure(index, NULL);
        assert_same_curve(&found, &wanted);
        assert_string_equal(found.source, "index");
        assert_int_equal(found.n_classes, LABELS);
        commit(index);
        kith_index_free(index);
        char path[4096];
        snprintf(path, sizeof path, "%s/own.kith", testing_folder());
        index = made_open(path, KITH_INDEX_READ);
        assert_memory_equal(kith_index_calibration(index), &found, sizeof found);
        kith_index_free(index);
    }
}

/* The ids alone say which items are taken: not how they were added, nor what else the index holds. */
static void test_sample(void **state) {
    (void)state;
    enum { N = 12000, LABELS = N / 5 };
    kith_index *index = made_create(made_path("parts.kith"), KITH_COSINE);
    for (int64_t i = 0; i < N; i += N / 3) {
        made_add_labelled(index, i, N / 3, LABELS);
        commit(index);
    }
    const kith_calibration parts = measure(index, NULL);
    kith_index_free(index);
    index = labelled(KITH_COSINE, N, LABELS);
    const kith_calibration whole = measure(index, NULL), again = measure(index, NULL);
    kith_index_free(index);
    assert_same_curve(&whole, &parts);
    assert_same_curve(&whole, &again);
    assert_int_equal(whole.n_same + whole.n_different, (int64_t)MOST_ITEMS * (MOST_ITEMS - 1) / 2);
    /* Drawn at random, (10/12)² of the 24,000 pairs of one class are left. */
    print_message("%lld pairs of one class\n", (long long)whole.n_same);
    assert_in_range(whole.n_same, 16300, 17050);
}

/* Classes that lie in a row, as folders do, each lose about the same part. */
static void test_sample_of_rows(void **state) {
    (void)state;
    enum { N = 30000, PER_CLASS = 5 };
    kith_error err;
    kith_index *index = made_create(made_path("rows.kith"), KITH_COSINE);
    float *rows = malloc((size_t)N * MADE_DIM * sizeof *rows);
    kith_index_item *items = calloc(N, sizeof *items);
    char(*label)[24] = malloc(N * sizeof *label);
    for (int64_t i = 0; i < N; i++) {
        made_row(i, rows + i * MADE_DIM);
        snprintf(label[i], sizeof *label, "c%lld", (long long)(i / PER_CLASS));
        items[i] = (kith_index_item){.label = label[i], .bytes = -1, .mtime_ns = -1};
    }
    const kith_array array = {KITH_F32, 2, {N, MADE_DIM}, rows};
    assert_ok(kith_index_add(index, &array, items, NULL, &err), &err);
    commit(index);
    const kith_calibration curve = measure(index, NULL);
    kith_index_free(index);
    free(label);
    free(items);
    free(rows);
    /* A ninth of the 60,000 pairs of one class, and 1 - (2/3)^5 of the 6,000 classes. */
    print_message("%lld pairs of one class, %lld classes\n", (long long)curve.n_same,
                  (long long)curve.n_classes);
    assert_in_range(curve.n_same, 6250, 7100);
    assert_in_range(curve.n_classes, 5100, 5320);
}

/* Too few labels or pairs: said so, and nothing changes. */
static void test_floor(void **state) {
    (void)state;
    static const struct {
        int64_t n, n_labels;
        kith_status status;
    } rows[] = {{0, 1, KITH_ENOTFOUND},     {900, 9, KITH_ENOTFOUND}, {140, 10, KITH_ENOTFOUND},
                {200, 200, KITH_ENOTFOUND}, {150, 10, KITH_OK},       {201, 200, KITH_OK}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err;
        kith_calibration curve = {.n = -1};
        kith_index *index = labelled(KITH_COSINE, rows[i].n, rows[i].n_labels);
        const kith_status status = kith_index_calibrate_own(index, NULL, &curve, &err);
        if (status != rows[i].status)
            fail_msg("%lld items, %lld labels: %d, wanted %d", (long long)rows[i].n,
                     (long long)rows[i].n_labels, (int)status, (int)rows[i].status);
        assert_true((curve.n == -1) == (status != KITH_OK));
        assert_true((kith_index_calibration(index) == NULL) == (status != KITH_OK));
        if (rows[i].n == 140)
            assert_non_null(strstr(err.message,
                                   "has 10 labels, 910 pairs of items with the same and 8820 "
                                   "with different ones; wanted 10, 1 and 10000"));
        kith_index_free(index);
    }
}

static const kith_calibration validation = {.metric = KITH_COSINE,
                                            .source = "validation",
                                            .n_classes = 30,
                                            .n_same = 500,
                                            .n_different = 20000,
                                            .n = 3,
                                            .threshold = {-1, 0.6, 0.9},
                                            .fmr = {1, 0.1, 0.0001},
                                            .tmr = {1, 0.9, 0.5}};

static void test_beside(void **state) {
    (void)state;
    kith_error err;
    kith_index *index = labelled(KITH_COSINE, 400, 20);
    const kith_calibration own = measure(index, NULL), both = measure(index, &validation);
    kith_calibration wanted, other = validation;
    ki_calibration_stricter(&own, &validation, &wanted);
    assert_same_curve(&both, &wanted);
    assert_string_equal(both.source, "validation, index");
    assert_int_equal(both.n_different, 20000);
    assert_memory_equal(kith_index_calibration(index), &both, sizeof both);
    other.metric = KITH_INNER;
    assert_int_equal(kith_index_calibrate_own(index, &other, &wanted, &err), KITH_EINVAL);
    other = validation;
    other.fmr[2] = 2;
    assert_int_equal(kith_index_calibrate_own(index, &other, &wanted, &err), KITH_EFORMAT);
    assert_memory_equal(kith_index_calibration(index), &both, sizeof both);
    kith_index_free(index);
}

static void test_reader(void **state) {
    (void)state;
    kith_error err;
    kith_calibration curve;
    kith_index_free(labelled(KITH_COSINE, 400, 20));
    char path[4096];
    snprintf(path, sizeof path, "%s/own.kith", testing_folder());
    kith_index *index = made_open(path, KITH_INDEX_READ);
    assert_int_equal(kith_index_calibrate_own(index, NULL, &curve, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "was opened for reading"));
    kith_index_free(index);
}

/* Any allocation may fail; then there is no curve. */
static void test_memory(void **state) {
    (void)state;
    kith_status status = KITH_ENOMEM;
    kith_index *index = labelled(KITH_COSINE, 160, 10);
    int64_t n = 0;
    for (; status != KITH_OK; n++) {
        kith_error err;
        kith_calibration curve;
        ki_alloc_fail_after(n);
        status = kith_index_calibrate_own(index, NULL, &curve, &err);
        ki_alloc_fail_after(-1);
        if (status != KITH_OK) assert_int_equal(status, KITH_ENOMEM);
        assert_true((kith_index_calibration(index) == NULL) == (status != KITH_OK));
    }
    print_message("%lld allocations\n", (long long)n - 1);
    assert_true(n > 10);
    kith_index_free(index);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_as_verification),
                                       cmocka_unit_test(test_sample),
                                       cmocka_unit_test(test_sample_of_rows),
                                       cmocka_unit_test(test_floor),
                                       cmocka_unit_test(test_beside),
                                       cmocka_unit_test(test_reader),
                                       cmocka_unit_test(test_memory)};
    const int n_failed = cmocka_run_group_tests_name("search/index_calibrate", tests, NULL, NULL);
    testing_clean_up();
    return n_failed;
}
