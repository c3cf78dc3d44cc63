/* Bad input to regularizers and proxy losses: one line that names what was found. And no memory: every
 * allocation may fail, nothing is lost. */
#include "base/parallel.h"
#include "kith/log.h"
#include "objective/taps.h"

static void assert_line(const char *recipe, const kith_error *err, const char *message, const char *hint) {
    if (!strstr(err->message, message) || !strstr(err->hint, hint))
        fail_msg("%s: found \"%s\" (%s), wanted \"%s\" (%s)", recipe, err->message, err->hint, message, hint);
}

static void test_recipes(void **state) {
    (void)state;
    static const struct {
        const char *reg, *message, *hint;
    } rows[] = {
        {"joint_similarity, layers: [pooled, embeding]", "unknown layer of joint_similarity 'embeding'",
         "'embedding'"},
        {"joint_similarity, layers: pooled", "layers is 'pooled'", ""},
        {"joint_similarity, layers: []", "wanted a list of one to 3", ""},
        {"joint_similarity, layers: [pooled, pooled]", "layer pooled stands there twice", ""},
        {"joint_similarity, layers: [pooled, embedding], kernels: [{n: 3}]", "2 layers and 1 kernels",
         "one kernel for each layer"},
        {"joint_similarity, kernels: gausian", "unknown kernel 'gausian'", "'gaussian'"},
        {"joint_similarity, kernels: {kind: gausian}", "kind is 'gausian'", "gaussian|laplace|poly|mgf"},
        {"joint_similarity, layers: [pooled, embedding], kernels: [poly, [mgf]]",
         "kernels of joint_similarity: one is a list", ""},
        {"joint_mmd, kernels: {widht: 2}", "kernels of joint_mmd: unknown option 'widht'", ""},
        {"joint_mmd, kernels: {n: 0}", "n is '0'", "1 …"},
        {"horde, orders: 9", "orders is '9'", "0 … 8"},
        {"horde, orders: 1", "horde has orders 1; wanted 2 to 8", ""},
        {"horde, cascade: false", "unknown option 'cascade'", "'cascaded'"},
        {"density, eta: low", "eta is 'low'", "a number"},
        {"energy_confusion, form: log2", "form is 'log2'", "linear|log1p|log"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char recipe[256];
        kith_error err = {0};
        made m;
        snprintf(recipe, sizeof recipe, "loss: {name: raw}\nregularizers: [{name: %s}]", rows[i].reg);
        if (made_try(recipe, &taps_sizes, &m, &err) == KITH_OK) fail_msg("accepted: %s", recipe);
        assert_line(recipe, &err, rows[i].message, rows[i].hint);
    }
}

static void test_sizes_that_are_not_known(void **state) {
    (void)state;
    static const struct {
        const char *recipe, *message;
    } rows[] = {
        {"loss: {name: raw}\nregularizers: [{name: horde}]", "horde needs the channels of the map"},
        {"loss: {name: raw}\nregularizers: [{name: density}]", "density needs the number of classes"},
        {"loss: {name: raw}\nregularizers: [{name: joint_similarity}]",
         "a term that reads logits needs the number of classes"},
        {"loss: {name: arcface}", "arcface needs the number of classes"},
        {"loss: {name: normsoftmax}", "normsoftmax needs the number of classes"},
        {"loss: {name: proxy_nca}", "proxy_nca needs the number of classes"},
        {"loss: {name: proxy_anchor}", "proxy_anchor needs the number of classes"},
        {"loss: {name: softtriple}", "softtriple needs the number of classes"},
    };
    const ki_sizes sizes = {.embedding = 4};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        made m;
        assert_int_equal(made_try(rows[i].recipe, &sizes, &m, &err), KITH_EINVAL);
        assert_line(rows[i].recipe, &err, rows[i].message, "");
    }
    kith_error err = {0};
    made m;
    static const char *const alone = "loss: {name: none}\nregularizers: [{name: horde}]";
    assert_int_equal(made_try(alone, &taps_sizes, &m, &err), KITH_EINVAL);
    assert_line(alone, &err, "horde repeats the objective's loss, and the loss is none", "kith list losses");
}

static void refused(const char *reg, const ki_batch *batch, const char *message) {
    char recipe[256];
    kith_error err = {0};
    ki_result result;
    made m = made_of(taps_recipe("raw", reg, recipe, sizeof recipe), &taps_sizes);
    assert_true(ki_objective_evaluate(m.objective, batch, &result, &err) != KITH_OK);
    assert_line(recipe, &err, message, "");
    made_free(&m);
}

static void test_batches(void **state) {
    (void)state;
    static taps t;
    taps_fill(&t, 1);
    ki_batch batch = t.batch;
    batch.tap[KI_TAP_MAP].data = NULL;
    refused("horde", &batch, "the objective reads map, which the batch does not have");
    batch = t.batch;
    batch.tap[KI_TAP_POOLED].data = NULL;
    refused("joint_similarity", &batch, "the objective reads pooled, which the batch does not have");
    batch = t.batch;
    batch.tap[KI_TAP_WEIGHT].data = NULL;
    refused("row_norm_penalty", &batch, "the objective reads weight, which the batch does not have");
    batch = t.batch;
    batch.tap[KI_TAP_MAP].c = 3;
    batch.tap[KI_TAP_MAP].hw = 18;
    refused("horde", &batch, "map has 3 channels; the objective was made for 6");
    batch.tap[KI_TAP_MAP].hw = 10;
    refused("horde", &batch, "map has 54 numbers for an item; wanted c * h * w = 3 * 10");
    batch = t.batch;
    batch.tap[KI_TAP_MAP].rows = 7;
    refused("horde", &batch, "map is [7, 54]; wanted 24 rows");
    t.map[2 * TAPS_C * TAPS_HW + 5] = (ki_real)NAN;
    refused("horde", &t.batch, "map[2, 5] is NaN");
    taps_fill(&t, 1);
    t.label[3] = TAPS_CLASSES;
    refused("density", &t.batch, "label[3] is 9; wanted a class id from 0 to 8");
    for (size_t l = 0; ki_loss_at(l); l++) {
        if (!ki_loss_at(l)->is_proxy) continue;
        char recipe[64];
        kith_error err = {0};
        ki_result result;
        snprintf(recipe, sizeof recipe, "loss: {name: %s}", ki_loss_at(l)->method.name);
        made m = made_of(recipe, &taps_sizes);
        assert_int_equal(ki_objective_evaluate(m.objective, &t.batch, &result, &err), KITH_EINVAL);
        assert_line(recipe, &err, "label[3] is 9; wanted a class id from 0 to 8",
                    "one row for each class id");
        made_free(&m);
    }
}

/* Fail the n-th allocation, for every n until it works. */
static void torture(const char *recipe) {
    static taps t;
    taps_fill(&t, 1);
    kith_memory_stats before, after;
    bool is_done = false;
    for (int64_t n = 0; !is_done; n++) {
        made m;
        kith_error err = {0};
        ki_result result;
        ki_real *descriptor = NULL;
        int64_t dim = 0;
        kith_memory_stats_get(&before);
        ki_alloc_fail_after(n);
        kith_status status = made_try(recipe, &taps_sizes, &m, &err);
        if (status == KITH_OK) {
            status = ki_objective_evaluate(m.objective, &t.batch, &result, &err);
            if (status == KITH_OK && strstr(recipe, "horde"))
                status = ki_objective_describe(m.objective, &t.batch, &descriptor, &dim, &err);
            ki_free(descriptor);
            made_free(&m);
        }
        is_done = !ki_alloc_failed();
        ki_alloc_fail_after(-1);
        kith_memory_stats_get(&after);
        assert_int_equal(after.live_bytes, before.live_bytes);
        if (is_done)
            assert_ok(status, &err);
        else if (status != KITH_OK && status != KITH_ENOMEM)
            fail_msg("%s: failure %d gives %s", recipe, (int)n, err.message);
        assert_true(n < 1000);
    }
}

static void test_no_memory(void **state) {
    (void)state;
    char recipe[256];
    for (size_t r = 0; ki_reg_at(r); r++)
        torture(taps_recipe("amsoftmax", ki_reg_at(r)->method.name, recipe, sizeof recipe));
    for (size_t l = 0; ki_loss_at(l); l++) {
        if (ki_loss_at(l)->is_proxy)
            torture(taps_recipe(ki_loss_at(l)->method.name, "density", recipe, sizeof recipe));
    }
}

int main(void) {
    ki_threads_set(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recipes),
        cmocka_unit_test(test_sizes_that_are_not_known),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests_name("objective/reg errors", tests, NULL, NULL);
}
