/* The public search: panels, tiles, lists, and the float64 look where it is wanted. */
#include <math.h>
#include <stdatomic.h>

#include "core/alloc.h"
#include "core/option.h"
#include "core/parallel.h"
#include "knn/refine.h"

struct kith_gallery {
    ki_panels panels;
    kith_knn_options options;
};

static const char *const metric_names[] = {"cosine", "inner", "sqeuclidean"};

const char *kith_metric_name(kith_metric metric) { return (unsigned)metric < 3 ? metric_names[metric] : "?"; }

kith_status kith_metric_parse(const char *name, kith_metric *ret_metric, kith_error *err) {
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, metric_names[i]) != 0) continue;
        *ret_metric = (kith_metric)i;
        return KITH_OK;
    }
    return ki_fail_unknown(err, "metric", name, metric_names, 3);
}

kith_status kith_gallery_new(const kith_array *rows, const kith_knn_options *options,
                             kith_gallery **ret_gallery, kith_error *err) {
    if ((unsigned)options->metric > KITH_SQEUCLIDEAN)
        return ki_fail(err, KITH_EINVAL, "metric %d is none", (int)options->metric);
    ki_rows checked;
    KI_TRY(ki_rows_init(rows, "gallery", &checked, err));
    if (checked.n == 0) return ki_fail(err, KITH_EINVAL, "the gallery is empty; wanted at least 1 row");
    kith_gallery *g = NULL;
    KI_TRY(ki_zalloc_or(&g, 1, sizeof *g, "gallery", err));
    g->options = *options;
    const kith_status status = ki_panels_init(&checked, options->metric, NULL, &g->panels, err);
    if (status != KITH_OK) {
        ki_free(g);
        return status;
    }
    *ret_gallery = g;
    return KITH_OK;
}

void kith_gallery_free(kith_gallery *gallery) {
    if (!gallery) return;
    ki_panels_release(&gallery->panels);
    ki_free(gallery);
}

typedef struct search {
    const ki_panels *query, *gallery;
    const int32_t *self;
    ki_topk topk;
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
    const ki_key *keys = ki_topk_finish(&s->topk, i, slot, &n);
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

static kith_status run(const kith_gallery *g, const ki_panels *query, const int32_t *self, int64_t k,
                       kith_neighbor *ret_neighbors, kith_error *err) {
    kith_status status = KITH_OK;
    search s = {.query = query, .gallery = &g->panels, .self = self, .k = k, .neighbors = ret_neighbors};
    s.refines = g->options.exact || g->options.metric == KITH_SQEUCLIDEAN;
    s.refine = (ki_refine){query, &g->panels};
    const int64_t n_gallery = g->panels.rows.n;
    int64_t k_list = s.refines && k < n_gallery ? k + ki_refine_spare(k) : k;
    if (k_list > n_gallery) k_list = n_gallery;
    const bool in_place = k_list == k && !s.refines;
    KI_CHECK(ki_topk_init(query->rows.n, k_list, in_place ? ret_neighbors : NULL, &s.topk, err));
    s.topk.self = self;
    s.topk.is_square = query == &g->panels;
    if (s.refines) {
        s.ranked_stride = (size_t)n_gallery;
        size_t row_bytes = 0;
        ki_mul_size(s.ranked_stride, sizeof *s.ranked, &row_bytes);
        KI_CHECK(ki_alloc_or(&s.ranked, (size_t)ki_tiles_slots(), row_bytes, "re-ranking scratch", err));
    }
    const ki_tiles tiles = {.rows = query,
                            .cols = &g->panels,
                            .kernel = ki_kernel_best(),
                            .consume = ki_topk_consume,
                            .context = &s.topk,
                            .progress = g->options.progress,
                            .user = g->options.user};
    KI_CHECK(ki_tiles_run(&tiles, err));
    ki_parallel_for(ki_tiles_slots(), 1, finish_rows, &s);
done:
    ki_free(s.ranked);
    ki_topk_release(&s.topk);
    return status;
}

static kith_status check_k(int64_t k, kith_error *err) {
    if (k < 1 || k > INT32_MAX)
        return ki_fail(err, KITH_EINVAL, "k is %lld; wanted at least 1", (long long)k);
    return KITH_OK;
}

kith_status kith_gallery_search(const kith_gallery *gallery, const kith_array *query, const int32_t *self,
                                int64_t k, kith_neighbor *ret_neighbors, kith_error *err) {
    KI_TRY(check_k(k, err));
    ki_rows rows;
    KI_TRY(ki_rows_init(query, "query", &rows, err));
    if (rows.dim != gallery->panels.rows.dim)
        return ki_fail(err, KITH_ESHAPE, "query rows have %lld values, gallery rows %lld",
                       (long long)rows.dim, (long long)gallery->panels.rows.dim);
    for (int64_t i = 0; self && i < rows.n; i++) {
        if (self[i] < -1 || self[i] >= gallery->panels.rows.n)
            return ki_fail(err, KITH_EINVAL, "self[%lld] is %d; wanted -1 or a row below %lld", (long long)i,
                           (int)self[i], (long long)gallery->panels.rows.n);
    }
    ki_panels panels;
    KI_TRY(ki_panels_init(&rows, gallery->options.metric, &gallery->panels, &panels, err));
    const kith_status status = run(gallery, &panels, self, k, ret_neighbors, err);
    ki_panels_release(&panels);
    return status;
}

kith_status kith_gallery_self(const kith_gallery *gallery, int64_t k, kith_neighbor *ret_neighbors,
                              kith_error *err) {
    KI_TRY(check_k(k, err));
    return run(gallery, &gallery->panels, NULL, k, ret_neighbors, err);
}
