/* What bench/ measures with a device or with data says in one line that they are not here, and make bench goes on. */
#include <stdio.h>
#include <string.h>

#include "support/testing.h"

static char output[65536];

static void assert_skips(const char *command, const char *text) {
    const int status = testing_run(output, sizeof output, "cd %s && %s", testing_source(), command);
    const char *end = strchr(output, '\n');
    if (status != 0 || !strstr(output, text) || !end || end[1])
        fail_msg("%s: exit status %d, wanted 0 and one line with '%s': %s", command, status, text, output);
}

static void test_without_a_device(void **state) {
    (void)state;
    assert_skips("bench/objective_cuda.sh /nowhere/kith", "no CUDA objective here: ");
    assert_skips("KITH=/nowhere/kith bench/cuda_train.sh", "no CUDA step here: ");
    assert_skips("KITH=/nowhere/kith bench/cuda_more.sh", "no CUDA step here: ");
}

static void test_without_data(void **state) {
    (void)state;
    assert_skips("CUB=/nowhere bench/data.sh", "no CUB-200-2011 at /nowhere: skipped");
    assert_skips("bench/data.sh /nowhere/else", "no CUB-200-2011 at /nowhere/else: skipped");
    if (testing_run(output, sizeof output, "test -e %s/data", testing_source()) == 0) skip();
    assert_skips("env -u CUB bench/data.sh", "no CUB-200-2011 at data/CUB_200_2011: skipped");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_device),
        cmocka_unit_test(test_without_data),
    };
    return cmocka_run_group_tests_name("house/bench_scripts", tests, NULL, testing_tear_down);
}
