/* Terms do not look at each other: in whatever order a recipe names them, each has its value and its own parameters. */
#include "objective/taps.h"

static const char *const terms[] = {
    "{name: density}", "{name: joint_similarity, layers: [embedding, logits], kernels: [poly, poly]}",
    "{name: entropy}"};
enum { N = N_ROWS(terms) };

/* The values of the terms by name, in the order of `terms`; the recipe has them in the order given. */
static void values_in(const int *order, const char *rest, double *ret_value) {
    static taps t;
    char recipe[512];
    kith_error err = {0};
    ki_result result;
    snprintf(recipe, sizeof recipe, "loss: {name: binomial}\n%sregularizers: [%s, %s, %s]", rest,
             terms[order[0]], terms[order[1]], terms[order[2]]);
    taps_fill(&t, 1);
    made m = made_of(recipe, &taps_sizes);
    /* What is drawn must not depend on the order either: the proxies are the only ones. */
    ki_state *proxies = ki_objective_param_named(m.objective, "proxies");
    ki_state *original = ki_objective_param_named(m.objective, "density.d0");
    assert_non_null(proxies);
    for (int64_t i = 0; i < proxies->count; i++) proxies->value[i] = (ki_real)((i * 7 % 11) - 5);
    for (int64_t i = 0; i < original->count; i++) original->value[i] = (ki_real)(i + 1);
    assert_ok(ki_objective_evaluate(m.objective, &t.batch, &result, &err), &err);
    assert_int_equal(result.n_terms, N + 1);
    for (int k = 0; k < N; k++) ret_value[order[k]] = result.term[k + 1].value;
    const ki_state *alpha = ki_objective_param_named(m.objective, "density.alpha");
    double size = 0;
    for (int64_t i = 0; i < alpha->count; i++) size += fabs((double)alpha->diff[i]);
    assert_true(size > 0);
    made_free(&m);
}

static void test_order_does_not_matter(void **state) {
    (void)state;
    static const int orders[][N] = {{0, 1, 2}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}};
    static const char *const rests[] = {"", "memory: {size: 32}\n"};
    for (size_t r = 0; r < N_ROWS(rests); r++) {
        double first[N], again[N];
        values_in(orders[0], rests[r], first);
        for (size_t k = 1; k < N_ROWS(orders); k++) {
            values_in(orders[k], rests[r], again);
            for (int i = 0; i < N; i++) {
                if (again[i] != first[i])
                    fail_msg("%s\nin order %zu: %.9g, wanted %.9g", terms[i], k, again[i], first[i]);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order_does_not_matter)};
    return cmocka_run_group_tests_name("objective/reg_order", tests, NULL, NULL);
}
