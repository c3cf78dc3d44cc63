/* Comma-separated tables row by row: blank lines, quotes, blanks around fields, line ends of both kinds. */
#include <stdio.h>
#include <string.h>

#include "data/dataset/table.h"
#include "support/testing.h"

/* The rows of a table, fields between bars, rows between semicolons. */
static kith_status rows_of(const char *text, char *ret, size_t bytes, kith_error *err) {
    ki_table t = ki_table_of("table", text, strlen(text));
    kith_status status = KITH_OK;
    bool more = true;
    ret[0] = '\0';
    while (status == KITH_OK && more) {
        status = ki_table_next(&t, &more, err);
        if (status != KITH_OK || !more) break;
        for (size_t i = 0; i < t.n_fields; i++) {
            const ki_text field = ki_table_field(&t, (int)i);
            const size_t used = strlen(ret);
            snprintf(ret + used, bytes - used, "%s%.*s", i ? "|" : "", (int)field.n, field.s);
        }
        assert_int_equal(ki_table_field(&t, (int)t.n_fields).n, 0);
        assert_int_equal(ki_table_field(&t, -1).n, 0);
        strncat(ret, ";", bytes - strlen(ret) - 1);
    }
    ki_table_release(&t);
    return status;
}

static void test_rows(void **state) {
    (void)state;
    static const struct {
        const char *text, *rows;
    } cases[] = {
        {"", ""},
        {"\n\n", ""},
        {"a,b\n1,2\n", "a|b;1|2;"},
        {"a,b\r\n1,2\r\n", "a|b;1|2;"},
        {"a,b\n1,2", "a|b;1|2;"},
        {"\n\na\n\n  \n1\n\n", "a;1;"},
        {",\n1,\n,2\n", "|;1|;|2;"},
        {" a , b c\t,d \n", "a|b c|d;"},
        {"\"a, \"\"b\"\"\", \"c\nd\" ,\"\"\n\"e\"\n", "a, \"b\"|c\nd|;e;"},
        {"\"\"\"\"\n", "\";"},
    };
    for (size_t i = 0; i < N_ROWS(cases); i++) {
        char rows[256];
        kith_error err = {0};
        assert_ok(rows_of(cases[i].text, rows, sizeof rows, &err), &err);
        assert_string_equal(rows, cases[i].rows);
    }
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"a\n\"b\n", "table line 2: found '\"b'; wanted a closing quote before the end of the file"},
        {"a\n\"b\" c\n",
         "table line 2: found '\"b\" c'; wanted a comma or the line's end after a closing quote"},
        {"a\n\"b\nc\"\n\"d\n",
         "table line 4: found '\"d'; wanted a closing quote before the end of the file"},
    };
    char rows[256];
    for (size_t i = 0; i < N_ROWS(cases); i++) {
        kith_error err = {0};
        assert_int_equal(rows_of(cases[i].text, rows, sizeof rows, &err), KITH_EFORMAT);
        assert_string_equal(err.message, cases[i].message);
    }
    char wide[2 * KI_TABLE_MOST_FIELDS + 1] = "";
    for (int i = 0; i < KI_TABLE_MOST_FIELDS; i++) strcat(wide, i ? ",x" : "x");
    kith_error err = {0};
    assert_ok(rows_of(wide, rows, sizeof rows, &err), &err);
    strcat(wide, ",");
    assert_int_equal(rows_of(wide, rows, sizeof rows, &err), KITH_EFORMAT);
    assert_non_null(strstr(err.message, "wanted at most 64 fields"));
}

static void test_columns(void **state) {
    (void)state;
    static const char text[] = "path,label\n";
    ki_table t = ki_table_of("table", text, sizeof text - 1);
    bool more = false;
    kith_error err = {0};
    assert_ok(ki_table_next(&t, &more, &err), &err);
    assert_int_equal(ki_table_column(&t, "path"), 0);
    assert_int_equal(ki_table_column(&t, "label"), 1);
    assert_int_equal(ki_table_column(&t, "lab"), -1);
    assert_ok(ki_table_next(&t, &more, &err), &err);
    assert_false(more);
    ki_table_release(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_columns)};
    return cmocka_run_group_tests_name("data/table", tests, NULL, NULL);
}
