/* What the hook for commit messages and the check of CI let through, and what they refuse. */
#include <stdio.h>
#include <string.h>

#include "support/testing.h"

static char output[16384];

#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

static void assert_runs(int status) {
    if (status != 0) fail_msg("exit status %d: %s", status, output);
}

static void assert_says(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

static int ask_hook(const char *message) {
    char path[1024];
    snprintf(path, sizeof path, "%s/message", testing_folder());
    testing_write(path, message);
    return run("%s/scripts/hooks/commit-msg %s", testing_source(), path);
}

static void test_good_messages(void **state) {
    (void)state;
    static const char *const messages[] = {
        "io: read rows of a .npy file\n",
        "core, cli: hide passwords\n\nThe problem, then why this way.\n",
        "backend/cuda: sum in one pass\n",
        "test: 72 columns, of which one is an ä, and these words to fill the rows\n",
        "# comments of git are no part of it\nio: read rows\n# Please enter\n\nA body.\n",
        "io: read rows\n# ------------------------ >8 ------------------------\ndiff\n",
        "Merge branch 'main'\n",
        "Revert \"io: read rows\"\n\nThis reverts commit 1.\n",
        "fixup! io: read rows\n",
    };
    for (size_t i = 0; i < N_ROWS(messages); i++) {
        if (ask_hook(messages[i]) != 0) fail_msg("%s: %s", messages[i], output);
        assert_string_equal(output, "");
    }
}

static void test_bad_messages(void **state) {
    (void)state;
    static const struct {
        const char *message, *wanted;
    } rows[] = {
        {"", "the message is empty"},
        {"# only a comment\n", "the message is empty"},
        {"wip\n", "the first line is \"wip\"; wanted: \"area: imperative line\""},
        {"Read rows of a file\n", "wanted: \"area: imperative line\""},
        {"IO: read rows\n", "wanted: \"area: imperative line\""},
        {"io read rows\n", "wanted: \"area: imperative line\""},
        {"io:read rows\n", "wanted: \"area: imperative line\""},
        {"io:\n", "wanted: \"area: imperative line\""},
        {"io; core: read rows\n", "wanted: \"area: imperative line\""},
        {"io: read rows.\n", "ends with a full stop"},
        {"io: read rows\nof a file\n", "the second line is \"of a file\"; wanted: a blank line"},
        {"test: 73 columns, of which one is an ä, and these words to fill the rows!\n", "has 73 columns"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        if (ask_hook(rows[i].message) != 1) fail_msg("not refused: %s", rows[i].message);
        assert_says(rows[i].wanted);
    }
}

/* A repository with the scripts, its first commit older than the rule. */
static void make_repository(const char *name) {
    assert_runs(
        run("mkdir %s/%s && cd %s/%s && git init -q -b main . && git config user.name a && git config "
            "user.email b && "
            "git commit -q --allow-empty -m 'Old words' && mkdir -p scripts && cp "
            "%s/scripts/check-commits.sh scripts && "
            "git add -A && git commit -q -m 'scripts: check commits'",
            testing_folder(), name, testing_folder(), name, testing_source()));
}

static void test_commits(void **state) {
    (void)state;
    if (run("git --version") != 0) skip();
    make_repository("plain");
    const char *folder = testing_folder();
    assert_runs(run("%s/plain/scripts/check-commits.sh", folder));
    assert_string_equal(output, "");
    assert_runs(run("cd %s/plain && git commit -q --allow-empty -m 'io: read rows' -m 'Why.'", folder));
    assert_runs(run("%s/plain/scripts/check-commits.sh", folder));
    assert_runs(
        run("cd %s/plain && git commit -q --allow-empty -m 'New words' && git commit -q --allow-empty -m "
            "'io: more'",
            folder));
    assert_int_equal(run("%s/plain/scripts/check-commits.sh", folder), 1);
    assert_says("the first line is \"New words\"");
    assert_runs(
        run("cd %s/plain && git tag v1 && git commit -q --allow-empty -m 'io: after the tag'", folder));
    assert_runs(run("%s/plain/scripts/check-commits.sh", folder));
    assert_runs(run("cd %s/plain && git commit -q --allow-empty -m 'Last words'", folder));
    assert_int_equal(run("%s/plain/scripts/check-commits.sh", folder), 1);
    assert_null(strstr(output, "New words"));
}

static void test_without_history(void **state) {
    (void)state;
    if (run("git --version") != 0) skip();
    make_repository("whole");
    const char *folder = testing_folder();
    assert_runs(
        run("cd %s && git -C whole commit -q --allow-empty -m 'Bad words' && git clone -q --depth 1 "
            "file://%s/whole shallow && "
            "mkdir -p export/scripts && cp whole/scripts/check-commits.sh export/scripts",
            folder, folder));
    assert_runs(run("%s/shallow/scripts/check-commits.sh", folder));
    assert_string_equal(output, "a shallow clone: messages of commits are not looked at\n");
    assert_runs(run("%s/export/scripts/check-commits.sh", folder));
    assert_string_equal(output, "no repository here: messages of commits are not looked at\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_messages),
        cmocka_unit_test(test_bad_messages),
        cmocka_unit_test(test_commits),
        cmocka_unit_test(test_without_history),
    };
    return cmocka_run_group_tests_name("house/commits", tests, NULL, testing_tear_down);
}
