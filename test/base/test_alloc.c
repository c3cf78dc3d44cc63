/* Memory: alignment, counting, overflow, failure on demand. */
#include "base/alloc.h"

#include <string.h>

#include "kith/log.h"
#include "support/testing.h"

static kith_memory_stats stats(void) {
    kith_memory_stats now;
    kith_memory_stats_get(&now);
    return now;
}

static void test_blocks_are_aligned(void **state) {
    (void)state;
    for (size_t bytes = 0; bytes < 300; bytes++) {
        char *block = ki_alloc(bytes, 1);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % KI_ALIGN, 0);
        if (bytes) memset(block, 0xff, bytes); /* ASan sees a block that is too short */
        ki_free(block);
    }
}

static void test_zalloc_clears(void **state) {
    (void)state;
    char *dirty = ki_alloc(1000, 1);
    assert_non_null(dirty);
    memset(dirty, 0xff, 1000);
    ki_free(dirty);
    char *block = ki_zalloc(10, 100);
    assert_non_null(block);
    for (int i = 0; i < 1000; i++) assert_int_equal(block[i], 0);
    ki_free(block);
}

static void test_counts_live_and_peak(void **state) {
    (void)state;
    const kith_memory_stats before = stats();
    void *a = ki_alloc(10, 100), *b = ki_alloc(1, 24);
    assert_int_equal(stats().n_allocations - before.n_allocations, 2);
    assert_int_equal(stats().live_bytes - before.live_bytes, 1024);
    ki_free(a);
    ki_free(b);
    ki_free(NULL);
    assert_int_equal(stats().live_bytes, before.live_bytes);
    assert_true(stats().peak_bytes >= before.live_bytes + 1024);
    assert_int_equal(stats().n_allocations - before.n_allocations, 2);
}

static void test_overflow_is_refused(void **state) {
    (void)state;
    const kith_memory_stats before = stats();
    assert_null(ki_alloc(SIZE_MAX / 2, 3));
    assert_null(ki_alloc(SIZE_MAX, 1));
    assert_null(ki_alloc(SIZE_MAX - KI_ALIGN, 1));
    assert_null(ki_zalloc(SIZE_MAX / 4, 8));
    assert_null(ki_realloc(NULL, SIZE_MAX / 4, 8));
    assert_null(ki_strndup("text", SIZE_MAX));
    assert_int_equal(stats().n_allocations, before.n_allocations);
}

static void test_realloc_keeps_the_contents(void **state) {
    (void)state;
    char *block = ki_alloc(5, 1);
    memcpy(block, "kith", 5);
    block = ki_realloc(block, 5000, 1);
    assert_non_null(block);
    assert_string_equal(block, "kith");
    block = ki_realloc(block, 2, 1);
    assert_memory_equal(block, "ki", 2);
    ki_alloc_fail_after(0);
    assert_null(ki_realloc(block, 10000, 1));
    ki_alloc_fail_after(-1);
    assert_memory_equal(block, "ki", 2);
    ki_free(block);
}

static void test_strings(void **state) {
    (void)state;
    char *whole = ki_strdup("kith and kin"), *part = ki_strndup("kith and kin", 4);
    assert_string_equal(whole, "kith and kin");
    assert_string_equal(part, "kith");
    ki_free(whole);
    ki_free(part);
}

static void test_fails_on_demand(void **state) {
    (void)state;
    ki_alloc_fail_after(2);
    void *a = ki_alloc(1, 1), *b = ki_zalloc(1, 1);
    assert_false(ki_alloc_failed());
    void *c = ki_alloc(1, 1), *d = ki_strdup("x");
    const bool failed = ki_alloc_failed();
    ki_alloc_fail_after(-1);
    void *e = ki_alloc(1, 1);
    assert_non_null(a);
    assert_non_null(b);
    assert_null(c);
    assert_null(d);
    assert_true(failed);
    assert_non_null(e);
    assert_false(ki_alloc_failed());
    ki_free(a);
    ki_free(b);
    ki_free(e);
}

static void test_or_says_what_and_how_much(void **state) {
    (void)state;
    kith_error err = {0};
    double *block = NULL;
    ki_alloc_fail_after(0);
    const kith_status status = ki_zalloc_or(&block, 125, sizeof *block, "the weights", &err);
    ki_alloc_fail_after(-1);
    assert_int_equal(status, KITH_ENOMEM);
    assert_null(block);
    assert_string_equal(err.message, "no memory for the weights (1000 bytes)");
    assert_ok(ki_zalloc_or(&block, 125, sizeof *block, "the weights", &err), &err);
    assert_true(block[124] == 0);
    ki_free(block);
    assert_int_equal(ki_alloc_or(&block, SIZE_MAX, 2, "the weights", NULL), KITH_ENOMEM);
}

static void test_grow_doubles_and_survives_failure(void **state) {
    (void)state;
    kith_error err = {0};
    int *items = NULL;
    size_t capacity = 0;
    const kith_memory_stats before = stats();
    for (size_t i = 0; i < 1000; i++) {
        assert_ok(ki_grow(&items, &capacity, i + 1, sizeof *items, "items", &err), &err);
        items[i] = (int)i;
    }
    assert_in_range(stats().n_allocations - before.n_allocations, 1, 10);
    for (int i = 0; i < 1000; i++) assert_int_equal(items[i], i);
    const size_t held = capacity;
    ki_alloc_fail_after(0);
    assert_int_equal(ki_grow(&items, &capacity, capacity + 1, sizeof *items, "items", &err), KITH_ENOMEM);
    ki_alloc_fail_after(-1);
    assert_int_equal(capacity, held);
    assert_int_equal(items[999], 999);
    assert_int_equal(ki_grow(&items, &capacity, SIZE_MAX - 1, sizeof *items, "items", &err), KITH_ENOMEM);
    assert_int_equal(capacity, held);
    ki_free(items);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_are_aligned),
        cmocka_unit_test(test_zalloc_clears),
        cmocka_unit_test(test_counts_live_and_peak),
        cmocka_unit_test(test_overflow_is_refused),
        cmocka_unit_test(test_realloc_keeps_the_contents),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_fails_on_demand),
        cmocka_unit_test(test_or_says_what_and_how_much),
        cmocka_unit_test(test_grow_doubles_and_survives_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
