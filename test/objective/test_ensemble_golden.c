/* A whole ensemble against PyTorch, on ref and on cpu. */
#include "objective/ensemble_golden.h"
#include "support/op_check.h"

static void test_ref(void **state) {
    (void)state;
    ensemble_check("ref", op_backend("ref", NULL));
}

static void test_cpu(void **state) {
    (void)state;
    ensemble_check("cpu", op_backend("cpu", NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ref), cmocka_unit_test(test_cpu)};
    return cmocka_run_group_tests_name("objective/ensemble against PyTorch", tests, NULL, NULL);
}
