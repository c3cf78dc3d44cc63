/* Every file of test/corpus through its parser: the name's prefix, ok_ or bad_, is the outcome it
 * must have, and what is refused must be refused with one line that names the file. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "io/file.h"
#include "io/npy.h"
#include "io/pth.h"
#include "io/tensors.h"
#include "io/yaml.h"
#include "kith/log.h"
#include "support/testing.h"

/* What the parser says to n bytes in memory; everything it made is given back. */
typedef kith_status (*parse_fn)(const char *bytes, size_t n, const char *name, kith_error *err);

static kith_status parse_npy(const char *bytes, size_t n, const char *name, kith_error *err) {
    kith_array array = {0};
    const kith_status status = ki_npy_parse(bytes, n, name, &array, err);
    kith_array_release(&array);
    return status;
}

static kith_status parse_tensors(const char *bytes, size_t n, const char *name, kith_error *err) {
    kith_tensors *tensors = NULL;
    const kith_status status = ki_tensors_parse(bytes, n, name, &tensors, err);
    kith_tensors_free(tensors);
    return status;
}

static kith_status parse_pth(const char *bytes, size_t n, const char *name, kith_error *err) {
    kith_tensors_writer *writer = NULL;
    assert_ok(kith_tensors_writer_new(&writer, err), err);
    const kith_status status = ki_pth_parse(bytes, n, name, writer, err);
    kith_tensors_writer_free(writer);
    return status;
}

static kith_status parse_yaml(const char *bytes, size_t n, const char *name, kith_error *err) {
    ki_arena arena = {0};
    ki_value *root = NULL;
    const kith_status status = ki_yaml_parse(bytes, n, name, &arena, &root, err);
    ki_arena_release(&arena);
    return status;
}

static const char *const file_functions[] = {"npy", "safetensors", "yaml"};

/* The same file through the function that opens it by path; a .pth file has none in this layer. */
static kith_status read_path(const char *folder, const char *path, kith_error *err) {
    if (strcmp(folder, "pth") == 0) {
        char *bytes = NULL;
        size_t n = 0;
        assert_ok(ki_file_read(path, 1 << 20, &bytes, &n, err), err);
        const kith_status status = parse_pth(bytes, n, path, err);
        ki_free(bytes);
        return status;
    }
    if (strcmp(folder, file_functions[0]) == 0) {
        kith_array array = {0};
        const kith_status status = kith_npy_read(path, &array, err);
        kith_array_release(&array);
        return status;
    }
    if (strcmp(folder, file_functions[1]) == 0) {
        kith_tensors *tensors = NULL;
        const kith_status status = kith_tensors_open(path, &tensors, err);
        kith_tensors_free(tensors);
        return status;
    }
    ki_arena arena = {0};
    ki_value *root = NULL;
    const kith_status status = ki_yaml_read(path, &arena, &root, err);
    ki_arena_release(&arena);
    return status;
}

static void check_outcome(const char *name, bool wanted_ok, kith_status status, const kith_error *err) {
    if (wanted_ok && status != KITH_OK) fail_msg("%s was refused: %s", name, err->message);
    if (!wanted_ok && status == KITH_OK) fail_msg("%s was read; it must be refused", name);
    if (wanted_ok) return;
    if (status != KITH_EFORMAT && status != KITH_EUNSUPPORTED)
        fail_msg("%s: %s, wanted KITH_EFORMAT or KITH_EUNSUPPORTED", name, kith_status_name(status));
    if (!strstr(err->message, name)) fail_msg("the line does not name %s: %s", name, err->message);
}

static void replay(const char *folder, parse_fn parse, int least_files) {
    char path[4096];
    snprintf(path, sizeof path, "%s/test/corpus/%s", KITH_SOURCE_DIR, folder);
    DIR *dir = opendir(path);
    if (!dir) fail_msg("cannot open %s", path);
    kith_memory_stats before, after;
    kith_memory_stats_get(&before);
    int n_ok = 0, n_bad = 0;
    for (struct dirent *file; (file = readdir(dir));) {
        const char *name = file->d_name;
        const bool wanted_ok = strncmp(name, "ok_", 3) == 0;
        if (!wanted_ok && strncmp(name, "bad_", 4) != 0) continue;
        snprintf(path, sizeof path, "%s/test/corpus/%s/%s", KITH_SOURCE_DIR, folder, name);
        kith_error err = {0};
        char *bytes = NULL;
        size_t n = 0;
        assert_ok(ki_file_read(path, 1 << 20, &bytes, &n, &err), &err);
        /* a block of exactly n bytes: the sanitizer then sees a read behind the end */
        char *exact = malloc(n ? n : 1);
        assert_non_null(exact);
        memcpy(exact, bytes, n);
        check_outcome(name, wanted_ok, parse(exact, n, name, &err), &err);
        if (!wanted_ok) print_message("%s\n", err.message);
        err = (kith_error){0};
        check_outcome(name, wanted_ok, read_path(folder, path, &err), &err);
        assert_int_equal(parse(exact, n, name, NULL) == KITH_OK, wanted_ok); /* without an error to fill */
        free(exact);
        ki_free(bytes);
        if (wanted_ok)
            n_ok++;
        else
            n_bad++;
    }
    closedir(dir);
    print_message("%s: %d read, %d refused\n", folder, n_ok, n_bad);
    if (n_ok + n_bad < least_files)
        fail_msg("%d files in the corpus, wanted at least %d", n_ok + n_bad, least_files);
    kith_memory_stats_get(&after);
    assert_int_equal(after.live_bytes, before.live_bytes);
}

static void test_npy(void **state) {
    (void)state;
    replay("npy", parse_npy, 40);
}

static void test_safetensors(void **state) {
    (void)state;
    replay("safetensors", parse_tensors, 40);
}

static void test_pth(void **state) {
    (void)state;
    replay("pth", parse_pth, 40);
}

static void test_yaml(void **state) {
    (void)state;
    replay("yaml", parse_yaml, 30);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_npy),
        cmocka_unit_test(test_safetensors),
        cmocka_unit_test(test_pth),
        cmocka_unit_test(test_yaml),
    };
    return cmocka_run_group_tests_name("io/corpus", tests, NULL, NULL);
}
