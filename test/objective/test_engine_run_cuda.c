/* The device's objective over several steps and in odd sizes, against the host's: cross-batch memory, warm-ups,
 * mixed terms, random miners, captured evaluations, copies of parameters, faults. */
#include <malloc.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "kith/experimental/bench.h"
#include "kith/log.h"
#include "kith/objective.h"
#include "objective/device.h"
#include "objective/state.h"

enum { MOST_ITEMS = 160, MOST_DIM = 80, N_CLASSES = 41 };

static ki_real points[MOST_ITEMS * MOST_DIM], pooled_points[MOST_ITEMS * MOST_DIM];
static int32_t labels[MOST_ITEMS];

/* m items of classes with n_per items each, in clusters; the batch points into the arrays above. */
static ki_batch batch_of(int64_t m, int64_t dim, int64_t n_per, uint32_t seed) {
    ki_rng rng = ki_rng_at(seed, KI_RNG_TEST, 2, 0);
    for (int64_t i = 0; i < m; i++) {
        labels[i] = (int32_t)((i / n_per * 7 + seed) % N_CLASSES);
        ki_rng centre = ki_rng_at(99, KI_RNG_TEST, (uint32_t)labels[i], 0);
        for (int64_t k = 0; k < dim; k++)
            points[i * dim + k] = (ki_real)(ki_rng_normal(&centre) + 0.7 * ki_rng_normal(&rng));
        for (int64_t k = 0; k < dim; k++) pooled_points[i * dim + k] = (ki_real)fabs(ki_rng_normal(&rng));
    }
    ki_batch batch = {.m = m, .label = labels, .step = seed};
    batch.tap[KI_TAP_EMBEDDING] = (ki_tap_data){.data = points, .rows = m, .cols = dim};
    batch.tap[KI_TAP_POOLED] = (ki_tap_data){.data = pooled_points, .rows = m, .cols = dim};
    return batch;
}

static ki_sizes sizes_of(int64_t dim) {
    return (ki_sizes){.n_classes = N_CLASSES, .embedding = dim, .pooled = dim};
}

/* n_steps evaluations of one recipe on changing batches, each against the host's; then what both remember. */
static void follow(const char *recipe, int64_t m, int64_t dim, int64_t n_per, int n_steps) {
    const ki_sizes sizes = sizes_of(dim);
    kith_error err = {0};
    device_run run;
    made host = made_of(recipe, &sizes), other = made_of(recipe, &sizes);
    ki_batch batch = batch_of(m, dim, n_per, 0);
    char where[256];
    device_bad = 0;
    assert_ok(device_run_try(&run, other.objective, &batch, &err), &err);
    for (int step = 0; step < n_steps; step++) {
        batch = batch_of(m, dim, n_per, (uint32_t)step);
        snprintf(where, sizeof where, "%.120s, %lld x %lld, step %d", recipe, (long long)m, (long long)dim,
                 step);
        device_check(where, &run, host.objective, &batch, 1e-5, 1e-7);
    }
    assert_ok(device_type->pull(run.engine, &err), &err);
    for (size_t i = 0; ki_objective_param(host.objective, i); i++) {
        const ki_state *wanted = ki_objective_param(host.objective, i),
                       *found = ki_objective_param(other.objective, i);
        device_compare(where, wanted->name, found->value, wanted->value, wanted->count, 1e-6, 0);
    }
    assert_int_equal(device_bad, 0);
    device_run_close(&run);
    made_free(&host);
    made_free(&other);
}

static const char *const losses[] = {"{name: raw}",
                                     "{name: binomial}",
                                     "{name: binomial, reduction: anchor_sum}",
                                     "{name: contrastive}",
                                     "{name: triplet, distance: euclidean}",
                                     "{name: npair, scale: 8, l2: 0.1}",
                                     "{name: lifted}",
                                     "{name: angular, angle: 36}",
                                     "{name: histogram, bins: 23}",
                                     "{name: margin, nu: 0.1, per_class: true}",
                                     "{name: circle, detach: false}",
                                     "{name: supcon}",
                                     "{name: ntxent}",
                                     "{name: ranked_list}",
                                     "{name: fastap}",
                                     "{name: smooth_ap}",
                                     "{name: recall_at_k}",
                                     "{name: amsoftmax}",
                                     "{name: arcface}",
                                     "{name: normsoftmax}",
                                     "{name: proxy_nca}",
                                     "{name: proxy_anchor}",
                                     "{name: softtriple, centers: 3}"};

/* Rows that are no multiple of a warp, more rows than threads, dimensions that are no multiple of anything. */
static void test_every_loss_in_odd_sizes(void **state) {
    (void)state;
    char recipe[256];
    for (size_t i = 0; i < N_ROWS(losses); i++) {
        snprintf(recipe, sizeof recipe, "loss: %s", losses[i]);
        follow(recipe, 37, 19, 3, 1);
        follow(recipe, 141, 67, 4, 1);
    }
}

static const char *const miners[] = {"{name: vthm}",
                                     "{name: semihard, margin: 0.4}",
                                     "{name: hard}",
                                     "{name: distance_weighted, nonzero_loss_cutoff: 1.7}",
                                     "{name: pair_margin, neg_margin: 1.3}",
                                     "tuples",
                                     "{name: tuples, positives: one}"};

static void test_every_miner_with_losses_that_use_it_differently(void **state) {
    (void)state;
    static const char *const some[] = {"{name: raw}",       "{name: triplet}",
                                       "{name: angular}",   "{name: margin}",
                                       "{name: amsoftmax}", "{name: softtriple, centers: 2}"};
    char recipe[256];
    for (size_t i = 0; i < N_ROWS(miners); i++) {
        for (size_t k = 0; k < N_ROWS(some); k++) {
            snprintf(recipe, sizeof recipe, "loss: %s\nminer: %s", some[k], miners[i]);
            follow(recipe, 53, 12, 5, 2);
        }
    }
}

/* The ring fills, is passed over until its warm-up is over, and comes round. */
static void test_memory(void **state) {
    (void)state;
    static const char *const some[] = {"{name: raw}",
                                       "{name: contrastive}",
                                       "{name: contrastive, normalize: false}",
                                       "{name: triplet, distance: cosine}",
                                       "{name: angular}",
                                       "{name: supcon}"};
    char recipe[256];
    for (size_t i = 0; i < N_ROWS(some); i++) {
        snprintf(recipe, sizeof recipe, "loss: %s\nminer: %s\nmemory: {size: 75, warmup: 2}", some[i],
                 i == 3 ? "semihard" : "all");
        follow(recipe, 26, 9, 2, 6);
    }
    follow("loss: {name: binomial}\nmemory: {size: 11, warmup: 0}", 26, 9, 2, 3);
    follow("loss: {name: binomial, reduction: anchor_all}\nminer: vthm\nmemory: {size: 75, warmup: 1}", 26, 9,
           2, 5);
    follow("loss: {name: margin}\nminer: distance_weighted\nmemory: {size: 300, warmup: 1}", 40, 16, 4, 4);
    /* Rows of many columns for each thread of the largest blocks. */
    follow("loss: {name: raw}\nminer: vthm\nmemory: {size: 650, warmup: 0}", 120, 9, 4, 3);
    follow("loss: {name: triplet}\nminer: semihard\nmemory: {size: 4200, warmup: 0}", 30, 9, 3, 3);
}

/* The first numbers of embeddings, proxies and remembered embeddings, beside terms that see the whole. */
static void test_nested_widths(void **state) {
    (void)state;
    static const char *const some[] = {
        "{name: raw}",    "{name: contrastive}", "{name: contrastive, normalize: false}",
        "{name: margin}", "{name: amsoftmax}",   "{name: softtriple, centers: 3}",
        "{name: npair}"};
    char recipe[256];
    for (size_t i = 0; i < N_ROWS(some); i++) {
        snprintf(recipe, sizeof recipe, "loss: %s\nnested: [3, 7, 19]", some[i]);
        follow(recipe, 37, 19, 3, 2);
    }
    follow("loss: {name: raw}\nminer: vthm\nnested: [4, 9]\nmemory: {size: 75, warmup: 2}", 26, 9, 2, 6);
    follow("loss: {name: contrastive, normalize: false}\nnested: [4, 9]\nmemory: {size: 75, warmup: 1}", 26,
           9, 2, 4);
    follow(
        "loss: {name: triplet}\nminer: semihard\nnested: [5, 16]\nnested_weights: [1, 4]\n"
        "regularizers: [{name: norm_l2, weight: 0.01}, {name: norm_l2, normalize: true}]",
        40, 16, 4, 2);
    follow("loss: {name: arcface}\nnested: [4]\nregularizers: [{name: entropy, weight: 0.2}]", 40, 16, 4, 2);
}

/* Weights that grow, a term that reads the embedding as it is, one that stops at it, logits, two of a name. */
static void test_mixed_terms(void **state) {
    (void)state;
    follow(
        "loss: {name: raw}\nminer: vthm\n"
        "regularizers:\n"
        "  - {name: norm_l2, weight: 0.01, warmup: 3}\n"
        "  - {name: norm_l2, weight: -0.5, normalize: true}\n"
        "  - {name: energy_confusion, weight: 0.13, normalize: true, warmup: 2}\n"
        "  - {name: global_orthogonal, weight: 0.7, stops_at_embedding: true}",
        40, 16, 4, 5);
    follow(
        "loss: {name: contrastive, normalize: false}\n"
        "regularizers: [{name: norm_l2, weight: 2, stops_at_embedding: true, normalize: true}]",
        40, 16, 4, 2);
    follow("loss: {name: none}\nregularizers: [{name: norm_l2, weight: 2, stops_at_embedding: true}]", 24, 16,
           4, 1);
    follow("loss: {name: arcface}\nregularizers: [{name: entropy, weight: 0.2}]", 40, 16, 4, 2);
}

/* One term beside the loss: as it is or normalised, through or stopped, with a loss of either kind or none. */
static void test_where_gradients_meet(void **state) {
    (void)state;
    static const char *const some[] = {"none", "raw", "{name: contrastive, normalize: false}"};
    for (size_t i = 0; i < 4 * N_ROWS(some); i++) {
        char recipe[256];
        snprintf(
            recipe, sizeof recipe,
            "loss: %s\nregularizers: [{name: norm_l2, weight: 2, normalize: %s, stops_at_embedding: %s}]",
            some[i / 4], i & 1 ? "true" : "false", i & 2 ? "true" : "false");
        follow(recipe, 13, 7, 2, 1);
    }
}

/* A captured evaluation reads the step, the labels and the memory when it runs, not when it was recorded. */
static void test_a_captured_evaluation_follows_the_steps(void **state) {
    (void)state;
    const char *recipe =
        "loss: {name: margin}\nminer: distance_weighted\nmemory: {size: 90, warmup: 2}\n"
        "regularizers: [{name: norm_l2, warmup: 3}]";
    const ki_sizes sizes = sizes_of(14);
    kith_error err = {0};
    device_run run;
    void *recorded = NULL;
    made host = made_of(recipe, &sizes), other = made_of(recipe, &sizes);
    ki_batch batch = batch_of(36, 14, 3, 0);
    if (!device->type->recording.begin) skip();
    assert_ok(device_run_try(&run, other.objective, &batch, &err), &err);
    for (int step = 0; step < 6; step++) {
        ki_engine_values found;
        ki_result wanted;
        batch = batch_of(36, 14, 3, (uint32_t)step);
        device_run_fill(&run, &batch);
        if (step == 1) { /* the step before has warmed everything up */
            assert_ok(device->type->recording.begin(device, &err), &err);
            assert_ok(device_type->evaluate(run.engine, &err), &err);
            assert_ok(device->type->recording.end(device, &recorded, &err), &err);
        }
        if (recorded)
            assert_ok(device->type->recording.launch(device, recorded, &err), &err);
        else
            assert_ok(device_type->evaluate(run.engine, &err), &err);
        assert_ok(device_type->read(run.engine, &found, &err), &err);
        assert_ok(ki_objective_evaluate(host.objective, &batch, &wanted, &err), &err);
        assert_int_equal(found.step, step);
        assert_int_equal(found.n_pos, wanted.n_pos);
        assert_int_equal(found.n_neg, wanted.n_neg);
        if (fabs(found.total - wanted.total) > 1e-5 * fabs(wanted.total))
            fail_msg("step %d: %.9g, wanted %.9g", step, found.total, wanted.total);
    }
    device->type->recording.free(device, recorded);
    device_run_close(&run);
    made_free(&host);
    made_free(&other);
}

/* The same evaluation twice is the same bits. */
static void test_deterministic(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(losses); i++) {
        char recipe[256];
        const ki_sizes sizes = sizes_of(33);
        kith_error err = {0};
        device_run run;
        ki_batch batch = batch_of(61, 33, 4, 3);
        snprintf(recipe, sizeof recipe, "loss: %s\nminer: %s", losses[i], miners[i % N_ROWS(miners)]);
        made m = made_of(recipe, &sizes);
        assert_ok(device_run_try(&run, m.objective, &batch, &err), &err);
        const double first = device_run_evaluate(&run, &batch).total;
        ki_real *diff_1 = device_run_diff(&run, KI_TAP_EMBEDDING);
        const double second = device_run_evaluate(&run, &batch).total;
        ki_real *diff_2 = device_run_diff(&run, KI_TAP_EMBEDDING);
        if (first != second) fail_msg("%s: %.17g, then %.17g", recipe, first, second);
        assert_memory_equal(diff_1, diff_2, 61 * 33 * sizeof *diff_1);
        ki_free(diff_1);
        ki_free(diff_2);
        device_run_close(&run);
        made_free(&m);
    }
}

/* Parameter gradients add up over evaluations until they are cleared; values pushed are the values used. */
static void test_parameters(void **state) {
    (void)state;
    const ki_sizes sizes = sizes_of(10);
    kith_error err = {0};
    device_run run;
    ki_engine_param param;
    made m = made_of("loss: {name: proxy_anchor}", &sizes);
    ki_batch batch = batch_of(30, 10, 3, 1);
    assert_ok(device_run_try(&run, m.objective, &batch, &err), &err);
    const double before = device_run_evaluate(&run, &batch).total;
    assert_true(device_type->param_at(run.engine, 0, &param));
    assert_string_equal(param.name, "proxies");
    assert_int_equal(param.n, N_CLASSES * 10);
    assert_true(param.lr_multiplier == 100);
    assert_false(device_type->param_at(run.engine, 1, &param));
    ki_real *once = device_floats(param.diff, param.n);
    assert_ok(device_type->evaluate(run.engine, &err), &err);
    ki_real *twice = device_floats(param.diff, param.n);
    for (int64_t i = 0; i < param.n; i++)
        assert_true(fabsf(twice[i] - 2 * once[i]) <= 1e-6f * fabsf(once[i]));
    ki_state *proxies = ki_objective_param(m.objective, 0);
    for (int64_t i = 0; i < proxies->count; i++) proxies->value[i] = (ki_real)sin((double)i);
    assert_ok(device_type->push(run.engine, &err), &err);
    const double after = device_run_evaluate(&run, &batch).total;
    ki_result wanted;
    assert_ok(ki_objective_evaluate(m.objective, &batch, &wanted, &err), &err);
    if (after == before || fabs(after - wanted.total) > 1e-5 * fabs(wanted.total))
        fail_msg("%.9g with the old proxies, %.9g with the new; wanted %.9g", before, after, wanted.total);
    ki_free(once);
    ki_free(twice);
    device_run_close(&run);
    made_free(&m);
}

/* The public way: values, gradients and what is remembered, as the host gives them; batches of two sizes. */
static void test_placed(void **state) {
    (void)state;
    const char *recipe =
        "loss: {name: margin}\nminer: distance_weighted\nmemory: {size: 50, warmup: 1}\n"
        "regularizers: [{name: norm_l2, stops_at_embedding: true}]";
    const kith_objective_sizes sizes = {.n_classes = N_CLASSES, .embedding = 12};
    kith_error err = {0};
    kith_objective *host = NULL, *other = NULL;
    int64_t wide_labels[MOST_ITEMS];
    assert_ok(kith_objective_new(recipe, &sizes, 5, &host, &err), &err);
    assert_ok(kith_objective_new(recipe, &sizes, 5, &other, &err), &err);
    assert_ok(kith_objective_place(other, "cuda", &err), &err);
    for (int step = 0; step < 4; step++) {
        const ki_batch core = batch_of(step == 2 ? 21 : 30, 12, 3, (uint32_t)step);
        for (int64_t i = 0; i < core.m; i++) wide_labels[i] = labels[i];
        const kith_batch batch = {.n = core.m,
                                  .labels = wide_labels,
                                  .step = (uint64_t)step,
                                  .tap[KITH_TAP_EMBEDDING] = {.data = points, .rows = core.m, .cols = 12}};
        kith_objective_result wanted, found;
        assert_ok(kith_objective_evaluate(host, &batch, &wanted, &err), &err);
        assert_ok(kith_objective_evaluate(other, &batch, &found, &err), &err);
        if (fabs(found.total - wanted.total) > 1e-5 * fabs(wanted.total))
            fail_msg("step %d: %.9g, wanted %.9g", step, found.total, wanted.total);
        device_bad = 0;
        device_compare("placed", "embedding", found.gradient[KITH_TAP_EMBEDDING],
                       wanted.gradient[KITH_TAP_EMBEDDING], core.m * 12, 1e-5, 0);
        device_compare("placed", "stopped", found.stopped, wanted.stopped, core.m * 12, 1e-5, 0);
        kith_objective_param a, b;
        for (int i = 0; kith_objective_param_at(host, i, &a) && kith_objective_param_at(other, i, &b); i++) {
            device_compare("placed", a.name, b.value, a.value, a.n, 1e-6, 0);
            device_compare("placed", a.name, b.gradient, a.gradient, a.n, 1e-5, 0);
        }
        assert_int_equal(device_bad, 0);
    }
    const kith_bench_objective_options bench = {.size = sizeof(kith_bench_objective_options),
                                                .recipe = "loss: {name: raw}",
                                                .batch = 12,
                                                .dim = 8,
                                                .images = 2,
                                                .n_steps = 1,
                                                .device = "cuda"};
    kith_bench_objective_result result;
    assert_ok(kith_bench_objective_run(&bench, &result, &err), &err);
    assert_true(result.seconds > 0 && isfinite(result.value));
    kith_objective_free(host);
    kith_objective_free(other);
}

/* What is not finite is a flag, and does not get into the memory; a label out of range is an error. */
static void test_faults(void **state) {
    (void)state;
    const ki_sizes sizes = sizes_of(8);
    kith_error err = {0};
    device_run run;
    made m = made_of("loss: {name: raw}\nmemory: {size: 64, warmup: 0}", &sizes);
    ki_batch batch = batch_of(20, 8, 2, 1);
    assert_ok(device_run_try(&run, m.objective, &batch, &err), &err);
    points[17] = NAN;
    ki_engine_values values = device_run_evaluate(&run, &batch);
    assert_false(values.is_finite);
    assert_ok(device_type->pull(run.engine, &err), &err);
    assert_true(ki_objective_param_named(m.objective, "memory.state")->value[0] == 0);
    points[17] = 1;
    values = device_run_evaluate(&run, &batch);
    assert_true(values.is_finite);
    assert_true(isfinite(values.total));
    labels[3] = N_CLASSES;
    device_run_fill(&run, &batch);
    assert_ok(device_type->evaluate(run.engine, &err), &err);
    assert_int_equal(device_type->read(run.engine, &values, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "0 to 40"));
    device_run_close(&run);
    made_free(&m);
}

static int n_warnings;
static void count_warning(void *user, kith_log_level level, const char *line) {
    (void)user;
    n_warnings += level == KITH_LOG_WARNING && strstr(line, "has no pair for raw") != NULL;
}

/* One item has no pair: that is counted and said once. A batch that has pairs says nothing. */
static void test_no_pair_is_said_once(void **state) {
    (void)state;
    const ki_sizes sizes = sizes_of(8);
    made m = made_of("loss: {name: raw}", &sizes);
    n_warnings = 0;
    kith_log_set(count_warning, NULL, KITH_LOG_WARNING);
    for (int64_t size = 6; size >= 1; size -= 5) {
        const ki_batch batch = batch_of(size, 8, 2, 1);
        device_run run;
        kith_error err = {0};
        assert_ok(device_run_try(&run, m.objective, &batch, &err), &err);
        for (int i = 1; i <= 3; i++) {
            const ki_engine_values values = device_run_evaluate(&run, &batch);
            assert_int_equal(values.n_empty, size == 1 ? i : 0);
            assert_int_equal(n_warnings, size == 1);
        }
        device_run_close(&run);
    }
    kith_log_set(NULL, NULL, KITH_LOG_WARNING);
    made_free(&m);
}

static void expect_refused(const char *recipe, ki_batch batch, kith_status status, const char *text) {
    const ki_sizes sizes = sizes_of(8);
    kith_error err = {0};
    device_run run;
    made m = made_of(recipe, &sizes);
    assert_int_equal(device_run_try(&run, m.objective, &batch, &err), status);
    if (!strstr(err.message, text)) fail_msg("found \"%s\", wanted \"%s\"", err.message, text);
    device_run_close(&run);
    made_free(&m);
}

static void test_refused(void **state) {
    (void)state;
    ki_batch batch = batch_of(20, 8, 2, 1), wide = batch_of(20, 9, 2, 1), none = batch;
    none.tap[KI_TAP_EMBEDDING].data = NULL;
    expect_refused("loss: {name: raw}", none, KITH_EINVAL, "reads embedding");
    expect_refused("loss: {name: raw}", wide, KITH_ESHAPE, "9 columns");
    none = batch;
    none.m = 0;
    expect_refused("loss: {name: raw}", none, KITH_ESHAPE, "the batch has 0 items; wanted at least 1");

    /* A loss that the host has and the device has not. */
    const ki_sizes sizes = sizes_of(8);
    kith_error err = {0};
    device_run run;
    made m = made_of("loss: {name: raw}", &sizes);
    ki_loss stranger = *m.objective->loss.record;
    stranger.method.name = "stranger";
    m.objective->loss.record = &stranger;
    assert_int_equal(device_run_try(&run, m.objective, &batch, &err), KITH_EUNSUPPORTED);
    assert_string_equal(err.message, "loss stranger runs on the CPU alone");
    device_run_close(&run);
    made_free(&m);
}

/* Every loss, miner and regularizer of the host is there. */
static void test_every_method_is_known(void **state) {
    (void)state;
    char recipe[128];
    const ki_sizes sizes = sizes_of(8);
    ki_batch batch = batch_of(6, 8, 2, 1);
    for (int kind = 0; kind < 2; kind++) {
        for (size_t i = 0; kind == 0 ? ki_loss_at(i) != NULL : ki_miner_at(i) != NULL; i++) {
            kith_error err = {0};
            device_run run;
            if (kind == 0)
                snprintf(recipe, sizeof recipe, "loss: %s", ki_loss_at(i)->method.name);
            else
                snprintf(recipe, sizeof recipe, "loss: raw\nminer: %s", ki_miner_at(i)->method.name);
            made m = made_of(recipe, &sizes);
            assert_ok(device_run_try(&run, m.objective, &batch, &err), &err);
            device_run_close(&run);
            made_free(&m);
        }
    }
}

/* Without memory for the n-th thing opening fails and holds nothing. */
static void test_out_of_memory(void **state) {
    (void)state;
    const ki_sizes sizes = sizes_of(8);
    ki_batch batch = batch_of(10, 8, 2, 1);
    made m = made_of("loss: {name: softtriple, centers: 2}\nregularizers: [norm_l2]", &sizes);
    int n_failed = 0;
    for (int64_t n = 0; n < 200; n++) {
        kith_error err = {0};
        device_run run;
        memset(&run, 0, sizeof run);
        run.m = batch.m;
        run.batch.label = run.label = device_take(64 * sizeof *run.label);
        run.batch.step = run.step = device_take(sizeof *run.step);
        run.batch.tap_edge[KI_TAP_EMBEDDING] = device_edge(KI_TAP_EMBEDDING, &batch.tap[KI_TAP_EMBEDDING]);
        run.batch.tap[KI_TAP_EMBEDDING] = device_take(4096);
        run.batch.diff[KI_TAP_EMBEDDING] = device_take(4096);
        ki_alloc_fail_after(n);
        const kith_status status =
            device_type->open(device, m.objective, &run.batch, batch.m, &run.engine, &err);
        ki_alloc_fail_after(-1);
        if (status != KITH_OK) {
            assert_int_equal(status, KITH_ENOMEM);
            run.engine = NULL;
            n_failed++;
        }
        device_run_close(&run);
        if (status == KITH_OK) break;
    }
    assert_true(n_failed > 5);
    made_free(&m);
}

/* Engines opened and closed again and again: neither the device nor the heap holds more than after the first ones. What is
 * lost in every round shows in every span of rounds; a driver's own tables grow now and then. */
static void test_closing_gives_back(void **state) {
    (void)state;
    enum {
        N_FIRST = 32,
        N_ROUNDS = 64,
        N_SPANS = 3,
        MOST_BYTES = 16
    }; /* a round: less than anything that is kept */
    const ki_sizes sizes = sizes_of(8);
    const ki_batch batch = batch_of(10, 8, 2, 1);
    made m = made_of(
        "loss: {name: amsoftmax}\nregularizers: [{name: energy_confusion, stops_at_embedding: true}, "
        "norm_l2]",
        &sizes);
    size_t free_first = 0, free_now = 0, all = 0, used[N_SPANS + 1] = {0};
    for (int round = 0; round < N_FIRST + N_SPANS * N_ROUNDS; round++) {
        device_run run;
        kith_error err = {0};
        assert_ok(device_run_try(&run, m.objective, &batch, &err), &err);
        device_run_evaluate(&run, &batch);
        device_run_close(&run);
        assert_int_equal(cudaMemGetInfo(&free_now, &all), cudaSuccess);
        const struct mallinfo2 heap = mallinfo2();
        if (round < N_FIRST) free_first = free_now;
        used[round < N_FIRST ? 0 : 1 + (round - N_FIRST) / N_ROUNDS] = heap.uordblks + heap.hblkhd;
    }
    made_free(&m);
    if (free_now < free_first) fail_msg("the device has %zu bytes free, had %zu", free_now, free_first);
    int n_grown = 0;
    for (int span = 0; span < N_SPANS; span++) n_grown += used[span + 1] > used[span] + N_ROUNDS * MOST_BYTES;
    if (n_grown == N_SPANS)
        fail_msg("%zu bytes in use, and after each %d rounds more: %zu, %zu, %zu", used[0], N_ROUNDS, used[1],
                 used[2], used[3]);
}

int main(void) {
    ki_threads_set(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_method_is_known),
        cmocka_unit_test(test_every_loss_in_odd_sizes),
        cmocka_unit_test(test_every_miner_with_losses_that_use_it_differently),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_nested_widths),
        cmocka_unit_test(test_mixed_terms),
        cmocka_unit_test(test_where_gradients_meet),
        cmocka_unit_test(test_a_captured_evaluation_follows_the_steps),
        cmocka_unit_test(test_deterministic),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_placed),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_no_pair_is_said_once),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_closing_gives_back),
    };
    return cmocka_run_group_tests_name("objective/engine/run", tests, device_open, device_close);
}
