/* The gradients of a whole ensemble, network and objective together, against central differences in double. */
#include "base/parallel.h"
#include "base/rng.h"
#include "objective/ensemble.h"
#include "support/differences.h"

enum { MOST_PARAMS = 32 };

typedef struct whole {
    ensemble e;
    double *value[MOST_PARAMS], *diff[MOST_PARAMS];
} whole;

static void forward(void *context, double *dst) {
    whole *w = context;
    kith_error err = {0};
    ki_result result;
    for (int i = 0; i < ki_params_count(w->e.params); i++) {
        const ki_param *p = ki_params_at(w->e.params, i);
        if (p->trained) assert_ok(ki_params_set(w->e.params, p, w->value[i], &err), &err);
    }
    *dst = ensemble_forward(&w->e, &result);
}

static void test_whole_ensemble(void **state) {
    (void)state;
    ki_backend *backend = NULL;
    kith_error err = {0};
    whole w = {0};
    double total = 0;
    const double one = 1;
    ki_result result;
    assert_ok(ki_backend_open("ref", NULL, &backend, &err), &err);
    ensemble_init(&w.e, backend);
    ki_rng rng = ki_rng_at(4, KI_RNG_TEST, 1, 0);
    for (int i = 0; i < ENSEMBLE_INPUT; i++) w.e.input[i] = ki_rng_normal(&rng);
    assert_true(ki_params_count(w.e.params) <= MOST_PARAMS);
    for (int i = 0; i < ki_params_count(w.e.params); i++) {
        const ki_param *p = ki_params_at(w.e.params, i);
        w.value[i] = malloc((size_t)p->n * sizeof(double));
        w.diff[i] = malloc((size_t)p->n * sizeof(double));
        assert_ok(ki_params_get(w.e.params, p, w.value[i], &err), &err);
        /* Off the initial values, at which every shift is 0 and every scale 1. */
        for (int64_t j = 0; j < p->n; j++) w.value[i][j] += 0.3 * (ki_rng_double(&rng) - 0.5);
    }
    forward(&w, &total);
    ensemble_forward(&w.e, &result);
    assert_int_equal(result.n_terms, 3);
    for (size_t i = 0; i < result.n_terms; i++) {
        if (!(result.term[i].value > 0)) fail_msg("%s says nothing", result.term[i].name);
    }
    double *input_diff = malloc(ENSEMBLE_INPUT * sizeof *input_diff);
    ensemble_backward(&w.e, &result, input_diff);
    for (int i = 0; i < ki_params_count(w.e.params); i++) {
        const ki_param *p = ki_params_at(w.e.params, i);
        if (p->trained) assert_ok(ki_params_get_diff(w.e.params, p, w.diff[i], &err), &err);
    }
    subject s = {.name = "ensemble",
                 .context = &w,
                 .forward = forward,
                 .n_dst = 1,
                 .diff_dst = &one,
                 .max_coordinates = 60};
    check_tensor(&s, "input", w.e.input, input_diff, ENSEMBLE_INPUT);
    for (int i = 0; i < ki_params_count(w.e.params); i++) {
        const ki_param *p = ki_params_at(w.e.params, i);
        if (p->trained) check_tensor(&s, p->name, w.value[i], w.diff[i], p->n);
    }
    for (size_t i = 0; ki_objective_param(w.e.made.objective, i); i++) {
        ki_state *p = ki_objective_param(w.e.made.objective, i);
        double *diff = malloc((size_t)p->count * sizeof *diff);
        ensemble_forward(&w.e, &result);
        memcpy(diff, p->diff, (size_t)p->count * sizeof *diff);
        check_tensor(&s, p->name, p->value, diff, p->count);
        free(diff);
    }
    report(&s);
    for (int i = 0; i < ki_params_count(w.e.params); i++) free(w.value[i]), free(w.diff[i]);
    free(input_diff);
    ensemble_release(&w.e);
}

int main(void) {
    ki_threads_set(1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole_ensemble)};
    return cmocka_run_group_tests_name("objective/ensemble", tests, NULL, NULL);
}
