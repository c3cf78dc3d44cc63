/* Trees of documents: lookup, order, long lists, no memory. */
#include "base/value.h"

#include <stdio.h>
#include <time.h>

#include "base/alloc.h"
#include "support/testing.h"

static void test_map_entries_are_found_by_key(void **state) {
    (void)state;
    ki_arena arena = {0};
    ki_value *map = ki_value_new(&arena, KI_VALUE_MAP, NULL);
    ki_value_append(map, "name", ki_value_new(&arena, KI_VALUE_SCALAR, "triplet"));
    ki_value_append(map, "margin", ki_value_new(&arena, KI_VALUE_SCALAR, "0.2"));
    assert_int_equal(map->n_items, 2);
    assert_string_equal(ki_value_get(map, "margin")->text, "0.2");
    assert_string_equal(ki_value_at(map, 0)->key, "name");
    assert_null(ki_value_get(map, "marg"));
    assert_null(ki_value_get(NULL, "name"));
    assert_null(ki_value_get(ki_value_get(map, "name"), "name"));
    ki_arena_release(&arena);
}

static void test_list_keeps_its_order(void **state) {
    (void)state;
    ki_arena arena = {0};
    ki_value *list = ki_value_new(&arena, KI_VALUE_LIST, NULL);
    static const char *const items[] = {"1", "2", "4", "8"};
    for (size_t i = 0; i < N_ROWS(items); i++)
        ki_value_append(list, NULL, ki_value_new(&arena, KI_VALUE_SCALAR, items[i]));
    for (size_t i = 0; i < N_ROWS(items); i++) assert_string_equal(ki_value_at(list, i)->text, items[i]);
    assert_null(ki_value_at(list, N_ROWS(items)));
    assert_null(ki_value_at(NULL, 0));
    ki_arena_release(&arena);
}

static void test_describe(void **state) {
    (void)state;
    ki_arena arena = {0};
    char buf[80];
    ki_value *list = ki_value_new(&arena, KI_VALUE_LIST, NULL);
    ki_value_append(list, NULL, ki_value_new(&arena, KI_VALUE_NULL, NULL));
    assert_string_equal(ki_value_describe(list, buf, sizeof buf), "a list of 1");
    assert_string_equal(ki_value_describe(list->first, buf, sizeof buf), "nothing");
    assert_string_equal(ki_value_describe(NULL, buf, sizeof buf), "nothing");
    assert_string_equal(ki_value_describe(ki_value_new(&arena, KI_VALUE_SCALAR, "abc"), buf, sizeof buf),
                        "'abc'");
    assert_string_equal(ki_value_describe(ki_value_new(&arena, KI_VALUE_MAP, NULL), buf, sizeof buf),
                        "a map of 0");
    ki_arena_release(&arena);
}

/* A hostile document with a long list must not take time in the square of its length: with a walk
 * to the end for each item this takes most of a minute, without one a few milliseconds. */
static void test_long_lists_are_built_in_linear_time(void **state) {
    (void)state;
    ki_arena arena = {0};
    ki_value *list = ki_value_new(&arena, KI_VALUE_LIST, NULL);
    const clock_t begin = clock();
    for (int i = 0; i < 300000; i++) {
        ki_value *item = ki_value_new(&arena, KI_VALUE_NULL, NULL);
        assert_non_null(item);
        ki_value_append(list, NULL, item);
    }
    const double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    ki_arena_release(&arena);
    if (seconds > 5) fail_msg("300000 items took %.1f s, wanted under 5", seconds);
}

static void test_no_memory_is_null(void **state) {
    (void)state;
    for (int64_t n = 0; n < 2; n++) {
        ki_arena arena = {0};
        char text[20000];
        snprintf(text, sizeof text, "%019999d", 1);
        ki_alloc_fail_after(n);
        ki_value *value = ki_value_new(&arena, KI_VALUE_SCALAR, text);
        ki_alloc_fail_after(-1);
        assert_null(value);
        ki_arena_release(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_entries_are_found_by_key),
        cmocka_unit_test(test_list_keeps_its_order),
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_long_lists_are_built_in_linear_time),
        cmocka_unit_test(test_no_memory_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
