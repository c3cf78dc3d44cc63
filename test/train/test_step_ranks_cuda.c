/* Training steps over ranks on the emulated device: batch norms and dropout as one process has them. The objective is evaluated
 * on the host; test_learner_ranks_cuda.c has it on the device. */
#include "train/step_ranks.h"

static int is_emulated(void **state) {
    (void)state;
#ifdef KI_EMULATE_TESTS
    return 0;
#else
    exit(77); /* several ranks in one process, which look into the device's memory */
#endif
}

static void test_steps_of_cuda(void **state) {
    (void)state;
    step_check_all("cuda", 2e-5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps_of_cuda)};
    return cmocka_run_group_tests(tests, is_emulated, NULL);
}
