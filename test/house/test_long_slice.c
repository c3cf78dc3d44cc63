/* A slice of the long tier (test/long): one fault of each kind in each command, and some seconds of damaged files. */
#include <stdio.h>
#include <string.h>

#include "support/testing.h"

static char output[1 << 16];

/* `test/long/SCRIPT`, whose last line counts. */
static void run(const char *script) {
    char build[4096];
    snprintf(build, sizeof build, "%s", testing_program_path());
    char *slash = strrchr(build, '/');
    if (!slash) skip();
    *slash = '\0';
    const int status = testing_run(output, sizeof output, "export BUILD='%s'; %s/test/long/%s", build,
                                   testing_source(), script);
    if (status == 77) skip();
    if (status != 0) fail_msg("exit status %d: %s", status, output);
    print_message("%s", output);
}

static void test_file_calls_fail(void **state) {
    (void)state;
    run("torture_io.sh \"$BUILD\" 1");
}

static void test_allocations_fail(void **state) {
    (void)state;
    run("torture_alloc.sh \"$BUILD\" 1");
}

static void test_damaged_files(void **state) {
    (void)state;
    run("fuzz_commands.sh 8 1 \"$BUILD\"");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_calls_fail),
        cmocka_unit_test(test_allocations_fail),
        cmocka_unit_test(test_damaged_files),
    };
    return cmocka_run_group_tests_name("house/long_slice", tests, NULL, NULL);
}
