/* Names for photos.
 *
 * Each photo is asked about alone, because that is what was measured. Of several photos of one thing, j of m have to say the same. Where each gives a
 * false name with a rate of at most r, at most m r / j of all groups have j that do (Markov's inequality), however much they hang together.
 * So j photos with the evidence for a rate of error j / m promise the error. Which j names most known things follows from the curve and m alone. */
#include "kith/identify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "collection/ask.h"
#include "collection/names.h"
#include "kith/experimental/found.h"

KI_OPTIONS_INIT(kith_identify_request, 0)
KI_OPTIONS_INIT(kith_identify_options, .error = 0.01, .k = 3)

enum {
    N_HITS = 100, /* of a photo: for the evidence, and for runners-up */
    AT_A_TIME = 256,
    MOST_PARTS = 256
};

void kith_identified_release(kith_identified *x) {
    if (!x) return;
    kith_found found = {.n_hits = x->n_candidates, .hits = x->candidates};
    kith_found_release(&found);
    *x = (kith_identified){0};
}

/* ---- photos ---- */

typedef struct asked {
    kith_identify_request r;
    kith_identified *ret;
    int64_t first;    /* of its photos among all */
    int64_t n_needed; /* that have to say the same, with at least … */
    double evidence;  /* … this evidence */
} asked;

typedef struct photo {
    const kith_query_part *part;
    asked *of;
} photo;

/* What is kept of a photo's hits: the nearest of each name. The first is the one with the evidence. */
typedef struct opinion {
    double evidence, near;
    int64_t n;
    kith_found_hit *hits;
} opinion;

typedef struct identifying {
    kith_collection *collection;
    const ki_name_curve *naming;
    kith_identify_options o;
    asked *asked;
    int64_t n;
    photo *photo;
    opinion *opinion;
    int64_t n_photos;
} identifying;

static void identifying_release(identifying *a) {
    for (int64_t i = 0; a->opinion && i < a->n_photos; i++) {
        kith_found found = {.n_hits = a->opinion[i].n, .hits = a->opinion[i].hits};
        kith_found_release(&found);
    }
    ki_free(a->opinion);
    ki_free(a->photo);
    ki_free(a->asked);
}

static kith_status check(const kith_identify_request *r, kith_error *err) {
    if (!r->parts || r->n_parts < 1 || r->n_parts > MOST_PARTS)
        return ki_fail(err, KITH_EINVAL, "%lld photos of one thing; wanted 1 to %d", (long long)r->n_parts,
                       MOST_PARTS);
    return KITH_OK;
}

static kith_status take_requests(identifying *a, const kith_identify_request *requests, kith_identified *ret,
                                 kith_error *err) {
    const size_t stride = a->n > 0 ? requests[0].size : 0;
    for (int64_t i = 0; i < a->n; i++) {
        asked *x = &a->asked[i];
        x->ret = &ret[i];
        kith_identify_request_init(&x->r, sizeof x->r);
        KI_TRY(ki_options_take((const char *)requests + (size_t)i * stride, &x->r, sizeof x->r,
                               "kith_identify_request", err));
        x->ret->status = check(&x->r, &x->ret->error);
        x->first = a->n_photos;
        if (x->ret->status == KITH_OK) a->n_photos += x->r.n_parts;
    }
    KI_TRY(ki_zalloc_or(&a->photo, (size_t)a->n_photos, sizeof *a->photo, "photos", err));
    KI_TRY(ki_zalloc_or(&a->opinion, (size_t)a->n_photos, sizeof *a->opinion, "photos", err));
    for (int64_t i = 0; i < a->n; i++) {
        asked *x = &a->asked[i];
        for (int64_t p = 0; x->ret->status == KITH_OK && p < x->r.n_parts; p++)
            a->photo[x->first + p] = (photo){&x->r.parts[p], x};
    }
    return KITH_OK;
}

/* ---- how many have to say the same ---- */

/* P(at least j of m), each with probability p. */
static double at_least(int64_t j, int64_t m, double p) {
    double sum = 0;
    if (p <= 0) return 0;
    if (p >= 1) return 1;
    for (int64_t i = j; i <= m; i++)
        sum += exp(lgamma((double)m + 1) - lgamma((double)i + 1) - lgamma((double)(m - i) + 1) +
                   (double)i * log(p) + (double)(m - i) * log1p(-p));
    return sum;
}

static void choose(const identifying *a, asked *x) {
    const int64_t m = x->r.n_parts;
    double best = -1;
    for (int64_t j = 1; j <= m; j++) {
        const double evidence = ki_naming_threshold(a->naming, a->o.error * (double)j / (double)m);
        if (isnan(evidence)) continue;
        const double named = at_least(j, m, ki_naming_at(a->naming, evidence).named);
        if (named <= best) continue;
        best = named;
        x->n_needed = j;
        x->evidence = evidence;
    }
}

/* ---- one photo ---- */

static bool is_same_name(const kith_found_hit *a, const kith_found_hit *b) {
    return strcmp(a->item.label, b->item.label) == 0;
}

/* An item is no evidence of itself. */
static int64_t leave_out(const kith_query_part *part, kith_found *f) {
    int64_t n = 0;
    for (int64_t i = 0; i < f->n_hits; i++) {
        if (part->id >= 0 && f->hits[i].item.id == part->id) continue;
        const kith_found_hit hit = f->hits[n];
        f->hits[n++] = f->hits[i];
        if (n - 1 < i) f->hits[i] = hit;
    }
    return n;
}

/* The nearest hit of each name moves to the front, and the name with the evidence to the first place. */
static void take_opinion(const identifying *a, const kith_query_part *part, kith_found *f, opinion *ret) {
    ki_name_hit seen[N_HITS + 1];
    int64_t n_names = 0;
    const int64_t n = leave_out(part, f);
    kith_found_hit *hits = f->hits;
    for (int64_t i = 0; i < n; i++) {
        int64_t name = 0;
        while (name < n_names && !is_same_name(&hits[name], &hits[i])) name++;
        seen[i] = (ki_name_hit){hits[i].score, name};
        if (name < n_names) continue;
        const kith_found_hit hit = hits[n_names];
        hits[n_names++] = hits[i];
        hits[i] = hit;
    }
    const ki_evidence e = ki_evidence_find(a->naming->metric, seen, n);
    *ret = (opinion){
        .evidence = e.value, .near = n > 0 ? seen[0].score : (double)NAN, .n = f->n_hits, .hits = hits};
    f->hits = NULL;
    f->n_hits = 0;
    if (e.label > 0) {
        const kith_found_hit first = hits[e.label];
        memmove(&hits[1], &hits[0], (size_t)e.label * sizeof *hits);
        hits[0] = first;
    }
    for (int64_t i = n_names; i < ret->n; i++) ki_hit_clear(&hits[i]);
    ret->n = n_names;
}

static kith_status ask_some(identifying *a, int64_t first, int64_t n, kith_error *err) {
    kith_status status;
    kith_search_request *requests = NULL;
    kith_found *found = NULL;
    KITH_OPTIONS(kith_ask_options, how);
    how.n_threads = a->o.n_threads;
    how.device = a->o.device;
    how.most_pixels = a->o.most_pixels;
    KI_CHECK(ki_alloc_or(&requests, (size_t)n, sizeof *requests, "queries", err));
    KI_CHECK(ki_zalloc_or(&found, (size_t)n, sizeof *found, "queries", err));
    for (int64_t i = 0; i < n; i++) {
        kith_search_request *r = &requests[i];
        kith_search_request_init(r, sizeof *r);
        r->parts = a->photo[first + i].part;
        r->n_parts = 1;
        r->k = N_HITS + 1;
        r->where = KI_NAMED;
        r->exact = a->o.exact;
    }
    status = kith_collection_search(a->collection, requests, n, &how, found, err);
    if (status != KITH_ECANCELED && status != KITH_ENOMEM) status = KITH_OK; /* each has its own */
    for (int64_t i = 0; i < n && status == KITH_OK; i++) {
        kith_identified *ret = a->photo[first + i].of->ret;
        if (found[i].status != KITH_OK && ret->status == KITH_OK) {
            ret->status = found[i].status;
            ret->error = found[i].error;
        }
        if (found[i].status == KITH_OK)
            take_opinion(a, a->photo[first + i].part, &found[i], &a->opinion[first + i]);
    }
done:
    for (int64_t i = 0; found && i < n; i++) kith_found_release(&found[i]);
    ki_free(found);
    ki_free(requests);
    return status;
}

static kith_status ask_all(identifying *a, kith_error *err) {
    for (int64_t i = 0; i < a->n_photos; i += AT_A_TIME) {
        const int64_t left = a->n_photos - i;
        KI_TRY(ask_some(a, i, left < AT_A_TIME ? left : AT_A_TIME, err));
        if (a->o.progress &&
            a->o.progress(a->o.user, i + (left < AT_A_TIME ? left : AT_A_TIME), a->n_photos) != 0)
            return ki_fail(err, KITH_ECANCELED, "stopped");
    }
    return KITH_OK;
}

/* ---- one thing ---- */

static bool names(const opinion *o, const kith_found_hit *hit) {
    return o->n > 0 && is_same_name(&o->hits[0], hit);
}

/* The evidence that this many of the photos have at least for the name of `hit`; NaN: fewer say it. */
static double evidence_for(const identifying *a, const asked *x, const kith_found_hit *hit, double *sorted) {
    int64_t n = 0;
    for (int64_t p = 0; p < x->r.n_parts; p++) {
        const opinion *o = &a->opinion[x->first + p];
        if (!names(o, hit)) continue;
        int64_t at = n++;
        for (; at > 0 && sorted[at - 1] < o->evidence; at--) sorted[at] = sorted[at - 1];
        sorted[at] = o->evidence;
    }
    return n >= x->n_needed ? sorted[x->n_needed - 1] : (double)NAN;
}

/* The name that has most for it; *ret_is_clear: no other has enough. */
static kith_found_hit *best_name(const identifying *a, const asked *x, double *ret_evidence,
                                 bool *ret_is_clear) {
    double sorted[MOST_PARTS], best_most = 0;
    kith_found_hit *best = NULL;
    *ret_evidence = NAN;
    *ret_is_clear = true;
    for (int64_t p = 0; p < x->r.n_parts; p++) {
        const opinion *o = &a->opinion[x->first + p];
        if (o->n < 1) continue;
        const double evidence = evidence_for(a, x, &o->hits[0], sorted);
        const bool is_other = best && !is_same_name(best, &o->hits[0]);
        if (is_other && evidence >= x->evidence && *ret_evidence >= x->evidence) *ret_is_clear = false;
        if (!best || evidence > *ret_evidence ||
            (isnan(*ret_evidence) && (!isnan(evidence) || sorted[0] > best_most))) {
            best = &o->hits[0];
            best_most = sorted[0];
            *ret_evidence = evidence;
        }
    }
    return best;
}

static bool is_nearer(const identifying *a, double x, double y) {
    return a->naming->metric == KITH_SQEUCLIDEAN ? x < y : x > y;
}

/* Of each name the nearest of all photos, by score; the name in question first. Hits that are taken are left empty. */
static kith_status take_candidates(const identifying *a, asked *x, const kith_found_hit *first,
                                   kith_error *err) {
    kith_identified *ret = x->ret;
    char *name = ki_strdup(first->item.label);
    if (!name) return ki_fail_memory(err, strlen(first->item.label), "a name");
    kith_status status =
        ki_zalloc_or(&ret->candidates, (size_t)a->o.k, sizeof *ret->candidates, "names", err);
    while (status == KITH_OK && ret->n_candidates < a->o.k) {
        kith_found_hit *next = NULL;
        for (int64_t p = 0; p < x->r.n_parts; p++) {
            const opinion *o = &a->opinion[x->first + p];
            for (int64_t i = 0; i < o->n; i++) {
                kith_found_hit *hit = &o->hits[i];
                if (!hit->item.label) continue;
                bool is_there = ret->n_candidates == 0 && strcmp(hit->item.label, name) != 0;
                for (int64_t c = 0; c < ret->n_candidates; c++)
                    is_there |= is_same_name(&ret->candidates[c], hit);
                if (!is_there && (!next || is_nearer(a, hit->score, next->score))) next = hit;
            }
        }
        if (!next) break;
        ret->candidates[ret->n_candidates++] = *next;
        *next = (kith_found_hit){0};
    }
    ki_free(name);
    return status;
}

/* Quotes inside a text are doubled. */
static kith_status is_single(const identifying *a, const char *label, bool *ret, kith_error *err) {
    static const char before[] = "label = '";
    char *where = NULL;
    int64_t *ids = NULL, n_ids = 0;
    KI_TRY(ki_alloc_or(&where, sizeof before + 2 * strlen(label) + 1, 1, "a filter", err));
    size_t n = sizeof before - 1;
    memcpy(where, before, n);
    for (const char *at = label; *at; at++) {
        if (*at == '\'') where[n++] = '\'';
        where[n++] = *at;
    }
    memcpy(where + n, "'", 2);
    const kith_status status = kith_index_ids(a->collection->index, where, &ids, &n_ids, err);
    *ret = status == KITH_OK && n_ids == 1;
    kith_ids_free(ids);
    ki_free(where);
    return status;
}

static kith_status answer(const identifying *a, asked *x, kith_error *err) {
    kith_identified *ret = x->ret;
    bool is_clear = true;
    const kith_found_hit *first = best_name(a, x, &ret->evidence, &is_clear);
    ret->false_name_rate = ret->false_name_low = ret->false_name_high = NAN;
    if (!first) return KITH_OK;
    const bool is_named = is_clear && ret->evidence >= x->evidence;
    if (!isnan(ret->evidence)) {
        const ki_naming_point at = ki_naming_at(a->naming, ret->evidence);
        const double times = (double)x->r.n_parts / (double)x->n_needed;
        ret->false_name_rate = fmin(1, times * fmax(at.unknown, at.wrong));
        ret->false_name_low = fmin(1, times * at.low);
        ret->false_name_high = fmin(1, times * fmax(at.unknown_high, at.wrong_high));
    }
    KI_TRY(take_candidates(a, x, first, err));
    if (!is_named || ret->n_candidates == 0) return KITH_OK;
    ret->name = ret->candidates[0].item.label;
    return is_single(a, ret->name, &ret->is_single, err);
}

/* ---- the whole ---- */

static kith_status look_unlike(const identifying *a, int *ret, kith_error *err) {
    double *near = NULL;
    int64_t n = 0;
    KI_TRY(ki_alloc_or(&near, (size_t)a->n_photos, sizeof *near, "scores", err));
    for (int64_t i = 0; i < a->n_photos; i++) {
        if (a->opinion[i].n > 0 && isfinite(a->opinion[i].near)) near[n++] = a->opinion[i].near;
    }
    *ret = ki_naming_unlike(a->naming, near, n);
    ki_free(near);
    return KITH_OK;
}

static kith_status need_promise(const identifying *a, kith_error *err) {
    const ki_name_curve *c = a->naming;
    if (!isnan(ki_naming_threshold(c, a->o.error))) return KITH_OK;
    ki_fail(err, KITH_ENOTFOUND,
            "at most %.3g of false names cannot be promised: the %lld labelled photos of %lld things promise "
            "%.2g at best; "
            "wanted about %lld such photos",
            a->o.error, (long long)c->n_rows, (long long)c->n_labels, ki_naming_least(c),
            (long long)ki_naming_wanted(c, a->o.error));
    return ki_hint(err, KITH_ENOTFOUND,
                   "name more photos of more things, or promise less with a larger error");
}

static void report(const identifying *a, kith_identify_report *ret) {
    const ki_name_curve *c = a->naming;
    const double evidence = ki_naming_threshold(c, a->o.error);
    *ret = (kith_identify_report){.error = a->o.error,
                                  .evidence = evidence,
                                  .named = ki_naming_at(c, evidence).named,
                                  .least = ki_naming_least(c),
                                  .n_photos = c->n_rows,
                                  .n_names = c->n_labels,
                                  .n_single = c->n_single,
                                  .n_unknown = c->n_unknown,
                                  .n_known = c->n_known};
}

/* The first failure, if there is nothing else. */
static kith_status verdict(const identifying *a, kith_error *err) {
    for (int64_t i = 0; i < a->n; i++) {
        if (a->asked[i].ret->status == KITH_OK) return KITH_OK;
    }
    if (a->n == 0) return KITH_OK;
    if (err) *err = a->asked[0].ret->error;
    return a->asked[0].ret->status;
}

static kith_status check_options(const kith_identify_options *o, kith_error *err) {
    if (!(o->error > 0 && o->error < 1))
        return ki_fail(err, KITH_EINVAL, "error is %g; wanted a rate above 0 and below 1", o->error);
    if (o->k < 1 || o->k > N_HITS)
        return ki_fail(err, KITH_EINVAL, "k is %lld; wanted 1 to %d", (long long)o->k, N_HITS);
    return KITH_OK;
}

kith_status kith_collection_identify(kith_collection *collection, const kith_identify_request *requests,
                                     int64_t n, const kith_identify_options *options,
                                     kith_identify_report *ret_report, kith_identified *ret_identified,
                                     kith_error *err) {
    KI_NEED(err, collection, requests, ret_identified);
    KI_NEED_COUNT(err, n);
    kith_status status;
    for (int64_t i = 0; i < n; i++) ret_identified[i] = (kith_identified){0};
    KI_OPTIONS_TAKE(kith_identify_options, o, options, err);
    KI_TRY(check_options(&o, err));
    KI_TRY(ki_collection_ready(collection, err));
    identifying a = {.collection = collection, .o = o, .n = n};
    kith_identify_report told = {0};
    KI_CHECK(ki_collection_names(collection, &a.naming, err));
    KI_CHECK(need_promise(&a, err));
    KI_CHECK(ki_zalloc_or(&a.asked, (size_t)n, sizeof *a.asked, "queries", err));
    KI_CHECK(take_requests(&a, requests, ret_identified, err));
    KI_CHECK(ask_all(&a, err));
    report(&a, &told);
    KI_CHECK(look_unlike(&a, &told.unlike, err));
    for (int64_t i = 0; i < n; i++) {
        asked *x = &a.asked[i];
        if (x->ret->status != KITH_OK) continue;
        choose(&a, x);
        KI_CHECK(answer(&a, x, err));
    }
    if (ret_report) *ret_report = told;
    status = verdict(&a, err);
done:
    identifying_release(&a);
    return status;
}

/* ---- JSON ---- */

void kith_identified_write(const kith_collection *collection, const kith_identified *x, kith_json *json) {
    if (!collection || !x || !json) return;
    kith_json_key(json, "name");
    kith_json_string(json, x->name);
    kith_json_key(json, "evidence");
    kith_json_real32(json, (float)x->evidence);
    kith_json_key(json, "false_name_rate");
    kith_json_real32(json, (float)x->false_name_rate);
    kith_json_key(json, "false_name_low");
    kith_json_real32(json, (float)x->false_name_low);
    kith_json_key(json, "false_name_high");
    kith_json_real32(json, (float)x->false_name_high);
    kith_json_key(json, "is_single");
    kith_json_bool(json, x->is_single);
    kith_json_key(json, "candidates");
    ki_hits_write(collection, x->candidates, x->n_candidates, json);
}
