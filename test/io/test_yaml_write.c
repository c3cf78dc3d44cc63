/* What is written reads back as the same tree: the corpus of the reader, and values made to be awkward. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "io/yaml.h"
#include "support/testing.h"

static ki_arena arena;

static int release(void **state) {
    (void)state;
    ki_arena_release(&arena);
    return 0;
}

static bool same(const ki_value *a, const ki_value *b) {
    if (a->kind != b->kind || a->n_items != b->n_items) return false;
    if (a->kind == KI_VALUE_SCALAR && strcmp(a->text, b->text) != 0) return false;
    const ki_value *x = a->first, *y = b->first;
    for (; x && y; x = x->next, y = y->next) {
        if ((a->kind == KI_VALUE_MAP && strcmp(x->key, y->key) != 0) || !same(x, y)) return false;
    }
    return !x && !y;
}

/* Write, read, compare; the text of the second writing must be the first's. */
static void check(const ki_value *root, const char *what) {
    kith_error err;
    char *once = NULL, *twice = NULL;
    ki_value *back = NULL;
    assert_ok(ki_yaml_text(root, &once, &err), &err);
    const kith_status status = ki_yaml_parse(once, strlen(once), what, &arena, &back, &err);
    if (status != KITH_OK) fail_msg("%s: %s in\n%s", what, err.message, once);
    if (!same(root, back)) fail_msg("%s reads back otherwise from\n%s", what, once);
    assert_ok(ki_yaml_text(back, &twice, &err), &err);
    assert_string_equal(once, twice);
    ki_free(once);
    ki_free(twice);
}

static void test_corpus(void **state) {
    (void)state;
    DIR *dir = opendir(KITH_SOURCE_DIR "/test/corpus/yaml");
    assert_non_null(dir);
    int n = 0;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (strncmp(entry->d_name, "ok_", 3) != 0) continue;
        /* At the reader's limit of depth a text in block style is no deeper. */
        char path[512];
        kith_error err;
        ki_value *root = NULL;
        snprintf(path, sizeof path, KITH_SOURCE_DIR "/test/corpus/yaml/%.200s", entry->d_name);
        assert_ok(ki_yaml_read(path, &arena, &root, &err), &err);
        check(root, entry->d_name);
        n++;
    }
    closedir(dir);
    assert_true(n >= 8);
}

static void test_scalars(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        " ",
                                        "~",
                                        "null",
                                        "Null",
                                        "-",
                                        "--",
                                        "---",
                                        "...",
                                        "?",
                                        ":",
                                        "a: b",
                                        "a:b",
                                        "# no",
                                        "a #b",
                                        "[x]",
                                        "{x: y}",
                                        "\"q\"",
                                        "'q'",
                                        "a\nb",
                                        "tab\t",
                                        "\\n",
                                        "%TAG",
                                        "&anchor",
                                        "*x",
                                        "!tag",
                                        "@at",
                                        "`tick",
                                        "yes",
                                        "1e-5",
                                        ".5",
                                        "-1",
                                        "+3",
                                        "2026-11-15",
                                        "é ü 漢",
                                        " lead",
                                        "trail ",
                                        "a,b",
                                        "a]",
                                        "=",
                                        "\x01",
                                        "\x7f",
                                        "path/to file.jpg",
                                        "/abs/olute",
                                        "~/home",
                                        "C:\\x",
                                        "- item",
                                        "|",
                                        ">",
                                        "--x"};
    ki_value *map = ki_value_new(&arena, KI_VALUE_MAP, NULL),
             *list = ki_value_new(&arena, KI_VALUE_LIST, NULL);
    for (size_t i = 0; i < N_ROWS(texts); i++) {
        ki_value *as_value = ki_value_new(&arena, KI_VALUE_SCALAR, texts[i]);
        ki_value *as_item = ki_value_new(&arena, KI_VALUE_SCALAR, texts[i]);
        ki_value *alone = ki_value_new(&arena, KI_VALUE_SCALAR, texts[i]);
        check(alone, texts[i]);
        /* As a key and a value; an empty key is refused by the reader. */
        if (texts[i][0]) ki_value_append(map, texts[i], as_value);
        ki_value_append(list, NULL, as_item);
    }
    check(map, "a map of awkward words");
    check(list, "a list of awkward words");
}

static void test_shapes(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{}",
        "[]",
        "{a: {}, b: [], c: ~}",
        "{a: [[1, 2], [3]], b: [{x: 1}, {y: {z: [4]}}]}",
        "a:\n  - name: a long enough item to need a line of its own, well beyond the width of one line\n"
        "    more: {x: 1, y: 2}\n  - - nested\n    - list that is also long enough to be broken over lines, "
        "too\n",
        "[~, 1, ~]"};
    for (size_t i = 0; i < N_ROWS(texts); i++) {
        kith_error err;
        ki_value *root = NULL;
        assert_ok(ki_yaml_parse(texts[i], strlen(texts[i]), "test", &arena, &root, &err), &err);
        check(root, texts[i]);
    }
}

static void test_a_note_is_a_comment(void **state) {
    (void)state;
    kith_error err;
    char *text = NULL;
    ki_value *map = ki_value_new(&arena, KI_VALUE_MAP, NULL);
    ki_value_append(map, "scale", ki_value_new(&arena, KI_VALUE_NULL, "[0.08, 1]"));
    assert_ok(ki_yaml_text(map, &text, &err), &err);
    assert_string_equal(text, "scale: ~  # [0.08, 1]\n");
    ki_free(text);
}

static void test_no_memory(void **state) {
    (void)state;
    kith_error err = {0};
    char *text = NULL;
    ki_value *map = ki_value_new(&arena, KI_VALUE_MAP, NULL);
    ki_value_append(map, "key", ki_value_new(&arena, KI_VALUE_SCALAR, "value"));
    ki_alloc_fail_after(0);
    const kith_status status = ki_yaml_text(map, &text, &err);
    ki_alloc_fail_after(-1);
    assert_int_equal(status, KITH_ENOMEM);
    assert_null(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_corpus, release),
        cmocka_unit_test_teardown(test_scalars, release),
        cmocka_unit_test_teardown(test_shapes, release),
        cmocka_unit_test_teardown(test_a_note_is_a_comment, release),
        cmocka_unit_test_teardown(test_no_memory, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
