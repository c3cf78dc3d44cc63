/* Batches that end with items without a class, on the device against the host: every loss, miner and regularizer. */
#include "objective/both.h"
#include "support/op_check.h"

static ki_backend *backend;

static int open_device(void **state) {
    (void)state;
    backend = op_backend("cuda", NULL);
    return 0;
}

static int close_device(void **state) {
    (void)state;
    ki_backend_close(backend);
    return 0;
}

enum { M = 30, N_LABELLED = 21 };

static int32_t threes(int64_t i) { return i < N_LABELLED ? (int32_t)(i / 3 * 5 % DEVICE_CLASSES) : -1; }

static void check(const char *recipe) {
    device_batch b = device_batch_new(M, 12, 5, 2, 2, threes);
    made host = made_of(recipe, &b.sizes), device = made_of(recipe, &b.sizes);
    device_run run;
    assert_int_equal(b.n_unlabelled, M - N_LABELLED);
    device_run_open(&run, backend, device.objective, &b);
    device_evaluate(&run);
    device_compare(&run, host.objective, recipe, 2e-5);
    device_run_close(&run);
    made_free(&host);
    made_free(&device);
    device_batch_free(&b);
}

static void test_every_method(void **state) {
    (void)state;
    char recipe[256];
    for (size_t i = 0; ki_loss_at(i); i++) {
        const ki_loss *loss = ki_loss_at(i);
        snprintf(recipe, sizeof recipe, "loss: {name: %s}", loss->method.name);
        check(recipe);
        if (loss->is_proxy) continue;
        snprintf(recipe, sizeof recipe, "loss: {name: %s}\nmemory: {size: 50, warmup: 0}", loss->method.name);
        check(recipe);
    }
    for (size_t i = 0; ki_miner_at(i); i++) {
        const char *name = ki_miner_at(i)->method.name;
        snprintf(recipe, sizeof recipe, "loss: {name: %s}\nminer: {name: %s}",
                 strstr(name, "distance") ? "margin" : "contrastive", name);
        check(recipe);
    }
}

static void test_regularizers(void **state) {
    (void)state;
    static const char *const recipes[] = {"loss: none\nregularizers: [{name: density}, {name: intra_class}]",
                                          "loss: {name: binomial}\nregularizers: [{name: energy_confusion}, "
                                          "{name: global_orthogonal}, {name: entropy}]",
                                          "loss: {name: binomial}\nregularizers: [{name: norm_l2}, {name: "
                                          "row_norm_penalty}, {name: match, weight: 0.5}]",
                                          "loss: none\nregularizers: [{name: joint_similarity, layers: "
                                          "[pooled, logits]}, {name: relational, teacher: 1}]",
                                          "loss: {name: amsoftmax}\nregularizers: [{name: joint_mmd, layers: "
                                          "[embedding, logits]}, {name: match}]"};
    for (size_t r = 0; r < N_ROWS(recipes); r++) check(recipes[r]);
}

static int32_t nobody(int64_t i) { return (int32_t)(-1 + 0 * i); }

/* Without a class at all. */
static void test_teachers_alone(void **state) {
    (void)state;
    device_batch b = device_batch_new(9, 4, 3, 1, 1, nobody);
    static const char recipe[] =
        "loss: none\nregularizers: [{name: relational, form: softmax}, {name: match}]";
    made host = made_of(recipe, &b.sizes), device = made_of(recipe, &b.sizes);
    device_run run;
    device_run_open(&run, backend, device.objective, &b);
    device_evaluate(&run);
    device_compare(&run, host.objective, recipe, 1e-5);
    device_run_close(&run);
    made_free(&host);
    made_free(&device);
    device_batch_free(&b);
}

static void test_what_is_refused(void **state) {
    (void)state;
    device_batch b = device_batch_new(9, 4, 3, 1, 1, nobody);
    made m = made_of("loss: {name: binomial}", &b.sizes);
    device_run run;
    kith_error err = {0};
    device_run_prepare(&run, backend, m.objective, &b);
    assert_int_equal(ki_engine_of(backend)->open(backend, m.objective, &run.in, b.m, &run.engine, &err),
                     KITH_EINVAL);
    assert_non_null(strstr(err.message, "no item of the batch has a class, and binomial counts"));
    device_run_close(&run);
    made_free(&m);
    device_batch_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_method), cmocka_unit_test(test_regularizers),
        cmocka_unit_test(test_teachers_alone), cmocka_unit_test(test_what_is_refused)};
    return cmocka_run_group_tests_name("objective/cuda unlabelled", tests, open_device, close_device);
}
