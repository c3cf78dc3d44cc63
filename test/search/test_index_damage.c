/* Damaged files of an index: every answer is the right one, or one line that says what is wrong. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "made_index.h"

enum { MOST_FILES = 32, BLOCK = 4096 };

static char folder[4096];
static uint64_t wanted;

typedef struct file {
    char path[8192];
    char *bytes;
    size_t n;
} file;

static file files[MOST_FILES];
static int n_files;

static void read_files(void) {
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));) {
        if (e->d_name[0] == '.' || strcmp(e->d_name, "lock") == 0) continue;
        file *f = &files[n_files++];
        assert_true(n_files <= MOST_FILES);
        snprintf(f->path, sizeof f->path, "%s/%s", folder, e->d_name);
        FILE *in = fopen(f->path, "rb");
        assert_non_null(in);
        f->bytes = calloc(1, 1 << 24);
        f->n = fread(f->bytes, 1, (1 << 24) - 1, in);
        fclose(in);
    }
    closedir(dir);
}

static void put_back(const file *f, size_t n) {
    FILE *out = fopen(f->path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(f->bytes, 1, n, out), n);
    fclose(out);
}

/* Several segments, removed rows, touched files, codes. */
static int set_up(void **state) {
    (void)state;
    kith_error err;
    made_exact_numbers = 0;
    snprintf(folder, sizeof folder, "%s", made_path("damage.kith"));
    kith_index *index = made_create(folder, KITH_COSINE);
    made_add(index, 0, 1100);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    made_add(index, 1100, 200);
    const int64_t ids[] = {3, 77, 1150};
    assert_ok(kith_index_remove(index, ids, 3, &err), &err);
    assert_ok(kith_index_restamp(index, 5, 1, 2, &err), &err);
    assert_ok(kith_index_move(index, 6, "moved.jpg", "heron", 1, 2, &err), &err);
    assert_ok(kith_index_exclude(index, &(int64_t){8}, 1, &err), &err);
    assert_ok(kith_index_set(index, (int64_t[]){5, 9}, 2, (const char *const[]){"year", "place"}, 2,
                             (kith_value[]){{.type = KITH_VALUE_INT, .integer = 1900},
                                            {.type = KITH_VALUE_TEXT, .text = "Sylt"},
                                            {0},
                                            {0}},
                             &err),
              &err);
    assert_ok(kith_index_note_set(index, "root", "photos", &err), &err);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    assert_int_equal(made_info(index).n_segments, 2);
    assert_ok(made_digest(index, &wanted, &err), &err);
    kith_index_free(index);
    read_files();
    assert_int_equal(
        n_files,
        10); /* the manifest, two segments and their codes, the coder, changes, moves, updates, excluded */
    return 0;
}

static int tear_down(void **state) {
    for (int i = 0; i < n_files; i++) free(files[i].bytes);
    return testing_tear_down(state);
}

/* One line that names a file, or the folder. */
static void assert_line(const kith_error *err, const char *what) {
    if (!strstr(err->message, "damage.kith") || strchr(err->message, '\n') || strlen(err->message) < 20)
        fail_msg("%s: '%s'", what, err->message);
}

/* Open, ask everything, check; true: it is as it was. */
static bool is_whole(const char *what) {
    kith_error err = {0};
    kith_index *index = NULL;
    kith_status status = kith_index_open(folder, KITH_INDEX_READ, &index, &err);
    if (status != KITH_OK) {
        assert_line(&err, what);
        assert_true(status == KITH_EFORMAT || status == KITH_EUNSUPPORTED || status == KITH_EIO);
        return false;
    }
    uint64_t digest = 0;
    int64_t bytes = 0;
    const kith_status asked = made_digest(index, &digest, &err);
    if (asked == KITH_OK && digest != wanted) fail_msg("%s: other answers, and no error", what);
    if (asked != KITH_OK) assert_line(&err, what);
    const kith_status checked = kith_index_check(index, NULL, &bytes, &err);
    if (checked != KITH_OK) assert_line(&err, what);
    if (asked != KITH_OK && checked == KITH_OK) fail_msg("%s: an error that the check does not find", what);
    kith_index_free(index);
    return asked == KITH_OK && checked == KITH_OK;
}

static void test_truncated(void **state) {
    (void)state;
    assert_true(is_whole("as it was"));
    int n = 0;
    for (int i = 0; i < n_files; i++) {
        const file *f = &files[i];
        const size_t step = f->n < 3 * BLOCK ? 37 : BLOCK;
        for (size_t at = 0; at < f->n; at += step, n++) {
            char what[9000];
            snprintf(what, sizeof what, "%.8000s cut at %zu of %zu", f->path, at, f->n);
            put_back(f, at);
            if (is_whole(what)) fail_msg("%s: not noticed", what);
        }
        put_back(f, f->n - 1);
        assert_false(is_whole("one byte less"));
        put_back(f, f->n);
        FILE *out = fopen(f->path, "ab");
        fputc('x', out);
        fclose(out);
        assert_false(is_whole("one byte more"));
        put_back(f, f->n);
    }
    assert_true(n > 80);
    assert_true(is_whole("put back"));
}

static void test_flipped(void **state) {
    (void)state;
    ki_rng rng = ki_rng_at(5, KI_RNG_TEST, 0, 0);
    int n_noticed = 0;
    for (int i = 0; i < 1000; i++) {
        file *f = &files[i % n_files];
        const size_t at = ki_rng_below(&rng, (uint32_t)f->n);
        const int bit = (int)ki_rng_below(&rng, 8);
        char what[9000];
        snprintf(what, sizeof what, "%.8000s: bit %d of byte %zu of %zu", f->path, bit, at, f->n);
        f->bytes[at] = (char)(f->bytes[at] ^ 1 << bit);
        put_back(f, f->n);
        n_noticed += !is_whole(what);
        f->bytes[at] = (char)(f->bytes[at] ^ 1 << bit);
        put_back(f, f->n);
    }
    assert_int_equal(n_noticed, 1000);
    assert_true(is_whole("put back"));
}

static void test_missing(void **state) {
    (void)state;
    for (int i = 0; i < n_files; i++) {
        assert_int_equal(unlink(files[i].path), 0);
        assert_false(is_whole("a missing file"));
        assert_int_equal(mkdir(files[i].path, 0777), 0);
        assert_false(is_whole("a folder in its place"));
        assert_int_equal(rmdir(files[i].path), 0);
        assert_int_equal(mkfifo(files[i].path, 0666), 0);
        if (!strstr(files[i].path, "manifest")) assert_false(is_whole("a pipe in its place"));
        unlink(files[i].path);
        put_back(&files[i], files[i].n);
    }
}

/* Files of one index in another: all checksums are right, and nothing fits. */
static void test_exchanged(void **state) {
    (void)state;
    for (int i = 0; i < n_files; i++) {
        for (int j = 0; j < n_files; j++) {
            if (i == j) continue;
            file mixed = files[i];
            mixed.bytes = files[j].bytes;
            put_back(&mixed, files[j].n);
            assert_false(is_whole(files[i].path));
        }
        put_back(&files[i], files[i].n);
    }
}

static void test_other_formats(void **state) {
    (void)state;
    kith_error err;
    kith_index *index = NULL;
    for (int i = 0; i < n_files; i++) {
        if (!strstr(files[i].path, "manifest.json")) continue;
        char *at = strstr(files[i].bytes, "\"kith_index\":");
        assert_non_null(at);
        at += strcspn(at, "4");
        *at = '7';
        put_back(&files[i], files[i].n);
        assert_int_equal(kith_index_open(folder, KITH_INDEX_READ, &index, &err), KITH_EUNSUPPORTED);
        assert_non_null(strstr(err.message, "an index of format 7; this kith reads format 1 to 4"));
        assert_string_equal(err.hint, "open it with a newer kith, or make it again");
        *at = '0';
        put_back(&files[i], files[i].n);
        assert_int_equal(kith_index_open(folder, KITH_INDEX_WRITE, &index, &err), KITH_EUNSUPPORTED);
        assert_string_equal(err.hint, "make it again with this kith");
        *at = '4';
        put_back(&files[i], files[i].n);
    }
}

static void test_no_index(void **state) {
    (void)state;
    kith_error err;
    kith_index *index = NULL;
    char path[8192];
    snprintf(path, sizeof path, "%s", made_path("nothing"));
    assert_int_equal(kith_index_open(path, KITH_INDEX_READ, &index, &err), KITH_EIO);
    assert_int_equal(kith_index_open(folder, (kith_index_mode)99, &index, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "mode 99"));
    assert_null(index);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(kith_index_open(path, KITH_INDEX_WRITE, &index, &err), KITH_EFORMAT);
    assert_non_null(strstr(err.message, "is not an index: it has no manifest.json"));
    assert_int_equal(rmdir(path), 0); /* and nothing was made in it */
    testing_write(path, "text");
    assert_int_equal(kith_index_open(path, KITH_INDEX_READ, &index, &err), KITH_EFORMAT);
    assert_non_null(strstr(err.message, "is not an index"));
    KITH_OPTIONS(kith_index_options, options);
    options.dim = 3;
    assert_int_equal(kith_index_create(path, &options, &index, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "is there already"));
    assert_int_equal(kith_index_create(folder, &options, &index, &err), KITH_EINVAL);
    assert_true(is_whole("after an attempt to make it anew"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncated),     cmocka_unit_test(test_flipped),
        cmocka_unit_test(test_missing),       cmocka_unit_test(test_exchanged),
        cmocka_unit_test(test_other_formats), cmocka_unit_test(test_no_index),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
