/* A learner that stays on the device: for backends that have an engine for objectives (objective/engine.h).
 *
 *     host      batch t+1 ─copy queue─► staging                        values of t-1 ◄─┐
 *     device    ── images ─ forward ─ objective ─ backward ─ optimizer ─┬─ images ─ …  │
 *                   step t                                              └──────────────┘
 *
 * The loader's bytes are copied while a step runs. What changes from step to step (labels, crop windows, step
 * numbers, the optimizer's clock) is in device memory. So after a few steps that are queued kernel by kernel, the
 * work is recorded once and launched again as a whole: one recording of forward, objective and backward, one of the
 * optimizer. The host waits only for the copy out of the caller's memory, and for values of the step before the one
 * just queued. So the device always has work.
 *
 * Over ranks (docs/adr/0101) the engine gathers the rows of all ranks and keeps its own. The gradients of the last micro-batch of
 * a step are summed over ranks while backward still computes others, in buckets from the end of the slab of gradients, which
 * backward finishes first. All of this is in the recording, unless the ranks' way cannot be recorded.
 *
 * Batches smaller than the full size (the last of an epoch, whole classes) get a plan, an engine and a recording of
 * their own; a few are kept. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "device/recording.h"
#include "embed/feed.h"
#include "nn/plan.h"
#include "train/learner.h"
#include "train/sized.h"
#include "train/taps.h"

enum { MOST_TERMS = 64 };

/* The numbers of a batch: micro-batches so far and the place of the first image, which name dropout's random numbers, and the
 * step. */
enum { FORWARD, FIRST, STEP };

/* Gradients that are summed at a time: 4 MiB. Fewer take no less time between GPUs; more begin later. */
enum { BUCKET = 1 << 20 };

/* What batches of one size need. */
typedef struct course {
    ki_plan *plan;
    ki_engine *engine;
    ki_edge input_edge, pooled_edge;
    void *input, *pooled;
    ki_recording
        recording[2]; /* forward, objective, backward; the second: of the last micro-batch of a step */
} course;

typedef struct device {
    ki_learner base;
    const ki_queue_type *queues;
    const ki_engine_type *engine_type;
    ki_sized sized;
    course course
        [KI_N_SIZED];     /* by place of `sized`; the first is for full batches, and has what engines learn */
    ki_device_comm *comm; /* NULL: one process */
    int64_t unsummed;     /* gradients before this number are not summed yet */
    bool is_last;         /* micro-batch of its step */
    bool is_queued;       /* batches are not recorded */
    course *now, *due;    /* of the last micro-batch; the one whose engine has unread values, or NULL */
    ki_optim *optim;
    ki_recording update;
    const ki_param *weight, *bias; /* of the embedding layer; bias may be NULL */
    ki_feed *feed;
    ki_real *stopped; /* device [batch, dim]; NULL: no term stops at the embedding */
    ki_mark *summed;  /* `sums` is that of the last update */
    double *sums;     /* pinned: squares of gradients by run of the optimizer */

    ki_learner_copies copies;

    /* Of the step that is being added, and of the one updated last. */
    struct values {
        double total, value[MOST_TERMS];
        int64_t n_pos, n_neg;
        int n_micro;
        bool is_finite;
        uint64_t step;
    } sum, last;
    bool is_bad; /* since the last read */
    uint64_t bad_step;
    size_t n_terms;
    ki_term term[MOST_TERMS];
} device;

/* ---- making ---- */

static void course_drop_recordings(const device *d, course *c) {
    for (int i = 0; i < 2; i++) ki_recording_release(&c->recording[i], d->base.settings.backend);
}

/* CUDA frees a recording that still runs when it has ended. */
static void device_drop_recordings(ki_learner *learner) {
    device *d = (device *)learner;
    ki_recording_release(&d->update, learner->settings.backend);
    for (int i = 0; i < KI_N_SIZED; i++) course_drop_recordings(d, &d->course[i]);
}

/* The device must have finished all queued work. */
static void course_release(const device *d, course *c) {
    course_drop_recordings(d, c);
    if (d->engine_type) d->engine_type->close(c->engine);
    ki_plan_free(c->plan);
    *c = (course){0};
}

static void device_free(ki_learner *learner) {
    device *d = (device *)learner;
    ki_backend *backend = learner->settings.backend;
    const ki_backend_type *type = backend->type;
    kith_error ignored;
    (void)type->memory.sync(backend, &ignored);
    ki_recording_release(&d->update, backend);
    ki_optim_free(d->optim);
    for (int i = KI_N_SIZED - 1; i >= 0; i--)
        course_release(d, &d->course[i]); /* the first outlives the others */
    type->memory.free(backend, d->stopped);
    ki_feed_free(d->feed);
    if (d->queues) {
        d->queues->mark_free(backend, d->summed);
        d->queues->host_free(backend, d->sums);
    }
    ki_learner_copies_release(&d->copies);
    ki_free(d);
}

static kith_status make_memory(device *d, kith_error *err) {
    const ki_learner_settings *s = &d->base.settings;
    KI_TRY(ki_feed_new(s->backend, s->net, s->batch, s->format, s->transform, &d->feed, err));
    return ki_taps_stopped(s->backend, s->objective, s->batch, s->net->embedding, &d->stopped, err);
}

/* Backward has finished gradients from number `from` on. */
static kith_status sum_ready(void *user, int64_t from, kith_error *err) {
    device *d = user;
    if (!d->is_last) return KITH_OK;
    const int64_t end = d->unsummed;
    d->unsummed = from;
    return ki_device_comm_sum(d->comm, ki_params_diffs(d->base.settings.params) + from, end - from, err);
}

/* m: images of the whole batch. */
static kith_status make_course(device *d, course *c, int64_t m, kith_error *err) {
    const ki_learner_settings *s = &d->base.settings;
    int64_t first = 0, mb = m;
    if (d->comm) ki_comm_own(d->comm->comm, m, &first, &mb);
    const unsigned grads = ki_objective_taps(s->objective) & ~KI_TAP_BIT(KI_TAP_WEIGHT);
    const unsigned taps = grads | KI_TAP_BIT(KI_TAP_EMBEDDING) | KI_TAP_BIT(KI_TAP_POOLED);
    ki_plan_options options = {.mb = mb,
                               .mode = KI_TRAIN,
                               .frozen_bn = s->frozen_bn,
                               .seed = s->seed,
                               .step = &ki_feed_numbers(d->feed)[FORWARD],
                               .first = &ki_feed_numbers(d->feed)[FIRST],
                               .device_comm = d->comm,
                               .ready = d->comm ? sum_ready : NULL,
                               .ready_user = d,
                               .ready_every = s->bucket > 0 ? s->bucket : BUCKET};
    ki_engine_batch batch = {.label = ki_feed_labels(d->feed),
                             .step = &ki_feed_numbers(d->feed)[STEP],
                             .diff_stopped = d->stopped,
                             .comm = d->comm};
    ki_taps_list(taps, options.taps);
    ki_taps_list(grads, options.grad_taps);
    c->recording[0].is_off = c->recording[1].is_off = d->is_queued;
    KI_TRY(ki_plan_new(s->net->graph, s->params, s->backend, &options, &c->plan, err));
    KI_TRY(ki_plan_input_memory(c->plan, &c->input_edge, &c->input, err));
    KI_TRY(ki_plan_tap_memory(c->plan, ki_tap_name(KI_TAP_POOLED), &c->pooled_edge, &c->pooled, err));
    KI_TRY(ki_taps_engine(c->plan, s->objective, d->weight, true, &batch, err));
    ki_engine *beside = d->course[0].engine;
    return beside ? d->engine_type->open_beside(beside, &batch, m, &c->engine, err)
                  : d->engine_type->open(s->backend, s->objective, &batch, m, &c->engine, err);
}

static kith_status make_optimizer(device *d, const ki_optim_settings *settings, kith_error *err) {
    const ki_learner_settings *s = &d->base.settings;
    ki_engine_param p;
    ki_optim_param *param = NULL;
    kith_status status;
    int n = 0;
    size_t n_most = (size_t)ki_params_count(s->params);
    ki_engine *engine = d->course[0].engine;
    for (size_t i = 0; d->engine_type->param_at(engine, i, &p); i++) n_most++;
    KI_TRY(ki_zalloc_or(&param, n_most, sizeof *param, "the optimizer's parameters", err));
    for (int i = 0; i < ki_params_count(s->params); i++) {
        const ki_param *of_net = ki_params_at(s->params, i);
        if (!of_net->trained) continue;
        param[n++] = (ki_optim_param){
            .name = of_net->name, .n = of_net->n, .value = of_net->value, .diff = of_net->diff};
    }
    for (size_t i = 0; d->engine_type->param_at(engine, i, &p); i++) {
        if (!p.diff) continue;
        param[n++] = (ki_optim_param){.name = p.name,
                                      .n = p.n,
                                      .value = p.value,
                                      .diff = p.diff,
                                      .is_objective = true,
                                      .lr = p.lr_multiplier};
    }
    KI_CHECK(ki_optim_new(s->backend, param, n, settings, &d->optim, err));
    void *host = NULL;
    KI_CHECK(
        d->queues->host_alloc(s->backend, (size_t)ki_optim_n_runs(d->optim) * sizeof *d->sums, &host, err));
    d->sums = host;
    memset(host, 0, (size_t)ki_optim_n_runs(d->optim) * sizeof *d->sums);
    KI_CHECK(d->queues->mark_new(s->backend, &d->summed, err));
done:
    ki_free(param);
    return status;
}

/* Add the values of the previous micro-batch, which the device has finished or is about to finish. */
static kith_status collect(device *d, kith_error *err) {
    if (!d->due) return KITH_OK;
    ki_engine_values v;
    ki_engine *engine = d->due->engine;
    d->due = NULL;
    KI_TRY(d->engine_type->read(engine, &v, err));
    struct values *sum = &d->sum;
    sum->total += v.total;
    sum->n_pos += v.n_pos;
    sum->n_neg += v.n_neg;
    sum->is_finite = sum->is_finite && v.is_finite && isfinite(v.total);
    for (size_t i = 0; i < v.n_terms && i < MOST_TERMS; i++) {
        sum->value[i] += v.term[i].value;
        d->term[i] = v.term[i];
    }
    d->n_terms = v.n_terms < MOST_TERMS ? v.n_terms : MOST_TERMS;
    if (sum->is_finite || d->is_bad) return KITH_OK;
    d->is_bad = true;
    d->bad_step = v.step;
    return KITH_OK;
}

/* From now on use what whole batches of m images need. If it does not exist, it is made in the place that was used
 * longest ago. */
static kith_status course_for(device *d, int64_t m, bool *ret_is_new, kith_error *err) {
    ki_backend *backend = d->base.settings.backend;
    bool is_new = false;
    const int at = ki_sized_place(&d->sized, m, &is_new);
    course *c = &d->course[at];
    *ret_is_new = is_new;
    if (is_new) {
        kith_status status = KITH_OK;
        if (d->due == c) status = collect(d, err);
        if (status == KITH_OK) status = backend->type->memory.sync(backend, err);
        if (status == KITH_OK) {
            course_release(d, c);
            status = make_course(d, c, m, err);
        }
        if (status != KITH_OK) {
            (void)backend->type->memory.sync(backend, NULL);
            course_release(d, c);
            ki_sized_forget(&d->sized, at);
            return status;
        }
    }
    d->now = c;
    return KITH_OK;
}

static kith_status device_make(const ki_learner_settings *settings, ki_learner **ret_learner,
                               kith_error *err) {
    kith_status status;
    device *d = NULL;
    bool is_new = false;
    KI_CHECK(ki_zalloc_or(&d, 1, sizeof *d, "a learner", err));
    d->base = (ki_learner){.type = &ki_learner_device, .settings = *settings};
    d->base.settings.optim = NULL;
    d->queues = settings->backend->type->queues;
    d->engine_type = ki_engine_of(settings->backend);
    d->comm = settings->device_comm;
    d->is_queued = settings->one_by_one || (d->comm && !d->comm->type->can_be_captured);
    d->update.is_off = settings->one_by_one;
    if (!d->queues || !d->engine_type) {
        status = ki_fail(err, KITH_EINTERNAL, "backend %s cannot keep a step on the device",
                         settings->backend->type->name);
        goto done;
    }
    if (ki_objective_term_count(settings->objective) > MOST_TERMS) {
        status = ki_fail(err, KITH_EINVAL, "the objective has %zu terms; at most %d are possible",
                         ki_objective_term_count(settings->objective), MOST_TERMS);
        goto done;
    }
    KI_CHECK(ki_taps_weight(settings->params, &d->weight, err));
    d->bias = ki_params_find(settings->params, "embedding.bias");
    KI_CHECK(make_memory(d, err));
    KI_CHECK(course_for(d, d->comm ? settings->whole : settings->batch, &is_new, err));
    KI_CHECK(make_optimizer(d, settings->optim, err));
    KI_CHECK(ki_params_zero_diffs(settings->params, err));
    KI_CHECK(d->engine_type->clear_diffs(d->course[0].engine, err));
    KI_CHECK(settings->backend->type->memory.sync(settings->backend, err));
    *ret_learner = &d->base;
    d = NULL;
done:
    if (d) device_free(&d->base);
    return status;
}

/* ---- a step ---- */

static kith_status queue_batch(void *user, kith_error *err) {
    device *d = user;
    const ki_learner_settings *s = &d->base.settings;
    ki_backend *backend = s->backend;
    course *c = d->now;
    KI_TRY(ki_plan_forward(c->plan, err));
    KI_TRY(d->engine_type->evaluate(c->engine, err));
    ki_backend_note(backend, "objective", 0);
    if (d->stopped) {
        KI_TRY(backend->type->kernels.linear_grad(backend, &c->pooled_edge, c->pooled, d->stopped,
                                                  s->net->embedding, d->weight->diff,
                                                  d->bias ? d->bias->diff : NULL, err));
        ki_backend_note(backend, "linear backward", 0);
    }
    if (!d->comm || !d->is_last) return ki_plan_backward(c->plan, err);
    d->unsummed = ki_params_trained_n(s->params);
    KI_TRY(d->engine_type->sum_diffs(c->engine, err));
    KI_TRY(ki_plan_backward(c->plan, err));
    KI_TRY(ki_device_comm_sum(d->comm, ki_params_diffs(s->params), d->unsummed, err));
    KI_TRY(ki_device_comm_settle(d->comm, err));
    ki_backend_note(backend, "sum over ranks", 0);
    return KITH_OK;
}

/* Gradients are left at zero, ready to be added to. */
static kith_status queue_update(void *user, kith_error *err) {
    device *d = user;
    const ki_learner_settings *s = &d->base.settings;
    KI_TRY(ki_optim_launch(d->optim, err));
    const double n = (double)ki_params_trained_n(s->params) * sizeof(ki_real);
    ki_backend_note(s->backend, "optimizer", 8 * n); /* norms read diff; value, m and v read and written */
    KI_TRY(ki_params_zero_diffs(s->params, err));
    KI_TRY(d->engine_type->clear_diffs(d->course[0].engine, err));
    ki_backend_note(s->backend, "gradients cleared", n);
    return KITH_OK;
}

static kith_status run(device *d, ki_recording *recording, ki_recording_fn queue, kith_error *err) {
    ki_backend *backend = d->base.settings.backend;
    /* The recording refreshes the kernels' copies of weights every time. */
    if (ki_recording_is_due(recording, backend)) ki_params_touch(d->base.settings.params);
    return ki_recording_run(recording, backend, queue, d, err);
}

static kith_status device_add(ki_learner *learner, const ki_learner_batch *batch, uint64_t step, int micro,
                              kith_error *err) {
    device *d = (device *)learner;
    const ki_learner_settings *s = &learner->settings;
    KI_TRY(ki_feed_check_size(batch->n, s->batch, err));
    int64_t n = batch->n, first = 0;
    bool is_new = false;
    if (d->comm) ki_comm_own(d->comm->comm, batch->n_all, &first, &n);
    if (n != batch->n || n < 1)
        return ki_fail(err, KITH_EINTERNAL, "%lld of %lld images on this rank; wanted %lld and at least 1",
                       (long long)batch->n, (long long)batch->n_all, (long long)n);
    kith_status status = course_for(d, d->comm ? batch->n_all : n, &is_new, err);
    /* All ranks have made one, or none. A rank without must not leave the others waiting. */
    if (d->comm && is_new) status = ki_comm_agree(d->comm->comm, status, err);
    if (status != KITH_OK) return status;
    const ki_feed_batch feed = {.n = batch->n,
                                .data = batch->data,
                                .window = batch->window,
                                .label = batch->label,
                                .number = {[FORWARD] = step * (uint64_t)s->n_micro + (uint64_t)micro,
                                           [FIRST] = (uint64_t)first,
                                           [STEP] = step}};
    d->is_last = micro + 1 == s->n_micro;
    KI_TRY(ki_feed_bring(d->feed, &feed, &d->now->input_edge, d->now->input, err));
    KI_TRY(run(d, &d->now->recording[d->is_last], queue_batch, err));
    /* The device now works on this batch, so there is time to look at the one before. */
    KI_TRY(collect(d, err));
    if (micro == 0) {
        d->last = d->sum;
        d->sum = (struct values){.is_finite = true, .step = step};
    }
    KI_TRY(d->engine_type->fetch(d->now->engine, err));
    d->due = d->now;
    d->sum.n_micro = micro + 1;
    return ki_feed_wait(d->feed, err);
}

static kith_status device_update(ki_learner *learner, int n_micro, double lr, kith_error *err) {
    device *d = (device *)learner;
    ki_backend *backend = learner->settings.backend;
    (void)n_micro;
    KI_TRY(ki_optim_tick(d->optim, lr, err));
    KI_TRY(run(d, &d->update, queue_update, err));
    KI_TRY(d->queues->copy(backend, KI_QUEUE_MAIN, d->sums, ki_optim_sums(d->optim),
                           (size_t)ki_optim_n_runs(d->optim) * sizeof *d->sums, err));
    KI_TRY(d->queues->mark_set(backend, d->summed, KI_QUEUE_MAIN, err));
    ki_params_touch(learner->settings.params);
    return KITH_OK;
}

static kith_status device_read(ki_learner *learner, ki_learner_values *ret, kith_error *err) {
    device *d = (device *)learner;
    /* Between add and update, the step updated last is the one before the step that is being added. */
    if (learner->n_added == 0) KI_TRY(collect(d, err));
    const struct values *of = learner->n_added == 0 ? &d->sum : &d->last;
    const double share = 1.0 / (of->n_micro ? of->n_micro : 1);
    ki_learner_values v = {.total = of->total * share,
                           .n_terms = d->n_terms,
                           .term = d->term,
                           .n_pos = of->n_pos,
                           .n_neg = of->n_neg};
    for (size_t i = 0; i < d->n_terms; i++) d->term[i].value = of->value[i] * share;
    KI_TRY(d->queues->mark_wait(learner->settings.backend, d->summed, err));
    double norm[KI_OPTIM_N_GROUPS];
    ki_optim_norms_of(d->optim, d->sums, norm);
    ki_learner_norms(norm, v.grad_norm);
    for (int g = 0; g < KI_N_GROUPS; g++) {
        if (isfinite(v.grad_norm[g]) || d->is_bad) continue;
        d->is_bad = true;
        d->bad_step = of->step;
    }
    v.is_finite = !d->is_bad;
    v.bad_step = d->bad_step;
    d->is_bad = false;
    *ret = v;
    return KITH_OK;
}

static kith_status device_embedding(ki_learner *learner, ki_real *ret, kith_error *err) {
    return ki_plan_read(((device *)learner)->now->plan, ki_tap_name(KI_TAP_EMBEDDING), ret, err);
}

/* ---- checkpoints ---- */

static kith_status device_save(ki_learner *learner, kith_tensors_writer *writer, kith_error *err) {
    device *d = (device *)learner;
    const ki_learner_settings *s = &learner->settings;
    KI_TRY(s->backend->type->memory.sync(s->backend, err));
    KI_TRY(d->engine_type->pull(d->course[0].engine, err));
    return ki_learner_state_save(learner, d->optim, &d->copies, writer, err);
}

static kith_status device_load(ki_learner *learner, const kith_tensors *tensors, kith_error *err) {
    device *d = (device *)learner;
    const ki_learner_settings *s = &learner->settings;
    KI_TRY(ki_learner_state_load(learner, d->optim, tensors, err));
    KI_TRY(d->engine_type->push(d->course[0].engine, err));
    return s->backend->type->memory.sync(s->backend, err);
}

static const ki_plan *device_plan(const ki_learner *learner) {
    return ((const device *)learner)->course[0].plan;
}

static kith_status device_pull(ki_learner *learner, kith_error *err) {
    const device *d = (const device *)learner;
    return d->engine_type->pull(d->course[0].engine, err);
}

static kith_status device_push(ki_learner *learner, kith_error *err) {
    const device *d = (const device *)learner;
    return d->engine_type->push(d->course[0].engine, err);
}

static ki_engine *device_engine(const ki_learner *learner) {
    return ((const device *)learner)->course[0].engine;
}

const ki_learner_type ki_learner_device = {.name = "device",
                                           .make = device_make,
                                           .free = device_free,
                                           .drop_recordings = device_drop_recordings,
                                           .add = device_add,
                                           .update = device_update,
                                           .read = device_read,
                                           .embedding = device_embedding,
                                           .save = device_save,
                                           .load = device_load,
                                           .plan = device_plan,
                                           .pull = device_pull,
                                           .push = device_push,
                                           .engine = device_engine};
