/* One pass over all images for each view, whose rows are added up. */
#include "embed/views.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "data/loader/cache.h"

static const size_t most_cached = (size_t)512 << 20;

/* A square that is no larger than the crop has one crop, however its corners are called. */
static bool has_one_crop(const kith_transform *t) {
    return (t->resize == KITH_RESIZE_SQUASH || t->resize == KITH_RESIZE_PAD) && t->resize_to <= t->crop_to;
}

kith_status ki_views_check(int64_t n_views, const kith_transform *transform, kith_error *err) {
    enum { WITHOUT_CORNERS = 2 };
    if (n_views < 1 || n_views > KI_N_TEST_VIEWS)
        return ki_fail(err, KITH_EINVAL, "%lld views of an image; wanted 1 to %d", (long long)n_views,
                       KI_N_TEST_VIEWS);
    if (n_views <= WITHOUT_CORNERS || !transform) return KITH_OK;
    if (has_one_crop(transform)) {
        ki_fail(
            err, KITH_EINVAL,
            "%lld views of images that are resized to squares of %d pixels, and crops of %d have no corners",
            (long long)n_views, (int)transform->resize_to, (int)transform->crop_to);
        return ki_hint(err, KITH_EINVAL, "wanted at most 2 views, or a square larger than the crop");
    }
    if (transform->resize != KITH_RESIZE_NONE) return KITH_OK;
    ki_fail(err, KITH_EINVAL,
            "%lld views of images that are not resized; their corners have nothing in common",
            (long long)n_views);
    return ki_hint(err, KITH_EINVAL, "wanted at most 2 views, or a resizing such as shorter256");
}

/* ---- adding up ---- */

typedef struct sum {
    const float *rows;
    float *to;
    int64_t dim;
    bool adds;
} sum;

static void add_rows(void *context, int64_t begin, int64_t end) {
    const sum *s = context;
    for (int64_t i = begin; i < end; i++) {
        const float *row = s->rows + i * s->dim;
        float *to = s->to + i * s->dim;
        double square = 0;
        for (int64_t k = 0; k < s->dim; k++) square += (double)row[k] * (double)row[k];
        const float scale = square > 0 ? (float)(1 / sqrt(square)) : 0;
        for (int64_t k = 0; k < s->dim; k++) to[k] = s->adds ? to[k] + scale * row[k] : scale * row[k];
    }
}

/* to += the rows, each of length 1; or to = them. */
static void add(const float *rows, int64_t n, int64_t dim, bool adds, float *to) {
    sum s = {.rows = rows, .to = to, .dim = dim, .adds = adds};
    ki_parallel_for(n, 64, add_rows, &s);
}

/* ---- items ---- */

typedef struct passes {
    kith_progress_fn progress;
    void *user;
    int64_t view, n_views;
} passes;

/* All passes as one. */
static int show(void *user, int64_t done, int64_t all) {
    const passes *p = user;
    return p->progress(p->user, (p->view * all + done) / p->n_views, all);
}

static kith_status add_view(ki_embedder *e, const ki_embed_request *q, ki_vectors *first, float *total,
                            kith_error *err) {
    ki_vectors v = {0};
    const float *rows = NULL;
    KI_TRY(ki_embedder_items(e, q, &v, err));
    kith_status status = ki_vectors_host(&v, &rows, err);
    if (status == KITH_OK &&
        (v.n != first->n || memcmp(v.item, first->item, (size_t)v.n * sizeof *v.item) != 0))
        status = ki_fail(err, KITH_EIO, "%s: other images could be read the second time", q->set->root);
    if (status == KITH_OK) add(rows, v.n, v.dim, true, total);
    ki_vectors_release(&v);
    return status;
}

static kith_status all_views(ki_embedder *e, const ki_embed_request *request, int64_t n_views,
                             ki_cache *cache, ki_vectors *ret, kith_error *err) {
    kith_status status;
    ki_embed_request q = *request;
    ki_vectors v = {0};
    float *total = NULL;
    passes p = {request->progress, request->user, 0, n_views};
    const float *rows = NULL;
    q.on_host = true;
    if (q.progress) q.progress = show, q.user = &p;
    ki_embedder_set_view(e, 0, cache);
    KI_CHECK(ki_embedder_items(e, &q, &v, err));
    KI_CHECK(ki_vectors_host(&v, &rows, err));
    KI_CHECK(ki_alloc_or(&total, (size_t)v.n, (size_t)v.dim * sizeof *total, "vectors", err));
    add(rows, v.n, v.dim, false, total);
    for (p.view = 1; p.view < n_views; p.view++) {
        ki_embedder_set_view(e, (int)p.view, cache);
        KI_CHECK(add_view(e, &q, &v, total, err));
    }
    add(total, v.n, v.dim, false, v.host);
    *ret = v;
    v = (ki_vectors){0};
done:
    ki_free(total);
    ki_vectors_release(&v);
    return status;
}

kith_status ki_views_items(ki_embedder *e, const ki_embed_request *q, int64_t n_views, ki_vectors *ret,
                           kith_error *err) {
    ki_cache *cache = NULL;
    if (n_views <= 1 || q->set->rows) return ki_embedder_items(e, q, ret, err);
    KI_TRY(ki_cache_new((int64_t)q->set->n_items, most_cached, NULL, &cache, err));
    const kith_status status = all_views(e, q, n_views, cache, ret, err);
    ki_embedder_set_view(e, 0, NULL);
    ki_cache_free(cache);
    return status;
}

/* ---- decoded images ---- */

kith_status ki_views_images(ki_embedder *e, const ki_image *images, int64_t n, const char *tap,
                            int64_t n_views, int64_t dim, float *ret_values, kith_error *err) {
    kith_status status = KITH_OK;
    float *total = NULL;
    if (n_views <= 1) return ki_embedder_images(e, images, n, tap, ret_values, err);
    KI_TRY(ki_alloc_or(&total, (size_t)n, (size_t)dim * sizeof *total, "vectors", err));
    for (int64_t view = 0; view < n_views && status == KITH_OK; view++) {
        ki_embedder_set_view(e, (int)view, NULL);
        status = ki_embedder_images(e, images, n, tap, ret_values, err);
        if (status == KITH_OK) add(ret_values, n, dim, view > 0, total);
    }
    ki_embedder_set_view(e, 0, NULL);
    if (status == KITH_OK) add(total, n, dim, false, ret_values);
    ki_free(total);
    return status;
}
