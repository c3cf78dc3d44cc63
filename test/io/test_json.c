/* JSON written and read: numbers come back, locale, misuse, refusals. */
#include "io/json.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "kith/experimental/json.h"
#include "kith/log.h"
#include "support/testing.h"

static const char *finish(kith_json *json) {
    kith_error err = {0};
    const char *text = NULL;
    assert_ok(kith_json_finish(json, &text, &err), &err);
    return text;
}

static kith_json *new_json(void) {
    kith_json *json = NULL;
    kith_error err = {0};
    assert_ok(kith_json_new(&json, &err), &err);
    return json;
}

static void write_sample(kith_json *json) {
    kith_json_object_begin(json);
    kith_json_key(json, "total");
    kith_json_real(json, 0.1);
    kith_json_key(json, "terms");
    kith_json_object_begin(json);
    kith_json_key(json, "empty");
    kith_json_array_begin(json);
    kith_json_array_end(json);
    kith_json_key(json, "list");
    kith_json_array_begin(json);
    kith_json_int(json, INT64_MIN);
    kith_json_real32(json, 0.1f);
    kith_json_bool(json, true);
    kith_json_null(json);
    kith_json_real(json, NAN);
    kith_json_real(json, -INFINITY);
    kith_json_string(json, NULL);
    kith_json_array_end(json);
    kith_json_object_end(json);
    kith_json_key(json, "text \"\\\n\x01\xc3\xa9\xff\xed\xa0\x80");
    kith_json_string(json, "");
    kith_json_object_end(json);
}

static void test_sample(void **state) {
    (void)state;
    kith_json *json = new_json();
    write_sample(json);
    assert_string_equal(
        finish(json),
        "{\"total\": 0.1, \"terms\": {\"empty\": [], \"list\": [-9223372036854775808, 0.1, true, null, "
        "null, null, null]}, \"text \\\"\\\\\\u000a\\u0001\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
        "\xef\xbf\xbd\": \"\"}");
    kith_json_free(json);
}

static void test_reals_come_back(void **state) {
    (void)state;
    static const double values[] = {0.1,  1.0 / 3, 1e-5, DBL_MAX, DBL_MIN, 5e-324, -0.0, 123456789.123456789,
                                    1e22, 2e-4};
    kith_json *json = new_json();
    for (size_t i = 0; i < N_ROWS(values); i++) {
        kith_json_reset(json);
        kith_json_real(json, values[i]);
        const char *text = finish(json);
        const double back = strtod(text, NULL);
        if (memcmp(&back, &values[i], sizeof back) != 0) fail_msg("%.17g became %s", values[i], text);
        const float single = (float)values[i];
        if (!isfinite(single)) continue;
        kith_json_reset(json);
        kith_json_real32(json, single);
        if (strtof(finish(json), NULL) != single) fail_msg("%.9g became %s", (double)single, finish(json));
    }
    kith_json_free(json);
}

static void test_locale(void **state) {
    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8")) skip();
    kith_json *json = new_json();
    kith_json_real(json, 0.5);
    const char *text = finish(json);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(text, "0.5");
    kith_json_free(json);
}

static void test_misuse(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        kith_json *json = new_json();
        switch (i) {
        case 0: break;
        case 1: kith_json_object_begin(json); break;
        case 2: kith_json_object_begin(json), kith_json_int(json, 1), kith_json_object_end(json); break;
        case 3: kith_json_array_begin(json), kith_json_object_end(json); break;
        case 4: kith_json_int(json, 1), kith_json_int(json, 2); break;
        case 5: kith_json_object_begin(json), kith_json_key(json, "a"), kith_json_object_end(json); break;
        case 6: kith_json_array_begin(json), kith_json_key(json, "a"), kith_json_array_end(json); break;
        case 7:
            for (int k = 0; k < 100; k++) kith_json_array_begin(json);
            for (int k = 0; k < 100; k++) kith_json_array_end(json);
            break;
        }
        kith_error err = {0};
        const char *text = NULL;
        const kith_status status = kith_json_finish(json, &text, &err);
        if (status != KITH_EINVAL) fail_msg("misuse %d: %s, wanted KITH_EINVAL", i, kith_status_name(status));
        assert_null(text);
        kith_json_free(json);
    }
}

static void test_reset_takes_no_memory(void **state) {
    (void)state;
    kith_json *json = new_json();
    write_sample(json);
    kith_memory_stats before, after;
    kith_memory_stats_get(&before);
    for (int i = 0; i < 10; i++) {
        kith_json_reset(json);
        write_sample(json);
        finish(json);
    }
    kith_memory_stats_get(&after);
    assert_int_equal(after.n_allocations, before.n_allocations);
    kith_json_free(json);
}

static void test_writer_without_memory(void **state) {
    (void)state;
    bool passed = false;
    int n = 0;
    for (; !passed && n < 50; n++) {
        kith_json *json = NULL;
        const char *text = NULL;
        kith_error err = {0};
        ki_alloc_fail_after(n);
        kith_status status = kith_json_new(&json, &err);
        if (status == KITH_OK) {
            write_sample(json);
            status = kith_json_finish(json, &text, &err);
        }
        passed = !ki_alloc_failed();
        ki_alloc_fail_after(-1);
        assert_int_equal(status, passed ? KITH_OK : KITH_ENOMEM);
        kith_json_free(json);
    }
    assert_true(passed && n > 3);
}

static void test_read(void **state) {
    (void)state;
    static const char text[] = "{\"a\": [1, -2.5, true, null, \"x\\u00e9\"], \"b\": {}}";
    char path[300];
    snprintf(path, sizeof path, "%s/a.json", testing_folder());
    kith_error err = {0};
    ki_arena arena = {0};
    ki_value *root = NULL;
    assert_ok(ki_file_write(path, text, strlen(text), &err), &err);
    assert_ok(ki_json_read(path, &arena, &root, &err), &err);
    const ki_value *a = ki_value_get(root, "a");
    assert_int_equal(a->n_items, 5);
    assert_string_equal(ki_value_at(a, 0)->text, "1");
    assert_string_equal(ki_value_at(a, 1)->text, "-2.5");
    assert_string_equal(ki_value_at(a, 2)->text, "true");
    assert_int_equal(ki_value_at(a, 3)->kind, KI_VALUE_NULL);
    assert_string_equal(ki_value_at(a, 4)->text, "x\xc3\xa9");
    assert_int_equal(ki_value_get(root, "b")->kind, KI_VALUE_MAP);
    ki_arena_release(&arena);
}

/* Every allocation that fails is a lack of memory and nothing else: no letter is lost, and no string is called wrong. */
static void test_read_without_memory(void **state) {
    (void)state;
    static char text[6000];
    size_t n =
        (size_t)snprintf(text, sizeof text, "{\"a\": [1, 0.16666666666666666, true, null, \"x\\u00e9\"]");
    for (int i = 0; i < 100; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, ", \"a key of some length %d\": \"%0*d\"", i, i % 40,
                              i);
    n += (size_t)snprintf(text + n, sizeof text - n, "}");
    bool passed = false;
    int k = 0;
    for (; !passed && k < 500; k++) {
        kith_error err = {0};
        ki_arena arena = {0};
        ki_value *root = NULL;
        ki_alloc_fail_after(k);
        const kith_status status = ki_json_parse(text, n, "a.json", &arena, &root, &err);
        passed = !ki_alloc_failed();
        ki_alloc_fail_after(-1);
        assert_int_equal(status, passed ? KITH_OK : KITH_ENOMEM);
        if (passed) assert_int_equal(root->n_items, 101);
        ki_arena_release(&arena);
    }
    assert_true(passed && k > 2);
}

static const char *parse_text(const char *json, ki_arena *arena) {
    kith_error err = {0};
    ki_value *root = NULL;
    assert_ok(ki_json_parse(json, strlen(json), "a.json", arena, &root, &err), &err);
    return root->text;
}

static void test_read_strings(void **state) {
    (void)state;
    static const struct {
        const char *json, *wanted;
    } rows[] = {{"\"\"", ""},
                {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
                {"\"\\u0041\\u00e9\\u20ac\\uD83D\\ude00\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
                {" \"\xc3\xa9\xf0\x9f\x98\x80\x7f\" \r\n\t", "\xc3\xa9\xf0\x9f\x98\x80\x7f"},
                {"-0", "-0"},
                {"-12.50e+07", "-12.50e+07"},
                {"9223372036854775807", "9223372036854775807"},
                {"false", "false"}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_arena arena = {0};
        assert_string_equal(parse_text(rows[i].json, &arena), rows[i].wanted);
        ki_arena_release(&arena);
    }
}

static void test_read_refuses(void **state) {
    (void)state;
    static char deep[400];
    memset(deep, '[', sizeof deep - 1);
    const char *const rows[] = {"\"a",
                                "\"\\",
                                "\"\\u12\"",
                                "\"\\x\"",
                                "\"\\ud800\"",
                                "\"\\ud800\\u0041\"",
                                "\"\\udc00\"",
                                "\"\\uD83D",
                                "\"a\nb\"",
                                "01",
                                "1.",
                                ".5",
                                "+1",
                                "1e",
                                "1e+",
                                "-",
                                "--1",
                                "[1 2]",
                                "[,]",
                                "{1: 2}",
                                "{\"a\" 1}",
                                "{\"a\": 1,}",
                                "{\"a\": }",
                                "]",
                                "tru",
                                "NaN",
                                "\xef\xbb\xbf{}",
                                "'a'",
                                "[1] // no",
                                "",
                                "{",
                                "{\"a\": 1, \"a\": 2}",
                                "[1,]",
                                "1 2",
                                "nul",
                                "\"\xff\"",
                                "[1e999]",
                                "\"\\u0000\"",
                                deep};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        ki_arena arena = {0};
        ki_value *root = NULL;
        const kith_status status = ki_json_parse(rows[i], strlen(rows[i]), "a.json", &arena, &root, &err);
        ki_arena_release(&arena);
        if (status != KITH_EFORMAT)
            fail_msg("'%s': %s, wanted KITH_EFORMAT", rows[i], kith_status_name(status));
        assert_memory_equal(err.message, "a.json:", 7);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_reals_come_back),
        cmocka_unit_test(test_locale),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_reset_takes_no_memory),
        cmocka_unit_test(test_writer_without_memory),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_read_without_memory),
        cmocka_unit_test(test_read_strings),
        cmocka_unit_test(test_read_refuses),
    };
    return cmocka_run_group_tests_name("io/json", tests, NULL, NULL);
}
