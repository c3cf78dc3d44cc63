/* Optimizers and schedules against PyTorch in double: the formulas themselves. */
#include "optim/golden.h"

static void test_ref(void **state) {
    (void)state;
    golden_all("ref", 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ref)};
    return cmocka_run_group_tests_name("optim/golden f64", tests, NULL, NULL);
}
