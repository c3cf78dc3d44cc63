/* Items whose files were moved keep their ids, and files that were removed by hand stay out: through commits, merges, compaction. */
#include <dirent.h>

#include "base/alloc.h"
#include "made_index.h"
#include "search/index_handle.h"

static void commit(kith_index *index) {
    kith_error err;
    assert_ok(kith_index_commit(index, NULL, &err), &err);
}

static void move(kith_index *index, int64_t id, const char *path, const char *label) {
    kith_error err;
    assert_ok(kith_index_move(index, id, path, label, 11 + id, 22 + id, &err), &err);
}

/* How many items an expression holds for; *ret_first: the first of them. */
static int64_t count(const kith_index *index, const char *where, int64_t *ret_first) {
    kith_error err;
    int64_t *ids = NULL, n = 0;
    assert_ok(kith_index_ids(index, where, &ids, &n, &err), &err);
    *ret_first = n > 0 ? ids[0] : -1;
    kith_ids_free(ids);
    return n;
}

static void assert_item(const kith_index *index, int64_t id, const char *path, const char *label) {
    kith_error err;
    kith_index_item item;
    made_item made;
    float found[MADE_DIM], wanted[MADE_DIM];
    int64_t first = -1;
    char where[200];
    assert_ok(kith_index_item_get(index, id, &item, &err), &err);
    assert_string_equal(item.path, path);
    if (label)
        assert_string_equal(item.label, label);
    else
        assert_null(item.label);
    made_known(id, &made);
    assert_string_equal(item.hash, made.hash); /* and all else is as it was */
    assert_int_equal(item.values[0].type, made.values[0].type);
    kith_index_item_release(&item);
    assert_ok(kith_index_vectors(index, &id, 1, found, &err), &err);
    made_row(id, wanted);
    assert_memory_equal(found, wanted, sizeof found);
    snprintf(where, sizeof where, "path = '%s'", path);
    assert_int_equal(count(index, where, &first), 1);
    assert_int_equal(first, id);
    if (!label) return;
    snprintf(where, sizeof where, "path = '%s' and label = '%s'", path, label);
    assert_int_equal(count(index, where, &first), 1);
}

/* Files of the folder with this ending. */
static int n_files(const char *folder, const char *kind) {
    int n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));) n += strstr(e->d_name, kind) != NULL;
    closedir(dir);
    return n;
}

/* Two segments: in the first, in the last, and of a row that was not committed yet. */
static void test_an_item_keeps_its_id(void **state) {
    (void)state;
    kith_error err;
    char *path = strdup(made_path("moves.kith"));
    kith_index *index = made_create(path, KITH_COSINE);
    made_add(index, 0, 1100);
    commit(index);
    assert_int_equal(made_info(index).format, 1);
    made_add(index, 1100, 10);
    move(index, 1105, "later/a.jpg", "later");
    commit(index);
    assert_int_equal(made_info(index).n_segments, 2);
    move(index, 7, "elsewhere/7.jpg", "heron");
    move(index, 8, "not for long.jpg", "heron");
    move(index, 8, "elsewhere/8.jpg", NULL);
    move(index, 1109, "elsewhere/1109.jpg", "tern");
    commit(index);
    for (int step = 0; step < 5; step++) {
        if (step == 1) { /* merges the last segment alone */
            made_add(index, 1110, 5);
            commit(index);
            assert_int_equal(made_info(index).n_segments, 2);
        }
        if (step == 2) {
            kith_index_free(index);
            index = made_open(path, KITH_INDEX_WRITE);
        }
        if (step == 3) { /* again, and one that is removed */
            move(index, 7, "third/7.jpg", "egret");
            assert_ok(kith_index_remove(index, &(int64_t){8}, 1, &err), &err);
            commit(index);
        }
        if (step == 4) {
            assert_int_equal(made_info(index).format, 2);
            assert_ok(kith_index_compact(index, NULL, &err), &err);
            assert_int_equal(made_info(index).format, 1);
        }
        int64_t first = -1, bytes = 0;
        assert_int_equal(n_files(path, ".moves"), step < 4);
        assert_item(index, 7, step < 3 ? "elsewhere/7.jpg" : "third/7.jpg", step < 3 ? "heron" : "egret");
        if (step < 3) assert_item(index, 8, "elsewhere/8.jpg", NULL);
        assert_item(index, 1105, "later/a.jpg", "later");
        assert_item(index, 1109, "elsewhere/1109.jpg", "tern");
        assert_int_equal(count(index, "label = heron", &first), step < 3);
        assert_int_equal(count(index, "path like 'not%'", &first), 0);
        assert_int_equal(count(index, "path = '2022/picture-7.jpg'", &first), 0);
        assert_ok(kith_index_check(index, NULL, &bytes, &err), &err);
        kith_index_item item;
        assert_ok(kith_index_item_get(index, 7, &item, &err), &err);
        assert_int_equal(item.bytes, 18);
        assert_int_equal(item.mtime_ns, 29);
        kith_index_item_release(&item);
        const kith_file_stamp file = {"later/a.jpg", 11 + 1105, 22 + 1105};
        kith_file_state is = KITH_FILE_NEW;
        int64_t id = -1, *gone = NULL, n_gone = 0;
        assert_ok(kith_index_compare(index, &file, 1, &is, &id, &gone, &n_gone, &err), &err);
        assert_int_equal(is, KITH_FILE_SAME);
        assert_int_equal(id, 1105);
        kith_ids_free(gone);
    }
    assert_int_equal(kith_index_move(index, 8, "x", NULL, 1, 1, &err), KITH_ENOTFOUND);
    assert_int_equal(kith_index_move(index, 7, "x", NULL, -2, 1, &err), KITH_EINVAL);
    kith_index_free(index);
    free(path);
}

/* The list is not written again by commits that do not touch it. */
static void test_a_list_stays(void **state) {
    (void)state;
    kith_error err;
    char *path = strdup(made_path("stays.kith"));
    kith_index *index = made_create(path, KITH_COSINE);
    made_add(index, 0, 2000);
    commit(index);
    move(index, 3, "b", "b");
    assert_ok(kith_index_exclude(index, &(int64_t){4}, 1, &err), &err);
    commit(index);
    const int64_t moves = ki_index_committed(index)->moves.number,
                  excluded = ki_index_committed(index)->excluded.number;
    assert_true(moves > 0 && excluded > 0);
    made_add(index, 2000, 5);
    commit(index);
    made_add(index, 2005, 5);
    commit(index);
    assert_int_equal(ki_index_committed(index)->moves.number, moves);
    assert_int_equal(ki_index_committed(index)->excluded.number, excluded);
    kith_index_free(index);
    free(path);
}

/* ---- removed by hand ---- */

static void assert_excluded(const kith_index *index, int64_t n, const char *first, const char *hash) {
    kith_error err;
    ki_records found = {0};
    assert_int_equal(made_info(index).n_excluded, n);
    assert_ok(ki_index_excluded(index, &found, &err), &err);
    assert_int_equal(found.n, n);
    if (n > 0) assert_string_equal(found.record[0].path, first);
    if (n > 0) assert_string_equal(found.record[0].hash, hash);
    ki_records_release(&found);
}

static void test_removed_by_hand(void **state) {
    (void)state;
    kith_error err;
    char *path = strdup(made_path("hand.kith"));
    kith_index *index = made_create(path, KITH_COSINE);
    made_item one, other;
    made_known(1, &one);
    made_known(9, &other);
    made_add(index, 0, 20);
    commit(index);
    assert_int_equal(kith_index_exclude(index, (int64_t[]){1, 77}, 2, &err), KITH_ENOTFOUND);
    assert_excluded(index, 0, NULL, NULL);
    assert_ok(kith_index_exclude(index, (int64_t[]){1, 2, 1}, 3, &err), &err);
    assert_ok(kith_index_remove(index, &(int64_t){3}, 1, &err), &err); /* not by hand */
    commit(index);
    assert_int_equal(made_info(index).n_items, 17);
    assert_excluded(index, 2, one.path, one.hash);
    assert_int_equal(made_info(index).format, 2);
    assert_ok(kith_index_compact(index, NULL, &err), &err);
    assert_excluded(index, 2, one.path, one.hash);
    /* Added again, and so is one that was removed again before the commit. */
    made_add(index, 1, 2);
    assert_ok(kith_index_exclude(index, &(int64_t){21}, 1, &err), &err);
    commit(index);
    made_known(2, &one);
    assert_excluded(index, 1, one.path, one.hash);
    made_add(index, 2, 1);
    commit(index);
    assert_excluded(index, 0, NULL, NULL);
    assert_int_equal(made_info(index).format, 1);
    /* A file that was moved stays out under the path it has then. */
    move(index, 9, "moved.jpg", NULL);
    assert_ok(kith_index_exclude(index, &(int64_t){9}, 1, &err), &err);
    commit(index);
    assert_excluded(index, 1, "moved.jpg", other.hash);
    assert_ok(ki_index_exclude_file(index, &(ki_file_record){9, "again.jpg", NULL, other.hash}, &err), &err);
    commit(index);
    assert_excluded(index, 1, "again.jpg", other.hash);
    kith_index_free(index);
    index = made_open(path, KITH_INDEX_READ);
    assert_excluded(index, 1, "again.jpg", other.hash);
    kith_index_free(index);
    free(path);
}

/* Every allocation of a change fails once. */
static kith_status change(const char *path, kith_error *err) {
    kith_index *index = NULL;
    kith_status status = kith_index_open(path, KITH_INDEX_WRITE, &index, err);
    if (status == KITH_OK) status = kith_index_move(index, 3, "three", "b", 1, 1, err);
    if (status == KITH_OK) status = kith_index_exclude(index, &(int64_t){5}, 1, err);
    if (status == KITH_OK) status = made_try_add(index, 40, 3, err);
    if (status == KITH_OK) status = kith_index_commit(index, NULL, err);
    kith_index_free(index);
    return status;
}

static void test_memory(void **state) {
    (void)state;
    kith_error err;
    char *path = strdup(made_path("memory.kith"));
    kith_index *index = made_create(path, KITH_COSINE);
    made_add(index, 0, 40);
    move(index, 4, "four", "b");
    assert_ok(kith_index_exclude(index, &(int64_t){6}, 1, &err), &err);
    commit(index);
    kith_index_free(index);
    bool is_made = false;
    int n = 0;
    for (; !is_made; n++) {
        ki_alloc_fail_after(n);
        const kith_status status = change(path, &err);
        ki_alloc_fail_after(-1);
        if (status != KITH_OK) assert_int_equal(status, KITH_ENOMEM);
        index = made_open(path, KITH_INDEX_READ);
        is_made = made_info(index).generation == 3; /* perhaps nothing but to open it anew has failed */
        assert_true(is_made || status != KITH_OK);
        assert_item(index, 4, "four", "b");
        assert_int_equal(made_info(index).n_excluded, is_made ? 2 : 1);
        kith_index_free(index);
    }
    assert_true(n > 50);
    index = made_open(path, KITH_INDEX_READ);
    assert_item(index, 3, "three", "b");
    assert_item(index, 4, "four", "b");
    assert_int_equal(made_info(index).n_excluded, 2);
    kith_index_free(index);
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_an_item_keeps_its_id),
                                       cmocka_unit_test(test_a_list_stays),
                                       cmocka_unit_test(test_removed_by_hand), cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
