/* Searching an index in a folder: what may be found, and by which tier. */
#include "base/alloc.h"
#include "search/hit_list.h"
#include "search/local/local.h"

enum {
    BATCH_NEIGHBORS = 1 << 22, /* neighbours in memory at a time */
    RANGE_LEAST_K = 1000, /* with a limit and codes: for more hits than this, codes are searched for all */
};

typedef struct asked {
    ki_view *view;
    const kith_search_options *o;
    ki_allowed allowed;
    int64_t *self; /* rows; NULL: none */
    ki_hit_list hits;
} asked;

/* ---- one batch of queries ---- */

/* More recall than the index was made for is an exact search. */
static bool is_exact(const ki_snapshot *s, const kith_search_options *o) {
    return !ki_coded_is_there(s) || o->exact || o->recall > s->manifest.recall;
}

static kith_status search_exact(const asked *a, const kith_array *query, const int64_t *self, int64_t k,
                                kith_neighbor *ret_neighbors, kith_error *err) {
    const ki_gallery_ask ask = {.self = self,
                                .allowed = a->allowed.bits,
                                .n_allowed = a->allowed.n,
                                .progress = a->o->progress,
                                .user = a->o->user};
    return ki_exact_search(&a->view->exact, query, k, &ask, a->o->device, ret_neighbors, err);
}

static ki_scan_options scan_options(const asked *a, const ki_scan_effort *effort, const int64_t *self) {
    const bool is_all = a->allowed.n == a->view->snapshot->n_rows;
    return (ki_scan_options){.effort = *effort,
                             .allowed = is_all ? NULL : a->allowed.bits,
                             .n_allowed = a->allowed.n,
                             .self = self};
}

static kith_status search_codes(const asked *a, const kith_array *query, const int64_t *self, int64_t k,
                                kith_neighbor *ret_neighbors, kith_error *err) {
    ki_scan_set set;
    ki_scan_effort effort;
    kith_array rows = {0};
    KI_TRY(ki_coded_set(&a->view->coded, &set, &effort, err));
    const ki_scan_options options = scan_options(a, &effort, self);
    if (query->dtype != KITH_F32) KI_TRY(kith_array_convert(query, KITH_F32, &rows, err));
    const kith_status status = ki_scan_search(&set, query->dtype == KITH_F32 ? query->data : rows.data,
                                              query->dim[0], k, &options, ret_neighbors, err);
    kith_array_release(&rows);
    return status;
}

static kith_status search_tier(const asked *a, const kith_array *query, const int64_t *self, int64_t k,
                               kith_neighbor *ret_neighbors, kith_error *err) {
    return (is_exact(a->view->snapshot, a->o) ? search_exact : search_codes)(a, query, self, k, ret_neighbors,
                                                                             err);
}

static bool is_cut(const asked *a, const kith_neighbor *lists, int64_t n, int64_t k) {
    for (int64_t i = 0; i < n; i++) {
        if (ki_hit_list_is_cut(&a->hits, lists + i * k, k)) return true;
    }
    return false;
}

static kith_status search_batch(asked *a, const kith_array *query, int64_t first, int64_t n, int64_t k,
                                bool *ret_is_cut, kith_error *err) {
    kith_status status = KITH_OK;
    kith_neighbor *lists = NULL;
    size_t list_bytes = 0;
    if (!ki_mul_size((size_t)k, sizeof *lists, &list_bytes)) return ki_fail_memory(err, SIZE_MAX, "hits");
    const size_t row_bytes = (size_t)query->dim[1] * kith_dtype_bytes(query->dtype);
    kith_array part = *query;
    part.dim[0] = n;
    part.data = (char *)query->data + (size_t)first * row_bytes;
    KI_CHECK(ki_alloc_or(&lists, (size_t)n, list_bytes, "hits", err));
    KI_CHECK(search_tier(a, &part, a->self ? a->self + first : NULL, k, lists, err));
    *ret_is_cut = is_cut(a, lists, n, k);
    for (int64_t i = 0; i < n && !*ret_is_cut; i++)
        KI_CHECK(ki_hit_list_add(&a->hits, first + i, lists + i * k, k, a->view->snapshot->ids, err));
done:
    ki_free(lists);
    return status;
}

/* ---- all of them ---- */

/* All hits within a limit, from the codes. */
static kith_status search_range(asked *a, const kith_array *query, kith_error *err) {
    kith_status status = KITH_OK;
    ki_scan_set set;
    ki_scan_effort effort;
    kith_array rows = {0};
    kith_neighbor *list = NULL;
    KI_CHECK(ki_coded_set(&a->view->coded, &set, &effort, err));
    KI_CHECK(kith_array_convert(query, KITH_F32, &rows, err));
    for (int64_t i = 0; i < query->dim[0]; i++) {
        int64_t n = 0;
        const ki_scan_options options = scan_options(a, &effort, a->self ? a->self + i : NULL);
        ki_free(list);
        list = NULL;
        KI_CHECK(ki_scan_range(&set, (const float *)rows.data + i * rows.dim[1], a->o->limit, &options, &list,
                               &n, err));
        KI_CHECK(ki_hit_list_add(&a->hits, i, list, n < a->hits.most ? n : a->hits.most,
                                 a->view->snapshot->ids, err));
    }
done:
    ki_free(list);
    kith_array_release(&rows);
    return status;
}

static kith_status search_all(asked *a, const kith_array *query, kith_error *err) {
    const int64_t n = query->dim[0];
    const ki_snapshot *s = a->view->snapshot;
    /* Codes of the first values say nothing certain of whole vectors: more and more hits are asked for instead. */
    if (a->o->has_limit && a->hits.most > RANGE_LEAST_K && !is_exact(s, a->o) && s->manifest.first == 0)
        return search_range(a, query, err);
    int64_t k = ki_hit_list_first_k(&a->hits);
    for (int64_t first = 0; first < n;) {
        int64_t step = BATCH_NEIGHBORS / k;
        if (step < 1) step = 1;
        if (step > n - first) step = n - first;
        bool is_cut = false;
        KI_TRY(search_batch(a, query, first, step, k, &is_cut, err));
        if (is_cut)
            k = ki_hit_list_next_k(&a->hits, k);
        else
            first += step;
    }
    return KITH_OK;
}

static kith_status find_selves(asked *a, int64_t n, kith_error *err) {
    if (!a->o->self) return KITH_OK;
    KI_TRY(ki_alloc_or(&a->self, (size_t)n, sizeof *a->self, "queries", err));
    for (int64_t i = 0; i < n; i++) a->self[i] = ki_snapshot_row(a->view->snapshot, a->o->self[i]);
    return KITH_OK;
}

kith_status ki_local_search(ki_store *store, const kith_array *query, const ki_where *where,
                            const kith_search_options *o, kith_hits *ret_hits, kith_error *err) {
    kith_status status = KITH_OK;
    asked a = {.view = ki_local_of(store)->view, .o = o};
    const ki_snapshot *s = a.view->snapshot;
    const int64_t n = query->dim[0];
    KI_CHECK(ki_view_allowed(a.view, where, &a.allowed, err));
    KI_CHECK(find_selves(&a, n, err));
    KI_CHECK(ki_hit_list_init(&a.hits, o, s->manifest.metric, n, a.allowed.n, err));
    if (ki_hit_list_wants(&a.hits)) KI_CHECK(search_all(&a, query, err));
    ki_hit_list_take(&a.hits, is_exact(s, o), ret_hits);
done:
    ki_hit_list_release(&a.hits);
    ki_free(a.self);
    ki_free(a.allowed.own);
    return status;
}
