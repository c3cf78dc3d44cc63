/* Frozen nodes on a device: kept memory, backward, batch norms. */
#include "nn/frozen.h"

static const char *const devices[] = {"cuda"};

static void test_frozen_beginning(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(devices); i++) check_frozen_beginning(devices[i]);
}

static void test_frozen_middle(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(devices); i++) check_frozen_middle(devices[i]);
}

static void test_frozen_batch_norms(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(devices); i++) check_both_batch_norms(devices[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frozen_beginning),
        cmocka_unit_test(test_frozen_middle),
        cmocka_unit_test(test_frozen_batch_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
