/* Rows of .npy files, read one by one. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/npy_rows.h"
#include "support/testing.h"

static const char *path_of(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", testing_folder(), name);
    return path;
}

/* [n, dim] with (row * 10 + column) / 4, exact also as float16. */
static void write_rows(const char *name, kith_dtype dtype, int64_t n, int64_t dim) {
    kith_error err;
    kith_array wide, array;
    assert_ok(kith_array_init(KITH_F32, 2, (int64_t[]){n, dim}, &wide, &err), &err);
    for (int64_t i = 0; i < n * dim; i++) ((float *)wide.data)[i] = (float)(10 * (i / dim) + i % dim) / 4;
    assert_ok(kith_array_convert(&wide, dtype, &array, &err), &err);
    assert_ok(kith_npy_write(path_of(name), &array, &err), &err);
    kith_array_release(&wide);
    kith_array_release(&array);
}

static void test_rows(void **state) {
    (void)state;
    static const kith_dtype types[] = {KITH_F32, KITH_F16};
    for (size_t t = 0; t < N_ROWS(types); t++) {
        kith_error err;
        ki_npy_rows *rows = NULL;
        float x[8];
        write_rows("x.npy", types[t], 5, 7);
        assert_ok(ki_npy_rows_open(path_of("x.npy"), &rows, &err), &err);
        assert_int_equal(ki_npy_rows_count(rows), 5);
        assert_int_equal(ki_npy_rows_dim(rows), 7);
        assert_int_equal(ki_npy_rows_dtype(rows), types[t]);
        for (int64_t row = 4; row >= 0; row--) {
            x[7] = -1;
            assert_ok(ki_npy_rows_read(rows, row, x, &err), &err);
            for (int64_t i = 0; i < 7; i++) {
                const float wanted = (float)(10 * row + i) / 4;
                if (x[i] != wanted)
                    fail_msg("%s row %d: %g at %d, wanted %g", kith_dtype_name(types[t]), (int)row,
                             (double)x[i], (int)i, (double)wanted);
            }
            assert_true(x[7] == -1); /* nothing behind the row is written */
        }
        assert_int_equal(ki_npy_rows_read(rows, 5, x, &err), KITH_EINVAL);
        assert_int_equal(ki_npy_rows_read(rows, -1, x, &err), KITH_EINVAL);
        ki_npy_rows_free(rows);
    }
    ki_npy_rows_free(NULL);
}

/* Many rows at once are those that are read one by one. */
static void test_gathered(void **state) {
    (void)state;
    enum { N = 150, DIM = 7, MOST = 5 };
    static const kith_dtype types[] = {KITH_F32, KITH_F16};
    for (size_t t = 0; t < N_ROWS(types); t++) {
        kith_error err;
        ki_npy_rows *rows = NULL;
        int64_t row[N];
        float x[N * DIM + 1], one[DIM];
        write_rows("many.npy", types[t], MOST, DIM);
        assert_ok(ki_npy_rows_open(path_of("many.npy"), &rows, &err), &err);
        for (int i = 0; i < N; i++) row[i] = (i * 3 + i / 5) % MOST;
        x[N * DIM] = -1;
        if (!ki_npy_rows_gather(rows, row, N, x)) skip(); /* a sandbox that forbids the call */
        for (int i = 0; i < N; i++) {
            assert_ok(ki_npy_rows_read(rows, row[i], one, &err), &err);
            if (memcmp(one, x + i * DIM, sizeof one) != 0)
                fail_msg("%s, row %d of %d: it begins with %g, wanted %g", kith_dtype_name(types[t]), i, N,
                         (double)x[i * DIM], (double)one[0]);
        }
        assert_true(x[N * DIM] == -1);
        row[N - 1] = MOST;
        assert_false(ki_npy_rows_gather(rows, row, N, x));
        row[N - 1] = -1;
        assert_false(ki_npy_rows_gather(rows, row, N, x));
        assert_int_equal(truncate(path_of("many.npy"), 0), 0);
        assert_false(ki_npy_rows_gather(rows, row, 1, x));
        ki_npy_rows_free(rows);
    }
}

/* A file that somebody shortens is an error, not the end of the process. */
static void test_a_file_that_shrinks(void **state) {
    (void)state;
    kith_error err;
    ki_npy_rows *rows = NULL;
    float x[7];
    write_rows("short.npy", KITH_F32, 5, 7);
    assert_ok(ki_npy_rows_open(path_of("short.npy"), &rows, &err), &err);
    assert_int_equal(truncate(path_of("short.npy"), 128 + 7 * 4 * 2), 0);
    assert_ok(ki_npy_rows_read(rows, 1, x, &err), &err);
    assert_int_equal(ki_npy_rows_read(rows, 2, x, &err), KITH_EIO);
    if (!strstr(err.message, "short.npy")) fail_msg("no file name in '%s'", err.message);
    ki_npy_rows_free(rows);
}

static void write_header(const char *name, const char *dict, size_t n_data) {
    char head[128];
    FILE *file = fopen(path_of(name), "wb");
    assert_non_null(file);
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(head + 10, dict, strlen(dict));
    head[127] = '\n';
    assert_int_equal(fwrite(head, 1, sizeof head, file), sizeof head);
    for (size_t i = 0; i < n_data; i++) fputc(0, file);
    fclose(file);
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *dict;
        size_t n_data;
        kith_status status;
        const char *message, *hint;
    } rows[] = {
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}", 48, KITH_EUNSUPPORTED,
         "holds float64; wanted float32 or float16", "x.astype('float32')"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3)}", 24, KITH_EUNSUPPORTED,
         "holds int32; wanted float32 or float16", "x.astype('float32')"},
        {"{'descr': '<U2', 'fortran_order': False, 'shape': (2, 3)}", 48, KITH_EUNSUPPORTED,
         "holds text; wanted float32 or float16", "x.astype('float32')"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", 24, KITH_ESHAPE,
         "has 1 dimensions; wanted 2", ""},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3)}", 24, KITH_ESHAPE,
         "has 3 dimensions; wanted 2", ""},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", 24, KITH_EUNSUPPORTED,
         "is in Fortran order", "ascontiguousarray"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3)}", 24, KITH_EUNSUPPORTED,
         "another byte order", "astype('=f4')"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 20, KITH_EFORMAT, "bad.npy", ""},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        ki_npy_rows *made = NULL;
        write_header("bad.npy", rows[i].dict, rows[i].n_data);
        assert_int_equal(ki_npy_rows_open(path_of("bad.npy"), &made, &err), rows[i].status);
        assert_null(made);
        if (!strstr(err.message, rows[i].message) || !strstr(err.hint, rows[i].hint))
            fail_msg("%s: '%s' (%s), wanted '%s' (%s)", rows[i].dict, err.message, err.hint, rows[i].message,
                     rows[i].hint);
    }
    kith_error err = {0};
    ki_npy_rows *made = NULL;
    assert_int_equal(ki_npy_rows_open(path_of("none.npy"), &made, &err), KITH_EIO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_gathered),
        cmocka_unit_test(test_a_file_that_shrinks),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("io/npy_rows", tests, NULL, testing_tear_down);
}
