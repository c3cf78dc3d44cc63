/* Objectives over ranks in double: as one process has it, to 1e-12 of the largest entry. */
#include "objective/over_ranks.h"

static void test_golden_cases(void **state) {
    (void)state;
    static const int sizes[] = {2, 3, 4, 0};
    over_check_all(sizes, 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
