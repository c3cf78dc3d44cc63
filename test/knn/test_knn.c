/* The engine against a plain float64 search. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "kith/knn.h"
#include "knn/gallery.h"
#include "knn/kernel.h"
#include "knn/topk.h"
#include "support/testing.h"

static kith_array random_rows(int64_t n, int64_t dim, kith_dtype dtype, uint32_t stream) {
    kith_array a;
    kith_error err;
    assert_ok(kith_array_init(dtype, 2, (int64_t[]){n, dim}, &a, &err), &err);
    ki_rng rng = ki_rng_at(7, KI_RNG_TEST, stream, 0);
    for (int64_t i = 0; i < n * dim; i++) {
        const double x = ki_rng_normal(&rng);
        if (dtype == KITH_F64)
            ((double *)a.data)[i] = x;
        else
            ((float *)a.data)[i] = (float)x;
    }
    return a;
}

static double value(const kith_array *a, int64_t i) {
    return a->dtype == KITH_F64 ? ((const double *)a->data)[i] : (double)((const float *)a->data)[i];
}

typedef struct pair {
    double score;
    int32_t index;
} pair;

static int nearer(const void *a, const void *b) {
    const pair *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* All others, nearest first. */
static int64_t plain_search(const kith_array *q, int64_t i, const kith_array *g, int64_t self,
                            kith_metric metric, pair *ret) {
    const int64_t dim = q->dim[1];
    int64_t n = 0;
    for (int64_t j = 0; j < g->dim[0]; j++) {
        if (j == self) continue;
        double xy = 0, xx = 0, yy = 0, dd = 0;
        for (int64_t k = 0; k < dim; k++) {
            const double x = value(q, i * dim + k), y = value(g, j * dim + k);
            xy += x * y, xx += x * x, yy += y * y, dd += (x - y) * (x - y);
        }
        const double score = metric == KITH_INNER    ? xy
                             : metric == KITH_COSINE ? xy / (fmax(sqrt(xx), 1e-12) * fmax(sqrt(yy), 1e-12))
                                                     : -dd;
        ret[n++] = (pair){score, (int32_t)j};
    }
    qsort(ret, (size_t)n, sizeof *ret, nearer);
    return n;
}

static void check(const kith_array *q, const kith_array *g, const int64_t *self, bool is_square,
                  kith_metric metric, int64_t k, bool exact) {
    kith_error err;
    kith_gallery *gallery = NULL;
    const kith_knn_options options = {.size = sizeof(kith_knn_options), .metric = metric, .exact = exact};
    assert_ok(kith_gallery_new(g, &options, &gallery, &err), &err);
    const int64_t n = q->dim[0];
    kith_neighbor *found = calloc((size_t)(n * k), sizeof *found);
    pair *wanted = calloc((size_t)g->dim[0], sizeof *wanted);
    if (is_square)
        assert_ok(kith_gallery_self(gallery, k, found, &err), &err);
    else
        assert_ok(kith_gallery_search(gallery, q, self, k, found, &err), &err);
    for (int64_t i = 0; i < n; i++) {
        const int64_t m = plain_search(q, i, g, is_square ? i : self ? self[i] : -1, metric, wanted);
        for (int64_t j = 0; j < k; j++) {
            const kith_neighbor f = found[i * k + j];
            if (j >= m) {
                if (f.index != -1 || !isnan(f.score))
                    fail_msg("row %lld: tail %lld is %d", (long long)i, (long long)j, (int)f.index);
                continue;
            }
            const double score = metric == KITH_SQEUCLIDEAN ? -wanted[j].score : wanted[j].score;
            if (f.index != wanted[j].index || !(fabs(f.score - score) <= 2e-5 * fmax(1, fabs(score))))
                fail_msg("%s k %lld row %lld place %lld: found %d (%.9g), wanted %d (%.9g)",
                         kith_metric_name(metric), (long long)k, (long long)i, (long long)j, (int)f.index,
                         (double)f.score, (int)wanted[j].index, score);
        }
    }
    free(found);
    free(wanted);
    kith_gallery_free(gallery);
}

static void test_square_sizes(void **state) {
    (void)state;
    const int64_t sizes[][2] = {{1, 3}, {2, 1}, {17, 5}, {383, 7}, {384, 16}, {385, 130}, {1200, 33}};
    for (size_t s = 0; s < N_ROWS(sizes); s++) {
        kith_array a = random_rows(sizes[s][0], sizes[s][1], s % 2 ? KITH_F64 : KITH_F32, (uint32_t)s);
        for (int m = 0; m < 3; m++) {
            check(&a, &a, NULL, true, (kith_metric)m, 1, true);
            check(&a, &a, NULL, true, (kith_metric)m, 10, true);
            check(&a, &a, NULL, true, (kith_metric)m, 300, true);
        }
        kith_array_release(&a);
    }
}

static void test_query_and_gallery(void **state) {
    (void)state;
    kith_array q = random_rows(101, 40, KITH_F32, 1), g = random_rows(1000, 40, KITH_F32, 2);
    int64_t self[101];
    for (int i = 0; i < 101; i++) self[i] = i % 3 ? -1 : i * 9;
    for (int m = 0; m < 3; m++) {
        check(&q, &g, NULL, false, (kith_metric)m, 20, true);
        check(&q, &g, self, false, (kith_metric)m, 1200, true);
    }
    kith_array_release(&q);
    kith_array_release(&g);
}

/* Float32 order agrees where scores are whole numbers, which float32 keeps exactly: ties everywhere. */
static void test_ties_go_to_the_lower_index(void **state) {
    (void)state;
    kith_array a = random_rows(900, 6, KITH_F32, 3);
    float *x = a.data;
    for (int64_t i = 0; i < 900 * 6; i++) x[i] = roundf(x[i]);
    for (int exact = 0; exact < 2; exact++) {
        check(&a, &a, NULL, true, KITH_INNER, 25, exact);
        check(&a, &a, NULL, true, KITH_SQEUCLIDEAN, 25, exact);
    }
    /* Every row the same: more equals than any spare candidates. */
    for (int64_t i = 0; i < 900 * 6; i++) x[i] = (float)(i % 6) + 0.1F;
    for (int m = 0; m < 3; m++) {
        check(&a, &a, NULL, true, (kith_metric)m, 25, true);
        check(&a, &a, NULL, true, (kith_metric)m, 25, false);
    }
    kith_array_release(&a);
}

/* Duplicated rows must tie in float32 wherever they fall in the blocks. */
static void test_duplicates_tie_in_float32(void **state) {
    (void)state;
    kith_array a = random_rows(1000, 150, KITH_F32, 4);
    float *x = a.data;
    for (int64_t i = 500; i < 1000; i++) memcpy(x + i * 150, x + (i * 7 % 500) * 150, 150 * sizeof *x);
    kith_error err;
    kith_gallery *gallery = NULL;
    const kith_knn_options options = {.size = sizeof(kith_knn_options), .metric = KITH_COSINE};
    assert_ok(kith_gallery_new(&a, &options, &gallery, &err), &err);
    kith_neighbor *found = calloc(1000 * 999, sizeof *found);
    assert_ok(kith_gallery_self(gallery, 999, found, &err), &err);
    double *score = calloc(1000, sizeof *score);
    for (int64_t i = 0; i < 1000; i++) {
        for (int64_t j = 0; j < 999; j++) score[found[i * 999 + j].index] = found[i * 999 + j].score;
        for (int64_t d = 500; d < 1000; d++) {
            if (d == i || d * 7 % 500 == i) continue;
            assert_true(score[d] == score[d * 7 % 500]);
        }
    }
    free(score);
    free(found);
    kith_gallery_free(gallery);
    kith_array_release(&a);
}

/* Points far from the origin and close together: x.x + y.y - 2 x.y in float32 is all rounding. */
static void test_distances_do_not_cancel(void **state) {
    (void)state;
    kith_array a = random_rows(700, 24, KITH_F32, 5);
    float *x = a.data;
    /* Two far clusters, so that centring alone does not help. */
    for (int64_t i = 0; i < 700 * 24; i++) x[i] = x[i] * 0.01F + (i / 24 % 2 ? 1000.0F : -1000.0F);
    check(&a, &a, NULL, true, KITH_SQEUCLIDEAN, 12, false);
    check(&a, &a, NULL, true, KITH_SQEUCLIDEAN, 12, true);
    kith_array_release(&a);
}

/* However short or long a row is, its cosine is that of the row scaled; of float64 beyond that it is refused. */
static void test_cosine_of_any_length(void **state) {
    (void)state;
    enum { N = 40, ANY = 7, K = 5 };
    static const double scale[] = {1e-13, 1e-20, 1e-35, 1e15, 1};
    kith_error err = {0};
    float plain[N * ANY], scaled[N * ANY];
    ki_rng rng = ki_rng_at(3, KI_RNG_TEST, 0, 0);
    for (int i = 0; i < N * ANY; i++) {
        plain[i] = (float)ki_rng_normal(&rng);
        scaled[i] = (float)((double)plain[i] * scale[i / ANY % 5]);
    }
    const kith_array a = {KITH_F32, 2, {N, ANY}, plain}, b = {KITH_F32, 2, {N, ANY}, scaled};
    const kith_knn_options options = {.size = sizeof options, .metric = KITH_COSINE};
    kith_gallery *one = NULL, *other = NULL;
    kith_neighbor wanted[N * K], found[N * K];
    assert_ok(kith_gallery_new(&a, &options, &one, &err), &err);
    assert_ok(kith_gallery_new(&b, &options, &other, &err), &err);
    assert_ok(kith_gallery_search(one, &a, NULL, K, wanted, &err), &err);
    assert_ok(kith_gallery_search(other, &b, NULL, K, found, &err), &err);
    for (int i = 0; i < N * K; i++) {
        assert_int_equal(found[i].index, wanted[i].index);
        if (!(fabs((double)found[i].score - (double)wanted[i].score) < 1e-6))
            fail_msg("hit %d: %g, wanted %g", i, (double)found[i].score, (double)wanted[i].score);
    }
    kith_gallery_free(one);
    kith_gallery_free(other);
    double rows[] = {1, 2, 0, 0, 1e-200, 1e-200};
    const kith_array c = {KITH_F64, 2, {3, 2}, rows};
    assert_int_equal(kith_gallery_new(&c, &options, &one, &err), KITH_ENUMERIC);
    assert_non_null(strstr(err.message, "row 2 has length"));
}

static void test_zero_rows_have_cosine_zero(void **state) {
    (void)state;
    kith_array a = random_rows(60, 9, KITH_F32, 6);
    memset(a.data, 0, 9 * 20 * sizeof(float));
    check(&a, &a, NULL, true, KITH_COSINE, 59, true);
    kith_array_release(&a);
}

static void test_threads_do_not_matter(void **state) {
    (void)state;
    kith_array a = random_rows(2000, 70, KITH_F32, 8);
    kith_error err;
    kith_neighbor *found[2];
    for (int t = 0; t < 2; t++) {
        ki_threads_set(t ? 3 : 1);
        kith_gallery *gallery = NULL;
        const kith_knn_options options = {.size = sizeof(kith_knn_options), .metric = KITH_COSINE};
        assert_ok(kith_gallery_new(&a, &options, &gallery, &err), &err);
        found[t] = calloc(2000 * 300, sizeof **found);
        assert_ok(kith_gallery_self(gallery, 300, found[t], &err), &err);
        kith_gallery_free(gallery);
    }
    ki_threads_set(0);
    assert_memory_equal(found[0], found[1], 2000 * 300 * sizeof **found);
    free(found[0]);
    free(found[1]);
    kith_array_release(&a);
}

static void test_kernels_agree(void **state) {
    (void)state;
    enum { DIM = 300 };
    static float panels[KI_GROUP * DIM] __attribute__((aligned(64)));
    static float out[KI_STRIPE * KI_BLOCK] __attribute__((aligned(64)));
    ki_rng rng = ki_rng_at(1, KI_RNG_TEST, 9, 0);
    for (size_t i = 0; i < N_ROWS(panels); i++) panels[i] = (float)ki_rng_normal(&rng);
    for (const ki_knn_kernel *const *kernel = ki_knn_kernels(); *kernel; kernel++) {
        (*kernel)->product(panels + 8, panels, DIM, 1, out);
        for (int r = 0; r < KI_STRIPE; r++) {
            for (int c = 0; c < KI_GROUP; c++) {
                double want = 0;
                for (int k = 0; k < DIM; k++)
                    want += (double)panels[k * KI_PANEL + 8 + r] *
                            (double)panels[(c / 16 * DIM + k) * KI_PANEL + c % 16];
                if (!(fabs(out[r * KI_BLOCK + c] - want) < 1e-4))
                    fail_msg("%s (%d, %d): %.9g, wanted %.9g", (*kernel)->name, r, c,
                             (double)out[r * KI_BLOCK + c], want);
            }
        }
        float s[KI_BLOCK] __attribute__((aligned(64))), least[KI_BLOCK];
        for (int c = 0; c < KI_BLOCK; c++) {
            s[c] = (float)(int)(ki_rng_u32(&rng) % 5);
            least[c] = (float)(int)(ki_rng_u32(&rng) % 5);
        }
        s[70] = NAN;
        uint64_t row[KI_MASK_WORDS], col[KI_MASK_WORDS], alone[KI_MASK_WORDS];
        (*kernel)->compare(s, 3, least, row, col);
        (*kernel)->compare_row(s, 3, alone);
        for (int c = 0; c < KI_BLOCK; c++) {
            assert_int_equal(row[c / 64] >> c % 64 & 1, s[c] >= 3);
            assert_int_equal(alone[c / 64] >> c % 64 & 1, s[c] >= 3);
            assert_int_equal(col[c / 64] >> c % 64 & 1, s[c] >= least[c]);
        }
    }
}

static int descending(const void *a, const void *b) {
    const ki_key x = *(const ki_key *)a, y = *(const ki_key *)b;
    return (x < y) - (x > y);
}

static void test_selection_and_sorting(void **state) {
    (void)state;
    enum { N = 700 };
    static ki_key keys[N], wanted[N], copy[N], scratch[N];
    ki_rng rng = ki_rng_at(1, KI_RNG_TEST, 14, 0);
    for (const ki_knn_kernel *const *kernel = ki_knn_kernels(); *kernel; kernel++) {
        for (int n = 1; n <= N; n += n < 40 ? 1 : 83) {
            for (int i = 0; i < n; i++) keys[i] = (uint64_t)ki_rng_u32(&rng) << 33 | (uint32_t)i;
            memcpy(wanted, keys, sizeof keys);
            qsort(wanted, (size_t)n, sizeof *wanted, descending);
            memcpy(copy, keys, sizeof keys);
            ki_keys_sort(*kernel, copy, n, scratch);
            assert_memory_equal(copy, wanted, (size_t)n * sizeof *wanted);
            for (int k = 1; k <= n; k += 1 + n / 9) {
                memcpy(copy, keys, sizeof keys);
                ki_keys_select(*kernel, copy, n, k, scratch);
                qsort(copy, (size_t)k, sizeof *copy, descending);
                assert_memory_equal(copy, wanted, (size_t)k * sizeof *wanted);
            }
        }
    }
}

static void test_keys_order_like_scores(void **state) {
    (void)state;
    const float scores[] = {-INFINITY, -3.5F, -1e-30F, 0, 1e-30F, 2, INFINITY};
    for (size_t i = 1; i < N_ROWS(scores); i++) {
        assert_true(ki_key_make(scores[i - 1], 0) < ki_key_make(scores[i], 1));
        assert_true(ki_key_score(ki_key_make(scores[i], 77)) == scores[i]);
        assert_int_equal(ki_key_index(ki_key_make(scores[i], 77)), 77);
    }
    assert_true(ki_key_make(-0.0F, 3) == ki_key_make(0.0F, 3));
    assert_true(ki_key_make(1, 3) > ki_key_make(1, 4));
}

static void test_bad_input_is_named(void **state) {
    (void)state;
    kith_error err;
    kith_gallery *gallery = NULL;
    const kith_knn_options options = {.size = sizeof(kith_knn_options), .metric = KITH_COSINE};
    kith_array a = random_rows(50, 4, KITH_F32, 10);
    ((float *)a.data)[31 * 4 + 2] = NAN;
    assert_int_equal(kith_gallery_new(&a, &options, &gallery, &err), KITH_ENUMERIC);
    assert_string_equal(err.message, "gallery: row 31 column 2 is nan");
    ((float *)a.data)[31 * 4 + 2] = 1e30F;
    assert_int_equal(kith_gallery_new(&a, &options, &gallery, &err), KITH_ENUMERIC);
    ((float *)a.data)[31 * 4 + 2] = 0;
    kith_array none = a;
    none.dim[0] = 0;
    assert_int_equal(kith_gallery_new(&none, &options, &gallery, &err), KITH_EINVAL);
    assert_ok(kith_gallery_new(&a, &options, &gallery, &err), &err);
    kith_neighbor found[50];
    assert_int_equal(kith_gallery_self(gallery, 0, found, &err), KITH_EINVAL);
    assert_string_equal(err.message, "k is 0; wanted at least 1");
    kith_array other = random_rows(3, 5, KITH_F32, 11);
    assert_int_equal(kith_gallery_search(gallery, &other, NULL, 1, found, &err), KITH_ESHAPE);
    kith_array_release(&other);
    kith_gallery_free(gallery);
    kith_array_release(&a);
}

static void test_memory_runs_out(void **state) {
    (void)state;
    kith_array a = random_rows(500, 8, KITH_F32, 12);
    kith_neighbor *found = calloc(500 * 5, sizeof *found);
    int n_failed = 0;
    for (int64_t n = 0;; n++) {
        kith_error err;
        kith_gallery *gallery = NULL;
        const kith_knn_options options = {
            .size = sizeof(kith_knn_options), .metric = KITH_SQEUCLIDEAN, .exact = true};
        ki_alloc_fail_after(n);
        kith_status status = kith_gallery_new(&a, &options, &gallery, &err);
        if (status == KITH_OK) status = kith_gallery_search(gallery, &a, NULL, 5, found, &err);
        ki_alloc_fail_after(-1);
        kith_gallery_free(gallery);
        if (status == KITH_OK) break;
        assert_int_equal(status, KITH_ENOMEM);
        n_failed++;
    }
    assert_true(n_failed > 8);
    free(found);
    kith_array_release(&a);
}

static int stop_at_once(void *user, int64_t done, int64_t all) {
    (void)user, (void)done, (void)all;
    return 1;
}

static void test_stops_on_request(void **state) {
    (void)state;
    kith_array a = random_rows(900, 4, KITH_F32, 13);
    kith_error err;
    kith_gallery *gallery = NULL;
    const kith_knn_options options = {
        .size = sizeof(kith_knn_options), .metric = KITH_COSINE, .progress = stop_at_once};
    assert_ok(kith_gallery_new(&a, &options, &gallery, &err), &err);
    kith_neighbor *found = calloc(900, sizeof *found);
    assert_int_equal(kith_gallery_self(gallery, 1, found, &err), KITH_ECANCELED);
    free(found);
    kith_gallery_free(gallery);
    kith_array_release(&a);
}

/* Among some of the rows, one query and many, in float64 order: also where float32 cannot tell more rows apart than are kept, and
 * where fewer are allowed than wanted. */
static void test_some_of_the_rows(void **state) {
    (void)state;
    kith_error err;
    enum { N = 3000, DIM = 20, K = 12, Q = 9 };
    for (int metric = 0; metric < 3; metric++) {
        for (int how = 0; how < 3; how++) { /* spread, close, few */
            kith_array g = random_rows(N, DIM, KITH_F64, 90), q = random_rows(Q, DIM, KITH_F64, 91);
            double *x = g.data;
            for (int64_t i = 0; how > 0 && i < (int64_t)N * DIM; i++) x[i] = x[i % DIM] + 1e-9 * x[i];
            uint64_t allowed[(N + KI_BLOCK - 1) / KI_BLOCK * KI_MASK_WORDS] = {0};
            ki_rng rng = ki_rng_at(8, KI_RNG_TEST, 0, 0);
            int64_t n_allowed = 0, self[Q];
            for (int64_t i = 0; i < N; i++) {
                if (how == 0 ? ki_rng_below(&rng, 2) != 0 : i % (how == 1 ? 3 : 311) != 2) continue;
                allowed[i / 64] |= UINT64_C(1) << i % 64;
                n_allowed++;
            }
            for (int64_t i = 0; i < Q; i++) self[i] = i % 2 ? 2 + 311 * (i % 3) : -1;
            KITH_OPTIONS(kith_knn_options, options);
            options.metric = (kith_metric)metric;
            options.exact = true;
            kith_gallery *gallery = NULL;
            assert_ok(kith_gallery_new(&g, &options, &gallery, &err), &err);
            pair *all = ki_alloc(N, sizeof *all);
            kith_neighbor found[Q * K];
            for (int many = 0; many < 2; many++) {
                for (int64_t i = 0; i < Q; i += many ? Q : 1) {
                    const kith_array part = {KITH_F64, 2, {many ? Q : 1, DIM}, (double *)q.data + i * DIM};
                    const ki_gallery_ask ask = {.self = self + i, .allowed = allowed, .n_allowed = n_allowed};
                    assert_ok(ki_gallery_search(gallery, &part, K, &ask, found + i * K, &err), &err);
                }
                for (int64_t i = 0; i < Q; i++) {
                    const int64_t n = plain_search(&q, i, &g, self[i], (kith_metric)metric, all);
                    int64_t at = 0;
                    for (int64_t j = 0; j < n && at < K; j++) {
                        if (!(allowed[all[j].index / 64] >> all[j].index % 64 & 1)) continue;
                        if (found[i * K + at].index != all[j].index)
                            fail_msg("metric %d, query %d, place %d: row %d, wanted %d", metric, (int)i,
                                     (int)at, (int)found[i * K + at].index, all[j].index);
                        at++;
                    }
                    for (; at < K; at++) assert_int_equal(found[i * K + at].index, -1);
                }
            }
            ki_free(all);
            kith_gallery_free(gallery);
            kith_array_release(&g);
            kith_array_release(&q);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_square_sizes),
        cmocka_unit_test(test_query_and_gallery),
        cmocka_unit_test(test_ties_go_to_the_lower_index),
        cmocka_unit_test(test_duplicates_tie_in_float32),
        cmocka_unit_test(test_distances_do_not_cancel),
        cmocka_unit_test(test_zero_rows_have_cosine_zero),
        cmocka_unit_test(test_cosine_of_any_length),
        cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_kernels_agree),
        cmocka_unit_test(test_selection_and_sorting),
        cmocka_unit_test(test_keys_order_like_scores),
        cmocka_unit_test(test_bad_input_is_named),
        cmocka_unit_test(test_memory_runs_out),
        cmocka_unit_test(test_stops_on_request),
        cmocka_unit_test(test_some_of_the_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
