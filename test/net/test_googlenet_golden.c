/* GoogLeNet with BVLC's weights gives the features and logits that an independent implementation gave
 * for the same two images. */
#include <string.h>

#include "base/alloc.h"
#include "kith/model.h"
#include "support/testing.h"

static const double tolerance = 1e-4;

static void check_tap(kith_model *model, const kith_tensors *golden, const char *tap, const char *name) {
    kith_error err = {0};
    kith_array input, want;
    assert_ok(kith_tensors_get(golden, "input", &input, &err), &err);
    assert_ok(kith_tensors_get(golden, name, &want, &err), &err);
    const int64_t n = kith_array_count(&want), n_in = kith_array_count(&input);
    float *images = ki_alloc((size_t)n_in, sizeof *images), *found = ki_alloc((size_t)n, sizeof *found);
    float *wanted = ki_alloc((size_t)n, sizeof *wanted);
    assert_true(images && found && wanted);
    memcpy(images, input.data, (size_t)n_in * sizeof *images);
    memcpy(wanted, want.data, (size_t)n * sizeof *wanted);
    assert_ok(kith_model_embed_floats(model, images, input.dim[0], tap, found, &err), &err);
    const double distance = testing_relative_l2(found, wanted, n);
    print_message("%s: relative L2 %.2e\n", tap, distance);
    ki_free(images);
    ki_free(found);
    ki_free(wanted);
    if (!(distance < tolerance)) fail_msg("%s: relative L2 is %g, wanted below %g", tap, distance, tolerance);
}

static void test_features_and_logits(void **state) {
    (void)state;
    kith_error err = {0};
    const char *path = testing_shared("weights/googlenet_bvlc.golden.safetensors");
    if (!path) skip();
    kith_tensors *golden = NULL;
    assert_ok(kith_tensors_open(path, &golden, &err), &err);
    path = testing_shared("weights/googlenet_bvlc.safetensors");
    if (!path) skip();
    kith_model *model = NULL;
    const kith_model_options options = {
        .size = sizeof(kith_model_options), .backbone = "googlenet", .weights = path};
    assert_ok(kith_model_open(&options, &model, &err), &err);
    check_tap(model, golden, "pooled", "feature");
    check_tap(model, golden, "logits", "logits");
    kith_model_free(model);
    kith_tensors_free(golden);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_features_and_logits)};
    return cmocka_run_group_tests_name("net/googlenet_golden", tests, NULL, NULL);
}
