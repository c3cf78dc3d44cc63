/* The worst queries and the hardest negatives against every pair, one by one. */
#include "kith/worst.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "support/testing.h"

enum { N = 120, N_CLASSES = 16, DIM = 6, N_NEAREST = 4 };

static double rows[N * DIM];
static int64_t labels[N];

static kith_array matrix_of(double *values, int64_t n, int64_t dim) {
    return (kith_array){.dtype = KITH_F64, .n_dims = 2, .dim = {n, dim}, .data = values};
}

static void make(double spread) {
    ki_rng rng = ki_rng_at(1, KI_RNG_AUGMENT, 0, 0);
    double centre[N_CLASSES * DIM];
    for (int i = 0; i < N_CLASSES * DIM; i++) centre[i] = ki_rng_double(&rng) - 0.5;
    for (int i = 0; i < N; i++) {
        labels[i] = i % N_CLASSES * 10 - 20; /* labels are any numbers */
        for (int d = 0; d < DIM; d++)
            rows[i * DIM + d] = centre[i % N_CLASSES * DIM + d] + spread * (ki_rng_double(&rng) - 0.5);
    }
}

/* Larger is nearer, for every metric. */
static double nearness(kith_metric metric, int64_t a, int64_t b) {
    double dot = 0, aa = 0, bb = 0, apart = 0;
    for (int d = 0; d < DIM; d++) {
        const double x = rows[a * DIM + d], y = rows[b * DIM + d];
        dot += x * y, aa += x * x, bb += y * y, apart += (x - y) * (x - y);
    }
    return metric == KITH_COSINE ? dot / sqrt(aa * bb) : metric == KITH_INNER ? dot : -apart;
}

static bool can_find(int64_t query, int64_t row, bool is_split) {
    return row != query && (!is_split || row % 3 != 0);
}

/* The nearest row that is (not) of the query's class; -1: none. */
static int64_t nearest_of(kith_metric metric, int64_t query, bool own, bool is_split) {
    int64_t best = -1;
    for (int64_t j = 0; j < N; j++) {
        if (!can_find(query, j, is_split) || (labels[j] == labels[query]) != own) continue;
        if (best < 0 || nearness(metric, query, j) > nearness(metric, query, best)) best = j;
    }
    return best;
}

static double average_precision(kith_metric metric, int64_t query, bool is_split, int64_t *ret_first) {
    double sum = 0;
    int64_t n_relevant = 0;
    *ret_first = N;
    for (int64_t i = 0; i < N; i++) {
        int64_t n_before = 0, n_right = 0;
        if (!can_find(query, i, is_split) || labels[i] != labels[query]) continue;
        for (int64_t j = 0; j < N; j++) {
            if (!can_find(query, j, is_split) ||
                !(j == i || nearness(metric, query, j) > nearness(metric, query, i)))
                continue;
            n_before++;
            n_right += labels[j] == labels[query];
        }
        sum += (double)n_right / (double)n_before;
        n_relevant++;
        if (n_before < *ret_first) *ret_first = n_before;
    }
    return sum / (double)n_relevant;
}

static void check_queries(const kith_worst *w, kith_metric metric, bool is_split) {
    for (int64_t i = 0; i < w->n; i++) {
        const kith_worst_query *q = &w->queries[i];
        int64_t first = 0;
        const double wanted = average_precision(metric, q->row, is_split, &first);
        if (!(fabs(q->average_precision - wanted) < 1e-12))
            fail_msg("row %d: AP %g, wanted %g", (int)q->row, q->average_precision, wanted);
        assert_int_equal(q->first_hit, first);
        assert_int_equal(q->label, labels[q->row]);
        if (i > 0) assert_true(q[-1].average_precision <= q->average_precision);
        double before = INFINITY;
        for (int64_t j = 0; j < w->n_nearest; j++) {
            const kith_worst_hit *hit = &w->nearest[i * w->n_nearest + j];
            assert_int_equal(hit->label, labels[hit->row]);
            const double near = nearness(metric, q->row, hit->row);
            assert_true(fabs(near - (metric == KITH_SQEUCLIDEAN ? -hit->score : hit->score)) < 1e-12);
            assert_true(near <= before && can_find(q->row, hit->row, is_split));
            before = near;
        }
    }
}

static int64_t check_negatives(const kith_worst *w, kith_metric metric, bool is_split) {
    int64_t n_wrong = 0;
    for (int64_t i = 0; i < w->n_negatives; i++) {
        const kith_hard_negative *n = &w->negatives[i];
        assert_int_equal(n->negative.row, nearest_of(metric, n->row, false, is_split));
        assert_int_equal(n->positive.row, nearest_of(metric, n->row, true, is_split));
        const double margin =
            nearness(metric, n->row, n->negative.row) - nearness(metric, n->row, n->positive.row);
        if (!(fabs(n->margin - margin) < 1e-12 && margin >= 0))
            fail_msg("row %d: margin %g, wanted %g", (int)n->row, n->margin, margin);
        if (i > 0) assert_true(n[-1].margin >= n->margin);
        for (int64_t j = 0; j < i; j++)
            if (w->negatives[j].row == n->negative.row && w->negatives[j].negative.row == n->row)
                fail_msg("rows %d and %d are there twice", (int)n->row, (int)n->negative.row);
    }
    for (int64_t i = 0; i < N; i++) {
        if (is_split && i % 3 != 0) continue;
        const int64_t other = nearest_of(metric, i, false, is_split),
                      own = nearest_of(metric, i, true, is_split);
        n_wrong += own >= 0 && nearness(metric, i, other) > nearness(metric, i, own);
    }
    return n_wrong;
}

static void test_against_all_pairs(void **state) {
    (void)state;
    kith_error err = {0};
    int64_t query[N], gallery[N], n_query = 0, n_gallery = 0;
    make(1.2);
    for (int i = 0; i < N; i++) *(i % 3 == 0 ? &query[n_query++] : &gallery[n_gallery++]) = i;
    const kith_array embedding = matrix_of(rows, N, DIM);
    for (int m = 0; m < 3; m++) {
        for (int is_split = 0; is_split < 2; is_split++) {
            kith_worst w = {0};
            KITH_OPTIONS(kith_worst_options, options);
            const kith_retrieval_input in = {.embedding = &embedding,
                                             .labels = labels,
                                             .n_labels = N,
                                             .query = is_split ? query : NULL,
                                             .n_query = is_split ? n_query : 0,
                                             .gallery = is_split ? gallery : NULL,
                                             .n_gallery = is_split ? n_gallery : 0};
            options.metric = (kith_metric)m;
            options.most = 0;
            options.n_nearest = N_NEAREST;
            assert_ok(kith_worst_find(&in, &options, &w, &err), &err);
            assert_int_equal(w.n, is_split ? n_query : N);
            assert_int_equal(w.n_judged, w.n);
            check_queries(&w, (kith_metric)m, is_split);
            const int64_t n_wrong = check_negatives(&w, (kith_metric)m, is_split);
            assert_true(n_wrong > 10);
            assert_int_equal(w.n_wrong, n_wrong);
            assert_true(w.n_negatives <= n_wrong && w.n_negatives >= (n_wrong + 1) / 2);
            if (!is_split) assert_true(w.n_negatives < n_wrong); /* some are each other's */
            kith_worst_release(&w);
        }
    }
}

/* `most` cuts both lists; a gallery of few rows ends the lists; scores that are there already give the same. */
static void test_how_many(void **state) {
    (void)state;
    kith_error err = {0};
    kith_worst all = {0}, some = {0};
    kith_judgement judged = {0};
    KITH_OPTIONS(kith_worst_options, options);
    KITH_OPTIONS(kith_judge_options, judge);
    make(1.2);
    const kith_array embedding = matrix_of(rows, N, DIM);
    const kith_retrieval_input in = {.embedding = &embedding, .labels = labels, .n_labels = N};
    options.most = 0;
    assert_ok(kith_worst_find(&in, &options, &all, &err), &err);
    judge.has_clustering = judge.has_intervals = false;
    assert_ok(kith_judge_run(&in, &judge, &judged, &err), &err);
    options.most = 7;
    options.scores = &judged.retrieval;
    assert_ok(kith_worst_find(&in, &options, &some, &err), &err);
    assert_int_equal(some.n, 7);
    assert_int_equal(some.n_negatives, 7);
    assert_int_equal(some.n_wrong, all.n_wrong);
    assert_memory_equal(some.queries, all.queries, 7 * sizeof *all.queries);
    assert_memory_equal(some.negatives, all.negatives, 7 * sizeof *all.negatives);
    kith_worst_release(&some);
    kith_worst_release(&all);
    int64_t few[] = {0, N_CLASSES, 1}, one = 2 * N_CLASSES;
    const kith_retrieval_input small = {.embedding = &embedding,
                                        .labels = labels,
                                        .n_labels = N,
                                        .query = &one,
                                        .n_query = 1,
                                        .gallery = few,
                                        .n_gallery = 3};
    options.scores = NULL;
    assert_ok(kith_worst_find(&small, &options, &some, &err), &err);
    assert_int_equal(some.n, 1);
    assert_true(some.nearest[2].row >= 0);
    assert_int_equal(some.nearest[3].row, -1);
    kith_worst_release(&some);
    options.scores = &judged.retrieval;
    assert_int_equal(kith_worst_find(&small, &options, &some, &err), KITH_EINVAL);
    assert_string_equal(err.message, "the scores are of other queries or another gallery");
    kith_judgement_release(&judged);
}

static void test_refusals(void **state) {
    (void)state;
    kith_error err = {0};
    kith_worst w = {0};
    KITH_OPTIONS(kith_worst_options, options);
    make(1);
    const kith_array embedding = matrix_of(rows, N, DIM);
    kith_retrieval_input in = {.embedding = &embedding, .labels = labels, .n_labels = N};
    options.n_nearest = 101;
    assert_int_equal(kith_worst_find(&in, &options, &w, &err), KITH_EINVAL);
    assert_string_equal(err.message, "most is 50 and n_nearest 101; wanted 0 or more, and 1 to 100");
    in.n_labels = N - 1;
    assert_int_equal(kith_worst_find(&in, NULL, &w, &err), KITH_ESHAPE);
    in.n_labels = N;
    for (int64_t n = 0;; n++) {
        ki_alloc_fail_after(n);
        const kith_status status = kith_worst_find(&in, NULL, &w, &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (!has_failed) break;
        assert_int_equal(status, KITH_ENOMEM);
    }
    kith_worst_release(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_all_pairs),
                                       cmocka_unit_test(test_how_many), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
