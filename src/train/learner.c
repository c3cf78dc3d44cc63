/* A learner's steps, on any backend.
 *
 *     host      batch t+1 ─copy queue─► staging                        values of t-1 ◄─┐
 *     device    ── images ─ forward ─ objective ─ backward ─ optimizer ─┬─ images ─ …  │
 *                   step t                                              └──────────────┘
 *
 * The loader's bytes are copied while a step runs. What changes from step to step (labels, crop windows, step
 * numbers, the optimizer's clock) is in backend memory. So after a few steps that are queued kernel by kernel, a device records
 * the work once and launches it again as a whole: one recording of forward, objective and backward, one of the
 * optimizer. The host waits only for the copy out of the caller's memory, and for values of the step before the one
 * just queued. So the device always has work. Where the backend is the host itself every call is finished when it returns, and the
 * same lines are plain calls.
 *
 * Over ranks (docs/adr/0101) the engine gathers the rows of all ranks and keeps its own. The gradients of the last micro-batch of
 * a step are summed over ranks while backward still computes others, in buckets from the end of the slab of gradients, which
 * backward finishes first. All of this is in the recording, unless the ranks' way cannot be recorded.
 *
 * A batch that is computed in chunks takes another way through the same recordings: learner_chunks.c.
 *
 * Batches smaller than the full size (the last of an epoch, whole classes) and those of images of another side get a plan, an engine
 * and a recording of their own; a few are kept. Their activations lie where those of the largest batch do. */
#include <math.h>

#include "train/learner_inside.h"

const char *ki_learner_group_name(ki_learner_group group) {
    static const char *const names[KI_N_GROUPS] = {"backbone", "embedding", "objective"};
    return names[group];
}

/* ---- values ---- */

kith_status ki_learner_collect(ki_learner *l, kith_error *err) {
    if (!l->due) return KITH_OK;
    ki_engine_values v;
    ki_engine *engine = l->due->engine;
    l->due = NULL;
    KI_TRY(l->engine_type->read(engine, &v, err));
    ki_learner_sums *sum = &l->sum;
    sum->total += v.total;
    sum->n_pos += v.n_pos;
    sum->n_neg += v.n_neg;
    sum->is_finite = sum->is_finite && v.is_finite && isfinite(v.total);
    l->n_terms = v.n_terms < KI_LEARNER_MOST_TERMS ? v.n_terms : KI_LEARNER_MOST_TERMS;
    for (size_t i = 0; i < l->n_terms; i++) {
        sum->value[i] += v.term[i].value;
        l->term[i] = v.term[i];
    }
    if (sum->is_finite || l->is_bad) return KITH_OK;
    l->is_bad = true;
    l->bad_step = v.step;
    return KITH_OK;
}

static void read_norms(const ki_learner *l, double ret_norm[KI_N_GROUPS]) {
    double norm[KI_OPTIM_N_GROUPS];
    ki_optim_norms_of(l->optim, l->sums, norm);
    ki_learner_norms(norm, ret_norm);
}

kith_status ki_learner_read(ki_learner *l, ki_learner_values *ret, kith_error *err) {
    /* Between add and update, the step updated last is the one before the step that is being added. */
    if (l->n_added == 0) KI_TRY(ki_learner_collect(l, err));
    const ki_learner_sums *of = l->n_added == 0 ? &l->sum : &l->last;
    const double share = 1.0 / (of->n_micro ? of->n_micro : 1);
    ki_learner_values v = {.total = of->total * share,
                           .n_terms = l->n_terms,
                           .term = l->term,
                           .n_pos = of->n_pos,
                           .n_neg = of->n_neg};
    for (size_t i = 0; i < l->n_terms; i++) l->term[i].value = of->value[i] * share;
    KI_TRY(l->queues->mark_wait(l->settings.backend, l->summed, err));
    read_norms(l, v.grad_norm);
    for (int g = 0; g < KI_N_GROUPS; g++) {
        if (isfinite(v.grad_norm[g]) || l->is_bad) continue;
        l->is_bad = true;
        l->bad_step = of->step;
    }
    v.is_finite = !l->is_bad;
    v.bad_step = l->bad_step;
    l->is_bad = false;
    *ret = v;
    return KITH_OK;
}

kith_status ki_learner_embedding(ki_learner *l, ki_real *ret, kith_error *err) {
    if (l->n_last == 0) return KITH_OK;
    if (l->settings.chunk) return ki_chunks_embedding(l, ret, err);
    return ki_plan_read(l->pass->plan, ki_tap_name(KI_TAP_EMBEDDING), ret, err);
}

/* ---- a micro-batch ---- */

/* The part of the embedding's gradient that goes no further than the embedding layer. */
static kith_status add_stopped(const ki_learner *l, const ki_pass *p, kith_error *err) {
    const ki_learner_settings *s = &l->settings;
    if (!l->stopped || !p->plan) return KITH_OK;
    KI_TRY(s->backend->type->kernels.linear_grad(s->backend, &p->pooled_edge, p->pooled, l->stopped,
                                                 s->net->embedding, l->weight->diff,
                                                 l->bias ? l->bias->diff : NULL, err));
    ki_backend_note(s->backend, "linear backward", 0);
    return KITH_OK;
}

static void add_by_weight(const ki_learner *l) {
    for (int64_t i = 0; l->by_weight && i < l->weight->n; i++) {
        l->weight->diff[i] += l->by_weight[i];
        l->by_weight[i] = 0;
    }
}

kith_status ki_learner_queue_backward(ki_learner *l, kith_error *err) {
    const ki_learner_settings *s = &l->settings;
    const ki_pass *p = l->pass;
    const bool is_host = s->backend->type->is_host;
    l->unsummed = ki_params_trained_n(s->params);
    /* Backward may send the layer's gradient to other ranks as soon as it has it. The host sends everything at the end, and has
     * always added in this order: sums of floats depend on it. */
    if (!is_host) KI_TRY(add_stopped(l, p, err));
    if (p->plan) KI_TRY(ki_plan_backward(p->plan, err));
    add_by_weight(l);
    if (is_host) KI_TRY(add_stopped(l, p, err));
    if (!l->comm || !l->is_last) return KITH_OK;
    KI_TRY(ki_device_comm_sum(l->comm, ki_params_diffs(s->params), l->unsummed, err));
    KI_TRY(ki_device_comm_settle(l->comm, err));
    ki_backend_note(s->backend, "sum over ranks", 0);
    return KITH_OK;
}

static kith_status queue_batch(void *user, kith_error *err) {
    ki_learner *l = user;
    const ki_learner_settings *s = &l->settings;
    ki_course *c = l->now;
    const ki_pass *p = l->pass;
    if (p->plan) KI_TRY(ki_plan_forward(p->plan, err));
    for (int t = 0; t < s->n_teachers && p->plan; t++) KI_TRY(ki_plan_forward(p->taught[t], err));
    KI_TRY(l->engine_type->evaluate(c->engine, err));
    ki_backend_note(s->backend, "objective", 0);
    if (l->comm && l->is_last) KI_TRY(l->engine_type->sum_diffs(c->engine, err));
    return ki_learner_queue_backward(l, err);
}

kith_status ki_learner_run(ki_learner *l, ki_recording *recording, ki_recording_fn queue, kith_error *err) {
    ki_backend *backend = l->settings.backend;
    /* The recording refreshes the kernels' copies of weights every time. */
    if (ki_recording_is_due(recording, backend)) ki_params_touch(l->settings.params);
    return ki_recording_run(recording, backend, queue, l, err);
}

/* A batch that the network computes at once. */
static kith_status add_whole(ki_learner *l, const ki_feed_batch *batch, bool is_last, kith_error *err) {
    ki_pass *p = &l->now->pass[0];
    l->is_last = is_last;
    l->pass = p;
    KI_TRY(ki_feed_bring(l->feed, batch, &p->input_edge, p->input, err));
    return ki_learner_run(l, &l->now->recording[is_last], queue_batch, err);
}

/* Over ranks a device wants an image on each; the host can do without. */
static kith_status check_batch(const ki_learner *l, const ki_learner_batch *batch, int64_t n,
                               kith_error *err) {
    const ki_learner_settings *s = &l->settings;
    if (l->is_swapped) return ki_fail(err, KITH_EINTERNAL, "a step from the average");
    if (l->n_added >= s->n_micro)
        return ki_fail(err, KITH_EINTERNAL, "more than %d micro-batches in one step", s->n_micro);
    if (n != batch->n)
        return ki_fail(err, KITH_EINTERNAL, "%lld of %lld images on this rank; wanted %lld",
                       (long long)batch->n, (long long)batch->n_all, (long long)n);
    if (s->sides.n && !ki_sided_net(l->sided, batch->side))
        return ki_fail(err, KITH_EINTERNAL, "a batch of %lld pixels, which is no side of this run",
                       (long long)batch->side);
    if (n == 0 && l->comm && s->backend->type->is_host) return KITH_OK;
    return ki_feed_check_size(n, s->batch, err);
}

kith_status ki_learner_add(ki_learner *l, const ki_learner_batch *batch, uint64_t step, kith_error *err) {
    const ki_learner_settings *s = &l->settings;
    const int micro = l->n_added;
    int64_t n = batch->n, first = 0;
    bool is_new = false;
    if (l->comm) ki_comm_own(l->comm->comm, batch->n_all, &first, &n);
    KI_TRY(check_batch(l, batch, n, err));
    const int64_t side = s->sides.n ? batch->side : ki_sided_largest(l->sided);
    kith_status status = ki_learner_course(l, l->comm ? batch->n_all : n, side, &is_new, err);
    /* All ranks have made one, or none. A rank without must not leave the others waiting. */
    if (l->comm && is_new) status = ki_comm_agree(l->comm->comm, status, err);
    if (status != KITH_OK) return status;
    const ki_feed_batch feed = {
        .n = n,
        .data = batch->data,
        .window = batch->window,
        .label = batch->label,
        .view = l->now->pass[0].view,
        .side = s->sides.n ? side : 0,
        .number = {[KI_LEARNER_FORWARD] = step * (uint64_t)s->n_micro + (uint64_t)micro,
                   [KI_LEARNER_FIRST] = (uint64_t)first,
                   [KI_LEARNER_STEP] = step}};
    const bool is_last = micro + 1 == s->n_micro;
    l->n_last = n;
    KI_TRY(s->chunk ? ki_chunks_add(l, &feed, is_last, err) : add_whole(l, &feed, is_last, err));
    /* The device now works on this batch, so there is time to look at the one before. */
    KI_TRY(ki_learner_collect(l, err));
    if (micro == 0) {
        l->last = l->sum;
        l->sum = (ki_learner_sums){.is_finite = true, .step = step};
    }
    KI_TRY(l->engine_type->fetch(l->now->engine, err));
    l->due = l->now;
    l->sum.n_micro = micro + 1;
    KI_TRY(ki_feed_wait(l->feed, err));
    l->n_added++;
    return KITH_OK;
}

/* ---- the optimizer ---- */

/* Squares of parameters that are shared out: the sum over ranks, in their order. */
static kith_status join_sums(ki_learner *l, kith_error *err) {
    ki_comm *comm = l->settings.comm;
    double all[KI_MOST_RANKS];
    KI_TRY(ki_optim_sums_get(l->optim, l->sums, err));
    for (int i = 0; i < ki_optim_n_runs(l->optim); i++) {
        if (!ki_optim_is_part(l->optim, i)) continue;
        KI_TRY(ki_comm_gather_each(comm, &l->sums[i], sizeof *all, all, err));
        l->sums[i] = 0;
        for (int r = 0; r < comm->size; r++) l->sums[i] += all[r];
    }
    return ki_optim_sums_set(l->optim, l->sums, err);
}

/* Gradients are left at zero, ready to be added to. */
static kith_status queue_update(void *user, kith_error *err) {
    ki_learner *l = user;
    const ki_learner_settings *s = &l->settings;
    KI_TRY(ki_optim_measure(l->optim, err));
    if (l->has_parts && !ki_comm_is_alone(s->comm)) KI_TRY(join_sums(l, err));
    KI_TRY(ki_optim_apply(l->optim, err));
    const double n = (double)ki_params_trained_n(s->params) * sizeof(ki_real);
    ki_backend_note(s->backend, "optimizer", 8 * n); /* norms read diff; value, m and v read and written */
    if (l->average) {
        KI_TRY(ki_average_launch(l->average, err));
        ki_backend_note(s->backend, "average", 3 * n);
    }
    KI_TRY(ki_params_zero_diffs(s->params, err));
    KI_TRY(l->engine_type->clear_diffs(l->course[0].engine, err));
    ki_backend_note(s->backend, "gradients cleared", n);
    return KITH_OK;
}

/* In the forward pass ReLUs turn NaN into 0: a value may be finite when its gradient is not. */
static kith_status check_norms(const ki_learner *l, kith_error *err) {
    double norm[KI_N_GROUPS];
    read_norms(l, norm);
    for (int g = 0; g < KI_N_GROUPS; g++) {
        if (!isfinite(norm[g]))
            return ki_fail(err, KITH_ENUMERIC, "the gradient of the %s is not a finite number",
                           ki_learner_group_name((ki_learner_group)g));
    }
    return KITH_OK;
}

kith_status ki_learner_update(ki_learner *l, double lr, kith_error *err) {
    ki_backend *backend = l->settings.backend;
    if (l->n_added != l->settings.n_micro)
        return ki_fail(err, KITH_EINTERNAL, "an update after %d of %d micro-batches", l->n_added,
                       l->settings.n_micro);
    l->n_added = 0;
    KI_TRY(ki_optim_tick(l->optim, lr, err));
    if (l->average) KI_TRY(ki_average_tick(l->average, ki_optim_steps(l->optim), err));
    KI_TRY(ki_learner_run(l, &l->update, queue_update, err));
    KI_TRY(l->queues->copy(backend, KI_QUEUE_MAIN, l->sums, ki_optim_sums(l->optim),
                           (size_t)ki_optim_n_runs(l->optim) * sizeof *l->sums, err));
    KI_TRY(l->queues->mark_set(backend, l->summed, KI_QUEUE_MAIN, err));
    ki_params_touch(l->settings.params);
    return backend->type->is_host ? check_norms(l, err) : KITH_OK;
}

kith_status ki_learner_swap(ki_learner *l, kith_error *err) {
    if (!l->average) return KITH_OK;
    if (l->n_added > 0) return ki_fail(err, KITH_EINTERNAL, "the average is wanted in the middle of a step");
    KI_TRY(ki_average_swap(l->average, err));
    l->is_swapped = !l->is_swapped;
    ki_params_touch(l->settings.params);
    return KITH_OK;
}

/* ---- for others ---- */

const ki_plan *ki_learner_plan(const ki_learner *l) { return l->course[0].pass[0].plan; }

ki_engine *ki_learner_engine(const ki_learner *l) { return l->course[0].engine; }

kith_status ki_learner_pull(ki_learner *l, kith_error *err) {
    return l->engine_type->pull(l->course[0].engine, err);
}

kith_status ki_learner_push(ki_learner *l, kith_error *err) {
    return l->engine_type->push(l->course[0].engine, err);
}
