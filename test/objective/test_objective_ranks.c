/* Objectives over ranks in float: as one process has it, to 1e-5 of the largest entry. */
#include "objective/over_ranks.h"

static void test_golden_cases(void **state) {
    (void)state;
    static const int sizes[] = {3, 0}; /* the others are no different; in double all are tried */
    over_check_all(sizes, 1e-5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
