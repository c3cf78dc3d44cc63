/* The engine on the device: the schedule of the objective (objective/schedule.h), queued on the device's stream. */
#include <string.h>

#include "backend/cuda/gemm/gemm.h"
#include "base/log.h"
#include "objective/check.h"
#include "objective/cuda/inside.h"
#include "objective/cuda/rows.h"
#include "objective/pair/pairs.h"

kith_status ki_cuda_fail_method(kith_error *err, const char *kind, const char *name) {
    return ki_fail(err, KITH_EINTERNAL, "%s %s is said to run on the device, and has no record there", kind,
                   name);
}

kith_status ki_engine_take(ki_engine *e, size_t bytes, const char *what, void *ret_ptr, kith_error *err) {
    void *ptr = NULL;
    KI_TRY(ki_grow(&e->taken, &e->taken_capacity, e->n_taken + 1, sizeof *e->taken, "an engine", err));
    const kith_status status = e->backend->type->memory.alloc(e->backend, bytes ? bytes : 1, &ptr, err);
    if (status != KITH_OK) return ki_prefix(err, status, "the objective's %s", what);
    e->taken[e->n_taken++] = ptr;
    memcpy(ret_ptr, &ptr, sizeof ptr);
    return KITH_OK;
}

static kith_status take_floats(ki_engine *e, int64_t n, const char *what, float **ret, kith_error *err) {
    size_t bytes = 0;
    if (!ki_mul_size((size_t)n, sizeof **ret, &bytes)) return ki_fail_memory(err, SIZE_MAX, what);
    return ki_engine_take(e, bytes, what, ret, err);
}

static bool has_tap(unsigned taps, ki_tap tap) { return (taps & KI_TAP_BIT(tap)) != 0; }

kith_status ki_engine_zero(ki_engine *e, void *ptr, size_t bytes, kith_error *err) {
    return e->backend->type->memory.zero(e->backend, ptr, bytes, err);
}

/* Opening. */

static kith_status check_tap(const ki_engine *e, ki_tap tap, kith_error *err) {
    const ki_edge *edge = &e->batch.tap_edge[tap];
    const ki_sizes *sizes = &e->objective->sizes;
    const int64_t rows = edge->shape.dim[0], cols = edge->shape.dim[1];
    if (!e->batch.tap[tap] || (!e->batch.diff[tap] && !ki_tap_is_teacher(tap)))
        return ki_fail(err, KITH_EINVAL, "the objective reads %s, which the batch does not have",
                       ki_tap_name(tap));
    if (edge->shape.n_dims != (tap == KI_TAP_MAP ? 4 : 2) || cols < 1 ||
        (tap != KI_TAP_WEIGHT && rows != (tap == KI_TAP_MAP ? e->n_own : e->m))) {
        char found[64];
        return ki_fail(err, KITH_ESHAPE, "%s is %s; wanted %lld rows, one for each label", ki_tap_name(tap),
                       ki_shape_text(&edge->shape, found, sizeof found),
                       (long long)(tap == KI_TAP_MAP ? e->n_own : e->m));
    }
    const int64_t wanted = tap == KI_TAP_EMBEDDING  ? sizes->embedding
                           : tap == KI_TAP_POOLED   ? sizes->pooled
                           : tap == KI_TAP_MAP      ? sizes->map
                           : ki_tap_is_teacher(tap) ? sizes->teacher[tap - KI_TAP_TEACHER]
                                                    : 0;
    if (wanted && cols != wanted)
        return ki_fail(err, KITH_ESHAPE, "%s has %lld columns; the objective was made for %lld",
                       ki_tap_name(tap), (long long)cols, (long long)wanted);
    return KITH_OK;
}

static kith_status check_batch(const ki_engine *e, kith_error *err) {
    if (e->m < 1 || e->m > INT32_MAX)
        return ki_fail(err, KITH_ESHAPE, "the batch has %lld items; wanted at least 1", (long long)e->m);
    if (e->n_labelled < 0 || e->n_labelled > e->m)
        return ki_fail(err, KITH_EINVAL, "%lld of %lld items without a class",
                       (long long)(e->m - e->n_labelled), (long long)e->m);
    KI_TRY(ki_batch_check_labelled(e->objective, e->m, e->n_labelled, err));
    if (e->objective->n_terms > KI_CUDA_MOST_TERMS)
        return ki_fail(err, KITH_EUNSUPPORTED, "the objective has %zu terms; the device takes %d",
                       e->objective->n_terms, KI_CUDA_MOST_TERMS);
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if (tap != KI_TAP_LOGITS && has_tap(e->objective->taps, tap)) KI_TRY(check_tap(e, tap, err));
    }
    KI_TRY(ki_nested_check(&e->objective->nested, e->batch.tap_edge[KI_TAP_EMBEDDING].shape.dim[1], err));
    if (e->objective->schedule.stops && !e->batch.diff_stopped)
        return ki_fail(err, KITH_EINVAL,
                       "a term stops at the embedding, and the batch has no room for its gradient");
    return KITH_OK;
}

static kith_status open_values(ki_engine *e, kith_error *err) {
    const ki_objective *o = e->objective;
    const size_t n_loss = o->loss.record ? 1 : 0;
    KI_TRY(ki_engine_take(e, sizeof *e->values, "values", &e->values, err));
    KI_TRY(e->backend->type->memory.zero(e->backend, e->values, sizeof *e->values, err));
    KI_TRY(ki_engine_take(e, (size_t)e->m * sizeof *e->label, "labels", &e->label, err));
    e->row_label = e->label;
    if (o->sizes.heads > 1)
        KI_TRY(ki_engine_take(e, (size_t)e->n_rows * sizeof *e->label, "labels", &e->row_label, err));
    KI_TRY(ki_cuda_pinned_alloc(e->backend, sizeof *e->host, (void **)&e->host, err));
    KI_TRY(ki_cuda_event_new(e->backend, &e->fetched, err));
    KI_TRY(ki_cuda_event_new(e->backend, &e->passed, err));
    KI_TRY(ki_zalloc_or(&e->term, o->n_terms + 1, sizeof *e->term, "terms", err));
    memcpy(e->term, o->term, o->n_terms * sizeof *e->term);
    e->begin = (ki_cuda_begin){.step = e->batch.step,
                               .label = e->batch.label,
                               .safe_label = e->label,
                               .row_label = o->sizes.heads > 1 ? e->row_label : NULL,
                               .heads = (int32_t)o->sizes.heads,
                               .m = (int32_t)e->n_labelled,
                               .n_terms = (int32_t)o->n_terms,
                               .n_classes = o->sizes.n_classes};
    if (n_loss) e->begin.weight[0] = 1;
    for (size_t i = 0; i < o->n_regs; i++) {
        e->begin.weight[n_loss + i] = o->reg[i].weight;
        e->begin.warmup[n_loss + i] = o->reg[i].warmup;
    }
    return KITH_OK;
}

static kith_status open_logits(ki_engine *e, kith_error *err) {
    const ki_objective *o = e->objective;
    if (!has_tap(o->taps, KI_TAP_LOGITS)) return KITH_OK;
    const int64_t n = o->proxies->shape.dim[0];
    KI_TRY(take_floats(e, n * e->dim, "normalised proxies", &e->proxies_unit, err));
    KI_TRY(take_floats(e, n, "proxy norms", &e->proxies_norm, err));
    KI_TRY(take_floats(e, n * e->dim, "proxy gradients", &e->diff_proxies, err));
    return take_floats(e, e->m * n, "logits", &e->logits, err);
}

static kith_status open_embedding(ki_engine *e, kith_error *err) {
    const ki_objective *o = e->objective;
    if (!has_tap(o->taps, KI_TAP_EMBEDDING)) return KITH_OK;
    e->dim = e->batch.tap_edge[KI_TAP_EMBEDDING].shape.dim[1];
    e->row_dim = e->dim / o->sizes.heads;
    if (o->schedule.uses_unit) KI_TRY(take_floats(e, e->m * e->dim, "normalised embeddings", &e->unit, err));
    KI_TRY(take_floats(e, e->n_rows, "norms", &e->norm, err));
    KI_TRY(take_floats(e, e->n_rows, "norms", &e->loss_sq, err));
    return open_logits(e, err);
}

static int64_t slot_n(const ki_engine *e, ki_slot slot) {
    if (slot == KI_SLOT_LOGITS) return e->m * e->objective->proxies->shape.dim[0];
    if (slot == KI_SLOT_POOLED) return ki_shape_count(&e->batch.tap_edge[slot].shape);
    return e->m * e->dim;
}

/* Gradients at the network's taps are summed where the batch wants them, the others in memory of the engine. */
static kith_status open_slots(ki_engine *e, kith_error *err) {
    for (ki_slot slot = 0; slot < KI_N_SLOTS; slot++) {
        float *own = NULL;
        if (!e->objective->schedule.has_slot[slot]) continue;
        if (slot == KI_SLOT_STOPPED) {
            e->slot[slot] = e->batch.diff_stopped;
        } else if (slot < (ki_slot)KI_N_TAPS && slot != KI_SLOT_LOGITS) {
            e->slot[slot] = e->batch.diff[slot];
        } else {
            KI_TRY(take_floats(e, slot_n(e, slot), "tap gradients", &own, err));
            e->slot[slot] = own;
        }
    }
    return KITH_OK;
}

static kith_status open_loss(ki_engine *e, kith_error *err) {
    const ki_loss_use *loss = &e->objective->loss;
    ki_cuda_param *param = NULL;
    if (!loss->record) return KITH_OK;
    KI_TRY(ki_alloc_or(&param, loss->n_params + 1, sizeof *param, "parameters", err));
    for (size_t i = 0; i < loss->n_params; i++) param[i] = *ki_engine_param_of(e, loss->param[i]);
    const kith_status status = e->objective->nested.n
                                   ? ki_cuda_nested_open(e, param, err)
                                   : ki_cuda_site_open(e, param, e->row_dim, true, NULL, &e->loss, err);
    ki_free(param);
    return status;
}

/* The tap of term i, and the sum that its gradient goes to. */
static ki_cuda_tap reg_tap(const ki_engine *e, size_t i, ki_tap tap) {
    const ki_schedule_term *term = &e->objective->schedule.term[i];
    const ki_edge *edge = &e->batch.tap_edge[tap];
    ki_cuda_tap to = {.data = e->batch.tap[tap]};
    if (!ki_tap_is_teacher(tap)) to.diff = e->slot[term->to[tap]];
    if (tap == KI_TAP_MAP) {
        const ki_cuda_map map = ki_cuda_map_of(e->backend, edge);
        to.rows = map.n;
        to.cols = map.c;
        to.pitch = map.pitch;
        to.is_bf16 = map.is_bf16;
        return to;
    }
    to.rows = tap == KI_TAP_LOGITS ? e->m : edge->shape.dim[0];
    to.cols = to.pitch = tap == KI_TAP_LOGITS ? e->objective->proxies->shape.dim[0] : edge->shape.dim[1];
    if (tap != KI_TAP_WEIGHT && !e->objective->reg[i].record->counts_all) to.rows = e->n_labelled;
    if (tap == KI_TAP_LOGITS) to.data = e->logits;
    if (tap == KI_TAP_EMBEDDING && term->reads_unit) to.data = e->unit;
    return to;
}

static kith_status open_reg(ki_engine *e, size_t i, size_t *scratch_bytes, kith_error *err) {
    const ki_objective *o = e->objective;
    const ki_reg_use *reg = &o->reg[i];
    const size_t at = i + (o->loss.record ? 1 : 0);
    ki_cuda_term *term = &e->reg[i];
    size_t bytes = 0;
    term->type = ki_cuda_reg_find(reg->record->method.name);
    if (!term->type) return ki_cuda_fail_method(err, "regularizer", reg->record->method.name);
    KI_TRY(ki_alloc_or(&term->param, reg->n_params + 1, sizeof *term->param, "parameters", err));
    for (size_t k = 0; k < reg->n_params; k++) term->param[k] = *ki_engine_param_of(e, reg->param[k]);
    term->in = (ki_cuda_reg_in){.engine = e,
                                .backend = e->backend,
                                .stream = e->stream,
                                .name = reg->record->method.name,
                                .settings = reg->settings,
                                .m = reg->record->counts_all ? e->m : e->n_labelled,
                                .first = e->first,
                                .n_own = e->n_own,
                                .is_shared = e->batch.comm != NULL,
                                .n_classes = o->sizes.n_classes,
                                .label = e->label,
                                .seed = o->seed,
                                .step = e->batch.step,
                                .normalized = reg->normalize,
                                .heads = o->sizes.heads,
                                .n_params = reg->n_params,
                                .param = term->param,
                                .n_loss_params = o->loss.n_params,
                                .weight = &e->values->term_weight[at],
                                .value = &e->values->value[at]};
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if (has_tap(reg->taps, tap)) term->in.tap[tap] = reg_tap(e, i, tap);
    }
    term->in.assigns_map = o->schedule.term[i].assigns_map;
    if (term->type->open) KI_TRY(term->type->open(&term->in, &term->self, &bytes, err));
    term->is_open = true;
    *scratch_bytes = bytes > *scratch_bytes ? bytes : *scratch_bytes;
    return KITH_OK;
}

static kith_status open_parts(ki_engine *e, const ki_engine *first, kith_error *err) {
    const ki_objective *o = e->objective;
    size_t scratch_bytes = 0;
    KI_TRY(ki_engine_check(o, err));
    KI_TRY(ki_engine_share_open(e, err));
    KI_TRY(check_batch(e, err));
    KI_TRY(first ? ki_engine_params_share(e, first, err) : ki_engine_params_open(e, err));
    KI_TRY(open_values(e, err));
    KI_TRY(open_embedding(e, err));
    KI_TRY(open_slots(e, err));
    KI_TRY(open_loss(e, err));
    KI_TRY(ki_zalloc_or(&e->reg, o->n_regs + 1, sizeof *e->reg, "regularizers", err));
    for (size_t i = 0; i < o->n_regs; i++) KI_TRY(open_reg(e, i, &scratch_bytes, err));
    if (scratch_bytes) KI_TRY(ki_engine_take(e, scratch_bytes, "scratch memory", &e->scratch, err));
    return first ? KITH_OK : ki_engine_push(e, err);
}

static void engine_close(ki_engine *e) {
    if (!e) return;
    if (e->backend) e->backend->type->memory.sync(e->backend, NULL);
    for (size_t i = 0; e->reg && i < e->objective->n_regs; i++) {
        ki_cuda_term *term = &e->reg[i];
        if (term->is_open && term->type->close) term->type->close(term->self);
        ki_free(term->param);
    }
    for (size_t i = 0; i < e->n_sites; i++) ki_free(e->site[i]);
    for (size_t i = 0; i < e->n_taken; i++) e->backend->type->memory.free(e->backend, e->taken[i]);
    ki_cuda_pinned_free(e->backend, e->host);
    ki_cuda_event_free(e->fetched);
    ki_cuda_event_free(e->passed);
    ki_free(e->reg);
    ki_free(e->site);
    ki_free(e->nested);
    ki_free(e->taken);
    ki_free(e->param);
    ki_free(e->term);
    ki_free(e);
}

static kith_status make(ki_backend *backend, ki_objective *objective, const ki_engine *first,
                        const ki_engine_batch *batch, int64_t m, ki_engine **ret_engine, kith_error *err) {
    ki_engine *e = NULL;
    KI_TRY(ki_zalloc_or(&e, 1, sizeof *e, "an engine", err));
    e->backend = backend;
    e->stream = ki_cuda_of(backend)->stream;
    e->objective = objective;
    e->batch = *batch;
    e->m = m;
    e->n_labelled = m - batch->n_unlabelled;
    e->n_rows = m * objective->sizes.heads;
    const kith_status status = open_parts(e, first, err);
    if (status == KITH_OK)
        *ret_engine = e;
    else
        engine_close(e);
    return status;
}

static kith_status engine_open(ki_backend *backend, ki_objective *objective, const ki_engine_batch *batch,
                               int64_t m, ki_engine **ret_engine, kith_error *err) {
    return make(backend, objective, NULL, batch, m, ret_engine, err);
}

static kith_status engine_open_beside(ki_engine *first, const ki_engine_batch *batch, int64_t m,
                                      ki_engine **ret_engine, kith_error *err) {
    return make(first->backend, first->objective, first, batch, m, ret_engine, err);
}

/* The steps. */

static const float *loss_input(const ki_engine *e) {
    return e->objective->loss.normalize ? e->unit : e->batch.tap[KI_TAP_EMBEDDING];
}

/* Lengths for the loss are those of the rows it sees: of unit vectors, where it sees these. */
static kith_status step_normalize(void *user, kith_error *err) {
    const ki_engine *e = user;
    const ki_objective *o = e->objective;
    const bool loss_reads_unit = o->loss.record && o->loss.normalize;
    const float *x = e->batch.tap[KI_TAP_EMBEDDING];
    KI_CUDA(ki_cuda_rows_normalize(x, e->n_rows, e->row_dim, e->unit, e->norm,
                                   e->unit && !loss_reads_unit ? NULL : e->loss_sq, &e->values->fault,
                                   e->stream));
    if (e->unit && o->loss.record && !loss_reads_unit)
        KI_CUDA(ki_cuda_rows_normalize(x, e->n_rows, e->row_dim, NULL, NULL, e->loss_sq, NULL, e->stream));
    return KITH_OK;
}

static kith_status step_clear(void *user, ki_slot slot, kith_error *err) {
    ki_engine *e = user;
    return ki_engine_zero(e, e->slot[slot], (size_t)slot_n(e, slot) * sizeof(float), err);
}

/* Logits are cosines of the normalised embedding and the normalised proxies. */
static kith_status step_logits(void *user, kith_error *err) {
    ki_engine *e = user;
    const ki_state *proxies = e->objective->proxies;
    const int64_t n = proxies->shape.dim[0];
    KI_CUDA(ki_cuda_rows_normalize(ki_engine_param_of(e, proxies)->value, n, e->dim, e->proxies_unit,
                                   e->proxies_norm, NULL, NULL, e->stream));
    return ki_cuda_gemm(e->backend, false, true, e->m, n, e->dim, 1, e->unit, KI_NUMBER_FLOAT, e->dim,
                        e->proxies_unit, e->dim, 0, e->logits, KI_NUMBER_FLOAT, n, err);
}

static kith_status step_loss(void *user, ki_slot to, kith_error *err) {
    ki_engine *e = user;
    const int64_t n = e->n_labelled * e->dim, n_rest = e->m * e->dim - n;
    if (n_rest) KI_TRY(ki_engine_zero(e, (float *)e->slot[to] + n, (size_t)n_rest * sizeof(float), err));
    return ki_cuda_site_run(e->loss, loss_input(e), e->loss_sq, &e->values->value[0], e->values->pairs,
                            e->slot[to], err);
}

static kith_status step_nested(void *user, size_t width, ki_slot to, kith_error *err) {
    ki_engine *e = user;
    return ki_cuda_nested_run(e, width, loss_input(e), e->slot[to], err);
}

static kith_status step_term(void *user, size_t i, kith_error *err) {
    const ki_engine *e = user;
    return e->reg[i].type->launch(e->reg[i].self, &e->reg[i].in, e->scratch, err);
}

static kith_status step_logits_backward(void *user, kith_error *err) {
    ki_engine *e = user;
    const ki_state *proxies = e->objective->proxies;
    const int64_t n = proxies->shape.dim[0];
    const float *diff = e->slot[KI_SLOT_LOGITS];
    float *diff_proxies = ki_engine_param_of(e, proxies)->diff;
    if (diff_proxies) {
        KI_TRY(ki_cuda_gemm(e->backend, true, false, n, e->dim, e->m, 1, diff, KI_NUMBER_FLOAT, n, e->unit,
                            e->dim, 0, e->diff_proxies, KI_NUMBER_FLOAT, e->dim, err));
        KI_CUDA(ki_cuda_rows_normalize_backward(e->proxies_unit, e->proxies_norm, e->diff_proxies, NULL, n,
                                                e->dim, true, diff_proxies, e->stream));
    }
    return ki_cuda_gemm(e->backend, false, false, e->m, e->dim, n, 1, diff, KI_NUMBER_FLOAT, n,
                        e->proxies_unit, e->dim, 1, e->slot[KI_SLOT_UNIT], KI_NUMBER_FLOAT, e->dim, err);
}

static kith_status step_normalize_backward(void *user, ki_slot from, ki_slot to, bool adds, kith_error *err) {
    const ki_engine *e = user;
    KI_CUDA(ki_cuda_rows_normalize_backward(e->unit, e->norm, e->slot[from], NULL, e->n_rows, e->row_dim,
                                            adds, e->slot[to], e->stream));
    return KITH_OK;
}

static const ki_actions actions = {.normalize = step_normalize,
                                   .clear = step_clear,
                                   .logits = step_logits,
                                   .loss = step_loss,
                                   .nested = step_nested,
                                   .term = step_term,
                                   .logits_backward = step_logits_backward,
                                   .normalize_backward = step_normalize_backward};

static kith_status engine_evaluate(ki_engine *e, kith_error *err) {
    KI_CUDA(cudaSetDevice(ki_cuda_of(e->backend)->device));
    KI_TRY(ki_engine_share_gather(e, err));
    KI_CUDA(ki_cuda_step_begin(&e->begin, e->values, e->stream));
    KI_TRY(ki_objective_schedule_run(&e->objective->schedule, &actions, e, err));
    KI_CUDA(ki_cuda_step_end(&e->begin, &e->ring, e->ring.size ? loss_input(e) : NULL, e->values, e->stream));
    return ki_engine_share_keep(e, err);
}

/* Descriptors. */

static const ki_cuda_term *describing_term(const ki_engine *e) {
    for (size_t i = 0; i < e->objective->n_regs; i++) {
        if (e->objective->reg[i].record->describe) return &e->reg[i];
    }
    return NULL;
}

static kith_status engine_describe(ki_engine *e, ki_real *rows, kith_error *err) {
    const ki_cuda_term *term = describing_term(e);
    const int64_t all = ki_objective_describe_dim(e->objective), own = all - e->dim;
    const float *parts = NULL;
    int64_t n = 0;
    if (!term) return ki_objective_fail_describe(err);
    if (!term->type->describe) return ki_cuda_fail_method(err, "the descriptor of", term->in.name);
    KI_CUDA(cudaSetDevice(ki_cuda_of(e->backend)->device));
    KI_TRY(term->type->describe(term->self, &term->in, e->scratch, &parts, &n, err));
    if (e->dim && e->n_rows > e->m) {
        KI_CUDA(ki_cuda_rows_normalize(e->batch.tap[KI_TAP_EMBEDDING], e->n_rows, e->row_dim, e->unit, NULL,
                                       NULL, NULL, e->stream));
        KI_CUDA(ki_cuda_rows_place(e->unit, e->m, e->dim, rows, all, e->stream));
    } else if (e->dim) {
        KI_CUDA(
            ki_cuda_rows_normalize_into(e->batch.tap[KI_TAP_EMBEDDING], e->m, e->dim, rows, all, e->stream));
    }
    for (int64_t k = 0; k < own / n; k++)
        KI_CUDA(ki_cuda_rows_place(parts + k * e->m * n, e->m, n, rows + e->dim + k * n, all, e->stream));
    return KITH_OK;
}

static kith_status engine_clear_diffs(ki_engine *e, kith_error *err) {
    return e->diffs_bytes ? e->backend->type->memory.zero(e->backend, e->diffs, e->diffs_bytes, err)
                          : KITH_OK;
}

/* Others on the device. */

static kith_status engine_follow(ki_engine *e, void *stream, kith_error *err) {
    KI_CUDA(cudaSetDevice(ki_cuda_of(e->backend)->device));
    KI_CUDA(cudaEventRecord(e->passed, stream));
    KI_CUDA(cudaStreamWaitEvent(e->stream, e->passed, 0));
    return KITH_OK;
}

static kith_status engine_lead(ki_engine *e, void *stream, kith_error *err) {
    KI_CUDA(cudaSetDevice(ki_cuda_of(e->backend)->device));
    KI_CUDA(cudaEventRecord(e->passed, e->stream));
    KI_CUDA(cudaStreamWaitEvent(stream, e->passed, 0));
    return KITH_OK;
}

static const double *engine_total(const ki_engine *e) { return &e->values->total; }

static const float *engine_total_f32(const ki_engine *e) { return &e->values->total_f32; }

/* Values on the host. */

static kith_status engine_fetch(ki_engine *e, kith_error *err) {
    KI_TRY(e->backend->type->memory.download(e->backend, e->values, e->host, sizeof *e->host, err));
    KI_TRY(ki_cuda_event_record(e->backend, e->fetched, err));
    e->is_fetched = true;
    return KITH_OK;
}

static kith_status engine_read(ki_engine *e, ki_engine_values *ret, kith_error *err) {
    const ki_objective *o = e->objective;
    if (!e->is_fetched) KI_TRY(engine_fetch(e, err));
    KI_TRY(ki_cuda_event_wait(e->fetched, err));
    e->is_fetched = false;
    const ki_cuda_values *v = e->host;
    if (v->bad_label) {
        ki_fail(err, KITH_EINVAL,
                "a label of a batch was outside the classes; wanted class ids from 0 to %lld",
                (long long)(o->sizes.n_classes ? o->sizes.n_classes - 1 : INT32_MAX));
        return ki_hint(err, KITH_EINVAL, "proxies and per-class parameters have one row for each class id");
    }
    for (size_t i = 0; i < o->n_terms; i++) {
        e->term[i].value = v->value[i];
        e->term[i].weight = v->weight[i];
    }
    if (v->pairs[2] > 0 && e->n_empty_seen == 0 && !o->is_quiet)
        ki_log(KITH_LOG_WARNING, "a batch of %lld items has no pair for %s: its value is 0", (long long)e->m,
               o->loss.record ? o->loss.record->method.name : "the loss");
    e->n_empty_seen = v->pairs[2];
    *ret = (ki_engine_values){.step = v->step,
                              .total = v->total,
                              .n_terms = o->n_terms,
                              .term = e->term,
                              .n_pos = v->pairs[0],
                              .n_neg = v->pairs[1],
                              .n_empty = v->pairs[2],
                              .is_finite = v->fault == 0};
    return KITH_OK;
}

extern const ki_engine_type ki_engine_cuda;
const ki_engine_type ki_engine_cuda = {
    .open = engine_open,
    .open_beside = engine_open_beside,
    .close = engine_close,
    .clear_diffs = engine_clear_diffs,
    .evaluate = engine_evaluate,
    .sum_diffs = ki_engine_sum_diffs,
    .fetch = engine_fetch,
    .read = engine_read,
    .follow = engine_follow,
    .lead = engine_lead,
    .total = engine_total,
    .total_f32 = engine_total_f32,
    .describe = engine_describe,
    .param_at = ki_engine_param_at,
    .pull = ki_engine_pull,
    .push = ki_engine_push,
};
