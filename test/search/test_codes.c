/* Codes: what they say of rows, the same bytes everywhere, and damaged bytes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "scan_rows.h"
#include "search/scan/coder_parts.h"
#include "search/scan/query.h"

enum { N = 700, DIM = 40 };

static void make(const ki_coder *coder, const ki_row_source *rows, uint8_t **ret_bytes) {
    kith_error err;
    assert_ok(ki_codes_make(coder, rows, 0, rows->n, NULL, ret_bytes, &err), &err);
}

static void test_the_same_bytes_for_threads_and_kernels(void **state) {
    (void)state;
    for (int bits = 1; bits <= 5; bits += 2) {
        scan_index s;
        scan_index_init(&s, scan_rows(N, DIM, 20, 20), N, DIM,
                        &(ki_coder_options){.n_lists = 13, .bits = bits});
        const size_t n_bytes = ki_codes_bytes(s.coder, N);
        for (const ki_scan_kernel *const *k = ki_scan_kernels(); *k; k++) {
            for (int t = 0; t < 3; t++) {
                uint8_t *bytes = NULL;
                ki_scan_kernel_force(*k);
                ki_threads_set((int[]){1, 2, 16}[t]);
                make(s.coder, &s.set.rows, &bytes);
                assert_memory_equal(bytes, s.bytes, n_bytes);
                ki_free(bytes);
            }
        }
        ki_scan_kernel_force(NULL);
        ki_threads_set(0);
        scan_index_release(&s);
    }
}

static void test_rows_are_in_the_list_of_their_centroid(void **state) {
    (void)state;
    scan_index s;
    scan_index_init(&s, scan_rows(N, DIM, 20, 21), N, DIM,
                    &(ki_coder_options){.n_lists = 13, .metric = KITH_SQEUCLIDEAN});
    const int64_t padded = s.coder->padded;
    int64_t n_nearest = 0;
    for (int64_t l = 0; l < 13; l++) {
        for (uint32_t at = s.codes.begin[l]; at < s.codes.begin[l + 1]; at++) {
            float turned[48];
            double own = 0, least = INFINITY;
            ki_coder_turn(s.coder, s.x + s.codes.row[at] * DIM, turned);
            for (int64_t m = 0; m < 13; m++) {
                double square = 0;
                for (int64_t k = 0; k < padded; k++)
                    square += pow((double)turned[k] - (double)s.coder->centroid[m * padded + k], 2);
                if (m == l) own = square;
                least = fmin(least, square);
            }
            n_nearest += own == least;
            assert_true(own <= least * 1.03 + 0.01); /* lists are ranked in bytes */
            assert_true(sqrt(own) <= (double)s.codes.radius[l] * (1 + 1e-6));
        }
    }
    assert_true(n_nearest > N * 95 / 100);
    scan_index_release(&s);
}

/* Estimates of all rows for a query from outside: without bias, and with the error that more bits make smaller. */
static double error_of(kith_metric metric, int bits, double *ret_bias) {
    enum { MANY = 3000 };
    kith_error err;
    scan_index s;
    scan_index_init(&s, scan_rows(MANY, 128, 50, 22), MANY, 128,
                    &(ki_coder_options){.n_lists = 8, .bits = bits, .metric = metric});
    float *query = scan_rows(20, 128, 50, 23);
    float turned[128];
    uint8_t *entry = ki_alloc(128, 4);
    ki_scan_query q = {.turned = turned, .entry = entry, .self = -1};
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < 20; i++) {
        assert_ok(ki_scan_query_set(&q, s.coder, query + i * 128, 128, i, &err), &err);
        for (int64_t l = 0; l < 8; l++) {
            double distance;
            const double base = ki_scan_query_base(&q, s.coder, ki_scan_kernel_best(), l, &distance);
            for (uint32_t at = s.codes.begin[l]; at < s.codes.begin[l + 1]; at++) {
                float score[KI_SCAN_BLOCK], row[128];
                uint32_t mask;
                ki_scan_kernel_best()->estimate(
                    &q.table, s.codes.blocks + at / 32 * ki_scan_block_bytes(32, bits), 1, 0, score, &mask);
                ki_coder_turn(s.coder, s.x + s.codes.row[at] * 128, row);
                double dot = 0, apart = 0, length = 0;
                for (int k = 0; k < 128; k++) {
                    dot += (double)row[k] * (double)turned[k];
                    apart += pow((double)row[k] - (double)turned[k], 2);
                    length += pow((double)row[k] - (double)s.coder->centroid[l * 128 + k], 2);
                }
                const double wanted = metric == KITH_SQEUCLIDEAN ? -apart / 2 : dot;
                /* in units of |q - c| |x - c| */
                const double off =
                    (base + (double)score[at % 32] - wanted) / (distance * sqrt(length) + 1e-9);
                sum += off;
                squares += off * off;
            }
        }
    }
    ki_free(entry);
    ki_free(query);
    scan_index_release(&s);
    *ret_bias = sum / (20 * MANY);
    return sqrt(squares / (20 * MANY));
}

static void test_estimates_err_as_the_theory_says(void **state) {
    (void)state;
    for (int m = 0; m < 3; m++) {
        double before = 1, bias;
        for (int bits = 1; bits <= 4; bits++) {
            const double error = error_of((kith_metric)m, bits, &bias);
            /* One bit: sqrt(pi / 2 - 1) / sqrt(127) = 0.067. */
            if (bits == 1 && !(error > 0.055 && error < 0.08))
                fail_msg("metric %d, 1 bit: an error of %g, wanted about 0.067", m, error);
            if (!(error < 0.62 * before)) fail_msg("metric %d, %d bits: %g after %g", m, bits, error, before);
            if (fabs(bias) > 0.004) fail_msg("metric %d, %d bits: a bias of %g", m, bits, bias);
            before = error;
        }
    }
}

static void test_empty_codes(void **state) {
    (void)state;
    kith_error err;
    scan_index s;
    uint8_t *bytes = NULL;
    ki_codes codes;
    scan_index_init(&s, scan_rows(N, DIM, 20, 24), N, DIM, &(ki_coder_options){.n_lists = 13});
    assert_ok(ki_codes_make(s.coder, &s.set.rows, 5, 0, NULL, &bytes, &err), &err);
    assert_ok(ki_codes_open(s.coder, bytes, ki_codes_bytes(s.coder, 0), &codes, &err), &err);
    assert_int_equal(codes.n, 0);
    ki_free(bytes);
    scan_index_release(&s);
}

/* Searches in whatever opens; answers may be wrong, memory may not. */
static void search_in(const scan_index *s, const ki_codes *codes) {
    kith_error err;
    kith_neighbor found[20], *all = NULL;
    int64_t n = 0;
    const ki_scan_segment segment = {codes, 0, codes->n};
    ki_scan_set set = s->set;
    set.segments = &segment;
    assert_ok(ki_scan_search(&set, s->x, 2, 10, &(ki_scan_options){.effort = {13, 20, 10, 0}}, found, &err),
              &err);
    assert_ok(ki_scan_range(&set, s->x, 0.5, NULL, &all, &n, &err), &err);
    ki_free(all);
}

static void test_damaged_bytes_are_one_error(void **state) {
    (void)state;
    scan_index s;
    scan_index_init(&s, scan_rows(70, 16, 5, 25), 70, 16, &(ki_coder_options){.n_lists = 13});
    const size_t n_bytes = ki_codes_bytes(s.coder, 70);
    ki_codes codes;
    for (size_t n = 0; n < n_bytes; n++) {
        kith_error err = {0};
        uint8_t *cut = ki_alloc(1, n);
        memcpy(cut, s.bytes, n);
        assert_int_equal(ki_codes_open(s.coder, cut, n, &codes, &err), KITH_EFORMAT);
        assert_true(err.message[0] != 0);
        ki_free(cut);
    }
    int64_t n_refused = 0;
    for (size_t i = 0; i < n_bytes; i++) {
        for (int bit = 0; bit < 8; bit++) {
            kith_error err = {0};
            s.bytes[i] ^= (uint8_t)(1 << bit);
            const kith_status status = ki_codes_open(s.coder, s.bytes, n_bytes, &codes, &err);
            assert_true(status == KITH_OK || status == KITH_EFORMAT);
            n_refused += status != KITH_OK;
            if (status == KITH_OK) search_in(&s, &codes);
            s.bytes[i] ^= (uint8_t)(1 << bit);
        }
    }
    assert_true(n_refused > 8 * 4 * 70); /* every bit of every row number, and more */
    kith_error err;
    assert_int_equal(ki_codes_open(s.coder, s.bytes + 8, n_bytes, &codes, &err), KITH_EINVAL);
    scan_index_release(&s);
}

static void test_codes_of_another_coder_are_refused(void **state) {
    (void)state;
    kith_error err;
    scan_index a, b;
    ki_codes codes;
    scan_index_init(&a, scan_rows(70, 16, 5, 26), 70, 16, &(ki_coder_options){.n_lists = 4, .seed = 1});
    scan_index_init(&b, scan_rows(70, 16, 5, 26), 70, 16, &(ki_coder_options){.n_lists = 4, .seed = 2});
    assert_int_equal(ki_codes_open(b.coder, a.bytes, ki_codes_bytes(a.coder, 70), &codes, &err),
                     KITH_EFORMAT);
    assert_non_null(strstr(err.message, "another coder"));
    scan_index_release(&a);
    scan_index_release(&b);
}

/* What an earlier program wrote opens today. */
static void test_files_of_the_corpus_open(void **state) {
    (void)state;
    for (int bits = 1; bits <= 5; bits += bits == 1 ? 1 : 3) {
        char path[1000];
        uint32_t n_coder = 0;
        uint8_t coder_bytes[8192], *bytes = ki_alloc(1, 8192);
        kith_error err;
        ki_coder *coder = NULL;
        ki_codes codes;
        snprintf(path, sizeof path, "%s/test/corpus/codes/ok_%d_bits", KITH_SOURCE_DIR, bits);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        assert_int_equal(fread(&n_coder, sizeof n_coder, 1, file), 1);
        assert_true(n_coder <= sizeof coder_bytes);
        assert_int_equal(fread(coder_bytes, 1, n_coder, file), n_coder);
        const size_t n_codes = fread(bytes, 1, 8192, file);
        fclose(file);
        assert_ok(ki_coder_from_bytes(coder_bytes, n_coder, &coder, &err), &err);
        assert_true(ki_coder_bits(coder) <= bits && coder->coded == 16); /* of 20 values */
        assert_ok(ki_codes_open(coder, bytes, n_codes, &codes, &err), &err);
        assert_int_equal(codes.n, 100);
        ki_coder_free(coder);
        ki_free(bytes);
    }
}

static kith_status refuse(void *user, const int64_t *row, int64_t n, float *dst, kith_error *err) {
    (void)user, (void)row, (void)n, (void)dst;
    return ki_fail(err, KITH_EIO, "the disk is gone");
}

static void test_errors_of_the_source_come_through(void **state) {
    (void)state;
    kith_error err;
    scan_index s;
    uint8_t *bytes = NULL;
    scan_index_init(&s, scan_rows(N, 16, 5, 27), N, 16, &(ki_coder_options){.n_lists = 4});
    const ki_row_source broken = {.n = N, .dim = 16, .read = refuse};
    assert_int_equal(ki_codes_make(s.coder, &broken, 0, N, NULL, &bytes, &err), KITH_EIO);
    assert_string_equal(err.message, "the disk is gone");
    assert_null(bytes);
    bool has_failed = true;
    for (int64_t n = 0; has_failed; n++) {
        ki_alloc_fail_after(n);
        const kith_status status = ki_codes_make(s.coder, &s.set.rows, 0, N, NULL, &bytes, &err);
        has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        assert_int_equal(status, has_failed ? KITH_ENOMEM : KITH_OK);
    }
    ki_free(bytes);
    scan_index_release(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_bytes_for_threads_and_kernels),
        cmocka_unit_test(test_rows_are_in_the_list_of_their_centroid),
        cmocka_unit_test(test_estimates_err_as_the_theory_says),
        cmocka_unit_test(test_empty_codes),
        cmocka_unit_test(test_damaged_bytes_are_one_error),
        cmocka_unit_test(test_codes_of_another_coder_are_refused),
        cmocka_unit_test(test_files_of_the_corpus_open),
        cmocka_unit_test(test_errors_of_the_source_come_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
