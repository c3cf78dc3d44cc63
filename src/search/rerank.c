/* Better lists of an index: query expansion, and k-reciprocal re-ranking of the candidates.
 *
 * Both put the hits into another order. Their scores stay similarities to the query that was asked, so that a limit and an error
 * rate still mean what they meant. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "kith/rerank.h"

enum { CANDIDATES = 100 }; /* of a query, at least */

/* Vectors of hits, and the lists of queries among them. */
typedef struct found_rows {
    kith_array rows;      /* [hits, dim] */
    kith_neighbor *lists; /* [queries, k] */
    int64_t k;            /* the longest list */
} found_rows;

static void found_rows_release(found_rows *f) {
    kith_array_release(&f->rows);
    ki_free(f->lists);
}

static kith_status fetch(const kith_index *index, int64_t dim, const kith_hits *hits, found_rows *f,
                         kith_error *err) {
    kith_status status;
    int64_t *ids = NULL;
    const int64_t n = hits->begin[hits->n_queries];
    for (int64_t q = 0; q < hits->n_queries; q++) {
        const int64_t length = hits->begin[q + 1] - hits->begin[q];
        if (length > f->k) f->k = length;
    }
    KI_CHECK(ki_alloc_or(&ids, (size_t)n, sizeof *ids, "hits", err));
    KI_CHECK(ki_alloc_or(&f->lists, (size_t)(hits->n_queries * f->k), sizeof *f->lists, "hits", err));
    KI_CHECK(kith_array_init(KITH_F32, 2, (int64_t[]){n, dim}, &f->rows, err));
    for (int64_t i = 0; i < n; i++) ids[i] = hits->hits[i].id;
    KI_CHECK(kith_index_vectors(index, ids, n, f->rows.data, err));
    for (int64_t q = 0; q < hits->n_queries; q++) {
        for (int64_t i = 0; i < f->k; i++) {
            const int64_t at = hits->begin[q] + i;
            const bool is_there = at < hits->begin[q + 1];
            f->lists[q * f->k + i] =
                (kith_neighbor){is_there ? hits->hits[at].score : NAN, is_there ? at : -1};
        }
    }
done:
    ki_free(ids);
    return status;
}

/* Cosine only: both methods are made for it. */
static kith_status check(const kith_index *index, const kith_array *query, kith_index_info *info,
                         kith_error *err) {
    kith_index_info_get(index, info);
    if (info->metric != KITH_COSINE)
        return ki_fail(err, KITH_EUNSUPPORTED, "the index compares by %s; re-ranking wants cosine",
                       kith_metric_name(info->metric));
    if (query->n_dims != 2 || query->dim[1] != info->dim)
        return ki_fail(err, KITH_ESHAPE, "query has %d dimensions; wanted 2, the last of %lld", query->n_dims,
                       (long long)info->dim);
    return KITH_OK;
}

/* Keep, of lists in their new order, what the options want. */
static void keep_wanted(const kith_search_options *o, kith_hits *hits) {
    int64_t n = 0, begin = 0;
    for (int64_t q = 0; q < hits->n_queries; q++) {
        const int64_t end = hits->begin[q + 1];
        int64_t n_passed = 0, n_kept = 0;
        for (int64_t i = begin; i < end && n_kept < o->k; i++) {
            if (o->has_limit && !(hits->hits[i].score >= o->limit)) continue;
            if (n_passed++ < o->offset) continue;
            hits->hits[n++] = hits->hits[i];
            n_kept++;
        }
        begin = end;
        hits->begin[q + 1] = n;
    }
}

/* As the options say, but for what only counts after re-ranking. */
static kith_search_options widened(const kith_search_options *o, int64_t k) {
    kith_search_options wide = *o;
    wide.k = k;
    wide.offset = 0;
    wide.has_limit = false;
    return wide;
}

/* offset + k, at most `most`. */
static int64_t shown(const kith_search_options *o, int64_t most) {
    return o->k > most - o->offset ? most : o->offset + o->k;
}

/* The cosine of each hit with the query that was asked. */
static kith_status score_anew(const kith_index *index, const kith_array *query, int64_t dim, kith_hits *hits,
                              kith_error *err) {
    kith_status status;
    found_rows f = {0};
    kith_array asked = {0};
    KI_CHECK(fetch(index, dim, hits, &f, err));
    KI_CHECK(kith_array_convert(query, KITH_F32, &asked, err));
    for (int64_t q = 0; q < hits->n_queries; q++) {
        const float *a = (const float *)asked.data + q * dim;
        for (int64_t i = hits->begin[q]; i < hits->begin[q + 1]; i++) {
            const float *b = (const float *)f.rows.data + i * dim;
            double ab = 0, aa = 0, bb = 0;
            for (int64_t d = 0; d < dim; d++) {
                ab += (double)a[d] * (double)b[d];
                aa += (double)a[d] * (double)a[d];
                bb += (double)b[d] * (double)b[d];
            }
            hits->hits[i].score = aa > 0 && bb > 0 ? (double)(float)(ab / sqrt(aa * bb)) : 0;
        }
    }
done:
    kith_array_release(&asked);
    found_rows_release(&f);
    return status;
}

kith_status kith_index_search_expanded(const kith_index *index, const kith_array *query,
                                       const kith_search_options *options,
                                       const kith_expansion_options *expansion, kith_hits *ret_hits,
                                       kith_error *err) {
    KI_NEED(err, index, query, ret_hits);
    KI_OPTIONS_TAKE(kith_search_options, o, options, err);
    KI_OPTIONS_TAKE(kith_expansion_options, how, expansion, err);
    kith_status status;
    kith_index_info info;
    kith_hits first = {0}, hits = {0};
    found_rows f = {0};
    kith_array moved = {0};
    KI_TRY(check(index, query, &info, err));
    const kith_search_options near = widened(&o, how.k), wide = widened(&o, shown(&o, info.n_items));
    KI_CHECK(kith_index_search(index, query, &near, &first, err));
    KI_CHECK(fetch(index, info.dim, &first, &f, err));
    if (f.k < how.k) how.k = f.k;
    if (f.k > 0) {
        KI_CHECK(kith_query_expand(query, &f.rows, f.lists, f.k, &how, &moved, err));
        KI_CHECK(kith_index_search(index, &moved, &wide, &hits, err));
        KI_CHECK(score_anew(index, query, info.dim, &hits, err));
        keep_wanted(&o, &hits);
    } else {
        hits = first;
        first = (kith_hits){0};
    }
    *ret_hits = hits;
    hits = (kith_hits){0};
done:
    kith_hits_release(&first);
    kith_hits_release(&hits);
    found_rows_release(&f);
    kith_array_release(&moved);
    return status;
}

/* Put one query's candidates into their new order. */
static kith_status reorder(const kith_reciprocal_options *given, const found_rows *f, const kith_array *query,
                           int64_t q, kith_hits *hits, kith_error *err) {
    kith_status status;
    kith_reciprocal_options how = *given;
    const int64_t begin = hits->begin[q], n_hits = hits->begin[q + 1] - begin, dim = f->rows.dim[1];
    const int64_t n = n_hits < how.n_candidates ? n_hits : how.n_candidates;
    kith_gallery *gallery = NULL;
    kith_reciprocal *sets = NULL;
    kith_neighbor *self = NULL, *list = NULL;
    kith_hit *before = NULL;
    const kith_array rows = {KITH_F32, 2, {n, dim}, (float *)f->rows.data + begin * dim};
    const kith_array one = {
        query->dtype, 2, {1, dim}, (char *)query->data + (size_t)(q * dim) * kith_dtype_bytes(query->dtype)};
    if (n < 3) return KITH_OK; /* nothing to learn from */
    if (how.k1 > n - 1) how.k1 = n - 1;
    if (how.k2 > how.k1 + 1) how.k2 = how.k1 + 1;
    const int64_t k = how.k1 > how.k2 - 1 ? how.k1 : how.k2 - 1;
    KI_CHECK(ki_alloc_or(&self, (size_t)(n * k), sizeof *self, "neighbours", err));
    KI_CHECK(ki_alloc_or(&list, (size_t)n, sizeof *list, "hits", err));
    KI_CHECK(ki_alloc_or(&before, (size_t)n, sizeof *before, "hits", err));
    KI_CHECK(kith_gallery_new(&rows, NULL, &gallery, err));
    KI_CHECK(kith_gallery_self(gallery, k, self, err));
    KI_CHECK(kith_reciprocal_new(&rows, self, k, &how, &sets, err));
    for (int64_t i = 0; i < n; i++) list[i] = (kith_neighbor){hits->hits[begin + i].score, i};
    KI_CHECK(kith_reciprocal_rerank(sets, &one, NULL, list, n, err));
    memcpy(before, hits->hits + begin, (size_t)n * sizeof *before);
    for (int64_t i = 0; i < n; i++) hits->hits[begin + i] = before[list[i].index];
done:
    kith_reciprocal_free(sets);
    kith_gallery_free(gallery);
    ki_free(self);
    ki_free(list);
    ki_free(before);
    return status;
}

kith_status kith_index_search_reciprocal(const kith_index *index, const kith_array *query,
                                         const kith_search_options *options,
                                         const kith_reciprocal_options *reciprocal, kith_hits *ret_hits,
                                         kith_error *err) {
    KI_NEED(err, index, query, ret_hits);
    KI_OPTIONS_TAKE(kith_search_options, o, options, err);
    KI_OPTIONS_TAKE(kith_reciprocal_options, how, reciprocal, err);
    kith_status status;
    kith_index_info info;
    kith_hits hits = {0};
    found_rows f = {0};
    KI_TRY(check(index, query, &info, err));
    if (how.n_candidates < 0)
        return ki_fail(err, KITH_EINVAL, "n_candidates is %lld; wanted 0 or more",
                       (long long)how.n_candidates);
    if (how.n_candidates == 0) how.n_candidates = o.k > info.n_items / 2 ? info.n_items : 2 * o.k;
    if (how.n_candidates < CANDIDATES) how.n_candidates = CANDIDATES;
    const int64_t wanted = shown(&o, info.n_items);
    const kith_search_options wide = widened(&o, wanted > how.n_candidates ? wanted : how.n_candidates);
    KI_CHECK(kith_index_search(index, query, &wide, &hits, err));
    KI_CHECK(fetch(index, info.dim, &hits, &f, err));
    for (int64_t q = 0; q < hits.n_queries; q++) KI_CHECK(reorder(&how, &f, query, q, &hits, err));
    keep_wanted(&o, &hits);
    *ret_hits = hits;
    hits = (kith_hits){0};
done:
    kith_hits_release(&hits);
    found_rows_release(&f);
    return status;
}
