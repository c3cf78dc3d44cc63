/* Labels from files of every kind: the same classes, whatever they are written as. */
#include "data/labels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "kith/log.h"
#include "support/testing.h"

/* A .npy file of version 1.0 in memory; returns its size. */
static size_t make_npy(char *to, const char *descr, const char *shape, const void *data, size_t bytes) {
    const int n = sprintf(to + 10, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, shape);
    memcpy(to, "\x93NUMPY\x01\x00", 8);
    to[8] = (char)(n & 255);
    to[9] = (char)(n >> 8);
    memcpy(to + 10 + n, data, bytes);
    return 10 + (size_t)n + bytes;
}

static void assert_ids(const kith_array *ids, const int64_t *wanted, int64_t n) {
    assert_int_equal(ids->dtype, KITH_I64);
    assert_int_equal(ids->n_dims, 1);
    assert_int_equal(ids->dim[0], n);
    for (int64_t i = 0; i < n; i++) assert_int_equal(((int64_t *)ids->data)[i], wanted[i]);
}

static kith_labels *new_labels(void) {
    kith_error err = {0};
    kith_labels *labels = NULL;
    assert_ok(kith_labels_new(&labels, &err), &err);
    return labels;
}

static void assert_reads(const char *name, const char *bytes, size_t n, int64_t a, int64_t b, int64_t c) {
    kith_error err = {0};
    kith_array ids = {0};
    kith_labels *labels = new_labels();
    char *exact = malloc(n ? n : 1); /* a sanitizer then sees a read behind the end */
    assert_non_null(exact);
    memcpy(exact, bytes, n);
    assert_ok(ki_labels_parse(labels, exact, n, name, &ids, &err), &err);
    assert_ids(&ids, (const int64_t[]){a, b, c}, 3);
    free(exact);
    kith_array_release(&ids);
    kith_labels_free(labels);
}

static void test_arrays_of_any_integer(void **state) {
    (void)state;
    static const struct {
        const char *descr, *shape;
        const char *data;
        size_t bytes;
        int64_t ids[3];
    } rows[] = {
        {"|b1", "(3,)", "\1\0\1", 3, {1, 0, 1}},
        {"|i1", "(3,)", "\xff\0\1", 3, {-1, 0, 1}},
        {"<i2", "(3,)", "\xff\xff\0\1\1\0", 6, {-1, 256, 1}},
        {">i2", "(3,)", "\xff\xff\0\1\1\0", 6, {-1, 1, 256}},
        {"<u2", "(3,)", "\xff\xff\0\1\1\0", 6, {65535, 256, 1}},
        {"<u4", "(3, 1)", "\xff\xff\xff\xff\0\0\0\0\1\0\0\0", 12, {4294967295, 0, 1}},
        {"<u8", "(3,)", "\0\0\0\0\1\0\0\0\7\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24, {4294967296, 7, 0}},
        {"<U2", "(3,)", "b\0\0\0\0\0\0\0a\0\0\0\xe4\0\0\0b\0\0\0\0\0\0\0", 24, {0, 1, 0}},
        {">U1", "(3, 1)", "\0\0\0b\0\0\0a\0\0\0b", 12, {0, 1, 0}},
        {"|S2", "(3,)", "b\0abb\0", 6, {0, 1, 0}},
        {"|S1", "(3,)", "7\0007", 3, {0, 1, 0}}, /* text that looks like a number is a name in an array */
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char bytes[512];
        const size_t n = make_npy(bytes, rows[i].descr, rows[i].shape, rows[i].data, rows[i].bytes);
        assert_reads("y.npy", bytes, n, rows[i].ids[0], rows[i].ids[1], rows[i].ids[2]);
        assert_reads("/dev/fd/63", bytes, n, rows[i].ids[0], rows[i].ids[1], rows[i].ids[2]);
    }
}

static void test_text_of_every_kind(void **state) {
    (void)state;
    static const struct {
        const char *name, *text;
        int64_t ids[3];
    } rows[] = {
        {"y.txt", "3\n-1\n3\n", {3, -1, 3}},
        {"y.txt", "3\r\n-1\r\n\r\n3", {3, -1, 3}},
        {"y.txt", "wren\nrook\nwren\n", {0, 1, 0}},
        {"y.txt", "3\nthree\n3\n", {0, 1, 0}},
        {"labels", "blue jay\nwren, house\nblue jay\n", {0, 1, 0}},
        {"y.csv", "path,label\na.jpg,3\nb.jpg,4\nc.jpg,3\n", {3, 4, 3}},
        {"y.CSV", "label,path\n\"wren, house\",a.jpg\nrook,b.jpg\n\"wren, house\",c.jpg\n", {0, 1, 0}},
        {"y.csv", "label\n3\n4\n3\n", {3, 4, 3}},
        {"y.csv", "3\n4\n3\n", {3, 4, 3}},
        {"y.csv", "wren\n\"rook\"\nwren\n", {0, 1, 0}},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++)
        assert_reads(rows[i].name, rows[i].text, strlen(rows[i].text), rows[i].ids[0], rows[i].ids[1],
                     rows[i].ids[2]);
}

static void test_files_agree_and_names_are_kept(void **state) {
    (void)state;
    kith_error err = {0};
    kith_array ids = {0};
    kith_labels *labels = new_labels();
    char bytes[512];
    const size_t n =
        make_npy(bytes, "<U4", "(2,)", "w\0\0\0r\0\0\0e\0\0\0n\0\0\0r\0\0\0o\0\0\0\0\0\0\0\0\0\0\0", 32);
    assert_ok(ki_labels_parse(labels, "jay\nwren\n", 9, "q.txt", &ids, &err), &err);
    assert_ids(&ids, (const int64_t[]){0, 1}, 2);
    kith_array_release(&ids);
    assert_ok(ki_labels_parse(labels, bytes, n, "g.npy", &ids, &err), &err);
    assert_ids(&ids, (const int64_t[]){1, 2}, 2);
    kith_array_release(&ids);
    assert_int_equal(kith_labels_n_names(labels), 3);
    assert_string_equal(kith_labels_name(labels, 0), "jay");
    assert_string_equal(kith_labels_name(labels, 2), "ro");
    assert_null(kith_labels_name(labels, 3));
    assert_null(kith_labels_name(labels, -1));
    assert_int_equal(ki_labels_parse(labels, "1\n2\n", 4, "n.txt", &ids, &err), KITH_EFORMAT);
    assert_string_equal(err.message, "n.txt: the labels are numbers, those read before are names");
    kith_labels_free(labels);
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *descr, *shape, *data;
        size_t bytes;
        kith_status status;
        const char *message, *hint;
    } arrays[] = {
        {"<f4", "(1,)", "\0\0\0\0", 4, KITH_EUNSUPPORTED,
         "the labels are float32; wanted integers, bool or text", "labels.astype('int64')"},
        {"|O", "(1,)", "", 0, KITH_EUNSUPPORTED, "elements of type '|O'", "Python objects"},
        {"<i4", "(1, 2)", "\0\0\0\0\0\0\0\0", 8, KITH_ESHAPE, "2 dimensions; wanted 1", ""},
        {"<i4", "()", "\0\0\0\0", 4, KITH_ESHAPE, "0 dimensions; wanted 1", ""},
        {"<U1", "(1,)", "\0\0\x11\0", 4, KITH_EFORMAT, "element 0 is no text", ""},
        {"<U1", "(1,)", "\0\xd8\0\0", 4, KITH_EFORMAT, "element 0 is no text", ""},
        {"<U2", "(1,)", "\0\0\0\0a\0\0\0", 8, KITH_EFORMAT, "element 0 is no text", ""},
        {"|S3", "(1,)", "a\0b", 3, KITH_EFORMAT, "element 0 is no text", ""},
        {"<U0", "(9000000000000000000,)", "", 0, KITH_EUNSUPPORTED, "elements of type '<U0'", ""},
        {"<u8", "(1,)", "\0\0\0\0\0\0\0\x80", 8, KITH_EUNSUPPORTED, "is 9223372036854775808; wanted at most",
         ""},
    };
    kith_memory_stats before, after;
    kith_memory_stats_get(&before);
    for (size_t i = 0; i < N_ROWS(arrays); i++) {
        char bytes[512];
        kith_error err = {0};
        kith_array ids = {0};
        kith_labels *labels = new_labels();
        const size_t n = make_npy(bytes, arrays[i].descr, arrays[i].shape, arrays[i].data, arrays[i].bytes);
        const kith_status status = ki_labels_parse(labels, bytes, n, "y.npy", &ids, &err);
        if (status != arrays[i].status || !strstr(err.message, arrays[i].message) ||
            !strstr(err.hint, arrays[i].hint))
            fail_msg("row %zu: %s: %s (%s)", i, kith_status_name(status), err.message, err.hint);
        kith_labels_free(labels);
    }
    static const char *const texts[][3] = {
        {"y.npy", "1\n2\n", "is not a .npy file"},
        {"y.csv", "path,name\na,b\n", "wanted a header line with the column label"},
        {"y.csv", "path,label\na,\n", "y.csv line 2: found 'a,'; wanted a label"},
    };
    for (size_t i = 0; i < N_ROWS(texts); i++) {
        kith_error err = {0};
        kith_array ids = {0};
        kith_labels *labels = new_labels();
        const kith_status status =
            ki_labels_parse(labels, texts[i][1], strlen(texts[i][1]), texts[i][0], &ids, &err);
        if (status != KITH_EFORMAT || !strstr(err.message, texts[i][2]))
            fail_msg("row %zu: %s: %s", i, kith_status_name(status), err.message);
        kith_labels_free(labels);
    }
    kith_memory_stats_get(&after);
    assert_int_equal(after.live_bytes, before.live_bytes);
}

static void test_a_file_without_a_dictionary(void **state) {
    (void)state;
    kith_error err = {0};
    kith_array ids = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/y.txt", testing_folder());
    testing_write(path, "b\na\nb\n");
    assert_ok(kith_labels_read(NULL, path, &ids, &err), &err);
    assert_ids(&ids, (const int64_t[]){0, 1, 0}, 3);
    kith_array_release(&ids);
    snprintf(path, sizeof path, "%s/gone.txt", testing_folder());
    assert_int_equal(kith_labels_read(NULL, path, &ids, &err), KITH_EIO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays_of_any_integer),          cmocka_unit_test(test_text_of_every_kind),
        cmocka_unit_test(test_files_agree_and_names_are_kept), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_a_file_without_a_dictionary),
    };
    return cmocka_run_group_tests_name("data/labels", tests, NULL, testing_tear_down);
}
