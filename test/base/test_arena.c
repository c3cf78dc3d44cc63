/* Arenas: pieces apart, all given back, no memory. */
#include "base/arena.h"

#include <string.h>

#include "base/alloc.h"
#include "kith/log.h"
#include "support/testing.h"

static uint64_t live_bytes(void) {
    kith_memory_stats now;
    kith_memory_stats_get(&now);
    return now.live_bytes;
}

/* Sizes around the block size, each filled whole: pieces that overlap would be overwritten. */
static void test_pieces_do_not_overlap(void **state) {
    (void)state;
    ki_arena arena = {0};
    static const size_t sizes[] = {1, 63, 64, 65, 0, 1000, 16383, 16384, 16385, 100000, 3};
    char *piece[100];
    size_t bytes[100];
    for (size_t i = 0; i < N_ROWS(piece); i++) {
        bytes[i] = sizes[i % N_ROWS(sizes)];
        piece[i] = ki_arena_alloc(&arena, bytes[i], 1);
        assert_non_null(piece[i]);
        assert_int_equal((uintptr_t)piece[i] % KI_ALIGN, 0);
        for (size_t k = 0; k < bytes[i]; k++) assert_int_equal(piece[i][k], 0);
        memset(piece[i], (int)i + 1, bytes[i]);
    }
    for (size_t i = 0; i < N_ROWS(piece); i++) {
        for (size_t k = 0; k < bytes[i]; k++) assert_int_equal(piece[i][k], (char)(i + 1));
    }
    ki_arena_release(&arena);
}

static void test_release_gives_all_back(void **state) {
    (void)state;
    const uint64_t before = live_bytes();
    ki_arena arena = {0};
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 1000; i++) assert_non_null(ki_arena_alloc(&arena, 100, 1));
        assert_true(live_bytes() - before >= 100000);
        ki_arena_release(&arena);
        assert_int_equal(live_bytes(), before);
    }
    ki_arena_release(&arena);
}

static void test_strings(void **state) {
    (void)state;
    ki_arena arena = {0};
    assert_string_equal(ki_arena_strdup(&arena, "kith"), "kith");
    assert_string_equal(ki_arena_strndup(&arena, "kith", 2), "ki");
    assert_string_equal(ki_arena_printf(&arena, "%s-%d", "conv", 3), "conv-3");
    char *longer = ki_arena_printf(&arena, "%040000d", 7);
    assert_int_equal(strlen(longer), 40000);
    ki_arena_release(&arena);
}

static void test_no_memory_is_null(void **state) {
    (void)state;
    ki_arena arena = {0};
    assert_null(ki_arena_alloc(&arena, SIZE_MAX / 2, 3));
    assert_null(ki_arena_alloc(&arena, SIZE_MAX, 1));
    ki_alloc_fail_after(0);
    void *piece = ki_arena_alloc(&arena, 1, 1);
    char *text = ki_arena_strdup(&arena, "kith"), *line = ki_arena_printf(&arena, "%d", 1);
    ki_alloc_fail_after(-1);
    assert_null(piece);
    assert_null(text);
    assert_null(line);
    assert_non_null(ki_arena_alloc(&arena, 1, 1));
    ki_arena_release(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_do_not_overlap),
        cmocka_unit_test(test_release_gives_all_back),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_no_memory_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
