/* On a device, too, a photo that was indexed and the same photo uploaded have one vector. */
#include <stdlib.h>

#include "model/uploads.h"

static int has_device(void **state) {
    (void)state;
    kith_model *model = NULL;
    kith_error err;
    KITH_OPTIONS(kith_model_options, options);
    options.backbone = "convnet4";
    options.device = "cuda";
    if (kith_model_open(&options, &model, &err) != KITH_OK) exit(77);
    kith_model_free(model);
    return 0;
}

static void test_one_vector(void **state) {
    (void)state;
    uploads_compare_all("cuda");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_vector)};
    return cmocka_run_group_tests(tests, has_device, testing_tear_down);
}
