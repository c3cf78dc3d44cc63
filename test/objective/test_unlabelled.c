/* Batches that end with items without a class: the loss and the terms of classes give what they give for the batch without them, bit by
 * bit, and terms of teachers count everything. */
#include "base/parallel.h"
#include "objective/taps.h"

enum { N_LABELLED = 16 };

/* Two evaluations of an objective, the second with what the first has left (a cross-batch memory). */
typedef struct outcome {
    double total[2];
    int64_t n_pos, n_neg;
    ki_real embedding[TAPS_M * TAPS_D], pooled[TAPS_M * TAPS_C];
    made made;
} outcome;

static kith_status evaluate(const char *recipe, const ki_batch *batch, outcome *ret, kith_error *err) {
    ki_result result;
    memset(ret, 0, sizeof *ret);
    ret->made = made_of(recipe, &taps_sizes);
    for (int k = 0; k < 2; k++) {
        ki_batch now = *batch;
        now.step = (uint64_t)k;
        KI_TRY(ki_objective_evaluate(ret->made.objective, &now, &result, err));
        ret->total[k] = result.total;
    }
    ret->n_pos = result.n_pos;
    ret->n_neg = result.n_neg;
    if (result.diff[KI_TAP_EMBEDDING])
        memcpy(ret->embedding, result.diff[KI_TAP_EMBEDDING], (size_t)(batch->m * TAPS_D) * sizeof(ki_real));
    if (result.diff_stopped) {
        for (int64_t i = 0; i < batch->m * TAPS_D; i++) ret->embedding[i] += result.diff_stopped[i];
    }
    if (result.diff[KI_TAP_POOLED])
        memcpy(ret->pooled, result.diff[KI_TAP_POOLED], (size_t)(batch->m * TAPS_C) * sizeof(ki_real));
    return KITH_OK;
}

static ki_batch first_rows(const ki_batch *batch, int64_t m) {
    ki_batch cut = *batch;
    cut.m = m;
    for (ki_tap tap = (ki_tap)0; tap < KI_N_TAPS; tap++) {
        if (tap != KI_TAP_WEIGHT && cut.tap[tap].data) cut.tap[tap].rows = m;
    }
    return cut;
}

static void same_bits(const char *recipe, const char *what, const ki_real *found, const ki_real *wanted,
                      int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (found[i] != wanted[i])
            fail_msg("%s: %s[%lld] is %.9g, wanted %.9g", recipe, what, (long long)i, (double)found[i],
                     (double)wanted[i]);
    }
}

/* Of both, where the rest of the first is to be 0. */
static void compare(const char *recipe, outcome *found, outcome *wanted) {
    for (int k = 0; k < 2; k++) {
        if (found->total[k] != wanted->total[k])
            fail_msg("%s: value %d is %.17g, wanted %.17g", recipe, k, found->total[k], wanted->total[k]);
    }
    assert_int_equal(found->n_pos, wanted->n_pos);
    assert_int_equal(found->n_neg, wanted->n_neg);
    same_bits(recipe, "embedding", found->embedding, wanted->embedding, TAPS_M * TAPS_D);
    same_bits(recipe, "pooled", found->pooled, wanted->pooled, TAPS_M * TAPS_C);
    for (size_t i = 0; ki_objective_param(found->made.objective, i); i++) {
        const ki_state *a = ki_objective_param(found->made.objective, i),
                       *b = ki_objective_param(wanted->made.objective, i);
        same_bits(recipe, a->name, a->value, b->value, a->count);
        if (a->diff) same_bits(recipe, a->name, a->diff, b->diff, a->count);
    }
    made_free(&found->made);
    made_free(&wanted->made);
}

static void check(const char *recipe) {
    static taps t;
    static outcome found, wanted;
    kith_error err = {0};
    taps_fill(&t, 5);
    const ki_batch cut = first_rows(&t.batch, N_LABELLED);
    assert_ok(evaluate(recipe, &cut, &wanted, &err), &err);
    for (int i = N_LABELLED; i < TAPS_M; i++) t.label[i] = -1;
    if (evaluate(recipe, &t.batch, &found, &err) != KITH_OK) fail_msg("%s: %s", recipe, err.message);
    compare(recipe, &found, &wanted);
}

static void test_every_loss_and_miner(void **state) {
    (void)state;
    char recipe[256];
    for (size_t i = 0; ki_loss_at(i); i++) {
        const ki_loss *loss = ki_loss_at(i);
        snprintf(recipe, sizeof recipe, "loss: {name: %s}", loss->method.name);
        check(recipe);
        if (loss->is_proxy) continue;
        snprintf(recipe, sizeof recipe, "loss: {name: %s}\nmemory: {size: 40, warmup: 0}", loss->method.name);
        check(recipe);
    }
    for (size_t i = 0; ki_miner_at(i); i++) {
        const char *name = ki_miner_at(i)->method.name;
        snprintf(recipe, sizeof recipe, "loss: {name: %s}\nminer: {name: %s}",
                 strstr(name, "distance") ? "margin" : "contrastive", name);
        check(recipe);
    }
}

static bool reads_map(const char *recipe) {
    made m = made_of(recipe, &taps_sizes);
    const bool reads = ki_objective_taps(m.objective) & KI_TAP_BIT(KI_TAP_MAP);
    made_free(&m);
    return reads;
}

static void test_every_regularizer(void **state) {
    (void)state;
    char recipe[256];
    int n_checked = 0;
    for (size_t i = 0; ki_reg_at(i); i++) {
        const ki_reg *reg = ki_reg_at(i);
        if (reg->counts_all) continue;
        taps_recipe("binomial", reg->method.name, recipe, sizeof recipe);
        if (reads_map(recipe)) continue;
        check(recipe);
        n_checked++;
    }
    check("loss: none\nregularizers: [{name: joint_similarity, layers: [pooled, embedding, logits]}]");
    check("loss: {name: amsoftmax}\nregularizers: [{name: joint_mmd, layers: [logits], weight: 0.5}]");
    assert_true(n_checked >= 8);
}

/* What counts all rows does not look at classes at all. */
static void test_terms_of_teachers_count_all(void **state) {
    (void)state;
    static const char three[] =
        "loss: none\n"
        "regularizers: [{name: match, form: squared}, {name: relational}, {name: match, teacher: 1}]";
    static const char *const recipes[] = {
        "loss: none\nregularizers: [{name: relational}]",
        "loss: none\nregularizers: [{name: relational, form: softmax, teacher: 1}]",
        "loss: none\nregularizers: [{name: match}]", three};
    static taps t;
    static outcome found, wanted;
    kith_error err = {0};
    for (size_t r = 0; r < N_ROWS(recipes); r++) {
        taps_fill(&t, 6);
        assert_ok(evaluate(recipes[r], &t.batch, &wanted, &err), &err);
        for (int i = 0; i < TAPS_M; i++) t.label[i] = -1;
        assert_ok(evaluate(recipes[r], &t.batch, &found, &err), &err);
        compare(recipes[r], &found, &wanted);
    }
}

/* Beside a loss both are there: the loss of some rows, the teacher's term of all. */
static void test_both_kinds_together(void **state) {
    (void)state;
    static taps t;
    static outcome both, loss, match;
    kith_error err = {0};
    taps_fill(&t, 7);
    for (int i = N_LABELLED; i < TAPS_M; i++) t.label[i] = -1;
    assert_ok(
        evaluate("loss: {name: binomial}\nregularizers: [{name: match, weight: 0.5}]", &t.batch, &both, &err),
        &err);
    assert_ok(evaluate("loss: {name: binomial}", &t.batch, &loss, &err), &err);
    assert_ok(evaluate("loss: none\nregularizers: [{name: match, weight: 0.5}]", &t.batch, &match, &err),
              &err);
    assert_true(fabs(both.total[0] - loss.total[0] - match.total[0]) < 1e-6);
    for (int i = 0; i < TAPS_M * TAPS_D; i++)
        assert_float_equal(both.embedding[i], loss.embedding[i] + match.embedding[i], 1e-6);
    assert_true(match.embedding[(TAPS_M - 1) * TAPS_D] != 0);
    made_free(&both.made), made_free(&loss.made), made_free(&match.made);
}

static void refused(const char *recipe, const ki_batch *batch, kith_status status, const char *line) {
    kith_error err = {0};
    ki_result result;
    made m = made_of(recipe, &taps_sizes);
    assert_int_equal(ki_objective_evaluate(m.objective, batch, &result, &err), status);
    if (!strstr(err.message, line)) fail_msg("found: %s\nwanted: %s", err.message, line);
    made_free(&m);
}

static void test_what_is_refused(void **state) {
    (void)state;
    static taps t;
    taps_fill(&t, 8);
    t.label[3] = -1;
    refused("loss: {name: binomial}", &t.batch, KITH_EINVAL, "label[3] is -1, and label[4] is 1");
    for (int i = 0; i < TAPS_M; i++) t.label[i] = -1;
    refused("loss: {name: binomial}", &t.batch, KITH_EINVAL,
            "no item of the batch has a class, and binomial counts");
    refused("loss: none\nregularizers: [{name: match}, {name: intra_class}]", &t.batch, KITH_EINVAL,
            "and intra_class counts only those that have");
    t.label[5] = -2;
    refused("loss: none\nregularizers: [{name: match}]", &t.batch, KITH_EINVAL, "label[5] is -2");
    taps_fill(&t, 8);
    t.label[TAPS_M - 1] = -1;
    refused("loss: {name: binomial}\nregularizers: [{name: horde, orders: 2, dimension: 4, embedding: 3}]",
            &t.batch, KITH_EUNSUPPORTED,
            "horde reads the map of items with classes alone, and 1 of 24 have none");
}

/* Pair weights are of the items that have a class. */
static void test_weights(void **state) {
    (void)state;
    static taps t;
    kith_error err = {0};
    ki_real *wanted = NULL, *found = NULL;
    int64_t n = 0;
    made m = made_of("loss: {name: binomial}", &taps_sizes);
    taps_fill(&t, 9);
    const ki_batch cut = first_rows(&t.batch, N_LABELLED);
    assert_ok(ki_objective_weights(m.objective, &cut, &wanted, NULL, &n, &err), &err);
    for (int i = N_LABELLED; i < TAPS_M; i++) t.label[i] = -1;
    assert_ok(ki_objective_weights(m.objective, &t.batch, &found, NULL, &n, &err), &err);
    assert_int_equal(n, N_LABELLED);
    same_bits("binomial", "weights", found, wanted, N_LABELLED * N_LABELLED);
    ki_free(found), ki_free(wanted);
    made_free(&m);
}

int main(void) {
    ki_threads_set(1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_loss_and_miner),
                                       cmocka_unit_test(test_every_regularizer),
                                       cmocka_unit_test(test_terms_of_teachers_count_all),
                                       cmocka_unit_test(test_both_kinds_together),
                                       cmocka_unit_test(test_what_is_refused),
                                       cmocka_unit_test(test_weights)};
    return cmocka_run_group_tests_name("objective/unlabelled", tests, NULL, NULL);
}
