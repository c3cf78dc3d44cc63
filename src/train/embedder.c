#include "train/embedder.h"

#include <string.h>

#include "core/alloc.h"

/* Forwards done kernel by kernel before one is recorded. */
enum { WARM_UPS = 2, N_SLOTS = 2 };

/* Values on their way back. */
typedef struct slot {
    float *host; /* pinned [batch, dim] */
    ki_mark *back;
    float *rows; /* where they go; NULL: nothing under way */
    int64_t n;
} slot;

struct ki_embedder {
    ki_embedder_settings settings;
    ki_plan *plan;
    int64_t dim;
    float *input, *output; /* without queues: one batch each, for one that is not full */

    const ki_queue_type *queues; /* NULL: the host computes */
    ki_feed *feed;
    ki_edge input_edge, tap_edge;
    void *input_at, *tap_at;
    slot slot[N_SLOTS];
    int64_t n_added;
    void *recorded;
    uint64_t recorded_version; /* of the parameters: a recording does not refresh the kernels' copies */
    int n_runs;
};

static kith_status make_device(ki_embedder *e, kith_error *err) {
    const ki_embedder_settings *s = &e->settings;
    KI_TRY(ki_feed_new(s->backend, s->net, s->batch, s->format, s->transform, &e->feed, err));
    KI_TRY(ki_plan_input_memory(e->plan, &e->input_edge, &e->input_at, err));
    KI_TRY(ki_plan_tap_memory(e->plan, s->tap, &e->tap_edge, &e->tap_at, err));
    for (int i = 0; i < N_SLOTS; i++) {
        void *host = NULL;
        KI_TRY(e->queues->host_alloc(s->backend, (size_t)(s->batch * e->dim) * sizeof(float), &host, err));
        e->slot[i].host = host;
        KI_TRY(e->queues->mark_new(s->backend, &e->slot[i].back, err));
    }
    return KITH_OK;
}

static kith_status make_host(ki_embedder *e, kith_error *err) {
    const ki_embedder_settings *s = &e->settings;
    const size_t image = (size_t)(s->net->c * s->net->h * s->net->w);
    KI_TRY(ki_feed_check_host(s->backend, s->format, err));
    KI_TRY(ki_zalloc_or(&e->input, (size_t)s->batch, image * sizeof(float), "a batch", err));
    return ki_alloc_or(&e->output, (size_t)s->batch, (size_t)e->dim * sizeof(float), "a batch's values", err);
}

kith_status ki_embedder_new(const ki_embedder_settings *settings, ki_embedder **ret_embedder,
                            kith_error *err) {
    kith_status status;
    int node = 0;
    ki_embedder *e = NULL;
    KI_CHECK(ki_zalloc_or(&e, 1, sizeof *e, "an embedder", err));
    e->settings = *settings;
    e->queues = settings->backend->type->queues;
    const ki_graph *graph = settings->net->graph;
    KI_CHECK(ki_graph_find_tap(graph, settings->tap, &node, err));
    e->settings.tap = ki_graph_node(graph, node)->tap; /* lives as long as the graph */
    e->dim = ki_shape_count(&ki_graph_node(graph, node)->shape);
    const ki_plan_options options = {.mb = settings->batch, .mode = KI_INFER, .taps = {e->settings.tap}};
    KI_CHECK(ki_plan_new(graph, settings->params, settings->backend, &options, &e->plan, err));
    /* A map is turned by the backend, one at a time. */
    if (ki_graph_node(graph, node)->shape.n_dims != 2) e->queues = NULL;
    if (e->queues)
        KI_CHECK(make_device(e, err));
    else
        KI_CHECK(make_host(e, err));
    e->settings.transform = NULL;
    *ret_embedder = e;
    e = NULL;
done:
    ki_embedder_free(e);
    return status;
}

void ki_embedder_free(ki_embedder *e) {
    if (!e) return;
    ki_backend *backend = e->settings.backend;
    kith_error ignored;
    if (e->queues) {
        (void)backend->type->sync(backend, &ignored);
        for (int i = 0; i < N_SLOTS; i++) {
            e->queues->host_free(backend, e->slot[i].host);
            e->queues->mark_free(backend, e->slot[i].back);
        }
        if (e->recorded) backend->type->capture_free(backend, e->recorded);
        ki_feed_free(e->feed);
    }
    ki_plan_free(e->plan);
    ki_free(e->input);
    ki_free(e->output);
    ki_free(e);
}

int64_t ki_embedder_dim(const ki_embedder *e) { return e->dim; }
const ki_plan *ki_embedder_plan(const ki_embedder *e) { return e->plan; }

/* ---- on the host ---- */

static kith_status add_on_host(ki_embedder *e, const ki_embedder_batch *batch, float *rows, kith_error *err) {
    const ki_net *net = e->settings.net;
    const size_t image = (size_t)(net->c * net->h * net->w);
    const float *input = batch->data;
    float *output = rows;
    if (batch->n < e->settings.batch) {
        /* Images do not see each other in inference: what the rest of the batch holds is lost. */
        memcpy(e->input, input, (size_t)batch->n * image * sizeof(float));
        input = e->input;
        output = e->output;
    }
    KI_TRY(ki_plan_set_input(e->plan, input, err));
    KI_TRY(ki_plan_forward(e->plan, err));
    KI_TRY(ki_plan_read(e->plan, e->settings.tap, output, err));
    if (output != rows) memcpy(rows, output, (size_t)(batch->n * e->dim) * sizeof(float));
    return KITH_OK;
}

/* ---- on a device ---- */

/* A recording holds the kernels alone, not the refreshing of their copies of weights: when the parameters
 * have changed, one forward is done kernel by kernel, which does that. */
static kith_status forward(ki_embedder *e, kith_error *err) {
    ki_backend *backend = e->settings.backend;
    const ki_backend_type *type = backend->type;
    const uint64_t version = ki_params_version(e->settings.params);
    const bool is_fresh = e->recorded_version == version && e->n_runs > 0;
    e->recorded_version = version;
    if (!type->capture_begin || backend->probe || !is_fresh || e->n_runs < WARM_UPS) {
        e->n_runs++;
        return ki_plan_forward(e->plan, err);
    }
    if (!e->recorded) {
        kith_error second;
        void *recorded = NULL;
        KI_TRY(type->capture_begin(backend, err));
        const kith_status status = ki_plan_forward(e->plan, err);
        const kith_status ended = type->capture_end(backend, &recorded, status == KITH_OK ? err : &second);
        if (status != KITH_OK && ended == KITH_OK) type->capture_free(backend, recorded);
        if (status != KITH_OK || ended != KITH_OK) return status != KITH_OK ? status : ended;
        e->recorded = recorded;
    }
    return type->capture_launch(backend, e->recorded, err);
}

/* Hand out the values of a slot, waiting for them if need be. */
static kith_status hand_out(ki_embedder *e, slot *s, kith_error *err) {
    if (!s->rows) return KITH_OK;
    KI_TRY(e->queues->mark_wait(e->settings.backend, s->back, err));
    memcpy(s->rows, s->host, (size_t)(s->n * e->dim) * sizeof(float));
    s->rows = NULL;
    return KITH_OK;
}

static kith_status add_on_device(ki_embedder *e, const ki_embedder_batch *batch, float *rows,
                                 kith_error *err) {
    ki_backend *backend = e->settings.backend;
    slot *s = &e->slot[e->n_added++ % N_SLOTS];
    const ki_feed_batch feed = {.n = batch->n, .data = batch->data, .window = batch->window};
    KI_TRY(ki_feed_bring(e->feed, &feed, &e->input_edge, e->input_at, err));
    KI_TRY(forward(e, err));
    KI_TRY(hand_out(e, s, err));
    KI_TRY(e->queues->copy(backend, KI_QUEUE_MAIN, s->host, e->tap_at,
                           (size_t)(batch->n * e->dim) * sizeof(float), err));
    KI_TRY(e->queues->mark_set(backend, s->back, KI_QUEUE_MAIN, err));
    s->rows = rows;
    s->n = batch->n;
    return ki_feed_wait(e->feed, err);
}

kith_status ki_embedder_add(ki_embedder *e, const ki_embedder_batch *batch, float *ret_rows,
                            kith_error *err) {
    KI_TRY(ki_feed_check_size(batch->n, e->settings.batch, err));
    return e->queues ? add_on_device(e, batch, ret_rows, err) : add_on_host(e, batch, ret_rows, err);
}

kith_status ki_embedder_finish(ki_embedder *e, kith_error *err) {
    for (int i = 0; e->queues && i < N_SLOTS; i++) KI_TRY(hand_out(e, &e->slot[i], err));
    return KITH_OK;
}
