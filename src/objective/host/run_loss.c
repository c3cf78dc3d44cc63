/* One run of the loss on the host: the pair view, the miner, the loss's rows, and the chain rule back to the embeddings
 * and proxies. cuda/site.c is the same on the device. */
#include "base/alloc.h"
#include "objective/gemm.h"
#include "objective/host/host.h"

kith_status ki_loss_take_diffs(ki_evaluation *e, ki_state *const *param, ki_real ***ret, kith_error *err) {
    const ki_loss_use *loss = &e->o->loss;
    KI_TRY(ki_work_take(&e->o->work, loss->n_params + 1, sizeof **ret, "parameter gradients", ret, err));
    for (size_t i = 0; i < loss->n_params; i++) {
        (*ret)[i] = NULL;
        if (i == 0 && loss->record->is_proxy) continue;
        KI_TRY(ki_take_zeros(&e->o->work, param[i]->count, "parameter gradients", &(*ret)[i], err));
    }
    return KITH_OK;
}

/* A label for each head of each of n images. */
static kith_status repeat_labels(ki_evaluation *e, const int32_t *label, int64_t n, const int32_t **ret_label,
                                 kith_error *err) {
    const int64_t heads = e->o->sizes.heads;
    int32_t *repeated = NULL;
    *ret_label = label;
    if (heads == 1) return KITH_OK;
    KI_TRY(ki_work_take(&e->o->work, (size_t)(n * heads), sizeof *repeated, "labels", &repeated, err));
    for (int64_t i = 0; i < n * heads; i++) repeated[i] = label[i / heads];
    *ret_label = repeated;
    return KITH_OK;
}

kith_status ki_loss_rows_of(ki_evaluation *e, ki_loss_rows *ret, kith_error *err) {
    KI_TRY(repeat_labels(e, e->batch->label, e->n_labelled, &e->row_label, err));
    *ret = (ki_loss_rows){.x = e->o->loss.normalize ? e->unit : e->batch->tap[KI_TAP_EMBEDDING].data,
                          .n = e->n_labelled * e->o->sizes.heads,
                          .dim = e->row_dim,
                          .label = e->row_label,
                          .heads = e->o->sizes.heads};
    return KITH_OK;
}

static kith_status choose_proxies(ki_evaluation *e, const ki_loss_rows *r, const ki_state *param,
                                  ki_loss_proxies *ret, kith_error *err) {
    ki_objective *o = e->o;
    ret->of = (ki_proxy_columns_of){.proxies = param,
                                    .n_centers = ki_objective_centers(o),
                                    .sample = ki_objective_sample(o),
                                    .seed = o->seed,
                                    .step = e->batch->step,
                                    .label = r->label,
                                    .m = r->n};
    if (param->n_whole && !e->share.comm)
        return ki_fail(err, KITH_EINVAL, "this objective has a part of %s; it is evaluated over ranks alone",
                       param->name);
    KI_TRY(ki_proxy_columns_choose(&ret->of, &o->work, &ret->columns, err));
    const int64_t n = ret->columns.n;
    const ki_real *value = NULL;
    ret->dim = param->shape.dim[1];
    KI_TRY(ki_rows_cut(&o->work, ret->columns.value, n, ret->dim, r->dim, &value, err));
    KI_TRY(ki_work_reals(&o->work, n * r->dim, "normalised proxies", &ret->unit, err));
    KI_TRY(ki_work_reals(&o->work, n, "proxy norms", &ret->norm, err));
    ki_rows_normalize(value, n, r->dim, ret->unit, ret->norm);
    return KITH_OK;
}

/* From the gradients of the normalised proxies to those of the proxies as they are learned, where diff has them (+=). */
static kith_status proxies_backward(ki_evaluation *e, const ki_loss_proxies *p, int64_t dim,
                                    const ki_real *diff_unit, ki_real *diff, kith_error *err) {
    const int64_t n = p->columns.n;
    ki_real *to = diff, *cut = NULL;
    if (!diff) return KITH_OK;
    if (p->columns.chosen) KI_TRY(ki_take_zeros(&e->o->work, n * p->dim, "proxy gradients", &to, err));
    if (dim < p->dim) {
        KI_TRY(ki_work_reals(&e->o->work, n * dim, "proxy gradients", &cut, err));
        ki_rows_normalize_assign(p->unit, p->norm, diff_unit, n, dim, cut);
        ki_rows_add_cut(cut, 1, n, p->dim, dim, to);
    } else {
        ki_rows_normalize_backward(p->unit, p->norm, diff_unit, n, dim, 1, to);
    }
    if (p->columns.chosen) ki_proxy_columns_add(&p->columns, &p->of, to, diff);
    return KITH_OK;
}

/* Remembered embeddings as the loss saw them: cut to the width of the rows, and normalised again. */
static kith_status remembered(ki_evaluation *e, int64_t n, const ki_loss_rows *r, const ki_real **ret,
                              kith_error *err) {
    ki_objective *o = e->o;
    ki_real *unit = NULL, *norm = NULL;
    KI_TRY(ki_rows_cut(&o->work, o->memory.embedding->value, n, e->dim, r->dim * r->heads, ret, err));
    if (r->dim * r->heads == e->dim || !o->loss.normalize) return KITH_OK;
    KI_TRY(ki_work_reals(&o->work, n * r->dim, "remembered embeddings", &unit, err));
    KI_TRY(ki_work_reals(&o->work, n, "norms", &norm, err));
    ki_rows_normalize(*ret, n, r->dim, unit, norm);
    *ret = unit;
    return KITH_OK;
}

kith_status ki_loss_pairs(ki_evaluation *e, const ki_loss_rows *r, ki_state *const *param, bool use_memory,
                          ki_pairs *pairs, ki_loss_proxies *ret_proxies, kith_error *err) {
    ki_objective *o = e->o;
    const int64_t dim = r->dim;
    const int32_t *more_label = NULL, *row_label = r->label;
    const ki_loss *loss = o->loss.record;
    int32_t *label = NULL;
    const ki_real *more = NULL;
    int64_t n_more = 0;
    if (loss->is_proxy) {
        KI_TRY(choose_proxies(e, r, param[0], ret_proxies, err));
        n_more = ret_proxies->columns.n;
        more = ret_proxies->unit;
        more_label = ret_proxies->columns.label;
        row_label = ret_proxies->columns.own;
    } else if (use_memory) {
        n_more = ki_memory_columns(&o->memory, e->batch->step);
        KI_TRY(ki_work_take(&o->work, (size_t)n_more, sizeof *label, "labels in memory", &label, err));
        ki_memory_labels(&o->memory, n_more, label);
        KI_TRY(repeat_labels(e, label, n_more, &more_label, err));
        if (n_more) KI_TRY(remembered(e, n_more, r, &more, err));
        n_more *= r->heads;
    }
    KI_TRY(ki_pairs_build(pairs, r->x, r->n, dim, row_label, more, more_label, n_more, loss->is_proxy, o->vec,
                          &o->work, err));
    if (loss->is_proxy && param[0]->n_whole) {
        pairs->comm = e->share.comm;
        pairs->total_pos = r->n * ret_proxies->of.n_centers;
        pairs->total_neg = r->n * ret_proxies->columns.n_all - pairs->total_pos;
    }
    ki_pairs_split(pairs, r->heads);
    pairs->seed = o->seed;
    pairs->step = e->batch->step;
    if (o->miner->mine) {
        KI_TRY(o->miner->mine(o->miner_settings, pairs, err));
        ki_pairs_count(pairs);
    }
    ki_pairs_measure(pairs, loss->measure ? loss->measure(o->loss.settings) : KI_INNER);
    return KITH_OK;
}

kith_status ki_loss_run(ki_evaluation *e, const ki_loss_rows *r, ki_state *const *param,
                        ki_real *const *diff_param, bool is_main, double *ret_value, ki_real *diff_x,
                        kith_error *err) {
    ki_objective *o = e->o;
    const int64_t dim = r->dim;
    const ki_loss *loss = o->loss.record;
    const ki_work_mark mark = ki_work_here(&o->work);
    kith_status status = KITH_OK;
    ki_pairs pairs;
    ki_loss_proxies with = {0};
    ki_real *diff_w = NULL, *diff_straight = NULL, **diff = NULL;
    ki_loss_out out = {.g_scale = 1};
    KI_CHECK(ki_loss_pairs(e, r, param, is_main, &pairs, &with, err));
    KI_CHECK(ki_loss_take_diffs(e, param, &diff, err));
    KI_CHECK(ki_work_reals(&o->work, pairs.m * pairs.ld, "pair gradients", &out.g, err));
    if (loss->is_proxy) {
        KI_CHECK(ki_work_reals(&o->work, pairs.n * dim, "proxy gradients", &diff_w, err));
        KI_CHECK(ki_take_zeros(&o->work, pairs.n * dim, "proxy gradients", &diff_straight, err));
    }
    out.diff = diff;
    out.diff_proxies = diff_straight;
    const ki_loss_in in = {
        .settings = o->loss.settings, .pairs = &pairs, .param = param, .proxies = with.unit};
    KI_CHECK(loss->eval(&in, &out, err));
    KI_CHECK(ki_pairs_backward(&pairs, out.g, out.g_scale, diff_x, diff_w, err));
    KI_CHECK(ki_comm_sum(pairs.comm, diff_x, r->n * dim, err));
    if (loss->is_proxy) {
        ki_add_scaled(diff_w, diff_straight, 1, pairs.n * dim);
        KI_CHECK(proxies_backward(e, &with, dim, diff_w, diff_param[0], err));
    }
    for (size_t i = 0; i < o->loss.n_params; i++) ki_add_scaled(diff_param[i], diff[i], 1, param[i]->count);
    *ret_value = out.value;
    if (is_main) {
        e->n_pos = pairs.total_pos;
        e->n_neg = pairs.total_neg;
        e->is_empty = pairs.total_pos + pairs.total_neg == 0;
    }
done:
    ki_work_rewind(&o->work, mark);
    return status;
}
