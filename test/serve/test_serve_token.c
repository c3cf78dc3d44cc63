/* The token file, and what a header gives access to. */
#include <endian.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "serve/http/token.h"
#include "support/testing.h"

static const char good[] =
    "# tokens\n\n  token aaaaaaaaaaaaaaaaaaaaaaaa\r\nread-only\tbbbbbbbbbbbbbbbbbbbbbbbb";

static void test_access(void **state) {
    (void)state;
    kith_error err;
    ki_tokens t;
    assert_ok(ki_tokens_parse(good, "f", &t, &err), &err);
    assert_int_equal(t.n, 2);
    static const struct {
        const char *header;
        ki_access access;
    } row[] = {
        {NULL, KI_ACCESS_OPEN},
        {"", KI_ACCESS_OPEN},
        {"Bearer aaaaaaaaaaaaaaaaaaaaaaaa", KI_ACCESS_ALL},
        {"bearer aaaaaaaaaaaaaaaaaaaaaaaa", KI_ACCESS_ALL},
        {"Bearer bbbbbbbbbbbbbbbbbbbbbbbb", KI_ACCESS_READ},
        {"Bearer aaaaaaaaaaaaaaaaaaaaaaab", KI_ACCESS_OPEN},
        {"Bearer aaaaaaaaaaaaaaaaaaaaaaa", KI_ACCESS_OPEN},
        {"Bearer aaaaaaaaaaaaaaaaaaaaaaaaa", KI_ACCESS_OPEN},
        {"Bearer ", KI_ACCESS_OPEN},
        {"Basic aaaaaaaaaaaaaaaaaaaaaaaa", KI_ACCESS_OPEN},
        {"aaaaaaaaaaaaaaaaaaaaaaaa", KI_ACCESS_OPEN},
    };
    for (size_t i = 0; i < N_ROWS(row); i++) {
        if (ki_tokens_check(&t, row[i].header) != row[i].access) fail_msg("'%s'", row[i].header);
    }
}

/* A write token has a name, which is not a secret. */
static void test_write_tokens(void **state) {
    (void)state;
    kith_error err;
    ki_tokens t;
    char who[KI_MOST_WHO + 1];
    assert_ok(ki_tokens_parse(
                  "write anna aaaaaaaaaaaaaaaaaaaaaaaa\nwrite \xc3\xb6zg\xc3\xbcr\tbbbbbbbbbbbbbbbbbbbbbbbb\n"
                  "token cccccccccccccccccccccccc\n",
                  "f", &t, &err),
              &err);
    assert_int_equal(ki_tokens_find(&t, "Bearer aaaaaaaaaaaaaaaaaaaaaaaa", who), KI_ACCESS_WRITE);
    assert_string_equal(who, "anna");
    assert_int_equal(ki_tokens_find(&t, "Bearer bbbbbbbbbbbbbbbbbbbbbbbb", who), KI_ACCESS_WRITE);
    assert_string_equal(who, "\xc3\xb6zg\xc3\xbcr");
    assert_int_equal(ki_tokens_find(&t, "Bearer cccccccccccccccccccccccc", who), KI_ACCESS_ALL);
    assert_string_equal(who, "");
    assert_int_equal(ki_tokens_find(&t, "Bearer anna", who), KI_ACCESS_OPEN);
    static const char *const bad[] = {"write aaaaaaaaaaaaaaaaaaaaaaaa\n", "write\n", "write anna short\n",
                                      "write \xff aaaaaaaaaaaaaaaaaaaaaaaa\n",
                                      "write a b aaaaaaaaaaaaaaaaaaaaaaaa\n"};
    for (size_t i = 0; i < N_ROWS(bad); i++) {
        if (ki_tokens_parse(bad[i], "f", &t, &err) != KITH_EFORMAT) fail_msg("'%s' was read", bad[i]);
    }
}

static void test_bad_files(void **state) {
    (void)state;
    kith_error err;
    ki_tokens t;
    static const char *const bad[] = {"",
                                      "# nothing\n",
                                      "token\n",
                                      "token short\n",
                                      "admin aaaaaaaaaaaaaaaaaaaaaaaa\n",
                                      "aaaaaaaaaaaaaaaaaaaaaaaa\n",
                                      "token aaaaaaaaaaaa aaaaaaaaaaaa\n"};
    for (size_t i = 0; i < N_ROWS(bad); i++) {
        if (ki_tokens_parse(bad[i], "f", &t, &err) != KITH_EFORMAT) fail_msg("'%s' was read", bad[i]);
    }
    /* The line that is wrong is named, and no secret is. */
    assert_int_equal(ki_tokens_parse("token aaaaaaaaaaaaaaaaaaaaaaaa\ntoken seeecret\n", "f", &t, &err),
                     KITH_EFORMAT);
    assert_non_null(strstr(err.message, "line 2"));
    assert_null(strstr(err.message, "seeecret"));
}

static void test_a_file_that_others_can_read_or_write_is_refused(void **state) {
    (void)state;
    kith_error err;
    ki_tokens t;
    char path[600];
    snprintf(path, sizeof path, "%s/tokens", testing_folder());
    testing_write(path, good);
    static const mode_t open_modes[] = {0644, 0640, 0620, 0610, 0604, 0602, 0660, 0606};
    for (size_t i = 0; i < N_ROWS(open_modes); i++) {
        assert_int_equal(chmod(path, open_modes[i]), 0);
        if (ki_tokens_read(path, &t, &err) != KITH_EINVAL)
            fail_msg("mode %03o is taken", (unsigned)open_modes[i]);
        if (!strstr(err.hint, "chmod 600 ")) fail_msg("hint '%s'", err.hint);
    }
    assert_int_equal(chmod(path, 0400), 0);
    assert_ok(ki_tokens_read(path, &t, &err), &err);
    assert_int_equal(chmod(path, 0600), 0);
    assert_ok(ki_tokens_read(path, &t, &err), &err);
    assert_int_equal(t.n, 2);
    snprintf(path, sizeof path, "%s/none", testing_folder());
    assert_int_equal(ki_tokens_read(path, &t, &err), KITH_EIO);
    assert_int_equal(ki_tokens_read(testing_folder(), &t, &err), KITH_EIO);
}

/* The list that systemd gives a credential: its owner, and the user that the service runs as. The mode then looks like 0440. */
static void test_a_list_of_who_may_read(void **state) {
    (void)state;
    kith_error err;
    ki_tokens t;
    char path[600];
    struct {
        struct posix_acl_xattr_header head;
        struct posix_acl_xattr_entry entry[5];
    } list = {{htole32(POSIX_ACL_XATTR_VERSION)},
              {{htole16(ACL_USER_OBJ), htole16(4), htole32((uint32_t)-1)},
               {htole16(ACL_USER), htole16(4), htole32(geteuid())},
               {htole16(ACL_GROUP_OBJ), 0, htole32((uint32_t)-1)},
               {htole16(ACL_MASK), htole16(4), htole32((uint32_t)-1)},
               {htole16(ACL_OTHER), 0, htole32((uint32_t)-1)}}};
    snprintf(path, sizeof path, "%s/listed", testing_folder());
    testing_write(path, good);
    assert_int_equal(chmod(path, 0400), 0);
    if (setxattr(path, "system.posix_acl_access", &list, sizeof list, 0) != 0) skip();
    assert_ok(ki_tokens_read(path, &t, &err), &err);
    list.entry[1].e_id = htole32(geteuid() + 1);
    assert_int_equal(setxattr(path, "system.posix_acl_access", &list, sizeof list, 0), 0);
    assert_int_equal(ki_tokens_read(path, &t, &err), KITH_EINVAL);
    list.entry[1].e_id = htole32(geteuid());
    list.entry[2].e_perm = htole16(4);
    assert_int_equal(setxattr(path, "system.posix_acl_access", &list, sizeof list, 0), 0);
    assert_int_equal(ki_tokens_read(path, &t, &err), KITH_EINVAL);
}

static double seconds_of(const ki_tokens *t, const char *header) {
    enum { N = 2000 };
    struct timespec a, b;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    for (int i = 0; i < N; i++) ki_tokens_check(t, header);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    return ((double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec)) / N;
}

/* A token that is wrong in its last letter takes as long as one that is wrong in its first. Both are timed in turns, and the best of
 * each counts: other work on the machine makes single turns longer. */
static void test_time_says_nothing(void **state) {
    (void)state;
    kith_error err;
    ki_tokens t;
    double first = 1e9, last = 1e9;
    assert_ok(ki_tokens_parse(good, "f", &t, &err), &err);
    for (int turn = 0; turn < 100; turn++) {
        first = fmin(first, seconds_of(&t, "Bearer xaaaaaaaaaaaaaaaaaaaaaaa"));
        last = fmin(last, seconds_of(&t, "Bearer aaaaaaaaaaaaaaaaaaaaaaax"));
    }
    if (!(first < 1.5 * last && last < 1.5 * first)) fail_msg("%g s and %g s", first, last);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_access),
        cmocka_unit_test(test_write_tokens),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_a_file_that_others_can_read_or_write_is_refused),
        cmocka_unit_test(test_a_list_of_who_may_read),
        cmocka_unit_test(test_time_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
