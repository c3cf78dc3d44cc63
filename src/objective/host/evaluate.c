/* The schedule of an objective on the host: every term's value, and gradients at the taps and parameters.
 *
 * Parameters, the memory and the gradient of the layer's weights change only at the end, when nothing can fail any more. */
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "objective/check.h"
#include "objective/gemm.h"
#include "objective/host/host.h"

kith_status ki_take_zeros(ki_work *work, int64_t n, const char *what, ki_real **ret, kith_error *err) {
    KI_TRY(ki_work_reals(work, n, what, ret, err));
    memset(*ret, 0, (size_t)n * sizeof **ret);
    return KITH_OK;
}

void ki_add_scaled(ki_real *dst, const ki_real *src, ki_real scale, int64_t n) {
    if (!dst || !src) return;
    if (scale != 0) ki_vec_get()->add(src, scale, dst, n);
}

size_t ki_param_index(const ki_objective *o, const ki_state *param) {
    size_t i = 0;
    while (o->params.item[i] != param) i++;
    return i;
}

/* ---- beginning ---- */

void ki_evaluation_forget(ki_objective *o) {
    if (o->work.peak_bytes > o->work_peak) o->work_peak = o->work.peak_bytes;
    ki_work_reset(&o->work);
}

void ki_evaluation_begin(ki_evaluation *e) {
    const ki_objective *o = e->o;
    e->m = e->batch->m;
    e->n_labelled = e->batch->label ? ki_batch_labelled(e->batch) : e->m;
    e->dim = e->batch->tap[KI_TAP_EMBEDDING].cols;
    e->n_rows = e->m * o->sizes.heads;
    e->row_dim = e->dim / o->sizes.heads;
}

/* Cleared buffers for the gradients of the parameters; NULL for buffers that are not learned. */
static kith_status take_param_diffs(ki_evaluation *e, kith_error *err) {
    const ki_state_list *list = &e->o->params;
    KI_TRY(ki_work_take(&e->o->work, list->n + 1, sizeof *e->diff_param, "parameter gradients",
                        &e->diff_param, err));
    for (size_t i = 0; i < list->n; i++) {
        e->diff_param[i] = NULL;
        if (list->item[i]->diff)
            KI_TRY(ki_take_zeros(&e->o->work, list->item[i]->count, "parameter gradients", &e->diff_param[i],
                                 err));
    }
    return KITH_OK;
}

static int64_t slot_n(const ki_evaluation *e, ki_slot slot) {
    if (slot == KI_SLOT_LOGITS) return e->m * e->o->proxies->shape.dim[0];
    if (slot >= KI_SLOT_UNIT || slot == KI_SLOT_EMBEDDING) return e->m * e->dim;
    return e->batch->tap[slot].rows * e->batch->tap[slot].cols;
}

/* Where the batch says that a gradient goes, unless it is one of all ranks' rows; else memory of the evaluation. */
static ki_real *given_slot(const ki_evaluation *e, ki_slot slot) {
    if (slot == KI_SLOT_MAP) return e->batch->diff[KI_TAP_MAP];
    if (e->share.comm) return NULL;
    if (slot == KI_SLOT_POOLED || slot == KI_SLOT_EMBEDDING) return e->batch->diff[slot];
    return slot == KI_SLOT_STOPPED ? e->batch->diff_stopped : NULL;
}

static kith_status take_slots(ki_evaluation *e, kith_error *err) {
    for (ki_slot slot = 0; slot < KI_N_SLOTS; slot++) {
        if (!e->o->schedule.has_slot[slot]) continue;
        e->slot[slot] = given_slot(e, slot);
        if (slot == KI_SLOT_WEIGHT)
            KI_TRY(ki_take_zeros(&e->o->work, slot_n(e, slot), "tap gradients", &e->slot[slot], err));
        else if (!e->slot[slot])
            KI_TRY(ki_work_reals(&e->o->work, slot_n(e, slot), "tap gradients", &e->slot[slot], err));
    }
    return KITH_OK;
}

/* ---- the steps ---- */

kith_status ki_evaluation_normalize(ki_evaluation *e, kith_error *err) {
    KI_TRY(ki_work_reals(&e->o->work, e->m * e->dim, "normalised embeddings", &e->unit, err));
    KI_TRY(ki_work_reals(&e->o->work, e->n_rows, "norms", &e->norm, err));
    ki_rows_normalize(e->batch->tap[KI_TAP_EMBEDDING].data, e->n_rows, e->row_dim, e->unit, e->norm);
    return KITH_OK;
}

static kith_status step_normalize(void *user, kith_error *err) {
    ki_evaluation *e = user;
    return e->o->schedule.uses_unit ? ki_evaluation_normalize(e, err) : KITH_OK;
}

static kith_status step_clear(void *user, ki_slot slot, kith_error *err) {
    const ki_evaluation *e = user;
    (void)err;
    memset(e->slot[slot], 0, (size_t)slot_n(e, slot) * sizeof *e->slot[slot]);
    return KITH_OK;
}

/* Logits are cosines of the normalised embedding and the normalised proxies. */
static kith_status step_logits(void *user, kith_error *err) {
    ki_evaluation *e = user;
    ki_objective *o = e->o;
    const int64_t n = o->proxies->shape.dim[0];
    KI_TRY(ki_work_reals(&o->work, o->proxies->count, "normalised proxies", &e->proxies_unit, err));
    KI_TRY(ki_work_reals(&o->work, n, "proxy norms", &e->proxies_norm, err));
    KI_TRY(ki_work_reals(&o->work, e->m * n, "logits", &e->logits, err));
    ki_rows_normalize(o->proxies->value, n, e->dim, e->proxies_unit, e->proxies_norm);
    ki_gemm(false, true, e->m, n, e->dim, 1, e->unit, e->dim, e->proxies_unit, e->dim, 0, e->logits, n);
    return KITH_OK;
}

static kith_status step_loss(void *user, ki_slot to, kith_error *err) {
    ki_evaluation *e = user;
    ki_objective *o = e->o;
    const ki_work_mark mark = ki_work_here(&o->work);
    kith_status status = KITH_OK;
    ki_real **diff_param = NULL;
    ki_loss_rows rows;
    const int64_t n = e->n_labelled * e->dim;
    memset(e->slot[to] + n, 0, (size_t)(e->m * e->dim - n) * sizeof **e->slot);
    KI_CHECK(ki_loss_rows_of(e, &rows, err));
    KI_CHECK(ki_work_take(&o->work, o->loss.n_params + 1, sizeof *diff_param, "parameter gradients",
                          &diff_param, err));
    for (size_t i = 0; i < o->loss.n_params; i++)
        diff_param[i] = e->diff_param[ki_param_index(o, o->loss.param[i])];
    KI_CHECK(ki_loss_run(e, &rows, o->loss.param, diff_param, true, &o->term[0].value, e->slot[to], err));
    e->total += o->term[0].value;
done:
    ki_work_rewind(&o->work, mark);
    return status;
}

static kith_status step_nested(void *user, size_t width, ki_slot to, kith_error *err) {
    return ki_loss_run_nested(user, width, to, err);
}

static kith_status repeat_loss(const ki_reg_in *in, ki_real *const *diff_param, size_t first,
                               const ki_real *x, int64_t dim, double *ret_value, ki_real *diff_x,
                               kith_error *err) {
    const ki_loss_rows rows = {.x = x, .n = in->m, .dim = dim, .label = in->label, .heads = 1};
    return ki_loss_run(in->evaluation, &rows, in->param + first, diff_param + first, false, ret_value, diff_x,
                       err);
}

ki_reg_in ki_evaluation_reg_in(ki_evaluation *e, size_t i) {
    const ki_objective *o = e->o;
    const ki_reg_use *reg = &o->reg[i];
    const ki_schedule_term *term = &o->schedule.term[i];
    const int64_t m = reg->record->counts_all ? e->m : e->n_labelled;
    ki_reg_in in = {.settings = reg->settings,
                    .m = m,
                    .label = e->batch->label,
                    .n_classes = o->sizes.n_classes,
                    .share = &e->share,
                    .normalized = reg->normalize,
                    .heads = o->sizes.heads,
                    .weight = ki_weight_at(reg->weight, reg->warmup, e->batch->step),
                    .assigns_map = term->assigns_map,
                    .n_params = reg->n_params,
                    .param = reg->param,
                    .seed = o->seed,
                    .step = e->batch->step,
                    .vec = o->vec,
                    .work = &e->o->work,
                    .n_loss_params = o->loss.n_params,
                    .repeat_loss = repeat_loss,
                    .evaluation = e};
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if (!(reg->taps & KI_TAP_BIT(tap))) continue;
        in.tap[tap] = e->batch->tap[tap];
        if (m < e->m && tap != KI_TAP_WEIGHT) in.tap[tap].rows = m;
        if (tap == KI_TAP_EMBEDDING && term->reads_unit) in.tap[tap].data = e->unit;
        if (tap == KI_TAP_LOGITS)
            in.tap[tap] = (ki_tap_data){.data = e->logits, .rows = m, .cols = o->proxies->shape.dim[0]};
    }
    return in;
}

static kith_status step_term(void *user, size_t i, kith_error *err) {
    ki_evaluation *e = user;
    ki_objective *o = e->o;
    const ki_reg_use *reg = &o->reg[i];
    ki_term *term = &o->term[i + (o->loss.record ? 1 : 0)];
    const ki_work_mark mark = ki_work_here(&o->work);
    kith_status status = KITH_OK;
    ki_real **diff_param = NULL;
    const ki_reg_in in = ki_evaluation_reg_in(e, i);
    ki_reg_out out = {0};
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if ((reg->taps & KI_TAP_BIT(tap)) && !ki_tap_is_teacher(tap))
            out.diff[tap] = e->slot[o->schedule.term[i].to[tap]];
    }
    KI_CHECK(ki_work_take(&o->work, reg->n_params + 1, sizeof *diff_param, "parameter gradients", &diff_param,
                          err));
    for (size_t k = 0; k < reg->n_params; k++)
        diff_param[k] = e->diff_param[ki_param_index(o, reg->param[k])];
    out.diff_param = diff_param;
    KI_CHECK(reg->record->eval(&in, &out, err));
    term->value = out.value;
    term->weight = in.weight;
    e->total += in.weight * out.value;
done:
    ki_work_rewind(&o->work, mark);
    return status;
}

static kith_status step_logits_backward(void *user, kith_error *err) {
    ki_evaluation *e = user;
    ki_objective *o = e->o;
    const int64_t n = o->proxies->shape.dim[0];
    const ki_real *diff = e->slot[KI_SLOT_LOGITS];
    ki_real *diff_w = NULL, *diff_proxies = e->diff_param[ki_param_index(o, o->proxies)];
    KI_TRY(ki_work_reals(&o->work, n * e->dim, "proxy gradients", &diff_w, err));
    ki_gemm(true, false, n, e->dim, e->m, 1, diff, n, e->unit, e->dim, 0, diff_w, e->dim);
    if (diff_proxies)
        ki_rows_normalize_backward(e->proxies_unit, e->proxies_norm, diff_w, n, e->dim, 1, diff_proxies);
    ki_gemm(false, false, e->m, e->dim, n, 1, diff, n, e->proxies_unit, e->dim, 1, e->slot[KI_SLOT_UNIT],
            e->dim);
    return KITH_OK;
}

static kith_status step_normalize_backward(void *user, ki_slot from, ki_slot to, bool adds, kith_error *err) {
    const ki_evaluation *e = user;
    (void)err;
    if (adds)
        ki_rows_normalize_backward(e->unit, e->norm, e->slot[from], e->n_rows, e->row_dim, 1, e->slot[to]);
    else
        ki_rows_normalize_assign(e->unit, e->norm, e->slot[from], e->n_rows, e->row_dim, e->slot[to]);
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

/* ---- the end ---- */

/* This rank's rows of a gradient of all rows; the map has only those. */
static ki_real *own_rows(const ki_evaluation *e, ki_real *whole, int64_t cols, ki_real *given) {
    if (!whole || !e->share.comm) return whole;
    whole += e->share.first * cols;
    if (!given) return whole;
    memcpy(given, whole, (size_t)(e->share.n * cols) * sizeof *given);
    return given;
}

static void take_diffs(const ki_evaluation *e, ki_result *ret) {
    const ki_batch *batch = e->batch;
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        ki_real *diff = tap == KI_TAP_LOGITS ? NULL : e->slot[tap];
        if (tap == KI_TAP_POOLED || tap == KI_TAP_EMBEDDING)
            diff = own_rows(e, diff, batch->tap[tap].cols, batch->diff[tap]);
        if (tap == KI_TAP_WEIGHT) ki_add_scaled(batch->diff[tap], diff, 1, slot_n(e, KI_SLOT_WEIGHT));
        ret->diff[tap] = diff;
    }
    ret->diff_stopped = own_rows(e, e->slot[KI_SLOT_STOPPED], e->dim, batch->diff_stopped);
}

static void finish(ki_evaluation *e, ki_result *ret) {
    ki_objective *o = e->o;
    for (size_t i = 0; i < o->params.n; i++)
        ki_add_scaled(o->params.item[i]->diff, e->diff_param[i], 1, o->params.item[i]->count);
    ki_memory_push(&o->memory, o->loss.normalize ? e->unit : e->batch->tap[KI_TAP_EMBEDDING].data,
                   e->batch->label, e->n_labelled, e->dim);
    if (e->is_empty && o->n_empty++ == 0 && !o->is_quiet)
        ki_log(KITH_LOG_WARNING, "a batch of %lld items has no pair for %s: its value is 0", (long long)e->m,
               o->loss.record->method.name);
    *ret = (ki_result){.total = e->total,
                       .n_terms = o->n_terms,
                       .term = o->term,
                       .n_pos = e->n_pos,
                       .n_neg = e->n_neg,
                       .n_empty = o->n_empty};
    take_diffs(e, ret);
}

kith_status ki_objective_evaluate(ki_objective *objective, const ki_batch *batch, ki_result *ret_result,
                                  kith_error *err) {
    ki_batch whole;
    ki_evaluation e = {.o = objective, .batch = &whole};
    ki_evaluation_forget(objective);
    KI_TRY(ki_batch_gather(objective, batch, &whole, &e.share, err));
    ki_evaluation_begin(&e);
    KI_TRY(take_param_diffs(&e, err));
    KI_TRY(take_slots(&e, err));
    KI_TRY(ki_objective_schedule_run(&objective->schedule, &actions, &e, err));
    KI_TRY(ki_params_sum_shares(objective, &e.share, e.diff_param, err));
    finish(&e, ret_result);
    return KITH_OK;
}
