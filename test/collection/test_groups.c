/* Groups of a collection: found, measured, kept in the index, followed when items come and go; and what is refused. */
#include "kith/groups.h"

#include <math.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "collection/made_collection.h"

enum { DIM = 12, MOST = 400 };

static float rows[MOST * DIM];
static char name[MOST][16];

static int set_up(void **state) {
    (void)state;
    made_shell("rm -rf *");
    return 0;
}

static double noise(ki_rng *rng) {
    return ki_rng_double(rng) + ki_rng_double(rng) + ki_rng_double(rng) - 1.5;
}

/* Rows of clusters that take turns, and `n_alone` that are in none. */
static int64_t make_rows(int64_t n_clusters, int64_t n_each, int64_t n_alone, double spread) {
    ki_rng rng = ki_rng_at(1, KI_RNG_AUGMENT, 0, 0);
    float centre[MOST * DIM];
    const int64_t n = n_clusters * n_each;
    for (int64_t i = 0; i < n_clusters * DIM; i++) centre[i] = (float)noise(&rng);
    for (int64_t i = 0; i < n + n_alone; i++) {
        snprintf(name[i], sizeof name[i], i < n ? "c%d" : "alone%d", (int)(i < n ? i % n_clusters : i));
        for (int d = 0; d < DIM; d++)
            rows[i * DIM + d] =
                (float)((i < n ? centre[i % n_clusters * DIM + d] : 0) + (i < n ? spread : 1) * noise(&rng));
    }
    return n + n_alone;
}

/* Add rows, every `labelled`-th with its label (0: none). */
static kith_sync_report add(kith_collection *c, int64_t first, int64_t n, int64_t labelled) {
    kith_error err;
    kith_sync_report report;
    static kith_index_item items[MOST];
    for (int64_t i = 0; i < n; i++)
        items[i] =
            (kith_index_item){.bytes = -1,
                              .mtime_ns = -1,
                              .label = labelled && (first + i) % labelled == 0 ? name[first + i] : NULL};
    const kith_array array = {KITH_F32, 2, {n, DIM}, rows + first * DIM};
    assert_ok(kith_collection_add_rows(c, &array, items, NULL, &report, &err), &err);
    return report;
}

static kith_collection *make(const char *path) {
    kith_error err;
    kith_collection *c = NULL;
    KITH_OPTIONS(kith_collection_options, options);
    options.dim = DIM;
    assert_ok(kith_collection_create(made_path(path), &options, &c, &err), &err);
    return c;
}

static kith_groups find(kith_collection *c, double error, bool all) {
    kith_error err;
    kith_groups g;
    KITH_OPTIONS(kith_groups_options, options);
    options.error = error;
    options.all = all;
    assert_ok(kith_collection_group(c, &options, &g, &err), &err);
    return g;
}

/* The number of an item's group, as the index has it; 0: none. */
static int64_t number_of(kith_collection *c, int64_t id) {
    kith_error err;
    kith_index_item item;
    const kith_index *index = kith_collection_index(c);
    int64_t number = 0;
    assert_ok(kith_index_item_get(index, id, &item, &err), &err);
    for (int64_t i = 0; kith_index_column(index, i).name; i++) {
        if (strcmp(kith_index_column(index, i).name, KITH_GROUPS_COLUMN) == 0 &&
            item.values[i].type == KITH_VALUE_INT)
            number = item.values[i].integer;
    }
    kith_index_item_release(&item);
    return number;
}

static int64_t count(kith_collection *c, const char *where) {
    kith_error err;
    int64_t *ids = NULL, n = 0;
    assert_ok(kith_index_ids(kith_collection_index(c), where, &ids, &n, &err), &err);
    kith_ids_free(ids);
    return n;
}

static void test_found_and_written(void **state) {
    (void)state;
    const int64_t n = make_rows(12, 10, 15, 0.12);
    kith_collection *c = make("i.kith");
    add(c, 0, n, 0);
    kith_groups g = find(c, 0.01, false);
    assert_int_equal(g.n_groups, 12);
    assert_int_equal(g.n_items, n);
    assert_int_equal(g.n_alone, 15);
    assert_int_equal(g.n_new, 12);
    assert_false(g.is_measured);
    assert_true(isnan(g.precision));
    for (int64_t i = 0; i < g.n_groups; i++) {
        char where[64];
        assert_int_equal(g.begin[i + 1] - g.begin[i], 10);
        assert_int_equal(g.groups[i].number, i + 1);
        assert_int_equal(g.ids[g.begin[i]], g.groups[i].medoid);
        assert_true(g.groups[i].cohesion > 0.9 && g.groups[i].cohesion <= 1);
        for (int64_t j = g.begin[i]; j < g.begin[i + 1]; j++) assert_int_equal(g.ids[j] % 12, i);
        snprintf(where, sizeof where, "group = %d", (int)i + 1);
        assert_int_equal(count(c, where), 10);
    }
    kith_groups_release(&g);
    kith_collection_free(c);
    /* A reader gets the same, and changes nothing. */
    c = made_open("i.kith", KITH_INDEX_READ);
    const int64_t commit = made_info(c).index.generation;
    g = find(c, 0.01, false);
    assert_int_equal(g.n_groups, 12);
    assert_int_equal(g.n_new, 0);
    assert_int_equal(made_info(c).index.generation, commit);
    kith_groups_release(&g);
    kith_collection_free(c);
}

static void test_measured(void **state) {
    (void)state;
    const int64_t n = make_rows(30, 10, 0, 0.45);
    kith_collection *c = make("i.kith");
    add(c, 0, n, 2);
    kith_groups g = find(c, 0.1, false);
    assert_true(g.is_measured);
    assert_int_equal(g.n_items, n / 2);
    assert_int_equal(g.n_labels, 15);
    assert_true(g.n_pairs >= 30);
    assert_true(g.precision >= 0.9 && g.precision <= 1);
    assert_true(g.recall > 0.2 && g.recall <= 1);
    /* What has a label is in no group, unless all is asked for. */
    for (int64_t i = 0; i < g.begin[g.n_groups]; i++) assert_int_equal(g.ids[i] % 2, 1);
    kith_groups_release(&g);
    g = find(c, 0.1, true);
    assert_int_equal(g.n_items, n);
    kith_groups_release(&g);
    kith_collection_free(c);
}

/* New items join the groups there are, or found others; numbers stay, also when all is grouped again. */
static void test_follows(void **state) {
    (void)state;
    const int64_t n = make_rows(12, 20, 0, 0.12), before = 200;
    kith_collection *c = make("i.kith");
    int64_t number[MOST];
    /* Clusters 10 and 11 come later as a whole. */
    static float kept[MOST * DIM];
    int64_t at = 0;
    memcpy(kept, rows, sizeof kept);
    for (int late = 0; late < 2; late++) {
        for (int64_t i = 0; i < n; i++) {
            if ((i % 12 >= 10) != late) continue;
            memcpy(rows + at++ * DIM, kept + i * DIM, DIM * sizeof *rows);
        }
    }
    add(c, 0, before - 30, 0); /* of ten clusters, 17 of each */
    kith_groups g = find(c, 0.01, false);
    assert_int_equal(g.n_groups, 10);
    kith_groups_release(&g);
    for (int64_t i = 0; i < before - 30; i++) number[i] = number_of(c, i);
    kith_sync_report report = add(c, before - 30, 30, 0); /* three more of each */
    assert_int_equal(report.grouped, KITH_OK);
    assert_int_equal(report.n_grouped, 30);
    for (int64_t i = before - 30; i < before; i++) assert_int_equal(number_of(c, i), number[i % 10]);
    report = add(c, before, 40, 0); /* two clusters of 20 */
    assert_int_equal(report.n_grouped, 40);
    for (int64_t i = before; i < before + 40; i++) {
        assert_true(number_of(c, i) > 10);
        assert_int_equal(number_of(c, i), number_of(c, before + i % 2));
    }
    for (int64_t i = 0; i < before - 30; i++) assert_int_equal(number_of(c, i), number[i]);
    /* Once more from the beginning. */
    const int64_t last = number_of(c, before + 1);
    g = find(c, 0.01, false);
    assert_int_equal(g.n_groups, 12);
    assert_int_equal(g.n_new, 0);
    for (int64_t i = 0; i < before - 30; i++) assert_int_equal(number_of(c, i), number[i]);
    assert_int_equal(number_of(c, before + 1), last);
    kith_groups_release(&g);
    kith_collection_free(c);
}

/* A number is never given twice, though its group is gone. */
static void test_removed(void **state) {
    (void)state;
    kith_error err;
    const int64_t n = make_rows(6, 20, 0, 0.12);
    kith_collection *c = make("i.kith");
    add(c, 0, n, 0);
    kith_groups g = find(c, 0.01, false);
    assert_int_equal(g.n_groups, 6);
    kith_groups_release(&g);
    int64_t *ids = NULL, n_ids = 0;
    kith_index *index = kith_collection_index(c);
    assert_ok(kith_index_ids(index, "group = 6", &ids, &n_ids, &err), &err);
    assert_ok(kith_index_remove(index, ids, n_ids, &err), &err);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    kith_ids_free(ids);
    add(c, 5, 1, 0); /* one of them comes back, alone */
    assert_int_equal(number_of(c, n), 0);
    for (int64_t i = 11; i < n; i += 6) add(c, i, 1, 0);
    g = find(c, 0.01, false);
    assert_int_equal(g.n_groups, 6);
    assert_int_equal(number_of(c, n), 7);
    kith_groups_release(&g);
    kith_collection_free(c);
}

/* Photos that are moved keep their group, those that are added are put into one by the sync. */
static void test_sync(void **state) {
    (void)state;
    kith_error err;
    kith_groups g;
    made_photos("photos", 12, 10);
    made_model("m.safetensors", 9);
    kith_collection *c = made_collection("p.kith", "m.safetensors");
    kith_sync_report report = made_sync(c, "photos");
    kith_sync_report_release(&report);
    KITH_OPTIONS(kith_groups_options, options);
    options.all = true;
    options.error = 0.5;
    assert_ok(kith_collection_group(c, &options, &g, &err), &err);
    assert_true(g.n_groups > 0);
    const int64_t id = g.groups[0].medoid, number = g.groups[0].number;
    char path[4096];
    assert_ok(kith_collection_picture(c, id, path, sizeof path, &err), &err);
    kith_groups_release(&g);
    made_shell("mkdir photos/other");
    char command[8300];
    snprintf(command, sizeof command, "cp '%s' photos/other/copy.png && mv '%s' photos/other/moved.png", path,
             path);
    made_shell(command);
    report = made_sync(c, NULL);
    assert_int_equal(report.grouped, KITH_OK);
    kith_sync_report_release(&report);
    assert_int_equal(count(c, "path like '%/other/%'"), 2);
    assert_int_equal(number_of(c, id), number);
    kith_collection_free(c);
}

static void test_refusals(void **state) {
    (void)state;
    kith_error err;
    kith_groups g = {0};
    const int64_t n = make_rows(5, 10, 0, 0.12);
    static const double errors[] = {0, 1, -1, 2};
    kith_collection *c = make("i.kith");
    assert_int_equal(kith_collection_group(c, NULL, &g, &err), KITH_ENOTFOUND);
    assert_string_equal(err.message, "there is no item to group, of 0");
    add(c, 0, 1, 0);
    g = find(c, 0.01, false); /* too few for any */
    assert_int_equal(g.n_groups, 0);
    assert_int_equal(g.n_alone, 1);
    kith_groups_release(&g);
    add(c, 0, n, 1);
    KITH_OPTIONS(kith_groups_options, options);
    for (size_t i = 0; i < N_ROWS(errors); i++) {
        options.error = errors[i];
        assert_int_equal(kith_collection_group(c, &options, &g, &err), KITH_EINVAL);
    }
    options.error = NAN;
    assert_int_equal(kith_collection_group(c, &options, &g, &err), KITH_EINVAL);
    options.error = 0.01;
    options.least = 1;
    assert_int_equal(kith_collection_group(c, &options, &g, &err), KITH_EINVAL);
    options.least = 2;
    options.where = "label ==";
    assert_int_equal(kith_collection_group(c, &options, &g, &err), KITH_EINVAL);
    options.where = "id < 3) or (id > 5";
    assert_int_equal(kith_collection_group(c, &options, &g, &err), KITH_EINVAL);
    options.where = "id > 1000";
    assert_int_equal(kith_collection_group(c, &options, &g, &err), KITH_ENOTFOUND);
    kith_collection_free(c);
    c = make("labelled.kith");
    add(c, 0, n, 1);
    assert_int_equal(kith_collection_group(c, NULL, &g, &err), KITH_ENOTFOUND);
    assert_string_equal(err.message,
                        "all 50 items have a label; only what has none is grouped, unless all is");
    kith_collection_free(c);
}

/* A column of that name that somebody else made is left alone, and a note that is damaged is said. */
static void test_what_others_wrote(void **state) {
    (void)state;
    static const char *const notes[] = {"1",
                                        "2 0.01 0.8 none 2 0 3 4 ",
                                        "1 nan 0.8 none 2 0 3 4 ",
                                        "1 0.01 0.8 none 2 0 -3 4 ",
                                        "1 0.01 0.8 none 2 0 3 99999999999999999999 ",
                                        "1 7 0.8 none 2 0 3 4 ",
                                        "1 0.01 0.8 inf 2 0 3 4 "};
    kith_error err;
    kith_groups g = {0};
    const int64_t n = make_rows(5, 10, 0, 0.12);
    kith_collection *c = make("own.kith");
    assert_ok(kith_index_column_add(kith_collection_index(c), "group", KITH_VALUE_INT, &err), &err);
    add(c, 0, n, 0);
    assert_int_equal(kith_collection_group(c, NULL, &g, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "has a column 'group' of its own"));
    kith_collection_free(c);
    c = make("i.kith");
    add(c, 0, n - 1, 0);
    g = find(c, 0.01, false);
    kith_groups_release(&g);
    for (size_t i = 0; i < N_ROWS(notes); i++) {
        kith_index *index = kith_collection_index(c);
        assert_ok(kith_index_note_set(index, "groups", notes[i], &err), &err);
        assert_ok(kith_index_commit(index, NULL, &err), &err);
        assert_int_equal(kith_collection_group(c, NULL, &g, &err), KITH_EFORMAT);
        kith_sync_report report = add(c, n - 1, 1, 0);
        assert_int_equal(report.n_added, 1);
        assert_int_equal(report.grouped, KITH_EFORMAT);
        assert_non_null(strstr(report.grouped_error.message, "note of its groups is damaged"));
    }
    kith_collection_free(c);
}

static int stop(void *user, int64_t n_done, int64_t n_all) {
    (void)n_done;
    (void)n_all;
    ++*(int *)user;
    return 1;
}

/* Nothing is written when it is stopped, or has no memory. */
static void test_failures(void **state) {
    (void)state;
    kith_error err;
    kith_groups g = {0};
    int n_calls = 0;
    const int64_t n = make_rows(5, 8, 0, 0.12);
    kith_collection *c = make("i.kith");
    add(c, 0, n, 2);
    const int64_t commit = made_info(c).index.generation;
    KITH_OPTIONS(kith_groups_options, options);
    options.progress = stop;
    options.user = &n_calls;
    assert_int_equal(kith_collection_group(c, &options, &g, &err), KITH_ECANCELED);
    assert_int_equal(n_calls, 1);
    options.progress = NULL;
    for (int64_t i = 0;; i++) {
        ki_alloc_fail_after(i);
        const kith_status status = kith_collection_group(c, &options, &g, &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (status == KITH_OK) break;
        if (!has_failed) fail_msg("%s", err.message);
        assert_int_equal(status, KITH_ENOMEM);
        if (made_info(c).index.generation != commit) break; /* written, and not read again: as a whole */
        assert_int_equal(count(c, NULL), n);
    }
    assert_true(made_info(c).index.generation > commit);
    assert_int_equal(count(c, "group > 0"), n / 2);
    kith_groups_release(&g);
    kith_collection_free(c);
}

int main(void) {
#define EACH(test) cmocka_unit_test_setup(test, set_up)
    const struct CMUnitTest tests[] = {EACH(test_found_and_written), EACH(test_measured), EACH(test_follows),
                                       EACH(test_removed),           EACH(test_sync),     EACH(test_refusals),
                                       EACH(test_what_others_wrote), EACH(test_failures)};
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
