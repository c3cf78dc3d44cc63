/* The table of notes, and notes as numbers and lists of paths. */
#include "search/notes.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "support/testing.h"

static void test_table(void **state) {
    (void)state;
    for (int i = 0; i < KI_N_NOTES; i++) {
        const ki_note_type *type = &ki_note_types[i];
        assert_non_null(type->name);
        assert_int_equal(ki_note_named(type->name), i); /* also: no name is there twice */
        const bool is_path = type->kind == KI_NOTE_IS_PATH || type->kind == KI_NOTE_IS_PATHS;
        if (type->follows && !is_path) fail_msg("%s follows files, and names none", type->name);
    }
    assert_int_equal(ki_note_named("mine"), KI_N_NOTES);
}

static kith_index *make(void) {
    kith_error err;
    kith_index *index = NULL;
    char path[1024];
    snprintf(path, sizeof path, "%s/i.kith", testing_folder());
    KITH_OPTIONS(kith_index_options, options);
    options.dim = 2;
    assert_ok(kith_index_create(path, &options, &index, &err), &err);
    return index;
}

static void test_kinds(void **state) {
    (void)state;
    kith_error err;
    ki_arena arena = {0};
    int64_t value = 7, n = 7;
    const char **paths = NULL;
    const char *const two[] = {"/srv/a b", "/srv/Möwen"};
    kith_index *index = make();
    assert_ok(ki_index_note_number(index, KI_NOTE_SIDE, &value, &err), &err);
    assert_int_equal(value, 0);
    assert_ok(ki_index_note_number_set(index, KI_NOTE_SIDE, 224, &err), &err);
    assert_ok(ki_index_note_number(index, KI_NOTE_SIDE, &value, &err), &err);
    assert_int_equal(value, 224);
    assert_ok(ki_index_note_set(index, KI_NOTE_SIDE, "wide", &err), &err);
    assert_int_equal(ki_index_note_number(index, KI_NOTE_SIDE, &value, &err), KITH_EFORMAT);
    assert_non_null(strstr(err.message, "the index notes 'wide' as 'side'"));
    assert_ok(ki_index_note_paths(index, KI_NOTE_SOURCES, &arena, &paths, &n, &err), &err);
    assert_int_equal(n, 0);
    for (int64_t k = 0; k <= 2; k++) {
        assert_ok(ki_index_note_paths_set(index, KI_NOTE_SOURCES, two, k, &err), &err);
        assert_ok(ki_index_note_paths(index, KI_NOTE_SOURCES, &arena, &paths, &n, &err), &err);
        assert_int_equal(n, k);
        for (int64_t i = 0; i < n; i++) assert_string_equal(paths[i], two[i]);
    }
    assert_string_equal(kith_index_note(index, "sources"), "/srv/a b\n/srv/Möwen");
    ki_arena_release(&arena);
    kith_index_free(index);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_kinds)};
    return cmocka_run_group_tests_name("search/notes", tests, NULL, testing_tear_down);
}
