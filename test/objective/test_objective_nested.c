/* Nested widths: the full width alone is the plain loss, memory is cut too, what cannot be is refused in one line. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "objective/cases.h"
#include "objective/state.h"

enum { M = 24, DIM = 12, N_CLASSES = 6 };

static ki_real x[M * DIM];
static int32_t label[M];

static ki_batch batch_of(uint32_t salt) {
    ki_rng rng = ki_rng_at(11, KI_RNG_TEST, salt, 0);
    for (int i = 0; i < M; i++) label[i] = i % N_CLASSES;
    for (int i = 0; i < M * DIM; i++) x[i] = (ki_real)ki_rng_normal(&rng);
    return (ki_batch){
        .m = M, .label = label, .step = salt, .tap[KI_TAP_EMBEDDING] = {.data = x, .rows = M, .cols = DIM}};
}

/* Steps of two objectives on the same batches: the same values and gradients to rounding. */
static void compare(const char *recipe, const char *other, double tolerance) {
    const ki_sizes sizes = {.n_classes = N_CLASSES, .embedding = DIM};
    kith_error err = {0};
    made a = made_of(recipe, &sizes), b = made_of(other, &sizes);
    for (uint32_t step = 0; step < 4; step++) {
        const ki_batch batch = batch_of(step);
        ki_result found, wanted;
        double off = 0, size = 0;
        assert_ok(ki_objective_evaluate(a.objective, &batch, &found, &err), &err);
        assert_ok(ki_objective_evaluate(b.objective, &batch, &wanted, &err), &err);
        if (!(fabs(found.total - wanted.total) <= tolerance * fmax(1, fabs(wanted.total))))
            fail_msg("%s, step %u: %.9g, wanted %.9g", recipe, step, found.total, wanted.total);
        assert_int_equal(found.n_pos, wanted.n_pos);
        for (int i = 0; i < M * DIM; i++) {
            const double f = (double)found.diff[KI_TAP_EMBEDDING][i];
            const double w = (double)wanted.diff[KI_TAP_EMBEDDING][i];
            off += (f - w) * (f - w), size += w * w;
        }
        if (!(sqrt(off) <= tolerance * sqrt(size)))
            fail_msg("%s, step %u: the gradient is off by %.3g of %.3g", recipe, step, sqrt(off), sqrt(size));
    }
    made_free(&a);
    made_free(&b);
}

static void test_the_full_width_is_the_plain_loss(void **state) {
    (void)state;
    static const char *const some[] = {"loss: {name: binomial}",
                                       "loss: {name: raw}\nminer: {name: vthm}",
                                       "loss: {name: contrastive, normalize: false}",
                                       "loss: {name: margin}",
                                       "loss: {name: amsoftmax}",
                                       "loss: {name: softtriple, centers: 2, sample: 0.7}",
                                       "loss: {name: raw}\nmemory: {size: 40, warmup: 1}"};
    for (size_t i = 0; i < N_ROWS(some); i++) {
        char recipe[256];
        snprintf(recipe, sizeof recipe, "%s\nnested: [%d]", some[i], DIM);
        compare(recipe, some[i], 1e-6);
    }
}

/* Gradients of the proxies: those of a narrower width lie in the first columns alone. */
static void test_proxies_are_cut(void **state) {
    (void)state;
    static const char *const some[] = {"loss: {name: normsoftmax}\nnested: [5]",
                                       "loss: {name: normsoftmax, sample: 0.8}\nnested: [5]"};
    const ki_sizes sizes = {.n_classes = N_CLASSES, .embedding = DIM};
    for (size_t i = 0; i < N_ROWS(some); i++) {
        kith_error err = {0};
        ki_result found;
        made m = made_of(some[i], &sizes);
        const ki_batch batch = batch_of(3);
        assert_ok(ki_objective_evaluate(m.objective, &batch, &found, &err), &err);
        const ki_state *proxies = ki_objective_param(m.objective, 0);
        double inside = 0, outside = 0;
        for (int64_t k = 0; k < proxies->count; k++)
            *(k % DIM < 5 ? &inside : &outside) += fabs((double)proxies->diff[k]);
        assert_true(inside > 0);
        assert_true(outside == 0);
        outside = 0;
        for (int k = 0; k < M * DIM; k++)
            outside += k % DIM < 5 ? 0 : fabs((double)found.diff[KI_TAP_EMBEDDING][k]);
        assert_true(outside < 1e-5);
        made_free(&m);
    }
}

static void test_variants_of_the_widths(void **state) {
    (void)state;
    const ki_sizes sizes = {.n_classes = N_CLASSES, .embedding = DIM};
    ki_variant list[KI_MOST_VARIANTS];
    char text[64];
    made m = made_of("loss: {name: binomial}\nnested: [2, 6, 12]", &sizes);
    assert_int_equal(ki_objective_variants(m.objective, list, KI_MOST_VARIANTS), 3);
    assert_string_equal(list[0].name, "embedding_white");
    assert_string_equal(list[1].name, "first_2");
    assert_string_equal(list[2].name, "first_6");
    assert_int_equal(list[2].first, 6);
    assert_true(ki_variant_is_of_embedding(&list[2]));
    assert_true(ki_objective_lists_variants(m.objective));
    ki_objective_nested_text(m.objective, text, sizeof text);
    assert_string_equal(text, "2,6,12");
    made_free(&m);
}

static void test_what_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *recipe;
        int64_t heads;
        const char *message;
    } rows[] = {
        {"loss: {name: binomial}\nnested: [4, 4]", 1,
         "objective.nested is a list of 2; wanted up to 12 rising whole numbers: [32, 64, 128, 512]"},
        {"loss: {name: binomial}\nnested: 4", 1,
         "objective.nested is '4'; wanted up to 12 rising whole numbers: [32, 64, 128, 512]"},
        {"loss: {name: binomial}\nnested: [0, 4]", 1,
         "objective.nested is a list of 2; wanted up to 12 rising whole numbers: [32, 64, 128, 512]"},
        {"loss: {name: binomial}\nnested: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]", 1,
         "objective.nested is a list of 13; wanted up to 12 rising whole numbers: [32, 64, 128, 512]"},
        {"loss: {name: binomial}\nnested: [4, 13]", 1,
         "objective.nested has the width 13, and the embedding has 12 numbers"},
        {"loss: {name: binomial}\nnested: [4, 8]\nnested_weights: [1]", 1,
         "objective.nested_weights is a list of 1; wanted a number above 0 for each width"},
        {"loss: {name: binomial}\nnested: [4, 8]\nnested_weights: [1, -1]", 1,
         "objective.nested_weights is a list of 2; wanted a number above 0 for each width"},
        {"loss: {name: binomial}\nnested_weights: [1]", 1,
         "objective.nested_weights without objective.nested"},
        {"loss: {name: none}\nnested: [4]\nregularizers: [{name: norm_l2}]", 1,
         "objective.nested goes with a loss; the loss is none"},
        {"loss: {name: binomial}\nnested: [4]", 2,
         "objective.nested goes with a model of one head; this one has 2"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const ki_sizes sizes = {.n_classes = N_CLASSES, .embedding = DIM, .heads = rows[i].heads};
        kith_error err = {0};
        made m;
        assert_int_equal(made_try(rows[i].recipe, &sizes, &m, &err), KITH_EINVAL);
        if (strcmp(err.message, rows[i].message) != 0)
            fail_msg("the line is '%s', wanted '%s'", err.message, rows[i].message);
        assert_true(*err.hint || strstr(err.message, "wanted"));
    }
}

/* Without sizes the widths are held against the batch. */
static void test_a_batch_that_is_too_narrow(void **state) {
    (void)state;
    const ki_sizes sizes = {0};
    kith_error err = {0};
    ki_result found;
    made m = made_of("loss: {name: binomial}\nnested: [4, 13]", &sizes);
    const ki_batch batch = batch_of(1);
    assert_int_equal(ki_objective_evaluate(m.objective, &batch, &found, &err), KITH_EINVAL);
    assert_string_equal(err.message, "objective.nested has the width 13, and the embedding has 12 numbers");
    made_free(&m);
}

int main(void) {
    ki_threads_set(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_full_width_is_the_plain_loss), cmocka_unit_test(test_proxies_are_cut),
        cmocka_unit_test(test_variants_of_the_widths),           cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_a_batch_that_is_too_narrow),
    };
    return cmocka_run_group_tests_name("objective/nested", tests, NULL, NULL);
}
