/* Facts of photos and rows of a table as values of items: read, joined, kept in sync, renewed. */
#include "base/alloc.h"
#include "collection/made_collection.h"
#include "data/made_exif.h"

/* A photo PHOTOS/name taken in that year; a place for even ones. */
static void put_photo(const char *name, int year, const char *camera) {
    made_exif x = {.is_big_endian = year % 2};
    uint8_t block[MADE_EXIF_BYTES];
    char taken[32], path[200], from[4096];
    snprintf(taken, sizeof taken, "%04d:05:03 14:07:22", year);
    if (camera) made_ascii(&x, 0, 0x110, camera);
    made_ascii(&x, 1, 0x9003, taken);
    if (year % 2 == 0) {
        made_ascii(&x, 2, 1, "N");
        made_rational(&x, 2, 2, (uint32_t[]){54, 1, 11, 1, (uint32_t)year, 1000}, 3);
        made_ascii(&x, 2, 3, "E");
        made_rational(&x, 2, 4, (uint32_t[]){7, 1, 53, 1, 0, 1}, 3);
    }
    snprintf(from, sizeof from, "%s/test/corpus/image/ok_exif_1.jpg", KITH_SOURCE_DIR);
    snprintf(path, sizeof path, "photos/%s", name);
    if (!made_jpeg(from, block, made_block(&x, block), made_path(path))) fail_msg("%s", path);
}

static int begin(void **state) {
    (void)state;
    made_shell("rm -rf * .[a-z]*; mkdir -p photos/tern photos/gull");
    made_model("m.safetensors", 1);
    put_photo("tern/1.jpg", 2020, "EOS R6");
    put_photo("tern/2.jpg", 2021, "EOS R6");
    put_photo("gull/3.jpg", 2022, "D750");
    return 0;
}

static kith_collection *make(const char *name, const kith_sync_options *o, kith_sync_report *report) {
    kith_error err;
    kith_collection *c = made_collection(name, "m.safetensors");
    assert_ok(made_try_sync(c, "photos", o, report, &err), &err);
    return c;
}

static kith_sync_report sync_with(kith_collection *c, const kith_sync_options *o) {
    kith_error err;
    kith_sync_report report;
    assert_ok(made_try_sync(c, NULL, o, &report, &err), &err);
    return report;
}

static int64_t count(kith_collection *c, const char *where) {
    kith_error err;
    int64_t *ids = NULL, n = 0;
    if (kith_index_ids(kith_collection_index(c), where, &ids, &n, &err) != KITH_OK)
        fail_msg("%s: %s", where, err.message);
    kith_ids_free(ids);
    return n;
}

static void assert_no_column(kith_collection *c, const char *name) {
    const kith_index *index = kith_collection_index(c);
    for (int64_t i = 0; kith_index_column(index, i).name; i++)
        assert_string_not_equal(kith_index_column(index, i).name, name);
}

static void test_facts(void **state) {
    (void)state;
    kith_sync_report report;
    kith_collection *c = make("facts.kith", NULL, &report);
    assert_int_equal(count(c, "taken >= 2021 and taken < 2022 and camera like '%R6'"), 1);
    assert_int_equal(count(c, "taken >= '2020-06'"), 2);
    assert_int_equal(count(c, "latitude > 54 and latitude < 55 and longitude > 7"), 2);
    assert_no_column(c, "lens");
    assert_no_column(c, "altitude");
    kith_sync_report_release(&report);
    /* New, changed, moved: as the files are. */
    put_photo("gull/4.jpg", 2023, NULL);
    put_photo("tern/1.jpg", 2019, "EOS R6 II");
    made_shell("mv photos/tern/2.jpg photos/gull/2.jpg");
    report = made_sync(c, NULL);
    assert_int_equal(report.n_added, 1);
    assert_int_equal(report.n_changed, 1);
    assert_int_equal(report.n_moved, 1);
    kith_sync_report_release(&report);
    assert_int_equal(
        count(c, "taken like '2019-05-03T14:07:22' and camera like '%II' and path like '%tern/1.jpg'"), 1);
    assert_int_equal(count(c, "taken like '2021%' and label = gull and path like '%gull/2.jpg'"), 1);
    assert_int_equal(count(c, "taken like '2023%' and path like '%4.jpg'"), 1);
    assert_int_equal(count(c, "latitude > 0"), 1); /* the one of 2022: a changed file has no place any more */
    const int64_t before = made_info(c).index.generation;
    report = made_sync(c, NULL);
    kith_sync_report_release(&report);
    assert_int_equal(made_info(c).index.generation, before); /* nothing to do, nothing done */
    kith_collection_free(c);
}

static void test_without(void **state) {
    (void)state;
    kith_sync_report report;
    KITH_OPTIONS(kith_sync_options, o);
    o.exif = KITH_EXIF_NONE;
    kith_collection *c = make("without.kith", &o, &report);
    kith_sync_report_release(&report);
    assert_int_equal(made_info(c).index.n_columns, 0);
    kith_collection_free(c);
    c = made_open("without.kith", KITH_INDEX_WRITE);
    put_photo("gull/4.jpg", 2023, NULL);
    o.exif = KITH_EXIF_AS_BEFORE; /* as it remembers */
    report = sync_with(c, &o);
    assert_int_equal(report.n_added, 1);
    kith_sync_report_release(&report);
    assert_int_equal(made_info(c).index.n_columns, 0);
    o.exif = KITH_EXIF_ALL;
    report = sync_with(c, &o);
    assert_int_equal(report.n_revalued, 4);
    assert_int_equal(report.n_same, 4);
    kith_sync_report_release(&report);
    assert_int_equal(count(c, "taken > 2000"), 4);
    put_photo("gull/5.jpg", 2024, NULL);
    o.exif = KITH_EXIF_AS_BEFORE;
    report = sync_with(c, &o);
    kith_sync_report_release(&report);
    assert_int_equal(count(c, "taken > 2000"), 5);
    o.exif = KITH_EXIF_NONE;
    report = sync_with(c, &o);
    assert_int_equal(report.n_revalued, 5);
    kith_sync_report_release(&report);
    assert_int_equal(count(c, "taken > 0 or latitude > -90 or camera > 0"), 0);
    o.exif = (kith_exif_use)7;
    kith_error err;
    assert_int_equal(made_try_sync(c, NULL, &o, &report, &err), KITH_EINVAL);
    kith_collection_free(c);
}

/* An index of an older kith has no facts; its new photos get them, the others when they are asked for. */
static void test_a_column_of_that_name(void **state) {
    (void)state;
    kith_error err;
    kith_collection *c = made_collection("named.kith", "m.safetensors");
    assert_ok(kith_index_column_add(kith_collection_index(c), "taken", KITH_VALUE_INT, &err), &err);
    kith_sync_report report;
    assert_ok(made_try_sync(c, "photos", NULL, &report, &err), &err);
    kith_sync_report_release(&report);
    assert_int_equal(count(c, "taken > 0"), 0); /* of another type: left alone */
    assert_int_equal(count(c, "camera = D750"), 1);
    kith_collection_free(c);
}

static void test_table(void **state) {
    (void)state;
    kith_sync_report report;
    KITH_OPTIONS(kith_sync_options, o);
    char whole[1024];
    made_shell(
        "printf 'path,year,camera,note\\ntern/1.jpg,1999,box,a\\n./gull/3.jpg,2000,,b\\nno/1.jpg,1,x,y\\n' > "
        "t.csv");
    snprintf(whole, sizeof whole, "%s", made_path("t.csv"));
    o.meta = whole;
    kith_collection *c = make("table.kith", &o, &report);
    assert_int_equal(report.n_said, 2);
    assert_non_null(strstr(report.said[0], "1 row of"));
    assert_non_null(strstr(report.said[0], "no/1.jpg"));
    assert_non_null(strstr(report.said[1], "camera: from the table"));
    kith_sync_report_release(&report);
    assert_int_equal(count(c, "year = 1999 and camera = box and note = a and path like '%tern/1.jpg'"), 1);
    assert_int_equal(count(c, "camera > 0"), 1); /* not EXIF's for those that the table says nothing of */
    assert_int_equal(count(c, "taken > 0"), 3);
    assert_int_equal(count(c, "year > 0"), 2);
    kith_collection_free(c);
    c = made_open("table.kith", KITH_INDEX_WRITE);
    /* A new photo gets its row, a changed row its values, one that is gone none, and a column that is gone is emptied. */
    put_photo("tern/7.jpg", 2018, "D1");
    made_shell("printf 'path,year,camera\\ntern/7.jpg,2007,new\\nphotos/tern/1.jpg,1998.5,\\n' > t.csv");
    kith_error err;
    assert_int_equal(made_try_sync(c, NULL, NULL, &report, &err), KITH_EINVAL); /* year was an integer */
    assert_non_null(strstr(err.message, "t.csv: column 'year' is there with type integer; wanted real"));
    assert_int_equal(count(c, "year = 1999"), 1);
    made_shell("printf 'path,year,camera\\ntern/7.jpg,2007,new\\nphotos/tern/1.jpg,1998,\\n' > t.csv");
    report = made_sync(c, NULL);
    assert_int_equal(report.n_added, 1);
    assert_int_equal(report.n_revalued, 2);
    kith_sync_report_release(&report);
    assert_int_equal(count(c, "year = 2007 and camera = new and path like '%7.jpg'"), 1);
    assert_int_equal(count(c, "year = 1998 and path like '%tern/1.jpg'"), 1);
    assert_int_equal(count(c, "year = 2000 or note > 0 or camera = box"), 0);
    /* The row follows the path: under its new one the photo has none. */
    made_shell("mv photos/tern/7.jpg photos/gull/7.jpg");
    report = made_sync(c, NULL);
    assert_int_equal(report.n_moved, 1);
    kith_sync_report_release(&report);
    assert_int_equal(count(c, "year = 2007"), 0);
    /* Not there any more: said, and nothing changed. Without it from now on: its values go. */
    made_shell("mv t.csv u.csv");
    assert_int_equal(made_try_sync(c, NULL, NULL, &report, &err), KITH_EIO);
    assert_non_null(strstr(err.hint, "--meta"));
    assert_int_equal(count(c, "year = 1998"), 1);
    o.meta = "";
    report = sync_with(c, &o);
    kith_sync_report_release(&report);
    assert_int_equal(count(c, "year > 0 or camera = new"), 0);
    o.exif = KITH_EXIF_ALL; /* the column is EXIF's now */
    report = sync_with(c, &o);
    kith_sync_report_release(&report);
    assert_int_equal(count(c, "camera = D1"), 1);
    kith_collection_free(c);
}

static void test_bad_tables(void **state) {
    (void)state;
    static const struct {
        const char *text, *said;
    } rows[] = {{"path,a\\ntern/1.jpg,1\\n./tern/1.jpg,2\\n", "names ./tern/1.jpg twice"},
                {"path,a\\ntern/1.jpg,1\\nphotos/tern/1.jpg,2\\n", "names one photo twice, as"},
                {"path,label\\ntern/1.jpg,x\\n", "has a column 'label'"},
                {"file,a\\ntern/1.jpg,1\\n", "has no column 'path'"},
                {"path,named_by\\ntern/1.jpg,x\\n", "has a column 'named_by', which says who"},
                {"path,named_kind\\ntern/1.jpg,x\\n", "has a column 'named_kind', which says who"},
                {"path,bytes\\ntern/1.jpg,1\\n", "'bytes' cannot be the name of a column"},
                {"path,a\\ntern/1.jpg,1,2\\n", "line 2"},
                {"", "the table is empty"}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char command[1024], whole[1024];
        kith_error err;
        kith_sync_report report;
        KITH_OPTIONS(kith_sync_options, o);
        snprintf(command, sizeof command, "rm -rf bad.kith; printf '%s' > bad.csv", rows[i].text);
        made_shell(command);
        snprintf(whole, sizeof whole, "%s", made_path("bad.csv"));
        o.meta = whole;
        kith_collection *c = made_collection("bad.kith", "m.safetensors");
        assert_int_not_equal(made_try_sync(c, "photos", &o, &report, &err), KITH_OK);
        if (!strstr(err.message, rows[i].said)) fail_msg("%s", err.message);
        kith_collection_free(c);
        assert_false(made_is_there("bad.kith/manifest.json"));
    }
}

/* A table cannot take away the groups that were found; nor is a note believed that names more columns than a table has. */
static void test_what_is_not_of_the_table(void **state) {
    (void)state;
    kith_error err;
    kith_sync_report report;
    KITH_OPTIONS(kith_sync_options, o);
    char whole[1024];
    made_shell("printf 'path,group\ntern/1.jpg,7\n' > t.csv");
    snprintf(whole, sizeof whole, "%s", made_path("t.csv"));
    kith_collection *c = make("own.kith", NULL, &report);
    kith_index *index = kith_collection_index(c);
    kith_sync_report_release(&report);
    assert_ok(kith_index_column_add(index, "group", KITH_VALUE_INT, &err), &err);
    assert_ok(kith_index_note_set(index, "groups", "1 0.01 0.5 none 2 0 2 3 ", &err), &err);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    o.meta = whole;
    assert_int_equal(made_try_sync(c, NULL, &o, &report, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "has a column 'group', which says the groups"));
    kith_collection_free(c);
    /* The columns that the table had are emptied, each once. */
    enum { N = 20000 };
    static char columns[7 * N + 1];
    for (int i = 0; i < N; i++) memcpy(columns + 7 * i, "camera\n", 8);
    made_shell("printf 'path,year\ntern/1.jpg,7\n' > t.csv");
    c = made_open("own.kith", KITH_INDEX_WRITE);
    index = kith_collection_index(c);
    assert_ok(kith_index_note_set(index, "meta_columns", columns, &err), &err);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    assert_int_equal(made_try_sync(c, NULL, &o, &report, &err), KITH_EFORMAT);
    assert_non_null(strstr(err.message, "'meta_columns' has 20000 columns"));
    kith_collection_free(c);
}

/* Memory ends at any moment of a sync that reads facts and a table: nothing of it is there, and it is done again. */
static void test_without_memory(void **state) {
    (void)state;
    kith_error err = {0};
    kith_sync_report report = {0};
    KITH_OPTIONS(kith_sync_options, o);
    char whole[1024];
    int64_t n = 0;
    kith_collection *c = make("memory.kith", &o, &report);
    kith_sync_report_release(&report);
    kith_collection_free(c);
    made_shell("printf 'path,note\\ntern/1.jpg,a\\nno.jpg,b\\n' > t.csv");
    put_photo("gull/4.jpg", 2023, "D2");
    snprintf(whole, sizeof whole, "%s", made_path("t.csv"));
    o.meta = whole;
    o.exif = KITH_EXIF_ALL;
    for (bool has_failed = true; has_failed; n += 1 + n / 8) {
        made_shell("rm -rf c.kith && cp -r memory.kith c.kith");
        c = made_open("c.kith", KITH_INDEX_WRITE);
        ki_alloc_fail_after(n);
        const kith_status status = made_try_sync(c, NULL, &o, &report, &err);
        has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        kith_sync_report_release(&report);
        if (status != KITH_OK) {
            if (status != KITH_ENOMEM) fail_msg("allocation %lld: %s", (long long)n, err.message);
            assert_ok(made_try_sync(c, NULL, &o, &report, &err), &err);
            kith_sync_report_release(&report);
        }
        assert_int_equal(count(c, "taken > 0"), 4);
        assert_int_equal(count(c, "note = a and camera like 'EOS%'"), 1);
        assert_int_equal(count(c, "camera = D2 and not note = a"), 1);
        kith_collection_free(c);
    }
    assert_true(n > 200);
}

/* Embedded anew, photos keep what they were given, and what is read of them is read again. */
static void test_renewed(void **state) {
    (void)state;
    kith_error err;
    kith_sync_report report;
    KITH_OPTIONS(kith_sync_options, o);
    char whole[1024];
    made_shell("printf 'path,year\\ntern/1.jpg,1999\\n' > t.csv");
    snprintf(whole, sizeof whole, "%s", made_path("t.csv"));
    o.meta = whole;
    kith_collection *c = make("renewed.kith", &o, &report);
    kith_sync_report_release(&report);
    kith_index *index = kith_collection_index(c);
    const int64_t id = 2;
    assert_ok(kith_index_column_add(index, "stars", KITH_VALUE_INT, &err), &err);
    assert_ok(kith_index_set(index, &id, 1, (const char *const[]){"stars"}, 1,
                             &(kith_value){.type = KITH_VALUE_INT, .integer = 5}, &err),
              &err);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    const int64_t n = count(c, "stars = 5 and taken > 0");
    kith_collection_free(c);
    assert_int_equal(n, 1);
    made_model("n.safetensors", 2);
    KITH_OPTIONS(kith_model_options, model);
    model.weights = made_path("n.safetensors");
    assert_ok(kith_collection_renew(made_path("renewed.kith"), &model, NULL, NULL, &err), &err);
    c = made_open("renewed.kith", KITH_INDEX_WRITE);
    assert_int_equal(count(c, "stars = 5 and taken > 0"), 1);
    assert_int_equal(count(c, "year = 1999 and path like '%tern/1.jpg'"), 1);
    made_shell("printf 'path,year\\ntern/1.jpg,2001\\n' > t.csv");
    report = made_sync(c, NULL); /* the table is remembered */
    kith_sync_report_release(&report);
    assert_int_equal(count(c, "year = 2001"), 1);
    kith_collection_free(c);
}

static void test_cache(void **state) {
    (void)state;
    kith_error err;
    kith_photos *photos = NULL;
    KITH_OPTIONS(kith_photos_options, o);
    KITH_OPTIONS(kith_model_options, model);
    model.weights = made_path("m.safetensors");
    o.cache = made_path("caches");
    o.model = &model;
    assert_ok(kith_photos_open(made_path("photos"), &o, &photos, &err), &err);
    assert_ok(kith_photos_sync(photos, NULL, NULL, &err), &err);
    kith_index *index = NULL;
    assert_ok(kith_index_open(kith_photos_index(photos), KITH_INDEX_READ, &index, &err), &err);
    kith_facets f = {0};
    assert_ok(kith_index_facets(index, "taken", "camera = 'EOS R6'", 10, &f, &err), &err);
    assert_int_equal(f.n_items, 2);
    kith_facets_release(&f);
    kith_index_free(index);
    kith_photos_free(photos);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_facts, begin),
        cmocka_unit_test_setup(test_without, begin),
        cmocka_unit_test_setup(test_a_column_of_that_name, begin),
        cmocka_unit_test_setup(test_table, begin),
        cmocka_unit_test_setup(test_bad_tables, begin),
        cmocka_unit_test_setup(test_what_is_not_of_the_table, begin),
        cmocka_unit_test_setup(test_without_memory, begin),
        cmocka_unit_test_setup(test_renewed, begin),
        cmocka_unit_test_setup(test_cache, begin),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
