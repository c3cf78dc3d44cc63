/* The regularizer of docs/adding-a-regularizer.md on the device, as the page says, against the same on the host. */
#include "base/parallel.h"
#include "objective/device.h"

enum { M = 14, D = 6, CLASSES = 5 };
static ki_real x[M * D];
static int32_t label[M];

static void test_device_and_host_agree(void **state) {
    (void)state;
    static const char *const recipes[] = {
        "loss: {name: none}\nregularizers: [{name: spherical, weight: 0.7}]",
        "loss: {name: binomial}\nregularizers: [{name: spherical, radius: 2, normalize: false}]",
        "loss: {name: binomial}\nregularizers: [{name: spherical, weight: 3}, {name: norm_l2, weight: 0.1}]",
        "loss: {name: triplet}\nregularizers: [{name: spherical, normalize: true}]",
    };
    const ki_sizes sizes = {.n_classes = CLASSES, .embedding = D};
    for (int i = 0; i < M * D; i++) x[i] = (ki_real)((1 + 0.1 * i) * sin(1.3 * i));
    for (int i = 0; i < M; i++) label[i] = i % CLASSES;
    const ki_batch batch = {
        .m = M, .label = label, .tap[KI_TAP_EMBEDDING] = {.data = x, .rows = M, .cols = D}, .step = 3};
    for (size_t i = 0; i < N_ROWS(recipes); i++) {
        kith_error err = {0};
        device_run run;
        made m = made_of(recipes[i], &sizes);
        assert_ok(device_run_try(&run, m.objective, &batch, &err), &err);
        device_check(recipes[i], &run, m.objective, &batch, 1e-5, 1e-9);
        device_run_close(&run);
        made_free(&m);
    }
    assert_int_equal(device_bad, 0);
}

int main(void) {
    ki_threads_set(1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_device_and_host_agree)};
    return cmocka_run_group_tests_name("docs/adding-a-regularizer on the device", tests, device_open,
                                       device_close);
}
