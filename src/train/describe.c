/* A term of the objective as a describer of the embedder. */
#include "train/describe.h"

#include "base/alloc.h"
#include "train/learner_inside.h"
#include "train/taps.h"

struct ki_description {
    ki_describer describer;
    ki_backend *backend;
    const ki_net *net;
    ki_objective *objective;
    const ki_param *weight; /* of the embedding layer */

    ki_engine *first; /* of the learner, with what it has learnt */
    const ki_engine_type *engine_type;
    ki_engine *engine;
    ki_real *stopped; /* backend memory that the engine asks for; nothing is written there */
    ki_real *there;   /* backend memory [batch, dim]: the rows */
    /* The engine asks for what teachers say, and no descriptor reads it: zeros. */
    int64_t width[KI_MOST_TEACHERS];
    void *said[KI_MOST_TEACHERS];
};

static kith_status place_teachers(ki_description *d, int64_t batch, ki_engine_batch *at, kith_error *err) {
    for (int t = 0; t < KI_MOST_TEACHERS; t++) {
        const size_t bytes = (size_t)(batch * d->width[t]) * sizeof(ki_real);
        const ki_tap tap = ki_tap_of_teacher(t);
        if (!(ki_objective_taps(d->objective) & KI_TAP_BIT(tap))) continue;
        KI_TRY(d->backend->type->memory.alloc(d->backend, bytes, &d->said[t], err));
        KI_TRY(d->backend->type->memory.zero(d->backend, d->said[t], bytes, err));
        at->tap[tap] = d->said[t];
        at->tap_edge[tap] =
            (ki_edge){.shape = KI_SHAPE2(batch, d->width[t]), .layout = KI_PLAIN, .bytes = bytes};
    }
    return KITH_OK;
}

static kith_status open(void *user, ki_plan *plan, const ki_feed *feed, int64_t batch, float **ret_there,
                        kith_error *err) {
    ki_description *d = user;
    void *there = NULL;
    ki_engine_batch at = {.label = ki_feed_labels(feed), .step = ki_feed_numbers(feed)};
    KI_TRY(ki_taps_engine(plan, d->objective, d->weight, false, &at, err));
    KI_TRY(ki_taps_stopped(d->backend, d->objective, batch, d->net->embedding, &d->stopped, err));
    at.diff_stopped = d->stopped;
    KI_TRY(place_teachers(d, batch, &at, err));
    KI_TRY(d->backend->type->memory.alloc(d->backend, (size_t)(batch * d->describer.dim) * sizeof *d->there,
                                          &there, err));
    d->there = there;
    KI_TRY(d->engine_type->open_beside(d->first, &at, batch, &d->engine, err));
    *ret_there = d->there;
    return KITH_OK;
}

static void close(void *user) {
    ki_description *d = user;
    d->engine_type->close(d->engine);
    d->backend->type->memory.free(d->backend, d->stopped);
    d->backend->type->memory.free(d->backend, d->there);
    for (int t = 0; t < KI_MOST_TEACHERS; t++) {
        d->backend->type->memory.free(d->backend, d->said[t]);
        d->said[t] = NULL;
    }
    d->engine = NULL;
    d->stopped = NULL;
    d->there = NULL;
}

/* If a batch is not full, the results of its other places are dropped. */
static kith_status queue(void *user, kith_error *err) {
    ki_description *d = user;
    return d->engine_type->describe(d->engine, d->there, err);
}

kith_status ki_description_new(ki_learner *learner, ki_description **ret, kith_error *err) {
    const ki_learner_settings *s = &learner->settings;
    ki_description *d = NULL;
    const ki_param *weight = NULL;
    const int64_t dim = ki_objective_describe_dim(s->objective);
    if (dim == 0) return ki_objective_fail_describe(err);
    KI_TRY(ki_taps_weight(s->params, &weight, err));
    KI_TRY(ki_zalloc_or(&d, 1, sizeof *d, "a description", err));
    *d = (ki_description){.describer = {.dim = dim, .user = d, .open = open, .queue = queue, .close = close},
                          .backend = s->backend,
                          .net = s->net,
                          .objective = s->objective,
                          .weight = weight,
                          .first = ki_learner_engine(learner),
                          .engine_type = learner->engine_type};
    for (int t = 0; t < s->n_teachers; t++) d->width[t] = ki_teacher_width(&s->teacher[t]);
    ki_taps_list(ki_objective_taps(s->objective), d->describer.taps);
    *ret = d;
    return KITH_OK;
}

void ki_description_free(ki_description *d) { ki_free(d); }

const ki_describer *ki_description_describer(const ki_description *d) { return &d->describer; }
