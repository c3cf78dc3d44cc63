/* The store of docs/adding-a-store.md, linked in as the page says: what the public functions answer does not depend on who keeps the
 * index. */
#include "base/alloc.h"
#include "kith/rerank.h"
#include "search/index_handle.h"
#include "search/twin_index.h"

static twins make_twins(const char *name, kith_metric metric, int64_t n) {
    twins t = {made_create(made_path(name), metric), made_create("ram:twin", metric)};
    twins_fill(&t, n);
    return t;
}

static void test_same_as_a_folder(void **state) {
    (void)state;
    for (int metric = 0; metric < 3; metric++) {
        twins t = make_twins("changes.kith", (kith_metric)metric, N_TWIN);
        check_changes(&t, (kith_metric)metric);
        twins_free(&t);
    }
}

static void test_filters(void **state) {
    (void)state;
    twins t = make_twins("filters.kith", KITH_COSINE, N_TWIN);
    check_filters(&t);
    twins_free(&t);
}

static void test_compare_with_files(void **state) {
    (void)state;
    twins t = make_twins("files.kith", KITH_COSINE, 30);
    check_files(&t);
    twins_free(&t);
}

static void test_own_false_match_rates(void **state) {
    (void)state;
    check_own_rates(made_create(made_path("own.kith"), KITH_COSINE), made_create("ram:own", KITH_COSINE),
                    300);
}

/* What is told of an index, but for what only files have. */
static void test_info(void **state) {
    (void)state;
    kith_error err;
    twins t = make_twins("info.kith", KITH_COSINE, 40);
    const kith_index_info a = made_info(t.here), b = made_info(t.there);
    assert_string_equal(a.model, b.model);
    assert_string_equal(a.preprocess, b.preprocess);
    const double x[] = {(double)a.format,
                        (double)a.generation,
                        (double)a.n_items,
                        (double)a.n_columns,
                        (double)a.dim,
                        a.metric,
                        a.tier,
                        a.recall_wanted,
                        a.recall,
                        a.is_calibrated,
                        (double)a.n_excluded};
    const double y[] = {(double)b.format,
                        (double)b.generation,
                        (double)b.n_items,
                        (double)b.n_columns,
                        (double)b.dim,
                        b.metric,
                        b.tier,
                        b.recall_wanted,
                        b.recall,
                        b.is_calibrated,
                        (double)b.n_excluded};
    assert_memory_equal(x, y, sizeof x);
    assert_ok(kith_index_expect(t.there, "0123abcd", "squash256", &err), &err);
    assert_int_equal(kith_index_expect(t.there, "another", NULL, &err), KITH_EINVAL);
    for (int64_t i = 0; i < 4; i++) {
        const kith_column here = kith_index_column(t.here, i), there = kith_index_column(t.there, i);
        assert_int_equal(here.type, there.type);
        assert_true(i < 3 ? strcmp(here.name, there.name) == 0 : !there.name);
    }
    assert_ok(kith_index_keep(t.there, 1 << 20, &err), &err); /* it has nothing to keep */
    bool is_current = false;
    assert_ok(kith_index_is_current(t.there, &is_current, &err), &err);
    assert_true(is_current); /* nobody else can write it */
    int64_t n_bytes = 0;
    assert_ok(kith_index_check(t.there, NULL, &n_bytes, &err), &err);
    assert_int_equal(n_bytes, 40 * MADE_DIM * 4);
    twins_free(&t);
}

static void assert_same_excluded(const twins *t, int64_t n) {
    kith_error err;
    ki_records a = {0}, b = {0};
    assert_ok(ki_index_excluded(t->here, &a, &err), &err);
    assert_ok(ki_index_excluded(t->there, &b, &err), &err);
    assert_int_equal(a.n, n);
    assert_int_equal(b.n, n);
    for (int64_t i = 0; i < n; i++) {
        assert_int_equal(a.record[i].id, b.record[i].id);
        assert_string_equal(a.record[i].path, b.record[i].path);
        assert_string_equal(a.record[i].hash, b.record[i].hash);
    }
    ki_records_release(&a);
    ki_records_release(&b);
}

/* What following a folder of photos needs: files that stay out, until they are added again. */
static void test_excluded_files(void **state) {
    (void)state;
    kith_error err;
    twins t = make_twins("excluded.kith", KITH_COSINE, 30);
    kith_index *both[] = {t.here, t.there};
    for (int i = 0; i < 2; i++) {
        assert_ok(kith_index_exclude(both[i], (int64_t[]){4, 9, 4}, 3, &err), &err);
        assert_ok(ki_index_exclude_file(both[i], &(ki_file_record){9, "elsewhere.jpg", NULL, "00"}, &err),
                  &err);
        commit(both[i]);
    }
    assert_same_excluded(&t, 2);
    for (int i = 0; i < 2; i++) {
        made_add(both[i], 4, 1); /* its path comes back, under a new id */
        commit(both[i]);
    }
    assert_same_excluded(&t, 1);
    assert_true(digest(t.here) == digest(t.there));
    twins_free(&t);
}

/* Paths as people see them, in filters, and labels as a list. */
static void test_shown_paths_and_labels(void **state) {
    (void)state;
    kith_error err;
    twins t = make_twins("shown.kith", KITH_COSINE, 60);
    kith_index *both[] = {t.here, t.there};
    int64_t *ids[2], n[2];
    const char *labels[2][6];
    ki_arena arena = {0};
    for (int i = 0; i < 2; i++) {
        assert_ok(kith_index_move(both[i], 7, "/photos/oak/1.jpg", "oak", 1, 2, &err), &err);
        assert_ok(kith_index_note_set(both[i], "sources", "/photos", &err), &err);
        commit(both[i]);
        assert_ok(ki_index_show_paths(both[i], &err), &err);
        assert_ok(kith_index_ids(both[i], "path = 'oak/1.jpg' or path like '2016/%'", &ids[i], &n[i], &err),
                  &err);
        assert_string_equal(ki_index_shown(both[i], "/photos/oak/1.jpg"), "oak/1.jpg");
        assert_ok(ki_index_labels(both[i], ids[i], 6, &arena, labels[i], &err), &err);
    }
    assert_int_equal(n[0], 7);
    assert_int_equal(n[1], 7);
    assert_memory_equal(ids[0], ids[1], 7 * sizeof(int64_t));
    for (int i = 0; i < 6; i++) {
        assert_int_equal(!labels[0][i], !labels[1][i]);
        if (labels[0][i]) assert_string_equal(labels[0][i], labels[1][i]);
    }
    for (int i = 0; i < 2; i++) kith_ids_free(ids[i]);
    ki_arena_release(&arena);
    twins_free(&t);
}

/* What is built on searches: query expansion and re-ranking. */
static void test_reranked(void **state) {
    (void)state;
    static float rows[N_QUERIES * MADE_DIM];
    kith_error err;
    kith_hits hits[4] = {{0}};
    twins t = make_twins("rerank.kith", KITH_COSINE, 300);
    const kith_array query = make_queries(rows);
    assert_ok(kith_index_search_expanded(t.here, &query, NULL, NULL, &hits[0], &err), &err);
    assert_ok(kith_index_search_expanded(t.there, &query, NULL, NULL, &hits[1], &err), &err);
    assert_same_hits(&hits[0], &hits[1]);
    assert_ok(kith_index_search_reciprocal(t.here, &query, NULL, NULL, &hits[2], &err), &err);
    assert_ok(kith_index_search_reciprocal(t.there, &query, NULL, NULL, &hits[3], &err), &err);
    assert_same_hits(&hits[2], &hits[3]);
    for (int i = 0; i < 4; i++) kith_hits_release(&hits[i]);
    twins_free(&t);
}

/* The public functions refuse what no store may be asked, and hand on what a store refuses. */
static void test_refusals(void **state) {
    (void)state;
    kith_error err;
    float row[MADE_DIM];
    kith_index_item item;
    kith_index *index = made_create("ram:own", KITH_COSINE);
    made_add(index, 0, 5);
    assert_int_equal(kith_index_item_get(index, 0, &item, &err), KITH_ENOTFOUND); /* not committed yet */
    assert_string_equal(err.message, "ram:own has no item with id 0");
    commit(index);
    assert_int_equal(kith_index_remove(index, (int64_t[]){1, 5}, 2, &err), KITH_ENOTFOUND);
    assert_string_equal(err.message, "ram:own has no item with id 5");
    assert_int_equal(made_info(index).n_items, 5);
    assert_int_equal(kith_index_vectors(index, (int64_t[]){7}, 1, row, &err), KITH_ENOTFOUND);
    assert_int_equal(kith_index_move(index, 9, "x", NULL, 1, 1, &err), KITH_ENOTFOUND);
    assert_true(ki_index_keeps_text(index, "M\xf6we"));
    index->store->is_broken = true;
    assert_int_equal(kith_index_commit(index, NULL, &err), KITH_EINVAL);
    assert_string_equal(err.message, "an earlier change of ram:own failed");
    index->store->pending = NULL;
    assert_int_equal(kith_index_restamp(index, 1, 1, 1, &err), KITH_EINVAL);
    assert_string_equal(err.message, "ram:own was opened for reading");
    kith_index_free(index);
}

/* It is there as long as its handle, and another of its name is another index. */
static void test_opening(void **state) {
    (void)state;
    kith_error err;
    kith_index *index = made_create("ram:own", KITH_COSINE), *other = NULL;
    made_add(index, 0, 5);
    commit(index);
    assert_int_equal(kith_index_open("ram:own", KITH_INDEX_READ, &other, &err), KITH_ENOTFOUND);
    other = made_create("ram:own", KITH_COSINE);
    assert_int_equal(made_info(other).n_items, 0);
    assert_int_equal(made_info(index).n_items, 5);
    kith_index_free(other);
    kith_index_free(index);
    assert_int_not_equal(kith_index_open("ram", KITH_INDEX_READ, &other, &err),
                         KITH_OK); /* a folder, that is not there */
    assert_int_not_equal(err.status, KITH_ENOTFOUND);
}

static kith_status change(kith_index *index, kith_error *err) {
    KI_TRY(made_try_add(index, 10, 3, err));
    KI_TRY(kith_index_move(index, 6, "elsewhere", "tern", 7, 8, err));
    KI_TRY(kith_index_exclude(index, (int64_t[]){1, 2}, 2, err));
    return kith_index_commit(index, NULL, err);
}

/* Memory that runs out in any place of a change: the last commit stays as it is, and nothing leaks (ASan). */
static void test_no_memory(void **state) {
    (void)state;
    kith_status status = KITH_ENOMEM;
    int n_failed = 0;
    for (; status != KITH_OK && n_failed < 1000; n_failed++) {
        kith_error err;
        kith_index *index = made_create("ram:own", KITH_COSINE);
        made_add(index, 0, 10);
        commit(index);
        const uint64_t before = digest(index);
        ki_alloc_fail_after(n_failed);
        status = change(index, &err);
        ki_alloc_fail_after(-1);
        if (status != KITH_OK) {
            assert_int_equal(status, KITH_ENOMEM);
            assert_true(digest(index) == before);
        }
        kith_index_free(index);
    }
    assert_true(n_failed > 10 && n_failed < 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_a_folder),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_compare_with_files),
        cmocka_unit_test(test_own_false_match_rates),
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_excluded_files),
        cmocka_unit_test(test_shown_paths_and_labels),
        cmocka_unit_test(test_reranked),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_opening),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
