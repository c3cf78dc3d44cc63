/* Every regularizer on batches that a sampler should not give, but may: finite values and gradients at
 * every tap and parameter. */
#include "base/parallel.h"
#include "objective/taps.h"

static void assert_finite(const char *recipe, const char *batch, const char *what, const ki_real *v,
                          int64_t n) {
    for (int64_t i = 0; v && i < n; i++) {
        if (!isfinite(v[i]))
            fail_msg("%s\non %s: %s[%lld] is %g", recipe, batch, what, (long long)i, (double)v[i]);
    }
}

static void check(const char *recipe, const char *name, const ki_batch *batch) {
    made m = made_of(recipe, &taps_sizes);
    kith_error err = {0};
    ki_result result;
    const kith_status status = ki_objective_evaluate(m.objective, batch, &result, &err);
    if (status != KITH_OK) fail_msg("%s\non %s: %s", recipe, name, err.message);
    for (size_t i = 0; i < result.n_terms; i++) {
        if (!isfinite(result.term[i].value))
            fail_msg("%s\non %s: value of %s is %g", recipe, name, result.term[i].name, result.term[i].value);
    }
    for (int tap = 0; tap < KI_N_TAPS; tap++)
        assert_finite(recipe, name, ki_tap_name((ki_tap)tap), result.diff[tap],
                      batch->tap[tap].rows * batch->tap[tap].cols);
    assert_finite(recipe, name, "stopped", result.diff_stopped, batch->m * TAPS_D);
    for (size_t i = 0; ki_objective_param(m.objective, i); i++) {
        const ki_state *param = ki_objective_param(m.objective, i);
        assert_finite(recipe, name, param->name, param->diff, param->count);
    }
    made_free(&m);
}

static void scale(ki_real *x, size_t n, double by) {
    for (size_t i = 0; i < n; i++) x[i] = (ki_real)((double)x[i] * by);
}

static void scale_all(taps *t, double by) {
    scale(t->x, N_ROWS(t->x), by);
    scale(t->pooled, N_ROWS(t->pooled), by);
    scale(t->map, N_ROWS(t->map), by);
    scale(t->weight, N_ROWS(t->weight), by);
}

static void alike(ki_real *x, int64_t n, int64_t cols) {
    for (int64_t i = cols; i < n; i++) x[i] = x[i % cols];
}

static void alike_all(taps *t) {
    alike(t->x, (int64_t)N_ROWS(t->x), TAPS_D);
    alike(t->pooled, (int64_t)N_ROWS(t->pooled), TAPS_C);
    alike(t->map, (int64_t)N_ROWS(t->map), TAPS_C * TAPS_HW);
}

static void on_every_batch(const char *recipe) {
    static taps t;
    taps_fill(&t, 1);
    check(recipe, "a plain batch", &t.batch);
    for (int i = 0; i < TAPS_M; i++) t.label[i] = 3;
    check(recipe, "one class", &t.batch);
    for (int i = 0; i < TAPS_M; i++) t.label[i] = i % TAPS_CLASSES;
    t.batch.m = TAPS_CLASSES;
    for (int tap = 0; tap < KI_N_TAPS; tap++) {
        if (tap != KI_TAP_WEIGHT) t.batch.tap[tap].rows = TAPS_CLASSES;
    }
    check(recipe, "all distinct", &t.batch);
    t.batch.m = 1;
    for (int tap = 0; tap < KI_N_TAPS; tap++) {
        if (tap != KI_TAP_WEIGHT) t.batch.tap[tap].rows = 1;
    }
    check(recipe, "a single item", &t.batch);
    static const double sizes[] = {0.01, 100, 1e-6, 0};
    static const char *const names[] = {"norms of 0.01", "norms of 100", "norms of 1e-6", "zeros"};
    for (size_t s = 0; s < N_ROWS(sizes); s++) {
        taps_fill(&t, 2);
        scale_all(&t, sizes[s]);
        check(recipe, names[s], &t.batch);
    }
    taps_fill(&t, 3);
    alike_all(&t);
    check(recipe, "points that coincide", &t.batch);
    scale_all(&t, 100);
    for (int i = 0; i < TAPS_M; i++) t.label[i] = 0;
    check(recipe, "one class in one point", &t.batch);
    taps_fill(&t, 4);
    memcpy(t.x + TAPS_D, t.x, TAPS_D * sizeof *t.x);
    memcpy(t.x + 9 * TAPS_D, t.x, TAPS_D * sizeof *t.x);
    memcpy(t.pooled + 9 * TAPS_C, t.pooled, TAPS_C * sizeof *t.pooled);
    check(recipe, "duplicates", &t.batch);
}

static void test_every_regularizer(void **state) {
    (void)state;
    char recipe[256];
    for (size_t r = 0; ki_reg_at(r); r++) {
        on_every_batch(taps_recipe("contrastive", ki_reg_at(r)->method.name, recipe, sizeof recipe));
        on_every_batch(taps_recipe("amsoftmax", ki_reg_at(r)->method.name, recipe, sizeof recipe));
    }
}

static void test_forms_and_kernels(void **state) {
    (void)state;
    static const char *const regs[] = {
        "energy_confusion, form: log",
        "energy_confusion, form: linear, pairs: 7",
        "energy_confusion, form: log, pairs: 7, normalize: true",
        "joint_similarity, kernels: laplace",
        "joint_similarity, kernels: {kind: poly, degree: 5}",
        "joint_similarity, kernels: mgf, normalize: false",
        "joint_mmd, kernels: mgf, normalize: false",
        "joint_mmd, kernels: laplace",
        "joint_similarity, kernels: {bandwidth: 1e-20}",
        "density, normalize: false",
        "global_orthogonal, normalize: false",
        "entropy, normalize: false",
        "intra_class, normalize: false",
        "horde, orders: 8, dimension: 5, embedding: 0, trained: false",
        "horde, orders: 4, dimension: 5, embedding: 3, cascaded: false",
    };
    char recipe[256];
    for (size_t r = 0; r < N_ROWS(regs); r++) {
        snprintf(recipe, sizeof recipe, "loss: {name: binomial}\nregularizers: [{name: %s}]", regs[r]);
        on_every_batch(recipe);
    }
}

static void assert_all_zero(const char *recipe, const char *what, const ki_real *v, int64_t n) {
    for (int64_t i = 0; v && i < n; i++) {
        if (v[i] != 0) fail_msg("%s: %s[%lld] is %g", recipe, what, (long long)i, (double)v[i]);
    }
}

/* With a weight of 0 a term has its value and moves nothing, to the last bit. */
static void test_a_weight_of_0_moves_nothing(void **state) {
    (void)state;
    static taps t;
    taps_fill(&t, 1);
    for (size_t r = 0; ki_reg_at(r); r++) {
        const char *reg = ki_reg_at(r)->method.name;
        if (strcmp(reg, "horde") == 0) continue; /* goes with a loss */
        for (int i = 0; i < 4; i++) {
            char recipe[256];
            kith_error err = {0};
            ki_result result;
            snprintf(
                recipe, sizeof recipe,
                "loss: none\nregularizers: [{name: %s, weight: 0, normalize: %s, stops_at_embedding: %s}]",
                reg, i & 1 ? "true" : "false", i & 2 ? "true" : "false");
            made m = made_of(recipe, &taps_sizes);
            assert_ok(ki_objective_evaluate(m.objective, &t.batch, &result, &err), &err);
            assert_true(result.total == 0);
            for (int tap = 0; tap < KI_N_TAPS; tap++)
                assert_all_zero(recipe, ki_tap_name((ki_tap)tap), result.diff[tap],
                                t.batch.tap[tap].rows * t.batch.tap[tap].cols);
            assert_all_zero(recipe, "stopped", result.diff_stopped, TAPS_M * TAPS_D);
            for (size_t k = 0; ki_objective_param(m.objective, k); k++) {
                const ki_state *param = ki_objective_param(m.objective, k);
                assert_all_zero(recipe, param->name, param->diff, param->count);
            }
            made_free(&m);
        }
    }
}

/* Two items far out: a kernel stays within 1e30 of 0 on either side, and has no slope beyond. */
static void test_kernels_are_bounded(void **state) {
    (void)state;
    const ki_sizes sizes = {.n_classes = 2, .embedding = 1};
    static const int32_t label[] = {0, 1};
    for (int side = -1; side <= 1; side += 2) {
        const ki_real x[] = {(ki_real)1e6, (ki_real)(side * 1e6)}; /* (+-1e12 + 1)^3 */
        const ki_batch batch = {
            .m = 2, .label = label, .tap[KI_TAP_EMBEDDING] = {.data = x, .rows = 2, .cols = 1}};
        made m = made_of(
            "loss: none\nregularizers: [{name: joint_similarity, layers: [embedding], normalize: false, "
            "kernels: {kind: poly, degree: 3}}]",
            &sizes);
        kith_error err = {0};
        ki_result result;
        assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
        if (!(fabs(result.total - side * 1e30) <= 1e24)) fail_msg("%g, wanted %d e30", result.total, side);
        assert_all_zero("poly", "embedding", result.diff[KI_TAP_EMBEDDING], 2);
        made_free(&m);
    }
}

/* A map of one channel, or of one position, is a map. */
static void test_smallest_maps(void **state) {
    (void)state;
    static taps t;
    taps_fill(&t, 1);
    for (int positions = 0; positions <= 1; positions++) {
        const int64_t c = positions ? 1 : TAPS_C, hw = positions ? TAPS_C : 1;
        ki_sizes sizes = taps_sizes;
        sizes.map = c;
        t.batch.tap[KI_TAP_MAP] =
            (ki_tap_data){.data = t.map, .rows = TAPS_M, .cols = TAPS_C, .c = c, .hw = hw};
        made m = made_of("loss: raw\nregularizers: [{name: horde, orders: 2, dimension: 5, embedding: 3}]",
                         &sizes);
        kith_error err = {0};
        ki_result result;
        assert_ok(ki_objective_evaluate(m.objective, &t.batch, &result, &err), &err);
        assert_true(isfinite(result.total));
        made_free(&m);
    }
}

int main(void) {
    ki_threads_set(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_regularizer),
        cmocka_unit_test(test_forms_and_kernels),
        cmocka_unit_test(test_a_weight_of_0_moves_nothing),
        cmocka_unit_test(test_kernels_are_bounded),
        cmocka_unit_test(test_smallest_maps),
    };
    return cmocka_run_group_tests_name("objective/reg on degenerate batches", tests, NULL, NULL);
}
