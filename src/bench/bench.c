/* The engine's benchmark: steps of one plan on random input, timed one by one. The median is
 * reported, so a disturbed step does not count. */
#include "kith/experimental/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "bench/bench_parts.h"
#include "kith/log.h"
#include "model/device.h"
#include "net/model_file.h"
#include "nn/plan.h"
#include "optim/optim.h"

enum { LEAST_STEPS = 5, WARM_UPS = 2 };
static const double most_seconds = 10, learning_rate = 1e-5;

typedef struct bench {
    const kith_bench_options *options;
    int64_t batch;
    const char *tap;
    ki_backend *backend;
    ki_net net;
    ki_params *params;
    ki_plan *plan;
    ki_optim_param *optim_params;
    ki_optim *optim;
    float *input, *values, *grad;
    int64_t n_in, n_out; /* of the batch */
} bench;

/* The most memory that the process has used; 0 if the system does not say. */
uint64_t ki_bench_peak_rss(void) {
    FILE *file = fopen("/proc/self/status", "r");
    if (!file) return 0;
    char line[256];
    unsigned long long kib = 0;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "VmHWM: %llu kB", &kib) == 1) break;
    }
    fclose(file);
    return (uint64_t)kib * 1024;
}

static kith_status make_optim(bench *b, kith_error *err) {
    const int n = ki_params_count(b->params);
    int n_trained = 0;
    KI_TRY(ki_zalloc_or(&b->optim_params, (size_t)n, sizeof *b->optim_params, "the optimizer's parameters",
                        err));
    for (int i = 0; i < n; i++) {
        const ki_param *p = ki_params_at(b->params, i);
        if (!p->trained) continue;
        b->optim_params[n_trained++] =
            (ki_optim_param){.name = p->name, .n = p->n, .value = p->value, .diff = p->diff};
    }
    ki_optim_settings settings;
    KI_TRY(ki_optim_parse(NULL, &settings, err));
    return ki_optim_new(b->backend, b->optim_params, n_trained, &settings, &b->optim, err);
}

static kith_status make_arrays(bench *b, kith_error *err) {
    ki_shape shape;
    KI_TRY(ki_plan_tap_shape(b->plan, b->tap, &shape, err));
    b->n_in = b->batch * b->net.c * b->net.h * b->net.w;
    b->n_out = ki_shape_count(&shape);
    KI_TRY(ki_alloc_or(&b->input, (size_t)b->n_in, sizeof *b->input, "the input", err));
    KI_TRY(ki_alloc_or(&b->values, (size_t)b->n_out, sizeof *b->values, "the tap's values", err));
    KI_TRY(ki_alloc_or(&b->grad, (size_t)b->n_out, sizeof *b->grad, "the tap's gradient", err));
    ki_rng rng = ki_rng_at(b->options->model->seed, KI_RNG_TEST, 0, 0);
    for (int64_t i = 0; i < b->n_in; i++) b->input[i] = 2 * ki_rng_float(&rng) - 1;
    for (int64_t i = 0; i < b->n_out; i++) b->grad[i] = (2 * ki_rng_float(&rng) - 1) / (float)b->batch;
    return KITH_OK;
}

static kith_status prepare(bench *b, kith_error *err) {
    const kith_bench_options *o = b->options;
    kith_model_options model = *o->model;
    if (!model.weights && o->train && model.embedding == 0 && model.classes <= 0)
        model.embedding = KI_BENCH_EMBEDDING;
    KI_TRY(ki_device_open(&model, &b->backend, err));
    KI_TRY(ki_model_file_open(&model, b->backend, &b->net, &b->params, NULL, err));
    b->tap = o->tap ? o->tap : b->net.embedding > 0 ? "embedding" : b->net.classes > 0 ? "logits" : "pooled";
    const ki_plan_options plan = {.mb = b->batch,
                                  .mode = o->train ? KI_TRAIN : KI_INFER,
                                  .frozen_bn = o->frozen_bn,
                                  .taps = {b->tap},
                                  .grad_taps = {o->train ? b->tap : NULL},
                                  .seed = model.seed};
    KI_TRY(ki_plan_new(b->net.graph, b->params, b->backend, &plan, &b->plan, err));
    if (o->train) KI_TRY(make_optim(b, err));
    return make_arrays(b, err);
}

/* The objective is sum(tap * grad) with a fixed random `grad`: its value costs nothing, its gradient
 * is the same in every step. */
static kith_status step(bench *b, kith_error *err) {
    KI_TRY(ki_plan_set_input(b->plan, b->input, err));
    KI_TRY(ki_plan_forward(b->plan, err));
    KI_TRY(ki_plan_read(b->plan, b->tap, b->values, err));
    if (b->options->train) {
        KI_TRY(ki_params_zero_diffs(b->params, err));
        KI_TRY(ki_plan_set_grad(b->plan, b->tap, b->grad, err));
        KI_TRY(ki_plan_backward(b->plan, err));
        KI_TRY(ki_optim_update(b->optim, learning_rate, err));
        ki_params_touch(b->params);
    }
    return b->backend->type->memory.sync(b->backend, err);
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double ki_bench_median(double *values, int64_t n) {
    qsort(values, (size_t)n, sizeof *values, compare_doubles);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

int64_t ki_bench_n_steps(const kith_bench_options *o, double seconds) {
    int64_t n = o->n_steps;
    if (n == 0) n = (int64_t)(most_seconds / (seconds > 0 ? seconds : 1));
    if (o->n_steps == 0 && n < LEAST_STEPS) n = LEAST_STEPS;
    return n < KI_BENCH_MOST_STEPS ? n : KI_BENCH_MOST_STEPS;
}

void ki_bench_fill(const kith_bench_options *o, const ki_plan *plan, int64_t batch, double *seconds,
                   int64_t n, kith_bench_result *result) {
    ki_plan_stats stats;
    ki_plan_stats_get(plan, &stats);
    result->n_steps = n;
    result->step_seconds = ki_bench_median(seconds, n);
    result->fastest_seconds = seconds[0];
    result->images_per_second = (double)batch / result->step_seconds;
    result->gflop_per_image = stats.forward_flops / (double)batch * (o->train ? 3e-9 : 1e-9);
    result->gflops = result->gflop_per_image * result->images_per_second;
    result->peak_rss_bytes = ki_bench_peak_rss();
    result->activation_bytes = stats.activation_bytes;
    result->unshared_activation_bytes = stats.unshared_bytes;
}

static kith_status measure(bench *b, kith_bench_result *result, kith_error *err) {
    const kith_bench_options *o = b->options;
    double seconds[KI_BENCH_MOST_STEPS], warm_seconds = 0;
    const int64_t n_warm_ups = o->n_warm_ups ? o->n_warm_ups : WARM_UPS;
    for (int64_t i = 0; i < n_warm_ups; i++) {
        const double began = ki_seconds_now();
        KI_TRY(step(b, err));
        warm_seconds = ki_seconds_now() - began;
    }
    const int64_t n = ki_bench_n_steps(o, warm_seconds);
    kith_memory_stats before, after;
    kith_memory_stats_get(&before);
    const int64_t reorders = b->backend->n_reorders;
    for (int64_t i = 0; i < n; i++) {
        const double began = ki_seconds_now();
        KI_TRY(step(b, err));
        seconds[i] = ki_seconds_now() - began;
    }
    kith_memory_stats_get(&after);
    ki_bench_fill(o, b->plan, b->batch, seconds, n, result);
    result->backbone = b->net.backbone->name;
    result->device = b->backend->type->name;
    result->precision = "float32";
    result->height = b->net.h;
    result->width = b->net.w;
    result->allocations_per_step = (double)(after.n_allocations - before.n_allocations) / (double)n;
    result->reorders_per_step = (double)(b->backend->n_reorders - reorders) / (double)n;
    for (int64_t i = 0; i < b->n_out; i++) result->checksum += (double)b->values[i];
    return KITH_OK;
}

KI_OPTIONS_INIT(kith_bench_options, 0)

kith_status kith_bench_run(const kith_bench_options *options, kith_bench_result *ret_result,
                           kith_error *err) {
    KI_NEED(err, ret_result);
    KI_OPTIONS_TAKE(kith_bench_options, o, options, err);
    KI_OPTIONS_TAKE(kith_model_options, model, o.model, err);
    o.model = &model;
    if (o.batch < 0 || o.n_steps < 0 || o.n_warm_ups < 0)
        return ki_fail(err, KITH_EINVAL, "batch, steps and warm-ups are numbers of at least 1");
    kith_status status;
    bench b = {.options = &o, .batch = o.batch ? o.batch : KI_BENCH_BATCH};
    const int threads_before = ki_threads();
    KI_TRY(ki_threads_ask(o.n_threads, err));
    kith_bench_result result = {.batch = b.batch, .n_threads = ki_threads()};
    const double began = ki_seconds_now();
    if (ki_bench_is_step(&o)) {
        KI_CHECK(ki_bench_step_run(&o, &result, err));
        *ret_result = result;
        goto done;
    }
    if (o.profile) {
        status = ki_fail(err, KITH_EINVAL, "a profile is of a training step with an objective");
        goto done;
    }
    KI_CHECK(prepare(&b, err));
    result.plan_seconds = ki_seconds_now() - began;
    KI_CHECK(measure(&b, &result, err));
    *ret_result = result;
done:
    ki_optim_free(b.optim);
    ki_plan_free(b.plan);
    ki_params_free(b.params);
    ki_net_release(&b.net);
    ki_backend_close(b.backend);
    ki_free(b.optim_params);
    ki_free(b.input);
    ki_free(b.values);
    ki_free(b.grad);
    ki_threads_set(threads_before);
    return status;
}
