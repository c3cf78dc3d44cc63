/* Optimizers and schedules against PyTorch in float, on both CPU backends; and every optimizer has a
 * case. */
#include "optim/golden.h"

static void test_ref(void **state) {
    (void)state;
    golden_all("ref", 2e-6);
}

static void test_cpu(void **state) {
    (void)state;
    golden_all("cpu", 2e-6);
}

static void test_every_optimizer_has_a_case(void **state) {
    (void)state;
    kith_tensors *file = golden_open();
    for (int i = 0; ki_optim_method_at(i); i++) {
        if (!kith_tensors_metadata(file, ki_optim_method_at(i)->name))
            fail_msg("optimizer %s has no golden case", ki_optim_method_at(i)->name);
    }
    kith_tensors_free(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ref),
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_every_optimizer_has_a_case),
    };
    return cmocka_run_group_tests_name("optim/golden", tests, NULL, NULL);
}
