/* scripts/setup.sh on machines played by a folder of stand-ins: what dpkg knows, who is root. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "support/testing.h"

static char output[65536];

#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

static void write_script(const char *folder, const char *name, const char *body) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", body);
    fclose(file);
    assert_int_equal(chmod(path, 0755), 0);
}

/* A machine where the packages but `absent` are installed, and apt-get writes down how it is called. */
static const char *make_machine(const char *name, const char *absent, const char *id, const char *sudo) {
    static char folder[128];
    char body[1000];
    snprintf(folder, sizeof folder, "%s/%s", testing_folder(), name);
    assert_int_equal(mkdir(folder, 0755), 0);
    snprintf(body, sizeof body,
             "shift 2; for p; do [ \"$p\" = '%s' ] || echo \"installed $p\"; done; [ -z '%s' ]", absent,
             absent);
    write_script(folder, "dpkg-query", body);
    snprintf(body, sizeof body, "echo %s", id);
    write_script(folder, "id", body);
    /* Its sources are none, unless a file names one. */
    snprintf(
        body, sizeof body,
        "[ \"$1\" != indextargets ] || exec cat %s/sources; while [ \"$2\" = -o ]; do q=$1; shift 3; set -- "
        "\"$q\" \"$@\"; done; echo \"$DEBIAN_FRONTEND $@\" >> %s/apt.log",
        folder, folder);
    write_script(folder, "apt-get", body);
    write_script(folder, "sudo", sudo);
    return folder;
}

static void test_nothing_missing_does_nothing(void **state) {
    (void)state;
    const char *machine = make_machine("whole", "", "1000", "exit 1");
    assert_int_equal(run("PATH=%s:$PATH %s/scripts/setup.sh build check", machine, testing_source()), 0);
    assert_string_equal(output, "");
    assert_int_not_equal(run("cat %s/apt.log", machine), 0);
}

static void test_root_installs_what_is_missing(void **state) {
    (void)state;
    const char *machine = make_machine("root", "cmake", "0", "exit 1");
    assert_int_equal(run("PATH=%s:$PATH %s/scripts/setup.sh", machine, testing_source()), 0);
    assert_string_equal(output, "kith needs packages, installing: cmake\n");
    assert_int_equal(run("cat %s/apt.log", machine), 0);
    assert_string_equal(output,
                        "noninteractive -qq update\n"
                        "noninteractive -qq -y --no-install-recommends install cmake\n");
}

static void test_sudo_without_a_password_will_do(void **state) {
    (void)state;
    const char *machine =
        make_machine("sudo", "cmake", "1000", "[ \"$1\" = -n ] || exit 1; shift; exec \"$@\"");
    assert_int_equal(run("PATH=%s:$PATH %s/scripts/setup.sh", machine, testing_source()), 0);
    assert_int_equal(run("grep -c cmake %s/apt.log", machine), 0);
}

static void test_without_rights_one_line_says_what_to_do(void **state) {
    (void)state;
    const char *machine = make_machine("user", "cmake", "1000", "exit 1");
    assert_int_equal(run("PATH=%s:$PATH %s/scripts/setup.sh", machine, testing_source()), 1);
    assert_string_equal(output,
                        "kith needs packages: run  apt-get install --no-install-recommends cmake  as root\n");
    assert_int_not_equal(run("cat %s/apt.log", machine), 0);
}

/* What make alone does: even root's packages are left alone. */
static void test_a_check_installs_nothing(void **state) {
    (void)state;
    const char *machine = make_machine("check", "cmake", "0", "exit 1");
    assert_int_equal(run("PATH=%s:$PATH %s/scripts/setup.sh --check build", machine, testing_source()), 1);
    assert_non_null(strstr(output, "Run this line as root (about a minute)"));
    assert_non_null(strstr(output, "\n  apt-get update && apt-get install --no-install-recommends cmake\n"));
    assert_int_not_equal(run("cat %s/apt.log", machine), 0);
    machine = make_machine("checked", "", "1000", "exit 1");
    assert_int_equal(run("PATH=%s:$PATH %s/scripts/setup.sh --check build", machine, testing_source()), 0);
    assert_string_equal(output, "");
}

static void test_a_failing_apt_is_a_failure(void **state) {
    (void)state;
    const char *machine = make_machine("offline", "cmake", "0", "exit 1");
    write_script(machine, "apt-get", "exit 100");
    assert_int_equal(run("PATH=%s:$PATH %s/scripts/setup.sh", machine, testing_source()), 1);
    assert_non_null(strstr(output, "the packages could not be installed: run  apt-get install"));
}

static void test_other_systems_are_left_alone(void **state) {
    (void)state;
    char folder[128];
    snprintf(folder, sizeof folder, "%s/other", testing_folder());
    assert_int_equal(mkdir(folder, 0755), 0);
    assert_int_equal(
        run("for t in sh dirname awk; do ln -s $(command -v $t) %s/$t; done; PATH=%s %s/scripts/setup.sh",
            folder, folder, testing_source()),
        0);
    assert_string_equal(output, "");
}

/* A tree with what the script reads, and a machine whose npm writes down how it is called. */
static const char *make_tree(const char *name, const char *npm) {
    static char tree[128];
    snprintf(tree, sizeof tree, "%s/%s-tree", testing_folder(), name);
    assert_int_equal(
        run("mkdir -p %s/scripts %s/cmake %s/test/browser && cd %s && cp scripts/setup.sh scripts/network.sh "
            "%s/scripts/ && "
            "cp cmake/packages.txt %s/cmake/ && cp test/browser/package*.json %s/test/browser/",
            tree, tree, tree, testing_source(), tree, tree, tree),
        0);
    write_script(make_machine(name, "npm", "1000", "exit 1"), "npm", npm);
    return tree;
}

/* npm is there, so Debian's is not asked for, whoever brought it. */
static void test_npm_packages_are_fetched_once_for_a_lock_file(void **state) {
    (void)state;
    const char *tree = make_tree("npm",
                                 "[ $1 = ci ] || exit 0; echo \"$1\" >> npm.log; mkdir -p node_modules && "
                                 "touch node_modules/.package-lock.json");
    char call[512];
    snprintf(call, sizeof call, "PATH=%s/npm:$PATH %s/scripts/setup.sh", testing_folder(), tree);
    assert_int_equal(run("touch -d '1 minute ago' %s/test/browser/package-lock.json", tree), 0);
    assert_int_equal(run("%s build check && cat %s/test/browser/npm.log 2>/dev/null", call, tree), 1);
    assert_int_equal(run("%s browser && %s browser && cat %s/test/browser/npm.log", call, call, tree), 0);
    assert_string_equal(output,
                        "kith needs npm packages, fetching those of test/browser/package-lock.json\nci\n");
    assert_int_equal(run("touch -d '1 minute' %s/test/browser/package-lock.json && %s browser && cat "
                         "%s/test/browser/npm.log",
                         tree, call, tree),
                     0);
    assert_string_equal(
        output, "kith needs npm packages, fetching those of test/browser/package-lock.json\nci\nci\n");
}

static void test_a_failing_npm_is_a_failure(void **state) {
    (void)state;
    const char *tree = make_tree("registry", "exit 1");
    assert_int_equal(run("PATH=%s/registry:$PATH %s/scripts/setup.sh browser", testing_folder(), tree), 1);
    assert_non_null(strstr(
        output, "the npm packages could not be fetched: run  npm ci --ignore-scripts  in test/browser"));
}

/* Nothing is heard from a server that accepts and is silent: the script says so before its patience has ended twice. */
static int silent_port(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0 && bind(fd, (const struct sockaddr *)&at, n) == 0 && listen(fd, 16) == 0 &&
                getsockname(fd, (struct sockaddr *)&at, &n) == 0);
    return ntohs(at.sin_port);
}

static void assert_gives_up(const char *words, const char *wanted) {
    const time_t began = time(NULL);
    assert_int_equal(run("KITH_PATIENCE=2 %s", words), 1);
    const long seconds = (long)(time(NULL) - began);
    if (!strstr(output, wanted)) fail_msg("no '%s' in: %s", wanted, output);
    if (seconds > 15) fail_msg("it took %ld s", seconds); /* 2 on an idle machine */
}

static void test_a_silent_mirror_is_not_waited_for(void **state) {
    (void)state;
    const char *machine = make_machine("silent", "cmake", "0", "exit 1");
    char path[256], text[128], words[1024];
    snprintf(path, sizeof path, "%s/sources", machine);
    snprintf(text, sizeof text, "http://127.0.0.1:%d/debian/dists/bookworm/InRelease\n", silent_port());
    testing_write(path, text);
    snprintf(words, sizeof words, "PATH=%s:$PATH %s/scripts/setup.sh", machine, testing_source());
    assert_gives_up(words, "InRelease does not answer within 2 s: run  apt-get install");
    assert_int_not_equal(run("cat %s/apt.log", machine), 0);
}

static void test_a_silent_registry_is_not_waited_for(void **state) {
    (void)state;
    char words[1024];
    const char *tree = make_tree("quiet", "exec sleep 60");
    snprintf(words, sizeof words, "PATH=%s/quiet:$PATH %s/scripts/setup.sh browser", testing_folder(), tree);
    assert_gives_up(
        words, "npm's registry does not answer within 2 s: run  npm ci --ignore-scripts  in test/browser");
}

/* Several tests want a server: the second is told at once. */
static void test_a_silent_mirror_of_servers(void **state) {
    (void)state;
    char words[1024];
    if (geteuid() != 0) skip(); /* others are served by PGlite */
    snprintf(words, sizeof words,
             "KITH_POSTGRES=%s/postgres KITH_DEBIAN_MIRROR=http://127.0.0.1:%d/debian %s/scripts/postgres.sh "
             "start",
             testing_folder(), silent_port(), testing_source());
    const time_t began = time(NULL);
    assert_int_equal(run("KITH_PATIENCE=2 %s", words), 77);
    assert_non_null(strstr(output, "/debian does not answer within 2 s"));
    assert_int_equal(run("KITH_PATIENCE=100 %s", words), 77);
    assert_non_null(strstr(output, "/debian does not answer within 2 s"));
    const long seconds = (long)(time(NULL) - began);
    if (seconds > 15) fail_msg("it took %ld s", seconds); /* 2 on an idle machine */
}

/* npm's own retries take minutes. */
static void test_npm_tries_once(void **state) {
    (void)state;
    const char *tree = make_tree("tries", "echo \"$@\"; exit 1");
    assert_int_equal(run("PATH=%s/tries:$PATH sh -x %s/scripts/setup.sh browser 2>&1 | grep '+ npm ci'",
                         testing_folder(), tree),
                     0);
    assert_non_null(strstr(output, "--fetch-retries=0 --fetch-timeout=20000"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_missing_does_nothing),
        cmocka_unit_test(test_root_installs_what_is_missing),
        cmocka_unit_test(test_sudo_without_a_password_will_do),
        cmocka_unit_test(test_without_rights_one_line_says_what_to_do),
        cmocka_unit_test(test_a_check_installs_nothing),
        cmocka_unit_test(test_a_failing_apt_is_a_failure),
        cmocka_unit_test(test_other_systems_are_left_alone),
        cmocka_unit_test(test_npm_packages_are_fetched_once_for_a_lock_file),
        cmocka_unit_test(test_a_failing_npm_is_a_failure),
        cmocka_unit_test(test_a_silent_mirror_is_not_waited_for),
        cmocka_unit_test(test_a_silent_registry_is_not_waited_for),
        cmocka_unit_test(test_a_silent_mirror_of_servers),
        cmocka_unit_test(test_npm_tries_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
