/* Decisions about names in an index on PostgreSQL: the same as in a folder, also through a sync. */
#include "collection/made_collection.h"
#include "support/postgres.h"

static char server[32], address[POSTGRES_ADDRESS_BYTES];

static int set_up(void **state) {
    (void)state;
    kith_error err = {0};
    kith_index *index = NULL;
    snprintf(server, sizeof server, "d%d", (int)getpid());
    snprintf(address, sizeof address, "%.1000s#names", postgres_start(server, ""));
    if (kith_index_open(address, KITH_INDEX_READ, &index, &err) == KITH_EUNSUPPORTED)
        postgres_skip(err.message);
    made_photos("photos", 3, 4);
    made_model("m.safetensors", 9);
    return 0;
}

static kith_collection *open_it(void) {
    kith_error err;
    kith_collection *c = NULL;
    KITH_OPTIONS(kith_collection_open_options, how);
    how.mode = KITH_INDEX_WRITE;
    assert_ok(kith_collection_open(address, &how, &c, &err), &err);
    return c;
}

/* The label of an item, and who decided it. */
static void assert_named(kith_collection *c, int64_t id, const char *label, const char *by) {
    kith_error err;
    kith_index_item item;
    kith_column column;
    const char *found = NULL;
    assert_ok(kith_index_item_get(kith_collection_index(c), id, &item, &err), &err);
    for (int64_t i = 0; item.values && (column = kith_index_column(kith_collection_index(c), i)).name; i++) {
        if (strcmp(column.name, "named_by") == 0 && item.values[i].type == KITH_VALUE_TEXT)
            found = item.values[i].text;
    }
    assert_string_equal(item.label ? item.label : "(none)", label);
    assert_string_equal(found ? found : "(nobody)", by);
    kith_index_item_release(&item);
}

static int64_t decide(kith_collection *c, kith_name_act act, int64_t id, const char *name) {
    kith_error err;
    kith_name_result result;
    KITH_OPTIONS(kith_name_request, o);
    o.act = act;
    o.who = "anna";
    o.name = name;
    if (act != KITH_NAME_UNDO) {
        o.ids = &id;
        o.n_ids = 1;
    }
    assert_ok(kith_collection_name(c, &o, &result, &err), &err);
    return result.number;
}

static void test_all(void **state) {
    (void)state;
    kith_error err;
    kith_collection *c = NULL;
    KITH_OPTIONS(kith_model_options, model);
    KITH_OPTIONS(kith_collection_options, options);
    model.weights = made_path("m.safetensors");
    options.model = &model;
    assert_ok(kith_collection_create(address, &options, &c, &err), &err);
    kith_sync_report report = made_sync(c, "photos");
    kith_sync_report_release(&report);
    assert_int_equal(decide(c, KITH_NAME_GIVE, 0, "Otto"), 1);
    decide(c, KITH_NAME_CONFIRM, 1, "Otto");
    decide(c, KITH_NAME_REJECT, 2, "Otto");
    assert_named(c, 0, "Otto", "anna");
    kith_collection_free(c);
    c = open_it();
    assert_named(c, 1, "Otto", "anna");
    assert_named(c, 2, "glyph00000", "(nobody)");
    decide(c, KITH_NAME_UNDO, 0, NULL);
    decide(c, KITH_NAME_UNDO, 0, NULL);
    assert_named(c, 1, "glyph00000", "(nobody)");
    decide(c, KITH_NAME_GIVE, 1, "Emil");
    /* Item 0 is moved, item 1 is changed: it has a new id. */
    made_shell(
        "mv photos/glyph00000/00000.png photos/glyph00001/new.png && "
        "cp photos/glyph00002/00000.png photos/glyph00000/00001.png && printf x >> "
        "photos/glyph00000/00001.png");
    report = made_sync(c, NULL);
    assert_int_equal(report.n_names_kept, 2);
    kith_sync_report_release(&report);
    assert_named(c, 0, "Otto", "anna");
    assert_named(c, 12, "Emil", "anna");
    kith_names names;
    assert_ok(kith_collection_names(c, &names, &err), &err);
    assert_int_equal(names.n_decided, 2);
    assert_int_equal(names.n_decisions, 6);
    assert_int_equal(names.decisions[0].ids[0], 12);
    kith_names_release(&names);
    kith_collection_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests_name("decisions_postgres", tests, set_up, testing_tear_down);
}
