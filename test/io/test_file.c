/* Files read whole, from an offset, through a pipe, and hashed; the names in a folder. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/file.h"
#include "kith/eval.h"
#include "support/testing.h"

enum { MOST = 5 << 19 }; /* more than two pieces of a hash, and than the first room for a pipe */

static unsigned char bytes[MOST];
static char path[512];

static const char *make_file(size_t n) {
    snprintf(path, sizeof path, "%s/file", testing_folder());
    for (size_t i = 0; i < n; i++) bytes[i] = (unsigned char)(i * 7 + i / 251);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
    return path;
}

static const size_t sizes[] = {0, 1, 65535, 65536, 1 << 20, (1 << 20) + 1, MOST};

static void test_whole(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(sizes); i++) {
        kith_error err = {0};
        char *found = NULL;
        size_t n = 0;
        make_file(sizes[i]);
        assert_ok(ki_file_read(path, sizes[i], &found, &n, &err), &err);
        assert_int_equal(n, sizes[i]);
        assert_memory_equal(found, bytes, n);
        assert_int_equal(found[n], '\0');
        ki_free(found);
        if (sizes[i] == 0) continue;
        assert_int_equal(ki_file_read(path, sizes[i] - 1, &found, &n, &err), KITH_EFORMAT);
        char wanted[64];
        snprintf(wanted, sizeof wanted, "has more than %zu bytes", sizes[i] - 1);
        assert_non_null(strstr(err.message, wanted));
    }
}

/* A child writes `n` bytes into a pipe that is then read by its name. */
static kith_status read_pipe(size_t n, size_t limit, char **ret, size_t *ret_n, kith_error *err) {
    int ends[2];
    char name[64];
    assert_int_equal(pipe(ends), 0);
    make_file(n);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        for (size_t done = 0; done < n;) {
            const ssize_t got = write(ends[1], bytes + done, n - done);
            if (got < 0) _exit(1);
            done += (size_t)got;
        }
        _exit(0);
    }
    close(ends[1]);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    const kith_status status = ki_file_read(name, limit, ret, ret_n, err);
    close(ends[0]);
    waitpid(child, NULL, 0);
    return status;
}

static void test_pipe(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(sizes); i++) {
        kith_error err = {0};
        char *found = NULL;
        size_t n = 0;
        assert_ok(read_pipe(sizes[i], sizes[i], &found, &n, &err), &err);
        assert_int_equal(n, sizes[i]);
        assert_memory_equal(found, bytes, n);
        assert_int_equal(found[n], '\0');
        ki_free(found);
        if (sizes[i] > 0) assert_int_equal(read_pipe(sizes[i], sizes[i] - 1, &found, &n, &err), KITH_EFORMAT);
    }
}

static void test_parts(void **state) {
    (void)state;
    kith_error err = {0};
    int fd = -1;
    long long n = 0;
    char part[100];
    make_file(1000);
    assert_ok(ki_file_open(path, KI_FILE_ONLY, &fd, &n, &err), &err);
    assert_int_equal(n, 1000);
    assert_ok(ki_file_read_at(fd, path, part, sizeof part, 900, &err), &err);
    assert_memory_equal(part, bytes + 900, sizeof part);
    assert_int_equal(ki_file_read_at(fd, path, part, sizeof part, 901, &err), KITH_EIO);
    assert_non_null(strstr(err.message, "it became shorter while it was read"));
    close(fd);
}

static void test_hash(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(sizes); i++) {
        kith_error err = {0};
        kith_hash hash = {0};
        char found[65], wanted[65];
        make_file(sizes[i]);
        kith_hash_add(&hash, bytes, sizes[i]);
        kith_hash_finish(&hash, wanted);
        assert_ok(kith_file_hash(path, found, &err), &err);
        assert_string_equal(found, wanted);
    }
    static const char empty[] =
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"; /* FIPS 180-4 */
    char found[65];
    kith_error err = {0};
    assert_ok(kith_file_hash(make_file(0), found, &err), &err);
    assert_string_equal(found, empty);
}

static void test_names(void **state) {
    (void)state;
    char folder[600], name[700];
    int n = 0, n_hidden = 0, why = -1;
    snprintf(folder, sizeof folder, "%s/names", testing_folder());
    assert_int_equal(mkdir(folder, 0700), 0);
    static const char *const names[] = {".hidden", "..two", "plain", "..."};
    for (size_t i = 0; i < N_ROWS(names); i++) {
        snprintf(name, sizeof name, "%s/%s", folder, names[i]);
        testing_write(name, "");
    }
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const char *found; (found = ki_dir_next(dir, &why)); n++) n_hidden += found[0] == '.';
    closedir(dir);
    assert_int_equal(why, 0);
    assert_int_equal(n, N_ROWS(names));
    assert_int_equal(n_hidden, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole), cmocka_unit_test(test_pipe),  cmocka_unit_test(test_parts),
        cmocka_unit_test(test_hash),  cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests_name("io/file", tests, NULL, testing_tear_down);
}
