/* Every seed of the fuzzers of lists: ok_ is read, bad_ is refused with one line, nothing is lost. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset/dataset.h"
#include "io/tar.h"
#include "kith/log.h"
#include "support/testing.h"

enum { MOST_PARTS = 4 };

typedef kith_status (*parse_fn)(kith_dataset *set, const char *bytes, size_t size, kith_error *err);

/* As in test/fuzz/fuzz_lists.c. */
static kith_status parse_list(kith_dataset *set, const char *bytes, size_t size, kith_error *err) {
    const char *text = bytes + 1, *s = text;
    const size_t n = size - 1;
    size_t left = n;
    struct {
        const char *s;
        size_t n;
    } p[MOST_PARTS];
    for (int i = 0; i < MOST_PARTS; i++) {
        const char *stop = i + 1 < MOST_PARTS && left ? memchr(s, 0x1e, left) : NULL;
        p[i].s = s;
        p[i].n = stop ? (size_t)(stop - s) : left;
        s += p[i].n + (stop ? 1 : 0);
        left -= p[i].n + (stop ? 1 : 0);
    }
    switch (bytes[0]) {
    case 'c':
        return ki_cub_parse(set, "root", p[0].s, p[0].n, p[1].s, p[1].n, p[2].s, p[2].n, p[3].s, p[3].n, err);
    case 's': return ki_sop_parse(set, "root", text, n, KITH_SPLIT_TRAIN, err);
    case 'i': return ki_inshop_parse(set, "root", text, n, err);
    case 'm': return ki_csv_parse(set, "root", text, n, err);
    case 'x': {
        const uint8_t *data = (const uint8_t *)text;
        const size_t at = (size_t)(data[0] | data[1] << 8), images = at < n - 2 ? at : n - 2;
        return ki_idx_parse(set, "idx", data + 2, images, data + 2 + images, n - 2 - images, KITH_SPLIT_TRAIN,
                            err);
    }
    default: fail_msg("no parser '%c'", bytes[0]); return KITH_EINVAL;
    }
}

/* The field that holds the path has two names. */
static kith_status parse_mat(kith_dataset *set, const char *bytes, size_t size, kith_error *err) {
    const kith_status status = ki_cars_parse(set, "root", "list.mat", bytes, size, "fname", err);
    return status == KITH_OK ? status
                             : ki_cars_parse(set, "root", "list.mat", bytes, size, "relative_im_path", err);
}

/* As in test/fuzz/fuzz_gzip.c. */
static kith_status parse_gzip(kith_dataset *set, const char *bytes, size_t size, kith_error *err) {
    (void)set;
    ki_bytes unpacked = {0};
    const kith_status status =
        ki_idx_unpack(bytes + 1, size - 1, "list.gz", "images", bytes[0] % 2 ? 1 : 3, &unpacked, err);
    ki_bytes_release(&unpacked);
    return status;
}

/* As in test/fuzz/fuzz_tar.c. */
static kith_status parse_tar(kith_dataset *set, const char *bytes, size_t size, kith_error *err) {
    (void)set;
    ki_tar_entry entry;
    bool more = true;
    kith_status status = KITH_OK;
    ki_tar_walk *walk = calloc(1, sizeof *walk);
    assert_non_null(walk);
    walk->source = (ki_tar_source){
        .fd = -1, .bytes = (const unsigned char *)bytes, .n_bytes = (int64_t)size, .name = "list.tar"};
    while (more && status == KITH_OK) status = ki_tar_next(walk, &entry, &more, err);
    free(walk);
    return status;
}

static void replay(const char *folder, parse_fn parse, int least_ok, int least_bad) {
    kith_memory_stats before, after;
    kith_memory_stats_get(&before);
    char path[4096];
    snprintf(path, sizeof path, "%s/test/corpus/%s", KITH_SOURCE_DIR, folder);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    int n_ok = 0, n_bad = 0;
    for (struct dirent *file; (file = readdir(dir));) {
        const bool wanted_ok = strncmp(file->d_name, "ok_", 3) == 0;
        if (!wanted_ok && strncmp(file->d_name, "bad_", 4) != 0) continue;
        ki_bytes bytes = {0};
        kith_error err = {0};
        kith_dataset *set = NULL;
        snprintf(path, sizeof path, "%s/test/corpus/%s/%s", KITH_SOURCE_DIR, folder, file->d_name);
        assert_ok(ki_bytes_read(&bytes, path, &err), &err);
        char *exact = malloc(bytes.n ? bytes.n : 1);
        assert_non_null(exact);
        memcpy(exact, bytes.data, bytes.n);
        assert_ok(ki_dataset_new(&ki_dataset_csv, "corpus", &set, &err), &err);
        const kith_status status = parse(set, exact, bytes.n, &err);
        if (wanted_ok && status != KITH_OK) fail_msg("%s was refused: %s", file->d_name, err.message);
        if (!wanted_ok) {
            if (status == KITH_OK) fail_msg("%s was read; it must be refused", file->d_name);
            assert_true(err.message[0] != '\0' && !strchr(err.message, '\n'));
            print_message("%s: %s\n", file->d_name, err.message);
        }
        n_ok += wanted_ok;
        n_bad += !wanted_ok;
        kith_dataset_free(set);
        free(exact);
        ki_bytes_release(&bytes);
    }
    closedir(dir);
    assert_true(n_ok >= least_ok && n_bad >= least_bad);
    kith_memory_stats_get(&after);
    assert_int_equal(after.live_bytes, before.live_bytes);
}

static void test_lists(void **state) {
    (void)state;
    replay("lists", parse_list, 13, 27);
}

static void test_mat(void **state) {
    (void)state;
    replay("mat", parse_mat, 8, 24);
}

static void test_gzip(void **state) {
    (void)state;
    replay("gzip", parse_gzip, 3, 8);
}

static void test_tar(void **state) {
    (void)state;
    replay("tar", parse_tar, 6, 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_mat),
        cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_tar),
    };
    return cmocka_run_group_tests_name("data/list_corpus", tests, NULL, NULL);
}
