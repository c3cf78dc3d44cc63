/* The loss of docs/adding-a-loss.md, linked in as the page says. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kith/experimental/list.h"
#include "kith/objective.h"
#include "support/testing.h"

enum { N = 12, D = 5 };
static float x[N * D];
static int64_t labels[N];

static double value_of(kith_objective *objective, kith_objective_result *ret) {
    kith_error err = {0};
    const kith_batch batch = {
        .n = N, .labels = labels, .tap[KITH_TAP_EMBEDDING] = {.data = x, .rows = N, .cols = D}};
    assert_ok(kith_objective_evaluate(objective, &batch, ret, &err), &err);
    return ret->total;
}

static void test_it_is_there_with_its_options(void **state) {
    (void)state;
    kith_list_entry entry;
    int i = 0;
    while (kith_list_entry_at("losses", i, &entry) && strcmp(entry.name, "pairwise_sigmoid") != 0) i++;
    assert_string_equal(entry.name, "pairwise_sigmoid");
    assert_int_equal(entry.n_options, 2);
    kith_list_option option;
    assert_true(kith_list_option_at("losses", i, 1, &option));
    assert_string_equal(option.name, "threshold");
    assert_string_equal(option.default_text, "0.5");
}

/* Against the formula, in double, with pairs that need no normalisation. */
static void test_value_and_gradient(void **state) {
    (void)state;
    kith_error err = {0};
    kith_objective *objective = NULL;
    const kith_objective_sizes sizes = {.embedding = D};
    for (int i = 0; i < N; i++) {
        labels[i] = i / 3;
        for (int k = 0; k < D; k++) x[i * D + k] = (float)sin(1.7 * i + 0.9 * k * k + (k == i / 3));
    }
    assert_ok(kith_objective_new("objective: {loss: {name: pairwise_sigmoid, scale: 4, normalize: false}}",
                                 &sizes, 1, &objective, &err),
              &err);
    double wanted = 0;
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            double s = 0;
            for (int k = 0; k < D; k++) s += (double)x[i * D + k] * (double)x[j * D + k];
            if (i != j) wanted += log1p(exp((labels[i] == labels[j] ? -4 : 4) * (s - 0.5)));
        }
    }
    wanted /= N * (N - 1);
    kith_objective_result result;
    const double found = value_of(objective, &result);
    if (!(fabs(found - wanted) < 1e-6 * wanted)) fail_msg("found %.9g, wanted %.9g", found, wanted);
    float gradient[N * D];
    memcpy(gradient, result.gradient[KITH_TAP_EMBEDDING], sizeof gradient);
    for (int i = 0; i < N * D; i += 3) {
        const float kept = x[i];
        x[i] = kept + 1e-2f;
        const double above = value_of(objective, &result);
        x[i] = kept - 1e-2f;
        const double below = value_of(objective, &result);
        x[i] = kept;
        const double slope = (above - below) / 2e-2;
        if (!(fabs(slope - (double)gradient[i]) < 2e-3 * fabs(slope) + 2e-4))
            fail_msg("gradient[%d] is %.6g, the difference %.6g", i, (double)gradient[i], slope);
    }
    kith_objective_free(objective);
}

static void test_it_takes_any_miner(void **state) {
    (void)state;
    kith_list_entry entry;
    for (int i = 0; kith_list_entry_at("miners", i, &entry); i++) {
        char recipe[128];
        kith_error err = {0};
        kith_objective *objective = NULL;
        kith_objective_result result;
        const kith_objective_sizes sizes = {.embedding = D};
        snprintf(recipe, sizeof recipe, "loss: {name: pairwise_sigmoid}\nminer: {name: %s}", entry.name);
        assert_ok(kith_objective_new(recipe, &sizes, 1, &objective, &err), &err);
        assert_true(isfinite(value_of(objective, &result)));
        kith_objective_free(objective);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_there_with_its_options),
        cmocka_unit_test(test_value_and_gradient),
        cmocka_unit_test(test_it_takes_any_miner),
    };
    return cmocka_run_group_tests_name("docs/adding-a-loss", tests, NULL, NULL);
}
