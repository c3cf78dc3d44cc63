#include "train/describer.h"

#include <string.h>

#include "core/alloc.h"
#include "nn/plan.h"
#include "objective/engine.h"

static const ki_tap net_taps[] = {KI_TAP_MAP, KI_TAP_POOLED, KI_TAP_EMBEDDING};
enum { N_NET_TAPS = sizeof net_taps / sizeof net_taps[0] };

struct ki_describer {
    ki_describer_settings settings;
    int64_t dim;
    ki_plan *plan;
    const ki_param *weight; /* of the embedding layer */
    unsigned taps;

    /* Without an engine: the taps come to the host. */
    float *input; /* one batch, for one that is not full */
    ki_real *values[N_NET_TAPS];
    ki_shape shape[N_NET_TAPS];

    const ki_engine_type *engine_type; /* NULL: the host computes */
    ki_engine *engine;
    ki_feed *feed;
    ki_edge input_edge;
    void *input_at;
    ki_real *stopped; /* device memory that the engine asks for; nothing is written there */
    float *rows;      /* [batch, dim] */
};

static bool has_tap(const ki_describer *d, ki_tap tap) { return (d->taps & KI_TAP_BIT(tap)) != 0; }

static kith_status make_plan(ki_describer *d, kith_error *err) {
    const ki_describer_settings *s = &d->settings;
    ki_plan_options options = {.mb = s->batch, .mode = KI_INFER};
    int n = 0;
    for (int i = 0; i < N_NET_TAPS; i++) {
        if (has_tap(d, net_taps[i])) options.taps[n++] = ki_tap_name(net_taps[i]);
    }
    d->weight = ki_params_find(s->params, "embedding.weight");
    if (!d->weight) return ki_fail(err, KITH_EINTERNAL, "the network has no embedding.weight");
    return ki_plan_new(s->net->graph, s->params, s->backend, &options, &d->plan, err);
}

static kith_status make_host(ki_describer *d, kith_error *err) {
    const ki_describer_settings *s = &d->settings;
    const size_t image = (size_t)(s->net->c * s->net->h * s->net->w);
    if (s->format != KI_BATCH_FLOAT)
        return ki_fail(err, KITH_EUNSUPPORTED, "batches of bytes are for devices; this backend is %s",
                       s->backend->type->name);
    KI_TRY(ki_zalloc_or(&d->input, (size_t)s->batch, image * sizeof(float), "a batch", err));
    for (int i = 0; i < N_NET_TAPS; i++) {
        if (!has_tap(d, net_taps[i])) continue;
        const char *name = ki_tap_name(net_taps[i]);
        KI_TRY(ki_plan_tap_shape(d->plan, name, &d->shape[i], err));
        KI_TRY(ki_alloc_or(&d->values[i], (size_t)ki_shape_count(&d->shape[i]), sizeof *d->values[i], name,
                           err));
    }
    return KITH_OK;
}

/* An engine on the plan's own taps. It wants places for gradients too; as nothing is evaluated, nothing is written
 * there, and the taps' own will do. */
static kith_status make_device(ki_describer *d, kith_error *err) {
    const ki_describer_settings *s = &d->settings;
    const ki_feed_settings feed = {.backend = s->backend,
                                   .net = s->net,
                                   .format = s->format,
                                   .transform = s->transform,
                                   .batch = s->batch};
    KI_TRY(ki_feed_new(&feed, &d->feed, err));
    KI_TRY(ki_plan_input_memory(d->plan, &d->input_edge, &d->input_at, err));
    ki_engine_batch batch = {.label = ki_feed_labels(d->feed), .step = ki_feed_numbers(d->feed)};
    for (int i = 0; i < N_NET_TAPS; i++) {
        const ki_tap tap = net_taps[i];
        void *at = NULL;
        if (!has_tap(d, tap)) continue;
        KI_TRY(ki_plan_tap_memory(d->plan, ki_tap_name(tap), &batch.tap_edge[tap], &at, err));
        batch.tap[tap] = batch.diff[tap] = at;
    }
    if (ki_objective_taps(s->objective) & KI_TAP_BIT(KI_TAP_WEIGHT)) {
        batch.tap[KI_TAP_WEIGHT] = batch.diff[KI_TAP_WEIGHT] = d->weight->value;
        batch.tap_edge[KI_TAP_WEIGHT] = (ki_edge){
            .shape = d->weight->shape, .layout = KI_PLAIN, .bytes = (size_t)d->weight->n * sizeof(ki_real)};
    }
    if (ki_engine_stops(s->objective)) {
        void *memory = NULL;
        KI_TRY(s->backend->type->alloc(s->backend, (size_t)(s->batch * s->net->embedding) * sizeof(ki_real),
                                       &memory, err));
        d->stopped = batch.diff_stopped = memory;
    }
    KI_TRY(ki_alloc_or(&d->rows, (size_t)s->batch, (size_t)d->dim * sizeof *d->rows, "descriptors", err));
    return d->engine_type->open(s->backend, s->objective, &batch, s->batch, &d->engine, err);
}

kith_status ki_describer_new(const ki_describer_settings *settings, ki_describer **ret_describer,
                             kith_error *err) {
    kith_status status;
    ki_describer *d = NULL;
    KI_CHECK(ki_zalloc_or(&d, 1, sizeof *d, "a describer", err));
    d->settings = *settings;
    d->dim = ki_objective_describe_dim(settings->objective);
    d->taps = ki_objective_taps(settings->objective);
    if (d->dim == 0) {
        status = ki_fail(err, KITH_EINVAL, "no term of the objective has descriptors of its own (horde has)");
        goto done;
    }
    KI_CHECK(make_plan(d, err));
    if (settings->backend->type->queues) d->engine_type = ki_engine_of(settings->backend);
    if (d->engine_type)
        KI_CHECK(make_device(d, err));
    else
        KI_CHECK(make_host(d, err));
    d->settings.transform = NULL;
    *ret_describer = d;
    d = NULL;
done:
    ki_describer_free(d);
    return status;
}

void ki_describer_free(ki_describer *d) {
    if (!d) return;
    ki_backend *backend = d->settings.backend;
    if (d->engine_type) {
        (void)backend->type->sync(backend, NULL);
        d->engine_type->close(d->engine);
        backend->type->free(backend, d->stopped);
        ki_feed_free(d->feed);
    }
    ki_plan_free(d->plan);
    for (int i = 0; i < N_NET_TAPS; i++) ki_free(d->values[i]);
    ki_free(d->input);
    ki_free(d->rows);
    ki_free(d);
}

static kith_status run_on_device(ki_describer *d, const ki_embedder_batch *batch, float *rows,
                                 kith_error *err) {
    const ki_feed_batch feed = {.n = batch->n, .data = batch->data, .window = batch->window};
    KI_TRY(ki_feed_bring(d->feed, &feed, &d->input_edge, d->input_at, err));
    KI_TRY(ki_plan_forward(d->plan, err));
    /* What the rest of a batch that is not full holds is lost. */
    KI_TRY(d->engine_type->describe(d->engine, d->rows, err));
    memcpy(rows, d->rows, (size_t)(batch->n * d->dim) * sizeof *rows);
    return ki_feed_wait(d->feed, err);
}

static kith_status run_on_host(ki_describer *d, const ki_embedder_batch *batch, float *rows,
                               kith_error *err) {
    const ki_net *net = d->settings.net;
    const size_t image = (size_t)(net->c * net->h * net->w);
    const float *input = batch->data;
    ki_batch taps = {.m = batch->n};
    ki_real *found = NULL;
    int64_t dim = 0;
    if (batch->n < d->settings.batch) {
        memcpy(d->input, input, (size_t)batch->n * image * sizeof(float));
        input = d->input;
    }
    KI_TRY(ki_plan_set_input(d->plan, input, err));
    KI_TRY(ki_plan_forward(d->plan, err));
    for (int i = 0; i < N_NET_TAPS; i++) {
        const ki_shape *shape = &d->shape[i];
        if (!d->values[i]) continue;
        KI_TRY(ki_plan_read(d->plan, ki_tap_name(net_taps[i]), d->values[i], err));
        ki_tap_data *tap = &taps.tap[net_taps[i]];
        *tap = (ki_tap_data){.data = d->values[i], .rows = batch->n, .cols = shape->dim[1]};
        if (net_taps[i] != KI_TAP_MAP) continue;
        tap->c = shape->dim[1];
        tap->hw = shape->dim[2] * shape->dim[3];
        tap->cols = tap->c * tap->hw;
    }
    taps.tap[KI_TAP_WEIGHT] = (ki_tap_data){
        .data = d->weight->value, .rows = d->weight->shape.dim[0], .cols = d->weight->shape.dim[1]};
    KI_TRY(ki_objective_describe(d->settings.objective, &taps, &found, &dim, err));
    memcpy(rows, found, (size_t)(batch->n * d->dim) * sizeof *rows);
    ki_free(found);
    return KITH_OK;
}

kith_status ki_describer_run(ki_describer *d, const ki_embedder_batch *batch, float *ret_rows,
                             kith_error *err) {
    if (batch->n < 1 || batch->n > d->settings.batch)
        return ki_fail(err, KITH_EINVAL, "a batch of %lld images; wanted 1 to %lld", (long long)batch->n,
                       (long long)d->settings.batch);
    return d->engine_type ? run_on_device(d, batch, ret_rows, err) : run_on_host(d, batch, ret_rows, err);
}
