/* Rows to hits.
 *
 * Requests that are alike are searched at once, for as many items as the one that wants most. A list must be the one that the request
 * has alone: where it depends on how many items are wanted (codes), or on the size of a page (re-ranking), only requests that want
 * the same are alike.
 *
 * Which hits are duplicates of others is known only when they are there: if too few are left, twice as many are looked for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "collection/ask.h"
#include "kith/rerank.h"

/* With a limit, and more items wanted than this, an index finds all that are within the limit, and does not stop at a number. */
enum { MOST_WITHOUT_LIMIT = 1000 };

static int64_t wanted_in_all(const kith_search_request *r, int64_t n_items) {
    const int64_t n = r->k < n_items - r->offset ? r->k + r->offset : n_items;
    return n > 0 ? n : 1;
}

/* What speaks for a hit does not depend on how many are wanted. One more, as one may be the query itself. */
static int64_t wanted_at_first(const ki_asking *a, const ki_asked *x) {
    const kith_search_request *r = &x->r;
    const int64_t n = wanted_in_all(r, a->info.n_items);
    if (!ki_is_like_trials(a, x)) return n;
    const int64_t depth = a->reliability->depth + (r->parts[0].id >= 0),
                  most = depth < a->info.n_items ? depth : a->info.n_items;
    return n > most ? n : most;
}

static bool is_counted(const ki_asking *a, const ki_asked *x) {
    return x->r.rerank != KITH_RERANK_NONE || (!x->r.exact && a->info.tier != KITH_TIER_EXACT);
}

/* Does the index apply the limit? Where more are wanted than it looks at first, searches of codes with a limit are not alike. */
static bool has_index_limit(const ki_asked *x) {
    return !isnan(x->found->limit) && (x->n_wanted > MOST_WITHOUT_LIMIT || x->r.rerank != KITH_RERANK_NONE);
}

static bool is_alike(const ki_asking *a, const ki_asked *x, const ki_asked *y) {
    if (x->r.exact != y->r.exact || x->r.rerank != y->r.rerank || !x->r.where != !y->r.where) return false;
    if (x->r.where && strcmp(x->r.where, y->r.where) != 0) return false;
    if (is_counted(a, x) && x->n_wanted != y->n_wanted) return false;
    if (x->r.rerank == KITH_RERANK_RECIPROCAL && x->r.k != y->r.k) return false;
    if (!has_index_limit(x) && !has_index_limit(y)) return true;
    if (is_counted(a, x) && x->r.rerank == KITH_RERANK_NONE) return false;
    return has_index_limit(x) == has_index_limit(y) && x->found->limit == y->found->limit;
}

/* ---- one search ---- */

static bool is_within(const ki_asking *a, const ki_asked *x, double score) {
    if (isnan(x->found->limit)) return true;
    return a->info.metric == KITH_SQEUCLIDEAN ? score <= x->found->limit : score >= x->found->limit;
}

/* Where each picture is found: its group, by id. */
typedef struct group_of {
    int64_t id, group;
} group_of;

typedef struct groups {
    group_of *of;
    int64_t n, n_groups;
    bool *is_there; /* [n_groups]: a hit of this group is shown */
} groups;

static int by_id(const void *a, const void *b) {
    const group_of *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static kith_status groups_init(groups *g, const kith_duplicates *d, kith_error *err) {
    g->n_groups = d->n_groups;
    g->n = d->n_groups > 0 ? d->begin[d->n_groups] : 0;
    KI_TRY(ki_alloc_or(&g->of, (size_t)g->n, sizeof *g->of, "groups", err));
    KI_TRY(ki_zalloc_or(&g->is_there, (size_t)g->n_groups, sizeof *g->is_there, "groups", err));
    for (int64_t i = 0; i < d->n_groups; i++) {
        for (int64_t p = d->begin[i]; p < d->begin[i + 1]; p++) g->of[p] = (group_of){d->pictures[p].id, i};
    }
    if (g->n > 0) qsort(g->of, (size_t)g->n, sizeof *g->of, by_id);
    return KITH_OK;
}

static void groups_release(groups *g) {
    ki_free(g->of);
    ki_free(g->is_there);
}

static int64_t group_at(const groups *g, int64_t id) {
    const group_of key = {.id = id};
    const group_of *found = g->n > 0 ? bsearch(&key, g->of, (size_t)g->n, sizeof key, by_id) : NULL;
    return found ? found->group : -1;
}

/* Of each picture the nearest hit stays; returns how many stay. `evidence` may be NULL. */
static int64_t hide_duplicates(const groups *g, kith_hit *hits, double *evidence, int64_t n) {
    int64_t n_kept = 0;
    memset(g->is_there, 0, (size_t)g->n_groups * sizeof *g->is_there);
    for (int64_t i = 0; i < n; i++) {
        const int64_t group = group_at(g, hits[i].id);
        if (group >= 0 && g->is_there[group]) continue;
        if (group >= 0) g->is_there[group] = true;
        if (evidence) evidence[n_kept] = evidence[i];
        hits[n_kept++] = hits[i];
    }
    return n_kept;
}

/* Of the hits that the trials looked at those that keep the promise; returns how many stay. */
static int64_t keep_promise(const ki_asking *a, const ki_asked *x, kith_hit *hits, double *evidence,
                            int64_t n) {
    int64_t n_kept = 0;
    for (int64_t i = 0; i < n && i < a->reliability->depth; i++) {
        if (evidence[i] < x->evidence) continue; /* the query itself, of which nothing is known, stays */
        evidence[n_kept] = evidence[i];
        hits[n_kept++] = hits[i];
    }
    return n_kept;
}

static void tell_errors(const ki_asking *a, const ki_asked *x, const double *evidence, kith_found_hit *hits,
                        int64_t n) {
    ki_error_rates rates;
    if (evidence) ki_error_rates_make(a->reliability, x->r.unknown, &rates);
    for (int64_t i = 0; i < n; i++) {
        kith_error_rate rate = {(double)NAN, (double)NAN, (double)NAN};
        if (evidence) rate = ki_error_rates_at(&rates, evidence[i]);
        hits[i].error_rate = rate.rate;
        hits[i].error_rate_low = rate.low;
        hits[i].error_rate_high = rate.high;
    }
}

static kith_status take_page(const ki_asking *a, ki_asked *x, const kith_hit *hits, const double *evidence,
                             int64_t n, kith_error *err) {
    const kith_calibration *curve = kith_index_calibration(a->index);
    kith_found *f = x->found;
    const int64_t first = x->r.offset < n ? x->r.offset : n;
    const int64_t n_hits = n - first < x->r.k ? n - first : x->r.k;
    KI_TRY(ki_zalloc_or(&f->hits, (size_t)n_hits, sizeof *f->hits, "hits", err));
    for (int64_t i = 0; i < n_hits; i++) {
        const kith_hit *hit = &hits[first + i];
        f->hits[i].score = hit->score;
        f->hits[i].item.id = hit->id;
        f->hits[i].false_match_rate =
            curve ? kith_calibration_false_match_rate(curve, hit->score) : (double)NAN;
    }
    f->n_hits = n_hits;
    tell_errors(a, x, evidence ? evidence + first : NULL, f->hits, n_hits);
    return KITH_OK;
}

static int64_t most_looked_at(const ki_asking *a) {
    const int64_t most = a->o.most_looked_at;
    return most > 0 && most < a->info.n_items ? most : a->info.n_items;
}

/* Its part of the list that was made for all. `duplicates` NULL: nobody asked for them. evidence [n] or NULL. */
static kith_status cut_hits(const ki_asking *a, ki_asked *x, const groups *duplicates, kith_hit *hits,
                            double *evidence, int64_t n, kith_error *err) {
    const int64_t most = most_looked_at(a);
    /* A list that is not full ends where the index ends. */
    bool is_all = n < x->n_wanted || x->n_wanted >= most;
    if (!isnan(x->evidence)) {
        n = keep_promise(a, x, hits, evidence, n);
        is_all = true;
    }
    if (x->r.rerank == KITH_RERANK_NONE) {
        int64_t n_within = 0;
        while (n_within < n && is_within(a, x, hits[n_within].score)) n_within++;
        is_all |= n_within < n;
        n = n_within;
    }
    if (x->r.hide_duplicates) {
        n = hide_duplicates(duplicates, hits, evidence, n);
        if (!is_all && n < wanted_in_all(&x->r, a->info.n_items)) {
            x->n_wanted = x->n_wanted > most / 2 ? most : 2 * x->n_wanted;
            return KITH_OK;
        }
    }
    x->is_found = true;
    return take_page(a, x, hits, evidence, n, err);
}

static kith_status take_hits(const ki_asking *a, ki_asked *x, const groups *duplicates, kith_hit *hits,
                             int64_t n, kith_error *err) {
    kith_status status;
    double *evidence = NULL;
    if (n > x->n_wanted) n = x->n_wanted;
    if (n > 0 && ki_is_like_trials(a, x)) {
        KI_CHECK(ki_alloc_or(&evidence, (size_t)n, sizeof *evidence, "hits", err));
        KI_CHECK(ki_ask_evidence(a, x->r.parts[0].id, hits, n, evidence, err));
        for (int64_t i = n - 1; i >= 0; i--) {
            if (!isnan(evidence[i])) x->found->top_score = hits[i].score;
        }
    }
    status = cut_hits(a, x, duplicates, hits, evidence, n, err);
done:
    ki_free(evidence);
    return status;
}

static kith_status run(const ki_asking *a, ki_asked *const *asked, int64_t n, const groups *duplicates,
                       kith_error *err) {
    kith_status status;
    const int64_t dim = a->info.dim;
    const ki_asked *first = asked[0];
    kith_array rows = {0};
    kith_hits hits = {0};
    KITH_OPTIONS(kith_search_options, o);
    KITH_OPTIONS(kith_reciprocal_options, reciprocal);
    /* By the size of the page, not its place: then pages of one list fit together. */
    reciprocal.n_candidates = first->r.k < a->info.n_items / 2 ? 2 * first->r.k : a->info.n_items;
    o.k = 1;
    o.where = first->r.where;
    o.exact = first->r.exact;
    o.has_limit = has_index_limit(first);
    o.limit = o.has_limit ? first->found->limit : 0;
    o.n_threads = a->o.n_threads;
    o.device = a->o.device;
    o.progress = a->o.progress;
    o.user = a->o.user;
    KI_CHECK(kith_array_init(KITH_F32, 2, (int64_t[]){n, dim}, &rows, err));
    for (int64_t i = 0; i < n; i++) {
        memcpy((float *)rows.data + i * dim, asked[i]->found->row, (size_t)dim * sizeof(float));
        if (asked[i]->n_wanted > o.k) o.k = asked[i]->n_wanted;
    }
    KI_CHECK(first->r.rerank == KITH_RERANK_EXPANSION
                 ? kith_index_search_expanded(a->index, &rows, &o, NULL, &hits, err)
             : first->r.rerank == KITH_RERANK_RECIPROCAL
                 ? kith_index_search_reciprocal(a->index, &rows, &o, &reciprocal, &hits, err)
                 : kith_index_search(a->index, &rows, &o, &hits, err));
    for (int64_t i = 0; i < n; i++) {
        kith_found *f = asked[i]->found;
        f->n_allowed = hits.n_allowed;
        f->is_exact = hits.is_exact;
        f->status = take_hits(a, asked[i], duplicates, hits.hits + hits.begin[i],
                              hits.begin[i + 1] - hits.begin[i], &f->error);
    }
done:
    kith_hits_release(&hits);
    kith_array_release(&rows);
    return status;
}

/* ---- all of them ---- */

/* If a search for several fails, one of them may be to blame: each is tried alone. */
static kith_status run_group(const ki_asking *a, ki_asked *const *asked, int64_t n, const groups *duplicates,
                             kith_error *err) {
    kith_error first;
    kith_status status = run(a, asked, n, duplicates, &first);
    for (int64_t i = 0; status != KITH_OK && status != KITH_ECANCELED && i < n; i++) {
        kith_found *f = asked[i]->found;
        f->error = first;
        f->status = n == 1 ? status : run(a, &asked[i], 1, duplicates, &f->error);
        if (f->status == KITH_ECANCELED) {
            status = f->status;
            first = f->error;
        }
    }
    if (status == KITH_ECANCELED) {
        if (err) *err = first;
        return status;
    }
    return KITH_OK;
}

/* Move those that are like the first to the front; returns how many. */
static int64_t gather(const ki_asking *a, ki_asked **asked, int64_t n) {
    int64_t n_front = 1;
    for (int64_t i = 1; i < n; i++) {
        if (!is_alike(a, asked[0], asked[i])) continue;
        ki_asked *const one = asked[i];
        memmove(&asked[n_front + 1], &asked[n_front], (size_t)(i - n_front) * sizeof *asked);
        asked[n_front++] = one;
    }
    return n_front;
}

/* Those that are still looked for; returns how many. */
static int64_t list_open(const ki_asking *a, ki_asked **ret) {
    int64_t n = 0;
    for (int64_t i = 0; i < a->n; i++) {
        if (a->asked[i].found->status == KITH_OK && !a->asked[i].is_found) ret[n++] = &a->asked[i];
    }
    return n;
}

/* The groups, if a request wants to hide duplicates; those requests fail when there are none. */
static kith_status need_groups(ki_asking *a, groups *ret, kith_error *err) {
    const kith_duplicates *d = NULL;
    kith_error why;
    bool is_wanted = false;
    for (int64_t i = 0; i < a->n; i++)
        is_wanted |= a->asked[i].found->status == KITH_OK && a->asked[i].r.hide_duplicates;
    if (!is_wanted) return KITH_OK;
    kith_status status = ki_ask_duplicates(a, &d, &why);
    if (status == KITH_OK) status = groups_init(ret, d, &why);
    if (status == KITH_OK) return KITH_OK;
    if (err) *err = why;
    if (status == KITH_ECANCELED) return status;
    for (int64_t i = 0; i < a->n; i++) {
        kith_found *f = a->asked[i].found;
        if (f->status != KITH_OK || !a->asked[i].r.hide_duplicates) continue;
        f->status = status;
        f->error = why;
    }
    return KITH_OK;
}

kith_status ki_find(ki_asking *a, kith_error *err) {
    kith_status status;
    groups duplicates = {0};
    ki_asked **open = NULL;
    KI_CHECK(need_groups(a, &duplicates, err));
    KI_CHECK(ki_alloc_or(&open, (size_t)a->n, sizeof *open, "queries", err));
    for (int64_t i = 0; i < a->n; i++) a->asked[i].n_wanted = wanted_at_first(a, &a->asked[i]);
    for (int64_t n; (n = list_open(a, open)) > 0;) {
        for (int64_t at = 0, m; at < n; at += m) {
            m = gather(a, open + at, n - at);
            KI_CHECK(run_group(a, open + at, m, &duplicates, err));
        }
    }
done:
    ki_free(open);
    groups_release(&duplicates);
    return status;
}
