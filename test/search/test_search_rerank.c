/* Re-ranked searches of an index against the same made from lists of all rows by hand. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kith/rerank.h"
#include "support/testing.h"

enum { N = 60, DIM = 8, QUERIES = 7, CLASSES = 6 };
static float rows[N * DIM], asked[QUERIES * DIM];
static const kith_array gallery_rows = {KITH_F32, 2, {N, DIM}, rows},
                        query = {KITH_F32, 2, {QUERIES, DIM}, asked};

/* Six loose clouds; the same numbers every time. */
static void fill(float *to, int n, unsigned seed) {
    for (int i = 0; i < n; i++) {
        for (int d = 0; d < DIM; d++) {
            seed = seed * 1664525U + 1013904223U;
            const float noise = (float)(seed >> 8) / (float)(1U << 24) - 0.5F;
            to[i * DIM + d] = (d == i % CLASSES ? 1.0F : 0.0F) + 0.9F * noise;
        }
    }
}

static kith_index *make_index(kith_metric metric) {
    kith_error err = {0};
    kith_index *index = NULL;
    char path[1024];
    static int n_made;
    snprintf(path, sizeof path, "%s/%d.kith", testing_folder(), n_made++);
    KITH_OPTIONS(kith_index_options, options);
    options.dim = DIM;
    options.metric = metric;
    fill(rows, N, 1);
    fill(asked, QUERIES, 2);
    assert_ok(kith_index_create(path, &options, &index, &err), &err);
    assert_ok(kith_index_add(index, &gallery_rows, NULL, NULL, &err), &err);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    return index;
}

static double cosine(const float *a, const float *b) {
    double ab = 0, aa = 0, bb = 0;
    for (int d = 0; d < DIM; d++) {
        ab += (double)a[d] * (double)b[d];
        aa += (double)a[d] * (double)a[d];
        bb += (double)b[d] * (double)b[d];
    }
    return ab / sqrt(aa * bb);
}

/* The first k of each list, with cosines as scores. */
static void assert_lists(const kith_hits *hits, const kith_neighbor *wanted, int64_t k, int64_t offset) {
    int n_moved = 0;
    for (int64_t q = 0; q < QUERIES; q++) {
        assert_int_equal(hits->begin[q + 1] - hits->begin[q], k);
        double before = 2;
        for (int64_t i = 0; i < k; i++) {
            const kith_hit *hit = &hits->hits[hits->begin[q] + i];
            if (hit->id != wanted[q * N + offset + i].index)
                fail_msg("query %d, place %d: id %d, wanted %d", (int)q, (int)i, (int)hit->id,
                         (int)wanted[q * N + offset + i].index);
            const double score = cosine(asked + q * DIM, rows + hit->id * DIM);
            if (!(fabs(hit->score - score) < 1e-6)) fail_msg("score %.9g, wanted %.9g", hit->score, score);
            n_moved += hit->score > before;
            before = hit->score;
        }
    }
    assert_true(n_moved > 0); /* another order than that of the scores */
}

static void test_expansion(void **state) {
    (void)state;
    kith_error err = {0};
    static kith_neighbor lists[QUERIES * N];
    kith_gallery *gallery = NULL;
    kith_array moved = {0};
    kith_hits hits = {0};
    kith_index *index = make_index(KITH_COSINE);
    assert_ok(kith_gallery_new(&gallery_rows, NULL, &gallery, &err), &err);
    assert_ok(kith_gallery_search(gallery, &query, NULL, N, lists, &err), &err);
    assert_ok(kith_query_expand(&query, &gallery_rows, lists, N, NULL, &moved, &err), &err);
    assert_ok(kith_gallery_search(gallery, &moved, NULL, N, lists, &err), &err);
    KITH_OPTIONS(kith_search_options, options);
    options.k = 20;
    options.offset = 3;
    assert_ok(kith_index_search_expanded(index, &query, &options, NULL, &hits, &err), &err);
    assert_lists(&hits, lists, 20, 3);
    kith_hits_release(&hits);
    kith_array_release(&moved);
    kith_gallery_free(gallery);
    kith_index_free(index);
}

static void test_reciprocal(void **state) {
    (void)state;
    kith_error err = {0};
    static kith_neighbor lists[QUERIES * N], self[N * 20];
    kith_gallery *gallery = NULL;
    kith_reciprocal *sets = NULL;
    kith_hits hits = {0};
    kith_index *index = make_index(KITH_COSINE);
    assert_ok(kith_gallery_new(&gallery_rows, NULL, &gallery, &err), &err);
    assert_ok(kith_gallery_search(gallery, &query, NULL, N, lists, &err), &err);
    assert_ok(kith_gallery_self(gallery, 20, self, &err), &err);
    assert_ok(kith_reciprocal_new(&gallery_rows, self, 20, NULL, &sets, &err), &err);
    assert_ok(kith_reciprocal_rerank(sets, &query, NULL, lists, N, &err), &err);
    KITH_OPTIONS(kith_search_options, options);
    assert_ok(kith_index_search_reciprocal(index, &query, &options, NULL, &hits, &err), &err);
    assert_lists(&hits, lists, 10, 0);
    kith_hits_release(&hits);
    /* A limit is one of the cosine. */
    options.has_limit = true;
    options.limit = 0.5;
    options.k = N;
    assert_ok(kith_index_search_reciprocal(index, &query, &options, NULL, &hits, &err), &err);
    int n_near = 0;
    for (int q = 0; q < QUERIES; q++) {
        for (int i = 0; i < N; i++) n_near += (float)cosine(asked + q * DIM, rows + i * DIM) >= 0.5F;
    }
    assert_int_equal(hits.begin[QUERIES], n_near);
    for (int64_t i = 0; i < hits.begin[QUERIES]; i++) assert_true(hits.hits[i].score >= 0.5);
    kith_hits_release(&hits);
    kith_reciprocal_free(sets);
    kith_gallery_free(gallery);
    kith_index_free(index);
}

/* Few items, none, and another metric. */
static void test_edges(void **state) {
    (void)state;
    kith_error err = {0};
    kith_hits hits = {0};
    kith_index *index = make_index(KITH_COSINE);
    static const char *const where[] = {"id < 2", "id < 4", "id < 0"};
    static const int64_t n_wanted[] = {2, 4, 0};
    for (size_t i = 0; i < N_ROWS(where); i++) {
        KITH_OPTIONS(kith_search_options, options);
        options.where = where[i];
        assert_ok(kith_index_search_expanded(index, &query, &options, NULL, &hits, &err), &err);
        assert_int_equal(hits.begin[1], n_wanted[i]);
        kith_hits_release(&hits);
        assert_ok(kith_index_search_reciprocal(index, &query, &options, NULL, &hits, &err), &err);
        assert_int_equal(hits.begin[1], n_wanted[i]);
        kith_hits_release(&hits);
    }
    kith_index_free(index);
    index = make_index(KITH_SQEUCLIDEAN);
    assert_int_equal(kith_index_search_expanded(index, &query, NULL, NULL, &hits, &err), KITH_EUNSUPPORTED);
    assert_int_equal(kith_index_search_reciprocal(index, &query, NULL, NULL, &hits, &err), KITH_EUNSUPPORTED);
    assert_string_equal(err.message, "the index compares by sqeuclidean; re-ranking wants cosine");
    kith_index_free(index);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_expansion), cmocka_unit_test(test_reciprocal),
                                       cmocka_unit_test(test_edges)};
    const int n_failed = cmocka_run_group_tests_name("search/rerank", tests, NULL, NULL);
    testing_clean_up();
    return n_failed;
}
