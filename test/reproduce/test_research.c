/* research/reproduce.sh: it knows its tables, says what is missing, and draws the stored pages from the stored results. */
#include <string.h>

#include "support/testing.h"

static char output[65536];

static int reproduce(const char *before, const char *words) {
    return testing_run(output, sizeof output, "cd %s && KITH=%s %s %s/research/reproduce.sh %s",
                       testing_folder(), testing_program(), before, testing_source(), words);
}

static void wants(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

/* Every list has a table: the commands name all tables.yaml that there are. */
static void test_commands(void **state) {
    (void)state;
    assert_int_equal(reproduce("CUB=birds", "--dry-run -- --seeds 1 > commands"), 0);
    assert_int_equal(testing_run(output, sizeof output,
                                 "cd %s && grep -o 'research/[^ ]*tables.yaml' commands | sort > named && "
                                 "(cd %s && find research -name tables.yaml) | sort | diff - named",
                                 testing_folder(), testing_source()),
                     0);
}

static void test_what_is_missing(void **state) {
    (void)state;
    assert_int_equal(reproduce("CUB=gone", "cub"), 1);
    wants("cub is skipped: /");
    wants("/gone is missing");
    assert_int_equal(reproduce("", "birds"), 2);
    wants("unknown table 'birds'; there are: omniglot search-setup search-methods cub resnet50\n");
    assert_int_equal(reproduce("", "--only cub"), 2);
    wants("options of kith reproduce come after --");
}

static void test_the_pages_are_those_stored(void **state) {
    (void)state;
    assert_int_equal(testing_run(output, sizeof output, "cp -r %s/research/results %s/stored",
                                 testing_source(), testing_folder()),
                     0);
    if (reproduce("", "--out stored search-setup search-methods cub resnet50 -- --table") != 0)
        fail_msg("%s", output);
    if (testing_run(output, sizeof output, "diff -r %s/research/results %s/stored", testing_source(),
                    testing_folder()) != 0)
        fail_msg("draw the pages again (research/reproduce.sh --out research/results cub … -- --table): %s",
                 output);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_what_is_missing),
        cmocka_unit_test(test_the_pages_are_those_stored),
    };
    return cmocka_run_group_tests_name("reproduce/research", tests, NULL, testing_tear_down);
}
