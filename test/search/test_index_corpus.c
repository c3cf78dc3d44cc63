/* Every file of test/corpus/index: the prefix of its name, ok_ or bad_, is the outcome it must have. KITH_MAKE_CORPUS=FOLDER
 * writes the ok_ files, from an index as it is made today. */
#include <dirent.h>

#include "index_bytes.h"
#include "io/file.h"
#include "made_index.h"

static void save(const char *name, char kind, const char *bytes, size_t n) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("KITH_MAKE_CORPUS"), name);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    fputc(kind, out);
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(out);
}

static void make_corpus(void) {
    kith_error err;
    kith_index *index = NULL;
    KITH_OPTIONS(kith_index_options, options);
    options.dim = INDEX_BYTES_DIM;
    options.columns = index_bytes_columns;
    options.n_columns = 3;
    options.model = "0123abcd";
    const char *folder = made_path("corpus.kith");
    assert_ok(kith_index_create(folder, &options, &index, &err), &err);
    float rows[INDEX_BYTES_ROWS * INDEX_BYTES_DIM];
    kith_index_item items[INDEX_BYTES_ROWS];
    made_item made[INDEX_BYTES_ROWS];
    for (int i = 0; i < INDEX_BYTES_ROWS * INDEX_BYTES_DIM; i++) rows[i] = (float)(i * i % 7) - 3;
    for (int i = 0; i < INDEX_BYTES_ROWS; i++) {
        made_known(i, &made[i]);
        items[i] = made[i].item;
        items[i].values = made[i].values;
    }
    const kith_array array = {KITH_F32, 2, {INDEX_BYTES_ROWS, INDEX_BYTES_DIM}, rows};
    assert_ok(kith_index_add(index, &array, items, NULL, &err), &err);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    const int64_t id = 2;
    const kith_calibration curve = {.source = "test",
                                    .n_classes = 3,
                                    .n_same = 50,
                                    .n_different = 100,
                                    .n = 2,
                                    .threshold = {0.5, 0.9},
                                    .fmr = {0.1, 0.01},
                                    .tmr = {1, 0.5}};
    assert_ok(kith_index_remove(index, &id, 1, &err), &err);
    assert_ok(kith_index_restamp(index, 3, 4, 5, &err), &err);
    assert_ok(kith_index_note_set(index, "root", "photos", &err), &err);
    assert_ok(kith_index_calibrate(index, &curve, &err), &err);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    assert_ok(kith_index_move(index, 1, "moved.jpg", "heron", 4, 5, &err), &err);
    assert_ok(kith_index_move(index, 3, "other.jpg", NULL, 4, 5, &err), &err);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    const char *const updated[] = {"year", "weight", "place"}, *const labels[] = {"auk", NULL};
    const int64_t ids[] = {1, 3};
    const kith_value values[] = {{.type = KITH_VALUE_INT, .integer = 1999},
                                 {.type = KITH_VALUE_REAL, .real = 0.5},
                                 {.type = KITH_VALUE_TEXT, .text = "Sylt"},
                                 {0},
                                 {0},
                                 {0}};
    assert_ok(kith_index_set(index, ids, 2, updated, 3, values, &err), &err);
    assert_ok(kith_index_label(index, ids, 2, labels, &err), &err);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    kith_index_free(index);
    static const struct {
        const char *file, *name;
        char kind;
    } files[] = {{"manifest.json", "ok_manifest", 'm'},
                 {"00000001.segment", "ok_segment", 's'},
                 {"00000005.changes", "ok_changes", 'c'},
                 {"00000004.moves", "ok_records", 'r'},
                 {"00000006.updates", "ok_updates", 'u'}};
    for (size_t i = 0; i < N_ROWS(files); i++) {
        char path[8192], *bytes = NULL;
        size_t n = 0;
        snprintf(path, sizeof path, "%s/%s", folder, files[i].file);
        assert_ok(ki_file_read(path, 1 << 20, &bytes, &n, &err), &err);
        const size_t tail = strlen(",\"checksum\":\"0123456789abcdef\"}\n");
        save(files[i].name, files[i].kind, bytes,
             files[i].kind == 'm' ? n - tail : n - (n + 4095) / 4096 * 8);
        ki_free(bytes);
    }
    static const char where[] =
        "not (label in (tern, 'black tern') or year >= 2_020) and path like \"20%/_.jpg\" and weight < "
        "-1.5e3";
    save("ok_filter", 'w', where, sizeof where - 1);
}

static void test_corpus(void **state) {
    (void)state;
    if (getenv("KITH_MAKE_CORPUS")) make_corpus();
    char folder[4096];
    int n_ok = 0, n_bad = 0;
    snprintf(folder, sizeof folder, "%s/test/corpus/index", KITH_SOURCE_DIR);
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));) {
        if (e->d_name[0] == '.') continue;
        char path[8192], *bytes = NULL;
        size_t n = 0;
        kith_error err = {0};
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        assert_ok(ki_file_read(path, 1 << 24, &bytes, &n, &err), &err);
        const bool is_ok = strncmp(e->d_name, "ok_", 3) == 0;
        const kith_status status = index_bytes((const uint8_t *)bytes, n, &err);
        if ((status == KITH_OK) != is_ok)
            fail_msg("%s: %s (%s)", e->d_name, kith_status_name(status), err.message);
        if (!is_ok && (strlen(err.message) < 10 || strchr(err.message, '\n')))
            fail_msg("%s: '%s'", e->d_name, err.message);
        ki_free(bytes);
        n_ok += is_ok;
        n_bad += !is_ok;
    }
    closedir(dir);
    assert_true(n_ok >= 4);
    assert_true(n_bad >= 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_corpus)};
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
