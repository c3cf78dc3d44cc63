/* What the readers say of files that are wrong: each fault by its own words, not only by a failure. A reader that
 * refuses for another reason than the fault would pass a test of the status alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/json.h"
#include "io/lock.h"
#include "io/npy.h"
#include "io/yaml.h"
#include "kith/eval.h"
#include "kith/experimental/json.h"
#include "support/testing.h"

static const char *path_of(const char *name) {
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", testing_folder(), name);
    return path;
}

static void assert_said(const kith_error *err, const char *about, const char *wanted) {
    if (!strstr(err->message, wanted))
        fail_msg("%s: found \"%s\", wanted \"%s\"", about, err->message, wanted);
}

/* A .npy file of a version and header text, with room for `data_bytes`. */
static size_t make_npy(unsigned char *to, int major, int minor, const char *header, size_t data_bytes) {
    const size_t n = strlen(header), start = major == 1 ? 10 : 12;
    memcpy(to, "\x93NUMPY", 6);
    to[6] = (unsigned char)major, to[7] = (unsigned char)minor;
    for (size_t i = 8; i < start; i++) to[i] = (unsigned char)(n >> 8 * (i - 8));
    memcpy(to + start, header, n);
    memset(to + start + n, 0, data_bytes);
    return start + n + data_bytes;
}

#define GOOD "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n"

static void test_npy(void **state) {
    (void)state;
    static const struct {
        int major, minor;
        const char *header;
        kith_status status;
        const char *wanted;
    } rows[] = {
        {1, 0, GOOD, KITH_OK, NULL},
        {2, 0, GOOD, KITH_OK, NULL},
        {3, 0, GOOD, KITH_OK, NULL},
        {0, 0, GOOD, KITH_EFORMAT, "version 0.0; wanted 1.0, 2.0 or 3.0"},
        {4, 0, GOOD, KITH_EFORMAT, "version 4.0; wanted 1.0, 2.0 or 3.0"},
        {1, 1, GOOD, KITH_EFORMAT, "version 1.1; wanted 1.0, 2.0 or 3.0"},
        {1, 0, "{'descr': '<U1', 'fortran_order': False, 'shape': (2,), }\n", KITH_EUNSUPPORTED,
         "the elements are text; wanted numbers"},
        {1, 0, "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }\n", KITH_EUNSUPPORTED,
         "elements of type '|O'; wanted f2, f4, f8, integers or bool"},
        {1, 0, "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,), }\n", KITH_EFORMAT,
         "has 'Maybe, 'shape': (2,)', wanted True or False"},
        {1, 0, "{'descr': '<f4", KITH_EFORMAT, "has ''<f4', wanted a short type string"},
        {1, 0, "{'descr': '<f4\\'', 'fortran_order': False, 'shape': (2,), }", KITH_EFORMAT,
         "wanted a short type string"},
        {1, 0, "{'descr': '<f4 and a great deal more', 'fortran_order': False}", KITH_EFORMAT,
         "wanted a short type string"},
        {1, 0, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", KITH_EUNSUPPORTED,
         "elements are records"},
        {1, 0, "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", KITH_EFORMAT,
         "has the key 'descr' twice"},
        {1, 0, "{'fortran_order': False, 'shape': (2,), }", KITH_EFORMAT, "lacks 'descr'"},
        {1, 0, "{'descr': '<f4', 'shape': (2,), }", KITH_EFORMAT, "lacks 'fortran_order'"},
        {1, 0, "{'descr': '<f4', 'fortran_order': False, }", KITH_EFORMAT, "lacks 'shape'"},
        {1, 0, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } x", KITH_EFORMAT,
         "nothing after '}'"},
        {1, 0, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}", KITH_EFORMAT,
         "unknown key 'more'"},
    };
    static unsigned char bytes[4096];
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        kith_array array = {0};
        const size_t n = make_npy(bytes, rows[i].major, rows[i].minor, rows[i].header, 8);
        const kith_status status = ki_npy_parse(bytes, n, "x.npy", &array, &err);
        if (status != rows[i].status)
            fail_msg("%s: %s (%s), wanted %s", rows[i].header, kith_status_name(status), err.message,
                     kith_status_name(rows[i].status));
        if (rows[i].wanted) assert_said(&err, rows[i].header, rows[i].wanted);
        kith_array_release(&array);
    }
}

/* The two upper bytes of the length count in versions 2 and 3 only. */
static void test_npy_header_length(void **state) {
    (void)state;
    static unsigned char bytes[200];
    for (int version = 1; version <= 3; version++) {
        kith_error err = {0};
        kith_array array = {0};
        const size_t n = make_npy(bytes, version, 0, GOOD, 8);
        if (version > 1) {
            bytes[10] = 2;
            assert_int_equal(ki_npy_parse(bytes, n, "x.npy", &array, &err), KITH_EFORMAT);
            char wanted[64];
            snprintf(wanted, sizeof wanted, "a header of %zu bytes; wanted at most 65536",
                     (2u << 16) + strlen(GOOD));
            assert_said(&err, "version 2", wanted);
        }
        make_npy(bytes, version, 0, GOOD, 8);
        bytes[9] = 1;
        assert_int_equal(ki_npy_parse(bytes, n, "x.npy", &array, &err), KITH_EFORMAT);
        assert_said(&err, "a length beyond the file", "are left in the file");
    }
}

static kith_status open_tensors(const char *header, kith_error *err) {
    const uint64_t n = strlen(header);
    FILE *file = fopen(path_of("x.safetensors"), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(&n, 8, 1, file), 1);
    assert_int_equal(fwrite(header, 1, n, file), n);
    assert_int_equal(fwrite("\0\0\0\0\0\0\0\0", 1, 8, file), 8);
    assert_int_equal(fclose(file), 0);
    kith_tensors *tensors = NULL;
    const kith_status status = kith_tensors_open(path_of("x.safetensors"), &tensors, err);
    kith_tensors_free(tensors);
    return status;
}

static void test_tensors(void **state) {
    (void)state;
    static const struct {
        const char *header;
        kith_status status;
        const char *wanted;
    } rows[] = {
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", KITH_OK, NULL},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,8]}}", KITH_EFORMAT,
         "shape has an extent that is not a whole number from 0"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2.5],\"data_offsets\":[0,8]}}", KITH_EFORMAT,
         "shape has an extent that is not a whole number from 0"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", KITH_EFORMAT,
         "shape is not a list"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}",
         KITH_EUNSUPPORTED, "a list of more than 8 numbers"},
        {"{\"a\":{\"dtype\":\"Q7\",\"shape\":[2],\"data_offsets\":[0,8]}}", KITH_EUNSUPPORTED,
         "dtype 'Q7'; wanted F32"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        const kith_status status = open_tensors(rows[i].header, &err);
        if (status != rows[i].status)
            fail_msg("%s: %s (%s)", rows[i].header, kith_status_name(status), err.message);
        if (rows[i].wanted) assert_said(&err, rows[i].header, rows[i].wanted);
    }
}

/* 64 levels are read and 65 are refused by their number, with brackets in strings and values between not counted. */
static void test_json_levels(void **state) {
    (void)state;
    for (int levels = 64; levels <= 65; levels++) {
        char text[2048] = "";
        size_t n = 0;
        for (int i = 0; i < levels; i++) {
            const char *part = i % 2 ? "{\"]}\\\"[\": " : "[0, \"[{\", ";
            memcpy(text + n, part, strlen(part));
            n += strlen(part);
        }
        text[n++] = '1';
        for (int i = levels - 1; i >= 0; i--) text[n++] = i % 2 ? '}' : ']';
        kith_error err = {0};
        ki_arena arena = {0};
        ki_value *root = NULL;
        const kith_status status = ki_json_parse(text, n, "x.json", &arena, &root, &err);
        ki_arena_release(&arena);
        assert_int_equal(status, levels == 64 ? KITH_OK : KITH_EFORMAT);
        if (levels == 65) assert_said(&err, "65 levels", "64");
    }
}

static void test_json_file_is_one_line(void **state) {
    (void)state;
    kith_json *json = NULL;
    kith_error err = {0};
    assert_ok(kith_json_new(&json, &err), &err);
    kith_json_array_begin(json);
    kith_json_int(json, 1);
    kith_json_array_end(json);
    assert_ok(ki_json_save(json, path_of("x.json"), &err), &err);
    kith_json_free(json);
    struct stat info;
    assert_int_equal(stat(path_of("x.json"), &info), 0);
    assert_int_equal(info.st_size, 4);
    char *text = testing_read(path_of("x.json"));
    assert_string_equal(text, "[1]\n");
    free(text);
}

static void test_yaml(void **state) {
    (void)state;
    static const struct {
        const char *text, *wanted;
    } rows[] = {
        {"a: \xff\n", "r.yaml: not YAML: invalid leading UTF-8 octet at byte 3"},
        {"a: 1\nb: [1\n",
         "r.yaml:3: not YAML: did not find expected ',' or ']' while parsing a flow sequence"},
        {"a: 1\n\tb: 2\n",
         "r.yaml:2: not YAML: found a tab character that violates indentation while scanning a plain scalar"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        ki_arena arena = {0};
        ki_value *root = NULL;
        assert_int_equal(ki_yaml_parse(rows[i].text, strlen(rows[i].text), "r.yaml", &arena, &root, &err),
                         KITH_EFORMAT);
        ki_arena_release(&arena);
        assert_said(&err, rows[i].text, rows[i].wanted);
    }
}

static kith_status read_tensors(const char *path, kith_error *err) {
    kith_tensors *tensors = NULL;
    return kith_tensors_open(path, &tensors, err);
}
static kith_status hash_file(const char *path, kith_error *err) {
    char hex[65];
    return kith_file_hash(path, hex, err);
}
static kith_status read_npy(const char *path, kith_error *err) {
    kith_array array = {0};
    return kith_npy_read(path, &array, err);
}
static kith_status read_json(const char *path, kith_error *err) {
    ki_arena arena = {0};
    ki_value *root = NULL;
    const kith_status status = ki_json_read(path, &arena, &root, err);
    ki_arena_release(&arena);
    return status;
}

/* Nobody writes into the pipe, and the device has no end: neither is waited for. */
static void test_pipes_and_devices(void **state) {
    (void)state;
    static const struct {
        const char *about;
        kith_status (*read)(const char *path, kith_error *err);
        const char *path, *wanted; /* NULL: a pipe */
    } rows[] = {{"tensors", read_tensors, NULL, "it is a pipe, wanted a file"},
                {"tensors", read_tensors, "/dev/zero", "it is a device, wanted a file"},
                {"tensors", read_tensors, "/", "it is a folder, wanted a file"},
                {"hash", hash_file, NULL, "it is a pipe, wanted a file"},
                {"hash", hash_file, "/dev/zero", "it is a device, wanted a file"},
                {"npy", read_npy, "/dev/zero", "it is a device, wanted a file"},
                {"npy", read_npy, "/", "it is a folder, wanted a file"},
                {"json", read_json, "/dev/zero", "it is a device, wanted a file"}};
    const char *fifo = path_of("waiting");
    assert_int_equal(0, mkfifo(fifo, 0600));
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        alarm(20); /* ends the program if it waits after all */
        assert_int_equal(rows[i].read(rows[i].path ? rows[i].path : fifo, &err), KITH_EIO);
        alarm(0);
        assert_said(&err, rows[i].about, rows[i].wanted);
    }
}

static void test_a_lock_is_held_once(void **state) {
    (void)state;
    kith_error err = {0};
    int first = -1, second = -1;
    bool is_first = false, is_second = true;
    assert_ok(ki_lock_try(path_of("lock"), &first, &is_first, &err), &err);
    assert_true(is_first);
    assert_ok(ki_lock_try(path_of("lock"), &second, &is_second, &err), &err);
    assert_false(is_second);
    assert_true(second >= 0);
    close(second);
    close(first);
    assert_ok(ki_lock_try(path_of("lock"), &first, &is_first, &err), &err);
    assert_true(is_first);
    close(first);
    assert_int_equal(ki_lock_try("/nowhere/lock", &first, &is_first, &err), KITH_EIO);
    assert_int_equal(first, -1);
    assert_said(&err, "no folder", "cannot write /nowhere/lock: No such file");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_npy),
        cmocka_unit_test(test_npy_header_length),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_json_levels),
        cmocka_unit_test(test_json_file_is_one_line),
        cmocka_unit_test(test_yaml),
        cmocka_unit_test(test_pipes_and_devices),
        cmocka_unit_test(test_a_lock_is_held_once),
    };
    return cmocka_run_group_tests_name("io/refusals", tests, NULL, testing_tear_down);
}
