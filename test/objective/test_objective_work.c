/* The stack of working memory by itself: pieces that do not overlap, marks, one block after a reset, and memory that is
 * given back. */
#include <malloc.h>
#include <string.h>

#include "base/alloc.h"
#include "objective/work.h"
#include "support/testing.h"

enum { PIECE = 1000, N_PIECES = 200 }; /* more than the first block holds */

static char *take(ki_work *work, size_t n) {
    char *ptr = NULL;
    kith_error err = {0};
    assert_ok(ki_work_take(work, n, 1, "a piece", &ptr, &err), &err);
    assert_non_null(ptr);
    assert_int_equal((uintptr_t)ptr % KI_ALIGN, 0);
    return ptr;
}

static void test_pieces_are_apart(void **state) {
    (void)state;
    ki_work work = {0};
    char *piece[N_PIECES];
    for (int i = 0; i < N_PIECES; i++) memset(piece[i] = take(&work, PIECE), i % 100, PIECE);
    for (int i = 0; i < N_PIECES; i++) {
        for (int k = 0; k < PIECE; k++) assert_int_equal(piece[i][k], i % 100);
    }
    assert_int_equal(work.peak_bytes, N_PIECES * ki_round_up(PIECE, KI_ALIGN));
    ki_work_release(&work);
}

static void test_a_mark_gives_back_what_came_after(void **state) {
    (void)state;
    ki_work work = {0};
    char *first = take(&work, PIECE);
    const ki_work_mark mark = ki_work_here(&work);
    char *second = take(&work, PIECE);
    for (int i = 0; i < N_PIECES; i++) take(&work, PIECE);
    ki_work_rewind(&work, mark);
    assert_ptr_equal(take(&work, PIECE), second);
    memset(second, 1, PIECE);
    assert_true(first + PIECE <= second);
    assert_int_equal(work.peak_bytes, (N_PIECES + 2) * ki_round_up(PIECE, KI_ALIGN));
    ki_work_release(&work);
}

/* A step of a size seen before takes no memory from the system. */
static void test_a_step_seen_before_allocates_nothing(void **state) {
    (void)state;
    ki_work work = {0};
    for (int step = 0; step < 4; step++) {
        ki_work_reset(&work);
        assert_int_equal(work.peak_bytes, 0);
        if (step > 1) ki_alloc_fail_after(0);
        for (int i = 0; i < N_PIECES; i++) take(&work, PIECE);
        ki_alloc_fail_after(-1);
    }
    ki_work_release(&work);
    assert_null(work.block);
    assert_int_equal(work.peak_bytes, 0);
    take(&work, PIECE); /* ready for use again */
    ki_work_release(&work);
}

static void test_what_cannot_be_had(void **state) {
    (void)state;
    static const size_t sizes[][2] = {
        {SIZE_MAX, 2}, {SIZE_MAX / 2 + 1, 2}, {SIZE_MAX, 1}, {SIZE_MAX / 2 + 1, 1}};
    ki_work work = {0};
    char *ptr = NULL;
    for (size_t i = 0; i < N_ROWS(sizes); i++) {
        kith_error err = {0};
        assert_int_equal(ki_work_take(&work, sizes[i][0], sizes[i][1], "a piece", &ptr, &err), KITH_ENOMEM);
        assert_non_null(strstr(err.message, "a piece"));
        assert_null(ptr);
    }
    for (int n = 0; n < 2; n++) { /* the block, its memory */
        kith_error err = {0};
        ki_alloc_fail_after(n);
        assert_int_equal(ki_work_take(&work, 1, 1, "a piece", &ptr, &err), KITH_ENOMEM);
        ki_alloc_fail_after(-1);
        assert_null(work.block);
    }
}

/* Many megabytes taken and released, and the heap holds no more of them than before. */
static void test_release_gives_back(void **state) {
    (void)state;
    size_t used = 0;
    for (int round = 0; round < 3; round++) {
        ki_work work = {0};
        for (int i = 0; i < 4 * N_PIECES; i++) take(&work, PIECE);
        ki_work_release(&work);
        const struct mallinfo2 now = mallinfo2();
        if (round == 0) used = now.uordblks + now.hblkhd;
        if (round > 0 && now.uordblks + now.hblkhd > used)
            fail_msg("%zu bytes in use after round %d, %zu after the first", now.uordblks + now.hblkhd, round,
                     used);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_are_apart), cmocka_unit_test(test_a_mark_gives_back_what_came_after),
        cmocka_unit_test(test_a_step_seen_before_allocates_nothing),
        cmocka_unit_test(test_what_cannot_be_had), cmocka_unit_test(test_release_gives_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
