/* The device's objective against the host's over every golden case: each loss, miner and option, batches of many
 * shapes, degenerate ones among them. Values and all gradients to 1e-5. */
#include "base/parallel.h"
#include "objective/device.h"

static int n_cases;

static void check_case(golden_case *c) {
    kith_error err = {0};
    device_run run;
    if (strstr(c->recipe, "regularizers")) return; /* test_reg_cuda.c */
    assert_ok(device_run_try(&run, c->made.objective, &c->batch, &err), &err);
    double norm = 0;
    const int64_t n = c->batch.m * c->batch.tap[KI_TAP_EMBEDDING].cols;
    for (int64_t i = 0; i < n; i++) norm += pow((double)c->tap[KI_TAP_EMBEDDING][i], 2);
    norm = sqrt(norm / (double)c->batch.m);
    const double floor_ = strcmp(c->shape, "coincide") == 0 ? case_rounding(c) * fmax(norm, 1 / norm) : 1e-12;
    device_check(c->key, &run, c->made.objective, &c->batch, 1e-5, floor_);
    n_cases++;
    device_run_close(&run);
}

static void test_golden_cases(void **state) {
    (void)state;
    cases_walk(check_case);
    print_message("%d cases, %d differences\n", n_cases, device_bad);
    assert_true(n_cases > 800);
    assert_int_equal(device_bad, 0);
}

int main(void) {
    ki_threads_set(1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden_cases)};
    return cmocka_run_group_tests_name("objective/engine/golden", tests, device_open, device_close);
}
