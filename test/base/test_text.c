/* Edit distance, suggestions, numbers from and to text. */
#include "base/text.h"

#include <math.h>
#include <string.h>

#include "support/testing.h"

static void test_edit_distance(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        int distance;
    } rows[] = {
        {"", "", 0},         {"kith", "kith", 0},       {"", "abc", 3},
        {"kith", "kit", 1},  {"kith", "kiths", 1},      {"kith", "kish", 1},
        {"kith", "ktih", 1}, {"triplet", "tripelt", 1}, {"kitten", "sitting", 3},
        {"abcd", "badc", 2}, {"margin", "loss", 6},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        if (ki_edit_distance(rows[i].a, rows[i].b) != rows[i].distance)
            fail_msg("'%s' to '%s': %d, wanted %d", rows[i].a, rows[i].b,
                     ki_edit_distance(rows[i].a, rows[i].b), rows[i].distance);
        assert_int_equal(ki_edit_distance(rows[i].b, rows[i].a), rows[i].distance);
    }
}

static void test_nearest(void **state) {
    (void)state;
    static const char *const names[] = {"contrastive", "triplet", "binomial", "margin"};
    assert_string_equal(ki_nearest("tripelt", names, N_ROWS(names)), "triplet");
    assert_string_equal(ki_nearest("binomal", names, N_ROWS(names)), "binomial");
    assert_string_equal(ki_nearest("margin", names, N_ROWS(names)), "margin");
    assert_null(ki_nearest("softmax", names, N_ROWS(names)));
    assert_null(ki_nearest("", names, N_ROWS(names)));
    assert_null(ki_nearest("triplet", names, 0));
}

/* Words longer than the table of the distance must be neither suggested nor read past. */
static void test_long_words_suggest_nothing(void **state) {
    (void)state;
    char word[1000];
    memset(word, 'x', sizeof word);
    word[sizeof word - 1] = '\0';
    static const char *const names[] = {"triplet"};
    assert_null(ki_nearest(word, names, 1));
    assert_int_equal(ki_edit_distance(word, word), 0);
}

static void test_numbers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value;
    } rows[] = {{"0", 0}, {"-1.5", -1.5}, {"1e-5", 1e-5}, {"+3", 3}, {".5", 0.5}, {"inf", INFINITY}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        double real = NAN;
        assert_true(ki_parse_double(rows[i].text, &real));
        assert_true(real == rows[i].value);
    }
    int64_t whole = 0;
    assert_true(ki_parse_int64("-9223372036854775808", &whole) && whole == INT64_MIN);
    assert_true(ki_parse_int64("9223372036854775807", &whole) && whole == INT64_MAX);
}

static void test_what_is_no_number(void **state) {
    (void)state;
    static const char *const rows[] = {"",   " 1", "1 ",  "\t1", "\v1", "\f1",
                                       "1x", "x",  "1,5", "--1", "e5",  "-"};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        double real = 42;
        int64_t whole = 42;
        if (ki_parse_double(rows[i], &real) || ki_parse_int64(rows[i], &whole))
            fail_msg("'%s' was taken", rows[i]);
        assert_true(real == 42 && whole == 42);
    }
    int64_t whole = 42;
    assert_false(ki_parse_int64("9223372036854775808", &whole));
    assert_false(ki_parse_int64("1.0", &whole));
    assert_int_equal(whole, 42);
}

static void test_whole_numbers_as_people_write_them(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"-17", -17},
                {"+17", 17},
                {"1e3", 1000},
                {"-1e3", -1000},
                {"1.5e3", 1500},
                {"100e-2", 1},
                {"2.", 2},
                {"2.00", 2},
                {"0e999999999999", 0},
                {"0.000", 0},
                {"1_000_000", 1000000},
                {"1e18", 1000000000000000000},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN},
                {"9007199254740993e0", 9007199254740993}}; /* no double holds it */
    for (size_t i = 0; i < N_ROWS(good); i++) {
        int64_t whole = 42;
        if (!ki_parse_whole(good[i].text, &whole)) fail_msg("'%s' was refused", good[i].text);
        assert_int_equal(whole, good[i].value);
    }
    static const char *const bad[] = {"",
                                      "-",
                                      "e3",
                                      "1e",
                                      "1e+",
                                      "1.5",
                                      "15e-1",
                                      "0.5",
                                      "1e19",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "1__0",
                                      "_1",
                                      "1_",
                                      "1_e3",
                                      "1.e",
                                      ".",
                                      " 1",
                                      "1 ",
                                      "0x10",
                                      "1e3x",
                                      "inf",
                                      "nan",
                                      "1,000",
                                      "--1",
                                      "1e99999999999999999999",
                                      "1e-99999999999999999999"};
    for (size_t i = 0; i < N_ROWS(bad); i++) {
        int64_t whole = 42;
        if (ki_parse_whole(bad[i], &whole)) fail_msg("'%s' was taken as %lld", bad[i], (long long)whole);
        assert_int_equal(whole, 42);
    }
}

static void test_numbers_for_people(void **state) {
    (void)state;
    static const struct {
        double value;
        int digits;
        const char *text;
    } rows[] = {{0, 4, "0"},
                {1, 4, "1"},
                {0.5, 4, "0.5"},
                {4307.23, 4, "4307"},
                {43072.3, 4, "43072"},
                {0.1602, 4, "0.1602"},
                {1e-4, 4, "1e-4"},
                {2.5e-7, 4, "2.5e-7"},
                {1e7, 4, "1e7"},
                {-3.25, 2, "-3.2"},
                {123456789, 4, "1.235e8"},
                {1e-300, 3, "1e-300"},
                {99.96, 3, "100"},
                {1000, 4, "1000"},
                {20, 4, "20"}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char buf[KI_NUMBER_TEXT];
        assert_string_equal(ki_number_text(rows[i].value, rows[i].digits, buf), rows[i].text);
    }
    static const struct {
        double value;
        const char *text;
    } counts[] = {{0, "0"},          {999, "999"}, {1000, "1,000"}, {1234567, "1,234,567"},
                  {-1000, "-1,000"}, {100, "100"}, {-100, "-100"}};
    for (size_t i = 0; i < N_ROWS(counts); i++) {
        char buf[KI_NUMBER_TEXT];
        assert_string_equal(ki_count_text(counts[i].value, buf), counts[i].text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edit_distance),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_long_words_suggest_nothing),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_numbers_for_people),
        cmocka_unit_test(test_what_is_no_number),
        cmocka_unit_test(test_whole_numbers_as_people_write_them),
        cmocka_unit_test(test_whole_numbers_as_people_write_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
