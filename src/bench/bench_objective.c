/* How long an objective takes, beside the two matrix products that no implementation can avoid. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "bench/bench_parts.h"
#include "kith/experimental/bench.h"
#include "kith/log.h"
#include "kith/objective.h"
#include "objective/gemm.h"
#include "objective/handle/handle.h"
#include "objective/handle/placed.h"
#include "objective/usual.h"

/* Embeddings of `images` per class scattered around a centre, as a network under training has them. */
static void make_batch(int64_t n, int64_t dim, int64_t images, float *x, int64_t *labels) {
    for (int64_t i = 0; i < n; i++) {
        labels[i] = i / images;
        ki_rng centre = ki_rng_at(1, KI_RNG_TEST, (uint32_t)labels[i], 1);
        ki_rng noise = ki_rng_at(1, KI_RNG_TEST, (uint32_t)i, 2);
        for (int64_t k = 0; k < dim; k++)
            x[i * dim + k] = (float)(ki_rng_normal(&centre) + 3 * ki_rng_normal(&noise));
    }
}

/* What a teacher says, as wide as a large network's features: one array for all teachers. */
enum { TEACHER = 1024 };

static kith_status make_teacher(int64_t n, float **ret, kith_error *err) {
    ki_rng rng = ki_rng_at(2, KI_RNG_TEST, 0, 0);
    KI_TRY(ki_alloc_or(ret, (size_t)n, TEACHER * sizeof **ret, "a teacher's rows", err));
    for (int64_t i = 0; i < n * TEACHER; i++) (*ret)[i] = (float)ki_rng_normal(&rng);
    return KITH_OK;
}

/* The products alone: S = X X^T and G X. */
static void products(const float *x, int64_t n, int64_t dim, float *s, float *out) {
    ki_gemm(false, true, n, n, dim, 1, x, dim, x, dim, 0, s, n);
    ki_gemm(false, false, n, dim, n, 1, s, n, x, dim, 0, out, dim);
}

/* The same batch on a device that evaluates objectives itself. */
static kith_status time_on_device(const kith_bench_objective_options *options, kith_objective *objective,
                                  const float *x, const float *teacher, const int64_t *labels,
                                  kith_bench_objective_result *ret_result, kith_error *err) {
    const int64_t n = options->batch;
    int32_t *label = NULL;
    ki_placed *placed = NULL;
    kith_status status = KITH_OK;
    KI_CHECK(ki_alloc_or(&label, (size_t)n, sizeof *label, "labels", err));
    for (int64_t i = 0; i < n; i++) label[i] = (int32_t)labels[i];
    ki_batch batch = {
        .m = n, .label = label, .tap[KI_TAP_EMBEDDING] = {.data = x, .rows = n, .cols = options->dim}};
    for (int t = 0; t < KI_MOST_TEACHERS; t++)
        batch.tap[ki_tap_of_teacher(t)] = (ki_tap_data){.data = teacher, .rows = n, .cols = TEACHER};
    *ret_result = (kith_bench_objective_result){
        .batch = n, .dim = options->dim, .n_steps = options->n_steps, .n_threads = ki_threads()};
    KI_CHECK(ki_placed_new(options->device, objective->core, &batch, 0, &placed, err));
    double seconds[KI_PLACED_RUNS];
    KI_CHECK(ki_placed_time(placed, &batch, options->n_steps, seconds, &ret_result->value, err));
    ret_result->seconds = ki_bench_median(seconds, KI_PLACED_RUNS);
done:
    ki_placed_free(placed);
    ki_free(label);
    return status;
}

KI_OPTIONS_INIT(kith_bench_objective_options, 0)

kith_status kith_bench_objective_run(const kith_bench_objective_options *options,
                                     kith_bench_objective_result *ret_result, kith_error *err) {
    KI_NEED(err, ret_result);
    KI_OPTIONS_TAKE(kith_bench_objective_options, o, options, err);
    const int64_t n = o.batch, dim = o.dim, images = o.images;
    kith_objective *objective = NULL;
    float *x = NULL, *s = NULL, *out = NULL, *teacher = NULL;
    int64_t *labels = NULL;
    double *times = NULL, *bare = NULL;
    kith_status status = KITH_OK;
    kith_objective_result result = {0};
    kith_memory_stats before, after;
    if (n < 1 || dim < 1 || images < 1)
        return ki_fail(err, KITH_EINVAL, "batch %lld, dim %lld, images %lld; wanted at least 1 of each",
                       (long long)n, (long long)dim, (long long)images);
    KI_CHECK(ki_alloc_or(&x, (size_t)n, (size_t)dim * sizeof *x, "embeddings", err));
    KI_CHECK(ki_alloc_or(&labels, (size_t)n, sizeof *labels, "labels", err));
    make_batch(n, dim, images, x, labels);
    KI_CHECK(make_teacher(n, &teacher, err));
    kith_objective_sizes sizes = {.n_classes = (n + images - 1) / images, .embedding = dim};
    for (int t = 0; t < KITH_MOST_TEACHERS; t++) sizes.teacher[t] = TEACHER;
    KI_CHECK(kith_objective_new(o.recipe, &sizes, 1, &objective, err));
    if (o.device && strcmp(o.device, "cpu") != 0) {
        status = time_on_device(&o, objective, x, teacher, labels, ret_result, err);
        goto done;
    }
    kith_batch batch = {
        .n = n, .labels = labels, .tap[KITH_TAP_EMBEDDING] = {.data = x, .rows = n, .cols = dim}};
    for (int t = 0; t < KITH_MOST_TEACHERS; t++)
        batch.tap[KITH_TAP_TEACHER + t] = (kith_batch_tap){.data = teacher, .rows = n, .cols = TEACHER};
    const double start = ki_seconds_now();
    KI_CHECK(kith_objective_evaluate(objective, &batch, &result, err));
    KI_CHECK(kith_objective_evaluate(objective, &batch, &result, err));
    const double guess = 0.5 * (ki_seconds_now() - start);
    int64_t n_steps = o.n_steps;
    if (n_steps == 0) n_steps = guess > 0.2 ? 3 : guess > 0.02 ? 15 : guess > 0.002 ? 60 : 200;
    KI_CHECK(ki_alloc_or(&times, (size_t)n_steps, sizeof *times, "times", err));
    KI_CHECK(ki_alloc_or(&bare, (size_t)n_steps, sizeof *bare, "times", err));
    if (!o.no_products) {
        KI_CHECK(ki_alloc_or(&s, (size_t)n, (size_t)n * sizeof *s, "the pair matrix", err));
        KI_CHECK(ki_alloc_or(&out, (size_t)n, (size_t)dim * sizeof *out, "embeddings", err));
        products(x, n, dim, s, out);
    }
    kith_memory_stats_get(&before);
    /* One after the other in turn, so that both see the same machine. */
    for (int64_t k = 0; k < n_steps; k++) {
        double from = ki_seconds_now();
        KI_CHECK(kith_objective_evaluate(objective, &batch, &result, err));
        times[k] = ki_seconds_now() - from;
        from = ki_seconds_now();
        if (s) products(x, n, dim, s, out);
        bare[k] = ki_seconds_now() - from;
    }
    kith_memory_stats_get(&after);
    *ret_result = (kith_bench_objective_result){
        .batch = n,
        .dim = dim,
        .n_steps = n_steps,
        .n_threads = ki_threads(),
        .seconds = ki_bench_median(times, n_steps),
        .product_seconds = s ? ki_bench_median(bare, n_steps) : 0,
        .allocations_per_step = (double)(after.n_allocations - before.n_allocations) / (double)n_steps,
        .work_bytes = kith_objective_work_bytes(objective),
        .value = result.total,
    };
done:
    kith_objective_free(objective);
    ki_free(x);
    ki_free(teacher);
    ki_free(s);
    ki_free(out);
    ki_free(labels);
    ki_free(times);
    ki_free(bare);
    return status;
}

const char *kith_bench_objective_name(int64_t i) {
    return i >= 0 && i <= INT_MAX ? ki_usual_loss_at((int)i) : NULL;
}
