/* Training steps over ranks on the reference engine in double: as one process has them, to 1e-12 of the largest entry. */
#include "train/step_ranks.h"

static void test_steps(void **state) {
    (void)state;
    step_check_all("ref", 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
