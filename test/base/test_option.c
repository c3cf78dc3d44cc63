/* Options tables: defaults, every type, wrong values named. */
#include "base/option.h"

#include <math.h>
#include <string.h>

#include "support/testing.h"

typedef struct settings {
    double margin;
    int64_t k;
    bool squared;
    int distance;
    const char *label;
    const ki_value *weights;
} settings;

static const char *const distances[] = {"sqeuclidean", "euclidean", "cosine", NULL};
static const ki_option options[] = {
    KI_OPTION_REAL(settings, margin, 0.1, 0, 4, "how far negatives must be", "a paper"),
    KI_OPTION_INT(settings, k, 5, 1, 100, "how many neighbours", "a paper"),
    KI_OPTION_BOOL(settings, squared, true, "square it", "a paper"),
    KI_OPTION_CHOICE(settings, distance, 1, distances, "what is compared", "a paper"),
    KI_OPTION_TEXT(settings, label, "none", "a word", "a paper"),
    KI_OPTION_TREE(settings, weights, "all 1", "one weight per class", "a paper"),
    KI_OPTION_END,
};

/* A map of key, value, key, value …, ended by NULL. */
static ki_value *make_map(ki_arena *arena, const char *const *pairs) {
    ki_value *map = ki_value_new(arena, KI_VALUE_MAP, NULL);
    for (; *pairs; pairs += 2) ki_value_append(map, pairs[0], ki_value_new(arena, KI_VALUE_SCALAR, pairs[1]));
    return map;
}

static void assert_defaults(const settings *s) {
    assert_true(s->margin == 0.1);
    assert_int_equal(s->k, 5);
    assert_true(s->squared);
    assert_int_equal(s->distance, 1);
    assert_string_equal(s->label, "none");
    assert_null(s->weights);
}

static void test_defaults(void **state) {
    (void)state;
    kith_error err = {0};
    settings s;
    memset(&s, 0x55, sizeof s);
    ki_options_default(options, &s);
    assert_defaults(&s);
    memset(&s, 0x55, sizeof s);
    assert_ok(ki_options_parse(options, NULL, NULL, "loss", &s, &err), &err);
    assert_defaults(&s);
    memset(&s, 0x55, sizeof s);
    assert_ok(ki_options_parse(options, &(ki_value){.kind = KI_VALUE_NULL}, NULL, "loss", &s, &err), &err);
    assert_defaults(&s);
}

/* Defaults of numbers that no integer holds. Under -fsanitize=float-cast-overflow a conversion ends the test. */
static void test_a_default_need_not_fit_an_integer(void **state) {
    (void)state;
    static const ki_option wide[] = {
        KI_OPTION_REAL(settings, margin, NAN, 0, 4, "how far negatives must be", "a paper"), KI_OPTION_END};
    static const ki_option infinite[] = {
        KI_OPTION_REAL(settings, margin, INFINITY, 0, INFINITY, "how far negatives must be", "a paper"),
        KI_OPTION_END};
    settings s;
    ki_options_default(wide, &s);
    assert_true(isnan(s.margin));
    ki_options_default(infinite, &s);
    assert_true(isinf(s.margin));
}

static void test_every_type_is_read(void **state) {
    (void)state;
    kith_error err = {0};
    ki_arena arena = {0};
    ki_value *map = make_map(&arena, (const char *const[]){"margin", "1e-2", "k", "100", "squared", "off",
                                                           "distance", "cosine", "label", "x y", NULL});
    ki_value *list = ki_value_new(&arena, KI_VALUE_LIST, NULL);
    ki_value_append(map, "weights", list);
    settings s;
    assert_ok(ki_options_parse(options, map, NULL, "loss", &s, &err), &err);
    assert_true(s.margin == 0.01);
    assert_int_equal(s.k, 100);
    assert_false(s.squared);
    assert_int_equal(s.distance, 2);
    assert_string_equal(s.label, "x y");
    assert_ptr_equal(s.weights, list);
    ki_arena_release(&arena);
}

/* A whole number may be written as people write large ones, so long as it is one. */
static void test_whole_numbers_may_have_an_exponent(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t k;
    } rows[] = {{"1e2", 100},   {"1E1", 10},   {"2.0", 2}, {"2.5e1", 25},
                {"500e-1", 50}, {"0.5e+1", 5}, {"1_0", 10}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        ki_arena arena = {0};
        settings s;
        const ki_value *map = make_map(&arena, (const char *const[]){"k", rows[i].text, NULL});
        assert_ok(ki_options_parse(options, map, NULL, "loss", &s, &err), &err);
        assert_int_equal(s.k, rows[i].k);
        ki_arena_release(&arena);
    }
}

static void test_wrong_values_name_found_and_wanted(void **state) {
    (void)state;
    static const struct {
        const char *key, *text, *message, *hint;
    } rows[] = {
        {"margin", "4.5", "loss: margin is '4.5'", "wanted a number: 0 … 4"},
        {"margin", "nan", "loss: margin is 'nan'", "wanted a number: 0 … 4"},
        {"margin", "wide", "loss: margin is 'wide'", "wanted a number: 0 … 4"},
        {"k", "0", "loss: k is '0'", "wanted a whole number: 1 … 100"},
        {"k", "2.5", "loss: k is '2.5'", "wanted a whole number: 1 … 100"},
        {"k", "25e-1", "loss: k is '25e-1'", "wanted a whole number: 1 … 100"},
        {"k", "1e3", "loss: k is '1e3'", "wanted a whole number: 1 … 100"},
        {"squared", "maybe", "loss: squared is 'maybe'", "wanted one value: true|false"},
        {"distance", "hamming", "loss: distance is 'hamming'",
         "wanted one value: sqeuclidean|euclidean|cosine"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        ki_arena arena = {0};
        settings s;
        ki_value *map = make_map(&arena, (const char *const[]){rows[i].key, rows[i].text, NULL});
        assert_int_equal(ki_options_parse(options, map, NULL, "loss", &s, &err), KITH_EINVAL);
        assert_string_equal(err.message, rows[i].message);
        assert_string_equal(err.hint, rows[i].hint);
        ki_arena_release(&arena);
    }
}

static void test_wrong_kinds(void **state) {
    (void)state;
    kith_error err = {0};
    ki_arena arena = {0};
    settings s;
    ki_value *map = ki_value_new(&arena, KI_VALUE_MAP, NULL),
             *list = ki_value_new(&arena, KI_VALUE_LIST, NULL);
    ki_value_append(map, "margin", list);
    assert_int_equal(ki_options_parse(options, map, NULL, "loss", &s, &err), KITH_EINVAL);
    assert_string_equal(err.message, "loss: margin is a list of 0");
    assert_int_equal(ki_options_parse(options, list, NULL, "loss", &s, &err), KITH_EINVAL);
    assert_string_equal(err.message, "loss is a list of 0; wanted a map of options");
    ki_arena_release(&arena);
}

static void test_unknown_keys(void **state) {
    (void)state;
    kith_error err = {0};
    ki_arena arena = {0};
    settings s;
    static const char *const also[] = {"name", NULL};
    assert_ok(ki_options_parse(options, make_map(&arena, (const char *const[]){"name", "x", NULL}), also,
                               "loss", &s, &err),
              &err);
    ki_value *map = make_map(&arena, (const char *const[]){"margni", "0.1", NULL});
    assert_int_equal(ki_options_parse(options, map, also, "loss", &s, &err), KITH_ENOTFOUND);
    assert_string_equal(err.message, "loss: unknown option 'margni'");
    assert_string_equal(err.hint, "did you mean 'margin'?");
    map = make_map(&arena, (const char *const[]){"zzzzzz", "0.1", NULL});
    assert_int_equal(ki_options_parse(options, map, also, "loss", &s, &err), KITH_ENOTFOUND);
    assert_string_equal(err.hint, "known: margin, k, squared, distance, label, weights, name");
    ki_arena_release(&arena);
}

static void test_texts_for_the_list(void **state) {
    (void)state;
    static const struct {
        const char *def, *range;
    } rows[] = {
        {"0.1", "0 … 4"},       {"5", "1 … 100"},
        {"true", "true|false"}, {"euclidean", "sqeuclidean|euclidean|cosine"},
        {"none", "text"},       {"all 1", "see help"},
    };
    char buf[80];
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        assert_string_equal(ki_option_default_text(&options[i], buf, sizeof buf), rows[i].def);
        assert_string_equal(ki_option_range_text(&options[i], buf, sizeof buf), rows[i].range);
    }
}

static void test_many_names_are_cut_at_a_name(void **state) {
    (void)state;
    kith_error err = {0};
    const char *names[60];
    for (size_t i = 0; i < N_ROWS(names); i++) names[i] = "contrastive";
    assert_int_equal(ki_fail_unknown(&err, "loss", "zzz", names, N_ROWS(names)), KITH_ENOTFOUND);
    const char *last = strrchr(err.hint, ' ');
    assert_non_null(last);
    assert_string_equal(last, " contrastive");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_a_default_need_not_fit_an_integer),
        cmocka_unit_test(test_every_type_is_read),
        cmocka_unit_test(test_whole_numbers_may_have_an_exponent),
        cmocka_unit_test(test_wrong_values_name_found_and_wanted),
        cmocka_unit_test(test_wrong_kinds),
        cmocka_unit_test(test_unknown_keys),
        cmocka_unit_test(test_texts_for_the_list),
        cmocka_unit_test(test_many_names_are_cut_at_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
