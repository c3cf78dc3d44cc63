/* The loss of docs/adding-a-loss.md on the device, as the page says, against the same on the host; and one without a device
 * file (host_only.md), which the device refuses. */
#include "base/parallel.h"
#include "kith/experimental/list.h"
#include "objective/device.h"

enum { M = 14, D = 6, CLASSES = 5 };
static const ki_sizes sizes = {.n_classes = CLASSES, .embedding = D};
static ki_real x[M * D];
static int32_t label[M];
static const ki_batch batch = {
    .m = M, .label = label, .tap[KI_TAP_EMBEDDING] = {.data = x, .rows = M, .cols = D}, .step = 3};

static void make_batch(void) {
    for (int i = 0; i < M; i++) {
        label[i] = i % CLASSES;
        for (int k = 0; k < D; k++)
            x[i * D + k] = (ki_real)(sin(1.3 * i + 0.7 * k * k) + (k == label[i] ? 1 : 0));
    }
}

static void check(const char *recipe) {
    kith_error err = {0};
    device_run run;
    made m = made_of(recipe, &sizes);
    assert_ok(device_run_try(&run, m.objective, &batch, &err), &err);
    device_check(recipe, &run, m.objective, &batch, 1e-5, 1e-9);
    device_run_close(&run);
    made_free(&m);
}

/* With every miner, with a memory, with options, and beside a regularizer. */
static void test_device_and_host_agree(void **state) {
    (void)state;
    char recipe[256];
    for (size_t i = 0; ki_miner_at(i); i++) {
        snprintf(recipe, sizeof recipe, "loss: {name: pairwise_sigmoid, scale: 4}\nminer: {name: %s}",
                 ki_miner_at(i)->method.name);
        check(recipe);
    }
    check("loss: {name: pairwise_sigmoid, threshold: 0.3, normalize: false}");
    check("loss: {name: pairwise_sigmoid}\nmemory: {size: 20, warmup: 0}");
    check("loss: {name: pairwise_sigmoid}\nregularizers: [{name: density, weight: 0.5}]");
    assert_int_equal(device_bad, 0);
}

static void test_host_only_is_refused_by_name(void **state) {
    (void)state;
    kith_error err = {0};
    device_run run;
    made m = made_of("loss: {name: host_only}", &sizes);
    assert_int_equal(device_run_try(&run, m.objective, &batch, &err), KITH_EUNSUPPORTED);
    assert_string_equal(err.message, "loss host_only runs on the CPU alone");
    assert_string_equal(err.hint, "use device cpu for this objective");
    device_run_close(&run);
    made_free(&m);
}

static void test_the_list_says_so(void **state) {
    (void)state;
    kith_list_entry entry;
    int n_alone = 0;
    for (int i = 0; kith_list_entry_at("losses", i, &entry); i++) {
        if (entry.cpu_only != (strcmp(entry.name, "host_only") == 0))
            fail_msg("%s: cpu only %d", entry.name, entry.cpu_only);
        n_alone += entry.cpu_only;
    }
    assert_int_equal(n_alone, 1);
    assert_true(kith_list_entry_at("backbones", 0, &entry));
    assert_false(entry.cpu_only);
}

int main(void) {
    ki_threads_set(1);
    make_batch();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device_and_host_agree),
        cmocka_unit_test(test_host_only_is_refused_by_name),
        cmocka_unit_test(test_the_list_says_so),
    };
    return cmocka_run_group_tests_name("docs/adding-a-loss on the device", tests, device_open, device_close);
}
