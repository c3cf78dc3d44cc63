/* The inference plan of an embedder, and how its rows get back to the host. */
#include "embed/forward.h"

#include <string.h>

#include "base/alloc.h"
#include "device/recording.h"

enum { N_SLOTS = 2 };

/* Rows on their way back to the host. */
typedef struct slot {
    float *host; /* pinned [batch, dim] */
    ki_mark *back;
    float *rows; /* where they go; NULL: no rows are being copied */
    int64_t n;
} slot;

struct ki_forward {
    ki_forward_settings settings;
    ki_plan *plan;
    int64_t dim;
    bool is_open;  /* whether the describer is open */
    float *input;  /* one batch of floats, for a batch that is not full */
    float *output; /* the same for rows that are read */

    const ki_queue_type *queues;
    ki_feed *feed;
    ki_edge input_edge;
    void *input_at;
    float *rows_at; /* where the device has the rows; NULL: they have to be read */
    slot slot[N_SLOTS];
    int64_t n_added;
    ki_recording recording;
    uint64_t version; /* of the parameters at the last forward */
};

/* ---- making ---- */

static kith_status make_plan(ki_forward *f, kith_error *err) {
    ki_forward_settings *s = &f->settings;
    ki_plan_options options = {.mb = s->batch, .mode = KI_INFER};
    int node = 0;
    if (s->describer) {
        memcpy(options.taps, s->describer->taps, sizeof options.taps);
        f->dim = s->describer->dim;
    } else {
        KI_TRY(ki_graph_find_tap(s->net->graph, s->tap, &node, err));
        s->tap = ki_graph_node(s->net->graph, node)->tap; /* lives as long as the graph */
        options.taps[0] = s->tap;
        f->dim = ki_shape_count(&ki_graph_node(s->net->graph, node)->shape);
    }
    return ki_plan_new(s->net->graph, s->params, s->backend, &options, &f->plan, err);
}

/* Where a device has the rows: at the tap. The values of a map have to be reordered by the backend when they
 * are read. */
static kith_status find_rows(ki_forward *f, kith_error *err) {
    ki_edge edge;
    void *at = NULL;
    if (f->settings.describer) return KITH_OK;
    KI_TRY(ki_plan_tap_memory(f->plan, f->settings.tap, &edge, &at, err));
    if (edge.shape.n_dims == 2) f->rows_at = at;
    return KITH_OK;
}

static kith_status make_feed(ki_forward *f, kith_error *err) {
    const ki_forward_settings *s = &f->settings;
    KI_TRY(ki_feed_new(s->backend, s->net, s->batch, s->format, s->transform, &f->feed, err));
    return ki_plan_input_memory(f->plan, &f->input_edge, &f->input_at, err);
}

static kith_status make_slots(ki_forward *f, kith_error *err) {
    const ki_forward_settings *s = &f->settings;
    for (int i = 0; i < N_SLOTS; i++) {
        void *host = NULL;
        KI_TRY(f->queues->host_alloc(s->backend, (size_t)(s->batch * f->dim) * sizeof(float), &host, err));
        f->slot[i].host = host;
        KI_TRY(f->queues->mark_new(s->backend, &f->slot[i].back, err));
    }
    return KITH_OK;
}

static kith_status make_input(ki_forward *f, kith_error *err) {
    const ki_forward_settings *s = &f->settings;
    const size_t image = (size_t)(s->net->c * s->net->h * s->net->w);
    return ki_zalloc_or(&f->input, (size_t)s->batch, image * sizeof(float), "a batch", err);
}

kith_status ki_forward_new(const ki_forward_settings *settings, ki_forward **ret_forward, kith_error *err) {
    kith_status status;
    ki_forward *f = NULL;
    const ki_describer *d = settings->describer;
    KI_CHECK(ki_zalloc_or(&f, 1, sizeof *f, "a forward", err));
    f->settings = *settings;
    f->queues = settings->backend->type->queues;
    KI_CHECK(make_plan(f, err));
    KI_CHECK(make_feed(f, err));
    if (settings->format == KI_BATCH_FLOAT) KI_CHECK(make_input(f, err));
    KI_CHECK(find_rows(f, err));
    f->is_open = d != NULL;
    if (d) KI_CHECK(d->open(d->user, f->plan, f->feed, settings->batch, &f->rows_at, err));
    if (f->rows_at)
        KI_CHECK(make_slots(f, err));
    else
        KI_CHECK(ki_alloc_or(&f->output, (size_t)settings->batch, (size_t)f->dim * sizeof(float),
                             "a batch's values", err));
    f->settings.transform = NULL;
    *ret_forward = f;
    f = NULL;
done:
    ki_forward_free(f);
    return status;
}

void ki_forward_free(ki_forward *f) {
    if (!f) return;
    ki_backend *backend = f->settings.backend;
    kith_error ignored;
    (void)backend->type->memory.sync(backend, &ignored);
    if (f->is_open) f->settings.describer->close(f->settings.describer->user);
    for (int i = 0; i < N_SLOTS; i++) {
        f->queues->host_free(backend, f->slot[i].host);
        f->queues->mark_free(backend, f->slot[i].back);
    }
    ki_recording_release(&f->recording, backend);
    ki_feed_free(f->feed);
    ki_plan_free(f->plan);
    ki_free(f->input);
    ki_free(f->output);
    ki_free(f);
}

int64_t ki_forward_dim(const ki_forward *f) { return f->dim; }
const ki_plan *ki_forward_plan(const ki_forward *f) { return f->plan; }
bool ki_forward_can_stay(const ki_forward *f) {
    return f->rows_at != NULL && !f->settings.backend->type->is_host;
}

/* ---- in, through ---- */

static kith_status bring(ki_forward *f, const ki_forward_batch *batch, kith_error *err) {
    const ki_net *net = f->settings.net;
    const void *data = batch->data;
    if (batch->n < f->settings.batch && f->input) {
        /* In inference images do not influence each other: the results of the rest of the batch are dropped. */
        memcpy(f->input, data, (size_t)(batch->n * net->c * net->h * net->w) * sizeof(float));
        data = f->input;
    }
    const ki_feed_batch feed = {.n = batch->n, .data = data, .window = batch->window};
    return ki_feed_bring(f->feed, &feed, &f->input_edge, f->input_at, err);
}

static kith_status queue_forward(void *user, kith_error *err) {
    ki_forward *f = user;
    const ki_describer *d = f->settings.describer;
    KI_TRY(ki_plan_forward(f->plan, err));
    return d ? d->queue(d->user, err) : KITH_OK;
}

/* A recording contains only the kernels; it does not refresh their copies of the weights. So after the
 * parameters have changed, one forward pass is queued kernel by kernel, which refreshes them. */
static kith_status run(ki_forward *f, kith_error *err) {
    const uint64_t version = ki_params_version(f->settings.params);
    const bool is_fresh = f->version == version && f->recording.n_queued > 0;
    f->version = version;
    if (is_fresh) return ki_recording_run(&f->recording, f->settings.backend, queue_forward, f, err);
    f->recording.n_queued++;
    return queue_forward(f, err);
}

/* ---- out ---- */

/* Copy the rows of a slot to their destination, waiting for them if necessary. */
static kith_status hand_out(ki_forward *f, slot *s, kith_error *err) {
    if (!s->rows) return KITH_OK;
    KI_TRY(f->queues->mark_wait(f->settings.backend, s->back, err));
    memcpy(s->rows, s->host, (size_t)(s->n * f->dim) * sizeof(float));
    s->rows = NULL;
    return KITH_OK;
}

static kith_status queue_rows(ki_forward *f, int64_t n, ki_vectors *to, kith_error *err) {
    ki_backend *backend = f->settings.backend;
    const size_t bytes = (size_t)(n * f->dim) * sizeof(float);
    if (to->device)
        return f->queues->copy(backend, KI_QUEUE_MAIN, to->device + to->n * f->dim, f->rows_at, bytes, err);
    slot *s = &f->slot[f->n_added++ % N_SLOTS];
    KI_TRY(hand_out(f, s, err));
    KI_TRY(f->queues->copy(backend, KI_QUEUE_MAIN, s->host, f->rows_at, bytes, err));
    KI_TRY(f->queues->mark_set(backend, s->back, KI_QUEUE_MAIN, err));
    s->rows = to->host + to->n * f->dim;
    s->n = n;
    return KITH_OK;
}

static kith_status read_rows(ki_forward *f, int64_t n, float *rows, kith_error *err) {
    float *read = n < f->settings.batch ? f->output : rows;
    KI_TRY(ki_plan_read(f->plan, f->settings.tap, read, err));
    if (read != rows) memcpy(rows, read, (size_t)(n * f->dim) * sizeof *rows);
    return KITH_OK;
}

kith_status ki_forward_add(ki_forward *f, const ki_forward_batch *batch, ki_vectors *to, kith_error *err) {
    KI_TRY(ki_feed_check_size(batch->n, f->settings.batch, err));
    if (to->dim != f->dim || to->n + batch->n > to->n_room || (to->device && !f->rows_at))
        return ki_fail(err, KITH_EINTERNAL, "%lld rows of %lld values do not fit behind %lld of %lld",
                       (long long)batch->n, (long long)f->dim, (long long)to->n, (long long)to->n_room);
    KI_TRY(bring(f, batch, err));
    KI_TRY(run(f, err));
    if (f->rows_at)
        KI_TRY(queue_rows(f, batch->n, to, err));
    else
        KI_TRY(read_rows(f, batch->n, to->host + to->n * f->dim, err));
    to->n += batch->n;
    return ki_feed_wait(f->feed, err);
}

kith_status ki_forward_finish(ki_forward *f, kith_error *err) {
    for (int i = 0; i < N_SLOTS; i++) KI_TRY(hand_out(f, &f->slot[i], err));
    return KITH_OK;
}

void ki_forward_abandon(ki_forward *f) {
    kith_error ignored;
    (void)f->settings.backend->type->memory.sync(f->settings.backend, &ignored);
    for (int i = 0; i < N_SLOTS; i++) f->slot[i].rows = NULL;
}
