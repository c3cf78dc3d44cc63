/* One evaluation: every term's value, and gradients at the taps and parameters.
 *
 * Gradients of terms that read the normalised embedding and of terms that read it as it is are summed
 * separately. The chain rule of the normalisation is applied once, to the sum. Parameters and the memory
 * change only at the end, when nothing can fail any more. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/parallel.h"
#include "base/text.h"
#include "objective/check.h"
#include "objective/gemm.h"
#include "objective/proxy/columns.h"
#include "objective/state.h"

/* Everything that one evaluation needs; all memory is from the objective's work stack. */
typedef struct step {
    ki_objective *o;
    const ki_batch *batch; /* whole, except for its map */
    ki_share share;
    int64_t m, dim;
    int64_t n_rows, row_dim;  /* the embedding as the loss sees it: a row for each head of each image */
    const int32_t *row_label; /* [n_rows] */
    ki_real *unit, *norm;     /* the normalised embedding and its norms [n_rows], when a term reads it */
    ki_real *diff[KI_N_TAPS]; /* the sum so far; EMBEDDING: from terms that read it as it is */
    ki_real *diff_unit;       /* from terms that read the normalised one */
    ki_real *diff_stopped, *diff_unit_stopped;
    ki_real **diff_param; /* for each parameter of the objective */
    ki_real *logits, *proxies_unit, *proxies_norm;
    int64_t n_pos, n_neg;
    bool is_empty;
    bool reads_raw; /* some term adds to the gradient of the embedding as it is */
    double total;
} step;

static kith_status take_zeros(ki_work *work, int64_t n, const char *what, ki_real **ret, kith_error *err) {
    KI_TRY(ki_work_reals(work, n, what, ret, err));
    memset(*ret, 0, (size_t)n * sizeof **ret);
    return KITH_OK;
}

static void add_scaled(ki_real *dst, const ki_real *src, ki_real scale, int64_t n) {
    if (!dst || !src) return;
    if (scale != 0) ki_vec_get()->add(src, scale, dst, n);
}

static size_t param_index(const ki_objective *o, const ki_state *param) {
    size_t i = 0;
    while (o->params.item[i] != param) i++;
    return i;
}

/* Cleared buffers for the gradients of a method's parameters; NULL for buffers that are not learned. */
static kith_status take_param_diffs(step *s, ki_state *const *param, size_t n, ki_real ***ret,
                                    kith_error *err) {
    KI_TRY(ki_work_take(&s->o->work, n + 1, sizeof **ret, "parameter gradients", ret, err));
    for (size_t i = 0; i < n; i++) {
        (*ret)[i] = NULL;
        if (param[i]->diff)
            KI_TRY(take_zeros(&s->o->work, param[i]->count, "parameter gradients", &(*ret)[i], err));
    }
    return KITH_OK;
}

/* The same for the loss, which writes every one, except its proxies', whose gradients come by the chain rule. */
static kith_status take_loss_diffs(step *s, ki_state *const *param, ki_real ***ret, kith_error *err) {
    const ki_loss_use *loss = &s->o->loss;
    KI_TRY(ki_work_take(&s->o->work, loss->n_params + 1, sizeof **ret, "parameter gradients", ret, err));
    for (size_t i = 0; i < loss->n_params; i++) {
        (*ret)[i] = NULL;
        if (i == 0 && loss->record->is_proxy) continue;
        KI_TRY(take_zeros(&s->o->work, param[i]->count, "parameter gradients", &(*ret)[i], err));
    }
    return KITH_OK;
}

/* Embeddings that the loss looks at. */
typedef struct rows {
    const ki_real *x; /* [n, dim] */
    int64_t n, dim;
    const int32_t *label;
    int64_t heads; /* whose rows come in turn */
} rows;

static rows rows_of_batch(const step *s) {
    const bool is_unit = s->o->loss.normalize;
    return (rows){.x = is_unit ? s->unit : s->batch->tap[KI_TAP_EMBEDDING].data,
                  .n = s->n_rows,
                  .dim = s->row_dim,
                  .label = s->row_label,
                  .heads = s->o->sizes.heads};
}

/* A label for each head of each of n images. */
static kith_status repeat_labels(step *s, const int32_t *label, int64_t n, const int32_t **ret_label,
                                 kith_error *err) {
    const int64_t heads = s->o->sizes.heads;
    int32_t *repeated = NULL;
    *ret_label = label;
    if (heads == 1) return KITH_OK;
    KI_TRY(ki_work_take(&s->o->work, (size_t)(n * heads), sizeof *repeated, "labels", &repeated, err));
    for (int64_t i = 0; i < n * heads; i++) repeated[i] = label[i / heads];
    *ret_label = repeated;
    return KITH_OK;
}

/* What a loss compares rows with, if it is proxies. */
typedef struct proxies {
    ki_proxy_columns_of of;
    ki_proxy_columns columns;
    ki_real *unit, *norm; /* normalised, and their norms */
} proxies;

static kith_status choose_proxies(step *s, const rows *r, const ki_state *param, proxies *ret,
                                  kith_error *err) {
    ki_objective *o = s->o;
    ret->of = (ki_proxy_columns_of){.proxies = param,
                                    .n_centers = ki_objective_centers(o),
                                    .sample = ki_objective_sample(o),
                                    .seed = o->seed,
                                    .step = s->batch->step,
                                    .label = r->label,
                                    .m = r->n};
    if (param->n_whole && !s->share.comm)
        return ki_fail(err, KITH_EINVAL, "this objective has a part of %s; it is evaluated over ranks alone",
                       param->name);
    KI_TRY(ki_proxy_columns_choose(&ret->of, &o->work, &ret->columns, err));
    const int64_t n = ret->columns.n;
    KI_TRY(ki_work_reals(&o->work, n * r->dim, "normalised proxies", &ret->unit, err));
    KI_TRY(ki_work_reals(&o->work, n, "proxy norms", &ret->norm, err));
    ki_rows_normalize(ret->columns.value, n, r->dim, ret->unit, ret->norm);
    return KITH_OK;
}

/* From the gradients of the normalised proxies to those of the proxies as they are learned, where diff has them (+=). */
static kith_status proxies_backward(step *s, const proxies *p, int64_t dim, const ki_real *diff_unit,
                                    ki_real *diff, kith_error *err) {
    const int64_t n = p->columns.n;
    ki_real *to = diff;
    if (!diff) return KITH_OK;
    if (p->columns.chosen) KI_TRY(take_zeros(&s->o->work, n * dim, "proxy gradients", &to, err));
    ki_rows_normalize_backward(p->unit, p->norm, diff_unit, n, dim, 1, to);
    if (p->columns.chosen) ki_proxy_columns_add(&p->columns, &p->of, to, diff);
    return KITH_OK;
}

/* The view the loss sees: built, mined, measured. */
static kith_status make_pairs(step *s, const rows *r, ki_state *const *param, bool use_memory,
                              ki_pairs *pairs, proxies *ret_proxies, kith_error *err) {
    ki_objective *o = s->o;
    const int64_t dim = r->dim;
    const int32_t *more_label = NULL, *row_label = r->label;
    const ki_loss *loss = o->loss.record;
    int32_t *label = NULL;
    const ki_real *more = NULL;
    int64_t n_more = 0;
    if (loss->is_proxy) {
        KI_TRY(choose_proxies(s, r, param[0], ret_proxies, err));
        n_more = ret_proxies->columns.n;
        more = ret_proxies->unit;
        more_label = ret_proxies->columns.label;
        row_label = ret_proxies->columns.own;
    } else if (use_memory) {
        n_more = ki_memory_columns(&o->memory, s->batch->step);
        KI_TRY(ki_work_take(&o->work, (size_t)n_more, sizeof *label, "labels in memory", &label, err));
        ki_memory_labels(&o->memory, n_more, label);
        KI_TRY(repeat_labels(s, label, n_more, &more_label, err));
        if (n_more) more = o->memory.embedding->value;
        n_more *= r->heads;
    }
    KI_TRY(ki_pairs_build(pairs, r->x, r->n, dim, row_label, more, more_label, n_more, loss->is_proxy, o->vec,
                          &o->work, err));
    if (loss->is_proxy && param[0]->n_whole) {
        pairs->comm = s->share.comm;
        pairs->total_pos = r->n * ret_proxies->of.n_centers;
        pairs->total_neg = r->n * ret_proxies->columns.n_all - pairs->total_pos;
    }
    ki_pairs_split(pairs, r->heads);
    pairs->seed = o->seed;
    pairs->step = s->batch->step;
    if (o->miner->mine) {
        KI_TRY(o->miner->mine(o->miner_settings, pairs, err));
        ki_pairs_count(pairs);
    }
    ki_pairs_measure(pairs, loss->measure ? loss->measure(o->loss.settings) : KI_INNER);
    return KITH_OK;
}

/* Loss and miner on embeddings, used as they are, with parameters `param`; diff_x is assigned, diff_param
 * is added to (NULL entries are skipped). */
static kith_status loss_on(step *s, const rows *r, ki_state *const *param, ki_real *const *diff_param,
                           bool is_main, double *ret_value, ki_real *diff_x, kith_error *err) {
    ki_objective *o = s->o;
    const int64_t dim = r->dim;
    const ki_loss *loss = o->loss.record;
    const ki_work_mark mark = ki_work_here(&o->work);
    kith_status status = KITH_OK;
    ki_pairs pairs;
    proxies with = {0};
    ki_real *diff_w = NULL, *diff_straight = NULL, **diff = NULL;
    ki_loss_out out = {.g_scale = 1};
    KI_CHECK(make_pairs(s, r, param, is_main, &pairs, &with, err));
    KI_CHECK(take_loss_diffs(s, param, &diff, err));
    KI_CHECK(ki_work_reals(&o->work, pairs.m * pairs.ld, "pair gradients", &out.g, err));
    if (loss->is_proxy) {
        KI_CHECK(ki_work_reals(&o->work, pairs.n * dim, "proxy gradients", &diff_w, err));
        KI_CHECK(take_zeros(&o->work, pairs.n * dim, "proxy gradients", &diff_straight, err));
    }
    out.diff = diff;
    out.diff_proxies = diff_straight;
    const ki_loss_in in = {
        .settings = o->loss.settings, .pairs = &pairs, .param = param, .proxies = with.unit};
    KI_CHECK(loss->eval(&in, &out, err));
    KI_CHECK(ki_pairs_backward(&pairs, out.g, out.g_scale, diff_x, diff_w, err));
    KI_CHECK(ki_comm_sum(pairs.comm, diff_x, r->n * dim, err));
    if (loss->is_proxy) {
        add_scaled(diff_w, diff_straight, 1, pairs.n * dim);
        KI_CHECK(proxies_backward(s, &with, dim, diff_w, diff_param[0], err));
    }
    for (size_t i = 0; i < o->loss.n_params; i++) add_scaled(diff_param[i], diff[i], 1, param[i]->count);
    *ret_value = out.value;
    if (is_main) {
        s->n_pos = pairs.total_pos;
        s->n_neg = pairs.total_neg;
        s->is_empty = pairs.total_pos + pairs.total_neg == 0;
    }
done:
    ki_work_rewind(&o->work, mark);
    return status;
}

/* The loss comes first, and assigns its gradient; the other terms add theirs to it. */
static kith_status eval_loss(step *s, kith_error *err) {
    ki_objective *o = s->o;
    const ki_work_mark mark = ki_work_here(&o->work);
    kith_status status = KITH_OK;
    ki_real **diff_param = NULL;
    ki_real *diff_x = o->loss.normalize ? s->diff_unit : s->diff[KI_TAP_EMBEDDING];
    KI_CHECK(repeat_labels(s, s->batch->label, s->m, &s->row_label, err));
    const rows r = rows_of_batch(s);
    KI_CHECK(ki_work_take(&o->work, o->loss.n_params + 1, sizeof *diff_param, "parameter gradients",
                          &diff_param, err));
    for (size_t i = 0; i < o->loss.n_params; i++)
        diff_param[i] = s->diff_param[param_index(o, o->loss.param[i])];
    KI_CHECK(loss_on(s, &r, o->loss.param, diff_param, true, &o->term[0].value, diff_x, err));
    s->total += o->term[0].value;
done:
    ki_work_rewind(&o->work, mark);
    return status;
}

static kith_status reg_repeat_loss(const ki_reg_in *in, const ki_reg_out *out, size_t first, const ki_real *x,
                                   int64_t dim, double *ret_value, ki_real *diff_x, kith_error *err) {
    const rows r = {.x = x, .n = in->m, .dim = dim, .label = in->label, .heads = 1};
    return loss_on(in->objective, &r, in->param + first, out->diff_param + first, false, ret_value, diff_x,
                   err);
}

static double weight_at(const ki_reg_use *reg, uint64_t at) {
    if (reg->warmup <= 0 || at >= (uint64_t)reg->warmup) return reg->weight;
    return reg->weight * (double)at / (double)reg->warmup;
}

/* Where a term's parameter gradients go: directly to the sums if its weight is 1, which saves a copy of what
 * may be the largest arrays; otherwise to separate buffers. */
static kith_status take_reg_diffs(step *s, const ki_reg_use *reg, double weight, ki_real ***ret,
                                  kith_error *err) {
    if (weight != 1) return take_param_diffs(s, reg->param, reg->n_params, ret, err);
    KI_TRY(ki_work_take(&s->o->work, reg->n_params + 1, sizeof **ret, "parameter gradients", ret, err));
    for (size_t i = 0; i < reg->n_params; i++) (*ret)[i] = s->diff_param[param_index(s->o, reg->param[i])];
    return KITH_OK;
}

static ki_reg_in reg_in(step *s, const ki_reg_use *reg) {
    const ki_objective *o = s->o;
    ki_reg_in in = {.settings = reg->settings,
                    .m = s->m,
                    .label = s->batch->label,
                    .n_classes = o->sizes.n_classes,
                    .share = &s->share,
                    .normalized = reg->normalize,
                    .heads = o->sizes.heads,
                    .param = reg->param,
                    .seed = o->seed,
                    .step = s->batch->step,
                    .vec = o->vec,
                    .work = &s->o->work,
                    .n_loss_params = o->loss.n_params,
                    .repeat_loss = reg_repeat_loss,
                    .objective = s};
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if (!(reg->taps & KI_TAP_BIT(tap))) continue;
        in.tap[tap] = s->batch->tap[tap];
        if (tap == KI_TAP_EMBEDDING && reg->normalize) in.tap[tap].data = s->unit;
        if (tap == KI_TAP_LOGITS)
            in.tap[tap] = (ki_tap_data){.data = s->logits, .rows = s->m, .cols = o->proxies->shape.dim[0]};
    }
    return in;
}

static kith_status eval_reg(step *s, const ki_reg_use *reg, ki_term *term, kith_error *err) {
    ki_objective *o = s->o;
    const ki_work_mark mark = ki_work_here(&o->work);
    kith_status status = KITH_OK;
    ki_real **diff_param = NULL;
    const double weight = weight_at(reg, s->batch->step);
    const ki_reg_in in = reg_in(s, reg);
    ki_reg_out out = {0};
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if (reg->taps & KI_TAP_BIT(tap))
            KI_CHECK(take_zeros(&o->work, in.tap[tap].rows * in.tap[tap].cols, "tap gradients",
                                &out.diff[tap], err));
    }
    KI_CHECK(take_reg_diffs(s, reg, weight, &diff_param, err));
    out.diff_param = diff_param;
    KI_CHECK(reg->record->eval(&in, &out, err));
    for (size_t i = 0; i < reg->n_params && weight != 1; i++)
        add_scaled(s->diff_param[param_index(o, reg->param[i])], diff_param[i], (ki_real)weight,
                   reg->param[i]->count);
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        ki_real *to = s->diff[tap];
        if (tap == KI_TAP_EMBEDDING)
            to = reg->normalize ? (reg->stops ? s->diff_unit_stopped : s->diff_unit)
                                : (reg->stops ? s->diff_stopped : to);
        add_scaled(to, out.diff[tap], (ki_real)weight, in.tap[tap].rows * in.tap[tap].cols);
    }
    term->value = out.value;
    term->weight = weight;
    s->total += weight * out.value;
done:
    ki_work_rewind(&o->work, mark);
    return status;
}

/* Logits are cosines of the normalised embedding and the normalised proxies. */
static kith_status make_logits(step *s, kith_error *err) {
    ki_objective *o = s->o;
    if (!(o->taps & KI_TAP_BIT(KI_TAP_LOGITS))) return KITH_OK;
    const int64_t n = o->proxies->shape.dim[0];
    KI_TRY(ki_work_reals(&o->work, o->proxies->count, "normalised proxies", &s->proxies_unit, err));
    KI_TRY(ki_work_reals(&o->work, n, "proxy norms", &s->proxies_norm, err));
    KI_TRY(ki_work_reals(&o->work, s->m * n, "logits", &s->logits, err));
    KI_TRY(take_zeros(&o->work, s->m * n, "logits", &s->diff[KI_TAP_LOGITS], err));
    ki_rows_normalize(o->proxies->value, n, s->dim, s->proxies_unit, s->proxies_norm);
    ki_gemm(false, true, s->m, n, s->dim, 1, s->unit, s->dim, s->proxies_unit, s->dim, 0, s->logits, n);
    return KITH_OK;
}

static kith_status logits_backward(step *s, kith_error *err) {
    ki_objective *o = s->o;
    if (!s->logits) return KITH_OK;
    const int64_t n = o->proxies->shape.dim[0];
    ki_real *diff_w = NULL;
    KI_TRY(ki_work_reals(&o->work, n * s->dim, "proxy gradients", &diff_w, err));
    ki_gemm(true, false, n, s->dim, s->m, 1, s->diff[KI_TAP_LOGITS], n, s->unit, s->dim, 0, diff_w, s->dim);
    ki_real *diff_proxies = s->diff_param[param_index(o, o->proxies)];
    if (diff_proxies)
        ki_rows_normalize_backward(s->proxies_unit, s->proxies_norm, diff_w, n, s->dim, 1, diff_proxies);
    ki_gemm(false, false, s->m, s->dim, n, 1, s->diff[KI_TAP_LOGITS], n, s->proxies_unit, s->dim, 1,
            s->diff_unit, s->dim);
    return KITH_OK;
}

static kith_status embedding_begin(step *s, kith_error *err) {
    ki_objective *o = s->o;
    const int64_t n = s->m * s->dim;
    bool has_stop = false, has_unit_stop = false, is_first = o->loss.record != NULL;
    s->reads_raw = is_first && !o->loss.normalize;
    for (size_t i = 0; i < o->n_regs; i++) {
        const ki_reg_use *reg = &o->reg[i];
        if (!(reg->taps & KI_TAP_BIT(KI_TAP_EMBEDDING))) continue;
        has_stop |= reg->stops;
        has_unit_stop |= reg->stops && reg->normalize;
        s->reads_raw |= !reg->normalize && !reg->stops;
    }
    if (has_stop) KI_TRY(take_zeros(&o->work, n, "tap gradients", &s->diff_stopped, err));
    if (has_unit_stop) KI_TRY(take_zeros(&o->work, n, "tap gradients", &s->diff_unit_stopped, err));
    /* Clear it, unless the loss assigns to it, or the normalisation's chain rule at the end. */
    KI_TRY(ki_work_reals(&o->work, n, "tap gradients", &s->diff_unit, err));
    KI_TRY(ki_work_reals(&o->work, n, "tap gradients", &s->diff[KI_TAP_EMBEDDING], err));
    if (!(is_first && o->loss.normalize)) memset(s->diff_unit, 0, (size_t)n * sizeof *s->diff_unit);
    if (s->reads_raw && !(is_first && !o->loss.normalize))
        memset(s->diff[KI_TAP_EMBEDDING], 0, (size_t)n * sizeof *s->diff_unit);
    KI_TRY(ki_work_reals(&o->work, n, "normalised embeddings", &s->unit, err));
    KI_TRY(ki_work_reals(&o->work, s->n_rows, "norms", &s->norm, err));
    ki_rows_normalize(s->batch->tap[KI_TAP_EMBEDDING].data, s->n_rows, s->row_dim, s->unit, s->norm);
    return make_logits(s, err);
}

static void work_begin(ki_objective *o) {
    if (o->work.peak_bytes > o->work_peak) o->work_peak = o->work.peak_bytes;
    ki_work_reset(&o->work);
}

static kith_status step_begin(step *s, kith_error *err) {
    ki_objective *o = s->o;
    const ki_batch *batch = s->batch;
    s->m = batch->m;
    s->dim = batch->tap[KI_TAP_EMBEDDING].cols;
    s->n_rows = s->m * o->sizes.heads;
    s->row_dim = s->dim / o->sizes.heads;
    KI_TRY(take_param_diffs(s, o->params.item, o->params.n, &s->diff_param, err));
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) {
        if (tap == KI_TAP_LOGITS || tap == KI_TAP_EMBEDDING || !(o->taps & KI_TAP_BIT(tap))) continue;
        KI_TRY(take_zeros(&o->work, batch->tap[tap].rows * batch->tap[tap].cols, "tap gradients",
                          &s->diff[tap], err));
    }
    if (!(o->taps & KI_TAP_BIT(KI_TAP_EMBEDDING))) return KITH_OK;
    return embedding_begin(s, err);
}

/* This rank's rows of the gradients; the map has only those. */
static void take_share(const step *s, ki_result *ret) {
    const int64_t at = s->share.first;
    ki_real **const whole[] = {&ret->diff[KI_TAP_EMBEDDING], &ret->diff[KI_TAP_POOLED], &ret->diff_stopped};
    const int64_t cols[] = {s->dim, s->batch->tap[KI_TAP_POOLED].cols, s->dim};
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        if (*whole[i]) *whole[i] += at * cols[i];
    }
}

static void step_end(step *s, ki_result *ret) {
    ki_objective *o = s->o;
    if (s->unit) {
        ki_real *diff = s->diff[KI_TAP_EMBEDDING];
        if (s->reads_raw)
            ki_rows_normalize_backward(s->unit, s->norm, s->diff_unit, s->n_rows, s->row_dim, 1, diff);
        else
            ki_rows_normalize_assign(s->unit, s->norm, s->diff_unit, s->n_rows, s->row_dim, diff);
        if (s->diff_unit_stopped)
            ki_rows_normalize_backward(s->unit, s->norm, s->diff_unit_stopped, s->n_rows, s->row_dim, 1,
                                       s->diff_stopped);
    }
    for (size_t i = 0; i < o->params.n; i++)
        add_scaled(o->params.item[i]->diff, s->diff_param[i], 1, o->params.item[i]->count);
    if (!s->batch->is_final && s->unit)
        ki_memory_push(&o->memory, o->loss.normalize ? s->unit : s->batch->tap[KI_TAP_EMBEDDING].data,
                       s->batch->label, s->m, s->dim);
    if (s->is_empty && o->n_empty++ == 0)
        ki_log(KITH_LOG_WARNING, "a batch of %lld items has no pair for %s: its value is 0", (long long)s->m,
               o->loss.record->method.name);
    *ret = (ki_result){.total = s->total,
                       .n_terms = o->n_terms,
                       .term = o->term,
                       .n_pos = s->n_pos,
                       .n_neg = s->n_neg,
                       .n_empty = o->n_empty,
                       .diff_stopped = s->diff_stopped};
    for (ki_tap tap = 0; tap < KI_N_TAPS; tap++) ret->diff[tap] = tap == KI_TAP_LOGITS ? NULL : s->diff[tap];
    take_share(s, ret);
}

kith_status ki_objective_evaluate(ki_objective *objective, const ki_batch *batch, ki_result *ret_result,
                                  kith_error *err) {
    ki_batch whole;
    step s = {.o = objective, .batch = &whole};
    const size_t n_loss = objective->loss.record ? 1 : 0;
    work_begin(objective);
    KI_TRY(ki_batch_gather(objective, batch, &whole, &s.share, err));
    KI_TRY(step_begin(&s, err));
    if (n_loss) KI_TRY(eval_loss(&s, err));
    for (size_t i = 0; i < objective->n_regs; i++)
        KI_TRY(eval_reg(&s, &objective->reg[i], &objective->term[n_loss + i], err));
    KI_TRY(logits_backward(&s, err));
    KI_TRY(ki_params_sum_shares(objective, &s.share, s.diff_param, err));
    step_end(&s, ret_result);
    return KITH_OK;
}

/* The pairs of rows as pairs of images, in place: the sum of the heads' weights and the mean of their similarities.
 * Returns the columns. What is written lies before what is still to be read. */
static int64_t join_heads(const ki_pairs *pairs, int64_t heads, ki_real *weight, ki_real *similarity) {
    const int64_t own = pairs->is_proxy ? 1 : heads, n = pairs->n / own;
    for (int64_t i = 0; heads > 1 && i < pairs->m / heads; i++) {
        for (int64_t j = 0; j < n; j++) {
            ki_real sum = 0, mean = 0;
            for (int64_t h = 0; h < heads; h++) {
                const int64_t at = (i * heads + h) * pairs->n + j * own + (own > 1 ? h : 0);
                sum += weight[at];
                if (similarity) mean += similarity[at] / (ki_real)heads;
            }
            weight[i * n + j] = sum;
            if (similarity) similarity[i * n + j] = mean;
        }
    }
    return n;
}

kith_status ki_objective_weights(ki_objective *objective, const ki_batch *batch, ki_real **ret_weight,
                                 ki_real **ret_similarity, int64_t *ret_n, kith_error *err) {
    step s = {.o = objective, .batch = batch, .share = {.comm = batch->comm, .n = batch->m}};
    const ki_loss_use *loss = &objective->loss;
    ki_pairs pairs;
    proxies with = {0};
    ki_real **diff = NULL, *weight = NULL, *similarity = NULL;
    ki_loss_out out = {.g_scale = 1};
    if (!loss->record) return ki_fail(err, KITH_EINVAL, "pair weights are the loss's, and the loss is none");
    KI_TRY(ki_batch_check(objective, batch, err));
    work_begin(objective);
    KI_TRY(step_begin(&s, err));
    KI_TRY(repeat_labels(&s, batch->label, s.m, &s.row_label, err));
    const rows r = rows_of_batch(&s);
    KI_TRY(make_pairs(&s, &r, loss->param, false, &pairs, &with, err));
    KI_TRY(take_loss_diffs(&s, loss->param, &diff, err));
    KI_TRY(ki_work_reals(&objective->work, pairs.m * pairs.ld, "pair gradients", &out.g, err));
    if (loss->record->is_proxy)
        KI_TRY(take_zeros(&objective->work, pairs.n * s.row_dim, "proxy gradients", &out.diff_proxies, err));
    out.diff = diff;
    const ki_loss_in in = {
        .settings = loss->settings, .pairs = &pairs, .param = loss->param, .proxies = with.unit};
    KI_TRY(loss->record->eval(&in, &out, err));
    const size_t n_weights = (size_t)(pairs.m * pairs.n);
    KI_TRY(ki_alloc_or(&weight, n_weights, sizeof *weight, "pair weights", err));
    if (ret_similarity) {
        const kith_status status =
            ki_alloc_or(&similarity, n_weights, sizeof *similarity, "similarities", err);
        if (status != KITH_OK) {
            ki_free(weight);
            return status;
        }
        *ret_similarity = similarity;
    }
    ki_pairs_weights(&pairs, out.g, out.g_scale, weight, similarity);
    *ret_n = join_heads(&pairs, objective->sizes.heads, weight, similarity);
    objective->column_class = with.columns.chosen;
    objective->first_class = loss->record->is_proxy ? with.of.proxies->first / with.of.n_centers : 0;
    *ret_weight = weight;
    return KITH_OK;
}

int64_t ki_objective_column_class(const ki_objective *objective, int64_t j) {
    const int64_t k = j / ki_objective_centers(objective);
    return objective->first_class + (objective->column_class ? objective->column_class[k] : k);
}

kith_status ki_objective_fail_describe(kith_error *err) {
    char names[128] = "";
    size_t used = 0;
    for (size_t i = 0; ki_reg_at(i); i++) {
        const ki_reg *reg = ki_reg_at(i);
        if (reg->describe && used < sizeof names)
            used += (size_t)ki_snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                        reg->method.name);
    }
    return ki_fail(err, KITH_EINVAL, "no term of the objective has descriptors of its own (%s has)", names);
}

static const ki_reg_use *describing_reg(const ki_objective *objective) {
    for (size_t i = 0; i < objective->n_regs; i++) {
        if (objective->reg[i].record->describe) return &objective->reg[i];
    }
    return NULL;
}

int64_t ki_objective_describe_dim(const ki_objective *objective) {
    const ki_reg_use *reg = describing_reg(objective);
    if (!reg) return 0;
    const ki_reg_in in = {.settings = reg->settings};
    const bool reads = (objective->taps & KI_TAP_BIT(KI_TAP_EMBEDDING)) != 0;
    return (reads ? objective->sizes.embedding : 0) + reg->record->describe_dim(&in);
}

int64_t ki_objective_describe_n(const ki_objective *objective, int64_t *ret_width) {
    const ki_reg_use *reg = describing_reg(objective);
    *ret_width = 0;
    if (!reg) return 0;
    const ki_reg_in in = {.settings = reg->settings};
    const int64_t n = reg->record->describe_n(&in);
    *ret_width = reg->record->describe_dim(&in) / n;
    return n;
}

kith_status ki_objective_describe(ki_objective *objective, const ki_batch *batch, ki_real **ret_descriptor,
                                  int64_t *ret_dim, kith_error *err) {
    step s = {.o = objective, .batch = batch};
    const ki_reg_use *reg = describing_reg(objective);
    ki_real *part = NULL, *whole = NULL;
    if (!reg) return ki_objective_fail_describe(err);
    KI_TRY(ki_batch_check_taps(objective, batch, err));
    work_begin(objective);
    KI_TRY(step_begin(&s, err));
    const ki_reg_in in = reg_in(&s, reg);
    const int64_t own = reg->record->describe_dim(&in), dim = (s.unit ? s.dim : 0) + own;
    size_t n = 0;
    if (!ki_mul_size((size_t)s.m, (size_t)dim, &n)) return ki_fail_memory(err, SIZE_MAX, "descriptors");
    KI_TRY(ki_work_reals(&objective->work, s.m * own, "descriptors", &part, err));
    KI_TRY(reg->record->describe(&in, part, err));
    KI_TRY(ki_alloc_or(&whole, n, sizeof *whole, "descriptors", err));
    for (int64_t i = 0; i < s.m; i++) {
        if (s.unit) memcpy(whole + i * dim, s.unit + i * s.dim, (size_t)s.dim * sizeof *whole);
        memcpy(whole + i * dim + dim - own, part + i * own, (size_t)own * sizeof *whole);
    }
    *ret_descriptor = whole;
    *ret_dim = dim;
    return KITH_OK;
}
