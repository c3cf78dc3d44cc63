/* scripts/test-long.sh must not call a part passed that did not run, and must say which one failed. */
#include <stdio.h>
#include <string.h>

#include "support/testing.h"

static char output[65536];

/* Run the driver over a table of its own; `slice` may be empty. */
static int run(const char *table, const char *slice, const char *parts) {
    return testing_run(output, sizeof output,
                       "LONG_TABLE='%s' SLICE='%s' LONG_FOLDER=%s/long %s/scripts/test-long.sh %s", table,
                       slice, testing_folder(), testing_source(), parts);
}

static void assert_holds(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

static void test_the_last_line_is_the_count(void **state) {
    (void)state;
    assert_int_equal(run("one | 9 | printf first\\n12\\x20inputs\\n | 9 | false", "", ""), 0);
    assert_holds("ok      one");
    assert_holds("12 inputs");
    assert_holds("long tests: 1 ok, 0 failed, 0 skipped");
}

static void test_what_cannot_pass(void **state) {
    (void)state;
    static const struct {
        const char *table, *wanted;
    } rows[] = {
        {"one | 9 | test/long/nothing.sh | 9 | true", "cannot be run"},
        {"one | 9 | no-such-tool-anywhere | 9 | true", "cannot be run"},
        {"one | 9 | true | 9 | true", "it said nothing"},
        {"one | 9 | ls /nothing | 9 | true", "status 2"},
        {"one | 1 | sleep 9 | 9 | true", "took more than 1 s"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        assert_int_equal(run(rows[i].table, "", ""), 1);
        assert_holds("FAILED  one");
        assert_holds(rows[i].wanted);
    }
    assert_int_equal(run("one | 9 | echo 1 | 9 | echo 2", "", "two"), 1);
    assert_holds("no such part");
}

static void test_one_failure_fails_all_and_the_rest_still_runs(void **state) {
    (void)state;
    assert_int_equal(run("one | 9 | ls /nothing | 9 | true\ntwo | 9 | echo fine | 9 | true", "", ""), 1);
    assert_holds("ok      two");
    assert_holds("1 ok, 1 failed, 0 skipped");
}

static void test_what_cannot_run_here_is_counted(void **state) {
    (void)state;
    assert_int_equal(run("one | 9 | sh build/nothing | 9 | true", "", ""), 1); /* sh's own 127 is no skip */
    char table[256];
    snprintf(table, sizeof table, "one | 9 | sh %s/skip.sh | 9 | true", testing_folder());
    char path[600];
    snprintf(path, sizeof path, "%s/skip.sh", testing_folder());
    testing_write(path, "echo no device; exit 77\n");
    assert_int_equal(run(table, "", ""), 0);
    assert_holds("skipped one");
    assert_holds("0 ok, 0 failed, 1 skipped");
}

static void test_a_slice_is_another_command(void **state) {
    (void)state;
    assert_int_equal(run("one | 9 | echo whole | 9 | echo slice", "1", "one"), 0);
    assert_holds("slice");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_line_is_the_count),
        cmocka_unit_test(test_what_cannot_pass),
        cmocka_unit_test(test_one_failure_fails_all_and_the_rest_still_runs),
        cmocka_unit_test(test_what_cannot_run_here_is_counted),
        cmocka_unit_test(test_a_slice_is_another_command),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
