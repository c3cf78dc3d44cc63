/* Re-ranking against dense, straightforward versions of the same definitions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "kith/eval.h"
#include "support/testing.h"

enum { N = 110, DIM = 6, CLASSES = 10, QUERIES = 7 };

static float x[N * DIM], q[QUERIES * DIM];
static int64_t label[N];
static const kith_array rows = {KITH_F32, 2, {N, DIM}, x}, queries = {KITH_F32, 2, {QUERIES, DIM}, q};

static void fill(float *to, int n, uint32_t salt) {
    for (int i = 0; i < n; i++) {
        ki_rng rng = ki_rng_at(7, KI_RNG_TEST, salt, (uint32_t)i);
        for (int k = 0; k < DIM; k++) {
            ki_rng centre = ki_rng_at(8, KI_RNG_TEST, (uint32_t)(i % CLASSES), (uint32_t)k);
            to[i * DIM + k] = (float)(ki_rng_normal(&centre) + 0.8 * ki_rng_normal(&rng));
        }
    }
}

static int set_up(void **state) {
    (void)state;
    fill(x, N, 0);
    fill(q, QUERIES, 1);
    for (int i = 0; i < N; i++) label[i] = i % CLASSES;
    return 0;
}

static double cosine(const float *a, const float *b) {
    double ab = 0, aa = 0, bb = 0;
    for (int k = 0; k < DIM; k++) {
        ab += (double)a[k] * (double)b[k];
        aa += (double)a[k] * (double)a[k];
        bb += (double)b[k] * (double)b[k];
    }
    return ab / sqrt(aa * bb);
}

/* ---- the dense version ---- */

static double cos_all[N][N], own[N][N], mean[N][N];
static int order[N][N]; /* itself, then the others, nearest first */

/* Is j among the k nearest of i, or i itself? */
static bool in_r(int i, int j, int k) {
    for (int p = 0; p <= k; p++) {
        if (order[i][p] == j) return true;
    }
    return false;
}

static bool in_n(int i, int j, int k) { return in_r(i, j, k) && in_r(j, i, k); }

static void order_rows(void) {
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            cos_all[i][j] = cosine(x + i * DIM, x + j * DIM);
            int p = j;
            for (; p > 0 && (i == j || (order[i][p - 1] != i && cos_all[i][j] > cos_all[i][order[i][p - 1]]));
                 p--)
                order[i][p] = order[i][p - 1];
            order[i][p] = j;
        }
    }
}

/* A set grows by the smaller sets that lie in it for more than two thirds. */
static void grow(const bool *core, int k1, bool *set) {
    const int half = (int)rint(k1 / 2.0);
    memcpy(set, core, N * sizeof *set);
    for (int c = 0; c < N; c++) {
        if (!core[c]) continue;
        int n = 0, n_common = 0;
        for (int j = 0; j < N; j++) n += in_n(c, j, half), n_common += in_n(c, j, half) && core[j];
        for (int j = 0; j < N; j++) set[j] |= n_common > 2.0 / 3 * n && in_n(c, j, half);
    }
}

static void make_sets(const kith_reciprocal_options *o) {
    order_rows();
    for (int i = 0; i < N; i++) {
        bool core[N], set[N];
        double sum = 0;
        for (int j = 0; j < N; j++) core[j] = in_n(i, j, (int)o->k1);
        grow(core, (int)o->k1, set);
        for (int j = 0; j < N; j++) sum += own[i][j] = set[j] ? exp(cos_all[i][j] - 1) : 0;
        for (int j = 0; j < N; j++) own[i][j] /= sum;
    }
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            mean[i][j] = 0;
            for (int p = 0; p < o->k2; p++) mean[i][j] += own[order[i][p]][j] / (double)o->k2;
        }
    }
}

static double jaccard(const double *a, const double *b) {
    double least = 0, most = 0;
    for (int j = 0; j < N; j++) {
        least += fmin(a[j], b[j]);
        most += fmax(a[j], b[j]);
    }
    return least / most;
}

static double mixed(const kith_reciprocal_options *o, double cos, double j) {
    return o->lambda * cos + (1 - o->lambda) * j;
}

/* ---- the library's ---- */

static kith_neighbor *lists_of(const kith_array *query, int64_t k) {
    kith_gallery *gallery = NULL;
    kith_error err;
    KITH_OPTIONS(kith_knn_options, options);
    options.exact = true;
    kith_neighbor *lists = malloc((size_t)((query ? query->dim[0] : N) * k) * sizeof *lists);
    assert_ok(kith_gallery_new(&rows, &options, &gallery, &err), &err);
    if (query)
        assert_ok(kith_gallery_search(gallery, query, NULL, k, lists, &err), &err);
    else
        assert_ok(kith_gallery_self(gallery, k, lists, &err), &err);
    kith_gallery_free(gallery);
    return lists;
}

static void check_list(int64_t i, const kith_neighbor *list, int64_t n, const double *wanted) {
    for (int64_t p = 0; p < n; p++) {
        if (!(fabs(list[p].score - wanted[list[p].index]) < 1e-6))
            fail_msg("query %lld, row %lld: %.9g, wanted %.9g", (long long)i, (long long)list[p].index,
                     list[p].score, wanted[list[p].index]);
        if (p > 0) assert_true(list[p - 1].score >= list[p].score);
    }
}

static void check_square(const kith_reciprocal_options *o) {
    kith_neighbor *lists = lists_of(NULL, N - 1);
    kith_reciprocal *r = NULL;
    kith_error err;
    int64_t self[N];
    make_sets(o);
    for (int i = 0; i < N; i++) self[i] = i;
    assert_ok(kith_reciprocal_new(&rows, lists, N - 1, o, &r, &err), &err);
    assert_ok(kith_reciprocal_rerank(r, &rows, self, lists, N - 1, &err), &err);
    for (int i = 0; i < N; i++) {
        double wanted[N];
        for (int j = 0; j < N; j++) wanted[j] = mixed(o, cos_all[i][j], jaccard(mean[i], mean[j]));
        check_list(i, lists + i * (N - 1), N - 1, wanted);
    }
    kith_reciprocal_free(r);
    free(lists);
}

static void test_reciprocal(void **state) {
    (void)state;
    KITH_OPTIONS(kith_reciprocal_options, o);
    check_square(&o);
    o.k1 = 7, o.k2 = 1, o.lambda = 0;
    check_square(&o);
    o.k1 = 3, o.k2 = 9, o.lambda = 0.75;
    check_square(&o);
    o.k1 = N - 1, o.k2 = 2;
    check_square(&o);
}

/* Against whole matrices in numpy (test/golden/judge/make_rerank.py). */
static void test_equals_the_reference(void **state) {
    (void)state;
    kith_array embedding = {0}, wanted = {0};
    kith_gallery *gallery = NULL;
    kith_reciprocal *r = NULL;
    kith_error err;
    KITH_OPTIONS(kith_knn_options, options);
    options.exact = true;
    assert_ok(kith_npy_read(KITH_SOURCE_DIR "/test/golden/judge/lone_embedding.npy", &embedding, &err), &err);
    assert_ok(kith_npy_read(KITH_SOURCE_DIR "/test/golden/judge/lone_rerank.npy", &wanted, &err), &err);
    const int64_t n = embedding.dim[0], k = n - 1;
    kith_neighbor *lists = malloc((size_t)(n * k) * sizeof *lists);
    int64_t *self = malloc((size_t)n * sizeof *self);
    for (int64_t i = 0; i < n; i++) self[i] = i;
    assert_ok(kith_gallery_new(&embedding, &options, &gallery, &err), &err);
    assert_ok(kith_gallery_self(gallery, k, lists, &err), &err);
    assert_ok(kith_reciprocal_new(&embedding, lists, k, NULL, &r, &err), &err);
    assert_ok(kith_reciprocal_rerank(r, &embedding, self, lists, k, &err), &err);
    for (int64_t i = 0; i < wanted.dim[0]; i++)
        check_list(i, lists + i * k, k, (double *)wanted.data + i * n);
    kith_reciprocal_free(r);
    kith_gallery_free(gallery);
    kith_array_release(&embedding);
    kith_array_release(&wanted);
    free(lists);
    free(self);
}

static void test_queries_from_outside(void **state) {
    (void)state;
    enum { K = 40 };
    KITH_OPTIONS(kith_reciprocal_options, o);
    o.k1 = 12, o.k2 = 4;
    kith_neighbor *own_lists = lists_of(NULL, 12), *lists = lists_of(&queries, K);
    kith_reciprocal *r = NULL;
    kith_error err;
    make_sets(&o);
    assert_ok(kith_reciprocal_new(&rows, own_lists, 12, &o, &r, &err), &err);
    double wanted[QUERIES][N];
    for (int i = 0; i < QUERIES; i++) {
        double cos[N], v[N], sum = 0;
        bool core[N] = {0}, set[N];
        for (int j = 0; j < N; j++) cos[j] = cosine(q + i * DIM, x + j * DIM);
        for (int p = 0; p < o.k1; p++) { /* near the query, and nearer to it than to the last of its own */
            const int j = (int)lists[i * K + p].index;
            core[j] = cos[j] >= cos_all[j][order[j][o.k1]];
        }
        grow(core, (int)o.k1, set);
        for (int j = 0; j < N; j++) sum += v[j] = set[j] ? exp(cos[j] - 1) : 0;
        for (int j = 0; j < N; j++) {
            v[j] = sum > 0 ? v[j] / sum : 0;
            for (int p = 0; p < o.k2 - 1; p++) v[j] += own[lists[i * K + p].index][j];
        }
        for (int j = 0; j < N; j++) v[j] /= (double)(o.k2 - (sum == 0));
        for (int j = 0; j < N; j++) wanted[i][j] = mixed(&o, cos[j], jaccard(v, mean[j]));
    }
    assert_ok(kith_reciprocal_rerank(r, &queries, NULL, lists, K, &err), &err);
    for (int i = 0; i < QUERIES; i++) check_list(i, lists + i * K, K, wanted[i]);
    kith_reciprocal_free(r);
    free(own_lists);
    free(lists);
}

static void test_expansion(void **state) {
    (void)state;
    enum { K = 5 };
    kith_neighbor *lists = lists_of(&queries, K);
    kith_array moved = {0};
    kith_error err;
    KITH_OPTIONS(kith_expansion_options, o);
    o.k = 3;
    lists[2 * K + 1].index = -1; /* a list with a hole is as one without that entry */
    for (int a = 0; a < 2; a++) {
        o.alpha = a ? 0 : 3;
        assert_ok(kith_query_expand(&queries, &rows, lists, K, &o, &moved, &err), &err);
        for (int i = 0; i < QUERIES; i++) {
            double sum[DIM] = {0}, norm = 0;
            const double length = sqrt(cosine(q + i * DIM, q + i * DIM));
            assert_true(fabs(length - 1) < 1e-12);
            for (int p = -1; p < o.k; p++) {
                const int64_t j = p < 0 ? 0 : lists[i * K + p].index;
                if (j < 0) continue;
                const float *from = p < 0 ? q + i * DIM : x + j * DIM;
                const double cos = p < 0 ? 1 : cosine(q + i * DIM, from);
                double squares = 0;
                for (int k = 0; k < DIM; k++) squares += (double)from[k] * (double)from[k];
                for (int k = 0; k < DIM; k++)
                    sum[k] += (o.alpha > 0 ? pow(fmax(cos, 0), 3) : 1) * (double)from[k] / sqrt(squares);
            }
            for (int k = 0; k < DIM; k++) norm += sum[k] * sum[k];
            for (int k = 0; k < DIM; k++) {
                const double found = (double)((float *)moved.data)[i * DIM + k];
                if (!(fabs(found - sum[k] / sqrt(norm)) < 1e-6))
                    fail_msg("query %d: %.9g, wanted %.9g", i, found, sum[k] / sqrt(norm));
            }
        }
        kith_array_release(&moved);
    }
    free(lists);
}

/* ---- the scores ---- */

static kith_judgement judge(kith_rerank_method method, int64_t n_candidates) {
    const kith_retrieval_input in = {.embedding = &rows, .labels = label, .n_labels = N};
    kith_judgement found;
    kith_error err;
    KITH_OPTIONS(kith_judge_options, options);
    KITH_OPTIONS(kith_rerank_options, rerank);
    rerank.method = method;
    rerank.n_candidates = n_candidates;
    options.has_clustering = options.has_intervals = false;
    options.has_rerank = true;
    options.rerank = &rerank;
    assert_ok(kith_judge_run(&in, &options, &found, &err), &err);
    assert_true(found.has_rerank);
    assert_memory_equal(&found.rerank.before, &found.retrieval.mean, sizeof found.rerank.before);
    return found;
}

/* R@1 and MAP@R of lists that hold everything. */
static void score(const kith_neighbor *lists, double *ret_recall, double *ret_map) {
    *ret_recall = *ret_map = 0;
    for (int i = 0; i < N; i++) {
        const int n_relevant = N / CLASSES - 1;
        int n_found = 0;
        for (int p = 0; p < n_relevant; p++) {
            if (label[lists[i * (N - 1) + p].index] != label[i]) continue;
            *ret_recall += p == 0;
            *ret_map += (double)++n_found / (p + 1) / n_relevant / N;
        }
    }
    *ret_recall /= N;
}

static void check_scores(const char *name, const kith_scores *found, const kith_neighbor *lists) {
    double recall, map;
    score(lists, &recall, &map);
    if (!(fabs(found->recall[0] - recall) < 1e-9 && fabs(found->map_at_r - map) < 1e-9))
        fail_msg("%s: %g and %g, wanted %g and %g", name, found->recall[0], found->map_at_r, recall, map);
}

/* The first `n` of every list in their new order, the others as they were. */
static kith_neighbor *reranked(int64_t n) {
    kith_neighbor *lists = lists_of(NULL, N - 1), *heads = malloc((size_t)(N * n) * sizeof *heads);
    kith_reciprocal *r = NULL;
    kith_error err;
    int64_t self[N];
    for (int i = 0; i < N; i++) {
        self[i] = i;
        memcpy(heads + i * n, lists + i * (N - 1), (size_t)n * sizeof *heads);
    }
    assert_ok(kith_reciprocal_new(&rows, lists, N - 1, NULL, &r, &err), &err);
    assert_ok(kith_reciprocal_rerank(r, &rows, self, heads, n, &err), &err);
    for (int i = 0; i < N; i++) memcpy(lists + i * (N - 1), heads + i * n, (size_t)n * sizeof *heads);
    kith_reciprocal_free(r);
    free(heads);
    return lists;
}

static void test_scores_of_reciprocal(void **state) {
    (void)state;
    static const int64_t sizes[] = {N - 1, 25};
    for (size_t s = 0; s < N_ROWS(sizes); s++) {
        kith_judgement found = judge(KITH_RERANK_RECIPROCAL, sizes[s]);
        kith_neighbor *lists = reranked(sizes[s]);
        check_scores("reciprocal", &found.rerank.after, lists);
        assert_true(found.rerank.after.map_at_r != found.rerank.before.map_at_r);
        assert_int_equal(found.rerank.n_candidates, sizes[s]);
        free(lists);
        lists = lists_of(NULL, N - 1);
        check_scores("as it was", &found.rerank.before, lists);
        free(lists);
        kith_judgement_release(&found);
    }
}

static void test_scores_of_expansion(void **state) {
    (void)state;
    kith_judgement found = judge(KITH_RERANK_EXPANSION, 1);
    kith_neighbor *near = lists_of(NULL, 5), *lists = malloc(sizeof *lists * N * (N - 1));
    kith_array moved = {0};
    kith_gallery *gallery = NULL;
    kith_error err;
    int64_t self[N];
    KITH_OPTIONS(kith_knn_options, options);
    options.exact = true;
    for (int i = 0; i < N; i++) self[i] = i;
    assert_ok(kith_query_expand(&rows, &rows, near, 5, NULL, &moved, &err), &err);
    assert_ok(kith_gallery_new(&rows, &options, &gallery, &err), &err);
    assert_ok(kith_gallery_search(gallery, &moved, self, N - 1, lists, &err), &err);
    check_scores("expansion", &found.rerank.after, lists);
    assert_true(found.rerank.after.map_at_r != found.rerank.before.map_at_r);
    kith_gallery_free(gallery);
    kith_array_release(&moved);
    free(near);
    free(lists);
    kith_judgement_release(&found);
}

/* Some rows query, some are the gallery, one is both. */
static void test_roles(void **state) {
    (void)state;
    int64_t query[21], other[N - 20];
    for (int i = 0; i < 21; i++) query[i] = i;
    for (int i = 0; i < N - 20; i++) other[i] = 20 + i;
    const kith_retrieval_input in = {.embedding = &rows,
                                     .labels = label,
                                     .n_labels = N,
                                     .query = query,
                                     .n_query = 21,
                                     .gallery = other,
                                     .n_gallery = N - 20};
    kith_error err;
    for (int m = KITH_RERANK_EXPANSION; m <= KITH_RERANK_RECIPROCAL; m++) {
        kith_judgement found;
        KITH_OPTIONS(kith_judge_options, options);
        KITH_OPTIONS(kith_rerank_options, rerank);
        rerank.method = (kith_rerank_method)m;
        options.has_clustering = false;
        options.has_rerank = true;
        options.rerank = &rerank;
        assert_ok(kith_judge_run(&in, &options, &found, &err), &err);
        assert_true(found.rerank.after.map_at_r > 0 && found.rerank.after.map_at_r <= 1);
        assert_true(found.rerank.after.recall[3] >= found.rerank.after.recall[0]);
        kith_judgement_release(&found);
    }
}

static void test_any_number_of_threads(void **state) {
    (void)state;
    kith_neighbor *first = NULL;
    for (int threads = 1; threads <= 5; threads += 2) {
        ki_threads_set(threads);
        kith_neighbor *lists = reranked(60);
        if (first) assert_memory_equal(first, lists, sizeof *lists * N * (N - 1));
        if (first)
            free(lists);
        else
            first = lists;
    }
    ki_threads_set(0);
    free(first);
}

/* Fewer rows than k1: lists end early. */
static void test_few_rows(void **state) {
    (void)state;
    enum { FEW = 6, K = 8 };
    const kith_array few = {KITH_F32, 2, {FEW, DIM}, x};
    kith_gallery *gallery = NULL;
    kith_neighbor lists[FEW * K];
    kith_reciprocal *r = NULL;
    kith_error err;
    int64_t self[FEW] = {0, 1, 2, 3, 4, 5};
    assert_ok(kith_gallery_new(&few, NULL, &gallery, &err), &err);
    assert_ok(kith_gallery_self(gallery, K, lists, &err), &err);
    assert_ok(kith_reciprocal_new(&few, lists, K, NULL, &r, &err), &err);
    assert_ok(kith_reciprocal_rerank(r, &few, self, lists, K, &err), &err);
    for (int i = 0; i < FEW; i++) {
        for (int p = 0; p < K; p++) assert_int_equal(lists[i * K + p].index < 0, p >= FEW - 1);
    }
    kith_reciprocal_free(r);
    kith_gallery_free(gallery);
}

static void test_refusals(void **state) {
    (void)state;
    kith_neighbor *lists = lists_of(NULL, 10);
    kith_reciprocal *r = NULL;
    kith_array moved = {0};
    kith_error err;
    KITH_OPTIONS(kith_reciprocal_options, o);
    KITH_OPTIONS(kith_expansion_options, e);
    assert_int_equal(kith_reciprocal_new(&rows, lists, 10, &o, &r, &err), KITH_EINVAL);
    assert_string_equal(err.message, "lists of 10 neighbours; k1 and k2 want at least 20");
    o.k1 = 10, o.lambda = 1.5;
    assert_int_equal(kith_reciprocal_new(&rows, lists, 10, &o, &r, &err), KITH_EINVAL);
    o.lambda = 0.3;
    assert_ok(kith_reciprocal_new(&rows, lists, 10, &o, &r, &err), &err);
    assert_int_equal(kith_reciprocal_rerank(r, &rows, (int64_t[N]){N}, lists, 10, &err), KITH_EINVAL);
    lists[13].index = N;
    assert_int_equal(kith_reciprocal_rerank(r, &rows, NULL, lists, 10, &err), KITH_EINVAL);
    assert_string_equal(err.message, "entry 3 of list 1 is row 110; the gallery has 110");
    assert_int_equal(kith_query_expand(&rows, &rows, lists, 10, NULL, &moved, &err), KITH_EINVAL);
    e.k = 11;
    assert_int_equal(kith_query_expand(&rows, &rows, lists, 10, &e, &moved, &err), KITH_EINVAL);
    kith_reciprocal_free(r);
    free(lists);
}

/* Scores of re-ranking want a way of it; the default is k-reciprocal. */
static void test_no_way_is_refused(void **state) {
    (void)state;
    const kith_retrieval_input in = {.embedding = &rows, .labels = label, .n_labels = N};
    kith_judgement found;
    kith_error err;
    KITH_OPTIONS(kith_judge_options, options);
    KITH_OPTIONS(kith_rerank_options, rerank);
    assert_int_equal(rerank.method, KITH_RERANK_RECIPROCAL);
    rerank.method = KITH_RERANK_NONE;
    options.has_clustering = options.has_intervals = false;
    options.has_rerank = true;
    options.rerank = &rerank;
    assert_int_equal(kith_judge_run(&in, &options, &found, &err), KITH_EINVAL);
    assert_string_equal(err.message, "the way of re-ranking is 0; wanted expansion or k-reciprocal");
}

static void test_out_of_memory(void **state) {
    (void)state;
    const kith_retrieval_input in = {.embedding = &rows, .labels = label, .n_labels = N};
    for (int m = KITH_RERANK_EXPANSION; m <= KITH_RERANK_RECIPROCAL; m++) {
        kith_status status = KITH_ENOMEM;
        kith_judgement found;
        kith_error err;
        KITH_OPTIONS(kith_judge_options, options);
        KITH_OPTIONS(kith_rerank_options, rerank);
        rerank.method = (kith_rerank_method)m;
        options.has_clustering = options.has_intervals = false;
        options.has_rerank = true;
        options.rerank = &rerank;
        for (int n = 0; status == KITH_ENOMEM; n++) {
            ki_alloc_fail_after(n);
            status = kith_judge_run(&in, &options, &found, &err);
            ki_alloc_fail_after(-1);
        }
        assert_ok(status, &err);
        kith_judgement_release(&found);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reciprocal),
        cmocka_unit_test(test_equals_the_reference),
        cmocka_unit_test(test_queries_from_outside),
        cmocka_unit_test(test_expansion),
        cmocka_unit_test(test_scores_of_reciprocal),
        cmocka_unit_test(test_scores_of_expansion),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_any_number_of_threads),
        cmocka_unit_test(test_few_rows),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_way_is_refused),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
