/* Items from a table: typed columns, what is missing, and tables that are none. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "search/items.h"
#include "support/testing.h"

static kith_items *parse(const char *text) {
    kith_error err = {0};
    kith_items *items = NULL;
    assert_ok(ki_items_parse("t.csv", text, strlen(text), &items, &err), &err);
    return items;
}

static void test_types(void **state) {
    (void)state;
    kith_items *items = parse(
        "year,path,weight,note,code,label,empty\n"
        "2020,a/1.jpg,1,\"red, \"\"big\"\"\",007,tern,\n"
        "-3,,0.5,,12,,\n"
        "\n"
        ",b.jpg,,x,1,gull\n");
    static const struct {
        const char *name;
        kith_value_type type;
    } wanted[] = {{"year", KITH_VALUE_INT},
                  {"weight", KITH_VALUE_REAL},
                  {"note", KITH_VALUE_TEXT},
                  {"code", KITH_VALUE_TEXT},
                  {"empty", KITH_VALUE_TEXT}};
    assert_int_equal(kith_items_count(items), 3);
    assert_int_equal(kith_items_n_columns(items), N_ROWS(wanted));
    for (size_t i = 0; i < N_ROWS(wanted); i++) {
        assert_string_equal(kith_items_columns(items)[i].name, wanted[i].name);
        assert_int_equal(kith_items_columns(items)[i].type, wanted[i].type);
    }
    const kith_index_item *item = kith_items_list(items);
    assert_string_equal(item[0].path, "a/1.jpg");
    assert_string_equal(item[0].label, "tern");
    assert_int_equal(item[0].values[0].integer, 2020);
    assert_true(item[0].values[1].real == 1);
    assert_string_equal(item[0].values[2].text, "red, \"big\"");
    assert_string_equal(item[0].values[3].text, "007");
    assert_int_equal(item[0].values[4].type, KITH_VALUE_NONE);
    assert_int_equal(item[0].bytes, -1);
    assert_null(item[1].path);
    assert_null(item[1].label);
    assert_int_equal(item[1].values[0].integer, -3);
    assert_true(item[1].values[1].real == 0.5);
    assert_int_equal(item[1].values[2].type, KITH_VALUE_NONE);
    assert_int_equal(item[2].values[0].type, KITH_VALUE_NONE); /* a short row */
    assert_int_equal(item[2].values[4].type, KITH_VALUE_NONE);
    assert_string_equal(item[2].label, "gull");
    kith_items_free(items);
}

/* Numbers that no double holds, or no number at all, make a column of text. */
static void test_almost_numbers(void **state) {
    (void)state;
    static const struct {
        const char *value;
        kith_value_type type;
    } rows[] = {{"1e3", KITH_VALUE_REAL},       {"nan", KITH_VALUE_TEXT},
                {"inf", KITH_VALUE_TEXT},       {"1,5", KITH_VALUE_TEXT},
                {"0", KITH_VALUE_INT},          {"0.5", KITH_VALUE_REAL},
                {"00", KITH_VALUE_TEXT},        {"9223372036854775807", KITH_VALUE_INT},
                {"-0", KITH_VALUE_INT},         {"9223372036854775808", KITH_VALUE_REAL},
                {"2020-01-02", KITH_VALUE_TEXT}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char text[64];
        snprintf(text, sizeof text, "x\n\"%s\"\n", rows[i].value);
        kith_items *items = parse(text);
        if (kith_items_columns(items)[0].type != rows[i].type)
            fail_msg("%s is %s, wanted %s", rows[i].value,
                     kith_value_type_name(kith_items_columns(items)[0].type),
                     kith_value_type_name(rows[i].type));
        kith_items_free(items);
    }
}

static void test_no_columns(void **state) {
    (void)state;
    kith_items *items = parse("label\na\nb\n");
    assert_int_equal(kith_items_n_columns(items), 0);
    assert_int_equal(kith_items_count(items), 2);
    assert_null(kith_items_list(items)[1].values);
    kith_items_free(items);
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {{"", "the table is empty; wanted a header line"},
                {"a,b\n1,2,3\n", "t.csv line 2: found '1,2,3'; wanted no more fields than the header has"},
                {"a,,b\n", "t.csv line 1: found 'a,,b'; wanted a name for every column"},
                {"a,b,a\n1,2,3\n", "t.csv line 1: found 'a,b,a'; wanted another name for every column"},
                {"path,path\nx,y\n", "t.csv line 1: found 'path,path'; wanted another name for every column"},
                {"a\n\"x\n", "t.csv line 2: found '\"x'; wanted a closing quote before the end of the file"}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        kith_items *items = NULL;
        assert_int_equal(ki_items_parse("t.csv", rows[i].text, strlen(rows[i].text), &items, &err),
                         KITH_EFORMAT);
        assert_string_equal(err.message, rows[i].message);
        assert_null(items);
    }
}

/* Every seed of the fuzzer: ok_ is read, bad_ is refused with one line. */
static void test_corpus(void **state) {
    (void)state;
    int n_ok = 0, n_bad = 0;
    DIR *dir = opendir(KITH_SOURCE_DIR "/test/corpus/items");
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir));) {
        char path[1024];
        kith_error err = {0};
        kith_items *items = NULL;
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, KITH_SOURCE_DIR "/test/corpus/items/%s", e->d_name);
        const bool is_ok = strncmp(e->d_name, "ok_", 3) == 0;
        const kith_status status = kith_items_read(path, &items, &err);
        if (is_ok != (status == KITH_OK)) fail_msg("%s: %s", e->d_name, err.message);
        if (!is_ok && (strlen(err.message) < 10 || strchr(err.message, '\n')))
            fail_msg("%s: not one line: %s", e->d_name, err.message);
        n_ok += is_ok;
        n_bad += !is_ok;
        kith_items_free(items);
    }
    closedir(dir);
    assert_int_equal(n_ok, 7);
    assert_int_equal(n_bad, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_types), cmocka_unit_test(test_almost_numbers),
                                       cmocka_unit_test(test_no_columns), cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_corpus)};
    return cmocka_run_group_tests_name("search/items", tests, NULL, NULL);
}
