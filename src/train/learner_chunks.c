/* A step of a batch that is larger than what the network computes at once.
 *
 *     for each chunk:        forward, and its rows of every tap go beside those of the other chunks
 *     once:                  the objective, on the rows of the whole batch: a gradient for each
 *     for each chunk again:  forward, and backward from its rows of the gradients
 *
 * Source: Gao et al., Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup, RepL4NLP 2021. The gradient of a
 * parameter is the sum over images of what backward makes of the gradients at the taps, whatever images are computed together.
 * So it is that of the whole batch, up to the order of its sums. Dropout's random numbers are named by the step and the image's
 * place in the batch, so that both forwards of a chunk and that of the whole batch drop the same.
 *
 * The second round begins with the last chunk, whose activations are still there: k chunks take 2 k - 1 forwards. Memory is that of a
 * chunk's activations and of the batch's rows: embeddings and, if the objective reads them, pooled features and the last map. The
 * images of the whole batch are the loader's. */
#include "train/learner_inside.h"
#include "train/taps.h"

int64_t ki_learner_pass_most(const ki_learner_settings *s) {
    return s->chunk > 0 && s->chunk < s->batch ? s->chunk : s->batch;
}

/* ---- rows ---- */

void ki_chunks_release(ki_learner *l) {
    ki_backend *backend = l->settings.backend;
    ki_learner_rows *rows = &l->rows;
    for (int tap = 0; tap < KI_N_TAPS; tap++) {
        backend->type->memory.free(backend, rows->value[tap]);
        backend->type->memory.free(backend, rows->diff[tap]);
    }
    backend->type->memory.free(backend, rows->label);
    backend->type->memory.free(backend, rows->stopped);
    *rows = (ki_learner_rows){0};
}

/* The taps that have a row for each image. The embedding is always one of them, for users, even if the objective does not read it. */
static bool has_rows(const ki_pass *p, int tap) {
    return tap == KI_TAP_EMBEDDING || (tap != KI_TAP_WEIGHT && p->at.tap[tap]);
}

static kith_status take(ki_backend *backend, size_t bytes, void **ret, kith_error *err) {
    KI_TRY(backend->type->memory.alloc(backend, bytes, ret, err));
    return backend->type->memory.zero(backend, *ret, bytes, err);
}

/* Of one tap, for the largest batches: those of the first course. */
static kith_status make_rows(ki_learner *l, int tap, size_t bytes, bool has_diff, kith_error *err) {
    ki_backend *backend = l->settings.backend;
    ki_learner_rows *rows = &l->rows;
    if (!rows->value[tap]) {
        KI_TRY(take(backend, bytes, &rows->value[tap], err));
        rows->bytes[tap] = bytes;
    }
    if (has_diff && !rows->diff[tap]) KI_TRY(take(backend, rows->bytes[tap], &rows->diff[tap], err));
    if (bytes <= rows->bytes[tap]) return KITH_OK;
    return ki_fail(err, KITH_EINTERNAL, "%zu bytes of %s where there are %zu", bytes,
                   ki_tap_name((ki_tap)tap), rows->bytes[tap]);
}

static kith_status make_label(ki_learner *l, kith_error *err) {
    const ki_learner_settings *s = &l->settings;
    void *label = NULL;
    if (l->rows.label) return KITH_OK;
    KI_TRY(ki_taps_stopped(s->backend, s->objective, s->batch, s->net->embedding, &l->rows.stopped, err));
    const kith_status status = take(s->backend, (size_t)s->batch * sizeof *l->rows.label, &label, err);
    l->rows.label = label;
    return status;
}

static size_t row_bytes(const ki_edge *edge) { return edge->bytes / (size_t)edge->shape.dim[0]; }

static kith_status tap_at(const ki_pass *p, int tap, ki_edge *ret_edge, const void **ret_at,
                          kith_error *err) {
    void *at = NULL;
    if (p->at.tap[tap]) {
        *ret_edge = p->at.tap_edge[tap];
        *ret_at = p->at.tap[tap];
        return KITH_OK;
    }
    KI_TRY(ki_plan_tap_memory(p->plan, ki_tap_name((ki_tap)tap), ret_edge, &at, err));
    *ret_at = at;
    return KITH_OK;
}

kith_status ki_chunks_place(ki_learner *l, const ki_course *c, int64_t n, ki_engine_batch *batch,
                            kith_error *err) {
    const ki_learner_settings *s = &l->settings;
    const ki_pass *p = &c->pass[0];
    KI_TRY(make_label(l, err));
    batch->label = l->rows.label;
    batch->diff_stopped = l->rows.stopped;
    for (int tap = 0; tap < KI_N_TAPS && n > 0; tap++) {
        ki_edge edge = {0};
        const void *at = NULL;
        if (!has_rows(p, tap)) continue;
        KI_TRY(tap_at(p, tap, &edge, &at, err));
        if (edge.pitch && edge.pitch != edge.shape.dim[1])
            return ki_fail(err, KITH_EUNSUPPORTED,
                           "batches in chunks: the %s of %s lies inside another tensor",
                           ki_tap_name((ki_tap)tap), s->net->backbone->name);
        const size_t row = row_bytes(&edge);
        KI_TRY(make_rows(l, tap, (size_t)n * row, p->at.diff[tap] != NULL, err));
        if (!p->at.tap[tap]) continue;
        edge.bytes = (size_t)n * row;
        edge.shape.dim[0] = n;
        batch->tap_edge[tap] = edge;
        batch->tap[tap] = l->rows.value[tap];
        batch->diff[tap] = p->at.diff[tap] ? l->rows.diff[tap] : NULL;
    }
    return KITH_OK;
}

/* ---- a step ---- */

static kith_status queue_forward(void *user, kith_error *err) {
    const ki_learner *l = user;
    return l->pass->plan ? ki_plan_forward(l->pass->plan, err) : KITH_OK;
}

static kith_status queue_teachers(void *user, kith_error *err) {
    const ki_learner *l = user;
    for (int t = 0; t < l->settings.n_teachers && l->pass->plan; t++)
        KI_TRY(ki_plan_forward(l->pass->taught[t], err));
    return KITH_OK;
}

static kith_status queue_objective(void *user, kith_error *err) {
    ki_learner *l = user;
    KI_TRY(l->engine_type->evaluate(l->now->engine, err));
    ki_backend_note(l->settings.backend, "objective", 0);
    if (!l->comm || !l->is_last) return KITH_OK;
    KI_TRY(l->engine_type->sum_diffs(l->now->engine, err));
    return ki_device_comm_settle(l->comm, err);
}

static kith_status queue_backward(void *user, kith_error *err) {
    return ki_learner_queue_backward(user, err);
}

/* Images `from` … of the batch, through the network. */
static kith_status forward(ki_learner *l, const ki_feed_batch *batch, int64_t from, bool is_again,
                           kith_error *err) {
    ki_pass *p = l->pass;
    const char *data = batch->data;
    ki_feed_batch some = *batch;
    some.n = p->n;
    some.data = data + (size_t)from * ki_feed_image_bytes(l->feed, batch->side);
    some.window = batch->window ? batch->window + 3 * from : NULL;
    some.label = batch->label ? batch->label + from : NULL;
    some.view = is_again || l->settings.n_teachers == 0 ? NULL : p->view;
    some.number[KI_LEARNER_FIRST] += (uint64_t)from;
    KI_TRY(ki_feed_bring(l->feed, &some, &p->input_edge, p->input, err));
    KI_TRY(ki_learner_run(l, &p->recording[KI_PASS_FORWARD], queue_forward, err));
    if (is_again || l->settings.n_teachers == 0) return KITH_OK;
    return ki_learner_run(l, &p->recording[KI_PASS_TEACH], queue_teachers, err);
}

static kith_status copy(const ki_learner *l, void *dst, const void *src, size_t bytes, kith_error *err) {
    return l->queues->copy(l->settings.backend, KI_QUEUE_MAIN, dst, src, bytes, err);
}

/* From the chunk to the rows of the batch. */
static kith_status gather(const ki_learner *l, int64_t from, kith_error *err) {
    const ki_pass *p = l->pass;
    if (p->n == 0) return KITH_OK;
    KI_TRY(copy(l, l->rows.label + from, ki_feed_labels(l->feed), (size_t)p->n * sizeof *l->rows.label, err));
    for (int tap = 0; tap < KI_N_TAPS; tap++) {
        ki_edge edge = {0};
        const void *at = NULL;
        if (!has_rows(p, tap)) continue;
        KI_TRY(tap_at(p, tap, &edge, &at, err));
        char *rows = l->rows.value[tap];
        KI_TRY(copy(l, rows + (size_t)from * row_bytes(&edge), at, edge.bytes, err));
    }
    return KITH_OK;
}

/* And its gradients back to the chunk. */
static kith_status scatter(const ki_learner *l, int64_t from, kith_error *err) {
    const ki_pass *p = l->pass;
    const int64_t dim = l->settings.net->embedding;
    if (p->n == 0) return KITH_OK;
    for (int tap = 0; tap < KI_N_TAPS; tap++) {
        if (!has_rows(p, tap) || !p->at.diff[tap]) continue;
        const ki_edge *edge = &p->at.tap_edge[tap];
        const char *rows = l->rows.diff[tap];
        KI_TRY(copy(l, p->at.diff[tap], rows + (size_t)from * row_bytes(edge), edge->bytes, err));
    }
    if (!l->stopped) return KITH_OK;
    return copy(l, l->stopped, l->rows.stopped + from * dim, (size_t)(p->n * dim) * sizeof *l->stopped, err);
}

/* The chunk that begins with image `from`. */
static void take_pass(ki_learner *l, const ki_feed_batch *batch, int64_t from) {
    ki_course *c = l->now;
    l->pass = &c->pass[batch->n - from < c->pass[0].n];
}

/* A batch without an image here is one chunk without an image. */
kith_status ki_chunks_add(ki_learner *l, const ki_feed_batch *batch, bool is_last, kith_error *err) {
    const int64_t most = l->now->pass[0].n;
    const int64_t last = batch->n > 0 ? (batch->n - 1) / most * most : 0;
    l->is_last = false;
    for (int64_t from = 0; from <= last; from += most + (most == 0)) {
        take_pass(l, batch, from);
        KI_TRY(forward(l, batch, from, false, err));
        KI_TRY(gather(l, from, err));
    }
    l->is_last = is_last;
    KI_TRY(ki_learner_run(l, &l->now->recording[is_last], queue_objective, err));
    for (int64_t from = last; from >= 0; from -= most + (most == 0)) {
        take_pass(l, batch, from);
        if (from < last) KI_TRY(forward(l, batch, from, true, err));
        KI_TRY(scatter(l, from, err));
        l->is_last = is_last && from == 0;
        const int what = l->is_last ? KI_PASS_LAST : KI_PASS_BACKWARD;
        KI_TRY(ki_learner_run(l, &l->pass->recording[what], queue_backward, err));
    }
    return KITH_OK;
}

kith_status ki_chunks_embedding(ki_learner *l, ki_real *ret, kith_error *err) {
    ki_backend *backend = l->settings.backend;
    ki_edge edge = {0};
    const void *at = NULL;
    KI_TRY(tap_at(&l->now->pass[0], KI_TAP_EMBEDDING, &edge, &at, err));
    edge.bytes = (size_t)l->n_last * row_bytes(&edge);
    edge.shape.dim[0] = l->n_last;
    KI_TRY(backend->type->memory.export(backend, &edge, l->rows.value[KI_TAP_EMBEDDING], ret, err));
    return backend->type->memory.sync(backend, err);
}
