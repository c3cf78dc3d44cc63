/* How often hits are wrong, and which of them keep a promise. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "collection/ask.h"
#include "collection/reliable.h"
#include "kith/groups.h"
#include "search/files/segment.h"
#include "search/filter.h"
#include "search/index_handle.h"

kith_status ki_ask_reliability(ki_asking *a, kith_error *err) {
    kith_reliability *r = NULL;
    kith_error why;
    KI_TRY(ki_alloc_or(&r, 1, sizeof *r, "the reliability of hits", err));
    const kith_status status = ki_reliable_read(a->index, r, &why);
    if (status == KITH_OK) {
        a->reliability = r;
        return KITH_OK;
    }
    ki_free(r);
    if (status != KITH_ENOTFOUND && err) *err = why;
    return status == KITH_ENOTFOUND ? KITH_OK : status;
}

/* ---- promises ---- */

/* The largest part that could be promised. */
static double most_promised(const kith_reliability *r, bool is_precision, double unknown) {
    double low = 0, high = 1;
    for (int i = 0; i < 30; i++) {
        const double middle = (low + high) / 2;
        const double evidence = is_precision ? kith_reliability_precise(r, middle, unknown)
                                             : kith_reliability_complete(r, middle);
        *(isnan(evidence) ? &high : &low) = middle;
    }
    return floor(low * 1000) / 1000;
}

static kith_status refuse(const ki_asking *a, const kith_search_request *q, double part, const char *name,
                          kith_error *err) {
    const kith_reliability *r = a->reliability;
    const int64_t n_needed = kith_reliability_needed(part);
    if (!r || r->n_present < n_needed) {
        ki_fail(
            err, KITH_EINVAL,
            "%s %g takes trials of %lld items without an error, and %d labels with two items; the index has "
            "%lld such trials",
            name, part, (long long)n_needed, KI_RELIABILITY_LEAST_LABELS, r ? (long long)r->n_present : 0LL);
        return ki_hint(err, KITH_EINVAL, "name more of the items (folders per thing, or --labels)");
    }
    ki_fail(err, KITH_EINVAL, "%s %g cannot be promised: the %lld trials of the index allow for at most %.3g",
            name, part, (long long)r->n_present, most_promised(r, !isnan(q->precision), q->unknown));
    return ki_hint(err, KITH_EINVAL, "ask for less, name more of the items, or use a better model");
}

kith_status ki_ask_filter(const ki_asking *a, const kith_search_request *q, bool *ret_asks_names,
                          kith_error *err) {
    ki_where *where = NULL;
    *ret_asks_names = false;
    if (!a->reliability || !q->where) return KITH_OK;
    KI_TRY(ki_index_parse(a->index, q->where, &where, err));
    *ret_asks_names = ki_where_asks(where, KI_COLUMN_LABEL) || ki_where_asks(where, KI_COLUMN_PATH) ||
                      ki_where_asks(where, KI_COLUMN_ID);
    for (int64_t i = 0; kith_index_column(a->index, i).name; i++) {
        if (strcmp(kith_index_column(a->index, i).name, KITH_GROUPS_COLUMN) == 0)
            *ret_asks_names |= ki_where_asks(where, KI_COLUMN_FIRST + i);
    }
    ki_where_free(where);
    return KITH_OK;
}

kith_status ki_ask_promise(const ki_asking *a, const ki_asked *x, double *ret_evidence, kith_error *err) {
    const kith_search_request *q = &x->r;
    const bool is_precision = !isnan(q->precision);
    const double part = is_precision ? q->precision : q->complete;
    const char *name = is_precision ? "precision" : "complete";
    *ret_evidence = (double)NAN;
    if (!(q->unknown >= 0 && q->unknown <= 1))
        return ki_fail(err, KITH_EINVAL, "unknown is %g; wanted 0 to 1", q->unknown);
    if (isnan(part)) return KITH_OK;
    if (!isnan(q->precision) && !isnan(q->complete))
        return ki_fail(err, KITH_EINVAL, "precision and complete are both given; wanted one");
    if (!(part > 0 && part < 1))
        return ki_fail(err, KITH_EINVAL, "%s is %g; wanted a part above 0 and below 1", name, part);
    if (a->reliability && q->where) {
        ki_fail(err, KITH_EINVAL, "%s is for searches without a filter: the trials had none", name);
        return ki_hint(err, KITH_EINVAL, "search without the filter, and choose among the hits");
    }
    if (a->reliability && !ki_is_like_trials(a, x))
        return ki_fail(err, KITH_EINVAL,
                       "%s is for queries of one image, item or vector that are not re-ranked", name);
    if (a->reliability)
        *ret_evidence = is_precision ? kith_reliability_precise(a->reliability, part, q->unknown)
                                     : kith_reliability_complete(a->reliability, part);
    return isnan(*ret_evidence) ? refuse(a, q, part, name, err) : KITH_OK;
}

/* ---- hits ---- */

/* The item that was asked with, or a vector that is the query's: no trial has met itself, so they say nothing of it. */
static bool is_itself(const ki_asking *a, int64_t self, const kith_hit *hit) {
    const kith_metric metric = a->info.metric;
    if (hit->id == self) return true;
    return (metric == KITH_COSINE && hit->score > 1 - 1e-6) ||
           (metric == KITH_SQEUCLIDEAN && hit->score <= 0);
}

/* Labels as numbers: the place of the first hit that has it. */
static void number(const char *const *labels, int64_t n, int64_t n_seen, int64_t *ret) {
    for (int64_t i = 0; i < n; i++) {
        ret[i] = labels[i] && *labels[i] ? i : -1;
        for (int64_t j = 0; ret[i] == i && j < i && j < n_seen; j++) {
            if (labels[j] && strcmp(labels[i], labels[j]) == 0) ret[i] = j;
        }
    }
}

kith_status ki_ask_evidence(const ki_asking *a, int64_t self, const kith_hit *hits, int64_t n_hits,
                            double *ret_evidence, kith_error *err) {
    kith_status status;
    int64_t n = 0;
    const kith_reliability *r = a->reliability;
    ki_arena arena = {0};
    const char **labels = NULL;
    int64_t *id = NULL, *label = NULL;
    double *score = NULL;
    KI_CHECK(ki_alloc_or(&id, (size_t)n_hits, sizeof *id, "hits", err));
    KI_CHECK(ki_alloc_or(&label, (size_t)n_hits, sizeof *label, "hits", err));
    KI_CHECK(ki_alloc_or(&score, (size_t)n_hits, sizeof *score, "hits", err));
    KI_CHECK(ki_zalloc_or(&labels, (size_t)n_hits, sizeof *labels, "labels", err));
    for (int64_t i = 0; i < n_hits; i++) {
        if (is_itself(a, self, &hits[i])) continue;
        id[n] = hits[i].id;
        score[n++] = hits[i].score;
    }
    if (n > 0) KI_CHECK(ki_index_labels(a->index, id, n, &arena, labels, err));
    number(labels, n, r->depth, label);
    ki_reliability_margins(r->metric, score, label, n, r->depth, ret_evidence);
    for (int64_t i = 0; i < n; i++)
        ret_evidence[i] = kith_reliability_evidence(r, score[i], i + 1, ret_evidence[i]);
    for (int64_t i = n_hits - 1, from = n; i >= 0; i--)
        ret_evidence[i] = is_itself(a, self, &hits[i]) ? (double)NAN : ret_evidence[--from];
done:
    ki_arena_release(&arena);
    ki_free(labels);
    ki_free(id);
    ki_free(label);
    ki_free(score);
    return status;
}
