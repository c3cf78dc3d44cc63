/* An index that finds candidates by the first values of vectors: recall, memory, additions, filters, limits; what is refused. */
#include <math.h>

#include "made_index.h"

enum { DIM = 96, FIRST = 32, N = 6000, N_QUERIES = 100, K = 10, CLASSES = 400 };

/* As a network trained with objective.nested says it: things of a class are alike in all values, and in the first ones alone. */
static void nested_row(int64_t i, float *ret) {
    ki_rng of_class = ki_rng_at(17, KI_RNG_TEST, (uint32_t)(i % CLASSES), 0);
    ki_rng own = ki_rng_at(18, KI_RNG_TEST, (uint32_t)i, 0);
    for (int k = 0; k < DIM; k++) {
        const double size = k < FIRST ? 1 : 0.35;
        ret[k] = (float)(size * (ki_rng_normal(&of_class) + 0.5 * ki_rng_normal(&own)));
    }
}

static float *nested_rows(int64_t from, int64_t n) {
    float *rows = malloc((size_t)(n * DIM) * sizeof *rows);
    for (int64_t i = 0; i < n; i++) nested_row(from + i, rows + i * DIM);
    return rows;
}

static void add(kith_index *index, int64_t from, int64_t n) {
    kith_error err;
    float *rows = nested_rows(from, n);
    const kith_array array = {KITH_F32, 2, {n, DIM}, rows};
    assert_ok(kith_index_add(index, &array, NULL, NULL, &err), &err);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    free(rows);
}

static kith_status try_make(const char *path, kith_metric metric, int64_t first, kith_index **ret,
                            kith_error *err) {
    KITH_OPTIONS(kith_index_options, options);
    options.dim = DIM;
    options.metric = metric;
    options.exact_numbers = 0;
    options.first = first;
    return kith_index_create(path, &options, ret, err);
}

static kith_index *make(const char *path, kith_metric metric, int64_t first) {
    kith_error err;
    kith_index *index = NULL;
    assert_ok(try_make(path, metric, first, &index, &err), &err);
    add(index, 0, N);
    return index;
}

/* The part of the exact hits of queries that are not in the index; scores are those of whole vectors. */
static double recall_of(const kith_index *index, kith_search_options options) {
    kith_error err;
    kith_hits found = {0}, wanted = {0};
    float *query = nested_rows(1000000, N_QUERIES);
    const kith_array asked = {KITH_F32, 2, {N_QUERIES, DIM}, query};
    assert_ok(kith_index_search(index, &asked, &options, &found, &err), &err);
    options.exact = true;
    assert_ok(kith_index_search(index, &asked, &options, &wanted, &err), &err);
    assert_false(found.is_exact);
    int64_t n_same = 0;
    const int64_t n_all = wanted.begin[N_QUERIES];
    for (int64_t q = 0; q < N_QUERIES; q++) {
        for (int64_t i = found.begin[q]; i < found.begin[q + 1]; i++) {
            for (int64_t j = wanted.begin[q]; j < wanted.begin[q + 1]; j++) {
                if (found.hits[i].id != wanted.hits[j].id) continue;
                n_same++;
                if (!(fabs(found.hits[i].score - wanted.hits[j].score) <=
                      1e-6 * (1 + fabs(wanted.hits[j].score))))
                    fail_msg("id %lld: score %.9g, exact %.9g", (long long)found.hits[i].id,
                             found.hits[i].score, wanted.hits[j].score);
            }
        }
    }
    kith_hits_release(&found);
    kith_hits_release(&wanted);
    free(query);
    return (double)n_same / (double)n_all;
}

static kith_search_options plain(void) {
    KITH_OPTIONS(kith_search_options, options);
    options.k = K;
    return options;
}

static void check_metric(kith_metric metric, double least) {
    char name[40], path[4096];
    snprintf(name, sizeof name, "%s.kith", kith_metric_name(metric));
    snprintf(path, sizeof path, "%s", made_path(name));
    kith_index *index = make(path, metric, FIRST);
    kith_index_info info = made_info(index);
    assert_int_equal(info.first, FIRST);
    assert_int_equal(info.dim, DIM);
    const double recall = recall_of(index, plain());
    print_message("%s: %d bits, %.1f bytes a row, recall %.4f measured, %.4f of other queries\n",
                  kith_metric_name(metric), (int)info.bits, info.bytes_per_row, info.recall, recall);
    if (recall < least) fail_msg("%s: recall %.4f; wanted %.2f", kith_metric_name(metric), recall, least);
    kith_index_free(index);
    /* Another handle reads it, and more rows get codes of the same kind. */
    index = made_open(path, KITH_INDEX_WRITE);
    add(index, N, N / 2);
    info = made_info(index);
    assert_int_equal(info.first, FIRST);
    const double after = recall_of(index, plain());
    if (after < least) fail_msg("%s: recall %.4f after an addition", kith_metric_name(metric), after);
    kith_index_free(index);
}

static void test_cosine(void **state) { (void)state, check_metric(KITH_COSINE, 0.97); }
static void test_inner(void **state) { (void)state, check_metric(KITH_INNER, 0.97); }
static void test_sqeuclidean(void **state) { (void)state, check_metric(KITH_SQEUCLIDEAN, 0.97); }

/* Codes take the memory of short vectors. */
static void test_memory(void **state) {
    (void)state;
    kith_index *whole = make(made_path("whole.kith"), KITH_COSINE, 0),
               *first = make(made_path("first.kith"), KITH_COSINE, FIRST);
    const kith_index_info a = made_info(whole), b = made_info(first);
    assert_int_equal(a.first, 0);
    assert_int_equal(a.format, 1);
    assert_int_equal(b.format, 3);
    if (!(b.recall >= 0.98)) fail_msg("recall %.4f by the first values", b.recall);
    if (!((b.bytes_per_row - 12) * DIM <
          1.3 * (a.bytes_per_row - 12) * FIRST * (double)b.bits / (double)a.bits))
        fail_msg("%.1f bytes a row of %d bits, whole %.1f of %d", b.bytes_per_row, (int)b.bits,
                 a.bytes_per_row, (int)a.bits);
    kith_index_free(whole);
    kith_index_free(first);
}

/* Filters, pages and limits are of whole vectors. */
static void test_filters_and_limits(void **state) {
    (void)state;
    kith_index *index = make(made_path("filters.kith"), KITH_COSINE, FIRST);
    kith_search_options options = plain();
    options.where = "id >= 1000 and id < 4000"; /* seven of a class at least */
    options.k = 5;
    const double filtered = recall_of(index, options);
    if (filtered < 0.97) fail_msg("recall %.4f with a filter", filtered);
    options.where = NULL;
    options.has_limit = true;
    options.limit = 0.6;
    options.k = INT64_MAX; /* all */
    const double within = recall_of(index, options);
    if (within < 0.97) fail_msg("recall %.4f of all within a score", within);
    kith_index_free(index);
}

static void test_mistakes(void **state) {
    (void)state;
    kith_error err = {0};
    kith_index *index = NULL;
    static const struct {
        int64_t first;
        const char *line;
    } rows[] = {{-1, "first is -1 values of 96"}, {97, "first is 97 values of 96; wanted 1 to 96"}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        assert_int_equal(try_make(made_path("bad.kith"), KITH_COSINE, rows[i].first, &index, &err),
                         KITH_EINVAL);
        if (!strstr(err.message, rows[i].line)) fail_msg("%s", err.message);
        assert_null(index);
    }
    /* All of the values: as without. */
    assert_ok(try_make(made_path("all.kith"), KITH_COSINE, DIM, &index, &err), &err);
    assert_int_equal(made_info(index).first, 0);
    kith_index_free(index);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cosine),
        cmocka_unit_test(test_inner),
        cmocka_unit_test(test_sqeuclidean),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_filters_and_limits),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
