/* Search in compressed rows against exact search. */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "scan_rows.h"
#include "search/scan/kernel.h"

enum { N = 20000, DIM = 40, QUERIES = 100, K = 10, LISTS = 128 };

static scan_index shared; /* cosine, 1 bit */
static float *queries;

static int set_up(void **state) {
    (void)state;
    scan_index_init(&shared, scan_rows(N, DIM, 400, 30), N, DIM, &(ki_coder_options){.n_lists = LISTS});
    queries = scan_rows(QUERIES, DIM, 400, 31);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    scan_index_release(&shared);
    ki_free(queries);
    return 0;
}

static ki_scan_effort tuned(const ki_scan_set *set, double recall, const uint64_t *allowed) {
    kith_error err;
    ki_scan_effort effort;
    const ki_scan_tune_options options = {.recall = recall, .n_sample = 200, .allowed = allowed};
    assert_ok(ki_scan_tune(set, &options, &effort, &err), &err);
    return effort;
}

static double recall_with(const ki_scan_set *set, const ki_scan_options *options, int64_t k) {
    kith_error err;
    kith_neighbor *found = ki_alloc((size_t)(QUERIES * k), sizeof *found);
    kith_neighbor *wanted = ki_alloc((size_t)(QUERIES * k), sizeof *wanted);
    assert_ok(ki_scan_search(set, queries, QUERIES, k, options, found, &err), &err);
    scan_exact(set, queries, QUERIES, k, options->allowed, options->self, wanted);
    /* What is found has the exact score; where there are k, k are found. */
    for (int64_t i = 0; i < QUERIES * k; i++) {
        assert_true((found[i].index < 0) == (wanted[i].index < 0));
        for (int64_t j = i / k * k; j < (i / k + 1) * k; j++) {
            if (found[i].index >= 0 && found[i].index == wanted[j].index)
                assert_true(found[i].score == wanted[j].score);
        }
    }
    const double recall = scan_recall(found, wanted, QUERIES, k);
    ki_free(found);
    ki_free(wanted);
    return recall;
}

static void test_recall_is_what_was_asked_for(void **state) {
    (void)state;
    for (int m = 0; m < 3; m++) {
        for (int bits = 1; bits <= 3; bits += 2) {
            scan_index s;
            scan_index_init(&s, scan_rows(N, DIM, 400, 30), N, DIM,
                            &(ki_coder_options){.n_lists = LISTS, .bits = bits, .metric = (kith_metric)m});
            const ki_scan_options options = {.effort = tuned(&s.set, 0.97, NULL)};
            const double recall = recall_with(&s.set, &options, K);
            if (recall < 0.955 || options.effort.recall < 0.97)
                fail_msg(
                    "metric %d, %d bits: %lld probes and %lld looks find %g (%g when tuned), wanted 0.97", m,
                    bits, (long long)options.effort.n_probes, (long long)options.effort.n_looks, recall,
                    options.effort.recall);
            assert_true(options.effort.n_probes < LISTS); /* not just by looking everywhere */
            scan_index_release(&s);
        }
    }
}

static void test_more_effort_finds_more(void **state) {
    (void)state;
    const ki_scan_options little = {.effort = {1, 12, K, 0}}, much = {.effort = {LISTS, 2000, K, 0}};
    const double low = recall_with(&shared.set, &little, K), high = recall_with(&shared.set, &much, K);
    if (!(low < 0.95 && high > 0.999)) fail_msg("%g and %g, wanted below 0.95 and above 0.999", low, high);
}

/* Neighbours for more k than the effort was measured for. */
static void test_effort_grows_with_k(void **state) {
    (void)state;
    const ki_scan_options options = {.effort = tuned(&shared.set, 0.97, NULL)};
    const double recall = recall_with(&shared.set, &options, 50);
    if (recall < 0.97) fail_msg("50 neighbours: %g, wanted 0.97", recall);
}

static void test_same_answers_everywhere(void **state) {
    (void)state;
    kith_error err;
    kith_neighbor wanted[QUERIES * K], found[QUERIES * K];
    uint64_t allowed[N / 64 + 1];
    ki_rng rng = ki_rng_at(6, KI_RNG_TEST, 0, 0);
    for (size_t i = 0; i < N_ROWS(allowed); i++) allowed[i] = ki_rng_u32(&rng) & 0xFF00FFFF;
    for (int filtered = 0; filtered < 2; filtered++) {
        const ki_scan_options options = {
            .effort = {9, 60, K, 0}, .allowed = filtered ? allowed : NULL, .n_allowed = -1};
        assert_ok(ki_scan_search(&shared.set, queries, QUERIES, K, &options, wanted, &err), &err);
        for (const ki_scan_kernel *const *k = ki_scan_kernels(); *k; k++) {
            for (int t = 0; t < 3; t++) {
                ki_scan_kernel_force(*k);
                ki_threads_set((int[]){1, 2, 16}[t]);
                memset(found, 0, sizeof found);
                assert_ok(ki_scan_search(&shared.set, queries, QUERIES, K, &options, found, &err), &err);
                assert_memory_equal(found, wanted, sizeof found);
            }
        }
        ki_scan_kernel_force(NULL);
        ki_threads_set(0);
        for (int64_t i = 0; i < QUERIES; i++) { /* one at a time */
            assert_ok(ki_scan_search(&shared.set, queries + i * DIM, 1, K, &options, found, &err), &err);
            assert_memory_equal(found, wanted + i * K, K * sizeof *found);
        }
    }
}

typedef struct reader {
    const float *x;
    int64_t dim;
    bool is_broken;
} reader;

static kith_status read_rows(void *user, const int64_t *row, int64_t n, float *dst, kith_error *err) {
    const reader *r = user;
    if (r->is_broken) return ki_fail(err, KITH_EIO, "the disk is gone");
    for (int64_t i = 0; i < n; i++)
        memcpy(dst + i * r->dim, r->x + row[i] * r->dim, (size_t)r->dim * sizeof *dst);
    return KITH_OK;
}

static void test_rows_may_be_read_through_a_function(void **state) {
    (void)state;
    kith_error err;
    kith_neighbor wanted[QUERIES * K], found[QUERIES * K];
    reader r = {.x = shared.x, .dim = DIM};
    ki_scan_set set = shared.set;
    set.rows = (ki_row_source){.n = N, .dim = DIM, .read = read_rows, .user = &r};
    const ki_scan_options options = {.effort = {LISTS, 300, K, 0}};
    assert_ok(ki_scan_search(&shared.set, queries, QUERIES, K, &options, wanted, &err), &err);
    assert_ok(ki_scan_search(&set, queries, QUERIES, K, &options, found, &err), &err);
    if (scan_recall(found, wanted, QUERIES, K) < 0.999)
        fail_msg("%g", scan_recall(found, wanted, QUERIES, K));
    assert_true(tuned(&set, 0.9, NULL).recall >= 0.9);
    r.is_broken = true;
    assert_int_equal(ki_scan_search(&set, queries, QUERIES, K, &options, found, &err), KITH_EIO);
    assert_string_equal(err.message, "the disk is gone");
}

static void test_filters_return_k(void **state) {
    (void)state;
    static const double PARTS[] = {0.5, 0.1, 0.01, 0.001, 0.0002};
    const ki_scan_effort effort = tuned(&shared.set, 0.995, NULL);
    uint64_t allowed[N / 64 + 1];
    for (size_t p = 0; p < N_ROWS(PARTS); p++) {
        int64_t n = 0;
        ki_rng rng = ki_rng_at(7, KI_RNG_TEST, (uint32_t)p, 0);
        memset(allowed, 0, sizeof allowed);
        for (int64_t i = 0; i < N; i++) {
            if (i > 2 && ki_rng_double(&rng) >= PARTS[p]) continue; /* three at least */
            allowed[i / 64] |= UINT64_C(1) << (i % 64);
            n++;
        }
        for (int known = 0; known < 2; known++) {
            const ki_scan_options options = {
                .effort = effort, .allowed = allowed, .n_allowed = known ? n : -1};
            const double recall = recall_with(&shared.set, &options, K);
            if (recall < 0.99) fail_msg("%lld rows allowed: recall %g, wanted 0.99", (long long)n, recall);
        }
    }
    memset(allowed, 0, sizeof allowed); /* nothing at all */
    kith_error err;
    kith_neighbor found[K];
    const ki_scan_options options = {.effort = effort, .allowed = allowed, .n_allowed = -1};
    assert_ok(ki_scan_search(&shared.set, queries, 1, K, &options, found, &err), &err);
    for (int i = 0; i < K; i++) assert_int_equal(found[i].index, -1);
}

/* A filter that goes with the content: allowed rows lie in a few lists, far from most queries. */
static void test_filters_that_allow_one_corner(void **state) {
    (void)state;
    const ki_scan_effort effort = tuned(&shared.set, 0.99, NULL);
    uint64_t allowed[N / 64 + 1] = {0};
    for (int64_t l = 40; l < 52; l++) {
        for (uint32_t at = shared.codes.begin[l]; at < shared.codes.begin[l + 1]; at++)
            allowed[shared.codes.row[at] / 64] |= UINT64_C(1) << (shared.codes.row[at] % 64);
    }
    const ki_scan_options options = {.effort = effort, .allowed = allowed, .n_allowed = -1};
    const double recall = recall_with(&shared.set, &options, K);
    if (recall < 0.98) fail_msg("recall %g, wanted 0.98", recall);
}

/* Half of the rows deleted and 30 % added in segments of their own, against an index made of what is left. */
static void test_churn(void **state) {
    (void)state;
    enum { OLD = 10000, NEW = 3000, FRESH = OLD / 2 + NEW };
    kith_error err;
    float *x = scan_rows(OLD + NEW, DIM, 400, 32), *fresh_x = ki_alloc(FRESH * DIM, sizeof *fresh_x);
    uint64_t allowed[(OLD + NEW) / 64 + 1] = {0};
    int64_t live[FRESH], n = 0;
    for (int64_t i = 0; i < OLD + NEW; i++) {
        if (i < OLD && i % 2) continue;
        allowed[i / 64] |= UINT64_C(1) << (i % 64);
        memcpy(fresh_x + n * DIM, x + i * DIM, DIM * sizeof *x);
        live[n++] = i;
    }
    assert_int_equal(n, FRESH);
    ki_coder *coder = NULL;
    uint8_t *bytes[2] = {0};
    ki_codes codes[2];
    const ki_row_source rows = {.n = OLD + NEW, .dim = DIM, .data = x};
    const ki_row_source old = {.n = OLD, .dim = DIM, .data = x};
    const int64_t first[] = {0, OLD, OLD + 2900}, count[] = {OLD, 2900, 100};
    assert_ok(ki_coder_fit(&old, &(ki_coder_options){.n_lists = 100}, &coder, &err), &err);
    ki_scan_segment segments[3];
    for (int i = 0; i < 3; i++) {
        segments[i] = (ki_scan_segment){NULL, first[i], count[i]};
        if (i == 2) break; /* the last rows have no codes yet */
        assert_ok(ki_codes_make(coder, &rows, first[i], count[i], NULL, &bytes[i], &err), &err);
        assert_ok(ki_codes_open(coder, bytes[i], ki_codes_bytes(coder, count[i]), &codes[i], &err), &err);
        segments[i].codes = &codes[i];
    }
    const ki_scan_set set = {.coder = coder, .segments = segments, .n_segments = 3, .rows = rows};
    scan_index fresh;
    scan_index_init(&fresh, fresh_x, FRESH, DIM, &(ki_coder_options){.n_lists = 100});
    const ki_scan_effort effort = tuned(&fresh.set, 0.97, NULL);
    const ki_scan_options options = {.effort = effort, .allowed = allowed, .n_allowed = FRESH};
    const double churned = recall_with(&set, &options, K);
    const double anew = recall_with(&fresh.set, &(ki_scan_options){.effort = effort}, K);
    if (churned < anew - 0.005) fail_msg("recall %g after churn, %g in a fresh index", churned, anew);
    /* Every live row finds itself, with the least effort too. */
    kith_neighbor *found = ki_alloc(FRESH, sizeof *found);
    const ki_scan_options least = {.effort = {1, 1, 1, 0}, .allowed = allowed, .n_allowed = FRESH};
    assert_ok(ki_scan_search(&set, fresh_x, FRESH, 1, &least, found, &err), &err);
    int64_t n_lost = 0;
    for (int64_t i = 0; i < FRESH; i++) n_lost += found[i].index != live[i];
    if (n_lost) fail_msg("%lld of %d live rows do not find themselves", (long long)n_lost, FRESH);
    ki_free(found);
    scan_index_release(&fresh);
    for (int i = 0; i < 2; i++) ki_free(bytes[i]);
    ki_coder_free(coder);
    ki_free(x);
}

static void test_a_row_is_not_its_own_neighbour(void **state) {
    (void)state;
    kith_error err;
    kith_neighbor found[3];
    const int64_t self = 77;
    const ki_scan_options options = {.effort = {LISTS, 100, K, 0}};
    ki_scan_options without = options;
    without.self = &self;
    assert_ok(ki_scan_search(&shared.set, shared.x + 77 * DIM, 1, 3, &options, found, &err), &err);
    assert_int_equal(found[0].index, 77);
    assert_ok(ki_scan_search(&shared.set, shared.x + 77 * DIM, 1, 3, &without, found, &err), &err);
    for (int i = 0; i < 3; i++) assert_int_not_equal(found[i].index, 77);
}

static void test_small_and_odd_sets(void **state) {
    (void)state;
    kith_error err;
    for (int m = 0; m < 3; m++) {
        scan_index s;
        float *x = scan_rows(5, 3, 2, 33);
        memset(x + 2 * 3, 0, 3 * sizeof *x); /* a row of zeros */
        memcpy(x + 4 * 3, x, 3 * sizeof *x); /* the same row twice */
        scan_index_init(&s, x, 5, 3, &(ki_coder_options){.metric = (kith_metric)m});
        kith_neighbor found[8], wanted[8];
        assert_ok(ki_scan_search(&s.set, x, 1, 8, NULL, found, &err), &err);
        scan_exact(&s.set, x, 1, 8, NULL, NULL, wanted);
        for (int i = 0; i < 8; i++) {
            assert_int_equal(found[i].index, wanted[i].index);
            if (i < 5) assert_true(found[i].score == wanted[i].score);
            if (i >= 5) assert_true(found[i].index == -1 && isnan(found[i].score));
        }
        assert_ok(ki_scan_search(&s.set, x + 6, 1, 8, NULL, found, &err), &err); /* zeros as the query */
        s.set.n_segments = 0;
        assert_ok(ki_scan_search(&s.set, x, 1, 8, NULL, found, &err), &err);
        assert_int_equal(found[0].index, -1);
        scan_index_release(&s);
    }
}

/* Values so small that their inverses are no floats. */
static void test_tiny_values(void **state) {
    (void)state;
    kith_error err;
    for (int bits = 1; bits <= 4; bits += 3) {
        for (int m = 0; m < 3; m++) {
            scan_index s;
            kith_neighbor found[8];
            float *x = scan_rows(300, 7, 20, 34);
            for (int i = 0; i < 300 * 7; i++) x[i] *= 1e-39F;
            scan_index_init(&s, x, 300, 7,
                            &(ki_coder_options){.metric = (kith_metric)m, .n_lists = 5, .bits = bits});
            assert_ok(ki_scan_search(&s.set, x, 1, 8, NULL, found, &err), &err);
            for (int i = 0; i < 8; i++) assert_true(found[i].index >= 0);
            scan_index_release(&s);
        }
    }
}

static void test_wrong_arguments(void **state) {
    (void)state;
    kith_error err;
    kith_neighbor found[K];
    float query[DIM] = {1};
    assert_int_equal(ki_scan_search(&shared.set, query, 1, 0, NULL, found, &err), KITH_EINVAL);
    query[3] = NAN;
    assert_int_equal(ki_scan_search(&shared.set, query, 1, K, NULL, found, &err), KITH_ENUMERIC);
    assert_string_equal(err.message, "query: row 0 column 3 is nan");
    ki_scan_set set = shared.set;
    set.rows.dim = DIM - 1;
    assert_int_equal(ki_scan_search(&set, query, 1, K, NULL, found, &err), KITH_EINVAL);
    ki_scan_effort effort;
    assert_int_equal(ki_scan_tune(&shared.set, &(ki_scan_tune_options){.recall = 1.5}, &effort, &err),
                     KITH_EINVAL);
}

static void test_tuning_says_what_cannot_be_reached(void **state) {
    (void)state;
    kith_error err;
    ki_scan_effort effort;
    const ki_scan_tune_options options = {.recall = 0.999, .n_sample = 100, .most_looks = 12};
    assert_ok(ki_scan_tune(&shared.set, &options, &effort, &err), &err);
    if (!(effort.recall > 0.3 && effort.recall < 0.999)) fail_msg("recall %g", effort.recall);
    /* More bits reach it. */
    scan_index s;
    scan_index_init(&s, scan_rows(N, DIM, 400, 30), N, DIM, &(ki_coder_options){.n_lists = LISTS, .bits = 7});
    const ki_scan_tune_options easier = {.recall = 0.99, .n_sample = 100, .most_looks = 20};
    assert_ok(ki_scan_tune(&s.set, &easier, &effort, &err), &err);
    if (effort.recall < 0.99) fail_msg("7 bits: recall %g", effort.recall);
    scan_index_release(&s);
}

static void test_range_finds_all(void **state) {
    (void)state;
    kith_error err;
    uint64_t allowed[N / 64 + 1];
    for (size_t i = 0; i < N_ROWS(allowed); i++) allowed[i] = UINT64_C(0xFFFFFFFFFFFFFF0F);
    for (int m = 0; m < 3; m++) {
        scan_index s;
        scan_index_init(&s, scan_rows(N, DIM, 400, 30), N, DIM,
                        &(ki_coder_options){.n_lists = LISTS, .metric = (kith_metric)m});
        const ki_scan_options options = {.allowed = allowed, .n_allowed = -1};
        int64_t n_wanted = 0, n_found = 0;
        kith_neighbor *wanted = ki_alloc(N, sizeof *wanted);
        for (int64_t q = 0; q < 20; q++) {
            kith_neighbor *found = NULL;
            int64_t n = 0;
            scan_exact(&s.set, queries + q * DIM, 1, N / 2, allowed, NULL, wanted);
            const double score = wanted[60].score; /* 61 rows, or more where several are as near */
            assert_ok(ki_scan_range(&s.set, queries + q * DIM, score, &options, &found, &n, &err), &err);
            for (int64_t i = 0; i < n; i++) {
                assert_true(ki_coder_metric(s.coder) == KITH_SQEUCLIDEAN ? found[i].score <= score + 1e-3
                                                                         : found[i].score >= score - 1e-6);
                if (i)
                    assert_true(m == KITH_SQEUCLIDEAN ? found[i].score >= found[i - 1].score
                                                      : found[i].score <= found[i - 1].score);
            }
            n_wanted += 60;
            n_found += (int64_t)(60 * scan_recall(found, wanted, 1, n < 60 ? n : 60));
            assert_true(n >= 59 && n <= 62);
            ki_free(found);
        }
        if (n_found < n_wanted - 2)
            fail_msg("metric %d: %lld of %lld", m, (long long)n_found, (long long)n_wanted);
        ki_free(wanted);
        scan_index_release(&s);
    }
    kith_neighbor *found = NULL;
    int64_t n = 0;
    assert_ok(ki_scan_range(&shared.set, queries, 2, NULL, &found, &n, &err), &err);
    assert_int_equal(n, 0);
    ki_free(found);
    assert_ok(ki_scan_range(&shared.set, queries, -2, NULL, &found, &n, &err), &err);
    assert_int_equal(n, N);
    ki_free(found);
    assert_int_equal(ki_scan_range(&shared.set, queries, NAN, NULL, &found, &n, &err), KITH_EINVAL);
}

static void test_failing_allocations_are_one_error(void **state) {
    (void)state;
    kith_neighbor found[2 * K], *all = NULL;
    bool has_failed = true;
    for (int64_t i = 0; has_failed; i++) {
        kith_error err;
        int64_t n = 0;
        ki_alloc_fail_after(i);
        kith_status status = ki_scan_search(&shared.set, queries, 2, K, NULL, found, &err);
        if (status == KITH_OK) status = ki_scan_range(&shared.set, queries, 0.9, NULL, &all, &n, &err);
        has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        assert_int_equal(status, has_failed ? KITH_ENOMEM : KITH_OK);
    }
    ki_free(all);
    has_failed = true;
    for (int64_t i = 0; has_failed; i += 1 + i / 8) {
        kith_error err;
        ki_scan_effort effort;
        const ki_scan_tune_options options = {.n_sample = 5};
        ki_alloc_fail_after(i);
        const kith_status status = ki_scan_tune(&shared.set, &options, &effort, &err);
        has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        assert_int_equal(status, has_failed ? KITH_ENOMEM : KITH_OK);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recall_is_what_was_asked_for),
        cmocka_unit_test(test_more_effort_finds_more),
        cmocka_unit_test(test_effort_grows_with_k),
        cmocka_unit_test(test_same_answers_everywhere),
        cmocka_unit_test(test_rows_may_be_read_through_a_function),
        cmocka_unit_test(test_filters_return_k),
        cmocka_unit_test(test_filters_that_allow_one_corner),
        cmocka_unit_test(test_churn),
        cmocka_unit_test(test_a_row_is_not_its_own_neighbour),
        cmocka_unit_test(test_small_and_odd_sets),
        cmocka_unit_test(test_tiny_values),
        cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_tuning_says_what_cannot_be_reached),
        cmocka_unit_test(test_range_finds_all),
        cmocka_unit_test(test_failing_allocations_are_one_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
