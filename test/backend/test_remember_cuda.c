/* Remembered choices: they come back, from the file too; a file that is foreign, broken or cut is ignored with a
 * line; what another process wrote meanwhile is kept; a folder that cannot be written costs nothing but that. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/cuda/conv/remember.h"
#include "base/alloc.h"
#include "kith/log.h"
#include "support/testing.h"

static char folder[64], path[160];
static int n_lines;

static void count_line(void *user, kith_log_level level, const char *line) {
    (void)user, (void)level, (void)line;
    n_lines++;
}

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/kith-choices.XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/deep/cuda-Card-9-x.txt", folder);
    kith_log_set(count_line, NULL, KITH_LOG_DEBUG);
    n_lines = 0;
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    char deep[96];
    kith_log_set(NULL, NULL, KITH_LOG_WARNING);
    (void)remove(path);
    snprintf(deep, sizeof deep, "%s/deep", folder);
    (void)rmdir(deep);
    return rmdir(folder);
}

static ki_remembered *open_choices(const char *made_for) {
    ki_remembered *choices = NULL;
    kith_error err;
    char deep[96];
    snprintf(deep, sizeof deep, "%s/deep", folder);
    assert_ok(ki_remembered_open(deep, made_for, &choices, &err), &err);
    return choices;
}

static void set(ki_remembered *choices, const char *key, const char *value) {
    kith_error err;
    assert_ok(ki_remembered_set(choices, key, value, &err), &err);
}

static void test_choices_come_back(void **state) {
    (void)state;
    ki_remembered *choices = open_choices("Card 9, x");
    assert_null(ki_remembered_get(choices, "a b"));
    set(choices, "a b", "one");
    set(choices, "c", "two");
    set(choices, "c", "three");
    assert_string_equal(ki_remembered_get(choices, "c"), "three");
    ki_remembered_free(choices);
    choices = open_choices("Card 9, x");
    assert_string_equal(ki_remembered_get(choices, "a b"), "one");
    assert_string_equal(ki_remembered_get(choices, "c"), "three");
    ki_remembered_free(choices);
    assert_int_equal(n_lines, 0);
}

static void test_what_others_wrote_is_kept(void **state) {
    (void)state;
    ki_remembered *first = open_choices("Card 9, x"), *second = open_choices("Card 9, x");
    set(first, "a", "one");
    set(second, "b", "two");
    ki_remembered_free(first);
    ki_remembered_free(second);
    ki_remembered *both = open_choices("Card 9, x");
    assert_string_equal(ki_remembered_get(both, "a"), "one");
    assert_string_equal(ki_remembered_get(both, "b"), "two");
    ki_remembered_free(both);
}

static void test_a_bad_file_is_ignored(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        "something else\n",
        "kith choices 1\nCard 8, x\na\tone\nend 1\n",
        "kith choices 1\nCard 9, x\na\tone\n",
        "kith choices 1\nCard 9, x\na\tone\nend 2\n",
        "kith choices 1\nCard 9, x\na\tone\nend 1",
    };
    ki_remembered *choices = open_choices("Card 9, x");
    assert_true(ki_remembered_is_kept(choices));
    set(choices, "z", "there");
    ki_remembered_free(choices); /* makes the folder */
    for (size_t i = 0; i < N_ROWS(bad); i++) {
        testing_write(path, bad[i]);
        n_lines = 0;
        choices = open_choices("Card 9, x");
        assert_int_equal(n_lines, 1);
        assert_null(ki_remembered_get(choices, "a"));
        set(choices, "b", "new");
        ki_remembered_free(choices);
        choices = open_choices("Card 9, x");
        assert_string_equal(ki_remembered_get(choices, "b"), "new");
        ki_remembered_free(choices);
    }
}

static void test_what_others_saved_meanwhile(void **state) {
    (void)state;
    ki_remembered *ours = open_choices("Card 9, x"), *theirs = open_choices("Card 9, x");
    set(ours, "b", "ours");
    set(theirs, "a", "one");
    set(theirs, "b", "theirs");
    ki_remembered_save(theirs);
    assert_null(ki_remembered_get(ours, "a"));
    ki_remembered_refresh(ours);
    assert_string_equal(ki_remembered_get(ours, "a"), "one");
    assert_string_equal(ki_remembered_get(ours, "b"), "ours");
    ki_remembered_free(ours);
    ki_remembered_free(theirs);
}

/* What a killed process left is removed once nobody can be writing it; a neighbour's is not; and a link that somebody
 * put where the temporary file will be is not followed. */
static void test_temporary_files(void **state) {
    (void)state;
    char old[256], young[256], links[2][256], victim[256];
    snprintf(old, sizeof old, "%s.tmp-99999-0", path);
    snprintf(young, sizeof young, "%s.tmp-99998-0", path);
    snprintf(victim, sizeof victim, "%s/victim", folder);
    ki_remembered *choices = open_choices("Card 9, x");
    set(choices, "a", "one");
    ki_remembered_save(choices);
    testing_write(old, "half");
    testing_write(young, "half");
    testing_write(victim, "untouched");
    assert_int_equal(utimensat(AT_FDCWD, old, (struct timespec[2]){{.tv_sec = 1}, {.tv_sec = 1}}, 0), 0);
    snprintf(links[0], sizeof links[0], "%s.%ld", path, (long)getpid());
    snprintf(links[1], sizeof links[1], "%s.tmp-%ld-0", path, (long)getpid());
    for (int i = 0; i < 2; i++) assert_int_equal(symlink(victim, links[i]), 0);
    set(choices, "b", "two");
    ki_remembered_free(choices);
    assert_int_not_equal(access(old, F_OK), 0);
    assert_int_equal(access(young, F_OK), 0);
    char *text = testing_read(victim);
    assert_string_equal(text, "untouched");
    free(text);
    struct stat info;
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISREG(info.st_mode));
    choices = open_choices("Card 9, x");
    assert_string_equal(ki_remembered_get(choices, "b"), "two");
    ki_remembered_free(choices);
    unlink(young);
    unlink(victim);
    for (int i = 0; i < 2; i++) unlink(links[i]);
}

static void test_a_folder_that_cannot_be_written(void **state) {
    (void)state;
    ki_remembered *choices = NULL;
    kith_error err;
    assert_ok(ki_remembered_open("/dev/null/kith", "Card", &choices, &err), &err);
    set(choices, "a", "one");
    ki_remembered_save(choices);
    assert_true(n_lines > 0);
    assert_false(ki_remembered_is_kept(choices));
    assert_string_equal(ki_remembered_get(choices, "a"), "one");
    ki_remembered_free(choices);
}

static void test_two_lines_are_refused(void **state) {
    (void)state;
    kith_error err;
    ki_remembered *choices = open_choices("Card 9, x");
    assert_int_equal(ki_remembered_set(choices, "a\nb", "one", &err), KITH_EINTERNAL);
    assert_int_equal(ki_remembered_set(choices, "a", "one\ttwo", &err), KITH_EINTERNAL);
    ki_remembered_free(choices);
}

static void test_out_of_memory(void **state) {
    (void)state;
    ki_remembered *choices = open_choices("Card 9, x");
    set(choices, "a", "one");
    ki_remembered_free(choices);
    for (int n = 0; n < 40; n++) {
        kith_error err;
        ki_remembered *again = NULL;
        char deep[96];
        snprintf(deep, sizeof deep, "%s/deep", folder);
        ki_alloc_fail_after(n);
        kith_status status = ki_remembered_open(deep, "Card 9, x", &again, &err);
        if (status == KITH_OK) status = ki_remembered_set(again, "b", "two", &err);
        ki_alloc_fail_after(-1);
        ki_remembered_free(again);
        if (status == KITH_OK && n > 30) return;
        assert_true(status == KITH_OK || status == KITH_ENOMEM);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_choices_come_back, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_what_others_wrote_is_kept, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_a_bad_file_is_ignored, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_what_others_saved_meanwhile, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_temporary_files, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_a_folder_that_cannot_be_written, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_two_lines_are_refused, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_out_of_memory, make_folder, remove_folder),
    };
    return cmocka_run_group_tests_name("backend/cuda choices", tests, NULL, NULL);
}
