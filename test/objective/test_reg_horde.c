/* HORDE beyond its golden values: descriptors for test time against plain loops, the budget of kept blocks,
 * working memory at the paper's sizes, threads. */
#include "base/parallel.h"
#include "objective/reg/moments.h"
#include "objective/taps.h"

static double entry(const ki_objective *o, const char *name, int64_t row, int64_t col) {
    const ki_state *param = ki_objective_param_named((ki_objective *)(uintptr_t)o, name);
    assert_non_null(param);
    return (double)param->value[row * param->shape.dim[1] + col];
}

/* z_k of one item, straight from Alg. 1. */
static void plain_order(const ki_objective *o, const ki_real *map, int k, int dimension, int e, double *z) {
    double norm = 0;
    for (int out = 0; out < e; out++) z[out] = 0;
    for (int d = 0; d < dimension; d++) {
        double g = 0;
        for (int at = 0; at < TAPS_HW; at++) {
            double phi = 1 / sqrt((double)dimension);
            for (int t = 1; t <= k; t++) {
                char name[32];
                double p = 0;
                snprintf(name, sizeof name, "horde.w%d", t);
                for (int c = 0; c < TAPS_C; c++) p += (double)map[c * TAPS_HW + at] * entry(o, name, c, d);
                phi *= p;
            }
            g += phi / TAPS_HW;
        }
        for (int out = 0; out < e; out++) {
            char name[32];
            snprintf(name, sizeof name, "horde.e%d", k);
            z[out] += g * entry(o, name, d, out);
        }
    }
    for (int out = 0; out < e; out++) norm += z[out] * z[out];
    for (int out = 0; out < e; out++) z[out] /= sqrt(norm);
}

static void test_descriptors(void **state) {
    (void)state;
    enum { K = 4, DIMENSION = 13, E = 3, ALL = TAPS_D + (K - 1) * E };
    static taps t;
    taps_fill(&t, 1);
    made m = made_of(
        "loss: {name: binomial}\nregularizers: [{name: horde, orders: 4, dimension: 13, embedding: 3}]",
        &taps_sizes);
    kith_error err = {0};
    ki_real *found = NULL;
    int64_t dim = 0, width = 0;
    t.batch.label = NULL; /* not read */
    assert_ok(ki_objective_describe(m.objective, &t.batch, &found, &dim, &err), &err);
    assert_int_equal(dim, ALL);
    assert_int_equal(ki_objective_describe_dim(m.objective), ALL);
    assert_int_equal(ki_objective_describe_n(m.objective, &width), K - 1);
    assert_int_equal(width, E);
    for (int i = 0; i < TAPS_M; i++) {
        double wanted[ALL], norm = 0;
        for (int k = 0; k < TAPS_D; k++) norm += (double)t.x[i * TAPS_D + k] * (double)t.x[i * TAPS_D + k];
        for (int k = 0; k < TAPS_D; k++) wanted[k] = (double)t.x[i * TAPS_D + k] / sqrt(norm);
        for (int k = 2; k <= K; k++)
            plain_order(m.objective, t.map + i * TAPS_C * TAPS_HW, k, DIMENSION, E,
                        wanted + TAPS_D + (k - 2) * E);
        for (int k = 0; k < ALL; k++) {
            if (!(fabs((double)found[i * ALL + k] - wanted[k]) < 1e-4))
                fail_msg("item %d, entry %d: %.7g, wanted %.7g", i, k, (double)found[i * ALL + k], wanted[k]);
        }
    }
    ki_free(found);
    found = NULL;
    t.batch.tap[KI_TAP_MAP].rows--;
    assert_int_equal(ki_objective_describe(m.objective, &t.batch, &found, &dim, &err), KITH_ESHAPE);
    t.batch.tap[KI_TAP_MAP].rows++;
    t.map[5] = (ki_real)NAN;
    assert_int_equal(ki_objective_describe(m.objective, &t.batch, &found, &dim, &err), KITH_ENUMERIC);
    assert_null(found);
    made_free(&m);
    made none = made_of("loss: {name: binomial}\nregularizers: [entropy]", &taps_sizes);
    assert_int_equal(ki_objective_describe_dim(none.objective), 0);
    assert_int_equal(ki_objective_describe_n(none.objective, &width), 0);
    assert_int_equal(width, 0);
    assert_int_equal(ki_objective_describe(none.objective, &t.batch, &found, &dim, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "no term of the objective has descriptors of its own (horde has)"));
    made_free(&none);
}

/* What can be scored: names, and which parts of a row they are. */
static void test_variants(void **state) {
    (void)state;
    enum { ORDERS = 3, E = 3, ALL = 6 + ORDERS };
    ki_variant list[KI_MOST_VARIANTS];
    made m = made_of(
        "loss: {name: binomial}\nregularizers: [{name: horde, orders: 3, dimension: 13, embedding: 3}]",
        &taps_sizes);
    assert_true(ki_objective_lists_variants(m.objective));
    assert_int_equal(ki_objective_variants(m.objective, list, KI_MOST_VARIANTS), ALL);
    const ki_parts parts = ki_objective_parts(m.objective);
    assert_int_equal(parts.n, ORDERS);
    assert_int_equal(ki_parts_before(&parts, parts.n), ki_objective_describe_dim(m.objective));
    assert_int_equal(ki_parts_before(&parts, 2), TAPS_D + E);
    static const char *const names[ALL] = {"all_orders",      "all_orders_white", "all_orders_each_white",
                                           "embedding_white", "transductive",     "transductive_white",
                                           "order_2",         "order_3",          "side_by_side"};
    for (int i = 0; i < ALL; i++) {
        const ki_variant *v = &list[i];
        const bool alone = i == 6 || i == 7;
        assert_string_equal(v->name, names[i]);
        assert_int_equal(v->n_parts, alone || i == 3 ? 1 : ORDERS);
        assert_int_equal(v->first_part, alone ? i - 5 : 0);
        assert_true(((v->has & KI_VARIANT_CURVE) != 0) == alone);
        assert_true((v->fitted_on == KI_FITTED_TEST) == (strncmp(v->name, "transductive", 12) == 0));
        assert_true(strlen(v->name) < KI_VARIANT_NAME);
    }
    /* A list that is too short for all. */
    list[2].name = "as it was";
    assert_int_equal(ki_objective_variants(m.objective, list, 2), ALL);
    assert_string_equal(list[2].name, "as it was");
    made_free(&m);
    made none = made_of("loss: {name: binomial}\nregularizers: [entropy]", &taps_sizes);
    assert_false(ki_objective_lists_variants(none.objective));
    assert_int_equal(ki_objective_variants(none.objective, list, KI_MOST_VARIANTS), 1);
    assert_string_equal(list[0].name, "embedding_white");
    assert_int_equal(ki_objective_parts(none.objective).n, 1);
    assert_int_equal(ki_objective_parts(none.objective).width[0], TAPS_D);
    made_free(&none);
}

/* Moments and their gradients with a budget; dimension 1,200 is three blocks. */
enum { M = 4, C = 5, HW = 6, DIMENSION = 1200, K = 3 };

static void moments_run(size_t keep_bytes, bool cascaded, ki_real *diff_map, ki_real *diff_w) {
    static ki_real map[M * C * HW], w[5 * C * DIMENSION];
    const int n = ki_moments_projections(K, cascaded);
    ki_rng rng = ki_rng_at(5, KI_RNG_TEST, 0, 0);
    for (size_t i = 0; i < N_ROWS(map); i++) map[i] = (ki_real)ki_rng_normal(&rng);
    for (size_t i = 0; i < N_ROWS(w); i++) w[i] = (ki_real)ki_rng_normal(&rng);
    const ki_tap_data data = {.data = map, .rows = M, .cols = C * HW, .c = C, .hw = HW};
    ki_work work = {0};
    kith_error err = {0};
    ki_moments o = {.m = M,
                    .c = C,
                    .hw = HW,
                    .dim = DIMENSION,
                    .orders = K,
                    .cascaded = cascaded,
                    .keep_bytes = keep_bytes,
                    .work = &work};
    ki_real *diff[KI_MOST_PROJECTIONS] = {0};
    memset(diff_map, 0, sizeof map);
    memset(diff_w, 0, sizeof w);
    for (int t = 0; t < n; t++) o.w[t] = w + t * C * DIMENSION, diff[t] = diff_w + t * C * DIMENSION;
    assert_ok(ki_moments_forward(&o, &data, &err), &err);
    for (int k = 2; k <= K; k++) {
        for (int64_t i = 0; i < M * DIMENSION; i++) o.g[k][i] = (ki_real)(k + (double)(i % 7));
    }
    assert_ok(ki_moments_backward(&o, diff_map, diff, &err), &err);
    ki_work_release(&work);
}

static void test_blocks_kept_or_computed_again(void **state) {
    (void)state;
    static ki_real map_1[M * C * HW], map_2[M * C * HW], w_1[5 * C * DIMENSION], w_2[5 * C * DIMENSION];
    const size_t block = K * M * HW * 512 * sizeof(ki_real);
    const size_t budgets[] = {0, block + block / 2, 2 * block};
    for (int cascaded = 0; cascaded < 2; cascaded++) {
        moments_run((size_t)1 << 30, cascaded, map_1, w_1);
        for (size_t b = 0; b < N_ROWS(budgets); b++) {
            moments_run(budgets[b], cascaded, map_2, w_2);
            assert_memory_equal(map_1, map_2, sizeof map_1);
            assert_memory_equal(w_1, w_2, sizeof w_1);
        }
    }
}

/* Dimension 8192 on 7 x 7 positions: [items * positions, dimension] is never held for all orders. */
static void test_memory_is_bounded(void **state) {
    (void)state;
    enum { ITEMS = 8, CHANNELS = 2, SIDE = 49, BIG = 8192, ORDERS = 5 };
    const size_t budget = (size_t)20 << 20;
    ki_real *map = ki_zalloc(ITEMS * CHANNELS * SIDE, sizeof *map), *w = ki_zalloc(CHANNELS * BIG, sizeof *w);
    ki_real *diff[KI_MOST_PROJECTIONS] = {0};
    const ki_tap_data data = {.data = map, .rows = ITEMS, .cols = CHANNELS * SIDE, .c = CHANNELS, .hw = SIDE};
    ki_work work = {0};
    kith_error err = {0};
    ki_moments o = {.m = ITEMS,
                    .c = CHANNELS,
                    .hw = SIDE,
                    .dim = BIG,
                    .orders = ORDERS,
                    .cascaded = true,
                    .keep_bytes = budget,
                    .work = &work};
    for (int t = 0; t < ORDERS; t++) o.w[t] = w;
    assert_ok(ki_moments_forward(&o, &data, &err), &err);
    assert_ok(ki_moments_backward(&o, map, diff, &err), &err);
    const size_t whole = (size_t)ORDERS * ITEMS * SIDE * BIG * sizeof(ki_real);
    print_message("%zu bytes of work; all projected positions would be %zu\n", work.peak_bytes, whole);
    assert_true(whole > 3 * budget);
    assert_true(work.peak_bytes < budget + budget / 2); /* the budget, one block more, and the moments */
    ki_work_release(&work);
    ki_free(map);
    ki_free(w);
}

static void test_threads_do_not_matter(void **state) {
    (void)state;
    static taps t;
    static ki_real first[TAPS_M * TAPS_C * TAPS_HW];
    const int n_before = ki_threads();
    taps_fill(&t, 1);
    for (int threads = 1; threads <= 3; threads++) {
        ki_threads_set(threads);
        made m =
            made_of("loss: {name: binomial}\nregularizers: [{name: horde, dimension: 700, embedding: 40}]",
                    &taps_sizes);
        kith_error err = {0};
        ki_result result;
        assert_ok(ki_objective_evaluate(m.objective, &t.batch, &result, &err), &err);
        if (threads == 1) memcpy(first, result.diff[KI_TAP_MAP], sizeof first);
        assert_memory_equal(first, result.diff[KI_TAP_MAP], sizeof first);
        made_free(&m);
    }
    ki_threads_set(n_before);
}

/* What starts a training run: scales and signs of the projections. */
static void test_initial_values(void **state) {
    (void)state;
    made m = made_of("loss: {name: raw}\nregularizers: [{name: horde, dimension: 90, embedding: 30}]",
                     &taps_sizes);
    const ki_state *w = ki_objective_param_named(m.objective, "horde.w5");
    const double bound = sqrt(6.0 / (TAPS_C + 90));
    double most = 0;
    assert_non_null(w);
    assert_true(w->shape.dim[0] == TAPS_C && w->shape.dim[1] == 90 && w->lr_multiplier == 1);
    for (int64_t i = 0; i < w->count; i++) most = fmax(most, fabs((double)w->value[i]));
    assert_true(most <= bound && most > 0.95 * bound);
    assert_non_null(ki_objective_param_named(m.objective, "horde.e2"));
    assert_null(ki_objective_param_named(m.objective, "horde.e6"));
    made_free(&m);
    m = made_of(
        "loss: {name: raw}\nregularizers: [{name: horde, dimension: 90, embedding: 0, trained: false}]",
        &taps_sizes);
    w = ki_objective_param_named(m.objective, "horde.w1");
    int64_t n_up = 0;
    char first[17] = "";
    for (int64_t i = 0; i < w->count; i++) {
        assert_true(fabs((double)w->value[i]) == 1);
        n_up += w->value[i] > 0;
        if (i < 16) first[i] = w->value[i] > 0 ? '+' : '-';
    }
    assert_string_equal(first, "--+-+++-------++"); /* what a seed gives stays: a run can be repeated later */
    assert_true(w->lr_multiplier == 0 && !w->diff);
    assert_true(llabs(2 * n_up - w->count) < w->count / 5);
    assert_null(ki_objective_param_named(m.objective, "horde.e2"));
    made_free(&m);
}

/* HORDE has a copy of what the loss learns under names of its own; the term after it has its plain names again. */
static void test_names_of_a_copy(void **state) {
    (void)state;
    made m = made_of(
        "loss: amsoftmax\nregularizers: [{name: horde, orders: 3, dimension: 5, embedding: 4}, density]",
        &taps_sizes);
    int n_proxies = 0;
    for (size_t i = 0; ki_objective_param(m.objective, i); i++)
        n_proxies += strstr(ki_objective_param(m.objective, i)->name, "proxies") != NULL;
    assert_int_equal(n_proxies, 3); /* the loss's, and one for each order */
    assert_non_null(ki_objective_param_named(m.objective, "proxies"));
    assert_non_null(ki_objective_param_named(m.objective, "density.alpha"));
    made_free(&m);
}

/* The state of three orders of 20 numbers, with or without embeddings of 7. */
static bool saved_shape(const void *user, const char *name, ki_shape *ret_shape) {
    const bool *has_embedding = user;
    static const char *const projections[] = {"horde.w1", "horde.w2", "horde.w3"};
    static const char *const embeddings[] = {"horde.e2", "horde.e3"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, projections[i]) == 0) return *ret_shape = KI_SHAPE2(TAPS_C, 20), true;
    }
    for (int i = 0; i < 2 && *has_embedding; i++) {
        if (strcmp(name, embeddings[i]) == 0) return *ret_shape = KI_SHAPE2(20, 7), true;
    }
    return false;
}

/* One projection is no state of HORDE's: it has at least two orders. */
static bool one_projection(const void *user, const char *name, ki_shape *ret_shape) {
    (void)user;
    if (strcmp(name, "horde.w1") != 0) return false;
    return *ret_shape = KI_SHAPE2(TAPS_C, 20), true;
}

/* A recipe need not repeat what a saved state shows; what it says goes first. */
static void test_sizes_of_a_saved_state(void **state) {
    (void)state;
    bool has_embedding = true;
    const ki_saved saved = {.shape = saved_shape, .user = &has_embedding};
    ki_sizes sizes = taps_sizes;
    sizes.saved = &saved;
    made m = made_of("loss: {name: raw}\nregularizers: [{name: horde}]", &sizes);
    const ki_state *e = ki_objective_param_named(m.objective, "horde.e3");
    assert_non_null(e);
    assert_true(e->shape.dim[0] == 20 && e->shape.dim[1] == 7);
    assert_null(ki_objective_param_named(m.objective, "horde.w4"));
    made_free(&m);
    has_embedding = false;
    m = made_of("loss: {name: raw}\nregularizers: [{name: horde, orders: 4}]", &sizes);
    assert_null(ki_objective_param_named(m.objective, "horde.e2"));
    assert_non_null(ki_objective_param_named(m.objective, "horde.w4"));
    made_free(&m);
    const ki_saved other = {.shape = one_projection};
    sizes.saved = &other;
    m = made_of("loss: {name: raw}\nregularizers: [{name: horde, dimension: 10, embedding: 3}]", &sizes);
    assert_non_null(ki_objective_param_named(m.objective, "horde.w5")); /* as without a state */
    assert_null(ki_objective_param_named(m.objective, "horde.w6"));
    made_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_variants),
        cmocka_unit_test(test_blocks_kept_or_computed_again),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_initial_values),
        cmocka_unit_test(test_names_of_a_copy),
        cmocka_unit_test(test_sizes_of_a_saved_state),
    };
    return cmocka_run_group_tests_name("objective/reg horde", tests, NULL, NULL);
}
