/* The embedder: readers deliver images, a forward pass makes rows of them, and unreadable images are
 * reported. */
#include "embed/embedder.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "data/loader/cache.h"
#include "data/loader/loader.h"
#include "embed/preprocess.h"

struct ki_embedder {
    ki_embedder_settings settings;
    ki_batch_format format; /* of the batches from the loader */
    int view;               /* of every image */
    ki_cache *cache;        /* of prepared images, borrowed; NULL: none */

    ki_forward *forward; /* NULL, or for the four below */
    const char *tap;
    const ki_describer *describer;
    ki_batch_format forward_format;

    /* About the items of the last call. */
    int64_t n_bad, n_items;
    char *bad[KI_MOST_BAD_NAMED];
    unsigned char *status; /* [n_items] of kith_status */
};

kith_status ki_embedder_new(const ki_embedder_settings *settings, ki_embedder **ret_embedder,
                            kith_error *err) {
    ki_embedder *e = NULL;
    if (ki_transform_is_random(&settings->transform))
        return ki_fail(err, KITH_EINVAL, "the transform is random; wanted a centre crop without mirroring");
    KI_TRY(ki_zalloc_or(&e, 1, sizeof *e, "an embedder", err));
    e->settings = *settings;
    e->format = ki_feed_format(settings->backend, settings->net, &settings->transform);
    *ret_embedder = e;
    return KITH_OK;
}

static void forget(ki_embedder *e) {
    for (int i = 0; i < KI_MOST_BAD_NAMED; i++) {
        ki_free(e->bad[i]);
        e->bad[i] = NULL;
    }
    ki_free(e->status);
    e->status = NULL;
    e->n_bad = e->n_items = 0;
}

void ki_embedder_free(ki_embedder *e) {
    if (!e) return;
    forget(e);
    ki_forward_free(e->forward);
    ki_free(e);
}

void ki_embedder_set_loading(ki_embedder *e, const kith_transform *transform, int64_t n_workers) {
    e->settings.transform = *transform;
    e->settings.n_workers = n_workers;
    e->format = ki_feed_format(e->settings.backend, e->settings.net, transform);
}

void ki_embedder_set_view(ki_embedder *e, int view, ki_cache *cache) {
    e->view = view;
    e->cache = cache;
}

int64_t ki_embedder_n_bad(const ki_embedder *e) { return e->n_bad; }

const char *ki_embedder_bad(const ki_embedder *e, int64_t i) {
    return i >= 0 && i < KI_MOST_BAD_NAMED ? e->bad[i] : NULL;
}

kith_status ki_embedder_status(const ki_embedder *e, int64_t place) {
    return place >= 0 && place < e->n_items ? (kith_status)e->status[place] : KITH_EINVAL;
}

void ki_embedder_drop_plan(ki_embedder *e) {
    ki_forward_free(e->forward);
    e->forward = NULL;
}

/* The forward for a tap or a describer. The present one is kept if it is the same. */
static kith_status make_forward(ki_embedder *e, const char *tap, const ki_describer *describer,
                                ki_batch_format format, kith_error *err) {
    const ki_embedder_settings *s = &e->settings;
    int node = 0;
    if (!describer) {
        KI_TRY(ki_graph_find_tap(s->net->graph, tap, &node, err));
        tap = ki_graph_node(s->net->graph, node)->tap; /* lives as long as the graph */
    }
    if (e->forward && e->describer == describer && (describer || e->tap == tap) &&
        e->forward_format == format)
        return KITH_OK;
    ki_embedder_drop_plan(e);
    e->tap = describer ? "descriptor" : tap;
    e->describer = describer;
    e->forward_format = format;
    const ki_forward_settings settings = {.backend = s->backend,
                                          .net = s->net,
                                          .params = s->params,
                                          .tap = tap,
                                          .describer = describer,
                                          .batch = s->batch,
                                          .format = format,
                                          .transform = &s->transform};
    return ki_forward_new(&settings, &e->forward, err);
}

/* ---- items of a data set ---- */

static kith_status start_loader(const ki_embedder *e, const ki_embed_request *q, ki_loader **ret,
                                kith_error *err) {
    const ki_embedder_settings *s = &e->settings;
    const ki_loader_settings loading = {.transform = s->transform,
                                        .format = e->format,
                                        .memory = ki_feed_memory(s->backend),
                                        .view = e->view,
                                        .cache = e->cache,
                                        .n_workers = s->n_workers,
                                        .most_pixels = q->most_pixels,
                                        .most_bad = q->most_bad};
    return ki_loader_new_once(q->set, q->items, q->n, s->batch, &loading, ret, err);
}

/* Vectors stay on the backend if they take at most half of its free memory. */
static bool can_stay(const ki_embedder *e, const ki_embed_request *q, int64_t dim) {
    ki_backend *backend = e->settings.backend;
    size_t used = 0, all = 0, row, bytes;
    kith_error ignored;
    if (q->on_host || !ki_forward_can_stay(e->forward)) return false;
    if (!ki_mul_size((size_t)dim, sizeof(float), &row) || !ki_mul_size((size_t)q->n, row, &bytes))
        return false;
    if (backend->type->queues->memory(backend, &used, &all, &ignored) != KITH_OK) return false;
    return bytes <= (all - used) / 2;
}

static void note_roles(const kith_dataset *set, ki_vectors *v) {
    for (int64_t i = 0; v->role && i < v->n; i++) v->role[i] = set->item[v->item[i]].role;
}

static kith_status make_room(const ki_embedder *e, const ki_embed_request *q, ki_vectors *v,
                             kith_error *err) {
    const int64_t dim = ki_forward_dim(e->forward);
    bool has_roles = false;
    KI_TRY(ki_vectors_init(e->settings.backend, can_stay(e, q, dim), q->n, dim, v, err));
    for (int64_t i = 0; i < q->n; i++) has_roles |= q->set->item[q->items[i]].role != KITH_ROLE_BOTH;
    return has_roles ? ki_alloc_or(&v->role, (size_t)q->n, sizeof *v->role, "roles", err) : KITH_OK;
}

static kith_status embed_all(ki_embedder *e, const ki_embed_request *q, ki_loader *loader, ki_vectors *v,
                             kith_error *err) {
    for (int64_t n_tried = 0;;) {
        ki_loader_batch batch;
        if (q->progress && q->progress(q->user, n_tried, q->n) != 0)
            return ki_fail(err, KITH_ECANCELED, "stopped on request");
        KI_TRY(ki_loader_next(loader, &batch, err));
        if (batch.n == 0) break;
        const ki_forward_batch input = {.n = batch.n, .data = batch.data, .window = batch.window};
        const int64_t first = v->n;
        KI_TRY(ki_forward_add(e->forward, &input, v, err));
        for (int64_t i = 0; i < batch.n; i++) {
            v->label[first + i] = batch.label[i];
            v->item[first + i] = batch.item[i];
        }
        n_tried = batch.n_tried;
    }
    note_roles(q->set, v);
    return ki_forward_finish(e->forward, err);
}

/* Keep what the loader knows about images it could not read, before it is freed. */
static kith_status note_bad(ki_embedder *e, const ki_embed_request *q, ki_loader *loader, kith_error *err) {
    KI_TRY(ki_alloc_or(&e->status, (size_t)q->n, sizeof *e->status, "statuses", err));
    e->n_items = q->n;
    e->n_bad = ki_loader_n_bad(loader);
    for (int64_t i = 0; i < q->n; i++)
        e->status[i] = (unsigned char)ki_loader_item_status(loader, q->items[i]);
    for (int64_t i = 0; i < KI_MOST_BAD_NAMED && ki_loader_bad(loader, i); i++) {
        e->bad[i] = ki_strdup(ki_loader_bad(loader, i));
        if (!e->bad[i]) return ki_fail_memory(err, strlen(ki_loader_bad(loader, i)), "a file's name");
    }
    return KITH_OK;
}

/* On a device the sum of squares says whether any value is not finite. */
static kith_status is_sound(ki_vectors *v, bool *ret_sound, kith_error *err) {
    ki_backend *backend = v->backend;
    kith_status status;
    void *sum = NULL;
    double found = 0;
    *ret_sound = v->n == 0;
    if (!v->device || v->n == 0) return KITH_OK;
    const ki_optim_run run = {.n = v->n * v->dim, .diff = v->device};
    KI_CHECK(backend->type->memory.alloc(backend, sizeof found, &sum, err));
    KI_CHECK(backend->type->optimizers.sum_squares(backend, 1, &run, sum, err));
    KI_CHECK(backend->type->memory.download(backend, sum, &found, sizeof found, err));
    KI_CHECK(backend->type->memory.sync(backend, err));
    *ret_sound = isfinite(found);
done:
    backend->type->memory.free(backend, sum);
    return status;
}

static kith_status check_finite(const ki_embedder *e, const kith_dataset *set, ki_vectors *v,
                                kith_error *err) {
    bool is_fine = false;
    const float *x = NULL;
    KI_TRY(is_sound(v, &is_fine, err));
    if (is_fine) return KITH_OK;
    KI_TRY(ki_vectors_host(v, &x, err));
    for (int64_t i = 0; i < v->n * v->dim; i++) {
        if (!isfinite(x[i]))
            return ki_fail(err, KITH_ENUMERIC, "the %s of %s holds %g; wanted finite numbers", e->tap,
                           set->item[v->item[i / v->dim]].path, (double)x[i]);
    }
    return KITH_OK;
}

kith_status ki_embedder_items(ki_embedder *e, const ki_embed_request *q, ki_vectors *ret, kith_error *err) {
    kith_status status;
    ki_loader *loader = NULL;
    ki_vectors v = {0};
    if (q->n < 1) return ki_fail(err, KITH_EINVAL, "there are no images to embed");
    KI_TRY(ki_preprocess_check(e->settings.net, q->set, err));
    forget(e);
    KI_CHECK(make_forward(e, q->tap, q->describer, e->format, err));
    KI_CHECK(start_loader(e, q, &loader, err));
    KI_CHECK(make_room(e, q, &v, err));
    KI_CHECK(embed_all(e, q, loader, &v, err));
    KI_CHECK(note_bad(e, q, loader, err));
    if (v.n == 0) {
        status = ki_fail(err, KITH_EFORMAT, "no image of %lld could be read; the first: %s", (long long)q->n,
                         ki_embedder_bad(e, 0));
        goto done;
    }
    KI_CHECK(check_finite(e, q->set, &v, err));
    *ret = v;
    v = (ki_vectors){0};
done:
    if (status != KITH_OK && e->forward) ki_forward_abandon(e->forward);
    ki_loader_free(loader);
    ki_vectors_release(&v);
    return status;
}

/* ---- ready-made input ---- */

/* `values` are those of the images from number `first` on. */
static kith_status check_values(const float *values, int64_t first, int64_t n, int64_t per_image,
                                const char *what, kith_error *err) {
    for (int64_t i = 0; i < n * per_image; i++) {
        if (!isfinite(values[i]))
            return ki_fail(err, KITH_ENUMERIC, "%s of image %lld holds %g at %lld; wanted finite numbers",
                           what, (long long)(first + i / per_image), (double)values[i],
                           (long long)(i % per_image));
    }
    return KITH_OK;
}

/* Images of the network's size, a batch at a time. */
static kith_status embed_floats(ki_embedder *e, const float *images, int64_t n, ki_vectors *to,
                                kith_error *err) {
    const ki_net *net = e->settings.net;
    const int64_t most = e->settings.batch, n_in = net->c * net->h * net->w;
    for (int64_t at = 0; at < n; at += most) {
        const ki_forward_batch batch = {.n = n - at < most ? n - at : most, .data = images + at * n_in};
        KI_TRY(ki_forward_add(e->forward, &batch, to, err));
    }
    return KITH_OK;
}

kith_status ki_embedder_floats(ki_embedder *e, const float *images, int64_t n, const char *tap,
                               float *ret_values, kith_error *err) {
    const ki_net *net = e->settings.net;
    KI_TRY(check_values(images, 0, n, net->c * net->h * net->w, "input", err));
    KI_TRY(make_forward(e, tap, NULL, KI_BATCH_FLOAT, err));
    ki_vectors to = {.dim = ki_forward_dim(e->forward), .n_room = n, .host = ret_values};
    kith_status status = embed_floats(e, images, n, &to, err);
    if (status == KITH_OK) status = ki_forward_finish(e->forward, err);
    if (status == KITH_OK) return check_values(ret_values, 0, n, to.dim, e->tap, err);
    ki_forward_abandon(e->forward);
    return status;
}

typedef struct preparing {
    const kith_transform *transform;
    int view;
    const ki_image *images;
    int64_t n_each;
    float *to;
    kith_status *status;
    kith_error *error;
} preparing;

static kith_status prepare(const preparing *p, int64_t i, kith_error *err) {
    kith_status status;
    ki_transform_scratch scratch = {0};
    ki_image copy = {0}, base = {0};
    const ki_image *from = &p->images[i];
    ki_rng rng = ki_rng_at(0, KI_RNG_AUGMENT, 0, 0); /* no random number is drawn from it */
    KI_CHECK(ki_image_shape(&copy, from->w, from->h, from->channels, err));
    memcpy(copy.data, from->data, (size_t)from->w * (size_t)from->h * (size_t)from->channels);
    copy.full_w = from->w, copy.full_h = from->h;
    if (p->transform->resize == KITH_RESIZE_PAD) {
        KI_CHECK(ki_transform_base(p->transform, NULL, &copy, &scratch, &base, err));
        ki_draw draw = ki_transform_draw(p->transform, base.w, base.h, &rng);
        if (p->view) ki_draw_test_view(p->transform, p->view, &draw);
        KI_CHECK(ki_transform_float(p->transform, &base, &draw, &scratch, p->to + i * p->n_each, err));
    } else {
        ki_draw draw = ki_transform_draw_image(p->transform, copy.w, copy.h);
        if (p->view) ki_draw_test_view(p->transform, p->view, &draw);
        KI_CHECK(ki_transform_float(p->transform, &copy, &draw, &scratch, p->to + i * p->n_each, err));
    }
done:
    ki_image_release(&copy);
    ki_image_release(&base);
    ki_transform_scratch_release(&scratch);
    return status;
}

static void prepare_some(void *context, int64_t begin, int64_t end) {
    const preparing *p = context;
    for (int64_t i = begin; i < end; i++) p->status[i] = prepare(p, i, &p->error[i]);
}

/* Prepared on the host by all threads, a batch at a time. */
static kith_status embed_images(ki_embedder *e, const ki_image *images, int64_t n, ki_vectors *to,
                                kith_error *err) {
    const ki_net *net = e->settings.net;
    const size_t most = (size_t)e->settings.batch;
    preparing p = {.transform = &e->settings.transform, .view = e->view, .n_each = net->c * net->h * net->w};
    kith_status status;
    KI_CHECK(ki_alloc_or(&p.to, most, (size_t)p.n_each * sizeof *p.to, "a batch", err));
    KI_CHECK(ki_alloc_or(&p.status, most, sizeof *p.status, "a batch", err));
    KI_CHECK(ki_zalloc_or(&p.error, most, sizeof *p.error, "a batch", err));
    for (int64_t at = 0; at < n; at += (int64_t)most) {
        const int64_t n_here = n - at < (int64_t)most ? n - at : (int64_t)most;
        p.images = images + at;
        ki_parallel_for(n_here, 1, prepare_some, &p);
        for (int64_t i = 0; i < n_here; i++) {
            if (p.status[i] == KITH_OK) continue;
            status = p.status[i];
            if (err) *err = p.error[i];
            ki_prefix(err, status, "image %lld", (long long)(at + i));
            goto done;
        }
        KI_CHECK(embed_floats(e, p.to, n_here, to, err));
    }
    KI_CHECK(ki_forward_finish(e->forward, err));
done:
    if (status != KITH_OK) ki_forward_abandon(e->forward);
    ki_free(p.to);
    ki_free(p.status);
    ki_free(p.error);
    return status;
}

kith_status ki_embedder_images(ki_embedder *e, const ki_image *images, int64_t n, const char *tap,
                               float *ret_values, kith_error *err) {
    KI_TRY(ki_preprocess_check(e->settings.net, NULL, err));
    KI_TRY(make_forward(e, tap, NULL, KI_BATCH_FLOAT, err));
    ki_vectors to = {.dim = ki_forward_dim(e->forward), .n_room = n, .host = ret_values};
    KI_TRY(embed_images(e, images, n, &to, err));
    return check_values(ret_values, 0, n, to.dim, e->tap, err);
}
