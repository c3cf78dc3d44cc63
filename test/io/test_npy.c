/* .npy: round trips, numpy's own files, cut files, refusals. */
#include "io/npy.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/file.h"
#include "kith/log.h"
#include "support/testing.h"

static const kith_dtype npy_types[] = {KITH_F32, KITH_F64, KITH_F16, KITH_I32, KITH_I64, KITH_U8};

static const char *path_of(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", testing_folder(), name);
    return path;
}

static kith_array make_array(kith_dtype dtype, int n_dims, const int64_t *dim) {
    kith_array array = {0};
    kith_error err = {0};
    assert_ok(kith_array_init(dtype, n_dims, dim, &array, &err), &err);
    const size_t bytes = (size_t)kith_array_count(&array) * kith_dtype_bytes(dtype);
    for (size_t i = 0; i < bytes; i++) ((unsigned char *)array.data)[i] = (unsigned char)(i * 37 + 11);
    return array;
}

static void assert_same(const kith_array *a, const kith_array *b) {
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->n_dims, b->n_dims);
    for (int i = 0; i < a->n_dims; i++) assert_int_equal(a->dim[i], b->dim[i]);
    assert_memory_equal(a->data, b->data, (size_t)kith_array_count(a) * kith_dtype_bytes(a->dtype));
}

static void test_round_trip(void **state) {
    (void)state;
    static const struct {
        int n_dims;
        int64_t dim[KITH_MAX_DIMS];
    } shapes[] = {{0, {0}},    {1, {7}},          {2, {3, 5}},
                  {2, {0, 4}}, {4, {2, 3, 4, 5}}, {8, {1, 2, 1, 2, 1, 2, 1, 2}}};
    for (size_t t = 0; t < N_ROWS(npy_types); t++) {
        for (size_t s = 0; s < N_ROWS(shapes); s++) {
            kith_error err = {0};
            kith_array out = make_array(npy_types[t], shapes[s].n_dims, shapes[s].dim), in = {0};
            assert_ok(kith_npy_write(path_of("a.npy"), &out, &err), &err);
            assert_ok(kith_npy_read(path_of("a.npy"), &in, &err), &err);
            assert_same(&out, &in);
            kith_array_release(&out);
            kith_array_release(&in);
        }
    }
}

/* The corpus files hold 0 … 5 as [2, 3], written by numpy in each type and byte order. */
static void test_numpy_files(void **state) {
    (void)state;
    static const char *const names[] = {"le_f4",    "be_f4", "le_f8",   "be_f8",        "le_f2", "be_f2",
                                        "le_i4",    "be_i4", "le_i8",   "be_i8",        "u1",    "version2",
                                        "version3", "i1",    "le_i2",   "be_i2",        "le_u2", "le_u4",
                                        "be_u4",    "le_u8", "fortran", "fortran_be_i2"};
    for (size_t i = 0; i < N_ROWS(names); i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/test/corpus/npy/ok_numpy_%s.npy", KITH_SOURCE_DIR, names[i]);
        kith_error err = {0};
        kith_array read = {0}, real = {0};
        assert_ok(kith_npy_read(path, &read, &err), &err);
        assert_int_equal(read.n_dims, 2);
        assert_int_equal(read.dim[0], 2);
        assert_int_equal(read.dim[1], 3);
        assert_ok(kith_array_convert(&read, KITH_F64, &real, &err), &err);
        for (int k = 0; k < 6; k++) {
            const double found = ((double *)real.data)[k];
            if (found != k) fail_msg("%s: element %d is %g, wanted %d", names[i], k, found, k);
        }
        kith_array_release(&read);
        kith_array_release(&real);
    }
}

static kith_array read_corpus(const char *name) {
    char path[4096];
    kith_error err = {0};
    kith_array array = {0};
    snprintf(path, sizeof path, "%s/test/corpus/npy/%s.npy", KITH_SOURCE_DIR, name);
    assert_ok(kith_npy_read(path, &array, &err), &err);
    return array;
}

/* Three axes in Fortran order, 0 … 23 in C order; and bool, which becomes 0 and 1. */
static void test_other_layouts(void **state) {
    (void)state;
    kith_array three = read_corpus("ok_numpy_fortran_three"), bools = read_corpus("ok_numpy_bool");
    assert_int_equal(three.dtype, KITH_I64);
    for (int i = 0; i < 24; i++) assert_int_equal(((int64_t *)three.data)[i], i);
    assert_int_equal(bools.dtype, KITH_U8);
    for (int i = 0; i < 6; i++) assert_int_equal(((uint8_t *)bools.data)[i], i > 0);
    kith_array_release(&three);
    kith_array_release(&bools);
}

/* What we write is what numpy writes, byte for byte. */
static void test_same_bytes_as_numpy(void **state) {
    (void)state;
    static const char *const names[] = {"le_f4", "le_f8",  "le_f2", "le_i4",  "le_i8",
                                        "u1",    "scalar", "empty", "one_dim"};
    for (size_t i = 0; i < N_ROWS(names); i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/test/corpus/npy/ok_numpy_%s.npy", KITH_SOURCE_DIR, names[i]);
        kith_error err = {0};
        kith_array array = {0};
        assert_ok(kith_npy_read(path, &array, &err), &err);
        assert_ok(kith_npy_write(path_of("b.npy"), &array, &err), &err);
        char *theirs = NULL, *ours = NULL;
        size_t n_theirs = 0, n_ours = 0;
        assert_ok(ki_file_read(path, 1 << 20, &theirs, &n_theirs, &err), &err);
        assert_ok(ki_file_read(path_of("b.npy"), 1 << 20, &ours, &n_ours, &err), &err);
        assert_int_equal(n_ours, n_theirs);
        assert_memory_equal(ours, theirs, n_ours);
        ki_free(theirs);
        ki_free(ours);
        kith_array_release(&array);
    }
}

static void test_truncated_anywhere(void **state) {
    (void)state;
    kith_error err = {0};
    kith_array array = make_array(KITH_F32, 2, (const int64_t[]){4, 3}), none = {0};
    char *bytes = NULL;
    size_t n = 0;
    assert_ok(kith_npy_write(path_of("whole.npy"), &array, &err), &err);
    assert_ok(ki_file_read(path_of("whole.npy"), 1 << 20, &bytes, &n, &err), &err);
    for (size_t cut = 0; cut < n; cut++) {
        char *exact = malloc(cut ? cut : 1);
        assert_non_null(exact);
        memcpy(exact, bytes, cut);
        const kith_status status = ki_npy_parse(exact, cut, "cut", &none, &err);
        free(exact);
        if (status != KITH_EFORMAT) fail_msg("cut at %zu of %zu: %s", cut, n, kith_status_name(status));
    }
    ki_free(bytes);
    kith_array_release(&array);
}

/* In a process of its own, which takes the pipe's name away once somebody has opened it to read. */
static pid_t write_from_child(const char *fifo, const char *bytes, size_t n) {
    const pid_t child = fork();
    if (child != 0) return child;
    const int fd = open(fifo, O_WRONLY);
    _exit(fd >= 0 && unlink(fifo) == 0 && write(fd, bytes, n) == (ssize_t)n ? 0 : 1);
}

/* A pipe is opened once: a second time its writer may be gone. Many times, because a second opening would often be
 * in time. */
static void test_reads_a_pipe(void **state) {
    (void)state;
    kith_error err = {0};
    kith_array array = make_array(KITH_I32, 1, (const int64_t[]){5}), in = {0};
    char fifo[256];
    snprintf(fifo, sizeof fifo, "%s/fifo", testing_folder());
    assert_ok(kith_npy_write(path_of("p.npy"), &array, &err), &err);
    char *bytes = testing_read(path_of("p.npy"));
    struct stat info;
    assert_int_equal(stat(path_of("p.npy"), &info), 0);
    for (int i = 0; i < 300; i++) {
        int status = 1;
        assert_int_equal(mkfifo(fifo, 0600), 0);
        const pid_t child = write_from_child(fifo, bytes, (size_t)info.st_size);
        assert_true(child > 0);
        assert_ok(kith_npy_read(fifo, &in, &err), &err);
        assert_same(&array, &in);
        kith_array_release(&in);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    free(bytes);
    kith_array_release(&array);
}

static void test_refusals(void **state) {
    (void)state;
    kith_error err = {0};
    kith_array array = {.dtype = KITH_BF16}, none = {0};
    uint16_t one = 0x3f80;
    array.data = &one;
    assert_int_equal(kith_npy_write(path_of("x.npy"), &array, &err), KITH_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "bfloat16"));
    assert_int_equal(access(path_of("x.npy"), F_OK), -1);
    array = (kith_array){.dtype = KITH_F32, .n_dims = 1, .dim = {-3}};
    assert_int_equal(kith_npy_write(path_of("x.npy"), &array, &err), KITH_EINVAL);
    array = (kith_array){.dtype = KITH_F32, .n_dims = 1, .dim = {3}};
    assert_int_equal(kith_npy_write(path_of("x.npy"), &array, &err), KITH_EINVAL);
    array = (kith_array){.dtype = (kith_dtype)99};
    assert_int_equal(kith_npy_write(path_of("x.npy"), &array, &err), KITH_EINVAL);
    assert_int_equal(kith_npy_read(path_of("absent.npy"), &none, &err), KITH_EIO);
    assert_non_null(strstr(err.message, "absent.npy: No such file"));
    assert_int_equal(kith_npy_read(testing_folder(), &none, &err), KITH_EIO);
    assert_non_null(strstr(err.message, "folder"));
}

static void test_allocation_failures(void **state) {
    (void)state;
    kith_error err = {0};
    kith_array array = make_array(KITH_F32, 2, (const int64_t[]){4, 3});
    kith_memory_stats before, after;
    kith_memory_stats_get(&before);
    bool wrote = false, read = false;
    for (int n = 0; n < 50 && !(wrote && read); n++) {
        kith_array in = {0};
        ki_alloc_fail_after(n);
        const kith_status out = kith_npy_write(path_of("t.npy"), &array, &err);
        wrote = !ki_alloc_failed();
        assert_int_equal(out, wrote ? KITH_OK : KITH_ENOMEM);
        ki_alloc_fail_after(-1);
        if (!wrote) assert_int_equal(access(path_of("t.npy"), F_OK), -1);
        if (!wrote) continue;
        for (int m = 0; m < 50 && !read; m++) {
            ki_alloc_fail_after(m);
            const kith_status got = kith_npy_read(path_of("t.npy"), &in, &err);
            read = !ki_alloc_failed();
            ki_alloc_fail_after(-1);
            assert_int_equal(got, read ? KITH_OK : KITH_ENOMEM);
        }
        kith_array_release(&in);
    }
    assert_true(wrote && read);
    kith_memory_stats_get(&after);
    assert_int_equal(after.live_bytes, before.live_bytes);
    kith_array_release(&array);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),         cmocka_unit_test(test_numpy_files),
        cmocka_unit_test(test_other_layouts),      cmocka_unit_test(test_same_bytes_as_numpy),
        cmocka_unit_test(test_truncated_anywhere), cmocka_unit_test(test_reads_a_pipe),
        cmocka_unit_test(test_refusals),           cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests_name("io/npy", tests, NULL, NULL);
}
