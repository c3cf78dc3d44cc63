/* Event files: the bytes that an independent writer (test/golden/io/events.py) makes, and what happens when
 * there is no room for them. */
#include "io/events.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "io/file.h"
#include "kith/log.h"
#include "support/testing.h"

static void test_crc(void **state) {
    (void)state;
    /* RFC 3720, B.4: 32 bytes of 0, of 0xff, and rising. */
    unsigned char bytes[32] = {0};
    assert_int_equal(ki_crc32c(bytes, sizeof bytes), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(ki_crc32c(bytes, sizeof bytes), 0x62a8ab43);
    for (int i = 0; i < 32; i++) bytes[i] = (unsigned char)i;
    assert_int_equal(ki_crc32c(bytes, sizeof bytes), 0x46dd794e);
}

static void test_golden_bytes(void **state) {
    (void)state;
    char tag[256] = "eval/validation/";
    for (int i = 0; i < 20; i++) strcat(tag, "recall_at_");
    strcat(tag, "1");
    kith_error err = {0};
    ki_events *events = NULL;
    assert_ok(ki_events_open(testing_folder(), 1700000000.5, 300, &events, &err), &err);
    const ki_events_scalar one = {"loss/total", 0.75f},
                           three[] = {{"terms/binomial", -1e-3f}, {"lr", 1e-5f}, {tag, 61.25f}};
    assert_ok(ki_events_add(events, 1700000001.25, 301, &one, 1, &err), &err);
    assert_ok(ki_events_add(events, 1700000001.5, 302, NULL, 0, &err), &err); /* nothing to say */
    assert_ok(ki_events_add_text(events, 1700000001.75, 0, "recipe", "a: 1\n\nb: [2]", &err), &err);
    assert_ok(ki_events_add(events, 1700000002.0, (int64_t)1 << 40, three, 3, &err), &err);
    assert_non_null(strstr(ki_events_path(events), "/events.out.tfevents.1700000000."));
    char *found = NULL, *wanted = NULL;
    size_t n_found = 0, n_wanted = 0;
    assert_ok(ki_file_read(ki_events_path(events), 1 << 20, &found, &n_found, &err), &err);
    assert_ok(ki_file_read(KITH_SOURCE_DIR "/test/golden/io/events.bin", 1 << 20, &wanted, &n_wanted, &err),
              &err);
    assert_int_equal(n_found, n_wanted);
    for (size_t i = 0; i < n_found; i++) {
        if (found[i] != wanted[i])
            fail_msg("byte %zu is %02x, wanted %02x", i, found[i] & 0xff, wanted[i] & 0xff);
    }
    ki_free(found);
    ki_free(wanted);
    ki_events_close(events);
}

/* Two in the same second by the same process do not meet. */
static void test_names_differ(void **state) {
    (void)state;
    kith_error err = {0};
    ki_events *a = NULL, *b = NULL;
    assert_ok(ki_events_open(testing_folder(), 5, 0, &a, &err), &err);
    assert_ok(ki_events_open(testing_folder(), 5, 0, &b, &err), &err);
    assert_string_not_equal(ki_events_path(a), ki_events_path(b));
    ki_events_close(a);
    ki_events_close(b);
    char folder[300];
    snprintf(folder, sizeof folder, "%s/none", testing_folder());
    assert_int_equal(ki_events_open(folder, 5, 0, &a, &err), KITH_EIO);
    assert_non_null(strstr(err.message, "cannot write "));
    assert_non_null(strstr(err.message, "No such file"));
}

static int64_t size_of(const char *path) {
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return (int64_t)info.st_size;
}

/* The file may not grow past a limit, as on a full disk: whole records stay, nothing of the one that did
 * not fit. */
static void test_no_room(void **state) {
    (void)state;
    kith_error err = {0};
    ki_events *events = NULL;
    struct rlimit before, small;
    assert_ok(ki_events_open(testing_folder(), 7, 0, &events, &err), &err);
    const int64_t n = size_of(ki_events_path(events));
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = (rlim_t)(n + 20);
    setrlimit(RLIMIT_FSIZE, &small);
    const ki_events_scalar scalar = {"loss/total", 1};
    const kith_status status = ki_events_add(events, 7, 1, &scalar, 1, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, KITH_EIO);
    assert_int_equal(size_of(ki_events_path(events)), n);
    assert_ok(ki_events_add(events, 7, 1, &scalar, 1, &err), &err);
    assert_true(size_of(ki_events_path(events)) > n + 20);
    ki_events_close(events);
}

static void test_out_of_memory(void **state) {
    (void)state;
    int n_failures = 0;
    for (int64_t n = 0;; n++) {
        kith_error err = {0};
        kith_memory_stats before, after;
        ki_events *events = NULL;
        kith_memory_stats_get(&before);
        ki_alloc_fail_after(n);
        const kith_status status = ki_events_open(testing_folder(), 9, 0, &events, &err);
        ki_alloc_fail_after(-1);
        if (status == KITH_OK) {
            ki_events_close(events);
            break;
        }
        kith_memory_stats_get(&after);
        assert_int_equal(status, KITH_ENOMEM);
        assert_int_equal(before.live_bytes, after.live_bytes);
        n_failures++;
    }
    assert_int_equal(n_failures, 3);
}

/* Memory is taken once. */
static void test_adding_takes_no_memory(void **state) {
    (void)state;
    kith_error err = {0};
    ki_events *events = NULL;
    kith_memory_stats before, after;
    const ki_events_scalar scalars[] = {{"loss/total", 1}, {"terms/binomial", 2}, {"lr", 3}};
    assert_ok(ki_events_open(testing_folder(), 11, 0, &events, &err), &err);
    assert_ok(ki_events_add(events, 11, 1, scalars, 3, &err), &err);
    kith_memory_stats_get(&before);
    for (int i = 0; i < 100; i++) assert_ok(ki_events_add(events, 11, i, scalars, 3, &err), &err);
    kith_memory_stats_get(&after);
    assert_int_equal(before.n_allocations, after.n_allocations);
    ki_events_close(events);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc),           cmocka_unit_test(test_golden_bytes),
        cmocka_unit_test(test_names_differ),  cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_adding_takes_no_memory),
    };
    const int n_failed = cmocka_run_group_tests_name("io/events", tests, NULL, NULL);
    testing_clean_up();
    return n_failed;
}
