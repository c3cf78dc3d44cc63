/* A whole ensemble against PyTorch, with its network on cuda; as the planner likes it best, and plain. */
#include "objective/ensemble_golden.h"
#include "support/op_check.h"

static void test_planned(void **state) {
    (void)state;
    ensemble_check("cuda", op_backend("cuda", NULL));
}

static void test_plain(void **state) {
    (void)state;
    ensemble_check("cuda, plain", op_backend("cuda", &(ki_backend_options){.plain_plan = true}));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_planned), cmocka_unit_test(test_plain)};
    return cmocka_run_group_tests_name("objective/ensemble on cuda against PyTorch", tests, NULL, NULL);
}
