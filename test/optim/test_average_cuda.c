/* Averages of values on a device: their definition, exchanged with the values, resumed. */
#include "optim/averaging.h"

static const char *const devices[] = {"cuda"};

static void test_values(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(devices); i++) {
        check_values(devices[i], 0.5);
        check_values(devices[i], 0.9999);
    }
}

static void test_swap(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(devices); i++) check_swap(devices[i]);
}

static void test_resumed(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(devices); i++) check_resumed(devices[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_swap),
        cmocka_unit_test(test_resumed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
