/* A plugin whose package was installed after the first build is built by the next one: dpkg's list of packages has changed. */
#include <stdio.h>
#include <string.h>

#include "support/testing.h"

static char output[1 << 16];
#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

static void assert_runs(int status) {
    if (status != 0) fail_msg("exit status %d: %s", status, output);
}

/* A pkg-config that does not know libpq until there is a file `libpq` beside it. */
static void make_machine(void) {
    char path[600];
    snprintf(path, sizeof path, "%s/pkg-config", testing_folder());
    testing_write(path,
                  "#!/bin/sh\ncase \"$*\" in *libpq*) [ -e \"$(dirname \"$0\")/libpq\" ] || exit 1 ;; esac\n"
                  "exec /usr/bin/pkg-config \"$@\"\n");
    assert_runs(run("chmod +x %s && touch -d '1 hour ago' %s/status", path, testing_folder()));
}

static bool has_plugin(void) {
    return run("cd %s/build && ninja -t targets all | grep -q '^kith_postgres:'", testing_folder()) == 0;
}

static void test_a_package_that_comes_late(void **state) {
    (void)state;
    if (run("/usr/bin/pkg-config --exists 'libpq >= 12' && command -v ninja") != 0) skip();
    make_machine();
    assert_runs(
        run("cmake -S %s -B %s/build -G Ninja -DKITH_TESTS=OFF -DKITH_CUDA=OFF -DKITH_MPI=OFF "
            "-DKITH_DPKG_STATUS=%s/status -DPKG_CONFIG_EXECUTABLE=%s/pkg-config",
            testing_source(), testing_folder(), testing_folder(), testing_folder()));
    assert_non_null(strstr(output, "The PostgreSQL plugin is not built"));
    assert_false(has_plugin());
    assert_runs(
        run("touch %s/libpq && cd %s/build && ninja build.ninja", testing_folder(), testing_folder()));
    assert_false(has_plugin()); /* nothing was installed, as far as dpkg says */
    assert_runs(run("cd %s/build && touch -d '1 minute' ../status && ninja build.ninja", testing_folder()));
    assert_true(has_plugin());
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_package_that_comes_late)};
    return cmocka_run_group_tests_name("house/late_packages", tests, NULL, testing_tear_down);
}
