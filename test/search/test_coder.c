/* Coders: the rotation, the lists, and bytes there and back, whole and damaged. */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "scan_rows.h"
#include "search/scan/coder_parts.h"

static ki_coder *fit(const ki_coder_options *options, int64_t n, int64_t dim) {
    kith_error err;
    ki_coder *coder = NULL;
    float *x = scan_rows(n, dim, 30, 10);
    const ki_row_source rows = {.n = n, .dim = dim, .data = x};
    assert_ok(ki_coder_fit(&rows, options, &coder, &err), &err);
    ki_free(x);
    return coder;
}

static ki_buffer bytes_of(const ki_coder *coder) {
    ki_buffer buffer = {0};
    ki_coder_to_bytes(coder, &buffer);
    assert_int_equal(buffer.status, KITH_OK);
    return buffer;
}

static void test_a_rotation_keeps_lengths_and_spreads(void **state) {
    (void)state;
    static const int64_t DIMS[] = {16, 48, 128, 144, 240, 512, 768};
    for (size_t d = 0; d < N_ROWS(DIMS); d++) {
        const int64_t dim = DIMS[d];
        ki_rotation rotation = {0};
        kith_error err;
        float x[768] = {0}, y[768] = {0};
        assert_ok(ki_rotation_init(&rotation, dim, 7, &err), &err);
        x[0] = 3;
        y[dim - 1] = 1, y[0] = 1;
        ki_rotation_apply(&rotation, x);
        ki_rotation_apply(&rotation, y);
        double xx = 0, xy = 0;
        float most = 0;
        for (int64_t k = 0; k < dim; k++) {
            xx += (double)x[k] * (double)x[k];
            xy += (double)x[k] * (double)y[k];
            most = fmaxf(most, fabsf(x[k]));
        }
        if (fabs(xx - 9) > 1e-4 || fabs(xy - 3) > 1e-4)
            fail_msg("dim %lld: %g and %g, wanted 9 and 3", (long long)dim, xx, xy);
        /* One axis becomes values of about 3 / sqrt(dim): none holds much of it. */
        if (dim > 16 && (double)most > 3 * 5.5 / sqrt((double)dim))
            fail_msg("dim %lld: a value of %g of 3", (long long)dim, (double)most);
        ki_rotation_undo(&rotation, x);
        for (int64_t k = 0; k < dim; k++) {
            if (fabsf(x[k] - (k == 0 ? 3.0F : 0.0F)) > 1e-5F)
                fail_msg("dim %lld: value %lld comes back as %g", (long long)dim, (long long)k, (double)x[k]);
        }
        ki_rotation_release(&rotation);
    }
}

static void test_the_same_coder_for_any_number_of_threads(void **state) {
    (void)state;
    const ki_coder_options options = {.n_lists = 40, .bits = 2};
    ki_buffer wanted = {0};
    for (int t = 0; t < 3; t++) {
        ki_threads_set((int[]){1, 2, 16}[t]);
        ki_coder *coder = fit(&options, 3000, 24);
        ki_buffer bytes = bytes_of(coder);
        if (t == 0) {
            wanted = bytes;
        } else {
            assert_int_equal(bytes.n, wanted.n);
            assert_memory_equal(bytes.data, wanted.data, wanted.n);
            ki_buffer_release(&bytes);
        }
        ki_coder_free(coder);
    }
    ki_threads_set(0);
    ki_buffer_release(&wanted);
}

/* Rows of 64 values that lie in a space of 16: bits go where rows differ. */
static void test_bits_go_to_the_axes_that_vary(void **state) {
    (void)state;
    enum { N = 2000, DIM = 64, RANK = 16 };
    kith_error err;
    ki_coder *coder = NULL, *more = NULL, *flat = NULL;
    float *low = scan_rows(N, RANK, 40, 12), *x = ki_alloc(N * DIM, sizeof *x), map[RANK * DIM];
    ki_rng rng = ki_rng_at(8, KI_RNG_TEST, 0, 0);
    for (int i = 0; i < RANK * DIM; i++) map[i] = (float)ki_rng_normal(&rng);
    for (int64_t i = 0; i < N * DIM; i++) {
        x[i] = 0;
        for (int64_t r = 0; r < RANK; r++) x[i] += low[i / DIM * RANK + r] * map[r * DIM + i % DIM];
    }
    const ki_row_source rows = {.n = N, .dim = DIM, .data = x};
    const ki_coder_options options = {.metric = KITH_SQEUCLIDEAN, .n_lists = 20};
    assert_ok(ki_coder_fit(&rows, &options, &coder, &err), &err);
    assert_int_equal(coder->coded, RANK);
    assert_int_equal(coder->bits, 4); /* 64 bits a row */
    assert_int_equal(ki_coder_bits(coder), 1);
    assert_ok(ki_coder_with_bits(coder, 2, &more, &err), &err);
    assert_int_equal(more->coded, RANK);
    assert_int_equal(more->bits, 8);
    /* Turning keeps distances. */
    float a[DIM], b[DIM];
    double turned = 0, given = 0;
    ki_coder_turn(coder, x, a);
    ki_coder_turn(coder, x + DIM, b);
    for (int k = 0; k < DIM; k++) {
        turned += pow((double)a[k] - (double)b[k], 2);
        given += pow((double)x[k] - (double)x[DIM + k], 2);
    }
    if (fabs(turned - given) > 1e-4 * given) fail_msg("%g, wanted %g", turned, given);
    /* Rows that vary everywhere alike keep all their values. */
    float *wide = scan_rows(N, DIM, 40, 13);
    const ki_row_source other = {.n = N, .dim = DIM, .data = wide};
    assert_ok(ki_coder_fit(&other, &options, &flat, &err), &err);
    assert_int_equal(flat->coded, DIM);
    assert_null(flat->axes);
    ki_coder_free(coder);
    ki_coder_free(more);
    ki_coder_free(flat);
    ki_free(low);
    ki_free(x);
    ki_free(wide);
}

static void test_bytes_there_and_back(void **state) {
    (void)state;
    kith_error err;
    const ki_coder_options options = {.metric = KITH_SQEUCLIDEAN, .n_lists = 33, .bits = 3, .seed = 9};
    ki_coder *coder = fit(&options, 500, 20), *back = NULL;
    ki_buffer bytes = bytes_of(coder);
    assert_ok(ki_coder_from_bytes(bytes.data, bytes.n, &back, &err), &err);
    assert_int_equal(ki_coder_metric(back), KITH_SQEUCLIDEAN);
    assert_int_equal(ki_coder_dim(back), 20);
    assert_int_equal(ki_coder_bits(back), 3);
    assert_int_equal(ki_coder_lists(back), 33);
    assert_true(ki_coder_mark(back) == ki_coder_mark(coder));
    assert_int_equal(ki_coder_memory(back), ki_coder_memory(coder));
    float x[20], a[32], b[32];
    for (int k = 0; k < 20; k++) x[k] = (float)k - 7;
    ki_coder_turn(coder, x, a);
    ki_coder_turn(back, x, b);
    assert_memory_equal(a, b, sizeof a);
    ki_coder *other = NULL;
    assert_ok(ki_coder_with_bits(coder, 4, &other, &err), &err);
    assert_int_equal(ki_coder_bits(other), 4);
    assert_false(ki_coder_mark(other) == ki_coder_mark(coder));
    ki_coder_free(other);
    ki_coder_free(back);
    ki_coder_free(coder);
    ki_buffer_release(&bytes);
}

static void test_damaged_bytes_are_one_error(void **state) {
    (void)state;
    const ki_coder_options options = {.n_lists = 3};
    ki_coder *coder = fit(&options, 100, 5);
    ki_buffer bytes = bytes_of(coder);
    for (size_t n = 0; n < bytes.n; n++) {
        kith_error err = {0};
        ki_coder *back = NULL;
        char *cut = ki_alloc(1, n); /* so that a sanitizer sees every byte beyond */
        memcpy(cut, bytes.data, n);
        assert_int_equal(ki_coder_from_bytes(cut, n, &back, &err), KITH_EFORMAT);
        assert_null(back);
        assert_true(err.message[0] != 0);
        ki_free(cut);
    }
    int64_t n_refused = 0;
    for (size_t i = 0; i < bytes.n; i++) {
        for (int bit = 0; bit < 8; bit++) {
            kith_error err = {0};
            ki_coder *back = NULL;
            bytes.data[i] = (char)(bytes.data[i] ^ 1 << bit);
            const kith_status status = ki_coder_from_bytes(bytes.data, bytes.n, &back, &err);
            /* What still is a coder is another one. */
            if (status == KITH_OK) assert_false(ki_coder_mark(back) == ki_coder_mark(coder));
            n_refused += status == KITH_EFORMAT;
            assert_true(status == KITH_OK || status == KITH_EFORMAT);
            bytes.data[i] = (char)(bytes.data[i] ^ 1 << bit);
            ki_coder_free(back);
        }
    }
    assert_true(n_refused > (int64_t)(bytes.n - 64) * 8); /* every bit of the centroids, and more */
    ki_coder_free(coder);
    ki_buffer_release(&bytes);
}

static void test_what_cannot_be_fitted(void **state) {
    (void)state;
    kith_error err;
    ki_coder *coder = NULL;
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const ki_row_source rows = {.n = 4, .dim = 2, .data = x}, none = {.n = 0, .dim = 2, .data = x};
    assert_int_equal(ki_coder_fit(&none, &(ki_coder_options){0}, &coder, &err), KITH_EINVAL);
    assert_int_equal(ki_coder_fit(&rows, &(ki_coder_options){.bits = 9}, &coder, &err), KITH_EINVAL);
    assert_int_equal(ki_coder_fit(&rows, &(ki_coder_options){.n_lists = 5}, &coder, &err), KITH_EINVAL);
    assert_null(coder);
}

static void test_a_failing_allocation_is_one_error(void **state) {
    (void)state;
    float *x = scan_rows(200, 20, 5, 11);
    const ki_row_source rows = {.n = 200, .dim = 20, .data = x};
    bool has_failed = true;
    for (int64_t n = 0; has_failed; n++) {
        kith_error err;
        ki_coder *coder = NULL;
        ki_alloc_fail_after(n);
        const kith_status status = ki_coder_fit(&rows, &(ki_coder_options){.n_lists = 4}, &coder, &err);
        has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (has_failed) assert_int_equal(status, KITH_ENOMEM);
        ki_coder_free(coder);
    }
    ki_free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_rotation_keeps_lengths_and_spreads),
        cmocka_unit_test(test_the_same_coder_for_any_number_of_threads),
        cmocka_unit_test(test_bits_go_to_the_axes_that_vary),
        cmocka_unit_test(test_bytes_there_and_back),
        cmocka_unit_test(test_damaged_bytes_are_one_error),
        cmocka_unit_test(test_what_cannot_be_fitted),
        cmocka_unit_test(test_a_failing_allocation_is_one_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
