/* An objective from a recipe and a saved state: what the recipe leaves open comes from the state, the number of
 * classes too, and every value is back. */
#include <stdio.h>
#include <string.h>

#include "kith/objective.h"
#include "support/testing.h"

enum { D = 6, MAP = 5 };

static char recipe_path[256], state_path[256];

static void put_recipe(const char *text) {
    snprintf(recipe_path, sizeof recipe_path, "%s/recipe.yaml", testing_folder());
    snprintf(state_path, sizeof state_path, "%s/state.safetensors", testing_folder());
    testing_write(recipe_path, text);
}

static kith_objective *saved_of(const char *text, int64_t n_classes) {
    kith_error err = {0};
    kith_objective *objective = NULL;
    const kith_objective_sizes sizes = {.n_classes = n_classes, .embedding = D, .map = MAP};
    put_recipe(text);
    assert_ok(kith_objective_open(recipe_path, &sizes, 3, &objective, &err), &err);
    assert_ok(kith_objective_save(objective, state_path, &err), &err);
    return objective;
}

/* `text`, restored with other sizes and another seed, has the shapes and the values of what was saved. */
static void check(const char *saved_text, int64_t n_classes, const char *text) {
    kith_error err = {0};
    kith_objective *before = saved_of(saved_text, n_classes), *after = NULL;
    const kith_objective_sizes other = {.n_classes = 2, .embedding = D, .map = MAP};
    kith_objective_param wanted, found;
    put_recipe(text);
    assert_ok(kith_objective_restore(recipe_path, state_path, &other, 4, &after, &err), &err);
    for (int i = 0; kith_objective_param_at(before, i, &wanted); i++) {
        if (!kith_objective_param_at(after, i, &found)) fail_msg("%s: no %s", text, wanted.name);
        assert_string_equal(found.name, wanted.name);
        if (found.n != wanted.n)
            fail_msg("%s: %s has %lld numbers, wanted %lld", text, found.name, (long long)found.n,
                     (long long)wanted.n);
        assert_memory_equal(found.value, wanted.value, (size_t)found.n * sizeof *found.value);
    }
    kith_objective_free(before);
    kith_objective_free(after);
}

static void test_classes_of_a_state(void **state) {
    (void)state;
    check("loss: {name: amsoftmax}", 7, "loss: {name: amsoftmax}");
    check("loss: {name: softtriple, centers: 3}", 7, "loss: {name: softtriple, centers: 3}");
    check("loss: {name: margin, per_class: true}", 7, "loss: {name: margin, per_class: true}");
    check("loss: {name: raw}\nregularizers: [{name: density}]", 7,
          "loss: {name: raw}\nregularizers: [{name: density}]");
    check("loss: {name: raw}\nregularizers: [{name: joint_similarity, layers: [embedding, logits]}]", 7,
          "loss: {name: raw}\nregularizers: [{name: joint_similarity, layers: [embedding, logits]}]");
}

static void test_sizes_of_a_state(void **state) {
    (void)state;
    check("loss: {name: raw}\nregularizers: [{name: horde, orders: 3, dimension: 12, embedding: 4}]", 2,
          "loss: {name: raw}\nregularizers: [horde]");
    check("loss: {name: raw}\nregularizers: [{name: horde, orders: 4, dimension: 9, embedding: 0}]", 2,
          "loss: {name: raw}\nregularizers: [horde]");
    check("loss: {name: proxy_nca}\nregularizers: [{name: horde, orders: 2, dimension: 8, embedding: 3}]", 5,
          "loss: {name: proxy_nca}\nregularizers: [horde]");
}

static void test_what_does_not_fit(void **state) {
    (void)state;
    kith_error err = {0};
    kith_objective *objective = NULL;
    const kith_objective_sizes sizes = {.n_classes = 2, .embedding = D, .map = MAP};
    kith_objective_free(saved_of("loss: {name: amsoftmax}", 7));
    put_recipe("loss: {name: raw}");
    assert_int_not_equal(kith_objective_restore(recipe_path, state_path, &sizes, 1, &objective, &err),
                         KITH_OK);
    assert_non_null(strstr(err.message, "proxies"));
    assert_null(objective);
    assert_int_equal(kith_objective_restore(recipe_path, "/nowhere/state", &sizes, 1, &objective, &err),
                     KITH_EIO);
    assert_int_equal(kith_objective_restore("/nowhere/recipe", state_path, &sizes, 1, &objective, &err),
                     KITH_EIO);
    assert_null(objective);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes_of_a_state),
        cmocka_unit_test(test_sizes_of_a_state),
        cmocka_unit_test(test_what_does_not_fit),
    };
    return cmocka_run_group_tests_name("objective/restore", tests, NULL, NULL);
}
