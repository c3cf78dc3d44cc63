/* YAML: a recipe, error lines, large documents, no memory. */
#include "io/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "support/testing.h"

static ki_arena arena;

static const ki_value *parse(const char *text) {
    kith_error err = {0};
    ki_value *root = NULL;
    assert_ok(ki_yaml_parse(text, strlen(text), "r.yaml", &arena, &root, &err), &err);
    return root;
}

static int release(void **state) {
    (void)state;
    ki_arena_release(&arena);
    return 0;
}

static void test_recipe(void **state) {
    (void)state;
    kith_error err = {0};
    ki_value *root = NULL;
    assert_ok(ki_yaml_read(KITH_SOURCE_DIR "/test/corpus/yaml/ok_recipe.yaml", &arena, &root, &err), &err);
    assert_int_equal(root->kind, KI_VALUE_MAP);
    assert_int_equal(root->n_items, 4);
    const ki_value *objective = ki_value_get(root, "objective");
    assert_int_equal(objective->line, 2);
    assert_string_equal(ki_value_get(ki_value_get(objective, "loss"), "gamma")->text, "0.5");
    const ki_value *term = ki_value_at(ki_value_get(objective, "regularizers"), 0);
    assert_int_equal(term->line, 5);
    assert_string_equal(ki_value_get(term, "name")->text, "energy_confusion");
    assert_string_equal(ki_value_get(ki_value_get(root, "optim"), "lr")->text, "1e-5");
    assert_string_equal(ki_value_at(ki_value_get(ki_value_get(root, "eval"), "k"), 3)->text, "8");
}

static void test_nothing(void **state) {
    (void)state;
    const ki_value *root = parse("a: ~\nb: null\nc:\nd: 'null'\ne: \"\"\nf: ['~', ~, ]\n");
    assert_int_equal(ki_value_get(root, "a")->kind, KI_VALUE_NULL);
    assert_int_equal(ki_value_get(root, "b")->kind, KI_VALUE_NULL);
    assert_int_equal(ki_value_get(root, "c")->kind, KI_VALUE_NULL);
    assert_int_equal(ki_value_get(root, "d")->kind, KI_VALUE_SCALAR);
    assert_string_equal(ki_value_get(root, "e")->text, "");
    assert_string_equal(ki_value_at(ki_value_get(root, "f"), 0)->text, "~");
    assert_int_equal(ki_value_at(ki_value_get(root, "f"), 1)->kind, KI_VALUE_NULL);
    assert_int_equal(parse("")->kind, KI_VALUE_NULL);
    assert_int_equal(parse("# a comment\n")->kind, KI_VALUE_NULL);
    assert_int_equal(parse("--- ")->kind, KI_VALUE_NULL);
}

static void test_error_lines(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"a: 1\nb: {c: 1,\n c: 2}\n", "r.yaml:3: the key 'c' is given twice (first on line 2)"},
        {"a: 1\nb: &x 2\n", "r.yaml:2: an anchor (&name); write the value out"},
        {"a: 1\nb: *x\n", "r.yaml:2: an alias (*name); write the value out"},
        {"a: !!int 3\n", "r.yaml:1: a tag (!name); write the plain value"},
        {"a: 1\n--- \nb: 1\n", "r.yaml:2: a second document (---); wanted one"},
        {"\n{[a]: 1}\n", "r.yaml:2: a list or a map as a key; wanted a word"},
        {"'': 1\n", "r.yaml:1: a value without a key"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        ki_value *root = NULL;
        assert_int_equal(ki_yaml_parse(rows[i].text, strlen(rows[i].text), "r.yaml", &arena, &root, &err),
                         KITH_EFORMAT);
        assert_string_equal(err.message, rows[i].message);
        assert_null(root);
    }
}

/* Work and memory stay in proportion to the text: these were quadratic or worse with a naive tree. */
static void test_large_documents(void **state) {
    (void)state;
    const size_t n = 200000;
    char *text = malloc(n * 16);
    assert_non_null(text);
    size_t used = 0;
    for (size_t i = 0; i < n; i++) used += (size_t)sprintf(text + used, "k%zu: %zu\n", i, i);
    kith_error err = {0};
    ki_value *root = NULL;
    assert_ok(ki_yaml_parse(text, used, "r.yaml", &arena, &root, &err), &err);
    assert_int_equal(root->n_items, n);
    for (size_t i = 0; i < 1100000; i++) memcpy(text + 2 * i, "~,", 2);
    memcpy(text, "[ ", 2);
    assert_int_equal(ki_yaml_parse(text, 2200000, "r.yaml", &arena, &root, &err), KITH_EFORMAT);
    assert_non_null(strstr(err.message, "more than a million values"));
    assert_int_equal(ki_yaml_parse(text, (16 << 20) + 1, "r.yaml", &arena, &root, &err), KITH_EFORMAT);
    free(text);
}

/* Quadratic inside libyaml: without our limit this takes tens of seconds. */
static void test_many_directives(void **state) {
    (void)state;
    const int n = 100000;
    char *text = malloc((size_t)n * 20 + 20);
    assert_non_null(text);
    size_t used = 0;
    for (int i = 0; i < n; i++)
        used += (size_t)sprintf(text + used, "%%TAG !a%d! t:%c", i, i % 2 ? '\r' : '\n');
    used += (size_t)sprintf(text + used, "---\na: 1\n");
    kith_error err = {0};
    ki_value *root = NULL;
    assert_int_equal(ki_yaml_parse(text, used, "r.yaml", &arena, &root, &err), KITH_EFORMAT);
    assert_non_null(strstr(err.message, "lines that begin with '%'"));
    assert_int_equal(parse("%YAML 1.1\n---\na: 1\n")->n_items, 1);
    free(text);
}

static void test_allocation_failures(void **state) {
    (void)state;
    /* longer than the arena's blocks, so that several are taken */
    char *text = malloc(100000);
    assert_non_null(text);
    size_t used = 0;
    for (int i = 0; i < 200; i++) used += (size_t)sprintf(text + used, "key%d: {a: [1, 2], b: text}\n", i);
    bool passed = false;
    int n = 0;
    for (; !passed && n < 3000; n++) {
        kith_error err = {0};
        ki_value *root = NULL;
        ki_alloc_fail_after(n);
        const kith_status status = ki_yaml_parse(text, used, "r.yaml", &arena, &root, &err);
        passed = !ki_alloc_failed();
        ki_alloc_fail_after(-1);
        ki_arena_release(&arena);
        assert_int_equal(status, passed ? KITH_OK : KITH_ENOMEM);
    }
    assert_true(passed && n > 10);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_recipe, release),
        cmocka_unit_test_teardown(test_nothing, release),
        cmocka_unit_test_teardown(test_error_lines, release),
        cmocka_unit_test_teardown(test_large_documents, release),
        cmocka_unit_test_teardown(test_many_directives, release),
        cmocka_unit_test_teardown(test_allocation_failures, release),
    };
    return cmocka_run_group_tests_name("io/yaml", tests, NULL, NULL);
}
