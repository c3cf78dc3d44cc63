/* The regularizer of docs/adding-a-regularizer.md, linked in as the page says. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kith/experimental/list.h"
#include "kith/objective.h"
#include "support/testing.h"

enum { N = 9, D = 4 };
static float x[N * D];
static int64_t labels[N];

static void make_batch(void) {
    for (int i = 0; i < N; i++) {
        labels[i] = i / 3;
        for (int k = 0; k < D; k++) x[i * D + k] = (float)((1 + 0.2 * i) * sin(1.7 * i + 0.9 * k * k));
    }
    for (int k = 0; k < D; k++) x[k] = 0; /* a row of length 0 */
}

static kith_objective *objective_of(const char *radius) {
    kith_error err = {0};
    kith_objective *objective = NULL;
    const kith_objective_sizes sizes = {.embedding = D};
    char recipe[160];
    snprintf(
        recipe, sizeof recipe,
        "loss: {name: none}\nregularizers: [{name: spherical, weight: 0.5, radius: %s, normalize: false}]",
        radius);
    assert_ok(kith_objective_new(recipe, &sizes, 1, &objective, &err), &err);
    return objective;
}

static void evaluate(kith_objective *objective, kith_objective_result *ret) {
    kith_error err = {0};
    const kith_batch batch = {
        .n = N, .labels = labels, .tap[KITH_TAP_EMBEDDING] = {.data = x, .rows = N, .cols = D}};
    assert_ok(kith_objective_evaluate(objective, &batch, ret, &err), &err);
}

static void test_it_is_there_with_its_option(void **state) {
    (void)state;
    kith_list_entry entry;
    kith_list_option option;
    int i = 0;
    while (kith_list_entry_at("regularizers", i, &entry) && strcmp(entry.name, "spherical") != 0) i++;
    assert_string_equal(entry.name, "spherical");
    assert_false(entry.cpu_only);
    assert_true(kith_list_option_at("regularizers", i, 0, &option));
    assert_string_equal(option.name, "radius");
    assert_string_equal(option.default_text, "0");
}

static double wanted_value(double radius) {
    double norm[N], mean = 0, sum = 0;
    for (int i = 0; i < N; i++) {
        norm[i] = 0;
        for (int k = 0; k < D; k++) norm[i] += (double)x[i * D + k] * (double)x[i * D + k];
        norm[i] = sqrt(norm[i]);
        mean += norm[i] / N;
    }
    for (int i = 0; i < N; i++) sum += pow(norm[i] - (radius > 0 ? radius : mean), 2) / N;
    return sum;
}

/* Against the formula in double: the value, and its slope but for the row of length 0, which is a kink. */
static void test_value_and_gradient(void **state) {
    (void)state;
    static const char *const radii[] = {"0", "1.5"};
    for (int r = 0; r < 2; r++) {
        kith_objective *objective = objective_of(radii[r]);
        kith_objective_result result;
        make_batch();
        evaluate(objective, &result);
        const double radius = r ? 1.5 : 0, wanted = wanted_value(radius);
        assert_int_equal(result.n_terms, 1);
        if (!(fabs(result.terms[0].value - wanted) < 1e-6 * wanted))
            fail_msg("found %.9g, wanted %.9g", result.terms[0].value, wanted);
        for (int i = 0; i < N * D; i++) {
            const float kept = x[i], found = result.gradient[KITH_TAP_EMBEDDING][i];
            x[i] = kept + 0x1p-10f;
            const double above = wanted_value(radius);
            x[i] = kept - 0x1p-10f;
            const double slope = i < D ? 0 : 0.5 * (above - wanted_value(radius)) / 0x1p-9;
            x[i] = kept;
            if (!(fabs(slope - (double)found) < 1e-4))
                fail_msg("gradient[%d] is %.6g, the difference %.6g", i, (double)found, slope);
        }
        kith_objective_free(objective);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_there_with_its_option),
        cmocka_unit_test(test_value_and_gradient),
    };
    return cmocka_run_group_tests_name("docs/adding-a-regularizer", tests, NULL, NULL);
}
