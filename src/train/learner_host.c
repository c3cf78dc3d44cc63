/* A learner whose objective is evaluated on the host: for backends whose memory is the host's (cpu, ref).
 *
 *     data ─► plan forward ─► taps on the host ─► objective ─► gradients at taps ─► plan backward
 *                                                     └─► stops at the embedding: into that layer alone
 *
 * Batches smaller than the full size (the last of an epoch, whole classes) get plans of their own; a few
 * are kept. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "embed/feed.h"
#include "nn/plan.h"
#include "train/learner.h"
#include "train/sized.h"
#include "train/taps.h"

enum { MOST_TERMS = 64 };

typedef struct host {
    ki_learner base;
    ki_sized sized;
    ki_plan *plan[KI_N_SIZED]; /* by place of `sized`; the first is for full batches */
    unsigned taps, grad_taps;  /* KI_TAP_BIT of those read, and of those that get a gradient */
    ki_host_taps host;
    const ki_param *weight, *bias; /* of the embedding layer; bias may be NULL */
    float *input;                  /* KI_BATCH_BYTES: normalised images */
    ki_optim *optim;
    double *sums; /* [runs of the optimizer] */
    ki_learner_copies copies;
    int64_t n_last; /* images of the last micro-batch */

    /* Of the micro-batches since the last update, and of the step updated last. */
    struct {
        double total, value[MOST_TERMS];
        int64_t n_pos, n_neg;
    } sum;
    ki_term term[MOST_TERMS];
    ki_learner_values last;
    int last_n_micro;
} host;

/* ---- making ---- */

static void host_free(ki_learner *learner) {
    host *h = (host *)learner;
    for (int i = 0; i < KI_N_SIZED; i++) ki_plan_free(h->plan[i]);
    ki_host_taps_release(&h->host);
    ki_optim_free(h->optim);
    ki_free(h->sums);
    ki_learner_copies_release(&h->copies);
    ki_free(h);
}

static kith_status make_plan(const host *h, int64_t mb, ki_plan **ret_plan, kith_error *err) {
    const ki_learner_settings *s = &h->base.settings;
    ki_plan_options options = {
        .mb = mb, .mode = KI_TRAIN, .frozen_bn = s->frozen_bn, .seed = s->seed, .comm = s->comm};
    ki_taps_list(h->taps, options.taps);
    ki_taps_list(h->grad_taps, options.grad_taps);
    return ki_plan_new(s->net->graph, s->params, s->backend, &options, ret_plan, err);
}

/* The plan for a batch of mb images, made if necessary. */
static kith_status plan_for(host *h, int64_t mb, ki_plan **ret_plan, kith_error *err) {
    bool is_new = false;
    const int at = ki_sized_place(&h->sized, mb, &is_new);
    if (is_new) {
        ki_plan_free(h->plan[at]);
        h->plan[at] = NULL;
        const kith_status status = make_plan(h, mb, &h->plan[at], err);
        if (status != KITH_OK) {
            ki_sized_forget(&h->sized, at);
            return status;
        }
    }
    *ret_plan = h->plan[at];
    return KITH_OK;
}

static kith_status make_taps(host *h, kith_error *err) {
    const ki_learner_settings *s = &h->base.settings;
    ki_plan *plan = NULL;
    /* A gradient that stops at the embedding needs the layer's input. The embedding is always read: it is
     * what users look at. */
    h->grad_taps = ki_objective_taps(s->objective) & ~KI_TAP_BIT(KI_TAP_WEIGHT);
    h->taps = h->grad_taps | KI_TAP_BIT(KI_TAP_EMBEDDING) | KI_TAP_BIT(KI_TAP_POOLED);
    KI_TRY(plan_for(h, s->batch, &plan, err));
    KI_TRY(ki_host_taps_init(&h->host, plan, h->taps, err));
    h->bias = ki_params_find(s->params, "embedding.bias");
    return ki_taps_weight(s->params, &h->weight, err);
}

static kith_status make_optimizer(host *h, const ki_optim_settings *settings, kith_error *err) {
    const ki_learner_settings *s = &h->base.settings;
    kith_status status;
    ki_optim_param *params = NULL;
    int n = 0;
    size_t n_most = (size_t)ki_params_count(s->params);
    for (size_t i = 0; ki_objective_param(s->objective, i); i++) n_most++;
    KI_CHECK(ki_zalloc_or(&params, n_most, sizeof *params, "the optimizer's parameters", err));
    for (int i = 0; i < ki_params_count(s->params); i++) {
        const ki_param *p = ki_params_at(s->params, i);
        if (p->trained)
            params[n++] = (ki_optim_param){.name = p->name, .n = p->n, .value = p->value, .diff = p->diff};
    }
    const ki_state *p;
    for (size_t i = 0; (p = ki_objective_param(s->objective, i)); i++) {
        if (p->diff)
            params[n++] = (ki_optim_param){.name = p->name,
                                           .n = p->count,
                                           .value = p->value,
                                           .diff = p->diff,
                                           .is_objective = true,
                                           .is_part = p->n_whole > 0,
                                           .lr = p->lr_multiplier};
    }
    KI_CHECK(ki_optim_new(s->backend, params, n, settings, &h->optim, err));
    KI_CHECK(ki_alloc_or(&h->sums, (size_t)ki_optim_n_runs(h->optim) + 1, sizeof *h->sums, "norms", err));
done:
    ki_free(params);
    return status;
}

static kith_status host_make(const ki_learner_settings *settings, ki_learner **ret_learner, kith_error *err) {
    kith_status status;
    host *h = NULL;
    KI_CHECK(ki_zalloc_or(&h, 1, sizeof *h, "a learner", err));
    h->base = (ki_learner){.type = &ki_learner_host, .settings = *settings};
    h->base.settings.optim = NULL;
    if (ki_objective_term_count(settings->objective) > MOST_TERMS) {
        status = ki_fail(err, KITH_EINVAL, "the objective has %zu terms; at most %d are possible",
                         ki_objective_term_count(settings->objective), MOST_TERMS);
        goto done;
    }
    KI_CHECK(make_taps(h, err));
    KI_CHECK(make_optimizer(h, settings->optim, err));
    KI_CHECK(ki_params_zero_diffs(settings->params, err));
    ki_objective_clear_diffs(settings->objective);
    KI_CHECK(ki_feed_check_host(settings->backend, settings->format, err));
    *ret_learner = &h->base;
    h = NULL;
done:
    if (h) host_free(&h->base);
    return status;
}

/* ---- a step ---- */

/* Add the objective's gradient of the layer's weights, and what stops at the embedding. */
static kith_status add_layer_grads(host *h, int64_t n, const ki_result *result, kith_error *err) {
    const ki_learner_settings *s = &h->base.settings;
    /* Every rank has the whole gradient of the weights, and gradients are summed over ranks. */
    const ki_real *by_weight = ki_comm_is_first(s->comm) ? result->diff[KI_TAP_WEIGHT] : NULL;
    for (int64_t i = 0; by_weight && i < h->weight->n; i++) h->weight->diff[i] += by_weight[i];
    if (!result->diff_stopped || n == 0) return KITH_OK;
    const ki_shape pooled = KI_SHAPE2(n, h->host.shape[KI_TAP_POOLED].dim[1]);
    const ki_edge edge = {.shape = pooled,
                          .layout = KI_PLAIN,
                          .bytes = s->backend->type->memory.edge_bytes(s->backend, &pooled, KI_PLAIN)};
    return s->backend->type->kernels.linear_grad(s->backend, &edge, h->host.value[KI_TAP_POOLED],
                                                 result->diff_stopped, s->net->embedding, h->weight->diff,
                                                 h->bias ? h->bias->diff : NULL, err);
}

static void add_values(host *h, int micro, const ki_result *result) {
    if (micro == 0) memset(&h->sum, 0, sizeof h->sum);
    h->sum.total += result->total;
    h->sum.n_pos += result->n_pos;
    h->sum.n_neg += result->n_neg;
    for (size_t i = 0; i < result->n_terms; i++) {
        h->sum.value[i] += result->term[i].value;
        h->term[i] = result->term[i];
    }
    h->last.n_terms = result->n_terms;
}

/* Without images (over ranks) there is no plan, and its taps have no rows. */
static kith_status forward(host *h, const ki_learner_batch *batch, uint64_t number, ki_plan **ret_plan,
                           kith_error *err) {
    ki_plan *plan = NULL;
    h->n_last = batch->n;
    if (batch->n == 0) return KITH_OK;
    KI_TRY(plan_for(h, batch->n, &plan, err));
    ki_plan_set_step(plan, number);
    ki_plan_set_first(plan, batch->first);
    KI_TRY(ki_plan_set_input(plan, batch->data, err));
    KI_TRY(ki_plan_forward(plan, err));
    *ret_plan = plan;
    return ki_host_taps_read(&h->host, plan, err);
}

static kith_status backward(const host *h, ki_plan *plan, const ki_result *result, kith_error *err) {
    for (int i = 0; i < KI_N_NET_TAPS; i++) {
        const ki_tap tap = ki_net_taps[i];
        if (result->diff[tap] && (h->grad_taps & KI_TAP_BIT(tap)))
            KI_TRY(ki_plan_set_grad(plan, ki_tap_name(tap), result->diff[tap], err));
    }
    return ki_plan_backward(plan, err);
}

static kith_status host_add(ki_learner *learner, const ki_learner_batch *batch, uint64_t step, int micro,
                            kith_error *err) {
    host *h = (host *)learner;
    const ki_learner_settings *s = &learner->settings;
    ki_plan *plan = NULL;
    ki_result result;
    if (micro == 0) {
        KI_TRY(ki_params_zero_diffs(s->params, err));
        ki_objective_clear_diffs(s->objective);
    }
    KI_TRY(forward(h, batch, step * (uint64_t)s->n_micro + (uint64_t)micro, &plan, err));
    ki_batch input = {.m = batch->n, .label = batch->label, .step = step, .comm = s->comm};
    ki_host_taps_show(&h->host, h->weight, &input);
    KI_TRY(ki_objective_evaluate(s->objective, &input, &result, err));
    ki_backend_note(s->backend, "objective", 0);
    if (!isfinite(result.total))
        return ki_fail(err, KITH_ENUMERIC, "the loss is %s", isnan(result.total) ? "NaN" : "infinite");
    if (plan) KI_TRY(backward(h, plan, &result, err));
    KI_TRY(add_layer_grads(h, batch->n, &result, err));
    add_values(h, micro, &result);
    return KITH_OK;
}

/* The optimizer has computed the sums already; this waits for them. */
static kith_status read_norms(host *h, kith_error *err) {
    double norm[KI_OPTIM_N_GROUPS];
    KI_TRY(ki_optim_norms(h->optim, norm, err));
    ki_learner_norms(norm, h->last.grad_norm);
    return KITH_OK;
}

/* Squares of parameters that are shared out: the sum over ranks, in their order. */
static kith_status join_sums(host *h, kith_error *err) {
    ki_comm *comm = h->base.settings.comm;
    double all[KI_MOST_RANKS];
    bool has_parts = false;
    if (ki_comm_is_alone(comm)) return KITH_OK;
    for (int i = 0; i < ki_optim_n_runs(h->optim); i++) {
        if (!ki_optim_is_part(h->optim, i)) continue;
        if (!has_parts) KI_TRY(ki_optim_sums_get(h->optim, h->sums, err));
        has_parts = true;
        KI_TRY(ki_comm_gather_each(comm, &h->sums[i], sizeof *all, all, err));
        h->sums[i] = 0;
        for (int r = 0; r < comm->size; r++) h->sums[i] += all[r];
    }
    return has_parts ? ki_optim_sums_set(h->optim, h->sums, err) : KITH_OK;
}

static kith_status host_update(ki_learner *learner, int n_micro, double lr, kith_error *err) {
    host *h = (host *)learner;
    ki_params *params = learner->settings.params;
    KI_TRY(ki_comm_sum(learner->settings.comm, ki_params_diffs(params), ki_params_trained_n(params), err));
    if (!ki_comm_is_alone(learner->settings.comm))
        ki_backend_note(learner->settings.backend, "sum over ranks", 0);
    KI_TRY(ki_optim_tick(h->optim, lr, err));
    KI_TRY(ki_optim_measure(h->optim, err));
    KI_TRY(join_sums(h, err));
    KI_TRY(ki_optim_apply(h->optim, err));
    ki_backend_note(learner->settings.backend, "optimizer", 0);
    ki_params_touch(params);
    h->last_n_micro = n_micro;
    KI_TRY(read_norms(h, err));
    for (int g = 0; g < KI_N_GROUPS; g++) {
        /* In the forward pass ReLUs turn NaN into 0: a value may be finite when its gradient is not. */
        if (!isfinite(h->last.grad_norm[g]))
            return ki_fail(err, KITH_ENUMERIC, "the gradient of the %s is not a finite number",
                           ki_learner_group_name((ki_learner_group)g));
    }
    return KITH_OK;
}

static kith_status host_read(ki_learner *learner, ki_learner_values *ret, kith_error *err) {
    host *h = (host *)learner;
    (void)err;
    const double share = 1.0 / (h->last_n_micro ? h->last_n_micro : 1);
    ki_learner_values v = {.total = h->sum.total * share,
                           .n_terms = h->last.n_terms,
                           .term = h->term,
                           .n_pos = h->sum.n_pos,
                           .n_neg = h->sum.n_neg,
                           .is_finite = true};
    for (size_t i = 0; i < v.n_terms; i++) h->term[i].value = h->sum.value[i] * share;
    memcpy(v.grad_norm, h->last.grad_norm, sizeof v.grad_norm);
    *ret = v;
    return KITH_OK;
}

static kith_status host_embedding(ki_learner *learner, ki_real *ret, kith_error *err) {
    const host *h = (const host *)learner;
    (void)err;
    memcpy(ret, h->host.value[KI_TAP_EMBEDDING],
           (size_t)(h->n_last * learner->settings.net->embedding) * sizeof *ret);
    return KITH_OK;
}

/* ---- checkpoints ---- */

static kith_status host_save_begin(ki_learner *learner, kith_error *err) {
    host *h = (host *)learner;
    return ki_learner_parts_gather(learner, h->optim, &h->copies, err);
}

static void host_save_end(ki_learner *learner) { ki_learner_parts_release(&((host *)learner)->copies); }

static kith_status host_save(ki_learner *learner, kith_tensors_writer *writer, kith_error *err) {
    host *h = (host *)learner;
    return ki_learner_state_save(learner, h->optim, &h->copies, writer, err);
}

static kith_status host_load(ki_learner *learner, const kith_tensors *tensors, kith_error *err) {
    return ki_learner_state_load(learner, ((host *)learner)->optim, tensors, err);
}

static const ki_plan *host_plan(const ki_learner *learner) { return ((const host *)learner)->plan[0]; }

const ki_learner_type ki_learner_host = {.name = "host",
                                         .make = host_make,
                                         .free = host_free,
                                         .add = host_add,
                                         .update = host_update,
                                         .read = host_read,
                                         .embedding = host_embedding,
                                         .save_begin = host_save_begin,
                                         .save_end = host_save_end,
                                         .save = host_save,
                                         .load = host_load,
                                         .plan = host_plan};
