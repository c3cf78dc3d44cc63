#include "core/value.h"

#include <string.h>

#include "support/testing.h"

static void test_append_keeps_order(void **state) {
    (void)state;
    ki_arena arena = {0};
    ki_value *map = ki_value_new(&arena, KI_VALUE_MAP, NULL);
    static const char *const keys[] = {"a", "b", "c"};
    for (size_t i = 0; i < N_ROWS(keys); i++)
        ki_value_append(map, keys[i], ki_value_new(&arena, KI_VALUE_SCALAR, keys[i]));
    assert_int_equal(map->n_items, 3);
    for (size_t i = 0; i < N_ROWS(keys); i++) {
        assert_string_equal(ki_value_at(map, i)->text, keys[i]);
        assert_string_equal(ki_value_get(map, keys[i])->text, keys[i]);
    }
    assert_null(ki_value_at(map, 3));
    assert_null(ki_value_get(map, "d"));
    ki_arena_release(&arena);
}

/* 300,000 items: minutes when appending walks the list. */
static void test_append_does_not_walk(void **state) {
    (void)state;
    ki_arena arena = {0};
    ki_value *list = ki_value_new(&arena, KI_VALUE_LIST, NULL);
    for (int i = 0; i < 300000; i++) ki_value_append(list, NULL, ki_value_new(&arena, KI_VALUE_NULL, NULL));
    assert_int_equal(list->n_items, 300000);
    ki_arena_release(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append_keeps_order),
        cmocka_unit_test(test_append_does_not_walk),
    };
    return cmocka_run_group_tests_name("core/value", tests, NULL, NULL);
}
