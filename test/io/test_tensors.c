/* safetensors: round trips, equal bytes, cut files, refusals. */
#include "io/tensors.h"

#include <signal.h>
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

static const char *path_of(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", testing_folder(), name);
    return path;
}

static const struct {
    const char *name;
    kith_dtype dtype;
    int n_dims;
    int64_t dim[KITH_MAX_DIMS];
} rows[] = {
    {"bytes", KITH_U8, 1, {3}},
    {"half", KITH_F16, 2, {3, 1}},
    {"brain", KITH_BF16, 1, {5}},
    {"float", KITH_F32, 3, {2, 1, 3}},
    {"int", KITH_I32, 1, {1}},
    {"scalar", KITH_F32, 0, {0}},
    {"long", KITH_I64, 1, {2}},
    {"double", KITH_F64, 2, {2, 2}},
    {"empty", KITH_F32, 2, {0, 7}},
    {"größe \"x\"\n", KITH_U8, 1, {1}},
    {"", KITH_F32, 8, {1, 1, 1, 1, 1, 1, 1, 2}},
};
enum { N_TENSORS = N_ROWS(rows) };

static unsigned char stuff[64];

static kith_array row_array(size_t i) {
    for (size_t k = 0; k < sizeof stuff; k++) stuff[k] = (unsigned char)(k * 29 + 3);
    kith_array array = {.dtype = rows[i].dtype, .n_dims = rows[i].n_dims, .data = stuff + 8 * (i % 2)};
    memcpy(array.dim, rows[i].dim, sizeof array.dim);
    return array;
}

static kith_status write_rows(const char *path, kith_error *err) {
    kith_tensors_writer *writer = NULL;
    kith_status status = KITH_OK;
    KI_CHECK(kith_tensors_writer_new(&writer, err));
    KI_CHECK(kith_tensors_writer_metadata(writer, "backbone", "googlenet", err));
    KI_CHECK(kith_tensors_writer_metadata(writer, "words", "tab\t quote\" \xc3\xa9", err));
    for (size_t i = 0; i < N_TENSORS; i++) {
        const kith_array array = row_array(i);
        KI_CHECK(kith_tensors_writer_add(writer, rows[i].name, &array, err));
    }
    KI_CHECK(kith_tensors_writer_save(writer, path, err));
done:
    kith_tensors_writer_free(writer);
    return status;
}

static void test_round_trip(void **state) {
    (void)state;
    kith_error err = {0};
    kith_tensors *tensors = NULL;
    assert_ok(write_rows(path_of("a.safetensors"), &err), &err);
    assert_ok(kith_tensors_open(path_of("a.safetensors"), &tensors, &err), &err);
    assert_int_equal(kith_tensors_count(tensors), N_TENSORS);
    for (size_t i = 0; i < N_TENSORS; i++) {
        kith_array view = {0};
        const kith_array wanted = row_array(i);
        assert_ok(kith_tensors_get(tensors, rows[i].name, &view, &err), &err);
        assert_int_equal(view.dtype, wanted.dtype);
        assert_int_equal(view.n_dims, wanted.n_dims);
        for (int d = 0; d < view.n_dims; d++) assert_int_equal(view.dim[d], wanted.dim[d]);
        const size_t bytes = (size_t)kith_array_count(&view) * kith_dtype_bytes(view.dtype);
        assert_memory_equal(view.data, wanted.data, bytes);
        assert_int_equal((uintptr_t)view.data % kith_dtype_bytes(view.dtype), 0);
    }
    assert_string_equal(kith_tensors_metadata(tensors, "backbone"), "googlenet");
    assert_string_equal(kith_tensors_metadata(tensors, "words"), "tab\t quote\" \xc3\xa9");
    assert_null(kith_tensors_metadata(tensors, "absent"));
    assert_null(kith_tensors_name(tensors, -1));
    assert_null(kith_tensors_name(tensors, N_TENSORS));
    kith_tensors_free(tensors);
}

static void test_same_calls_same_bytes(void **state) {
    (void)state;
    kith_error err = {0};
    char *a = NULL, *b = NULL;
    size_t n_a = 0, n_b = 0;
    assert_ok(write_rows(path_of("a.safetensors"), &err), &err);
    assert_ok(ki_file_read(path_of("a.safetensors"), 1 << 20, &a, &n_a, &err), &err);
    assert_ok(write_rows(path_of("b.safetensors"), &err), &err);
    assert_ok(ki_file_read(path_of("b.safetensors"), 1 << 20, &b, &n_b, &err), &err);
    assert_int_equal(n_a, n_b);
    assert_memory_equal(a, b, n_a);
    ki_free(a);
    ki_free(b);
}

static void test_nothing_inside(void **state) {
    (void)state;
    kith_error err = {0};
    kith_tensors_writer *writer = NULL;
    kith_tensors *tensors = NULL;
    kith_array view = {0};
    assert_ok(kith_tensors_writer_new(&writer, &err), &err);
    assert_ok(kith_tensors_writer_save(writer, path_of("n.safetensors"), &err), &err);
    kith_tensors_writer_free(writer);
    assert_ok(kith_tensors_open(path_of("n.safetensors"), &tensors, &err), &err);
    assert_int_equal(kith_tensors_count(tensors), 0);
    assert_null(kith_tensors_metadata(tensors, "any"));
    assert_int_equal(kith_tensors_get(tensors, "any", &view, &err), KITH_ENOTFOUND);
    kith_tensors_free(tensors);
}

/* Names come in the order of their place, whatever the header's order; an unaligned tensor is
 * handed out aligned. The files are made by test/corpus/make_corpus.py. */
static void test_places(void **state) {
    (void)state;
    kith_error err = {0};
    kith_tensors *tensors = NULL;
    kith_array view = {0};
    const char *folder = KITH_SOURCE_DIR "/test/corpus/safetensors/";
    char path[4096];
    snprintf(path, sizeof path, "%sok_header_order.safetensors", folder);
    assert_ok(kith_tensors_open(path, &tensors, &err), &err);
    assert_string_equal(kith_tensors_name(tensors, 0), "first");
    assert_string_equal(kith_tensors_name(tensors, 1), "second");
    kith_tensors_free(tensors);
    snprintf(path, sizeof path, "%sok_unaligned.safetensors", folder);
    assert_ok(kith_tensors_open(path, &tensors, &err), &err);
    assert_ok(kith_tensors_get(tensors, "a", &view, &err), &err);
    assert_int_equal((uintptr_t)view.data % 4, 0);
    assert_true(((const float *)view.data)[0] == 1.5f && ((const float *)view.data)[1] == -2.0f);
    kith_tensors_free(tensors);
}

static void test_truncated_anywhere(void **state) {
    (void)state;
    kith_error err = {0};
    char *bytes = NULL;
    size_t n = 0;
    kith_tensors *none = NULL;
    assert_ok(write_rows(path_of("a.safetensors"), &err), &err);
    assert_ok(ki_file_read(path_of("a.safetensors"), 1 << 20, &bytes, &n, &err), &err);
    for (size_t cut = 0; cut < n; cut++) {
        char *exact = malloc(cut ? cut : 1);
        assert_non_null(exact);
        memcpy(exact, bytes, cut);
        const kith_status status = ki_tensors_parse(exact, cut, "cut", &none, &err);
        free(exact);
        if (status != KITH_EFORMAT) fail_msg("cut at %zu of %zu: %s", cut, n, kith_status_name(status));
    }
    ki_free(bytes);
}

static void test_unknown_name(void **state) {
    (void)state;
    kith_error err = {0};
    kith_tensors *tensors = NULL;
    kith_array view = {0};
    assert_ok(write_rows(path_of("a.safetensors"), &err), &err);
    assert_ok(kith_tensors_open(path_of("a.safetensors"), &tensors, &err), &err);
    assert_int_equal(kith_tensors_get(tensors, "flaot", &view, &err), KITH_ENOTFOUND);
    assert_non_null(strstr(err.message, "a.safetensors: unknown tensor 'flaot'"));
    assert_string_equal(err.hint, "did you mean 'float'?");
    kith_tensors_free(tensors);
}

static void test_writer_refuses(void **state) {
    (void)state;
    kith_error err = {0};
    kith_tensors_writer *writer = NULL;
    kith_array array = row_array(0);
    assert_ok(kith_tensors_writer_new(&writer, &err), &err);
    assert_ok(kith_tensors_writer_add(writer, "a", &array, &err), &err);
    assert_int_equal(kith_tensors_writer_add(writer, "a", &array, &err), KITH_EINVAL);
    assert_string_equal(err.message, "tensor 'a' was added before");
    assert_int_equal(kith_tensors_writer_add(writer, "__metadata__", &array, &err), KITH_EINVAL);
    assert_int_equal(kith_tensors_writer_add(writer, "\xff", &array, &err), KITH_EINVAL);
    assert_int_equal(kith_tensors_writer_metadata(writer, "k", "\xed\xa0\x80", &err), KITH_EINVAL);
    assert_ok(kith_tensors_writer_metadata(writer, "k", "v", &err), &err);
    assert_int_equal(kith_tensors_writer_metadata(writer, "k", "w", &err), KITH_EINVAL);
    array.dim[0] = -1;
    assert_int_equal(kith_tensors_writer_add(writer, "b", &array, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "tensor 'b'"));
    assert_int_equal(kith_tensors_writer_save(writer, "/dev/full", &err), KITH_EIO);
    assert_string_equal(err.message, "cannot write /dev/full: No space left on device");
    kith_tensors_writer_free(writer);
}

static void test_allocation_failures(void **state) {
    (void)state;
    kith_error err = {0};
    kith_memory_stats before, after;
    char path[300];
    snprintf(path, sizeof path, "%s/ok_unaligned.safetensors", KITH_SOURCE_DIR "/test/corpus/safetensors");
    kith_memory_stats_get(&before);
    bool passed = false;
    int n = 0;
    unlink(path_of("t.safetensors"));
    for (; !passed && n < 200; n++) {
        ki_alloc_fail_after(n);
        const kith_status status = write_rows(path_of("t.safetensors"), &err);
        passed = !ki_alloc_failed();
        ki_alloc_fail_after(-1);
        assert_int_equal(status, passed ? KITH_OK : KITH_ENOMEM);
        assert_int_equal(access(path_of("t.safetensors"), F_OK), passed ? 0 : -1);
    }
    assert_true(passed && n > 10);
    for (passed = false, n = 0; !passed && n < 200; n++) {
        kith_tensors *tensors = NULL;
        ki_alloc_fail_after(n);
        const kith_status status = kith_tensors_open(path, &tensors, &err);
        passed = !ki_alloc_failed();
        ki_alloc_fail_after(-1);
        assert_int_equal(status, passed ? KITH_OK : KITH_ENOMEM);
        kith_tensors_free(tensors);
    }
    assert_true(passed && n >= 5);
    kith_memory_stats_get(&after);
    assert_int_equal(after.live_bytes, before.live_bytes);
}

/* ---- seals ---- */

static kith_status seal_file(const char *path, bool reversed, kith_error *err) {
    static const float x[3] = {1, 2, 3};
    static const int64_t y[2] = {4, 5};
    const kith_array arrays[2] = {{KITH_F32, 1, {3}, (void *)(uintptr_t)x},
                                  {KITH_I64, 1, {2}, (void *)(uintptr_t)y}};
    static const char *const names[2] = {"x", "y"}, *const keys[2] = {"one", "two"};
    kith_tensors_writer *writer = NULL;
    kith_status status = kith_tensors_writer_new(&writer, err);
    for (int i = 0; status == KITH_OK && i < 2; i++) {
        const int k = reversed ? 1 - i : i;
        status = kith_tensors_writer_add(writer, names[k], &arrays[k], err);
        if (status == KITH_OK) status = kith_tensors_writer_metadata(writer, keys[k], "value", err);
    }
    if (status == KITH_OK) status = ki_tensors_writer_seal(writer, "seal", err);
    if (status == KITH_OK) status = kith_tensors_writer_save(writer, path, err);
    kith_tensors_writer_free(writer);
    return status;
}

static void test_seals(void **state) {
    (void)state;
    kith_error err = {0};
    char *bytes = NULL;
    size_t n = 0;
    for (int reversed = 0; reversed < 2; reversed++) {
        kith_tensors *tensors = NULL;
        assert_ok(seal_file(path_of("sealed"), reversed, &err), &err);
        assert_ok(kith_tensors_open(path_of("sealed"), &tensors, &err), &err);
        assert_int_equal(ki_tensors_seal(tensors, "seal"), KI_SEAL_GOOD);
        assert_int_equal(ki_tensors_seal(tensors, "other"), KI_SEAL_NONE);
        kith_tensors_free(tensors);
    }
    /* Any changed byte: the file is refused, or its seal is broken or gone. Blanks behind the header mean nothing. */
    assert_ok(ki_file_read(path_of("sealed"), 1 << 20, &bytes, &n, &err), &err);
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == ' ') continue;
        for (int change = 1; change < 256; change *= 2) {
            kith_tensors *tensors = NULL;
            bytes[i] = (char)(bytes[i] ^ change);
            if (ki_tensors_parse(bytes, n, "changed", &tensors, NULL) == KITH_OK &&
                ki_tensors_seal(tensors, "seal") == KI_SEAL_GOOD)
                fail_msg("byte %zu of %zu, change %d", i, n, change);
            kith_tensors_free(tensors);
            bytes[i] = (char)(bytes[i] ^ change);
        }
    }
    ki_free(bytes);
}

/* A real file by another writer: GoogLeNet's weights. */
static void test_googlenet(void **state) {
    (void)state;
    const char *path = testing_shared("weights/googlenet_bvlc.safetensors");
    if (!path) skip();
    kith_error err = {0};
    kith_tensors *tensors = NULL;
    kith_array view = {0};
    assert_ok(kith_tensors_open(path, &tensors, &err), &err);
    assert_int_equal(kith_tensors_count(tensors), 116);
    int64_t n_parameters = 0;
    for (int64_t i = 0; i < 116; i++) {
        assert_ok(kith_tensors_get(tensors, kith_tensors_name(tensors, i), &view, &err), &err);
        assert_int_equal(view.dtype, KITH_F32);
        n_parameters += kith_array_count(&view);
    }
    assert_int_equal(n_parameters, 6998552);
    assert_ok(kith_tensors_get(tensors, "conv1.conv.weight", &view, &err), &err);
    assert_int_equal(view.n_dims, 4);
    assert_int_equal(view.dim[0], 64);
    assert_int_equal(view.dim[1], 3);
    assert_int_equal(view.dim[3], 7);
    assert_string_equal(kith_tensors_metadata(tensors, "layout"), "OIHW");
    kith_tensors_free(tensors);
}

/* One float tensor of n values, written in place: what no writer of ours does. */
static void write_in_place(const char *path, int64_t n) {
    char header[128];
    int length = snprintf(header + 8, sizeof header - 8,
                          "{\"a\":{\"dtype\":\"F32\",\"shape\":[%lld],\"data_offsets\":[0,%lld]}}",
                          (long long)n, (long long)n * 4);
    const uint64_t header_bytes = (uint64_t)length;
    memcpy(header, &header_bytes, 8);
    float *values = calloc((size_t)n, sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < n; i++) values[i] = 1;
    FILE *file = fopen(path, "r+b");
    if (!file) file = fopen(path, "wb");
    assert_non_null(file);
    fwrite(header, 1, 8 + (size_t)length, file);
    fwrite(values, sizeof *values, (size_t)n, file);
    assert_int_equal(fclose(file), 0);
    free(values);
}

static double sum_of(const kith_array *view) {
    double sum = 0;
    for (int64_t i = 0; i < kith_array_count(view); i++) sum += (double)((const float *)view->data)[i];
    return sum;
}

/* A mapped file would end the process here (SIGBUS). */
static void test_file_gone_after_opening(void **state) {
    (void)state;
    enum { N = 100000 };
    kith_error err = {0};
    kith_tensors *tensors = NULL;
    kith_array view = {0};
    write_in_place(path_of("shrinks"), N);
    assert_ok(kith_tensors_open(path_of("shrinks"), &tensors, &err), &err);
    assert_int_equal(truncate(path_of("shrinks"), 0), 0);
    assert_ok(kith_tensors_get(tensors, "a", &view, &err), &err);
    assert_float_equal(sum_of(&view), N, 0);
    kith_tensors_free(tensors);
    unlink(path_of("shrinks"));
}

/* Another process shortens and restores the file all the time: it is read, or refused in one line. */
static void test_file_shrinks_while_read(void **state) {
    (void)state;
    enum { N = 300000, N_OPENS = 2000 };
    char path[256];
    snprintf(path, sizeof path, "%s", path_of("flickers"));
    write_in_place(path, N);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct stat whole;
        if (stat(path, &whole) != 0) _exit(1);
        for (;;) {
            if (truncate(path, 5000) != 0 || truncate(path, whole.st_size) != 0) _exit(1);
            usleep(500);
        }
    }
    int n_read = 0, n_refused = 0;
    for (int i = 0; i < N_OPENS; i++) {
        kith_error err = {0};
        kith_tensors *tensors = NULL;
        kith_array view = {0};
        const kith_status status = kith_tensors_open(path, &tensors, &err);
        if (status == KITH_OK) {
            assert_ok(kith_tensors_get(tensors, "a", &view, &err), &err);
            assert_true(sum_of(&view) <= N);
            n_read++;
        } else {
            if (status != KITH_EIO && status != KITH_EFORMAT)
                fail_msg("%s: %s", kith_status_name(status), err.message);
            assert_non_null(strstr(err.message, path));
            n_refused++;
        }
        kith_tensors_free(tensors);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    unlink(path);
    print_message("%d read, %d refused\n", n_read, n_refused);
    assert_true(n_read > 0 && n_refused > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_same_calls_same_bytes),
        cmocka_unit_test(test_nothing_inside),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_truncated_anywhere),
        cmocka_unit_test(test_unknown_name),
        cmocka_unit_test(test_writer_refuses),
        cmocka_unit_test(test_allocation_failures),
        cmocka_unit_test(test_seals),
        cmocka_unit_test(test_googlenet),
        cmocka_unit_test(test_file_gone_after_opening),
        cmocka_unit_test(test_file_shrinks_while_read),
    };
    return cmocka_run_group_tests_name("io/tensors", tests, NULL, NULL);
}
