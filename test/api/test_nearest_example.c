/* examples/nearest: one JPEG among 1,000 images. */
#include <stdio.h>
#include <string.h>

#include "support/testing.h"

static char output[16384];

static void test_one_among_a_thousand(void **state) {
    (void)state;
    const char *folder = testing_folder(), *program = testing_program();
    const int status =
        testing_run(output, sizeof output,
                    "cd %s && export OMP_WAIT_POLICY=passive && %s synth all --classes 37 --images 27 --size "
                    "32 > log 2>&1 && "
                    "cp %s/test/corpus/image/ok_rgb.jpg all/copy.jpg && cp all/copy.jpg query.jpg && "
                    "%s embed --backbone convnet4 --settings width=8 --embedding 16 --generate 1 --save "
                    "model.safetensors -o x.npy "
                    ">> log 2>&1 && [ $(find all -name '*.png' -o -name '*.jpg' | wc -l) = 1000 ] && "
                    "\"$(dirname %s)\"/examples/nearest model.safetensors all query.jpg",
                    folder, program, testing_source(), program, program);
    if (status != 0) fail_msg("exit status %d: %s", status, output);
    double first = 0, second = 0;
    char path[2][256];
    assert_int_equal(sscanf(output, "%lf %255s %lf %255s", &first, path[0], &second, path[1]), 4);
    assert_string_equal(path[0], "all/copy.jpg");
    if (!(first > 0.9999 && second < first)) fail_msg("scores %g and %g", first, second);
}

/* The length that is promised. */
static void test_it_is_short(void **state) {
    (void)state;
    assert_int_equal(testing_run(output, sizeof output, "wc -l < %s/examples/nearest.c", testing_source()),
                     0);
    int n = 0;
    assert_int_equal(sscanf(output, "%d", &n), 1);
    assert_in_range(n, 1, 30);
}

static void test_a_missing_image_is_named(void **state) {
    (void)state;
    assert_int_equal(testing_run(output, sizeof output,
                                 "cd %s && \"$(dirname %s)\"/examples/nearest model.safetensors all no.jpg",
                                 testing_folder(), testing_program()),
                     1);
    assert_non_null(strstr(output, "no.jpg"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_among_a_thousand),
        cmocka_unit_test(test_it_is_short),
        cmocka_unit_test(test_a_missing_image_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
