/* A kith without the CUDA plugin, or without a device, says so. */
#include <string.h>

#include "device/backend.h"
#include "support/testing.h"

static void test_missing_cuda_is_said(void **state) {
    (void)state;
    ki_backend *backend = NULL;
    kith_error err = {0};
    if (ki_backend_open("cuda", NULL, &backend, &err) == KITH_OK) {
        ki_backend_close(backend);
        skip();
    }
    assert_int_equal(err.status, KITH_EUNSUPPORTED);
    assert_non_null(strcasestr(err.message, "cuda"));
    assert_true(err.hint[0] != '\0');
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_missing_cuda_is_said)};
    return cmocka_run_group_tests_name("backend/cuda is missing", tests, NULL, NULL);
}
