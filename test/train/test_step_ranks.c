/* Training steps over ranks in float: as one process has them, to 1e-5 of the largest entry. */
#include "train/step_ranks.h"

static void test_steps_of_cpu(void **state) {
    (void)state;
    step_check_all("cpu", 1e-5);
}

static void test_steps_of_ref(void **state) {
    (void)state;
    step_check_all("ref", 1e-5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps_of_cpu),
                                       cmocka_unit_test(test_steps_of_ref)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
