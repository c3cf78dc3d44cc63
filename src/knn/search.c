/* The public search: panels, tiles, lists, and the float64 check if it is asked for. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/parallel.h"
#include "knn/device.h"
#include "knn/gallery.h"
#include "knn/refine.h"

struct kith_gallery {
    ki_panels panels;
    kith_knn_options options;
    ki_knn_device device;
    ki_device_rows *loaded;
    pthread_mutex_t *lock; /* of the device, which serves one thread at a time */
};

static kith_status open_device(kith_gallery *g, kith_error *err) {
    KI_TRY(ki_knn_device_open(g->options.device, &g->device, err));
    if (!g->device.type) return KITH_OK;
    ki_panels_any_order(&g->panels);
    KI_TRY(ki_alloc_or(&g->lock, 1, sizeof *g->lock, "a lock", err));
    if (pthread_mutex_init(g->lock, NULL) != 0) {
        ki_free(g->lock);
        g->lock = NULL;
        return ki_fail_memory(err, sizeof *g->lock, "a lock");
    }
    return g->device.type->load(g->device.backend, &g->panels, (ki_device_tile){0}, &g->loaded, err);
}

KI_OPTIONS_INIT(kith_knn_options, 0)

kith_status kith_gallery_new(const kith_array *rows, const kith_knn_options *options,
                             kith_gallery **ret_gallery, kith_error *err) {
    KI_NEED(err, rows, ret_gallery);
    KI_OPTIONS_TAKE(kith_knn_options, o, options, err);
    if ((unsigned)o.metric > KITH_SQEUCLIDEAN)
        return ki_fail(err, KITH_EINVAL, "metric %d is none", (int)o.metric);
    kith_status status = KITH_OK;
    ki_rows checked;
    KI_TRY(ki_rows_init(rows, "gallery", &checked, err));
    if (checked.n == 0) return ki_fail(err, KITH_EINVAL, "the gallery is empty; wanted at least 1 row");
    kith_gallery *g = NULL;
    KI_TRY(ki_zalloc_or(&g, 1, sizeof *g, "gallery", err));
    g->options = o;
    KI_CHECK(ki_panels_init(&checked, o.metric, NULL, &g->panels, err));
    KI_CHECK(open_device(g, err));
    *ret_gallery = g;
    return KITH_OK;
done:
    kith_gallery_free(g);
    return status;
}

void kith_gallery_free(kith_gallery *g) {
    if (!g) return;
    if (g->device.type) g->device.type->unload(g->device.backend, g->loaded);
    ki_knn_device_close(&g->device);
    if (g->lock) pthread_mutex_destroy(g->lock);
    ki_free(g->lock);
    ki_panels_release(&g->panels);
    ki_free(g);
}

typedef struct search {
    const ki_panels *query, *gallery;
    const int32_t *self;
    const ki_gallery_ask *ask;
    ki_topk topk;
    ki_key *keys; /* [queries, k_list] from a device, instead of topk */
    int64_t k_list;
    ki_refine refine;
    bool refines;
    ki_ranked *ranked; /* [slots, gallery rows + spare] when refining */
    size_t ranked_stride;
    int64_t k;
    kith_neighbor *neighbors;
    atomic_int_least64_t next;
} search;

enum { FINISH_ROWS = 64 };

static void finish_row(search *s, int64_t i, int slot) {
    int64_t n = 0;
    const ki_key *keys = s->keys ? s->keys + i * s->k_list : ki_topk_finish(&s->topk, i, slot, &n);
    while (s->keys && n < s->k_list && keys[n]) n++;
    kith_neighbor *to = s->neighbors + i * s->k;
    if (s->refines) {
        const int64_t self = s->query == s->gallery ? i : s->self ? s->self[i] : -1;
        ki_ranked *list = s->ranked + (size_t)slot * s->ranked_stride;
        n = ki_refine_row(&s->refine, i, self, keys, n, s->k, list);
        for (int64_t j = 0; j < n; j++)
            to[j] = (kith_neighbor){(float)ki_score_shown(s->gallery->metric, list[j].score), list[j].index};
    } else {
        for (int64_t j = 0; j < n; j++)
            to[j] = (kith_neighbor){(float)ki_score_shown(s->gallery->metric, ki_key_score(keys[j])),
                                    ki_key_index(keys[j])};
    }
    for (int64_t j = n; j < s->k; j++) to[j] = (kith_neighbor){NAN, -1};
}

static void finish_rows(void *context, int64_t begin, int64_t end) {
    (void)end;
    search *s = context;
    for (;;) {
        const int64_t i0 = atomic_fetch_add(&s->next, FINISH_ROWS);
        if (i0 >= s->query->rows.n) return;
        for (int64_t i = i0; i < s->query->rows.n && i < i0 + FINISH_ROWS; i++) finish_row(s, i, (int)begin);
    }
}

static kith_status begin_lists(const search *s, void *lists, ki_topk *ret_topk, kith_error *err) {
    KI_TRY(
        ki_topk_init(s->query->rows.n, s->k_list, lists, (size_t)s->k * sizeof *s->neighbors, ret_topk, err));
    ret_topk->self = s->self;
    ret_topk->is_square = s->query == s->gallery;
    ret_topk->allowed = s->ask->allowed;
    return KITH_OK;
}

/* The lists of all queries, from the host's tiles … */
static kith_status list_here(search *s, kith_error *err) {
    const bool in_place = s->k_list == s->k && !s->refines;
    KI_TRY(begin_lists(s, in_place ? s->neighbors : NULL, &s->topk, err));
    const ki_tiles tiles = {.rows = s->query,
                            .cols = s->gallery,
                            .kernel = ki_knn_kernel_best(),
                            .consume = ki_topk_consume,
                            .context = &s->topk,
                            .progress = s->ask->progress,
                            .user = s->ask->user};
    return ki_tiles_run(&tiles, err);
}

/* Few queries for the threads there are: every worker has lists of its own, of the columns it came to. The k best of
 * them all do not depend on who came to what. */
enum { FEW_MOST_K = 1024 };

static bool is_few(const search *s) {
    return s->query != s->gallery && ki_tiles_slots() > 1 && s->k_list <= FEW_MOST_K &&
           s->query->rows.n <= (int64_t)KI_STRIPE * (ki_tiles_slots() - 1) &&
           s->gallery->n_blocks >= 2 * (int64_t)ki_tiles_slots();
}

static void consume_by_slot(void *context, const ki_stripe *stripe) {
    ki_topk *lists = context;
    ki_topk_consume(&lists[stripe->slot], stripe);
}

static kith_status list_few(search *s, kith_error *err) {
    kith_status status = KITH_OK;
    const int n_slots = ki_tiles_slots();
    ki_topk *lists = NULL;
    KI_TRY(ki_zalloc_or(&lists, (size_t)n_slots, sizeof *lists, "neighbour lists", err));
    for (int i = 0; i < n_slots; i++) KI_CHECK(begin_lists(s, NULL, &lists[i], err));
    const ki_tiles tiles = {.rows = s->query,
                            .cols = s->gallery,
                            .kernel = ki_knn_kernel_best(),
                            .consume = consume_by_slot,
                            .context = lists,
                            .progress = s->ask->progress,
                            .user = s->ask->user,
                            .by_cols = true};
    KI_CHECK(ki_tiles_run(&tiles, err));
    for (int l = 1; l < n_slots; l++) {
        for (int64_t i = 0; i < s->query->rows.n; i++) {
            int64_t n = 0;
            const ki_key *keys = ki_topk_finish(&lists[l], i, 0, &n);
            for (int64_t j = 0; j < n; j++) ki_topk_offer(&lists[0], i, keys[j], 0);
        }
    }
    s->topk = lists[0];
    lists[0] = (ki_topk){0};
done:
    for (int i = 0; i < n_slots; i++) ki_topk_release(&lists[i]);
    ki_free(lists);
    return status;
}

/* … or from a device. */
static kith_status list_there(const kith_gallery *g, search *s, kith_error *err) {
    kith_status status = KITH_OK;
    const ki_knn_device *d = &g->device;
    ki_device_rows *query = NULL;
    size_t bytes;
    if (!ki_mul_size((size_t)s->k_list, sizeof *s->keys, &bytes))
        return ki_fail_memory(err, SIZE_MAX, "neighbour lists");
    KI_TRY(ki_alloc_or(&s->keys, (size_t)s->query->rows.n, bytes, "neighbour lists", err));
    const bool is_square = s->query == s->gallery;
    pthread_mutex_lock(g->lock);
    if (!is_square) KI_CHECK(d->type->load(d->backend, s->query, (ki_device_tile){0}, &query, err));
    const ki_device_best ask = {.rows = is_square ? g->loaded : query,
                                .cols = g->loaded,
                                .self = s->self,
                                .is_square = is_square,
                                .k = s->k_list,
                                .ret_keys = s->keys,
                                .progress = s->ask->progress,
                                .user = s->ask->user};
    status = d->type->best(d->backend, &ask, err);
done:
    d->type->unload(d->backend, query);
    pthread_mutex_unlock(g->lock);
    return status;
}

static kith_status run(const kith_gallery *g, const ki_panels *query, const int32_t *self, int64_t k,
                       const ki_gallery_ask *ask, kith_neighbor *ret_neighbors, kith_error *err) {
    kith_status status = KITH_OK;
    search s = {
        .query = query, .gallery = &g->panels, .self = self, .ask = ask, .k = k, .neighbors = ret_neighbors};
    s.refines = g->options.exact || g->options.metric == KITH_SQEUCLIDEAN;
    const int64_t n_gallery = g->panels.rows.n;
    s.refine = (ki_refine){query, &g->panels, ask->allowed, ask->allowed ? ask->n_allowed : n_gallery};
    s.k_list = s.refines && k < n_gallery ? k + ki_refine_spare(k) : k;
    if (s.k_list > n_gallery) s.k_list = n_gallery;
    KI_CHECK(g->device.type ? list_there(g, &s, err) : is_few(&s) ? list_few(&s, err) : list_here(&s, err));
    if (s.refines) {
        s.ranked_stride = (size_t)n_gallery;
        size_t row_bytes = 0;
        ki_mul_size(s.ranked_stride, sizeof *s.ranked, &row_bytes);
        KI_CHECK(ki_alloc_or(&s.ranked, (size_t)ki_tiles_slots(), row_bytes, "re-ranking scratch", err));
    }
    ki_parallel_for(ki_tiles_slots(), 1, finish_rows, &s);
done:
    ki_free(s.ranked);
    ki_free(s.keys);
    ki_topk_release(&s.topk);
    return status;
}

static kith_status check_k(int64_t k, kith_error *err) {
    if (k < 1 || k > INT32_MAX)
        return ki_fail(err, KITH_EINVAL, "k is %lld; wanted at least 1", (long long)k);
    return KITH_OK;
}

kith_status ki_gallery_search(const kith_gallery *gallery, const kith_array *query, int64_t k,
                              const ki_gallery_ask *ask, kith_neighbor *ret_neighbors, kith_error *err) {
    const int64_t *self = ask->self;
    KI_TRY(check_k(k, err));
    if (ask->allowed && gallery->device.type)
        return ki_fail(err, KITH_EUNSUPPORTED, "only the host searches some rows of a gallery");
    ki_rows rows;
    KI_TRY(ki_rows_init(query, "query", &rows, err));
    if (rows.dim != gallery->panels.rows.dim)
        return ki_fail(err, KITH_ESHAPE, "query rows have %lld values, gallery rows %lld",
                       (long long)rows.dim, (long long)gallery->panels.rows.dim);
    for (int64_t i = 0; self && i < rows.n; i++) {
        if (self[i] < -1 || self[i] >= gallery->panels.rows.n)
            return ki_fail(err, KITH_EINVAL, "self[%lld] is %lld; wanted -1 or a row below %lld",
                           (long long)i, (long long)self[i], (long long)gallery->panels.rows.n);
    }
    kith_status status;
    int32_t *own = NULL; /* rows are fewer than 2^31: kernels use 32 bits */
    ki_panels panels = {0};
    if (self) KI_CHECK(ki_alloc_or(&own, (size_t)rows.n, sizeof *own, "query rows", err));
    for (int64_t i = 0; self && i < rows.n; i++) own[i] = (int32_t)self[i];
    KI_CHECK(ki_panels_init(&rows, gallery->options.metric, &gallery->panels, &panels, err));
    if (gallery->device.type) ki_panels_any_order(&panels);
    status = run(gallery, &panels, own, k, ask, ret_neighbors, err);
done:
    ki_panels_release(&panels);
    ki_free(own);
    return status;
}

kith_status kith_gallery_search(const kith_gallery *gallery, const kith_array *query, const int64_t *self,
                                int64_t k, kith_neighbor *ret_neighbors, kith_error *err) {
    KI_NEED(err, gallery, query, ret_neighbors);
    const ki_gallery_ask ask = {
        .self = self, .progress = gallery->options.progress, .user = gallery->options.user};
    return ki_gallery_search(gallery, query, k, &ask, ret_neighbors, err);
}

kith_status kith_gallery_self(const kith_gallery *gallery, int64_t k, kith_neighbor *ret_neighbors,
                              kith_error *err) {
    KI_NEED(err, gallery, ret_neighbors);
    KI_TRY(check_k(k, err));
    const ki_gallery_ask ask = {.progress = gallery->options.progress, .user = gallery->options.user};
    return run(gallery, &gallery->panels, NULL, k, &ask, ret_neighbors, err);
}
