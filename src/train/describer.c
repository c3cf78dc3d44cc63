#include "train/describer.h"

#include <string.h>

#include "core/alloc.h"
#include "nn/plan.h"
#include "train/taps.h"

struct ki_describer {
    ki_describer_settings settings;
    int64_t dim;
    ki_plan *plan;
    const ki_param *weight; /* of the embedding layer */
    unsigned taps;

    /* Without an engine. */
    float *input; /* one batch, for one that is not full */
    ki_host_taps host;

    const ki_engine_type *engine_type; /* NULL: the host computes */
    ki_engine *engine;
    ki_feed *feed;
    ki_edge input_edge;
    void *input_at;
    ki_real *stopped; /* device memory that the engine asks for; nothing is written there */
    float *rows;      /* [batch, dim] */
};

static kith_status make_plan(ki_describer *d, kith_error *err) {
    const ki_describer_settings *s = &d->settings;
    ki_plan_options options = {.mb = s->batch, .mode = KI_INFER};
    ki_taps_list(d->taps, options.taps);
    KI_TRY(ki_taps_weight(s->params, &d->weight, err));
    return ki_plan_new(s->net->graph, s->params, s->backend, &options, &d->plan, err);
}

static kith_status make_host(ki_describer *d, kith_error *err) {
    const ki_describer_settings *s = &d->settings;
    const size_t image = (size_t)(s->net->c * s->net->h * s->net->w);
    KI_TRY(ki_feed_check_host(s->backend, s->format, err));
    KI_TRY(ki_zalloc_or(&d->input, (size_t)s->batch, image * sizeof(float), "a batch", err));
    return ki_host_taps_init(&d->host, d->plan, d->taps, err);
}

static kith_status make_device(ki_describer *d, kith_error *err) {
    const ki_describer_settings *s = &d->settings;
    KI_TRY(ki_feed_new(s->backend, s->net, s->batch, s->format, s->transform, &d->feed, err));
    KI_TRY(ki_plan_input_memory(d->plan, &d->input_edge, &d->input_at, err));
    ki_engine_batch batch = {.label = ki_feed_labels(d->feed), .step = ki_feed_numbers(d->feed)};
    KI_TRY(ki_taps_engine(d->plan, s->objective, d->weight, false, &batch, err));
    KI_TRY(ki_taps_stopped(s->backend, s->objective, s->batch, s->net->embedding, &d->stopped, err));
    batch.diff_stopped = d->stopped;
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
        status = ki_objective_fail_describe(err);
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
    ki_host_taps_release(&d->host);
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
    KI_TRY(ki_host_taps_read(&d->host, d->plan, err));
    ki_host_taps_show(&d->host, d->weight, &taps);
    KI_TRY(ki_objective_describe(d->settings.objective, &taps, &found, &dim, err));
    memcpy(rows, found, (size_t)(batch->n * d->dim) * sizeof *rows);
    ki_free(found);
    return KITH_OK;
}

kith_status ki_describer_run(ki_describer *d, const ki_embedder_batch *batch, float *ret_rows,
                             kith_error *err) {
    KI_TRY(ki_feed_check_size(batch->n, d->settings.batch, err));
    return d->engine_type ? run_on_device(d, batch, ret_rows, err) : run_on_host(d, batch, ret_rows, err);
}
