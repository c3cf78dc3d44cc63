/* Where the paths of a run lead after the run folder, its data or both have moved. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/run_paths.h"
#include "io/yaml.h"
#include "support/testing.h"

/* A path in the test's folder; four at a time. */
static const char *in_folder(const char *name) {
    static char path[4][4400];
    static int at;
    char *to = path[at++ % 4];
    static char root[4096];
    if (!root[0] && !realpath(testing_folder(), root)) fail_msg("no folder");
    snprintf(to, sizeof path[0], "%s/%s", root, name);
    return to;
}

static ki_run_paths beside(const char *name) {
    ki_run_paths paths;
    kith_error err = {0};
    memset(&paths, 0x55, sizeof paths);
    assert_ok(ki_run_paths_beside(in_folder(name), &paths, &err), &err);
    return paths;
}

static void assert_found(const ki_run_paths *paths, const char *path, const char *wanted) {
    ki_path found;
    kith_error err = {0};
    assert_ok(ki_run_paths_find(paths, path, &found, &err), &err);
    assert_string_equal(found.s, wanted);
}

/* home/run and home/data/list; the command was started in home. */
static void make_home(void) {
    kith_error err = {0};
    assert_int_equal(mkdir(in_folder("home"), 0700), 0);
    assert_int_equal(mkdir(in_folder("home/run"), 0700), 0);
    assert_int_equal(mkdir(in_folder("home/data"), 0700), 0);
    testing_write(in_folder("home/data/list"), "");
    assert_int_equal(chdir(in_folder("home")), 0);
    assert_ok(ki_run_paths_write("run", NULL, &err), &err);
}

static void test_nothing_has_moved(void **state) {
    (void)state;
    make_home();
    ki_run_paths paths = beside("home/run/recipe.yaml");
    assert_true(paths.is_there && paths.is_here);
    assert_string_equal(paths.now.s, in_folder("home/run"));
    assert_string_equal(paths.was.s, in_folder("home/run"));
    assert_string_equal(paths.from.s, in_folder("home"));
    assert_found(&paths, "data/list", "data/list");
    kith_error err = {0};
    assert_ok(ki_run_paths_beside("run/recipe.yaml", &paths, &err), &err);
    assert_true(paths.is_here);
    assert_int_equal(chdir("run"), 0); /* read from another folder: relative paths are made absolute */
    assert_ok(ki_run_paths_beside("recipe.yaml", &paths, &err), &err);
    assert_true(paths.is_there && !paths.is_here);
    assert_found(&paths, "data/list", in_folder("home/data/list"));
    assert_found(&paths, "data/none", in_folder("home/data/none"));
    assert_found(&paths, "/etc", "/etc");
}

/* The home is renamed: the data is found beside the run, as before. */
static void test_both_have_moved(void **state) {
    (void)state;
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rename(in_folder("home"), in_folder("house")), 0);
    const ki_run_paths paths = beside("house/run/recipe.yaml");
    assert_true(paths.is_there && !paths.is_here);
    assert_found(&paths, "data/list", in_folder("house/data/list"));
    assert_found(&paths, "./data/../data/list", in_folder("house/data/list"));
    assert_found(&paths, "data/list#17", in_folder("house/data/list#17"));
    assert_found(&paths, in_folder("home/data/list"), in_folder("house/data/list"));
    assert_found(&paths, "data/none", in_folder("home/data/none")); /* as it was, for the error */
    assert_found(&paths, "data/list#x", in_folder("home/data/list#x"));
}

/* The run alone: its data is where it was. */
static void test_the_run_has_moved(void **state) {
    (void)state;
    assert_int_equal(rename(in_folder("house"), in_folder("home")), 0);
    assert_int_equal(mkdir(in_folder("far"), 0700), 0);
    assert_int_equal(rename(in_folder("home/run"), in_folder("far/run")), 0);
    const ki_run_paths paths = beside("far/run/recipe.yaml");
    assert_true(paths.is_there && !paths.is_here);
    assert_found(&paths, "data/list", in_folder("home/data/list"));
    assert_found(&paths, in_folder("home/data/list"), in_folder("home/data/list"));
    /* A second list beside the moved run: a relative path goes along with the run, an absolute one stays. */
    assert_int_equal(mkdir(in_folder("far/data"), 0700), 0);
    testing_write(in_folder("far/data/list"), "");
    assert_found(&paths, "data/list", in_folder("far/data/list"));
    assert_found(&paths, in_folder("home/data/list"), in_folder("home/data/list"));
    /* A run made from this one has paths relative to the same folder. */
    kith_error err = {0};
    assert_int_equal(mkdir(in_folder("far/next"), 0700), 0);
    assert_ok(ki_run_paths_write(in_folder("far/next"), &paths, &err), &err);
    assert_string_equal(beside("far/next/recipe.yaml").from.s, in_folder("home"));
}

static void assert_resolved(const ki_run_paths *paths, const char *text, const char *wanted) {
    kith_error err = {0};
    ki_arena arena = {0};
    ki_value *map = NULL;
    char yaml[9000];
    snprintf(yaml, sizeof yaml, "root: '%s'\n", text);
    assert_ok(ki_yaml_parse(yaml, strlen(yaml), "a recipe", &arena, &map, &err), &err);
    assert_ok(ki_run_paths_resolve(paths, &arena, map, "root", &err), &err);
    assert_string_equal(ki_value_get(map, "root")->text, wanted);
    ki_arena_release(&arena);
}

/* Several names in one text are found one by one, unless a file is called like the text. */
static void test_several_in_one_text(void **state) {
    (void)state;
    char wanted[9000];
    kith_error err = {0};
    ki_path all;
    assert_int_equal(chdir("/"), 0);
    const ki_run_paths paths = beside("far/run/recipe.yaml");
    testing_write(in_folder("home/data/b.tar"), "");
    snprintf(wanted, sizeof wanted, "%s::%s", in_folder("far/data/list"), in_folder("home/data/b.tar"));
    assert_resolved(&paths, "data/list::data/b.tar", wanted);
    assert_resolved(&paths, "data/list::::data/b.tar::", wanted);
    snprintf(wanted, sizeof wanted, "%s::%s", in_folder("home/data/c-{0..1}.tar"),
             in_folder("home/data/b.tar"));
    assert_resolved(&paths, "data/c-{0..1}.tar::data/b.tar", wanted);
    testing_write(in_folder("home/data/b.tar::c.tar"), "");
    assert_resolved(&paths, "data/b.tar::c.tar", in_folder("home/data/b.tar::c.tar"));
    snprintf(wanted, sizeof wanted, "%s::%s", in_folder("home/data/b.tar"), "/etc");
    assert_int_equal(chdir(in_folder("home/data")), 0);
    assert_ok(ki_paths_absolute("b.tar::/etc", &all, &err), &err);
    assert_string_equal(all.s, wanted);
    assert_ok(ki_paths_absolute("b.tar::c.tar", &all, &err), &err);
    assert_string_equal(all.s, in_folder("home/data/b.tar::c.tar"));
    assert_int_equal(chdir("/"), 0);
}

static void test_no_paths_and_wrong_paths(void **state) {
    (void)state;
    static const char *const wrong[] = {"{\"folder\": \"/a\"}",
                                        "{\"relative_to\": \"/a\"}",
                                        "{\"folder\": \"a\", \"relative_to\": \"/b\"}",
                                        "{\"folder\": \"/a\", \"relative_to\": \"b\"}",
                                        "{\"folder\": [\"/a\"], \"relative_to\": \"/b\"}",
                                        "[\"/a\", \"/b\"]"};
    assert_int_equal(mkdir(in_folder("other"), 0700), 0);
    const ki_run_paths none = beside("other/recipe.yaml");
    assert_false(none.is_there);
    assert_found(&none, "some/where", "some/where");
    for (size_t i = 0; i < N_ROWS(wrong); i++) {
        ki_run_paths paths;
        kith_error err = {0};
        testing_write(in_folder("other/paths.json"), wrong[i]);
        assert_int_equal(ki_run_paths_beside(in_folder("other/recipe.yaml"), &paths, &err), KITH_EFORMAT);
        assert_non_null(strstr(err.message, "wanted the absolute paths \"folder\" and \"relative_to\""));
        assert_false(paths.is_there);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_has_moved),        cmocka_unit_test(test_both_have_moved),
        cmocka_unit_test(test_the_run_has_moved),        cmocka_unit_test(test_several_in_one_text),
        cmocka_unit_test(test_no_paths_and_wrong_paths),
    };
    return cmocka_run_group_tests_name("io/run paths", tests, NULL, testing_tear_down);
}
