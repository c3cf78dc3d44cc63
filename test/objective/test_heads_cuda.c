/* Objectives over the heads of an ensemble on the device against the host's: the golden cases with their regularizers,
 * every loss and miner, memories, descriptors. */
#include "base/parallel.h"
#include "base/rng.h"
#include "objective/device.h"

enum { M = 12, HEADS = 3, DIM = HEADS * 7, N_CLASSES = 41 };

static int n_cases;

static void check_case(golden_case *c) {
    kith_error err = {0};
    device_run run;
    if (c->sizes.heads < 2) return;
    assert_ok(device_run_try(&run, c->made.objective, &c->batch, &err), &err);
    /* Where all points coincide weights cancel, to their rounding. */
    device_check(c->key, &run, c->made.objective, &c->batch, 1e-5,
                 strcmp(c->shape, "coincide") == 0 ? 1e-5 : 1e-7);
    n_cases++;
    device_run_close(&run);
}

static void test_golden_cases(void **state) {
    (void)state;
    cases_walk(check_case);
    print_message("%d cases, %d differences\n", n_cases, device_bad);
    assert_true(n_cases > 80);
    assert_int_equal(device_bad, 0);
}

static ki_real points[M * DIM];
static int32_t labels[M];

static ki_batch batch_of(uint32_t seed) {
    ki_rng rng = ki_rng_at(seed, KI_RNG_TEST, 5, 0);
    for (int i = 0; i < M; i++) {
        labels[i] = (int32_t)((i / 3 * 7 + (int)seed) % N_CLASSES);
        ki_rng centre = ki_rng_at(98, KI_RNG_TEST, (uint32_t)labels[i], 0);
        for (int k = 0; k < DIM; k++)
            points[i * DIM + k] = (ki_real)(ki_rng_normal(&centre) + 0.7 * ki_rng_normal(&rng));
    }
    ki_batch batch = {.m = M, .label = labels, .step = seed};
    batch.tap[KI_TAP_EMBEDDING] = (ki_tap_data){.data = points, .rows = M, .cols = DIM};
    return batch;
}

/* Four steps of one recipe, each against the host's; then what both remember. */
static void follow(const char *recipe) {
    const ki_sizes sizes = {.n_classes = N_CLASSES, .embedding = DIM, .heads = HEADS};
    kith_error err = {0};
    device_run run;
    made host = made_of(recipe, &sizes), other = made_of(recipe, &sizes);
    ki_batch batch = batch_of(0);
    assert_ok(device_run_try(&run, other.objective, &batch, &err), &err);
    for (uint32_t step = 0; step < 4; step++) {
        batch = batch_of(step);
        device_check(recipe, &run, host.objective, &batch, 1e-5, 1e-7);
    }
    assert_ok(device_type->pull(run.engine, &err), &err);
    for (size_t i = 0; ki_objective_param(host.objective, i); i++) {
        const ki_state *wanted = ki_objective_param(host.objective, i),
                       *found = ki_objective_param(other.objective, i);
        device_compare(recipe, wanted->name, found->value, wanted->value, wanted->count, 1e-6, 0);
    }
    device_run_close(&run);
    made_free(&host);
    made_free(&other);
}

static void test_every_loss(void **state) {
    (void)state;
    device_bad = 0;
    for (size_t i = 0; ki_loss_at(i); i++) {
        char recipe[128];
        snprintf(recipe, sizeof recipe, "loss: {name: %s}", ki_loss_at(i)->method.name);
        follow(recipe);
    }
    assert_int_equal(device_bad, 0);
}

static void test_every_miner_and_memory(void **state) {
    (void)state;
    static const char *const losses[] = {"{name: triplet}", "{name: margin}",
                                         "{name: binomial, reduction: anchor_all}"};
    device_bad = 0;
    for (size_t i = 0; ki_miner_at(i); i++) {
        for (size_t k = 0; k < N_ROWS(losses); k++) {
            char recipe[160];
            snprintf(recipe, sizeof recipe, "loss: %s\nminer: {name: %s}\nmemory: {size: 29, warmup: %d}",
                     losses[k], ki_miner_at(i)->method.name, (int)k);
            follow(recipe);
        }
    }
    follow(
        "loss: {name: raw}\nmemory: {size: 7, warmup: 0}\nregularizers: [{name: head_divergence, weight: "
        "0.5}]");
    assert_int_equal(device_bad, 0);
}

static void test_descriptors(void **state) {
    (void)state;
    enum { C = 4, HW = 4, ALL = DIM + 2 * 6 };
    const ki_sizes sizes = {.n_classes = N_CLASSES, .embedding = DIM, .map = C, .heads = HEADS};
    made m = made_of(
        "loss: {name: binomial}\nregularizers:\n  - {name: horde, orders: 3, dimension: 8, embedding: 6}",
        &sizes);
    kith_error err = {0};
    ki_batch batch = batch_of(1);
    ki_real map[M * C * HW], found[M * ALL], *wanted = NULL;
    int64_t dim = 0;
    device_run run;
    device_bad = 0;
    for (int i = 0; i < (int)N_ROWS(map); i++) map[i] = (ki_real)(i * 37 % 11) / 7;
    batch.tap[KI_TAP_MAP] = (ki_tap_data){.data = map, .rows = M, .cols = C * HW, .c = C, .hw = HW};
    assert_ok(device_run_try(&run, m.objective, &batch, &err), &err);
    device_run_fill(&run, &batch);
    void *rows = device_take(sizeof found);
    assert_ok(device_type->describe(run.engine, rows, &err), &err);
    device_get(found, rows, sizeof found);
    assert_ok(ki_objective_describe(m.objective, &batch, &wanted, &dim, &err), &err);
    assert_int_equal(dim, ALL);
    device_compare("descriptors", "rows", found, wanted, M * ALL, 1e-5, 0);
    assert_int_equal(device_bad, 0);
    device->type->memory.free(device, rows);
    ki_free(wanted);
    device_run_close(&run);
    made_free(&m);
}

int main(void) {
    ki_threads_set(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_cases),
        cmocka_unit_test(test_every_loss),
        cmocka_unit_test(test_every_miner_and_memory),
        cmocka_unit_test(test_descriptors),
    };
    return cmocka_run_group_tests_name("objective/heads on the device", tests, device_open, device_close);
}
