/* Two indexes with the same rows, one in a folder and one in another store: the same answers to everything, to the last bit. */
#ifndef KITH_TEST_TWIN_INDEX_H
#define KITH_TEST_TWIN_INDEX_H

#include "made_index.h"

enum { N_TWIN = 600, N_QUERIES = 20 };

/* Both open for writing. */
typedef struct twins {
    kith_index *here, *there; /* here: in a folder, the truth */
} twins;

static inline void commit(kith_index *index) {
    kith_error err;
    assert_ok(kith_index_commit(index, NULL, &err), &err);
}

static inline uint64_t digest(const kith_index *index) {
    kith_error err;
    uint64_t sum = 0;
    assert_ok(made_digest(index, &sum, &err), &err);
    return sum;
}

/* Made rows 0 … n - 1 in both. */
static inline void twins_fill(twins *t, int64_t n) {
    made_add(t->here, 0, n);
    made_add(t->there, 0, n);
    commit(t->here);
    commit(t->there);
}

static inline void twins_free(twins *t) {
    kith_index_free(t->here);
    kith_index_free(t->there);
}

static inline kith_array make_queries(float *rows) {
    for (int i = 0; i < N_QUERIES; i++) made_row(100000 + i * 7, rows + i * MADE_DIM);
    made_row(48, rows); /* has a twin: ties */
    return (kith_array){KITH_F32, 2, {N_QUERIES, MADE_DIM}, rows};
}

static inline kith_hits search(const kith_index *index, const kith_search_options *options) {
    static float rows[N_QUERIES * MADE_DIM];
    kith_error err;
    kith_hits hits = {0};
    const kith_array query = make_queries(rows);
    assert_ok(kith_index_search(index, &query, options, &hits, &err), &err);
    return hits;
}

static inline void assert_same_hits(const kith_hits *a, const kith_hits *b) {
    assert_int_equal(a->n_allowed, b->n_allowed);
    for (int64_t q = 0; q <= a->n_queries; q++) assert_int_equal(a->begin[q], b->begin[q]);
    for (int64_t i = 0; i < a->begin[a->n_queries]; i++) {
        assert_int_equal(a->hits[i].id, b->hits[i].id);
        assert_memory_equal(&a->hits[i].score, &b->hits[i].score, sizeof(double));
    }
}

static inline void assert_same_search(const twins *t, const kith_search_options *options) {
    kith_hits a = search(t->here, options), b = search(t->there, options);
    assert_same_hits(&a, &b);
    kith_hits_release(&a);
    kith_hits_release(&b);
}

/* Labels and values: of items that were moved, just added, named twice; and a move after a label. */
static inline void set_values(kith_index *index) {
    kith_error err;
    const char *const columns[] = {"depth", "place", "year"}, *const labels[] = {"Möwe", NULL, "x", "y"};
    const int64_t ids[] = {6, N_TWIN + 3, 8, 6}, gone[] = {9, 3};
    kith_value values[12] = {{.type = KITH_VALUE_REAL, .real = -0.0},
                             {.type = KITH_VALUE_TEXT, .text = "a 'quoted' \"place\" \\ {} null"},
                             {0},
                             {.type = KITH_VALUE_REAL, .real = 0.1},
                             {0},
                             {.type = KITH_VALUE_INT, .integer = 9007199254740993}};
    values[11] = (kith_value){.type = KITH_VALUE_INT, .integer = -7};
    assert_ok(kith_index_set(index, ids, 4, columns, 3, values, &err), &err);
    assert_ok(kith_index_label(index, ids, 4, labels, &err), &err);
    assert_ok(kith_index_move(index, 8, "eight.jpg", "after", 1, 2, &err), &err);
    assert_int_equal(kith_index_set(index, gone, 2, columns, 1, (kith_value[2]){{0}}, &err), KITH_ENOTFOUND);
    assert_non_null(strstr(err.message, "3"));
    assert_int_equal(kith_index_label(index, gone, 2, labels, &err), KITH_ENOTFOUND);
}

/* After additions, removals, new dates and paths and a new column, of twins with N_TWIN rows: what is known of items, vectors, hits
 * and scores. */
static inline void check_changes(const twins *t, kith_metric metric) {
    const int64_t gone[] = {3, 77, 599};
    int64_t self[N_QUERIES] = {48, 49, -1, 5};
    kith_error err;
    kith_index *both[] = {t->here, t->there};
    for (int i = 0; i < 2; i++) {
        assert_ok(kith_index_remove(both[i], gone, 3, &err), &err);
        assert_ok(kith_index_restamp(both[i], 5, 123, 456, &err), &err);
        assert_ok(kith_index_move(both[i], 6, "Möwe/6.jpg", "Möwe", 7, 8, &err), &err);
        assert_ok(kith_index_move(both[i], 7, "seven", NULL, 9, 10, &err), &err);
        assert_ok(kith_index_exclude(both[i], (int64_t[]){10, 11}, 2, &err), &err);
        assert_ok(kith_index_note_set(both[i], "folder", "Möwen's", &err), &err);
        made_add(both[i], N_TWIN, 20);
        assert_ok(kith_index_column_add(both[i], "depth", KITH_VALUE_REAL, &err), &err);
        set_values(both[i]);
        commit(both[i]);
        assert_int_equal(made_info(both[i]).n_items, N_TWIN + 15);
        assert_int_equal(made_info(both[i]).n_excluded, 2);
        assert_string_equal(kith_index_note(both[i], "folder"), "Möwen's");
    }
    assert_true(digest(t->here) == digest(t->there));
    KITH_OPTIONS(kith_search_options, options);
    options.k = 10;
    assert_same_search(t, &options);
    options.offset = 5;
    for (int i = 4; i < N_QUERIES; i++) self[i] = -1;
    options.self = self;
    assert_same_search(t, &options);
    options.has_limit = true;
    options.limit = metric == KITH_SQEUCLIDEAN ? 40 : 0.2;
    options.k = INT64_MAX;
    assert_same_search(t, &options);
}

/* False-match rates from the labels of n items of two empty indexes, which it frees. */
static inline void check_own_rates(kith_index *here, kith_index *there, int64_t n) {
    kith_error err;
    kith_calibration curve[2];
    memset(curve, 0, sizeof curve);
    kith_index *both[] = {here, there};
    for (int i = 0; i < 2; i++) {
        made_add(both[i], 0, 20);
        made_add_labelled(both[i], 20, n, 15);
        commit(both[i]);
        assert_ok(kith_index_calibrate_own(both[i], NULL, &curve[i], &err), &err);
        commit(both[i]);
        assert_memory_equal(kith_index_calibration(both[i]), &curve[i], sizeof curve[i]);
        kith_index_free(both[i]);
    }
    assert_memory_equal(&curve[0], &curve[1], sizeof curve[0]);
    assert_int_equal(curve[0].n_classes, 20); /* with five made ones */
    assert_true(curve[0].n > 100);
}

/* Of twins with 30 rows, one of which was touched and one removed. */
static inline void check_files(const twins *t) {
    kith_error err;
    const kith_file_stamp files[] = {{"2015/picture-0.jpg", 1000, 1700000000000000000},
                                     {"2016/picture-1.jpg", 999, 1700000000000000001},
                                     {"2017/picture-2.jpg", 1002, 5},
                                     {"new.jpg", 1, 1}};
    kith_file_state states[2][4];
    int64_t ids[2][4], *gone[2], n_gone[2];
    kith_index *both[] = {t->here, t->there};
    for (int i = 0; i < 2; i++) {
        assert_ok(kith_index_restamp(both[i], 1, 999, 1700000000000000001, &err), &err);
        assert_ok(kith_index_remove(both[i], (int64_t[]){29}, 1, &err), &err);
        commit(both[i]);
    }
    assert_ok(kith_index_compare(t->here, files, 4, states[0], ids[0], &gone[0], &n_gone[0], &err), &err);
    assert_ok(kith_index_compare(t->there, files, 4, states[1], ids[1], &gone[1], &n_gone[1], &err), &err);
    assert_int_equal(states[1][0], KITH_FILE_SAME);
    assert_int_equal(states[1][1], KITH_FILE_SAME);
    assert_int_equal(states[1][2], KITH_FILE_CHANGED);
    assert_memory_equal(states[0], states[1], sizeof states[0]);
    assert_memory_equal(ids[0], ids[1], sizeof ids[0]);
    assert_int_equal(n_gone[1], 26);
    assert_int_equal(n_gone[0], 26);
    assert_memory_equal(gone[0], gone[1], 26 * sizeof(int64_t));
    kith_ids_free(gone[0]);
    kith_ids_free(gone[1]);
}

static const char *const twin_filters[] = {
    "label = tern",
    "label != tern",
    "not label = tern",
    "not (label != tern)",
    "label in (tern, 'black tern')",
    "label not in (tern, gull)",
    "label < gull",
    "label >= \"Möwe\"",
    "label like '%ern'",
    "label not like '_u%'",
    "label like 'M_we'",
    "path like '2016/%' or path like '%-7.jpg'",
    "path like '%\\_%'",
    "path like '%\\'",
    "path like '\\%'",
    "not path like '2016/%'",
    "place = Texel and year >= 2020 and not weight < 0.5",
    "year > 2019.5",
    "year = 2016.0",
    "year in (2016, 2017.5, 2018)",
    "year < 1e-300",
    "year > -1e300",
    "year != 9223372036854775807",
    "weight < 0.1",
    "weight != 0",
    "weight in (1, 2, 0.5)",
    "id >= 700 and id < 712.25",
    "id in (1, 5, 99999)",
    "not (place = Texel or year = 2017)",
    "not (not place = Helgoland)",
    "label = tern or label = gull or label = auk and year = 2016 or not weight > 0",
    /* What would be SQL if it were not a value. */
    "label = \"x' or 'a' = 'a\"",
    "label = '; drop schema filters cascade; --'",
    "path like '%''); delete from items; --'",
    "place in ('Texel', ''') or true --')",
    "label = '$1'",
    "label = '\\'",
    "place = '{1,2}'",
};

static inline void assert_same_facets(const twins *t, const char *column, const char *where, int64_t most) {
    kith_error err;
    kith_facets f[2];
    kith_index *both[] = {t->here, t->there};
    for (int i = 0; i < 2; i++) {
        const kith_status status = kith_index_facets(both[i], column, where, most, &f[i], &err);
        if (status != KITH_OK) fail_msg("facets of %s where %s: %s", column, where, err.message);
    }
    assert_int_equal(f[0].n_values, f[1].n_values);
    assert_int_equal(f[0].n_allowed, f[1].n_allowed);
    assert_int_equal(f[0].n_items, f[1].n_items);
    for (int64_t k = 0; k < f[0].n_values; k++) {
        const kith_facet_value *a = &f[0].values[k], *b = &f[1].values[k];
        assert_true(a->n == b->n && a->low == b->low && a->high == b->high);
        if (a->text) assert_string_equal(a->text, b->text);
    }
    for (int i = 0; i < 2; i++) kith_facets_release(&f[i]);
}

/* Both find the same items; and what was meant as SQL is only text. */
static inline void check_filters(const twins *t) {
    kith_error err;
    const uint64_t before = digest(t->there);
    for (size_t i = 0; i < N_ROWS(twin_filters); i++) {
        int64_t *a = NULL, *b = NULL, n_a = 0, n_b = 0;
        assert_ok(kith_index_ids(t->here, twin_filters[i], &a, &n_a, &err), &err);
        const kith_status status = kith_index_ids(t->there, twin_filters[i], &b, &n_b, &err);
        if (status != KITH_OK) fail_msg("%s: %s", twin_filters[i], err.message);
        if (n_a != n_b || (n_a > 0 && memcmp(a, b, (size_t)n_a * sizeof *a) != 0))
            fail_msg("%s: %lld in the folder, %lld there", twin_filters[i], (long long)n_a, (long long)n_b);
        kith_ids_free(a);
        kith_ids_free(b);
        assert_same_facets(t, i % 2 ? "weight" : "place", twin_filters[i], 5);
        assert_same_facets(t, i % 2 ? "label" : "year", twin_filters[i], 5);
        if (i % 5 > 0) continue;
        KITH_OPTIONS(kith_search_options, options);
        options.where = twin_filters[i];
        assert_same_search(t, &options);
    }
    assert_true(digest(t->there) == before);
}

#endif
