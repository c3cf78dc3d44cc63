/* An objective and its arrays on a device: placing them, evaluating, timing. */
#include "objective/handle/placed.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "device/recording.h"

struct ki_placed {
    ki_backend *backend;
    const ki_engine_type *type;
    ki_engine *engine;
    ki_objective *objective;
    ki_engine_batch batch;
    ki_batch shape; /* sizes alone */
    int32_t *label;
    uint64_t *step, step_now; /* on the device; on the host, until it is copied */
    void *tap[KI_N_TAPS];
    ki_recording queued;                             /* the evaluation of ki_placed_queue */
    ki_real *diff[KI_N_TAPS], *diff_stopped, *param; /* on the host */
};

void ki_placed_free(ki_placed *p) {
    if (!p) return;
    if (p->backend) ki_recording_release(&p->queued, p->backend);
    if (p->engine) p->type->close(p->engine);
    if (p->backend) {
        const ki_backend_type *type = p->backend->type;
        type->memory.free(p->backend, p->label);
        type->memory.free(p->backend, p->step);
        type->memory.free(p->backend, p->batch.diff_stopped);
        for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
            type->memory.free(p->backend, p->tap[tap]);
            type->memory.free(p->backend, p->batch.diff[tap]);
        }
    }
    ki_backend_close(p->backend);
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) ki_free(p->diff[tap]);
    ki_free(p->diff_stopped);
    ki_free(p->param);
    ki_free(p);
}

/* [m, cols], or a map as [m, c, 1, hw]: the layout of its positions does not matter here. */
static ki_edge edge_of(const ki_placed *p, ki_tap tap, const ki_tap_data *data) {
    ki_edge edge = {.layout = tap == KI_TAP_MAP ? KI_NATIVE : KI_PLAIN,
                    .shape = KI_SHAPE2(data->rows, data->cols)};
    if (tap == KI_TAP_MAP) edge.shape = KI_SHAPE4(data->rows, data->c, 1, data->hw);
    edge.bytes = p->backend->type->memory.edge_bytes(p->backend, &edge.shape, edge.layout);
    return edge;
}

static kith_status take(ki_placed *p, size_t bytes, void *ret_ptr, kith_error *err) {
    void *ptr = NULL;
    KI_TRY(p->backend->type->memory.alloc(p->backend, bytes, &ptr, err));
    memcpy(ret_ptr, &ptr, sizeof ptr);
    return KITH_OK;
}

static kith_status place(ki_placed *p, const ki_batch *batch, int64_t n_unlabelled, kith_error *err) {
    int64_t most = 1;
    KI_TRY(take(p, (size_t)batch->m * sizeof *p->label, &p->label, err));
    KI_TRY(take(p, sizeof *p->step, &p->step, err));
    p->batch.label = p->label;
    p->batch.n_unlabelled = n_unlabelled;
    p->batch.step = p->step;
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        const ki_tap_data *data = &batch->tap[tap];
        if (!data->data || !(ki_objective_taps(p->objective) & KI_TAP_BIT(tap))) continue;
        p->batch.tap_edge[tap] = edge_of(p, tap, data);
        KI_TRY(take(p, p->batch.tap_edge[tap].bytes, &p->tap[tap], err));
        p->batch.tap[tap] = p->tap[tap];
        if (ki_tap_is_teacher(tap)) continue;
        KI_TRY(take(p, p->batch.tap_edge[tap].bytes, &p->batch.diff[tap], err));
        KI_TRY(ki_alloc_or(&p->diff[tap], (size_t)(data->rows * data->cols), sizeof *p->diff[tap],
                           "gradients", err));
    }
    if (ki_engine_stops(p->objective)) {
        const int64_t n = batch->m * batch->tap[KI_TAP_EMBEDDING].cols;
        KI_TRY(take(p, (size_t)n * sizeof(ki_real), &p->batch.diff_stopped, err));
        KI_TRY(ki_alloc_or(&p->diff_stopped, (size_t)n, sizeof *p->diff_stopped, "gradients", err));
    }
    for (size_t i = 0; ki_objective_param(p->objective, i); i++) {
        const int64_t n = ki_objective_param(p->objective, i)->count;
        most = n > most ? n : most;
    }
    KI_TRY(ki_alloc_or(&p->param, (size_t)most, sizeof *p->param, "parameter gradients", err));
    return p->type->open(p->backend, p->objective, &p->batch, batch->m, &p->engine, err);
}

kith_status ki_placed_new(const char *device, ki_objective *objective, const ki_batch *batch,
                          int64_t n_unlabelled, ki_placed **ret_placed, kith_error *err) {
    ki_placed *p = NULL;
    kith_status status = KITH_OK;
    KI_TRY(ki_zalloc_or(&p, 1, sizeof *p, "an objective on a device", err));
    KI_CHECK(ki_backend_open(device, NULL, &p->backend, err));
    p->objective = objective;
    p->shape = *batch;
    p->type = ki_engine_of(p->backend);
    if (!p->type || p->backend->type->is_host) {
        status = ki_fail(err, KITH_EUNSUPPORTED, "device %s does not evaluate objectives itself", device);
        goto done;
    }
    KI_CHECK(place(p, batch, n_unlabelled, err));
    *ret_placed = p;
    return KITH_OK;
done:
    ki_placed_free(p);
    return status;
}

bool ki_placed_fits(const ki_placed *p, const ki_batch *batch, int64_t n_unlabelled) {
    bool fits = p->shape.m == batch->m && p->batch.n_unlabelled == n_unlabelled;
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        const ki_tap_data *a = &p->shape.tap[tap], *b = &batch->tap[tap];
        fits &= a->rows == b->rows && a->cols == b->cols && a->c == b->c && a->hw == b->hw &&
                !a->data == !b->data;
    }
    return fits;
}

static kith_status fill(ki_placed *p, const ki_batch *batch, kith_error *err) {
    const ki_backend_type *type = p->backend->type;
    KI_TRY(type->memory.upload(p->backend, p->label, batch->label, (size_t)batch->m * sizeof *p->label, err));
    KI_TRY(type->memory.upload(p->backend, p->step, &batch->step, sizeof *p->step, err));
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if (p->tap[tap])
            KI_TRY(type->memory.import(p->backend, &p->batch.tap_edge[tap], p->tap[tap], batch->tap[tap].data,
                                       err));
    }
    if (p->batch.diff[KI_TAP_WEIGHT]) /* gradients are added to it, not assigned */
        KI_TRY(type->memory.zero(p->backend, p->batch.diff[KI_TAP_WEIGHT],
                                 p->batch.tap_edge[KI_TAP_WEIGHT].bytes, err));
    return type->memory.sync(p->backend, err);
}

static ki_result result_of(const ki_engine_values *values) {
    return (ki_result){.total = values->total,
                       .n_terms = values->n_terms,
                       .term = values->term,
                       .n_pos = values->n_pos,
                       .n_neg = values->n_neg,
                       .n_empty = values->n_empty};
}

/* Gradients of parameters are added to the objective's own; its values and what it keeps are as the device has them. */
static kith_status bring_params_back(ki_placed *p, kith_error *err) {
    const ki_backend_type *type = p->backend->type;
    ki_engine_param param;
    for (size_t i = 0; p->type->param_at(p->engine, i, &param); i++) {
        if (!param.diff) continue;
        KI_TRY(
            type->memory.download(p->backend, param.diff, p->param, (size_t)param.n * sizeof *p->param, err));
        KI_TRY(type->memory.sync(p->backend, err));
        ki_real *diff = ki_objective_param(p->objective, i)->diff;
        for (int64_t k = 0; k < param.n; k++) diff[k] += p->param[k];
    }
    return p->type->pull(p->engine, err);
}

static kith_status bring_back(ki_placed *p, const ki_engine_values *values, ki_result *ret, kith_error *err) {
    const ki_backend_type *type = p->backend->type;
    *ret = result_of(values);
    ret->diff_stopped = p->diff_stopped;
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if (!p->diff[tap]) continue;
        KI_TRY(
            type->memory.export(p->backend, &p->batch.tap_edge[tap], p->batch.diff[tap], p->diff[tap], err));
        ret->diff[tap] = p->diff[tap];
    }
    if (p->diff_stopped)
        KI_TRY(type->memory.download(
            p->backend, p->batch.diff_stopped, p->diff_stopped,
            (size_t)(p->shape.m * p->shape.tap[KI_TAP_EMBEDDING].cols) * sizeof(ki_real), err));
    return bring_params_back(p, err);
}

static kith_status read_values(ki_placed *p, ki_engine_values *ret_values, kith_error *err) {
    KI_TRY(p->type->read(p->engine, ret_values, err));
    if (ret_values->is_finite) return KITH_OK;
    ki_fail(err, KITH_ENUMERIC, "an embedding or a term's value is NaN or infinite");
    return ki_hint(err, KITH_ENUMERIC, "look for a learning rate that is too high or an unreadable input");
}

kith_status ki_placed_evaluate(ki_placed *p, const ki_batch *batch, ki_result *ret_result, kith_error *err) {
    ki_engine_values values;
    KI_TRY(p->type->push(p->engine, err));
    KI_TRY(fill(p, batch, err));
    KI_TRY(p->type->clear_diffs(p->engine, err));
    KI_TRY(p->type->evaluate(p->engine, err));
    KI_TRY(read_values(p, &values, err));
    return bring_back(p, &values, ret_result, err);
}

static kith_status queue_evaluation(void *user, kith_error *err) {
    const ki_placed *p = user;
    return p->type->evaluate(p->engine, err);
}

/* ---- on memory of the device ---- */

/* The engine's memory is fixed, and the caller's changes from batch to batch: taps are copied in, gradients out. */
static kith_status copy_in(ki_placed *p, const ki_batch *batch, kith_error *err) {
    const ki_backend_type *type = p->backend->type;
    const ki_queue_type *queues = type->queues;
    KI_TRY(queues->copy(p->backend, KI_QUEUE_MAIN, p->label, batch->label,
                        (size_t)batch->m * sizeof *p->label, err));
    p->step_now = batch->step;
    KI_TRY(type->memory.upload(p->backend, p->step, &p->step_now, sizeof p->step_now, err));
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if (p->tap[tap])
            KI_TRY(queues->copy(p->backend, KI_QUEUE_MAIN, p->tap[tap], batch->tap[tap].data,
                                p->batch.tap_edge[tap].bytes, err));
    }
    if (!p->batch.diff[KI_TAP_WEIGHT]) return KITH_OK;
    return type->memory.zero(p->backend, p->batch.diff[KI_TAP_WEIGHT], p->batch.tap_edge[KI_TAP_WEIGHT].bytes,
                             err);
}

static kith_status copy_out(ki_placed *p, const ki_placed_results *to, kith_error *err) {
    const ki_queue_type *queues = p->backend->type->queues;
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if (p->diff[tap])
            KI_TRY(queues->copy(p->backend, KI_QUEUE_MAIN, to->diff[tap], p->batch.diff[tap],
                                p->batch.tap_edge[tap].bytes, err));
    }
    if (p->batch.diff_stopped)
        KI_TRY(queues->copy(p->backend, KI_QUEUE_MAIN, to->diff_stopped, p->batch.diff_stopped,
                            p->batch.tap_edge[KI_TAP_EMBEDDING].bytes, err));
    if (to->total)
        KI_TRY(queues->copy(p->backend, KI_QUEUE_MAIN, to->total, p->type->total(p->engine),
                            sizeof *to->total, err));
    if (to->total_f32)
        KI_TRY(queues->copy(p->backend, KI_QUEUE_MAIN, to->total_f32, p->type->total_f32(p->engine),
                            sizeof *to->total_f32, err));
    return KITH_OK;
}

static kith_status check_results(const ki_placed *p, const ki_placed_results *to, kith_error *err) {
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if (p->diff[tap] && !to->diff[tap])
            return ki_fail(err, KITH_EINVAL, "there is no memory for the gradient of %s", ki_tap_name(tap));
    }
    if (p->batch.diff_stopped && !to->diff_stopped)
        return ki_fail(err, KITH_EINVAL, "there is no memory for the gradient that stops at the embedding");
    return KITH_OK;
}

kith_status ki_placed_queue(ki_placed *p, const ki_batch *batch, const ki_placed_results *results,
                            void *stream, kith_error *err) {
    const bool has_params = ki_objective_param(p->objective, 0) != NULL;
    KI_TRY(check_results(p, results, err));
    if (has_params) KI_TRY(p->type->push(p->engine, err));
    KI_TRY(p->type->follow(p->engine, stream, err));
    KI_TRY(copy_in(p, batch, err));
    KI_TRY(p->type->clear_diffs(p->engine, err));
    KI_TRY(ki_recording_run(&p->queued, p->backend, queue_evaluation, p, err));
    KI_TRY(copy_out(p, results, err));
    KI_TRY(p->type->lead(p->engine, stream, err));
    return has_params ? bring_params_back(p, err) : KITH_OK;
}

kith_status ki_placed_read(ki_placed *p, ki_result *ret_result, kith_error *err) {
    ki_engine_values values;
    KI_TRY(read_values(p, &values, err));
    *ret_result = result_of(&values);
    return KITH_OK;
}

/* ---- timing ---- */

/* Mean seconds of an evaluation, over n_steps in a row. */
static kith_status run(ki_placed *p, ki_recording *step, int64_t n_steps, double *ret_seconds,
                       kith_error *err) {
    const double from = ki_seconds_now();
    for (int64_t k = 0; k < n_steps; k++)
        KI_TRY(ki_recording_run(step, p->backend, queue_evaluation, p, err));
    KI_TRY(p->backend->type->memory.sync(p->backend, err));
    *ret_seconds = (ki_seconds_now() - from) / (double)n_steps;
    return KITH_OK;
}

kith_status ki_placed_time(ki_placed *p, const ki_batch *batch, int64_t n_steps,
                           double ret_seconds[KI_PLACED_RUNS], double *ret_value, kith_error *err) {
    kith_status status = KITH_OK;
    ki_recording step = {0};
    double seconds[KI_PLACED_RUNS];
    ki_engine_values values;
    KI_TRY(fill(p, batch, err));
    KI_CHECK(run(p, &step, KI_RECORDING_WARM_UPS + 1, &seconds[0], err)); /* the last of these is recorded */
    KI_CHECK(run(p, &step, 2, &seconds[0], err));
    if (n_steps == 0) n_steps = seconds[0] > 0.01 ? 3 : seconds[0] > 0.001 ? 20 : 100;
    for (int i = 0; i < KI_PLACED_RUNS; i++) KI_CHECK(run(p, &step, n_steps, &seconds[i], err));
    KI_CHECK(p->type->read(p->engine, &values, err));
    memcpy(ret_seconds, seconds, sizeof seconds);
    *ret_value = values.total;
done:
    ki_recording_release(&step, p->backend);
    return status;
}
