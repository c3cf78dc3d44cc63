/* Making a learner: its feed, its courses (a plan, an engine and a recording for each batch size), its optimizer. */
#include <string.h>

#include "base/alloc.h"
#include "net/depth.h"
#include "objective/check.h"
#include "train/learner_inside.h"
#include "train/taps.h"

/* Gradients that are summed at a time: 4 MiB. Fewer take no less time between GPUs; more begin later. */
enum { BUCKET = 1 << 20 };

static void course_drop_recordings(const ki_learner *l, ki_course *c) {
    for (int i = 0; i < 2; i++) {
        ki_recording_release(&c->recording[i], l->settings.backend);
        for (int r = 0; r < KI_PASS_N; r++)
            ki_recording_release(&c->pass[i].recording[r], l->settings.backend);
    }
}

/* CUDA frees a recording that still runs when it has ended. */
void ki_learner_drop_recordings(ki_learner *l) {
    if (!l) return;
    ki_recording_release(&l->update, l->settings.backend);
    for (int i = 0; i < KI_MOST_SIZED; i++) course_drop_recordings(l, &l->course[i]);
}

/* The device must have finished all queued work. */
static void course_release(const ki_learner *l, ki_course *c) {
    course_drop_recordings(l, c);
    if (l->engine_type) l->engine_type->close(c->engine);
    for (int i = 1; i >= 0; i--) { /* the smaller one may use the larger one's memory */
        for (int t = 0; t < KI_MOST_TEACHERS; t++) ki_plan_free(c->pass[i].taught[t]);
        ki_plan_free(c->pass[i].plan);
    }
    *c = (ki_course){0};
}

void ki_learner_free(ki_learner *l) {
    if (!l) return;
    ki_backend *backend = l->settings.backend;
    kith_error ignored;
    (void)backend->type->memory.sync(backend, &ignored);
    ki_recording_release(&l->update, backend);
    ki_optim_free(l->optim);
    ki_average_free(l->average);
    ki_free(l->averaged);
    for (int i = KI_MOST_SIZED - 1; i >= 0; i--)
        course_release(l, &l->course[i]); /* the first outlives the others */
    ki_chunks_release(l);
    backend->type->memory.free(backend, l->stopped);
    backend->type->memory.free(backend, l->by_weight);
    ki_feed_free(l->feed);
    ki_sided_free(l->sided);
    l->queues->mark_free(backend, l->summed);
    l->queues->host_free(backend, l->sums);
    ki_learner_copies_release(&l->copies);
    ki_free(l);
}

/* ---- courses ---- */

/* Backward has finished gradients from number `from` on. */
static kith_status sum_ready(void *user, int64_t from, kith_error *err) {
    ki_learner *l = user;
    if (!l->is_last) return KITH_OK;
    const int64_t end = l->unsummed;
    l->unsummed = from;
    return ki_device_comm_sum(l->comm, ki_params_diffs(l->settings.params) + from, end - from, err);
}

/* A gradient that stops at the embedding needs the layer's input. The embedding is always read: it is what users look at. */
static kith_status make_plan(ki_learner *l, ki_pass *p, const ki_net *net, kith_error *err) {
    const ki_learner_settings *s = &l->settings;
    const unsigned grads = ki_objective_taps(s->objective) & ~KI_TAP_BIT(KI_TAP_WEIGHT);
    const unsigned taps = grads | KI_TAP_BIT(KI_TAP_EMBEDDING) | KI_TAP_BIT(KI_TAP_POOLED);
    const uint64_t *numbers = ki_feed_numbers(l->feed);
    ki_plan_options options = {.mb = p->n,
                               .mode = KI_TRAIN,
                               .frozen_bn = s->frozen_bn,
                               .seed = s->seed,
                               .step = &numbers[KI_LEARNER_FORWARD],
                               .first = &numbers[KI_LEARNER_FIRST],
                               .device_comm = l->comm,
                               .ready = l->comm && !s->backend->type->is_host ? sum_ready : NULL,
                               .ready_user = l,
                               .ready_every = s->bucket > 0 ? s->bucket : BUCKET,
                               .beside = l->course[0].pass[0].plan};
    ki_taps_list(taps, options.taps);
    ki_taps_list(grads, options.grad_taps);
    KI_TRY(ki_plan_new(net->graph, s->params, s->backend, &options, &p->plan, err));
    KI_TRY(ki_plan_input_memory(p->plan, &p->input_edge, &p->input, err));
    return ki_plan_tap_memory(p->plan, ki_tap_name(KI_TAP_POOLED), &p->pooled_edge, &p->pooled, err);
}

/* Plans of the teachers, and what these say as taps of the engine. */
static kith_status make_taught(ki_learner *l, ki_pass *p, int64_t side, kith_error *err) {
    const ki_learner_settings *s = &l->settings;
    for (int t = 0; t < s->n_teachers; t++) {
        const ki_teacher *teacher = ki_sided_teacher(l->sided, t, side);
        const ki_tap tap = ki_tap_of_teacher(t);
        void *at = l->weight->value; /* of a batch without an image here nobody reads it */
        if (p->n > 0) {
            KI_TRY(ki_teacher_plan(teacher, s->backend, p->n, &p->taught[t], &p->at.tap_edge[tap], &at, err));
            KI_TRY(ki_plan_input_memory(p->taught[t], &p->view[t].edge, &p->view[t].input, err));
        } else {
            p->at.tap_edge[tap] =
                (ki_edge){.shape = KI_SHAPE2(0, ki_teacher_width(teacher)), .layout = KI_PLAIN};
        }
        p->at.tap[tap] = at;
    }
    return KITH_OK;
}

static kith_status make_pass(ki_learner *l, ki_pass *p, int64_t n, int64_t side, kith_error *err) {
    const ki_learner_settings *s = &l->settings;
    const ki_net *net = ki_sided_net(l->sided, side);
    p->n = n;
    for (int i = 0; i < KI_PASS_N; i++) p->recording[i].is_off = l->is_queued;
    if (n > 0) {
        KI_TRY(make_plan(l, p, net, err));
        KI_TRY(ki_taps_engine(p->plan, s->objective, l->weight, true, &p->at, err));
    } else {
        KI_TRY(ki_taps_empty(net->graph, s->objective, l->weight, &p->at, err));
    }
    return make_taught(l, p, side, err);
}

/* m: images of the whole batch. */
static kith_status make_course(ki_learner *l, ki_course *c, int64_t m, int64_t side, kith_error *err) {
    const ki_learner_settings *s = &l->settings;
    int64_t first = 0, mb = m;
    if (l->comm) ki_comm_own(l->comm->comm, m, &first, &mb);
    const int64_t most = ki_learner_pass_most(s), n = mb < most ? mb : most;
    c->recording[0].is_off = c->recording[1].is_off = l->is_queued;
    KI_TRY(make_pass(l, &c->pass[0], n, side, err));
    if (n > 0 && mb % n > 0) KI_TRY(make_pass(l, &c->pass[1], mb % n, side, err));
    ki_engine_batch batch = c->pass[0].at;
    batch.label = ki_feed_labels(l->feed);
    batch.n_unlabelled = s->n_unlabelled;
    batch.step = &ki_feed_numbers(l->feed)[KI_LEARNER_STEP];
    batch.diff_stopped = l->stopped;
    batch.comm = l->comm;
    if (l->by_weight) batch.diff[KI_TAP_WEIGHT] = l->by_weight;
    if (s->chunk) KI_TRY(ki_chunks_place(l, c, mb, &batch, err));
    ki_engine *beside = l->course[0].engine;
    return beside ? l->engine_type->open_beside(beside, &batch, m, &c->engine, err)
                  : l->engine_type->open(s->backend, s->objective, &batch, m, &c->engine, err);
}

kith_status ki_learner_course(ki_learner *l, int64_t m, int64_t side, bool *ret_is_new, kith_error *err) {
    ki_backend *backend = l->settings.backend;
    bool is_new = false;
    const int at = ki_sized_place(&l->sized, m, side, &is_new);
    ki_course *c = &l->course[at];
    *ret_is_new = is_new;
    if (is_new) {
        kith_status status = KITH_OK;
        if (l->due == c) status = ki_learner_collect(l, err);
        if (status == KITH_OK) status = backend->type->memory.sync(backend, err);
        if (status == KITH_OK) {
            course_release(l, c);
            status = make_course(l, c, m, side, err);
        }
        if (status != KITH_OK) {
            (void)backend->type->memory.sync(backend, NULL);
            course_release(l, c);
            ki_sized_forget(&l->sized, at);
            return status;
        }
    }
    l->now = c;
    return KITH_OK;
}

/* ---- the optimizer ---- */

/* The multiplier of each parameter of the network, by its layer's depth. */
static kith_status rates_of(const ki_learner_settings *s, double decay, ki_optim_param *param, int n,
                            kith_error *err) {
    const ki_graph *graph = s->net->graph;
    ki_depths depths = {0};
    if (decay == 1) return KITH_OK;
    KI_TRY(ki_depths_find(s->net, &depths, err));
    for (int i = 0; i < ki_graph_count(graph); i++) {
        const ki_node *node = ki_graph_node(graph, i);
        for (int p = 0; p < node->n_params; p++) {
            for (int k = 0; k < n; k++) {
                if (strcmp(param[k].name, node->param[p].name) == 0)
                    param[k].lr = ki_depths_rate(&depths, i, decay);
            }
        }
    }
    ki_depths_release(&depths);
    return KITH_OK;
}

static kith_status make_optimizer(ki_learner *l, const ki_optim_settings *settings, kith_error *err) {
    const ki_learner_settings *s = &l->settings;
    ki_engine_param p;
    ki_optim_param *param = NULL;
    kith_status status;
    int n = 0;
    size_t n_most = (size_t)ki_params_count(s->params);
    ki_engine *engine = l->course[0].engine;
    for (size_t i = 0; l->engine_type->param_at(engine, i, &p); i++) n_most++;
    KI_TRY(ki_zalloc_or(&param, n_most, sizeof *param, "the optimizer's parameters", err));
    for (int i = 0; i < ki_params_count(s->params); i++) {
        const ki_param *of_net = ki_params_at(s->params, i);
        if (!of_net->trained) continue;
        param[n++] = (ki_optim_param){
            .name = of_net->name, .n = of_net->n, .value = of_net->value, .diff = of_net->diff};
    }
    KI_CHECK(rates_of(s, settings->layer_decay, param, n, err));
    for (size_t i = 0; l->engine_type->param_at(engine, i, &p); i++) {
        if (!p.diff) continue;
        param[n++] = (ki_optim_param){.name = p.name,
                                      .n = p.n,
                                      .value = p.value,
                                      .diff = p.diff,
                                      .is_objective = true,
                                      .is_part = p.is_part,
                                      .lr = p.lr_multiplier};
    }
    KI_CHECK(ki_optim_new(s->backend, param, n, settings, &l->optim, err));
    const size_t bytes = ((size_t)ki_optim_n_runs(l->optim) + 1) * sizeof *l->sums;
    void *host = NULL;
    KI_CHECK(l->queues->host_alloc(s->backend, bytes, &host, err));
    l->sums = host;
    memset(host, 0, bytes);
    KI_CHECK(l->queues->mark_new(s->backend, &l->summed, err));
done:
    ki_free(param);
    return status;
}

/* Everything of the network that changes: what is trained, and running statistics. */
static kith_status make_average(ki_learner *l, double decay, kith_error *err) {
    const ki_learner_settings *s = &l->settings;
    kith_status status;
    ki_average_part *part = NULL;
    const int n = ki_params_count(s->params);
    if (!(decay > 0)) return KITH_OK;
    KI_CHECK(ki_zalloc_or(&part, (size_t)n, sizeof *part, "averages", err));
    KI_CHECK(ki_zalloc_or(&l->averaged, (size_t)n, sizeof *l->averaged, "averages", err));
    for (int i = 0; i < n; i++) {
        const ki_param *param = ki_params_at(s->params, i);
        if (param->frozen) continue;
        part[l->n_averaged] = (ki_average_part){param->value, param->n};
        l->averaged[l->n_averaged++] = i;
    }
    KI_CHECK(ki_average_new(s->backend, part, l->n_averaged, decay, &l->average, err));
done:
    ki_free(part);
    return status;
}

/* ---- the whole ---- */

static kith_status check(const ki_learner_settings *s, kith_error *err) {
    if (s->batch < 1 || s->n_micro < 1)
        return ki_fail(err, KITH_EINVAL, "batches of %lld images, %d to a step; wanted at least 1 of each",
                       (long long)s->batch, s->n_micro);
    if (s->optim->accumulate != s->n_micro)
        return ki_fail(err, KITH_EINTERNAL, "the optimizer averages %lld micro-batches, the learner %d",
                       (long long)s->optim->accumulate, s->n_micro);
    if (!ki_comm_is_alone(s->comm) && !s->device_comm)
        return ki_fail(err, KITH_EINTERNAL, "%d ranks on device %s without a comm for the device",
                       s->comm->size, s->backend->type->name);
    if (s->net->embedding < 1)
        return ki_fail(err, KITH_EINVAL, "the network has no embedding layer; training needs one");
    if (!ki_engine_of(s->backend))
        return ki_fail(err, KITH_EUNSUPPORTED, "backend %s cannot evaluate objectives",
                       s->backend->type->name);
    if (s->chunk < 0)
        return ki_fail(err, KITH_EINVAL, "chunks of %lld images; wanted 1 or more", (long long)s->chunk);
    if (s->chunk && !s->frozen_bn && ki_graph_reads_batch(s->net->graph)) {
        ki_fail(err, KITH_EINVAL,
                "batches in chunks (batch.cached), and the batch norms of %s use the statistics of a batch",
                s->net->backbone->name);
        return ki_hint(err, KITH_EINVAL, "set model.bn: frozen, or take a network without batch norms");
    }
    const int64_t m = ki_comm_is_alone(s->comm) ? s->batch : s->whole;
    KI_TRY(ki_batch_check_labelled(s->objective, m, m - s->n_unlabelled, err));
    if (ki_objective_term_count(s->objective) > KI_LEARNER_MOST_TERMS)
        return ki_fail(err, KITH_EINVAL, "the objective has %zu terms; at most %d are possible",
                       ki_objective_term_count(s->objective), KI_LEARNER_MOST_TERMS);
    return KITH_OK;
}

/* Over ranks the first has it. */
static kith_status make_by_weight(ki_learner *l, kith_error *err) {
    const ki_learner_settings *s = &l->settings;
    const size_t bytes = (size_t)l->weight->n * sizeof(ki_real);
    void *memory = NULL;
    if (!s->backend->type->is_host || !ki_comm_is_first(s->comm)) return KITH_OK;
    if (!(ki_objective_taps(s->objective) & KI_TAP_BIT(KI_TAP_WEIGHT))) return KITH_OK;
    KI_TRY(s->backend->type->memory.alloc(s->backend, bytes, &memory, err));
    l->by_weight = memory;
    return s->backend->type->memory.zero(s->backend, memory, bytes, err);
}

/* For the largest images. */
static kith_status make_feed(ki_learner *l, const ki_learner_settings *s, kith_error *err) {
    const int64_t side = ki_sided_largest(l->sided);
    kith_transform largest = {0};
    if (s->transform) largest = *s->transform;
    if (s->sides.n) largest.crop_to = (int)side;
    KI_TRY(ki_feed_new(s->backend, ki_sided_net(l->sided, side), ki_learner_pass_most(s), s->format,
                       s->transform ? &largest : NULL, &l->feed, err));
    for (int t = 0; t < s->n_teachers; t++)
        KI_TRY(ki_feed_add_view(l->feed, &ki_sided_teacher(l->sided, t, side)->net, err));
    return KITH_OK;
}

static kith_status make(ki_learner *l, const ki_learner_settings *s, kith_error *err) {
    bool is_new = false;
    KI_TRY(ki_taps_weight(s->params, &l->weight, err));
    l->bias = ki_params_find(s->params, "embedding.bias");
    KI_TRY(ki_sided_new(s->net, s->teacher, s->n_teachers, &s->sides, &l->sided, err));
    KI_TRY(make_feed(l, s, err));
    KI_TRY(ki_taps_stopped(s->backend, s->objective, ki_learner_pass_most(s), s->net->embedding, &l->stopped,
                           err));
    KI_TRY(make_by_weight(l, err));
    /* Here and not by a plan: a rank without an image of a full batch has none, and is updated all the same. */
    KI_TRY(ki_params_zero_diffs(s->params, err));
    KI_TRY(ki_learner_course(l, l->comm ? s->whole : s->batch, ki_sided_largest(l->sided), &is_new, err));
    KI_TRY(make_optimizer(l, s->optim, err));
    KI_TRY(make_average(l, s->optim->ema, err));
    KI_TRY(l->engine_type->clear_diffs(l->course[0].engine, err));
    return s->backend->type->memory.sync(s->backend, err);
}

kith_status ki_learner_new(const ki_learner_settings *settings, ki_learner **ret_learner, kith_error *err) {
    ki_learner *l = NULL;
    KI_TRY(check(settings, err));
    KI_TRY(ki_zalloc_or(&l, 1, sizeof *l, "a learner", err));
    l->settings = *settings;
    l->settings.optim = NULL;
    l->sized.n_more = settings->sides.n;
    l->queues = settings->backend->type->queues;
    l->engine_type = ki_engine_of(settings->backend);
    l->comm = settings->device_comm;
    l->is_queued = settings->one_by_one || (l->comm && !l->comm->type->can_be_captured);
    l->update.is_off = settings->one_by_one;
    l->has_parts = ki_learner_has_parts(l);
    const kith_status status = make(l, settings, err);
    if (status == KITH_OK)
        *ret_learner = l;
    else
        ki_learner_free(l);
    return status;
}
