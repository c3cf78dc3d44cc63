/* An index that has codes: what it promises holds, through additions, removals, filters, and both ways over the border. */
#include <math.h>
#include <unistd.h>

#include "made_index.h"

static char folder[4096];

static kith_index *begin(const char *name, int64_t n, kith_metric metric, int64_t most_exact_rows) {
    kith_error err;
    made_exact_numbers = most_exact_rows * MADE_DIM;
    snprintf(folder, sizeof folder, "%s", made_path(name));
    kith_index *index = made_create(folder, metric);
    made_add(index, 0, n);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    return index;
}

static kith_hits search(const kith_index *index, const float *query, int64_t n,
                        const kith_search_options *options) {
    kith_error err;
    kith_hits hits = {0};
    const kith_array asked = {KITH_F32, 2, {n, MADE_DIM}, (float *)query};
    assert_ok(kith_index_search(index, &asked, options, &hits, &err), &err);
    return hits;
}

/* The part of the exact hits that are found. */
static double recall_of(const kith_index *index, int64_t n_queries, int64_t k) {
    float *query = malloc((size_t)(n_queries * MADE_DIM) * sizeof *query);
    for (int64_t i = 0; i < n_queries; i++) made_row(100000 + i, query + i * MADE_DIM); /* not in the index */
    KITH_OPTIONS(kith_search_options, options);
    options.k = k;
    const kith_hits found = search(index, query, n_queries, &options);
    options.exact = true;
    const kith_hits wanted = search(index, query, n_queries, &options);
    assert_false(found.is_exact);
    assert_true(wanted.is_exact);
    int64_t n_same = 0;
    for (int64_t i = 0; i < n_queries; i++) {
        assert_int_equal(found.begin[i + 1] - found.begin[i], k);
        for (int64_t j = 0; j < k; j++) {
            for (int64_t l = 0; l < k; l++) {
                const kith_hit *a = &found.hits[found.begin[i] + j], *b = &wanted.hits[wanted.begin[i] + l];
                if (a->id != b->id) continue;
                n_same++;
                /* the same pair, the same score, but for rounding in another order */
                assert_true(fabs(a->score - b->score) <= 1e-6 * (1 + fabs(b->score)));
            }
        }
    }
    kith_hits copies[] = {found, wanted};
    kith_hits_release(&copies[0]);
    kith_hits_release(&copies[1]);
    free(query);
    return (double)n_same / (double)(n_queries * k);
}

static void check_metric(kith_metric metric) {
    kith_index *index = begin("coded.kith", 3000, metric, 1000);
    const kith_index_info info = made_info(index);
    assert_true(info.tier == KITH_TIER_SCAN || info.tier == KITH_TIER_LISTS);
    assert_in_range(info.bits, 1, 8);
    assert_true(info.recall >= 0.99);
    assert_true(info.bytes_per_row >= (double)(info.bits * MADE_DIM) / 8);
    const double recall = recall_of(index, 200, 10);
    /* Noise is the worst there is, and queries of their own are harder than rows of the index. */
    if (recall < 0.95) fail_msg("recall %.4f", recall);
    print_message("%s: %s, %d bits, %.1f bytes a row, recall %.4f measured, %.4f of other queries\n",
                  kith_metric_name(metric), kith_index_tier_name(info.tier), (int)info.bits,
                  info.bytes_per_row, info.recall, recall);
    kith_index_free(index);
}

static void test_cosine(void **state) { (void)state, check_metric(KITH_COSINE); }
static void test_inner(void **state) { (void)state, check_metric(KITH_INNER); }
static void test_sqeuclidean(void **state) { (void)state, check_metric(KITH_SQEUCLIDEAN); }

/* From exact to codes and back, through growth, removal and compaction. */
/* By the cosine the length of a row does not count, however short it is. */
static void test_cosine_of_any_length(void **state) {
    (void)state;
    enum { N = 3000, N_QUERIES = 50, K = 10 };
    static const double scale[] = {1e-13, 1e-20, 1e-35, 1e10, 1};
    kith_error err;
    kith_index *index[2];
    float *rows = malloc(sizeof(float) * N * MADE_DIM), query[N_QUERIES * MADE_DIM];
    const kith_array array = {KITH_F32, 2, {N, MADE_DIM}, rows};
    made_exact_numbers = 1000 * MADE_DIM;
    for (int scaled = 0; scaled < 2; scaled++) {
        for (int64_t i = 0; i < N * MADE_DIM; i += MADE_DIM) made_row(i / MADE_DIM, rows + i);
        for (int64_t i = 0; scaled && i < N * MADE_DIM; i++)
            rows[i] = (float)((double)rows[i] * scale[i / MADE_DIM % 5]);
        index[scaled] = made_create(made_path(scaled ? "scaled.kith" : "plain.kith"), KITH_COSINE);
        assert_ok(kith_index_add(index[scaled], &array, NULL, NULL, &err), &err);
        assert_ok(kith_index_commit(index[scaled], NULL, &err), &err);
    }
    for (int64_t i = 0; i < N_QUERIES; i++) made_row(100000 + i, query + i * MADE_DIM);
    KITH_OPTIONS(kith_search_options, options);
    options.k = K;
    for (int exact = 0; exact < 2; exact++) {
        int n_same = 0;
        options.exact = exact;
        kith_hits plain = search(index[0], query, N_QUERIES, &options),
                  scaled = search(index[1], query, N_QUERIES, &options);
        for (int i = 0; i < N_QUERIES * K; i++) {
            const kith_hit *a = &scaled.hits[i], *b = &plain.hits[i];
            n_same += fabs(a->score - b->score) < 1e-6; /* of two that are alike either may come first */
        }
        /* Those of a few bits rounded to float32 differ a little. */
        if (n_same < (exact ? N_QUERIES * K : N_QUERIES * K * 9 / 10))
            fail_msg("exact %d: %d of %d hits are those of the rows as they were", exact, n_same,
                     N_QUERIES * K);
        kith_hits_release(&plain);
        kith_hits_release(&scaled);
    }
    kith_index_free(index[0]);
    kith_index_free(index[1]);
    free(rows);
}

static void test_over_the_border_and_back(void **state) {
    (void)state;
    kith_error err;
    kith_index *index = begin("border.kith", 900, KITH_COSINE, 1000);
    assert_int_equal(made_info(index).tier, KITH_TIER_EXACT);
    assert_int_equal(made_info(index).bits, 0);
    made_add(index, 900, 600);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    assert_int_not_equal(made_info(index).tier, KITH_TIER_EXACT);
    for (int64_t i = 0; i < 5; i++) { /* codes of the coder there is, or a new one when there are many more */
        made_add(index, 1500 + i * 1000, 1000);
        assert_ok(kith_index_commit(index, NULL, &err), &err);
        assert_true(made_info(index).recall > 0.9);
    }
    int64_t *ids = malloc(6000 * sizeof *ids);
    for (int64_t i = 0; i < 6000; i++) ids[i] = i;
    assert_ok(kith_index_remove(index, ids, 5800, &err), &err);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    assert_int_equal(made_info(index).tier, KITH_TIER_EXACT);
    assert_int_equal(made_info(index).n_items, 700);
    assert_ok(kith_index_compact(index, NULL, &err), &err);
    char output[4096];
    assert_int_equal(testing_run(output, sizeof output, "ls %s | wc -l", folder), 0);
    assert_int_equal(atoi(output), 3); /* the manifest, a segment, the lock */
    int64_t bytes = 0;
    assert_ok(kith_index_check(index, NULL, &bytes, &err), &err);
    free(ids);
    kith_index_free(index);
}

/* Every item finds itself after much has come and gone, and what has gone is not found. */
static void test_live_rows_stay_reachable(void **state) {
    (void)state;
    kith_error err;
    kith_index *index = begin("churn.kith", 3000, KITH_COSINE, 500);
    ki_rng rng = ki_rng_at(9, KI_RNG_TEST, 0, 0);
    int64_t next = 3000;
    for (int round = 0; round < 8; round++) {
        int64_t *ids = NULL, n = 0;
        assert_ok(kith_index_ids(index, NULL, &ids, &n, &err), &err);
        for (int64_t i = 0; i < n; i++) {
            if (ki_rng_below(&rng, 4) == 0) assert_ok(kith_index_remove(index, &ids[i], 1, &err), &err);
        }
        kith_ids_free(ids);
        made_add(index, next, 700);
        next += 700;
        assert_ok(round == 5 ? kith_index_compact(index, NULL, &err) : kith_index_commit(index, NULL, &err),
                  &err);
    }
    int64_t *ids = NULL, n = 0, n_lost = 0;
    assert_ok(kith_index_ids(index, NULL, &ids, &n, &err), &err);
    float *rows = malloc((size_t)(n * MADE_DIM) * sizeof *rows);
    for (int64_t i = 0; i < n; i++) made_row(ids[i], rows + i * MADE_DIM);
    KITH_OPTIONS(kith_search_options, options);
    options.k = 2; /* some rows are there twice */
    kith_hits hits = search(index, rows, n, &options);
    assert_int_equal(hits.begin[n], 2 * n);
    for (int64_t i = 0; i < n; i++)
        n_lost += hits.hits[2 * i].id != ids[i] && hits.hits[2 * i + 1].id != ids[i];
    assert_int_equal(n_lost, 0);
    for (int64_t i = 0; i < 2 * n; i++) {
        kith_index_item item = {0};
        assert_ok(kith_index_item_get(index, hits.hits[i].id, &item, &err), &err);
        kith_index_item_release(&item);
    }
    kith_hits_release(&hits);
    free(rows);
    kith_ids_free(ids);
    kith_index_free(index);
}

/* k hits where k are left, pages, limits, and the query itself. */
static void test_options(void **state) {
    (void)state;
    kith_index *index = begin("options.kith", 5000, KITH_COSINE, 500);
    float query[MADE_DIM];
    made_row(1234, query);
    static const char *const filters[] = {"label = tern",
                                          "id in (1, 2, 3, 4999)",
                                          "year = 2018 and place = Texel and label = auk",
                                          "id < 0",
                                          "id >= 0",
                                          "id = 7"};
    for (size_t i = 0; i < N_ROWS(filters); i++) {
        KITH_OPTIONS(kith_search_options, options);
        options.where = filters[i];
        options.k = 15;
        kith_hits hits = search(index, query, 1, &options);
        assert_int_equal(hits.begin[1], hits.n_allowed < 15 ? hits.n_allowed : 15);
        options.exact = true;
        kith_hits exact = search(index, query, 1, &options);
        assert_int_equal(hits.n_allowed, exact.n_allowed);
        if (hits.begin[1] > 0) assert_int_equal(hits.hits[0].id, exact.hits[0].id);
        kith_hits_release(&hits);
        kith_hits_release(&exact);
    }
    KITH_OPTIONS(kith_search_options, options);
    const int64_t self = 1234;
    options.self = &self;
    kith_hits hits = search(index, query, 1, &options);
    for (int i = 0; i < 10; i++) assert_int_not_equal(hits.hits[i].id, 1234);
    kith_hits_release(&hits);
    /* everything within a limit: many hits are a search of their own */
    KITH_OPTIONS(kith_search_options, all);
    all.k = INT64_MAX;
    all.exact = true;
    kith_hits exact = search(index, query, 1, &all);
    all.exact = false;
    all.has_limit = true;
    all.limit = exact.hits[1500].score;
    hits = search(index, query, 1, &all);
    assert_in_range(hits.begin[1], 1480, 1501);
    for (int64_t i = 0; i < hits.begin[1]; i++) {
        assert_true(hits.hits[i].score >= all.limit - 1e-6);
        if (i > 0) assert_true(hits.hits[i].score <= hits.hits[i - 1].score);
    }
    kith_hits_release(&hits);
    all.limit = exact.hits[20].score;
    all.offset = 5;
    all.k = 500;
    hits = search(index, query, 1, &all);
    assert_in_range(hits.begin[1], 15, 16);
    assert_int_equal(hits.hits[0].id, exact.hits[5].id);
    kith_hits_release(&hits);
    kith_hits_release(&exact);
    /* more recall than was prepared for */
    KITH_OPTIONS(kith_search_options, sharp);
    sharp.recall = 0.999;
    hits = search(index, query, 1, &sharp);
    assert_true(hits.is_exact);
    kith_hits_release(&hits);
    sharp.recall = 0.5;
    hits = search(index, query, 1, &sharp);
    assert_false(hits.is_exact);
    kith_hits_release(&hits);
    kith_index_free(index);
}

/* The same bytes on disk for any number of threads, in the same place: an index notes where it lies. */
static void test_threads_do_not_matter(void **state) {
    (void)state;
    kith_error err;
    char first[4096], output[4096];
    snprintf(first, sizeof first, "%s", made_path("one.kith"));
    for (int64_t threads = 1; threads <= 3; threads += 2) {
        assert_ok(kith_threads_set(threads, &err), &err);
        kith_index *index = begin("some.kith", 3000, KITH_COSINE, 100);
        made_add(index, 3000, 1500);
        assert_ok(kith_index_commit(index, NULL, &err), &err);
        kith_index_free(index);
        if (threads == 1) assert_int_equal(rename(folder, first), 0);
    }
    assert_ok(kith_threads_set(0, &err), &err);
    if (testing_run(output, sizeof output, "diff -r '%s' '%s'", first, folder) != 0) fail_msg("%s", output);
}

/* Cut the files of vectors short, as nobody should do under a reader. */
static void cut_segments(void) {
    char text[4096];
    if (testing_run(text, sizeof text, "truncate -s 0 %s/*.segment", folder) != 0) fail_msg("%s", text);
}

/* Vectors that were read once are not read again, as far as there is room for them. */
static void test_vectors_are_kept(void **state) {
    (void)state;
    static const struct {
        int64_t most; /* -1: as it is */
        bool is_kept;
    } rows[] = {{-1, true}, {64 << 20, true}, {0, false}, {4096, false}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err;
        kith_memory_stats before, after;
        float query[2 * MADE_DIM];
        for (int64_t j = 0; j < 2; j++) made_row(100000 + j, query + j * MADE_DIM);
        kith_index_free(begin("kept.kith", 4000, KITH_COSINE, 100));
        kith_index *index = made_open(folder, KITH_INDEX_READ);
        if (rows[i].most >= 0) assert_ok(kith_index_keep(index, rows[i].most, &err), &err);
        kith_hits first = search(index, query + MADE_DIM, 1, NULL),
                  again = {0}; /* codes are in memory from now on */
        kith_hits_release(&first);
        kith_memory_stats_get(&before);
        first = search(index, query, 1, NULL);
        kith_memory_stats_get(&after);
        if (rows[i].most >= 0)
            assert_true(after.live_bytes - before.live_bytes <=
                        (size_t)rows[i].most + 4096); /* and the hits */
        cut_segments();
        const kith_array asked = {KITH_F32, 2, {1, MADE_DIM}, query};
        const kith_status status = kith_index_search(index, &asked, NULL, &again, &err);
        assert_int_equal(status, rows[i].is_kept ? KITH_OK : KITH_EIO);
        for (int64_t j = 0; status == KITH_OK && j < 10; j++) {
            assert_int_equal(first.hits[j].id, again.hits[j].id);
            assert_true(first.hits[j].score == again.hits[j].score);
        }
        kith_hits_release(&first);
        kith_hits_release(&again);
        kith_index_free(index);
    }
}

/* What progress was told, and when it stops the work. */
typedef struct watching {
    int64_t n_calls, n_done, n_all, stop_at; /* at so many rows; -1: never */
} watching;

static int watch(void *user, int64_t n_done, int64_t n_all) {
    watching *w = user;
    if (n_done < w->n_done) fail_msg("%lld rows after %lld", (long long)n_done, (long long)w->n_done);
    if (n_done > n_all) fail_msg("%lld of %lld rows", (long long)n_done, (long long)n_all);
    *w = (watching){w->n_calls + 1, n_done, n_all, w->stop_at};
    return w->stop_at >= 0 && n_done >= w->stop_at;
}

static void commit_watched(kith_index *index, bool compact, watching *w) {
    kith_error err;
    KITH_OPTIONS(kith_work_options, options);
    options.progress = watch;
    options.user = w;
    *w = (watching){.stop_at = -1};
    assert_ok((compact ? kith_index_compact : kith_index_commit)(index, &options, &err), &err);
    if (w->n_done != w->n_all)
        fail_msg("ended at %lld of %lld rows", (long long)w->n_done, (long long)w->n_all);
}

/* Rows that are copied and rows that get a code: all of them are told of, and the work can be stopped at either. */
static void test_progress(void **state) {
    (void)state;
    kith_error err;
    watching w;
    made_exact_numbers = 1000 * MADE_DIM;
    snprintf(folder, sizeof folder, "%s", made_path("progress.kith"));
    kith_index *index = made_create(folder, KITH_COSINE);
    made_add(index, 0, 2000); /* nothing to copy; a code for each, as often as there were too few bits */
    commit_watched(index, false, &w);
    assert_true(w.n_all >= 2000 && w.n_all % 2000 == 0);
    made_add(index, 2000, 500); /* a segment of its own, with codes of the coder that is there */
    commit_watched(index, false, &w);
    assert_int_equal(w.n_all, 500);
    int64_t ids[100];
    for (int i = 0; i < 100; i++) ids[i] = 20 * i;
    assert_ok(kith_index_remove(index, ids, 100, &err), &err);
    commit_watched(index, true, &w); /* everything is copied, and learned anew */
    assert_true(w.n_all >= 2 * 2400 && w.n_all % 2400 == 0);
    kith_index_free(index);

    const int64_t stops[] = {0, 1, 2401}; /* in copying, at once or at the first rows; in making codes */
    for (size_t i = 0; i < N_ROWS(stops); i++) {
        index = made_open(folder, KITH_INDEX_WRITE);
        const int64_t generation = made_info(index).generation;
        KITH_OPTIONS(kith_work_options, options);
        w = (watching){.stop_at = stops[i]};
        options.progress = watch;
        options.user = &w;
        assert_ok(kith_index_remove(index, &(int64_t){7}, 1, &err), &err);
        assert_int_equal(kith_index_compact(index, &options, &err), KITH_ECANCELED);
        kith_index_free(index);
        index = made_open(folder, KITH_INDEX_READ);
        assert_int_equal(made_info(index).generation, generation);
        assert_int_equal(made_info(index).n_items, 2400);
        kith_index_free(index);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cosine),
        cmocka_unit_test(test_inner),
        cmocka_unit_test(test_sqeuclidean),
        cmocka_unit_test(test_over_the_border_and_back),
        cmocka_unit_test(test_live_rows_stay_reachable),
        cmocka_unit_test(test_vectors_are_kept),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_cosine_of_any_length),
        cmocka_unit_test(test_progress),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
