/* The program as a user types it: output, exit status. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "kith/version.h"
#include "support/testing.h"

enum { OUTPUT_BYTES = 65536 };
static char output[OUTPUT_BYTES];

#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

static void assert_holds(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

static int n_lines(void) {
    int n = 0;
    for (const char *c = output; *c; c++) n += *c == '\n';
    return n;
}

static void test_version(void **state) {
    (void)state;
    assert_int_equal(run("%s --version", testing_program()), 0);
    assert_string_equal(output, "kith " KITH_VERSION "\n");
    assert_string_equal(kith_version(), KITH_VERSION);
}

static const char *const rows[] = {
#define X(name, summary) #name, summary,
#include "cli/table.def"
#undef X
};

static void test_help_lists_every_command(void **state) {
    (void)state;
    assert_int_equal(run("COLUMNS=200 %s --help", testing_program()), 0); /* no summary is wrapped */
    for (size_t i = 0; i < N_ROWS(rows); i++) assert_holds(rows[i]);
}

/* --help must work for every row, before anything else about the command line is judged, and say
 * what the row says. */
static void test_every_command_explains_itself(void **state) {
    (void)state;
    static char first[OUTPUT_BYTES];
    for (size_t i = 0; i < N_ROWS(rows); i += 2) {
        assert_int_equal(run("COLUMNS=200 %s help %s", testing_program(), rows[i]), 0);
        snprintf(first, sizeof first, "usage: kith %s ", rows[i]);
        assert_memory_equal(output, first, strlen(first));
        assert_holds(rows[i + 1]);
        if (strstr(output, "may be repeated (may be repeated")) fail_msg("said twice: %s", output);
        snprintf(first, sizeof first, "%s", output);
        assert_int_equal(run("COLUMNS=200 %s %s --help", testing_program(), rows[i]), 0);
        assert_string_equal(output, first);
    }
}

static void test_every_command_refuses_an_unknown_option(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(rows); i += 2) {
        assert_int_equal(run("%s %s --no-such-option", testing_program(), rows[i]), 2);
        assert_holds("unknown option '--no-such-option'");
        assert_int_equal(n_lines(), 1);
    }
}

/* Of two options of one name the second could never be given. */
static void test_no_two_options_of_one_name(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(rows); i += 2) {
        assert_int_equal(run("COLUMNS=200 %s help %s | sed -nE 's/^  (-[a-z], )?(--[a-z0-9-]+).*/\\2/p;"
                             "s/^  (-[a-z]), .*/\\1/p' | sort | uniq -d",
                             testing_program(), rows[i]),
                         0);
        if (*output) fail_msg("kith %s has two of %s", rows[i], output);
    }
}

static void test_no_command_shows_help_and_fails(void **state) {
    (void)state;
    assert_int_equal(run("%s 2>/dev/null", testing_program()), 2);
    assert_string_equal(output, "");
    assert_int_equal(run("%s", testing_program()), 2);
    assert_holds("usage: kith COMMAND");
}

static void test_unknown_command_suggests_the_nearest(void **state) {
    (void)state;
    assert_int_equal(run("%s hepl", testing_program()), 2);
    assert_string_equal(output, "kith: unknown command 'hepl' (did you mean 'help'?)\n");
    assert_int_equal(run("%s help hepl", testing_program()), 2);
    assert_string_equal(output, "kith: unknown command 'hepl' (did you mean 'help'?)\n");
    assert_int_equal(run("%s zzzzzzzz", testing_program()), 2);
    assert_string_equal(output, "kith: unknown command 'zzzzzzzz' (see kith --help)\n");
}

static void test_unknown_option_before_the_command(void **state) {
    (void)state;
    assert_int_equal(run("%s --fast help", testing_program()), 2);
    assert_string_equal(output, "kith: unknown option '--fast' before the command (see kith --help)\n");
}

static void test_a_full_disk_is_a_failure(void **state) {
    (void)state;
    assert_int_equal(run("%s --version > /dev/full", testing_program()), 1);
    assert_string_equal(output, "kith: standard output: No space left on device\n");
}

static bool is_named(const char *page, const char *name) {
    char entry[80];
    snprintf(entry, sizeof entry, ".B %s\n", name);
    return strstr(page, entry) != NULL;
}

static void test_man_page_has_every_command(void **state) {
    (void)state;
    assert_int_equal(run("cat \"$(dirname %s)\"/kith.1", testing_program()), 0);
    for (size_t i = 0; i < N_ROWS(rows); i += 2) {
        if (!is_named(output, rows[i])) fail_msg("no entry for %s in kith.1", rows[i]);
    }
    assert_holds(KITH_VERSION);
    assert_false(testing_has_placeholder(output));
}

/* Help, man page and pkg-config speak of searching when there is a command for it. */
static void test_no_promises(void **state) {
    (void)state;
    static const char *const texts[] = {"%s --help", "cat \"$(dirname %s)\"/kith.1",
                                        "cat \"$(dirname %s)\"/kith.pc"};
    for (size_t i = 0; i < N_ROWS(rows); i += 2) {
        if (strcmp(rows[i], "search") == 0) return;
    }
    for (size_t i = 0; i < N_ROWS(texts); i++) {
        char command[64];
        snprintf(command, sizeof command, "%s", texts[i]);
        char *at = strstr(command, "%s");
        at[0] = '\0';
        assert_int_equal(run("%s%s%s", command, testing_program(), at + 2), 0);
        if (strstr(output, "search")) fail_msg("%s: %s", texts[i], output);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_help_lists_every_command),
        cmocka_unit_test(test_every_command_explains_itself),
        cmocka_unit_test(test_every_command_refuses_an_unknown_option),
        cmocka_unit_test(test_no_two_options_of_one_name),
        cmocka_unit_test(test_no_command_shows_help_and_fails),
        cmocka_unit_test(test_unknown_command_suggests_the_nearest),
        cmocka_unit_test(test_unknown_option_before_the_command),
        cmocka_unit_test(test_a_full_disk_is_a_failure),
        cmocka_unit_test(test_man_page_has_every_command),
        cmocka_unit_test(test_no_promises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
