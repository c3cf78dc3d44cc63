/* examples/pixels: the test images of a folder or of a recipe as vectors, each with mean 0. */
#include <stdio.h>
#include <string.h>

#include "kith/array.h"
#include "support/testing.h"

static char output[8192], folder[256], example[1024];

#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

static int set_up(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "%s", testing_folder());
    snprintf(example, sizeof example, "%s", testing_program_path());
    char *slash = strrchr(example, '/');
    if (!slash) return 1;
    snprintf(slash, sizeof example - (size_t)(slash - example), "/examples/pixels");
    if (run("%s synth '%s/glyphs' --classes 6 --images 3", testing_program(), folder) != 0) return 1;
    return run("printf 'data: {root: %s/glyphs, train_classes: 4}\\n' > '%s/recipe.yaml'", folder, folder);
}

static void check(const char *data, int64_t n_wanted) {
    kith_error err = {0};
    kith_array x = {0}, y = {0};
    char path[400];
    if (run("'%s' '%s/%s' '%s/x.npy' '%s/y.npy' 20", example, folder, data, folder, folder) != 0)
        fail_msg("%s", output);
    snprintf(path, sizeof path, "%s/x.npy", folder);
    assert_ok(kith_npy_read(path, &x, &err), &err);
    snprintf(path, sizeof path, "%s/y.npy", folder);
    assert_ok(kith_npy_read(path, &y, &err), &err);
    assert_int_equal(x.dim[0], n_wanted);
    assert_int_equal(x.dim[1], 400);
    assert_int_equal(y.dim[0], n_wanted);
    for (int64_t i = 0; i < n_wanted; i++) {
        double sum = 0;
        for (int64_t k = 0; k < 400; k++) sum += (double)((float *)x.data)[i * 400 + k];
        if (!(sum < 1e-3 && sum > -1e-3)) fail_msg("row %lld sums to %g", (long long)i, sum);
    }
    /* The last class's images are last. */
    assert_int_equal(((int64_t *)y.data)[n_wanted - 1], 5);
    kith_array_release(&x);
    kith_array_release(&y);
}

static void test_folder(void **state) {
    (void)state;
    check("glyphs", 9);
}

static void test_recipe(void **state) {
    (void)state;
    check("recipe.yaml", 6);
}

static void test_no_data(void **state) {
    (void)state;
    assert_int_equal(run("'%s' '%s/none' '%s/x.npy' '%s/y.npy'", example, folder, folder, folder), 1);
    assert_non_null(strstr(output, "pixels: "));
    assert_int_equal(run("'%s'", example), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_recipe),
        cmocka_unit_test(test_no_data),
    };
    return cmocka_run_group_tests_name("examples/pixels", tests, set_up, testing_tear_down);
}
