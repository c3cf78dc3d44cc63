/* Searching: what may be found, which tier, and the lists as the caller wants them. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/argument.h"
#include "knn/rows.h"
#include "search/coded.h"
#include "search/index_handle.h"

enum {
    BATCH_NEIGHBORS = 1 << 22, /* neighbours in memory at a time */
    LIMIT_FIRST_K = 64,        /* with a limit: hits that are looked for first … */
    LIMIT_FACTOR = 8,          /* … and so many times as many when all of them are within it */
    RANGE_LEAST_K = 1000, /* with a limit and codes: for more hits than this, codes are searched for all */
};

typedef struct asked {
    ki_view *view;
    const kith_search_options *o;
    ki_allowed allowed;
    int64_t *self; /* rows; NULL: none */
    int64_t most;  /* neighbours of a query that can be wanted */
    /* results */
    kith_hits hits;
    size_t n_hits, capacity;
} asked;

/* ---- one batch of queries ---- */

static bool is_within(const asked *a, double score) {
    if (!a->o->has_limit) return true;
    return a->view->snapshot->manifest.metric == KITH_SQEUCLIDEAN ? score <= a->o->limit
                                                                  : score >= a->o->limit;
}

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

static kith_status collect(asked *a, int64_t query, const kith_neighbor *list, int64_t k, kith_error *err) {
    const int64_t *ids = a->view->snapshot->ids;
    KI_TRY(ki_grow(&a->hits.hits, &a->capacity, a->n_hits + (size_t)k, sizeof *a->hits.hits, "hits", err));
    for (int64_t j = a->o->offset; j < k && list[j].index >= 0 && is_within(a, list[j].score); j++)
        a->hits.hits[a->n_hits++] = (kith_hit){ids[list[j].index], list[j].score};
    a->hits.begin[query + 1] = (int64_t)a->n_hits;
    return KITH_OK;
}

/* Could a query of the batch have more hits than the k that were asked for? */
static bool is_cut(const asked *a, const kith_neighbor *lists, int64_t n, int64_t k) {
    for (int64_t i = 0; i < n; i++) {
        const kith_neighbor *last = &lists[(i + 1) * k - 1];
        if (last->index >= 0 && is_within(a, last->score)) return true;
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
    *ret_is_cut = k < a->most && is_cut(a, lists, n, k);
    for (int64_t i = 0; i < n && !*ret_is_cut; i++) KI_CHECK(collect(a, first + i, lists + i * k, k, err));
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
        KI_CHECK(collect(a, i, list, n < a->most ? n : a->most, err));
    }
done:
    ki_free(list);
    kith_array_release(&rows);
    return status;
}

static kith_status search_all(asked *a, const kith_array *query, kith_error *err) {
    const int64_t n = query->dim[0];
    if (a->o->has_limit && a->most > RANGE_LEAST_K && !is_exact(a->view->snapshot, a->o))
        return search_range(a, query, err);
    int64_t k = a->most;
    if (a->o->has_limit && k > LIMIT_FIRST_K + a->o->offset) k = LIMIT_FIRST_K + a->o->offset;
    for (int64_t first = 0; first < n;) {
        int64_t step = BATCH_NEIGHBORS / k;
        if (step < 1) step = 1;
        if (step > n - first) step = n - first;
        bool is_cut = false;
        KI_TRY(search_batch(a, query, first, step, k, &is_cut, err));
        if (is_cut)
            k = k > a->most / LIMIT_FACTOR ? a->most : k * LIMIT_FACTOR;
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

static kith_status check(const kith_index *index, const kith_array *query, const kith_search_options *o,
                         kith_error *err) {
    const ki_manifest *m = ki_index_committed(index);
    if (o->k < 1 || o->offset < 0)
        return ki_fail(err, KITH_EINVAL, "k is %lld and offset %lld; wanted at least 1 and 0",
                       (long long)o->k, (long long)o->offset);
    if (o->has_limit && isnan(o->limit)) return ki_fail(err, KITH_EINVAL, "the limit is not a number");
    if (!(o->recall >= 0 && o->recall < 1))
        return ki_fail(err, KITH_EINVAL, "recall is %g; wanted 0 or more and less than 1", o->recall);
    ki_rows rows;
    KI_TRY(ki_rows_init(query, "query", &rows, err));
    if (rows.dim != m->dim)
        return ki_fail(err, KITH_ESHAPE, "query rows have %lld values; the index has %lld",
                       (long long)rows.dim, (long long)m->dim);
    return KITH_OK;
}

kith_status kith_index_search(const kith_index *index, const kith_array *query,
                              const kith_search_options *options, kith_hits *ret_hits, kith_error *err) {
    KI_NEED(err, index, query, ret_hits);
    KI_OPTIONS_TAKE(kith_search_options, o, options, err);
    KI_TRY(check(index, query, &o, err));
    kith_status status = KITH_OK;
    ki_threads_before before = {0};
    asked a = {.view = index->view, .o = &o};
    const int64_t n = query->dim[0];
    KI_TRY(ki_threads_for(o.n_threads, &before, err));
    if (index->remote) {
        status = ki_remote_search(index->remote, query, &o, ret_hits, err);
        goto done;
    }
    KI_CHECK(ki_view_allowed(a.view, o.where, ki_index_kept_roots(index), &a.allowed, err));
    KI_CHECK(find_selves(&a, n, err));
    KI_CHECK(ki_zalloc_or(&a.hits.begin, (size_t)n + 1, sizeof *a.hits.begin, "hits", err));
    a.most = o.k < a.allowed.n - o.offset ? o.k + o.offset : a.allowed.n;
    if (a.most > o.offset) KI_CHECK(search_all(&a, query, err));
    a.hits.n_queries = n;
    a.hits.n_allowed = a.allowed.n;
    a.hits.is_exact = is_exact(a.view->snapshot, &o);
    *ret_hits = a.hits;
    a.hits = (kith_hits){0};
done:
    ki_threads_back(before);
    kith_hits_release(&a.hits);
    ki_free(a.self);
    ki_free(a.allowed.own);
    return status;
}

void kith_hits_release(kith_hits *hits) {
    if (!hits) return;
    ki_free(hits->begin);
    ki_free(hits->hits);
    *hits = (kith_hits){0};
}

kith_status kith_index_ids(const kith_index *index, const char *where, int64_t **ret_ids, int64_t *ret_n,
                           kith_error *err) {
    KI_NEED(err, index, ret_ids, ret_n);
    if (index->remote) return ki_remote_ids(index->remote, where, ret_ids, ret_n, err);
    kith_status status = KITH_OK;
    const ki_snapshot *s = index->view->snapshot;
    ki_allowed allowed = {0};
    int64_t *ids = NULL, n_ids = 0;
    KI_CHECK(ki_view_allowed(index->view, where, ki_index_kept_roots(index), &allowed, err));
    KI_CHECK(ki_alloc_or(&ids, (size_t)allowed.n, sizeof *ids, "ids", err));
    for (int64_t i = 0; i < s->n_rows; i++) {
        if (ki_bit(allowed.bits, i)) ids[n_ids++] = s->ids[i];
    }
    *ret_ids = ids;
    *ret_n = n_ids;
done:
    ki_free(allowed.own);
    return status;
}

void kith_ids_free(int64_t *ids) { ki_free(ids); }
