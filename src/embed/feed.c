/* The feed: two slots, one copied while the other is computed. */
#include "embed/feed.h"

#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "embed/preprocess.h"

/* The small parts of a batch, copied at once: this struct, then [batch] labels, then [batch, 3] windows. */
typedef struct header {
    uint64_t number[KI_FEED_NUMBERS];
} header;

enum { MOST_VIEWS = 8 };

/* Another network's way to prepare a batch. Of floats, which are prepared for the feed's own network: its plane k is plane from[k]
 * times factor plus shift. */
typedef struct view {
    ki_image_step images;
    int from[4];
    float factor[4], shift[4];
    bool is_same; /* as the feed's own network */
} view;

struct ki_feed {
    ki_backend *backend;
    const ki_net *net;
    int n_views;
    view view[MOST_VIEWS];
    float *turned; /* floats of a batch for a view; NULL: no view needs them */
    bool bgr;      /* of the feed's own network, with */
    float mean[4], factor[4];
    const ki_queue_type *queues;
    int64_t batch;
    ki_batch_format format;
    int64_t side;                     /* of the images of the last batch */
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
    ki_free(feed->turned);
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
    memcpy(feed->images.mean, feed->mean, sizeof feed->mean);
    memcpy(feed->images.factor, feed->factor, sizeof feed->factor);
}

/* The numbers of ki_transform_float. */
static void keep_way(ki_feed *feed, const kith_transform *t, int64_t c) {
    feed->bgr = t->bgr && c == 3;
    for (int k = 0; k < c && k < 3; k++) {
        feed->mean[k] = (float)(t->mean[k] / t->pixel_scale);
        feed->factor[k] = (float)(t->pixel_scale / t->std[k]);
    }
}

static kith_status make(ki_feed *feed, const ki_net *net, const kith_transform *transform, kith_error *err) {
    ki_backend *backend = feed->backend;
    const bool has_bytes = feed->format != KI_BATCH_FLOAT;
    int64_t side = net->h;
    void *host = NULL;
    feed->net = net;
    if (transform && !ki_net_takes_vectors(net)) keep_way(feed, transform, net->c);
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

/* ---- views ---- */

static kith_status check_view(const ki_feed *feed, const ki_net *net, kith_error *err) {
    const ki_net *own = feed->net;
    if (feed->n_views == MOST_VIEWS)
        return ki_fail(err, KITH_EINTERNAL, "more than %d views of a batch", MOST_VIEWS);
    if (ki_net_takes_vectors(net) == ki_net_takes_vectors(own) && net->c == own->c && net->h == own->h &&
        net->w == own->w)
        return KITH_OK;
    return ki_fail(err, KITH_ESHAPE, "%s takes %lldx%lldx%lld; the batches are %lldx%lldx%lld",
                   net->backbone->name, (long long)net->c, (long long)net->h, (long long)net->w,
                   (long long)own->c, (long long)own->h, (long long)own->w);
}

/* From one network's numbers back to pixels, and from these to the other's. */
static void set_turn(const ki_feed *feed, view *v) {
    const int c = (int)feed->net->c;
    v->is_same = v->images.bgr == feed->bgr;
    for (int k = 0; k < c; k++) {
        const int from = v->images.bgr == feed->bgr ? k : c - 1 - k;
        v->from[k] = from;
        v->factor[k] = v->images.factor[k] / feed->factor[from];
        v->shift[k] = (feed->mean[from] - v->images.mean[k]) * v->images.factor[k];
        v->is_same &= v->images.factor[k] == feed->factor[from] && v->images.mean[k] == feed->mean[from];
    }
}

kith_status ki_feed_add_view(ki_feed *feed, const ki_net *net, kith_error *err) {
    view *v = &feed->view[feed->n_views];
    kith_transform way = {.pixel_scale = 1, .std = {1, 1, 1}};
    KI_TRY(check_view(feed, net, err));
    *v = (view){.is_same = true};
    if (!ki_net_takes_vectors(net)) {
        ki_preprocess_take(net, &way);
        v->images = feed->images;
        v->images.bgr = way.bgr && net->c == 3;
        for (int k = 0; k < net->c && k < 3; k++) {
            v->images.mean[k] = (float)(way.mean[k] / way.pixel_scale);
            v->images.factor[k] = (float)(way.pixel_scale / way.std[k]);
        }
        set_turn(feed, v);
    }
    if (!v->is_same && !feed->pixel_bytes && !feed->turned)
        KI_TRY(ki_alloc_or(&feed->turned, (size_t)(feed->batch * net->c * net->h * net->w),
                           sizeof *feed->turned, "a batch for another network", err));
    feed->n_views++;
    return KITH_OK;
}

typedef struct turn {
    const view *view;
    const float *src;
    float *dst;
    int64_t c, plane;
} turn;

static void turn_planes(void *context, int64_t begin, int64_t end) {
    const turn *t = context;
    for (int64_t p = begin; p < end; p++) {
        const int64_t image = p / t->c, k = p % t->c;
        const float *src = t->src + (image * t->c + t->view->from[k]) * t->plane;
        float *dst = t->dst + p * t->plane;
        const float factor = t->view->factor[k], shift = t->view->shift[k];
        for (int64_t i = 0; i < t->plane; i++) dst[i] = factor * src[i] + shift;
    }
}

static kith_status bring_view(ki_feed *feed, view *v, const ki_feed_batch *batch, const ki_feed_place *place,
                              kith_error *err) {
    ki_backend *backend = feed->backend;
    const ki_net *net = feed->net;
    const void *data = batch->data;
    if (feed->pixel_bytes) {
        v->images.n = batch->n;
        KI_TRY(backend->type->kernels.images(backend, &v->images, &place->edge, place->input, err));
        ki_backend_note(backend, "images for a teacher",
                        (double)batch->n * (double)feed->pixel_bytes + (double)place->edge.bytes);
        return KITH_OK;
    }
    if (!v->is_same) {
        const int64_t plane = feed->side == net->h ? net->h * net->w : feed->side * feed->side;
        turn t = {.view = v, .src = batch->data, .dst = feed->turned, .c = net->c, .plane = plane};
        ki_parallel_for(batch->n * net->c, 1 + 32768 / t.plane, turn_planes, &t);
        data = feed->turned;
    }
    KI_TRY(backend->type->memory.import(backend, &place->edge, place->input, data, err));
    return backend->type->memory.sync(backend, err);
}

/* ---- a batch ---- */

static bool is_sized(const ki_feed *feed) {
    return feed->format == KI_BATCH_BYTES ||
           (feed->format == KI_BATCH_FLOAT && !ki_net_takes_vectors(feed->net));
}

size_t ki_feed_image_bytes(const ki_feed *feed, int64_t side) {
    const ki_net *net = feed->net;
    if (feed->format == KI_BATCH_WHOLE) return feed->pixel_bytes;
    const int64_t n = is_sized(feed) && side > 0 ? net->c * side * side : net->c * net->h * net->w;
    return (size_t)n * (feed->format == KI_BATCH_BYTES ? 1 : sizeof(float));
}

/* The size of the images from now on. */
static kith_status take_side(ki_feed *feed, int64_t side, kith_error *err) {
    const int64_t most = feed->net->h;
    if (side == 0 || side == most) side = most;
    if (side != most && (side < 1 || side > most || !is_sized(feed)))
        return ki_fail(err, KITH_ESHAPE, "images of %lld pixels for a feed of at most %lld", (long long)side,
                       (long long)most);
    feed->side = side;
    if (feed->format != KI_BATCH_BYTES) return KITH_OK;
    feed->pixel_bytes = (size_t)(side * side * feed->net->c);
    feed->images.h = feed->images.w = side;
    for (int i = 0; i < feed->n_views; i++) feed->view[i].images.h = feed->view[i].images.w = side;
    return KITH_OK;
}

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
    KI_TRY(take_side(feed, batch->side, err));
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
    for (int i = 0; i < feed->n_views && batch->view; i++)
        KI_TRY(bring_view(feed, &feed->view[i], batch, &batch->view[i], err));
    return feed->queues->mark_set(backend, feed->consumed, KI_QUEUE_MAIN, err);
}

kith_status ki_feed_wait(ki_feed *feed, kith_error *err) {
    return feed->queues->mark_wait(feed->backend, feed->copied, err);
}
