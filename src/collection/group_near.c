/* Lists of nearest neighbours, by the index's own search. */
#include <math.h>

#include "base/alloc.h"
#include "collection/group.h"
#include "kith/calibration.h"

enum { BLOCK = 1024 }; /* items of one search */

int64_t ki_groups_place_of(const int64_t *ids, int64_t n, int64_t id) {
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && ids[low] == id ? low : -1;
}

double ki_groups_least_score(const kith_index *index, double error) {
    const kith_calibration *curve = kith_index_calibration(index);
    if (!curve) return NAN;
    return kith_calibration_threshold(curve, fmax(error, kith_calibration_least(curve)));
}

static kith_status tell(ki_groups_progress *p, int64_t n, kith_error *err) {
    if (!p || !p->fn) return KITH_OK;
    p->n_done += n;
    if (p->fn(p->user, p->n_done, p->n_all) == 0) return KITH_OK;
    return ki_fail(err, KITH_ECANCELED, "stopped on request");
}

bool ki_groups_counts(double score, double least, kith_metric metric) {
    if (isnan(least)) return true;
    return metric == KITH_SQEUCLIDEAN ? score <= least : score >= least;
}

static void take(const kith_hits *hits, const ki_near_options *o, kith_metric metric, int64_t *near,
                 double *score) {
    for (int64_t i = 0; i < hits->n_queries; i++) {
        const int64_t n = hits->begin[i + 1] - hits->begin[i];
        for (int64_t r = 0; r < o->k; r++) {
            const kith_hit *hit = r < n ? &hits->hits[hits->begin[i] + r] : NULL;
            near[i * o->k + r] = hit && ki_groups_counts(hit->score, o->least, metric) ? hit->id : -1;
            score[i * o->k + r] = hit ? hit->score : NAN;
        }
    }
}

kith_status ki_groups_near(const kith_index *index, const int64_t *ids, int64_t n,
                           const ki_near_options *options, int64_t *ret_near, double *ret_score,
                           kith_error *err) {
    kith_status status = KITH_OK;
    float *rows = NULL;
    kith_hits hits = {0};
    kith_index_info info;
    kith_index_info_get(index, &info);
    KI_CHECK(ki_alloc_or(&rows, (size_t)(BLOCK * info.dim), sizeof *rows, "vectors", err));
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        const int64_t n_block = n - begin < BLOCK ? n - begin : BLOCK;
        const kith_array query = {KITH_F32, 2, {n_block, info.dim}, rows};
        KITH_OPTIONS(kith_search_options, how);
        how.k = options->k;
        how.self = ids + begin;
        KI_CHECK(kith_index_vectors(index, ids + begin, n_block, rows, err));
        KI_CHECK(kith_index_search(index, &query, &how, &hits, err));
        take(&hits, options, info.metric, ret_near + begin * options->k, ret_score + begin * options->k);
        kith_hits_release(&hits);
        KI_CHECK(tell(options->progress, n_block, err));
    }
done:
    kith_hits_release(&hits);
    ki_free(rows);
    return status;
}
