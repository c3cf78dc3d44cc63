/* An objective as a thing that runs: errors, memory, threads, the cross-batch memory, state. */
#include "base/parallel.h"
#include "base/rng.h"
#include "kith/log.h"
#include "objective/cases.h"

static void fill(ki_real *x, int32_t *label, int64_t m, int64_t dim, int64_t images, uint32_t seed) {
    ki_rng rng = ki_rng_at(seed, KI_RNG_TEST, 0, 0);
    for (int64_t i = 0; i < m; i++) {
        label[i] = (int32_t)(i / images);
        for (int64_t k = 0; k < dim; k++)
            x[i * dim + k] = (ki_real)(ki_rng_normal(&rng) + 3 * (double)(k == label[i] % dim));
    }
}

static ki_batch batch_of(const ki_real *x, const int32_t *label, int64_t m, int64_t dim) {
    return (ki_batch){.m = m, .label = label, .tap[KI_TAP_EMBEDDING] = {.data = x, .rows = m, .cols = dim}};
}

static void test_recipe_errors(void **state) {
    (void)state;
    static const struct {
        const char *recipe, *message, *hint;
    } rows[] = {
        {"miner: {name: all}", "objective has no loss", "none is one of them"},
        {"loss: {name: tripelt}", "unknown loss 'tripelt'", "'triplet'"},
        {"loss: {name: triplet, margn: 1}", "objective.loss (triplet): unknown option 'margn'", "'margin'"},
        {"loss: {name: triplet, margin: wide}", "margin is 'wide'", "a number"},
        {"loss: {name: triplet, margin: -1}", "margin is '-1'", "0 …"},
        {"loss: {name: triplet, distance: cosin}", "distance is 'cosin'", "sqeuclidean|euclidean|cosine"},
        {"loss: {name: raw}\nminer: {name: vthn}", "unknown miner 'vthn'", "'vthm'"},
        {"loss: {name: raw}\nregularizers: [{name: energy_confusoin}]",
         "unknown regularizer 'energy_confusoin'", "'energy_confusion'"},
        {"loss: {name: raw}\nregularizers: {name: energy_confusion}", "wanted a list", "for each"},
        {"loss: {name: raw}\nregularizers: [{name: energy_confusion, wieght: 1}]", "unknown option 'wieght'",
         "'weight'"},
        {"loss: {name: raw}\nminers: {name: vthm}", "unknown key of objective 'miners'", "'miner'"},
        {"loss: {name: amsoftmax}\nmemory: {size: 10}", "memory goes with a pair loss", "proxies"},
        {"loss: [a, b]", "objective.loss has no name", "kith list"},
    };
    const ki_sizes sizes = {.n_classes = 5, .embedding = 4};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        made m;
        if (made_try(rows[i].recipe, &sizes, &m, &err) == KITH_OK) fail_msg("accepted: %s", rows[i].recipe);
        if (!strstr(err.message, rows[i].message) || !strstr(err.hint, rows[i].hint))
            fail_msg("%s: found \"%s\" (%s)", rows[i].recipe, err.message, err.hint);
    }
    kith_error err = {0};
    made m;
    const ki_sizes unknown = {.embedding = 4};
    assert_int_equal(made_try("loss: {name: amsoftmax}", &unknown, &m, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "number of classes"));
}

static void test_batch_errors(void **state) {
    (void)state;
    enum { M = 8, D = 4 };
    ki_real x[M * D];
    int32_t label[M];
    const ki_sizes sizes = {.n_classes = 4, .embedding = D};
    fill(x, label, M, D, 2, 1);
    made m = made_of("loss: {name: amsoftmax}", &sizes);
    ki_result result;
    kith_error err = {0};
    ki_batch batch = batch_of(x, label, M, D);
    assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
    const double before = result.total;

    batch.tap[KI_TAP_EMBEDDING].rows = M - 1;
    assert_int_equal(ki_objective_evaluate(m.objective, &batch, &result, &err), KITH_ESHAPE);
    assert_non_null(strstr(err.message, "embedding is [7, 4]; wanted 8 rows"));
    batch.tap[KI_TAP_EMBEDDING].rows = M;

    batch.tap[KI_TAP_EMBEDDING].cols = D - 1;
    assert_int_equal(ki_objective_evaluate(m.objective, &batch, &result, &err), KITH_ESHAPE);
    assert_non_null(strstr(err.message, "made for 4"));
    batch.tap[KI_TAP_EMBEDDING].cols = D;

    x[5 * D + 2] = (ki_real)NAN;
    assert_int_equal(ki_objective_evaluate(m.objective, &batch, &result, &err), KITH_ENUMERIC);
    assert_string_equal(err.message, "embedding[5, 2] is NaN");
    x[5 * D + 2] = (ki_real)INFINITY;
    assert_int_equal(ki_objective_evaluate(m.objective, &batch, &result, &err), KITH_ENUMERIC);
    assert_string_equal(err.message, "embedding[5, 2] is infinite");
    fill(x, label, M, D, 2, 1);

    label[3] = 4;
    assert_int_equal(ki_objective_evaluate(m.objective, &batch, &result, &err), KITH_EINVAL);
    assert_string_equal(err.message, "label[3] is 4; wanted a class id from 0 to 3");
    label[3] = 1;

    batch.tap[KI_TAP_EMBEDDING].data = NULL;
    assert_int_equal(ki_objective_evaluate(m.objective, &batch, &result, &err), KITH_EINVAL);
    batch.tap[KI_TAP_EMBEDDING].data = x;

    static const int64_t counts[] = {0, -1, (int64_t)INT32_MAX + 1};
    for (size_t i = 0; i < N_ROWS(counts); i++) {
        batch.m = batch.tap[KI_TAP_EMBEDDING].rows = counts[i];
        assert_int_equal(ki_objective_evaluate(m.objective, &batch, &result, &err), KITH_ESHAPE);
        assert_non_null(strstr(err.message, "items; wanted at least 1"));
    }
    batch.m = batch.tap[KI_TAP_EMBEDDING].rows = M;

    /* After all that, the same as before. */
    assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
    assert_true(result.total == before);
    made_free(&m);
}

/* A trainer asks before it draws batches: can this loss learn from classes of one image? */
static void test_which_losses_need_pairs(void **state) {
    (void)state;
    static const struct {
        const char *recipe;
        bool needs;
    } rows[] = {
        {"loss: raw", true},
        {"loss: {name: triplet, margin: 1}", true},
        {"loss: amsoftmax", false},
        {"loss: {name: softtriple}", false},
        {"loss: {name: contrastive}\nmemory: {size: 100}", false},
        {"loss: {name: contrastive}\nmemory: {size: 0}", true},
        {"loss: {name: contrastive}\nmemory: {sise: 100}", true},
        {"loss: none", false},
        {"loss: nobody", false},
        {"miner: all", false},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_arena arena = {0};
        ki_value *root = NULL;
        kith_error err = {0};
        assert_ok(ki_yaml_parse(rows[i].recipe, strlen(rows[i].recipe), "recipe", &arena, &root, &err), &err);
        if (ki_objective_needs_pairs(root) != rows[i].needs)
            fail_msg("%s: %s pairs", rows[i].recipe, rows[i].needs ? "needs no" : "needs");
        ki_arena_release(&arena);
    }
}

static int n_lines;
static void count_line(void *user, kith_log_level level, const char *line) {
    (void)user, (void)line;
    n_lines += level == KITH_LOG_WARNING;
}

static void test_no_pair_is_zero_and_counted(void **state) {
    (void)state;
    ki_real x[4] = {1, 2, 3, 4};
    int32_t label[1] = {0};
    const ki_sizes sizes = {.embedding = 4};
    made m = made_of("loss: {name: raw}", &sizes);
    const ki_batch batch = batch_of(x, label, 1, 4);
    ki_result result;
    kith_error err = {0};
    n_lines = 0;
    kith_log_set(count_line, NULL, KITH_LOG_WARNING);
    for (int i = 1; i <= 3; i++) {
        assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
        assert_true(result.total == 0);
        assert_int_equal(result.n_empty, i);
    }
    kith_log_set(NULL, NULL, KITH_LOG_WARNING);
    assert_int_equal(n_lines, 1);
    made_free(&m);
}

/* Where no pair is, or none is left, the value and every gradient are 0 to the last bit: nothing moves. */
static void test_no_pair_moves_nothing(void **state) {
    (void)state;
    enum { M = 6, D = 4 };
    static ki_real x[M * D];
    static int32_t label[M], apart[M];
    const ki_sizes sizes = {.n_classes = M, .embedding = D};
    fill(x, label, M, D, 2, 1);
    for (int i = 0; i < M; i++) apart[i] = i;
    kith_log_set(count_line, NULL, KITH_LOG_WARNING);
    for (size_t l = 0; ki_loss_at(l); l++) {
        if (ki_loss_at(l)->is_proxy) continue;
        for (int hard = 0; hard <= 1; hard++) { /* one item; all classes apart, which leaves `hard` nothing */
            char recipe[128];
            ki_result result;
            kith_error err = {0};
            snprintf(recipe, sizeof recipe, "loss: {name: %s}\nminer: %s", ki_loss_at(l)->method.name,
                     hard ? "hard" : "all");
            made m = made_of(recipe, &sizes);
            const ki_batch batch = batch_of(x, apart, hard ? M : 1, D);
            assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
            assert_int_equal(result.n_pos + result.n_neg, 0);
            if (result.total != 0) fail_msg("%s: value %g", recipe, result.total);
            for (int64_t i = 0; i < batch.m * D; i++) {
                if (result.diff[KI_TAP_EMBEDDING][i] != 0)
                    fail_msg("%s: gradient[%d] is %g", recipe, (int)i,
                             (double)result.diff[KI_TAP_EMBEDDING][i]);
            }
            made_free(&m);
        }
    }
    kith_log_set(NULL, NULL, KITH_LOG_WARNING);
}

static const char *const heavy =
    "loss: {name: margin}\nminer: {name: distance_weighted}\nmemory: {size: 48, warmup: 1}\n"
    "regularizers: [{name: energy_confusion, weight: 0.5, warmup: 10}]";

/* The n-th allocation fails: one error line, nothing lost, nothing changed. */
static void test_out_of_memory(void **state) {
    (void)state;
    enum { M = 32, D = 8 };
    static ki_real x[M * D];
    static int32_t label[M];
    const ki_sizes sizes = {.n_classes = 16, .embedding = D};
    fill(x, label, M, D, 2, 1);
    const ki_batch batch = batch_of(x, label, M, D);
    kith_memory_stats before, after;
    kith_memory_stats_get(&before);
    int n_failed = 0;
    for (int n = 0; n < 400; n++) {
        kith_error err = {0};
        made m;
        ki_alloc_fail_after(n);
        kith_status status = made_try(heavy, &sizes, &m, &err);
        if (status == KITH_OK) {
            ki_result result;
            for (int i = 0; i < 3 && status == KITH_OK; i++)
                status = ki_objective_evaluate(m.objective, &batch, &result, &err);
            made_free(&m);
        }
        const bool is_over = !ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (is_over) {
            assert_int_equal(status, KITH_OK);
            break;
        }
        /* A workspace that cannot grow in one piece may still fit piece by piece. */
        if (status != KITH_OK) {
            assert_int_equal(status, KITH_ENOMEM);
            assert_true(err.message[0] != '\0');
            n_failed++;
        }
        kith_memory_stats_get(&after);
        assert_int_equal(after.live_bytes, before.live_bytes);
    }
    assert_true(n_failed > 10);
}

static void test_steps_allocate_nothing(void **state) {
    (void)state;
    enum { M = 64, D = 16 };
    static ki_real x[M * D];
    static int32_t label[M];
    const ki_sizes sizes = {.n_classes = 32, .embedding = D};
    fill(x, label, M, D, 2, 1);
    for (size_t l = 0; ki_loss_at(l); l++) {
        for (size_t k = 0; ki_miner_at(k); k++) {
            char recipe[256];
            snprintf(recipe, sizeof recipe,
                     "loss: {name: %s}\nminer: {name: %s}\nregularizers: [{name: energy_confusion}]",
                     ki_loss_at(l)->method.name, ki_miner_at(k)->method.name);
            made m = made_of(recipe, &sizes);
            kith_error err = {0};
            ki_result result;
            kith_memory_stats before, after;
            const ki_batch batch = batch_of(x, label, M, D);
            for (int i = 0; i < 2; i++)
                assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
            kith_memory_stats_get(&before);
            for (int i = 0; i < 3; i++)
                assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
            kith_memory_stats_get(&after);
            if (after.n_allocations != before.n_allocations)
                fail_msg("%s: %d allocations in three steps", recipe,
                         (int)(after.n_allocations - before.n_allocations));
            made_free(&m);
        }
    }
}

/* The same bits whatever the number of threads. */
static void test_threads_do_not_matter(void **state) {
    (void)state;
    enum { M = 200, D = 64 };
    static ki_real x[M * D], first[M * D];
    static int32_t label[M];
    const ki_sizes sizes = {.n_classes = 100, .embedding = D};
    fill(x, label, M, D, 4, 1);
    const ki_batch batch = batch_of(x, label, M, D);
    const int n_before = ki_threads();
    for (size_t l = 0; ki_loss_at(l); l++) {
        char recipe[256];
        snprintf(recipe, sizeof recipe, "loss: {name: %s}\nminer: {name: distance_weighted}",
                 ki_loss_at(l)->method.name);
        double value = 0;
        for (int threads = 1; threads <= 3; threads++) {
            ki_threads_set(threads);
            made m = made_of(recipe, &sizes);
            kith_error err = {0};
            ki_result result;
            assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
            if (threads == 1) {
                value = result.total;
                memcpy(first, result.diff[KI_TAP_EMBEDDING], sizeof first);
            }
            if (result.total != value)
                fail_msg("%s: %.17g with %d threads, %.17g with 1", recipe, result.total, threads, value);
            if (memcmp(first, result.diff[KI_TAP_EMBEDDING], sizeof first) != 0)
                fail_msg("%s: another gradient with %d threads", recipe, threads);
            made_free(&m);
        }
    }
    ki_threads_set(n_before);
}

/* A batch against a remembered one gives what the two give together, as far as rows of the first go. */
static void test_memory_columns_are_the_past(void **state) {
    (void)state;
    enum { M = 12, D = 6 };
    static ki_real x[2 * M * D];
    static int32_t label[2 * M];
    const ki_sizes sizes = {.embedding = D};
    ki_rng rng = ki_rng_at(9, KI_RNG_TEST, 0, 0);
    for (int i = 0; i < 2 * M; i++) {
        label[i] = i % 4;
        for (int k = 0; k < D; k++) x[i * D + k] = (ki_real)ki_rng_normal(&rng);
    }
    static const char *const losses[] = {
        "contrastive, reduction: sum", "contrastive, distance: euclidean, reduction: sum",
        "binomial, reduction: sum", "npair, reduction: sum", "triplet, reduction: sum"};
    for (size_t l = 0; l < N_ROWS(losses); l++) {
        char recipe[256];
        kith_error err = {0};
        ki_result result;
        snprintf(recipe, sizeof recipe, "loss: {name: %s}\nmemory: {size: 100, warmup: 0}", losses[l]);
        made with = made_of(recipe, &sizes);
        ki_batch old = batch_of(x + M * D, label + M, M, D), now = batch_of(x, label, M, D);
        assert_ok(ki_objective_evaluate(with.objective, &old, &result, &err), &err);
        now.step = 1;
        assert_ok(ki_objective_evaluate(with.objective, &now, &result, &err), &err);
        assert_int_equal(result.n_pos + result.n_neg, M * (2 * M - 1));
        const double value = result.total;
        /* A central difference along each coordinate of the first batch, the memory held as it was. */
        static ki_real gradient[M * D];
        memcpy(gradient, result.diff[KI_TAP_EMBEDDING], sizeof gradient);
        double error = 0, size = 0;
        for (int i = 0; i < M * D; i += 7) {
            double side[2];
            for (int s = 0; s < 2; s++) {
                made again = made_of(recipe, &sizes);
                const ki_real kept = x[i];
                assert_ok(ki_objective_evaluate(again.objective, &old, &result, &err), &err);
                x[i] = (ki_real)(kept + (s ? 1 : -1) * 4e-3);
                assert_ok(ki_objective_evaluate(again.objective, &now, &result, &err), &err);
                side[s] = result.total;
                x[i] = kept;
                made_free(&again);
            }
            error += pow((side[1] - side[0]) / 8e-3 - (double)gradient[i], 2);
            size += pow((double)gradient[i], 2);
        }
        if (!(error <= 1e-3 * size))
            fail_msg("%s: gradient off by %.3g of %.3g", recipe, sqrt(error), sqrt(size));
        assert_true(isfinite(value));
        made_free(&with);
    }
}

static void test_memory_waits_wraps_and_is_state(void **state) {
    (void)state;
    enum { M = 10, D = 4 };
    static ki_real x[M * D];
    static int32_t label[M];
    const ki_sizes sizes = {.embedding = D};
    fill(x, label, M, D, 2, 1);
    made m = made_of("loss: {name: binomial}\nmemory: {size: 25, warmup: 2}", &sizes);
    ki_batch batch = batch_of(x, label, M, D);
    ki_result result;
    kith_error err = {0};
    static const int64_t columns[] = {M, M, M + 20, M + 25, M + 25};
    for (uint64_t step = 0; step < N_ROWS(columns); step++) {
        batch.step = step;
        assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
        assert_int_equal(result.n_pos + result.n_neg, M * (columns[step] - 1));
    }
    const ki_state *at = ki_objective_param_named(m.objective, "memory.state");
    assert_non_null(at);
    assert_int_equal((int)at->value[0], 25);
    assert_int_equal((int)at->value[1], 5 * M % 25);
    assert_null(at->diff);
    /* Hostile state: sizes and labels beyond the ring are not believed. */
    ki_objective_param_named(m.objective, "memory.state")->value[0] = (ki_real)1e9;
    ki_objective_param_named(m.objective, "memory.state")->value[1] = (ki_real)-7;
    ki_objective_param_named(m.objective, "memory.label")->value[3] = (ki_real)NAN;
    assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
    made_free(&m);
}

static void test_warm_up_and_weights(void **state) {
    (void)state;
    enum { M = 8, D = 4 };
    static ki_real x[M * D];
    static int32_t label[M];
    const ki_sizes sizes = {.embedding = D};
    fill(x, label, M, D, 2, 1);
    made m = made_of(
        "loss: {name: raw}\nregularizers: [{name: energy_confusion, weight: 0.5, warmup: 4}, {name: "
        "energy_confusion}]",
        &sizes);
    ki_batch batch = batch_of(x, label, M, D);
    ki_result result;
    kith_error err = {0};
    static const double weights[] = {0, 0.125, 0.25, 0.375, 0.5, 0.5};
    for (uint64_t step = 0; step < N_ROWS(weights); step++) {
        batch.step = step;
        assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
        assert_int_equal(result.n_terms, 3);
        assert_string_equal(result.term[2].name, "energy_confusion_2");
        assert_true(result.term[1].weight == weights[step]);
        const double sum = result.term[0].value + weights[step] * result.term[1].value + result.term[2].value;
        assert_true(fabs(sum - result.total) < 1e-12 * fabs(sum));
    }
    made_free(&m);
}

/* All triplets of a large batch: matrices of its square, nothing of its cube. */
static void test_large_batch_of_triplets(void **state) {
    (void)state;
    enum { M = 2048, D = 8 };
    static ki_real x[M * D];
    static int32_t label[M];
    const ki_sizes sizes = {.embedding = D};
    fill(x, label, M, D, 64, 1);
    made m = made_of("loss: {name: triplet, reduction: mean}", &sizes);
    const ki_batch batch = batch_of(x, label, M, D);
    ki_result result;
    kith_error err = {0};
    assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
    assert_true(result.total > 0 && isfinite(result.total));
    const size_t bytes = ki_objective_work_bytes(m.objective), square = (size_t)M * M * sizeof(ki_real);
    if (bytes > 3 * square) fail_msg("%zu bytes of working memory; the matrix is %zu", bytes, square);
    made_free(&m);
}

/* Which negative the margin loss's miner draws: the same for the same step, others for another, and
 * spread over distances rather than piled up where most points are. */
static void test_distance_weighted_draws(void **state) {
    (void)state;
    enum { M = 64, D = 16 };
    static ki_real x[M * D];
    static int32_t label[M];
    const ki_sizes sizes = {.embedding = D};
    fill(x, label, M, D, 2, 1);
    made m =
        made_of("loss: {name: triplet, margin: 4, reduction: sum}\nminer: {name: distance_weighted}", &sizes);
    ki_batch batch = batch_of(x, label, M, D);
    ki_result result;
    kith_error err = {0};
    assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
    const double first = result.total;
    assert_int_equal(result.n_pos, M);
    assert_int_equal(result.n_neg, M); /* one negative for each of the M positive pairs */
    assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
    assert_true(result.total == first);
    int n_other = 0;
    for (uint64_t step = 1; step <= 20; step++) {
        batch.step = step;
        assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
        n_other += result.total != first;
    }
    assert_true(n_other >= 19);
    made_free(&m);
    /* The mean squared distance drawn is below that of all negatives: near ones are taken more often. */
    double sums[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
        m = made_of(k ? "loss: {name: contrastive, neg_margin: 4}\nminer: {name: distance_weighted}"
                      : "loss: {name: contrastive, neg_margin: 4}",
                    &sizes);
        for (uint64_t step = 0; step < 20; step++) {
            batch.step = step;
            assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
            sums[k] += result.total; /* mean D of positives + mean (4 - D) of negatives */
        }
        made_free(&m);
    }
    if (!(sums[1] > sums[0] + 1)) fail_msg("drawn %.4g, all %.4g", sums[1] / 20, sums[0] / 20);
}

/* A seed gives the same beginning and the same draws each time, another seed others. */
static void test_seed(void **state) {
    (void)state;
    enum { M = 24, D = 8, N_SEEDS = 4 };
    static ki_real x[M * D];
    static int32_t label[M];
    static const uint64_t seeds[N_SEEDS] = {0, 5, 6, 5};
    static const char *const recipes[] = {
        "loss: {name: amsoftmax}", "loss: {name: triplet, margin: 4}\nminer: distance_weighted",
        "loss: {name: npair}\nminer: tuples",
        "loss: {name: none}\nregularizers: [{name: energy_confusion, pairs: 3}]"};
    const ki_sizes sizes = {.n_classes = 12, .embedding = D};
    fill(x, label, M, D, 3, 1);
    const ki_batch batch = batch_of(x, label, M, D);
    for (size_t r = 0; r < N_ROWS(recipes); r++) {
        ki_arena arena = {0};
        ki_value *root = NULL;
        kith_error err = {0};
        double total[N_SEEDS];
        assert_ok(ki_yaml_parse(recipes[r], strlen(recipes[r]), "recipe", &arena, &root, &err), &err);
        for (int i = 0; i < N_SEEDS; i++) {
            ki_objective *objective = NULL;
            ki_result result;
            assert_ok(ki_objective_new(root, &sizes, seeds[i], &objective, &err), &err);
            assert_ok(ki_objective_evaluate(objective, &batch, &result, &err), &err);
            total[i] = result.total;
            ki_objective_free(objective);
        }
        if (total[1] != total[3] || total[0] == total[1] || total[1] == total[2] || total[0] == total[2])
            fail_msg("%s: seeds 0, 5, 6 and 5 again give %.9g, %.9g, %.9g and %.9g", recipes[r], total[0],
                     total[1], total[2], total[3]);
        ki_arena_release(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recipe_errors),
        cmocka_unit_test(test_batch_errors),
        cmocka_unit_test(test_which_losses_need_pairs),
        cmocka_unit_test(test_no_pair_is_zero_and_counted),
        cmocka_unit_test(test_no_pair_moves_nothing),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_steps_allocate_nothing),
        cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_memory_columns_are_the_past),
        cmocka_unit_test(test_memory_waits_wraps_and_is_state),
        cmocka_unit_test(test_warm_up_and_weights),
        cmocka_unit_test(test_large_batch_of_triplets),
        cmocka_unit_test(test_distance_weighted_draws),
        cmocka_unit_test(test_seed),
    };
    return cmocka_run_group_tests_name("objective/run", tests, NULL, NULL);
}
