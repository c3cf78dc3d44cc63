/* An objective on the device beside the same on the host, for tests of the engine. Included by one test
 * program each. */
#ifndef KITH_TEST_OBJECTIVE_DEVICE_H
#define KITH_TEST_OBJECTIVE_DEVICE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda.h"
#include "objective/cases.h"
#include "objective/engine.h"

static ki_backend *device;
static const ki_engine_type *device_type;

static inline int device_open(void **state) {
    (void)state;
    kith_error err = {0};
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0) exit(77);
    const ki_backend_options options = {.device = n - 1}; /* the last: nothing may assume the first */
    if (ki_backend_open("cuda", &options, &device, &err) != KITH_OK) {
        print_error("%s\n", err.message);
        return -1;
    }
    device_type = ki_engine_of(device);
    return device_type ? 0 : -1;
}

static inline int device_close(void **state) {
    (void)state;
    ki_backend_close(device);
    return 0;
}

static inline void *device_take(size_t bytes) {
    void *ptr = NULL;
    kith_error err = {0};
    assert_ok(device->type->memory.alloc(device, bytes ? bytes : 1, &ptr, &err), &err);
    return ptr;
}

static inline void device_put(void *to, const void *from, size_t bytes) {
    kith_error err = {0};
    assert_ok(device->type->memory.upload(device, to, from, bytes, &err), &err);
    assert_ok(device->type->memory.sync(device, &err), &err);
}

static inline void device_get(void *to, const void *from, size_t bytes) {
    kith_error err = {0};
    assert_ok(device->type->memory.download(device, from, to, bytes, &err), &err);
    assert_ok(device->type->memory.sync(device, &err), &err);
}

/* An engine with the memory a learner would give it. */
typedef struct device_run {
    ki_engine *engine;
    ki_engine_batch batch;
    int64_t m;
    int32_t *label;
    uint64_t *step;
} device_run;

static inline ki_edge device_edge(ki_tap tap, const ki_tap_data *data) {
    ki_edge edge = {.layout = tap == KI_TAP_MAP ? KI_NATIVE : KI_PLAIN};
    const int64_t side = (int64_t)sqrt((double)data->hw);
    if (tap == KI_TAP_MAP)
        edge.shape = side * side == data->hw ? KI_SHAPE4(data->rows, data->c, side, side)
                                             : KI_SHAPE4(data->rows, data->c, 1, data->hw);
    else
        edge.shape = KI_SHAPE2(data->rows, data->cols);
    edge.bytes = device->type->memory.edge_bytes(device, &edge.shape, edge.layout);
    return edge;
}

/* Memory for the batch's taps, and the engine; the status of opening it. */
static inline kith_status device_run_try(device_run *run, ki_objective *objective, const ki_batch *batch,
                                         kith_error *err) {
    memset(run, 0, sizeof *run);
    run->m = batch->m;
    run->batch.label = run->label = device_take((size_t)batch->m * sizeof *run->label);
    run->batch.step = run->step = device_take(sizeof *run->step);
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if (!batch->tap[tap].data || !(ki_objective_taps(objective) & KI_TAP_BIT(tap))) continue;
        run->batch.tap_edge[tap] = device_edge(tap, &batch->tap[tap]);
        run->batch.tap[tap] = device_take(run->batch.tap_edge[tap].bytes);
        if (!ki_tap_is_teacher(tap)) run->batch.diff[tap] = device_take(run->batch.tap_edge[tap].bytes);
    }
    if (ki_engine_stops(objective))
        run->batch.diff_stopped = device_take(run->batch.tap_edge[KI_TAP_EMBEDDING].bytes);
    return device_type->open(device, objective, &run->batch, batch->m, &run->engine, err);
}

static inline void device_run_close(device_run *run) {
    device_type->close(run->engine);
    device->type->memory.free(device, run->label);
    device->type->memory.free(device, run->step);
    device->type->memory.free(device, run->batch.diff_stopped);
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        device->type->memory.free(device, (void *)(uintptr_t)run->batch.tap[tap]);
        device->type->memory.free(device, run->batch.diff[tap]);
    }
}

static inline void device_run_fill(device_run *run, const ki_batch *batch) {
    kith_error err = {0};
    device_put(run->label, batch->label, (size_t)batch->m * sizeof *batch->label);
    device_put(run->step, &batch->step, sizeof batch->step);
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if (!run->batch.tap[tap]) continue;
        assert_ok(
            device->type->memory.import(device, &run->batch.tap_edge[tap],
                                        (void *)(uintptr_t)run->batch.tap[tap], batch->tap[tap].data, &err),
            &err);
        assert_ok(device->type->memory.sync(device, &err), &err);
    }
    /* Added to, not assigned. */
    if (run->batch.diff[KI_TAP_WEIGHT])
        assert_ok(device->type->memory.zero(device, run->batch.diff[KI_TAP_WEIGHT],
                                            run->batch.tap_edge[KI_TAP_WEIGHT].bytes, &err),
                  &err);
}

static inline ki_engine_values device_run_evaluate(device_run *run, const ki_batch *batch) {
    kith_error err = {0};
    ki_engine_values values;
    device_run_fill(run, batch);
    assert_ok(device_type->clear_diffs(run->engine, &err), &err);
    assert_ok(device_type->evaluate(run->engine, &err), &err);
    assert_ok(device_type->read(run->engine, &values, &err), &err);
    return values;
}

/* A gradient as the host has it; NULL when the tap is not read. Give back with ki_free. */
static inline ki_real *device_run_diff(const device_run *run, ki_tap tap) {
    kith_error err = {0};
    if (!run->batch.diff[tap]) return NULL;
    const ki_edge *edge = &run->batch.tap_edge[tap];
    ki_real *diff = ki_alloc((size_t)ki_shape_count(&edge->shape), sizeof *diff);
    assert_ok(device->type->memory.export(device, edge, run->batch.diff[tap], diff, &err), &err);
    assert_ok(device->type->memory.sync(device, &err), &err);
    return diff;
}

static inline ki_real *device_floats(const void *from, int64_t n) {
    ki_real *to = ki_alloc((size_t)n, sizeof *to);
    device_get(to, from, (size_t)n * sizeof *to);
    return to;
}

static int device_bad; /* differences found */

/* |found - wanted| against `tolerance` |wanted| + floor. */
static inline void device_compare(const char *where, const char *what, const ki_real *found,
                                  const ki_real *wanted, int64_t n, double tolerance, double floor_) {
    double error = 0, size = 0;
    if (!wanted && !found) return;
    if (!wanted || !found) fail_msg("%s: %s is on one side only", where, what);
    for (int64_t i = 0; i < n; i++) {
        error += pow((double)found[i] - (double)wanted[i], 2);
        size += pow((double)wanted[i], 2);
    }
    error = sqrt(error), size = sqrt(size);
    if (error <= tolerance * size + floor_) return;
    print_error("%s: %s differs by %.3g of %.3g, relative %.3g\n", where, what, error, size, error / size);
    device_bad++;
}

/* Everything of one evaluation on the device against the host's: the host evaluates `batch`, too. */
static inline void device_check(const char *where, device_run *run, ki_objective *objective,
                                const ki_batch *batch, double tolerance, double floor_) {
    kith_error err = {0};
    ki_result wanted;
    const ki_engine_values found = device_run_evaluate(run, batch);
    ki_objective_clear_diffs(objective);
    if (ki_objective_evaluate(objective, batch, &wanted, &err) != KITH_OK)
        fail_msg("%s: %s (%s)", where, err.message, err.hint);
    if (!(fabs(found.total - wanted.total) <= tolerance * fmax(1, fabs(wanted.total)))) {
        print_error("%s: value %.9g, wanted %.9g\n", where, found.total, wanted.total);
        device_bad++;
    }
    for (size_t i = 0; i < wanted.n_terms; i++) {
        assert_string_equal(found.term[i].name, wanted.term[i].name);
        if (found.term[i].weight != wanted.term[i].weight ||
            !(fabs(found.term[i].value - wanted.term[i].value) <=
              tolerance * fmax(1, fabs(wanted.term[i].value)))) {
            print_error("%s: term %s %.9g * %g, wanted %.9g * %g\n", where, wanted.term[i].name,
                        found.term[i].value, found.term[i].weight, wanted.term[i].value,
                        wanted.term[i].weight);
            device_bad++;
        }
    }
    if (found.n_pos != wanted.n_pos || found.n_neg != wanted.n_neg || !found.is_finite) {
        print_error("%s: %lld and %lld pairs, wanted %lld and %lld; finite %d\n", where,
                    (long long)found.n_pos, (long long)found.n_neg, (long long)wanted.n_pos,
                    (long long)wanted.n_neg, found.is_finite);
        device_bad++;
    }
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        ki_real *diff = device_run_diff(run, tap);
        if (diff)
            device_compare(where, ki_tap_name(tap), diff, wanted.diff[tap],
                           batch->tap[tap].rows * batch->tap[tap].cols, tolerance, floor_);
        ki_free(diff);
    }
    if (run->batch.diff_stopped) {
        const int64_t n = batch->m * batch->tap[KI_TAP_EMBEDDING].cols;
        ki_real *diff = device_floats(run->batch.diff_stopped, n);
        device_compare(where, "stopped", diff, wanted.diff_stopped, n, tolerance, floor_);
        ki_free(diff);
    }
    ki_engine_param param;
    for (size_t i = 0; device_type->param_at(run->engine, i, &param); i++) {
        const ki_state *state = ki_objective_param(objective, i);
        assert_string_equal(param.name, state->name);
        assert_int_equal(param.n, state->count);
        if (!param.diff != !state->diff) fail_msg("%s: %s is learned on one side only", where, state->name);
        if (!param.diff) continue;
        ki_real *diff = device_floats(param.diff, param.n);
        device_compare(where, state->name, diff, state->diff, param.n, tolerance, floor_);
        ki_free(diff);
    }
}

#endif
