/* Items get other values and labels: what is asked afterwards, through commits, merges, removals and compaction, is what was given
 * last. A reader keeps what it opened. */
#include "base/rng.h"
#include "made_index.h"

static const char *const columns[] = {"year", "weight", "place"};

static kith_value integer(int64_t value) { return (kith_value){.type = KITH_VALUE_INT, .integer = value}; }
static kith_value real(double value) { return (kith_value){.type = KITH_VALUE_REAL, .real = value}; }
static kith_value text(const char *value) { return (kith_value){.type = KITH_VALUE_TEXT, .text = value}; }

static char folder[4096];

static kith_index *made(const char *name, int64_t n) {
    kith_error err;
    snprintf(folder, sizeof folder, "%s", made_path(name));
    kith_index *index = made_create(folder, KITH_COSINE);
    made_add(index, 0, n);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    return index;
}

static void commit(kith_index *index) {
    kith_error err;
    assert_ok(kith_index_commit(index, NULL, &err), &err);
}

static int64_t count(const kith_index *index, const char *where) {
    kith_error err;
    int64_t *ids = NULL, n = 0;
    assert_ok(kith_index_ids(index, where, &ids, &n, &err), &err);
    kith_ids_free(ids);
    return n;
}

static void assert_value(const kith_value *found, const kith_value *wanted) {
    assert_int_equal(found->type, wanted->type);
    if (wanted->type == KITH_VALUE_INT) assert_int_equal(found->integer, wanted->integer);
    if (wanted->type == KITH_VALUE_REAL) assert_memory_equal(&found->real, &wanted->real, sizeof(double));
    if (wanted->type == KITH_VALUE_TEXT) assert_string_equal(found->text, wanted->text);
}

static void test_set(void **state) {
    (void)state;
    kith_error err;
    kith_index *index = made("set.kith", 50);
    kith_index *reader = made_open(folder, KITH_INDEX_READ);
    const int64_t ids[] = {4, 17, 4};
    const kith_value values[] = {integer(1), text("nowhere"), integer(2), {0}, integer(3), text("Sylt")};
    const char *const two[] = {"year", "place"}, *const labels[] = {"new", NULL, "last"};
    assert_ok(kith_index_set(index, ids, 3, two, 2, values, &err), &err);
    assert_ok(kith_index_label(index, ids, 3, labels, &err), &err);
    assert_int_equal(count(index, "year = 3"), 0); /* from the next commit on */
    commit(index);
    assert_int_equal(count(index, "year = 3 and place = Sylt and label = last and id = 4"), 1);
    assert_int_equal(count(index, "year = 2 and id = 17"), 1);
    assert_int_equal(count(index, "year = 1 or place = nowhere or label = new"), 0);
    assert_int_equal(count(reader, "year = 3 or year = 2"), 0);
    kith_index_item item;
    made_item was;
    assert_ok(kith_index_item_get(index, 4, &item, &err), &err);
    made_known(4, &was);
    assert_string_equal(item.path, was.path);
    assert_string_equal(item.hash, was.hash);
    assert_value(&item.values[1], &was.values[1]); /* a column that was not named */
    kith_index_item_release(&item);
    assert_ok(kith_index_item_get(index, 17, &item, &err), &err);
    assert_null(item.label);
    assert_int_equal(item.values[2].type, KITH_VALUE_NONE);
    kith_index_item_release(&item);
    /* A move brings its own label; a label after it counts again. */
    assert_ok(kith_index_move(index, 4, "a.jpg", "moved", 1, 2, &err), &err);
    commit(index);
    assert_int_equal(count(index, "label = moved and path = 'a.jpg' and year = 3"), 1);
    assert_ok(kith_index_label(index, ids, 1, labels, &err), &err);
    commit(index);
    assert_int_equal(count(index, "label = new and path = 'a.jpg'"), 1);
    assert_ok(kith_index_compact(index, NULL, &err), &err);
    assert_int_equal(count(index, "label = new and path = 'a.jpg' and year = 3"), 1);
    kith_index_free(reader);
    kith_index_free(index);
}

static void test_what_is_refused(void **state) {
    (void)state;
    kith_error err;
    kith_index *index = made("refused.kith", 10);
    const int64_t ids[] = {3, 10}, negative = -1;
    const char *const wrong[] = {"year", "colour"}, *const labels[] = {"a", "b"};
    const kith_value values[] = {integer(1), text("x"), integer(1), text("x")}, bad[] = {real(0.0 / 0.0)};
    assert_int_equal(kith_index_set(index, ids, 1, wrong, 2, values, &err), KITH_ENOTFOUND);
    assert_non_null(strstr(err.message, "colour"));
    assert_int_equal(kith_index_set(index, ids, 2, columns, 1, values, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "'year' holds values of type integer; found text"));
    assert_int_equal(kith_index_set(index, ids, 1, columns + 1, 1, bad, &err), KITH_EINVAL);
    assert_int_equal(kith_index_set(index, ids, 2, columns, 1, (kith_value[]){integer(1), integer(1)}, &err),
                     KITH_ENOTFOUND);
    assert_non_null(strstr(err.message, "10"));
    assert_int_equal(kith_index_set(index, &negative, 1, columns, 1, values, &err), KITH_EINVAL);
    assert_int_equal(kith_index_label(index, ids, 2, labels, &err), KITH_ENOTFOUND);
    assert_ok(kith_index_set(index, ids, 0, columns, 1, values, &err), &err);
    const int64_t before = made_info(index).generation;
    commit(index); /* nothing has changed */
    assert_int_equal(made_info(index).generation, before);
    kith_index_free(index);
    index = made_open(folder, KITH_INDEX_READ);
    assert_int_equal(kith_index_label(index, ids, 1, labels, &err), KITH_EINVAL);
    kith_index_free(index);
}

/* An index that was never given a value is as an older kith wrote it; one that was is not, until it is compacted. */
static void test_format(void **state) {
    (void)state;
    kith_error err;
    kith_index *index = made("format.kith", 10);
    assert_int_equal(made_info(index).format, 1);
    const kith_value value = integer(5);
    assert_ok(kith_index_set(index, (int64_t[]){2}, 1, columns, 1, &value, &err), &err);
    commit(index);
    assert_int_equal(made_info(index).format, 4);
    assert_ok(kith_index_compact(index, NULL, &err), &err);
    assert_int_equal(made_info(index).format, 1);
    assert_int_equal(count(index, "year = 5 and id = 2"), 1);
    kith_index_free(index);
}

/* A column that comes with the rows that are merged with older ones, into an index without columns. */
static void test_a_column_with_its_rows(void **state) {
    (void)state;
    kith_error err;
    kith_index *index = NULL;
    KITH_OPTIONS(kith_index_options, options);
    float rows[2 * MADE_DIM];
    options.dim = MADE_DIM;
    made_row(1, rows);
    made_row(2, rows + MADE_DIM);
    const kith_array array = {KITH_F32, 2, {2, MADE_DIM}, rows};
    snprintf(folder, sizeof folder, "%s", made_path("column.kith"));
    assert_ok(kith_index_create(folder, &options, &index, &err), &err);
    assert_ok(kith_index_add(index, &array, NULL, NULL, &err), &err);
    commit(index);
    const kith_value values[] = {text("Sylt"), text("Amrum")};
    const kith_index_item items[] = {{.bytes = -1, .mtime_ns = -1, .values = &values[0]},
                                     {.bytes = -1, .mtime_ns = -1, .values = &values[1]}};
    assert_ok(kith_index_column_add(index, "place", KITH_VALUE_TEXT, &err), &err);
    assert_ok(kith_index_set(index, (int64_t[]){1}, 1, columns + 2, 1, values, &err), &err);
    assert_ok(kith_index_add(index, &array, items, NULL, &err), &err);
    commit(index);
    assert_int_equal(made_info(index).n_segments, 1);
    assert_int_equal(count(index, "place = Sylt"), 2);
    assert_int_equal(count(index, "place = Amrum and id = 3"), 1);
    kith_index_free(index);
}

/* ---- long histories against a plain list ---- */

enum { MOST = 6000 };

typedef struct known {
    kith_value values[3];
    const char *label;
    bool is_there;
} known;

static known list[MOST];

static void assert_like_list(const kith_index *index, int64_t n) {
    kith_error err;
    for (int64_t i = 0; i < n; i++) {
        kith_index_item item = {0};
        const kith_status status = kith_index_item_get(index, i, &item, &err);
        assert_int_equal(status, list[i].is_there ? KITH_OK : KITH_ENOTFOUND);
        if (!list[i].is_there) continue;
        for (int j = 0; j < 3; j++) assert_value(&item.values[j], &list[i].values[j]);
        if ((item.label == NULL) != (list[i].label == NULL) ||
            (item.label && strcmp(item.label, list[i].label) != 0))
            fail_msg("item %lld: label %s; wanted %s", (long long)i, item.label, list[i].label);
        kith_index_item_release(&item);
    }
    int64_t wanted = 0;
    for (int64_t i = 0; i < n; i++)
        wanted += list[i].is_there && list[i].values[0].type == KITH_VALUE_INT &&
                  list[i].values[0].integer >= 2020 && list[i].label && strcmp(list[i].label, "set") == 0;
    assert_int_equal(count(index, "year >= 2020 and label = set"), wanted);
}

static void add_known(kith_index *index, int64_t first, int64_t n) {
    static made_item kept[MOST];
    made_add(index, first, n);
    for (int64_t i = first; i < first + n; i++) {
        made_known(i, &kept[i]);
        list[i] = (known){.label = kept[i].item.label, .is_there = true};
        memcpy(list[i].values, kept[i].values, sizeof list[i].values);
    }
}

static void set_some(kith_index *index, ki_rng *rng, int64_t n) {
    static const char *const places[] = {"Sylt", "Amrum", "Föhr"};
    kith_error err;
    for (int t = 0; t < 40; t++) {
        const int64_t id = (int64_t)ki_rng_below(rng, (uint32_t)n);
        const int column = (int)ki_rng_below(rng, 4);
        if (!list[id].is_there) continue;
        if (column == 3) {
            list[id].label = ki_rng_below(rng, 3) ? "set" : NULL;
            assert_ok(kith_index_label(index, &id, 1, &list[id].label, &err), &err);
            continue;
        }
        const kith_value some[] = {integer(2010 + (int64_t)ki_rng_below(rng, 20)), real(ki_rng_double(rng)),
                                   text(places[ki_rng_below(rng, 3)])};
        list[id].values[column] = ki_rng_below(rng, 4) ? some[column] : (kith_value){0};
        assert_ok(kith_index_set(index, &id, 1, columns + column, 1, &list[id].values[column], &err), &err);
    }
}

static void test_history(void **state) {
    (void)state;
    kith_error err;
    ki_rng rng = ki_rng_at(3, KI_RNG_TEST, 0, 0);
    made_exact_numbers = 2000 * MADE_DIM; /* the later commits make codes */
    kith_index *index = made("history.kith", 0);
    int64_t n = 0;
    for (int step = 0; step < 30; step++) {
        const int64_t more = step % 4 == 3 ? 0 : 1 + (int64_t)ki_rng_below(&rng, step % 5 ? 20 : 1500);
        if (n + more > MOST) break;
        if (more > 0) add_known(index, n, more);
        n += more;
        set_some(index, &rng, n);
        const int64_t gone = (int64_t)ki_rng_below(&rng, (uint32_t)n);
        if (list[gone].is_there) assert_ok(kith_index_remove(index, &gone, 1, &err), &err);
        list[gone].is_there = false;
        if (step % 9 == 8)
            assert_ok(kith_index_compact(index, NULL, &err), &err);
        else
            commit(index);
        assert_like_list(index, n);
    }
    assert_true(n > 2100);
    int64_t bytes = 0;
    assert_ok(kith_index_check(index, NULL, &bytes, &err), &err);
    kith_index_free(index);
    index = made_open(folder, KITH_INDEX_READ);
    assert_like_list(index, n);
    kith_index_free(index);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set), cmocka_unit_test(test_what_is_refused), cmocka_unit_test(test_format),
        cmocka_unit_test(test_a_column_with_its_rows), cmocka_unit_test(test_history)};
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
