/* The feed: two slots, one copied while the other is computed. */
#include "embed/feed.h"

#include <string.h>

#include "base/alloc.h"

/* The small parts of a batch, copied at once: this struct, then [batch] labels, then [batch, 3] windows. */
typedef struct header {
    uint64_t number[KI_FEED_NUMBERS];
} header;

struct ki_feed {
    ki_backend *backend;
    const ki_queue_type *queues;
    int64_t batch;
    ki_batch_format format;
    size_t header_bytes, pixel_bytes; /* pixels of one image */
    char *host;                       /* pinned: the header */
    char *staging;                    /* header and pixels as they come */
    char *device;                     /* the header of the batch being worked on */
    ki_image_step images;
    ki_mark *copied, *consumed; /* out of the host's memory, out of the staging memory */
};

/* ---- what a loader should do ---- */

ki_batch_format ki_feed_format(const ki_backend *backend, const ki_net *net,
                               const kith_transform *transform) {
    if (backend->type->is_host || !backend->type->kernels.images || (net && ki_net_takes_vectors(net)))
        return KI_BATCH_FLOAT;
    return ki_transform_window_side(transform) > 0 ? KI_BATCH_WHOLE : KI_BATCH_BYTES;
}

kith_status ki_feed_check_size(int64_t n, int64_t most, kith_error *err) {
    if (n >= 1 && n <= most) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "a batch of %lld images; wanted 1 to %lld", (long long)n,
                   (long long)most);
}

static void *take_pinned(void *user, size_t bytes) {
    ki_backend *backend = user;
    kith_error ignored;
    void *memory = NULL;
    return backend->type->queues->host_alloc(backend, bytes, &memory, &ignored) == KITH_OK ? memory : NULL;
}

static void give_pinned(void *user, void *memory) {
    ki_backend *backend = user;
    backend->type->queues->host_free(backend, memory);
}

ki_batch_memory ki_feed_memory(ki_backend *backend) {
    if (backend->type->is_host) return (ki_batch_memory){0};
    return (ki_batch_memory){.take = take_pinned, .give = give_pinned, .user = backend};
}

/* ---- making ---- */

static int32_t *labels_in(char *block) { return (int32_t *)(void *)(block + sizeof(header)); }
static int32_t *windows_in(const ki_feed *feed, char *block) { return labels_in(block) + feed->batch; }

const int32_t *ki_feed_labels(const ki_feed *feed) { return labels_in(feed->device); }
const uint64_t *ki_feed_numbers(const ki_feed *feed) {
    return ((const header *)(const void *)feed->device)->number;
}

void ki_feed_free(ki_feed *feed) {
    if (!feed) return;
    ki_backend *backend = feed->backend;
    feed->queues->host_free(backend, feed->host);
    feed->queues->mark_free(backend, feed->copied);
    feed->queues->mark_free(backend, feed->consumed);
    backend->type->memory.free(backend, feed->staging);
    backend->type->memory.free(backend, feed->device);
    ki_free(feed);
}

static kith_status take(ki_backend *backend, size_t bytes, char **ret, kith_error *err) {
    void *memory = NULL;
    KI_TRY(backend->type->memory.alloc(backend, bytes, &memory, err));
    *ret = memory;
    return backend->type->memory.zero(backend, memory, bytes, err);
}

static void describe_images(ki_feed *feed, const kith_transform *t, int64_t side, int64_t c) {
    feed->images =
        (ki_image_step){.h = side,
                        .w = side,
                        .c = c,
                        .pixels = (const uint8_t *)feed->staging + feed->header_bytes,
                        .window = feed->format == KI_BATCH_WHOLE ? windows_in(feed, feed->device) : NULL,
                        .bgr = t->bgr && c == 3};
    /* The numbers of ki_transform_float. */
    for (int k = 0; k < c; k++) {
        feed->images.mean[k] = (float)(t->mean[k] / t->pixel_scale);
        feed->images.factor[k] = (float)(t->pixel_scale / t->std[k]);
    }
}

static kith_status make(ki_feed *feed, const ki_net *net, const kith_transform *transform, kith_error *err) {
    ki_backend *backend = feed->backend;
    const bool has_bytes = feed->format != KI_BATCH_FLOAT;
    int64_t side = net->h;
    void *host = NULL;
    if (has_bytes && (net->h != net->w || transform->crop_to != net->h || transform->channels != net->c))
        return ki_fail(err, KITH_EINVAL, "images of %dx%dx%d; the network takes %lldx%lldx%lld",
                       transform->crop_to, transform->crop_to, transform->channels, (long long)net->h,
                       (long long)net->w, (long long)net->c);
    if (feed->format == KI_BATCH_WHOLE) side = ki_transform_window_side(transform);
    feed->header_bytes = ki_round_up(sizeof(header) + (size_t)feed->batch * 4 * sizeof(int32_t), KI_ALIGN);
    feed->pixel_bytes = has_bytes ? (size_t)(side * side * net->c) : 0;
    KI_TRY(feed->queues->host_alloc(backend, feed->header_bytes, &host, err));
    feed->host = host;
    memset(host, 0, feed->header_bytes);
    KI_TRY(take(backend, feed->header_bytes, &feed->device, err));
    KI_TRY(take(backend, feed->header_bytes + (size_t)feed->batch * feed->pixel_bytes + KI_ALIGN,
                &feed->staging, err));
    KI_TRY(feed->queues->mark_new(backend, &feed->copied, err));
    KI_TRY(feed->queues->mark_new(backend, &feed->consumed, err));
    if (has_bytes) describe_images(feed, transform, side, net->c);
    /* The main queue must have zeroed the memory before the other queue writes to it. */
    return backend->type->memory.sync(backend, err);
}

kith_status ki_feed_new(ki_backend *backend, const ki_net *net, int64_t batch, ki_batch_format format,
                        const kith_transform *transform, ki_feed **ret_feed, kith_error *err) {
    ki_feed *feed = NULL;
    if (backend->type->is_host && format != KI_BATCH_FLOAT)
        return ki_fail(err, KITH_EUNSUPPORTED, "batches of bytes are for devices; this backend is %s",
                       backend->type->name);
    KI_TRY(ki_zalloc_or(&feed, 1, sizeof *feed, "a feed", err));
    feed->backend = backend;
    feed->queues = backend->type->queues;
    feed->batch = batch;
    feed->format = format;
    const kith_status status = make(feed, net, transform, err);
    if (status == KITH_OK)
        *ret_feed = feed;
    else
        ki_feed_free(feed);
    return status;
}

/* ---- a batch ---- */

static kith_status upload(ki_feed *feed, const ki_feed_batch *batch, kith_error *err) {
    const size_t n = (size_t)batch->n;
    KI_TRY(ki_feed_wait(feed, err));
    header *head = (header *)(void *)feed->host;
    memcpy(head->number, batch->number, sizeof head->number);
    if (batch->label) memcpy(labels_in(feed->host), batch->label, n * sizeof *batch->label);
    if (batch->window) memcpy(windows_in(feed, feed->host), batch->window, 3 * n * sizeof *batch->window);
    KI_TRY(feed->queues->mark_follow(feed->backend, feed->consumed, KI_QUEUE_COPY, err));
    KI_TRY(
        feed->queues->copy(feed->backend, KI_QUEUE_COPY, feed->staging, feed->host, feed->header_bytes, err));
    if (feed->pixel_bytes)
        KI_TRY(feed->queues->copy(feed->backend, KI_QUEUE_COPY, feed->staging + feed->header_bytes,
                                  batch->data, n * feed->pixel_bytes, err));
    return feed->queues->mark_set(feed->backend, feed->copied, KI_QUEUE_COPY, err);
}

kith_status ki_feed_bring(ki_feed *feed, const ki_feed_batch *batch, const ki_edge *input_edge, void *input,
                          kith_error *err) {
    ki_backend *backend = feed->backend;
    if (batch->n != 0) KI_TRY(ki_feed_check_size(batch->n, feed->batch, err));
    if ((batch->window != NULL) != (feed->format == KI_BATCH_WHOLE))
        return ki_fail(err, KITH_EINVAL, "a batch %s crop windows; its format says otherwise",
                       batch->window ? "with" : "without");
    KI_TRY(upload(feed, batch, err));
    KI_TRY(feed->queues->mark_follow(backend, feed->copied, KI_QUEUE_MAIN, err));
    KI_TRY(feed->queues->copy(backend, KI_QUEUE_MAIN, feed->device, feed->staging, feed->header_bytes, err));
    ki_backend_note(backend, "batch copied (beside a step)", (double)batch->n * (double)feed->pixel_bytes);
    if (batch->n == 0) return feed->queues->mark_set(backend, feed->consumed, KI_QUEUE_MAIN, err);
    if (feed->pixel_bytes) {
        feed->images.n = batch->n;
        KI_TRY(backend->type->kernels.images(backend, &feed->images, input_edge, input, err));
        ki_backend_note(backend, "images",
                        (double)batch->n * (double)feed->pixel_bytes + (double)input_edge->bytes);
    } else {
        KI_TRY(backend->type->memory.import(backend, input_edge, input, batch->data, err));
        KI_TRY(backend->type->memory.sync(backend, err));
    }
    return feed->queues->mark_set(backend, feed->consumed, KI_QUEUE_MAIN, err);
}

kith_status ki_feed_wait(ki_feed *feed, kith_error *err) {
    return feed->queues->mark_wait(feed->backend, feed->copied, err);
}
