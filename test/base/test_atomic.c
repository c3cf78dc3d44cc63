/* Atomic files: the old one until commit, temporaries, permissions, failures. */
#include "base/atomic.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/file.h"
#include "support/testing.h"

static const char *path_of(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", testing_folder(), name);
    return path;
}

static void assert_holds(const char *path, const char *wanted) {
    kith_error err = {0};
    char *text = NULL;
    size_t n = 0;
    assert_ok(ki_file_read(path, 1 << 20, &text, &n, &err), &err);
    assert_string_equal(text, wanted);
    ki_free(text);
}

static int n_files(void) {
    DIR *dir = opendir(testing_folder());
    assert_non_null(dir);
    int n = 0;
    for (struct dirent *file; (file = readdir(dir));) n += file->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void test_old_until_commit(void **state) {
    (void)state;
    kith_error err = {0};
    ki_atomic_file file = {0};
    assert_ok(ki_file_write(path_of("a"), "old", 3, &err), &err);
    assert_ok(ki_atomic_open(&file, path_of("a"), &err), &err);
    assert_ok(ki_atomic_write(&file, "new", 3, &err), &err);
    assert_holds(path_of("a"), "old");
    assert_ok(ki_atomic_commit(&file, &err), &err);
    ki_atomic_discard(&file);
    assert_holds(path_of("a"), "new");
    assert_int_equal(n_files(), 1);
}

static void test_discard_leaves_the_old(void **state) {
    (void)state;
    kith_error err = {0};
    ki_atomic_file file = {0};
    const int before = n_files();
    assert_ok(ki_atomic_open(&file, path_of("a"), &err), &err);
    assert_ok(ki_atomic_write(&file, "half", 4, &err), &err);
    assert_int_equal(n_files(), before + 1);
    ki_atomic_discard(&file);
    assert_int_equal(n_files(), before);
    assert_holds(path_of("a"), "new");
}

/* A file that an earlier process of the same number left behind is not in the way. */
static void test_left_over_temporary(void **state) {
    (void)state;
    kith_error err = {0};
    char left[300];
    snprintf(left, sizeof left, "%s.tmp-%ld-0", path_of("b"), (long)getpid());
    assert_ok(ki_file_write(left, "x", 1, &err), &err);
    assert_ok(ki_file_write(path_of("b"), "text", 4, &err), &err);
    assert_holds(path_of("b"), "text");
    unlink(left);
}

static void test_permissions_and_links(void **state) {
    (void)state;
    kith_error err = {0};
    struct stat info;
    assert_ok(ki_file_write(path_of("c"), "1", 1, &err), &err);
    assert_int_equal(chmod(path_of("c"), 0640), 0);
    char link[300];
    snprintf(link, sizeof link, "%s", path_of("link"));
    assert_int_equal(symlink("c", link), 0);
    assert_ok(ki_file_write(link, "2", 1, &err), &err);
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_holds(path_of("c"), "2");
    assert_int_equal(stat(path_of("c"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
}

static void test_relative_path(void **state) {
    (void)state;
    kith_error err = {0};
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(testing_folder()), 0);
    assert_ok(ki_file_write("plain", "text", 4, &err), &err);
    assert_holds("plain", "text");
    assert_int_equal(chdir(here), 0);
}

static void test_failures_say_why(void **state) {
    (void)state;
    char under_file[300], in_nowhere[300];
    kith_error err = {0};
    const int before = n_files();
    snprintf(under_file, sizeof under_file, "%s/x", path_of("a"));
    snprintf(in_nowhere, sizeof in_nowhere, "%s/x", path_of("nowhere"));
    const struct {
        const char *path, *why;
    } rows[] = {
        {under_file, "Not a directory"},      {in_nowhere, "No such file or directory"},
        {testing_folder(), "it is a folder"}, {"/dev/full", "No space left on device"},
        {"", "No such file or directory"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        assert_int_equal(ki_file_write(rows[i].path, "x", 1, &err), KITH_EIO);
        if (!strstr(err.message, rows[i].why) || !strstr(err.message, rows[i].path))
            fail_msg("found '%s', wanted '%s' of '%s'", err.message, rows[i].why, rows[i].path);
    }
    assert_int_equal(n_files(), before);
}

/* A device is written as it is: neither renamed over nor replaced. */
static void test_device(void **state) {
    (void)state;
    kith_error err = {0};
    char fifo[300], found[8] = "";
    struct stat info;
    snprintf(fifo, sizeof fifo, "%s", path_of("fifo"));
    assert_int_equal(mkfifo(fifo, 0600), 0);
    const int fd = open(fifo, O_RDWR | O_NONBLOCK);
    assert_true(fd >= 0);
    assert_ok(ki_file_write(fifo, "text", 4, &err), &err);
    assert_int_equal(read(fd, found, sizeof found - 1), 4);
    assert_string_equal(found, "text");
    close(fd);
    assert_int_equal(stat(fifo, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
}

static void test_allocation_failures(void **state) {
    (void)state;
    kith_error err = {0};
    const int before = n_files();
    kith_status status = KITH_ENOMEM;
    int n = 0;
    for (; status != KITH_OK && n < 20; n++) {
        ki_alloc_fail_after(n);
        status = ki_file_write(path_of("a"), "newer", 5, &err);
        ki_alloc_fail_after(-1);
        if (status == KITH_OK) break;
        assert_int_equal(status, KITH_ENOMEM);
        assert_holds(path_of("a"), "new");
        assert_int_equal(n_files(), before);
    }
    assert_int_equal(status, KITH_OK);
    assert_true(n >= 3);
    assert_holds(path_of("a"), "newer");
}

static void test_read_limit(void **state) {
    (void)state;
    kith_error err = {0};
    char *text = NULL;
    size_t n = 0;
    assert_int_equal(ki_file_read(path_of("a"), 4, &text, &n, &err), KITH_EFORMAT);
    assert_ok(ki_file_read(path_of("a"), 5, &text, &n, &err), &err);
    assert_int_equal(n, 5);
    ki_free(text);
    /* Not a file at all: refused before its size matters. */
    assert_int_equal(ki_file_read("/dev/zero", 100000, &text, &n, &err), KITH_EIO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_old_until_commit),
        cmocka_unit_test(test_discard_leaves_the_old),
        cmocka_unit_test(test_left_over_temporary),
        cmocka_unit_test(test_permissions_and_links),
        cmocka_unit_test(test_relative_path),
        cmocka_unit_test(test_failures_say_why),
        cmocka_unit_test(test_device),
        cmocka_unit_test(test_allocation_failures),
        cmocka_unit_test(test_read_limit),
    };
    return cmocka_run_group_tests_name("base/atomic", tests, NULL, NULL);
}
