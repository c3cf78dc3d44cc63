/* LoRA on a device: what learns, its gradient, the merged file. */
#include "net/adapting.h"

static const char *const devices[] = {"cuda"};

static void test_gradient(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(devices); i++) check_gradient(devices[i]);
}

static void test_trained(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(devices); i++) check_trained(devices[i]);
}

static void test_no_dropout(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(devices); i++) check_no_dropout(devices[i]);
}

static void test_merged(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(devices); i++) check_merged(devices[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_trained),
        cmocka_unit_test(test_no_dropout),
        cmocka_unit_test(test_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
