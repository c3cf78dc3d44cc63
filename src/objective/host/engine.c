/* The host as an engine: objectives over the memory of a backend that is the host's. Evaluations are finished when they return, so
 * KITH_EINVAL and KITH_ENUMERIC come from evaluate itself.
 *
 * Embeddings and pooled features are read, and their gradients written, where the network has them. Maps may have a layout of the
 * backend's own: they are copied. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "objective/engine.h"
#include "objective/host/host.h"

/* ki_engine is each device's own; this is what is behind the pointer here. */
typedef struct host_engine {
    ki_backend *backend;
    ki_objective *objective;
    ki_engine_batch batch;
    int64_t n_own;            /* rows of the batch here */
    ki_real *map, *diff_map;  /* plain copies; NULL: no term reads the map */
    ki_engine_values values;  /* of the last evaluation, */
    ki_engine_values fetched; /* and as they were when fetch was called */
    ki_term *term, *fetched_term;
    float total_f32;
    bool is_fetched;
} host_engine;

static host_engine *of(const ki_engine *engine) { return (host_engine *)(void *)engine; }

static void engine_close(ki_engine *engine) {
    host_engine *e = of(engine);
    if (!e) return;
    ki_free(e->map);
    ki_free(e->diff_map);
    ki_free(e->term);
    ki_free(e->fetched_term);
    ki_free(e);
}

static kith_status make(host_engine *e, kith_error *err) {
    const ki_objective *o = e->objective;
    const size_t n_map = (size_t)ki_shape_count(&e->batch.tap_edge[KI_TAP_MAP].shape);
    if (o->taps & KI_TAP_BIT(KI_TAP_MAP)) {
        KI_TRY(ki_alloc_or(&e->map, n_map + 1, sizeof *e->map, "a map", err));
        KI_TRY(ki_alloc_or(&e->diff_map, n_map + 1, sizeof *e->diff_map, "a map's gradient", err));
    }
    KI_TRY(ki_zalloc_or(&e->term, o->n_terms + 1, sizeof *e->term, "terms", err));
    KI_TRY(ki_zalloc_or(&e->fetched_term, o->n_terms + 1, sizeof *e->term, "terms", err));
    e->values.term = e->term;
    e->fetched.term = e->fetched_term;
    return KITH_OK;
}

static kith_status engine_open(ki_backend *backend, ki_objective *objective, const ki_engine_batch *batch,
                               int64_t m, ki_engine **ret_engine, kith_error *err) {
    host_engine *e = NULL;
    int64_t first = 0;
    KI_TRY(ki_zalloc_or(&e, 1, sizeof *e, "an engine", err));
    e->backend = backend;
    e->objective = objective;
    e->batch = *batch;
    e->n_own = m;
    if (batch->comm) ki_comm_own(batch->comm->comm, m, &first, &e->n_own);
    const kith_status status = make(e, err);
    ki_engine *engine = (ki_engine *)(void *)e;
    if (status == KITH_OK)
        *ret_engine = engine;
    else
        engine_close(engine);
    return status;
}

/* What is learnt belongs to the objective, so engines of one objective share it anyway. */
static kith_status engine_open_beside(ki_engine *first, const ki_engine_batch *batch, int64_t m,
                                      ki_engine **ret_engine, kith_error *err) {
    return engine_open(of(first)->backend, of(first)->objective, batch, m, ret_engine, err);
}

static kith_status engine_clear_diffs(ki_engine *engine, kith_error *err) {
    (void)err;
    ki_objective_clear_diffs(of(engine)->objective);
    return KITH_OK;
}

/* The taps as the network has them now. */
static kith_status read_taps(const host_engine *e, ki_batch *to, kith_error *err) {
    const ki_memory_type *memory = &e->backend->type->memory;
    KI_TRY(memory->sync(e->backend, err));
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        const ki_shape *shape = &e->batch.tap_edge[tap].shape;
        ki_tap_data *data = &to->tap[tap];
        if (tap == KI_TAP_LOGITS || !(e->objective->taps & KI_TAP_BIT(tap)) || !e->batch.tap[tap]) continue;
        *data = (ki_tap_data){.data = e->batch.tap[tap], .rows = shape->dim[0], .cols = shape->dim[1]};
        if (tap != KI_TAP_MAP) continue;
        data->data = e->map;
        data->c = shape->dim[1];
        data->hw = shape->dim[2] * shape->dim[3];
        data->cols = data->c * data->hw;
        if (data->rows > 0)
            KI_TRY(memory->export(e->backend, &e->batch.tap_edge[tap], e->batch.tap[tap], e->map, err));
    }
    return memory->sync(e->backend, err);
}

static void place_diffs(const host_engine *e, ki_batch *to) {
    const bool is_first = !e->batch.comm || ki_comm_is_first(e->batch.comm->comm);
    to->diff[KI_TAP_MAP] = e->diff_map;
    to->diff[KI_TAP_POOLED] = e->batch.diff[KI_TAP_POOLED];
    to->diff[KI_TAP_EMBEDDING] = e->batch.diff[KI_TAP_EMBEDDING];
    to->diff[KI_TAP_WEIGHT] = is_first ? e->batch.diff[KI_TAP_WEIGHT] : NULL;
    to->diff_stopped = e->batch.diff_stopped;
}

static void keep_values(host_engine *e, uint64_t step, const ki_result *result) {
    memcpy(e->term, result->term, result->n_terms * sizeof *e->term);
    e->values = (ki_engine_values){.step = step,
                                   .total = result->total,
                                   .n_terms = result->n_terms,
                                   .term = e->term,
                                   .n_pos = result->n_pos,
                                   .n_neg = result->n_neg,
                                   .n_empty = result->n_empty,
                                   .is_finite = true};
    e->total_f32 = (float)result->total;
}

static kith_status engine_evaluate(ki_engine *engine, kith_error *err) {
    host_engine *e = of(engine);
    ki_result result;
    ki_batch batch = {.m = e->n_own,
                      .label = e->batch.label,
                      .step = *e->batch.step,
                      .comm = e->batch.comm ? e->batch.comm->comm : NULL};
    KI_TRY(read_taps(e, &batch, err));
    place_diffs(e, &batch);
    KI_TRY(ki_objective_evaluate(e->objective, &batch, &result, err));
    keep_values(e, batch.step, &result);
    if (!isfinite(result.total))
        return ki_fail(err, KITH_ENUMERIC, "the loss is %s", isnan(result.total) ? "NaN" : "infinite");
    if (!e->diff_map || !e->batch.diff[KI_TAP_MAP] || e->n_own == 0) return KITH_OK;
    return e->backend->type->memory.import(e->backend, &e->batch.tap_edge[KI_TAP_MAP],
                                           e->batch.diff[KI_TAP_MAP], e->diff_map, err);
}

/* Evaluations have done it already. */
static kith_status engine_sum_diffs(ki_engine *engine, kith_error *err) {
    (void)engine, (void)err;
    return KITH_OK;
}

static kith_status engine_fetch(ki_engine *engine, kith_error *err) {
    host_engine *e = of(engine);
    (void)err;
    memcpy(e->fetched_term, e->term, e->values.n_terms * sizeof *e->term);
    e->fetched = e->values;
    e->fetched.term = e->fetched_term;
    e->is_fetched = true;
    return KITH_OK;
}

static kith_status engine_read(ki_engine *engine, ki_engine_values *ret_values, kith_error *err) {
    host_engine *e = of(engine);
    if (!e->is_fetched) KI_TRY(engine_fetch(engine, err));
    e->is_fetched = false;
    *ret_values = e->fetched;
    return KITH_OK;
}

/* There is no other stream that could come before or after. */
static kith_status engine_follow(ki_engine *engine, void *stream, kith_error *err) {
    (void)engine, (void)stream, (void)err;
    return KITH_OK;
}

static const double *engine_total(const ki_engine *engine) { return &of(engine)->values.total; }
static const float *engine_total_f32(const ki_engine *engine) { return &of(engine)->total_f32; }

static kith_status engine_describe(ki_engine *engine, ki_real *rows, kith_error *err) {
    host_engine *e = of(engine);
    ki_batch batch = {.m = e->n_own};
    ki_real *found = NULL;
    int64_t dim = 0;
    KI_TRY(read_taps(e, &batch, err));
    KI_TRY(ki_objective_describe(e->objective, &batch, &found, &dim, err));
    memcpy(rows, found, (size_t)(e->n_own * dim) * sizeof *rows);
    ki_free(found);
    return KITH_OK;
}

static bool engine_param_at(ki_engine *engine, size_t i, ki_engine_param *ret_param) {
    const ki_state *param = ki_objective_param(of(engine)->objective, i);
    if (!param) return false;
    *ret_param = (ki_engine_param){.name = param->name,
                                   .n = param->count,
                                   .value = param->value,
                                   .diff = param->diff,
                                   .lr_multiplier = param->lr_multiplier,
                                   .is_part = param->n_whole > 0};
    return true;
}

/* The objective's own values are the ones in use. */
static kith_status engine_pull(ki_engine *engine, kith_error *err) {
    (void)engine, (void)err;
    return KITH_OK;
}

const ki_engine_type ki_engine_host = {.open = engine_open,
                                       .open_beside = engine_open_beside,
                                       .close = engine_close,
                                       .clear_diffs = engine_clear_diffs,
                                       .evaluate = engine_evaluate,
                                       .sum_diffs = engine_sum_diffs,
                                       .fetch = engine_fetch,
                                       .read = engine_read,
                                       .follow = engine_follow,
                                       .lead = engine_follow,
                                       .total = engine_total,
                                       .total_f32 = engine_total_f32,
                                       .describe = engine_describe,
                                       .param_at = engine_param_at,
                                       .pull = engine_pull,
                                       .push = engine_pull};
