/* The host's engine: over memory of the cpu and the ref backend it writes what ki_objective_evaluate gives, to the bit. */
#include "objective/both.h"

static int32_t uneven(int64_t i) { return (int32_t)(i * i % 7); }

static const char *const recipes[] = {
    "loss: {name: binomial}",
    "loss: {name: margin, normalize: false}",
    "loss: {name: amsoftmax}\nregularizers: [{name: joint_similarity, weight: 0.3}]",
    "loss: {name: contrastive}\nmemory: {size: 16}\nregularizers: [{name: density, weight: 10, warmup: 5}]",
    "loss: {name: none}\nregularizers: [{name: energy_confusion}, {name: energy_confusion, normalize: true, "
    "weight: 0.2}]",
    "loss: {name: binomial}\nregularizers: [{name: horde, orders: 3, dimension: 40, embedding: 8, weight: "
    "0.5},\n"
    "  {name: row_norm_penalty}, {name: norm_l2, weight: 0.1}, {name: horde, orders: 3, dimension: 40, "
    "embedding: 8}]"};

static void compare(const char *name, const char *recipe) {
    kith_error err = {0};
    ki_backend *backend = NULL;
    device_batch b = device_batch_new(21, 12, 10, 3, 2, uneven);
    made host = made_of(recipe, &b.sizes), placed = made_of(recipe, &b.sizes);
    device_run run;
    assert_ok(ki_backend_open(name, NULL, &backend, &err), &err);
    assert_ptr_equal(ki_engine_of(backend), &ki_engine_host);
    device_run_open(&run, backend, placed.objective, &b);
    for (int round = 0; round < 2; round++) { /* the second sees what the first remembers */
        device_evaluate(&run);
        device_compare(&run, host.objective, recipe, 0);
    }
    device_run_close(&run);
    made_free(&host);
    made_free(&placed);
    device_batch_free(&b);
    ki_backend_close(backend);
}

static void test_same_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(recipes); i++) {
        compare("ref", recipes[i]);
        compare("cpu", recipes[i]);
    }
}

/* What fetch saw is what read gives, whatever was evaluated in between. */
static void test_values_as_they_were_fetched(void **state) {
    (void)state;
    kith_error err = {0};
    ki_backend *backend = NULL;
    device_batch b = device_batch_new(12, 8, 4, 2, 2, uneven);
    made m = made_of(recipes[0], &b.sizes);
    device_run run;
    ki_engine_values first, second;
    assert_ok(ki_backend_open("ref", NULL, &backend, &err), &err);
    device_run_open(&run, backend, m.objective, &b);
    device_evaluate(&run);
    assert_ok(ki_engine_host.fetch(run.engine, &err), &err);
    ki_real *x = ki_alloc((size_t)(b.m * b.dim), sizeof *x);
    for (int64_t i = 0; i < b.m * b.dim; i++) x[i] = b.tap[KI_TAP_EMBEDDING][i] + (ki_real)(i % 3);
    device_upload(&run, run.in.tap[KI_TAP_EMBEDDING], x, (size_t)(b.m * b.dim) * sizeof *x);
    device_evaluate(&run);
    assert_ok(ki_engine_host.read(run.engine, &first, &err), &err);
    const double total = first.total, value = first.term[0].value;
    assert_ok(ki_engine_host.read(run.engine, &second, &err), &err);
    if (total == second.total || value != total)
        fail_msg("totals %.9g and %.9g; wanted two evaluations", total, second.total);
    assert_true(*ki_engine_host.total(run.engine) == second.total);
    ki_free(x);
    device_run_close(&run);
    made_free(&m);
    device_batch_free(&b);
    ki_backend_close(backend);
}

/* Errors come from evaluate itself, and leave no gradient at the layer's weights. */
static void test_fails_at_once(void **state) {
    (void)state;
    kith_error err = {0};
    ki_backend *backend = NULL;
    device_batch b = device_batch_new(12, 8, 4, 2, 2, uneven);
    made m = made_of("loss: {name: binomial}\nregularizers: [{name: row_norm_penalty}]", &b.sizes);
    device_run run;
    assert_ok(ki_backend_open("ref", NULL, &backend, &err), &err);
    device_run_open(&run, backend, m.objective, &b);
    assert_ok(backend->type->memory.zero(backend, run.in.diff[KI_TAP_WEIGHT],
                                         run.in.tap_edge[KI_TAP_WEIGHT].bytes, &err),
              &err);
    const ki_real bad = (ki_real)NAN;
    device_upload(&run, run.in.tap[KI_TAP_EMBEDDING], &bad, sizeof bad);
    assert_int_equal(ki_engine_host.evaluate(run.engine, &err), KITH_ENUMERIC);
    assert_non_null(strstr(err.message, "embedding[0, 0] is NaN"));
    const ki_real *diff = run.in.diff[KI_TAP_WEIGHT];
    for (int64_t i = 0; i < b.dim * b.c; i++) assert_true(diff[i] == 0);
    device_upload(&run, run.in.tap[KI_TAP_EMBEDDING], b.tap[KI_TAP_EMBEDDING], sizeof bad);
    const int32_t label = DEVICE_CLASSES;
    device_upload(&run, run.in.label, &label, sizeof label);
    assert_int_equal(ki_engine_host.evaluate(run.engine, &err), KITH_EINVAL);
    device_run_close(&run);
    made_free(&m);
    device_batch_free(&b);
    ki_backend_close(backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits),
                                       cmocka_unit_test(test_values_as_they_were_fetched),
                                       cmocka_unit_test(test_fails_at_once)};
    return cmocka_run_group_tests_name("objective/engine_host", tests, NULL, NULL);
}
