/* Searching an index that a server keeps: the server finds candidates, and their vectors are compared here, with the kernels of
 * an exact search, so that scores and order are those of an index in a folder.
 *
 * The server computes distances in float32 in an order of its own. An exact search therefore asks for more than it needs, until
 * what lies beyond the last candidate is farther than the last hit by more than the two can differ. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "knn/rows.h"
#include "search/exact_list.h"
#include "search/hit_list.h"
#include "search/remote/remote.h"

enum {
    MORE = 32,          /* candidates beyond those wanted, at least */
    MOST_GRAPH_K = 500, /* a graph gives the nearest few; for more all vectors are compared */
    MOST_CANDIDATES = 1 << 22,
};

typedef struct asked {
    ki_remote *r;
    const kith_search_options *o;
    const ki_where *where;
    int64_t n_allowed;
    ki_hit_list hits;
} asked;

/* Few enough are compared one by one, as in a folder; and more recall than the index was made for is an exact search. */
static bool is_exact(const asked *a) {
    const ki_manifest *m = &a->r->now;
    return !a->r->state.has_graph || a->o->exact || a->o->recall > m->recall ||
           a->n_allowed <= m->exact_numbers / m->dim;
}

/* ---- the second look ---- */

typedef struct ordered {
    int64_t id, at;
} ordered;

static int by_id(const void *a, const void *b) {
    const ordered *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Rows in the order of ids, so that ties go to the lower id. */
static kith_status sort_candidates(ki_candidates *c, int64_t dim, kith_error *err) {
    kith_status status = KITH_OK;
    ordered *order = NULL;
    float *rows = NULL;
    KI_CHECK(ki_alloc_or(&order, (size_t)c->n, sizeof *order, "candidates", err));
    KI_CHECK(ki_alloc_or(&rows, (size_t)c->n * (size_t)dim, sizeof *rows, "candidates", err));
    for (int64_t i = 0; i < c->n; i++) order[i] = (ordered){c->id[i], i};
    qsort(order, (size_t)c->n, sizeof *order, by_id);
    for (int64_t i = 0; i < c->n; i++) {
        c->id[i] = order[i].id;
        memcpy(rows + i * dim, c->rows + order[i].at * dim, (size_t)dim * sizeof *rows);
    }
    float *before = c->rows;
    c->rows = rows;
    rows = before;
done:
    ki_free(order);
    ki_free(rows);
    return status;
}

double ki_remote_norm(const float *x, int64_t dim) {
    double sum = 0;
    for (int64_t i = 0; i < dim; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* Can nothing beyond the candidates belong among the first hits? `score` is the worst of them. The server's sum of dim products
 * in float32 is off by at most (dim + 2) 2^-24 of the sum of their magnitudes, which the norms bound; doubled for the kernel's
 * own. The norms of rows that were not seen are taken to be no more than twice the largest that was. */
static bool is_settled(const asked *a, const float *query, const ki_candidates *c, double score) {
    const int64_t dim = a->r->now.dim;
    const double part = 2 * (double)(dim + 2) * 0x1p-24;
    if (a->r->now.metric == KITH_COSINE) return 1 - score + 2 * part < c->last;
    if (a->r->now.metric == KITH_SQEUCLIDEAN) return score * (1 + part) < c->last * (1 - part);
    double most = 0;
    for (int64_t i = 0; i < c->n; i++) {
        const double length = ki_remote_norm(c->rows + i * dim, dim);
        if (length > most) most = length;
    }
    return -score + 2 * part * ki_remote_norm(query, dim) * most < c->last;
}

/* A query of any length is asked for as one of length 1, where the server could not compare it otherwise: *ret_query, else NULL. */
static kith_status scale_query(const asked *a, const float *query, float **ret_query, kith_error *err) {
    const int64_t dim = a->r->now.dim;
    const double length = ki_remote_norm(query, dim);
    const bool fits = length == 0 || (length >= KI_REMOTE_LEAST_NORM && length <= KI_REMOTE_MOST_NORM);
    if (a->r->now.metric != KITH_COSINE || fits) return KITH_OK;
    KI_TRY(ki_alloc_or(ret_query, (size_t)dim, sizeof **ret_query, "a query", err));
    for (int64_t i = 0; i < dim; i++) (*ret_query)[i] = (float)((double)query[i] / length);
    return KITH_OK;
}

/* The k nearest of one query: *ret_list [k], filled with -1 where there are fewer. */
static kith_status look(const asked *a, const float *query, int64_t self, int64_t k, bool exact,
                        ki_candidates *c, kith_neighbor *ret_list, bool *ret_is_settled, kith_error *err) {
    ki_remote *r = a->r;
    const int64_t dim = r->now.dim, wanted = c->n;
    const kith_array row = {KITH_F32, 2, {1, dim}, (void *)(uintptr_t)query};
    const ki_remote_ask ask = {.where = a->where,
                               .self = self,
                               .k = wanted,
                               .exact = exact,
                               .wants = a->o->recall > 0 ? a->o->recall : r->now.recall};
    float *sent = NULL;
    ki_candidates_release(c);
    KI_TRY(scale_query(a, query, &sent, err));
    pthread_mutex_lock(&r->lock);
    const kith_status status = r->type->nearest(r->link, &r->now, sent ? sent : query, &ask, c, err);
    pthread_mutex_unlock(&r->lock);
    ki_free(sent);
    KI_TRY(status);
    for (int64_t i = 0; i < k; i++) ret_list[i] = (kith_neighbor){NAN, -1};
    *ret_is_settled = true;
    if (c->n == 0) return KITH_OK;
    KI_TRY(sort_candidates(c, dim, err));
    const kith_array rows = {KITH_F32, 2, {c->n, dim}, c->rows};
    KI_TRY(ki_exact_list(&rows, r->now.metric, &row, k, ret_list, err));
    if (exact && c->n == wanted && ret_list[k - 1].index >= 0)
        *ret_is_settled = is_settled(a, query, c, ret_list[k - 1].score);
    return KITH_OK;
}

/* A graph may find fewer than there are, behind a filter for instance: then all vectors are compared. */
static kith_status search_one(const asked *a, const float *query, int64_t self, int64_t k,
                              kith_neighbor *ret_list, ki_candidates *c, kith_error *err) {
    const int64_t most = a->n_allowed;
    bool exact = is_exact(a) || k > MOST_GRAPH_K, is_settled = false;
    for (int64_t wanted = 2 * k > k + MORE ? 2 * k : k + MORE; !is_settled; wanted *= 2) {
        c->n = wanted < most ? wanted : most;
        const int64_t n = c->n;
        KI_TRY(look(a, query, self, k, exact, c, ret_list, &is_settled, err));
        if (n == most) is_settled = true;
        const bool is_short = c->n < n - (self >= 0);
        if (!exact && is_short) exact = true, is_settled = false, wanted /= 2;
    }
    for (int64_t i = 0; i < k && ret_list[i].index >= 0; i++) ret_list[i].index = c->id[ret_list[i].index];
    return KITH_OK;
}

/* ---- all queries ---- */

static kith_status search_all(asked *a, const float *rows, int64_t n, kith_error *err) {
    kith_status status = KITH_OK;
    kith_neighbor *list = NULL;
    ki_candidates c = {0};
    int64_t k = ki_hit_list_first_k(&a->hits);
    KI_CHECK(ki_alloc_or(&list, (size_t)a->hits.most, sizeof *list, "hits", err));
    for (int64_t i = 0; i < n;) {
        const int64_t self = a->o->self ? a->o->self[i] : -1;
        KI_CHECK(search_one(a, rows + i * a->r->now.dim, self, k, list, &c, err));
        if (ki_hit_list_is_cut(&a->hits, list, k)) {
            k = ki_hit_list_next_k(&a->hits, k);
            continue;
        }
        KI_CHECK(ki_hit_list_add(&a->hits, i++, list, k, NULL, err));
        if (a->o->progress && a->o->progress(a->o->user, i, n) != 0) {
            status = ki_fail(err, KITH_ECANCELED, "stopped after %lld of %lld queries", (long long)i,
                             (long long)n);
            goto done;
        }
    }
done:
    ki_candidates_release(&c);
    ki_free(list);
    return status;
}

kith_status ki_remote_search(ki_store *store, const kith_array *query, const ki_where *where,
                             const kith_search_options *o, kith_hits *ret_hits, kith_error *err) {
    kith_status status = KITH_OK;
    kith_array rows = {0};
    ki_remote *r = ki_remote_of(store);
    asked a = {.r = r, .o = o, .where = where, .n_allowed = r->state.n_items};
    const int64_t n = query->dim[0];
    if (where) {
        pthread_mutex_lock(&r->lock);
        status = r->type->count(r->link, &r->now, where, &a.n_allowed, err);
        pthread_mutex_unlock(&r->lock);
        if (status != KITH_OK) goto done;
    }
    KI_CHECK(kith_array_convert(query, KITH_F32, &rows, err));
    KI_CHECK(ki_hit_list_init(&a.hits, o, r->now.metric, n, a.n_allowed, err));
    const int64_t most = a.hits.most;
    if (most > MOST_CANDIDATES) {
        status = ki_fail(err, KITH_EINVAL, "%lld hits of a query are too many from a server; wanted up to %d",
                         (long long)most, MOST_CANDIDATES);
        goto done;
    }
    if (ki_hit_list_wants(&a.hits)) KI_CHECK(search_all(&a, rows.data, n, err));
    ki_hit_list_take(&a.hits, is_exact(&a) || most > MOST_GRAPH_K, ret_hits);
done:
    ki_hit_list_release(&a.hits);
    kith_array_release(&rows);
    return status;
}
