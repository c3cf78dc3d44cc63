/* The tree may lie in a folder with blanks and letters of any language in its name, and may be moved after a build. All
 * of it, built and tested there, is test/long/paths.sh; here are the parts that take no build. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/testing.h"

static char output[1 << 16];
#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

static void assert_runs(int status) {
    if (status != 0) fail_msg("exit status %d: %s", status, output);
}

static const char *odd(void) {
    static char path[600];
    snprintf(path, sizeof path, "%s/a b’s ünï (1) & $x", testing_folder());
    return path;
}

/* The checks, in a copy of what they read. */
static void test_scripts(void **state) {
    (void)state;
    assert_runs(run(
        "mkdir -p '%s' && cd %s && cp -r scripts include src cmake bench examples '%s' && mkdir '%s/test'",
        odd(), testing_source(), odd(), odd()));
    static const char *const scripts[] = {"check-layers.sh", "check-banned.sh", "check-definitions.sh",
                                          "check-openings.sh", "setup.sh"};
    for (size_t i = 0; i < N_ROWS(scripts); i++) {
        if (run("'%s/scripts/%s'", odd(), scripts[i]) != 0) fail_msg("%s: %s", scripts[i], output);
    }
}

/* A test of the command line, with the program in such a folder: the tests' own commands must be quoted too. */
static void test_program(void **state) {
    (void)state;
    assert_runs(
        run("mkdir -p '%s/bin' && ln -s \"$(realpath %s)\" '%s/bin/kith'", odd(), testing_program(), odd()));
    assert_runs(run("cd \"$(dirname %s)\" && cp kith.1 kith.pc '%s/bin'", testing_program(), odd()));
    assert_runs(run("KITH_PROGRAM='%s/bin/kith' ./test_cli", odd()));
    assert_runs(run("KITH_PROGRAM='%s/bin/kith' ./test_cli_destination", odd()));
}

/* A cache of another folder is taken over with its options, once and with one line. */
static void test_moved(void **state) {
    (void)state;
    char path[700];
    assert_runs(
        run("mkdir -p '%s/moved/build/asan' '%s/moved/cmake' && cp %s/cmake/moved.cmake '%s/moved/cmake'",
            odd(), odd(), testing_source(), odd()));
    snprintf(path, sizeof path, "%s/moved/build/asan/CMakeCache.txt", odd());
    testing_write(path,
                  "CMAKE_HOME_DIRECTORY:INTERNAL=/old place\n"
                  "CMAKE_CACHEFILE_DIR:INTERNAL=/old place/build/asan\nKITH_WERROR:BOOL=ON\n");
    assert_runs(run("cd '%s/moved' && touch build/asan/build.ninja && cmake -P cmake/moved.cmake", odd()));
    const char *end = strchr(output, '\n');
    if (!end || end[1] || !strstr(output, "build/asan was made in /old place: it is configured again"))
        fail_msg("%s", output);
    assert_int_not_equal(run("test -e '%s/moved/build/asan/build.ninja'", odd()), 0);
    char *text = testing_read(path), wanted[1500];
    snprintf(wanted, sizeof wanted,
             "CMAKE_HOME_DIRECTORY:INTERNAL=%s/moved\nCMAKE_CACHEFILE_DIR:INTERNAL=%s/moved/build/asan\n"
             "KITH_WERROR:BOOL=ON\n",
             odd(), odd());
    assert_string_equal(text, wanted);
    free(text);
    assert_runs(run("cd '%s/moved' && cmake -P cmake/moved.cmake", odd()));
    assert_string_equal(output, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scripts),
        cmocka_unit_test(test_program),
        cmocka_unit_test(test_moved),
    };
    return cmocka_run_group_tests_name("house/paths", tests, NULL, testing_tear_down);
}
