/* What is passed on (make dist): the checks fail when they should, and install.sh leaves nothing behind. The tar itself is tried by
 * test/long/dist.sh. */
#include <stdio.h>
#include <string.h>

#include "support/testing.h"

static char output[65536], top[512];

#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

static void assert_runs(int status) {
    if (status != 0) fail_msg("exit status %d: %s", status, output);
}

static void assert_says(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

/* A folder like an unpacked tar, with zlib as its only library. */
static int make_top(void **state) {
    (void)state;
    snprintf(top, sizeof top, "%s/top", testing_folder());
    return run(
        "mkdir -p %s/bin %s/lib/kith/bundled %s/share/doc/kith/licences && cp /bin/cat "
        "%s/bin/kith && "
        "cp -L \"$(ldd %s | awk '$1 == \"libz.so.1\" { print $3 }')\" %s/lib/kith/bundled/libz.so.1 && "
        "printf 'libz.so.1\\tzlib1g\\t1\\n' > %s/share/doc/kith/licences/libraries.tsv && "
        "echo text > %s/share/doc/kith/licences/zlib1g.txt",
        top, top, top, top, testing_program(), top, top, top);
}

/* The check with a table of licences that has this row for zlib. */
static int check(const char *licence, const char *versions) {
    return run(
        "printf 'libkith\\tApache-2.0\\n%s' > %s/table && LICENCES=%s/table %s/scripts/check-dist.sh %s %s "
        "2>&1",
        licence, testing_folder(), testing_folder(), testing_source(), top, versions);
}

static void test_licences(void **state) {
    (void)state;
    static const struct {
        const char *row;
        bool is_fine;
        const char *says;
    } rows[] = {
        {"libz\\tZlib\\n", true, "libz.so.1"},
        {"libz\\tLGPL-3.0-or-later OR GPL-2.0-or-later\\n", true, "libz.so.1"},
        {"libz\\tGPL-3.0-or-later WITH GCC-exception-3.1\\n", true, "libz.so.1"},
        {"libz\\tLGPL-2.1-only\\n", true, "libz.so.1"},
        {"", false, "libz.so.1: no licence in "},
        {"libz\\tGPL-2.0-or-later\\n", false, "libz.so.1: under GPL-2.0-or-later alone"},
        {"libz\\tMIT AND GPL-3.0-only\\n", false, "libz.so.1: under MIT AND GPL-3.0-only alone"},
        {"libz\\tGPL-2.0-only OR AGPL-3.0-only\\n", false, "alone"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const int status = check(rows[i].row, "");
        if ((status == 0) != rows[i].is_fine) fail_msg("'%s': status %d: %s", rows[i].row, status, output);
        assert_says(rows[i].says);
    }
}

static void test_a_copyright_file_is_missing(void **state) {
    (void)state;
    assert_runs(run("mv %s/share/doc/kith/licences/zlib1g.txt %s/aside", top, testing_folder()));
    const int status = check("libz\\tZlib\\n", "");
    assert_says("libz.so.1: no copyright file in ");
    assert_int_not_equal(status, 0);
    assert_runs(run("mv %s/aside %s/share/doc/kith/licences/zlib1g.txt", testing_folder(), top));
}

static void test_symbols_are_held_to_the_promise(void **state) {
    (void)state;
    assert_runs(check("libz\\tZlib\\n", "99.0 99.0.0"));
    assert_int_not_equal(check("libz\\tZlib\\n", "2.2 3.4.0"), 0);
    assert_says("is asked for; promised is 2.2");
    assert_runs(run("%s/scripts/glibc.sh %s | tail -n 1", testing_source(), testing_program()));
    assert_says("2.");
    assert_int_not_equal(run("%s/scripts/glibc.sh %s/README.md 2>&1", testing_source(), testing_source()), 0);
    assert_says("is no program and no library");
}

/* A library that the folder does not have. */
static void test_what_is_linked_is_inside(void **state) {
    (void)state;
    assert_runs(run("cp %s %s/bin/kith", testing_program(), top));
    assert_int_not_equal(check("libz\\tZlib\\n", ""), 0);
    assert_says("kith: links libdnnl.so");
    assert_runs(run("cp /bin/cat %s/bin/kith", top));
}

/* Every library that the program links here has a row, so that make dist works. */
static void test_every_library_has_a_licence(void **state) {
    (void)state;
    assert_runs(
        run("cd %s && ldd %s | awk '$2 == \"=>\" { print $1 }' | "
            "grep -vE '^(libc|libm|libdl|libpthread|librt|libstdc[+][+]|libgcc_s|lib[a-z]*san)[.]so' | "
            "sed 's/[.]so.*//' | while read -r name; do grep -qP \"^$name\\t\" scripts/licences.tsv || echo "
            "\"$name\"; done",
            testing_source(), testing_program()));
    assert_string_equal(output, "");
}

/* A tar whose program is a script that says its version. */
static void make_tar(const char *version, const char *more) {
    assert_runs(
        run("cd %s && rm -rf kith-%s && mkdir -p kith-%s/bin kith-%s/lib/kith kith-%s/share/kith "
            "kith-%s/include && "
            "printf '#!/bin/sh\\necho kith %s\\n' > kith-%s/bin/kith && chmod +x kith-%s/bin/kith && touch "
            "kith-%s/lib/kith/%s && "
            "tar -cJf kith-%s-linux.tar.xz kith-%s && sha256sum kith-%s-linux.tar.xz > "
            "kith-%s-linux.tar.xz.sha256",
            testing_folder(), version, version, version, version, version, version, version, version, version,
            more, version, version, version, version));
}

#define install(words)                                                                            \
    run("cd %s && PREFIX='%s/pre fix' sh %s/contrib/install.sh " words " 2>&1", testing_folder(), \
        testing_folder(), testing_source())

static void test_install_upgrade_remove(void **state) {
    (void)state;
    if (run("command -v xz") != 0) skip();
    make_tar("0.1.0", "old.so");
    make_tar("0.2.0", "new.so");
    assert_runs(
        run("mkdir -p '%s/pre fix/bin' && touch '%s/pre fix/bin/other'", testing_folder(), testing_folder()));
    assert_runs(install("kith-0.1.0-linux.tar.xz"));
    assert_says("kith 0.1.0 is in ");
    assert_runs(install("kith-0.2.0-linux.tar.xz"));
    assert_says("kith 0.2.0 is in ");
    assert_runs(run("cd '%s/pre fix' && bin/kith && find . -type f | sort", testing_folder()));
    assert_string_equal(output,
                        "kith 0.2.0\n./bin/kith\n./bin/other\n./lib/kith/new.so\n./share/kith/installed\n");
    assert_runs(install("--uninstall"));
    assert_runs(run("cd '%s/pre fix' && find . | sort", testing_folder()));
    assert_string_equal(output, ".\n./bin\n./bin/other\n");
    assert_int_not_equal(install("--uninstall"), 0);
    assert_says("no kith was installed in ");
}

/* A tar that is cut, or is not the one its checksum is of, changes nothing. */
static void test_a_damaged_tar(void **state) {
    (void)state;
    if (run("command -v xz") != 0) skip();
    make_tar("0.3.0", "new.so");
    assert_runs(run("cd %s && head -c 150 kith-0.3.0-linux.tar.xz > cut && mv cut kith-0.3.0-linux.tar.xz",
                    testing_folder()));
    assert_int_not_equal(install("kith-0.3.0-linux.tar.xz"), 0);
    assert_says("is damaged: its SHA-256 is another");
    assert_runs(run("rm %s/kith-0.3.0-linux.tar.xz.sha256", testing_folder()));
    assert_int_not_equal(install("kith-0.3.0-linux.tar.xz"), 0);
    assert_says("cannot be unpacked");
    assert_int_not_equal(install("none.tar.xz"), 0);
    assert_says("there is no file none.tar.xz");
    assert_runs(run("cd '%s/pre fix' && find . -type f ! -name other", testing_folder()));
    assert_string_equal(output, "");
}

/* What only the publisher knows is empty in the tree: nothing may be released with it, and each place is named. */
static void test_release_wants_its_places(void **state) {
    (void)state;
    static const char *const places[] = {"MAINTAINER", "HOMEPAGE",     "COPYRIGHT",
                                         "SECURITY",   "url is empty", "[project.urls]"};
    static char said[4096];
    char tree[128];
    snprintf(tree, sizeof tree, "%s/release", testing_folder());
    assert_int_equal(
        testing_run(said, sizeof said,
                    "mkdir -p %s/python && cd %s && cp -r contrib scripts %s && cp python/pyproject.toml "
                    "%s/python && %s/scripts/release.sh --check",
                    tree, testing_source(), tree, tree, tree),
        1);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (!strstr(said, places[i])) fail_msg("no '%s' in: %s", places[i], said);
    }
    assert_int_equal(
        testing_run(said, sizeof said,
                    "cd %s && sed -i \"s/=''/='x'/\" contrib/release.conf && sed -i \"s/^url=''/url='x'/\" "
                    "contrib/install.sh && scripts/release.sh --check",
                    tree),
        1);
    assert_null(strstr(said, "MAINTAINER"));
    assert_null(strstr(said, "url is empty"));
    assert_non_null(strstr(said, "[project.urls]"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_release_wants_its_places),
        cmocka_unit_test(test_licences),
        cmocka_unit_test(test_a_copyright_file_is_missing),
        cmocka_unit_test(test_symbols_are_held_to_the_promise),
        cmocka_unit_test(test_what_is_linked_is_inside),
        cmocka_unit_test(test_every_library_has_a_licence),
        cmocka_unit_test(test_install_upgrade_remove),
        cmocka_unit_test(test_a_damaged_tar),
    };
    return cmocka_run_group_tests(tests, make_top, testing_tear_down);
}
