/* Recipes by name: those that came with kith, from any folder; a file or folder of that name comes first. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/testing.h"

static char output[1 << 16];

/* In a folder that has no recipes. */
static int kith(const char *words) {
    return testing_run(output, sizeof output, "cd %s && %s %s", testing_folder(), testing_program(), words);
}

static void assert_holds(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

static void test_listed_files_exist(void **state) {
    (void)state;
    static const char key[] = "source: ";
    int n = 0;
    assert_int_equal(kith("list recipes"), 0);
    for (char *at = output; (at = strstr(at, key)); n++) {
        at += strlen(key);
        const size_t length = strcspn(at, "\n");
        if (!at[length]) break; /* the output was cut */
        at[length] = '\0';
        if (*at != '/' || access(at, R_OK) != 0) fail_msg("%s is not there", at);
        at[length] = '\n';
    }
    assert_in_range(n, 30, 10000);
    assert_int_equal(kith("list recipes photos --json"), 0);
    assert_holds("/recipes/photos.yaml\"");
}

/* What is printed is the recipe; which one it is goes to standard error, when it trains. */
static void test_by_name(void **state) {
    (void)state;
    static char wanted[sizeof output];
    assert_int_equal(
        testing_run(wanted, sizeof wanted, "cd %s && %s train %s/recipes/quickstart.yaml --print-recipe",
                    testing_folder(), testing_program(), testing_source()),
        0);
    assert_int_equal(kith("train recipe:quickstart --print-recipe"), 0);
    assert_string_equal(output, wanted);
    assert_int_equal(kith("train quickstart --print-recipe"), 0);
    assert_string_equal(output, wanted);
    assert_int_equal(kith("train quickstart -s data.root=nowhere"), 1);
    assert_holds("kith: recipe quickstart: /");
    assert_holds("nowhere");
    assert_int_equal(kith("objective recipe:methods/binomial --plot p.svg"), 0);
    assert_int_equal(kith("data recipe:quickstart"), 1); /* its data is not there, but it is read */
    assert_holds("kith: recipe quickstart: /");
}

/* The recipe of a method is found by the method's name alone. */
static void test_by_method(void **state) {
    (void)state;
    static char wanted[sizeof output];
    assert_int_equal(
        testing_run(wanted, sizeof wanted, "cd %s && %s train %s/recipes/methods/horde.yaml --print-recipe",
                    testing_folder(), testing_program(), testing_source()),
        0);
    static const char *const words[] = {"recipe:methods/horde", "recipe:horde", "horde"};
    for (size_t i = 0; i < N_ROWS(words); i++) {
        char command[64];
        snprintf(command, sizeof command, "train %s --print-recipe", words[i]);
        assert_int_equal(kith(command), 0);
        assert_string_equal(output, wanted);
    }
}

static void test_a_path_comes_first(void **state) {
    (void)state;
    assert_int_equal(kith("--version && mkdir demo"), 0);
    assert_int_equal(kith("train demo"), 1);
    assert_holds("kith: demo is the one in this folder; recipe:demo is the recipe of that name\n");
    assert_int_equal(kith("train recipe:demo --print-recipe"), 0);
}

static void test_names_that_are_none(void **state) {
    (void)state;
    assert_int_equal(kith("train recipe:quikstart"), 2);
    assert_holds("unknown recipe 'quikstart'; did you mean 'quickstart'?");
    assert_int_equal(kith("train recipe:../recipes/quickstart"), 2);
    assert_int_equal(kith("train quikstart"), 1); /* a file, as far as anyone knows */
    assert_holds("quikstart");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listed_files_exist),  cmocka_unit_test(test_by_name),
        cmocka_unit_test(test_by_method),           cmocka_unit_test(test_a_path_comes_first),
        cmocka_unit_test(test_names_that_are_none),
    };
    return cmocka_run_group_tests_name("cli/recipes", tests, NULL, testing_tear_down);
}
