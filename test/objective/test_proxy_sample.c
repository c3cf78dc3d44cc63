/* Classes drawn for a step, in float. */
#include "objective/engine.h"
#include "objective/sample.h"

static void test_over_ranks(void **state) {
    (void)state;
    sample_over_ranks(1e-5);
}

/* A part alone is not a loss. */
static void test_a_part_needs_the_other_ranks(void **state) {
    (void)state;
    const sample_case c = sample_new("amsoftmax", 1, 0);
    made m = sample_made(&c, 1, SAMPLE_CLASSES, 1, 2);
    const ki_batch batch = sample_batch(&c, 0, SAMPLE_M);
    ki_result result;
    kith_error err;
    assert_int_equal(ki_objective_evaluate(m.objective, &batch, &result, &err), KITH_EINVAL);
    assert_string_equal(err.message,
                        "this objective has a part of proxies; it is evaluated over ranks alone");
    made_free(&m);
}

static void test_a_device_refuses_it(void **state) {
    (void)state;
    const sample_case c = sample_new("arcface", 1, 0);
    made all = sample_made(&c, 1, SAMPLE_CLASSES, 0, 0), some = sample_made(&c, 0.5, SAMPLE_CLASSES, 0, 0);
    kith_error err;
    assert_ok(ki_engine_check(all.objective, &err), &err);
    assert_int_equal(ki_engine_check(some.objective, &err), KITH_EUNSUPPORTED);
    assert_string_equal(err.message, "loss arcface with sample 0.5 runs on the CPU alone");
    made_free(&all);
    made_free(&some);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_many_as_the_share_says),
                                       cmocka_unit_test(test_every_class_has_its_turn),
                                       cmocka_unit_test(test_a_step_is_the_loss_over_the_drawn),
                                       cmocka_unit_test(test_over_ranks),
                                       cmocka_unit_test(test_a_part_needs_the_other_ranks),
                                       cmocka_unit_test(test_a_device_refuses_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
