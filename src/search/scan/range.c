/* All rows within a score. A list is passed over when the triangle inequality says that no row of it can be near enough; a row
 * when its estimate and four times the estimate's standard deviation fall short. */
#include "search/scan/scan.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "search/scan/look.h"
#include "search/scan/probe.h"

typedef struct ranging {
    const ki_scan_set *set;
    const ki_scan_options *options;
    double least; /* larger is nearer, as inside the library */
    ki_looker looker;
    ki_scan_query query;
    int64_t row[KI_LOOK_ROWS]; /* to be looked at */
    int64_t n_rows;
    kith_neighbor *found;
    size_t n_found, room;
} ranging;

static kith_status look(ranging *r, kith_error *err) {
    const ki_row_source *rows = &r->set->rows;
    if (r->n_rows == 0) return KITH_OK;
    if (!rows->data) KI_TRY(rows->read(rows->user, r->row, r->n_rows, r->looker.read, err));
    for (int64_t i = 0; i < r->n_rows; i++) {
        const float *x = rows->data ? rows->data + r->row[i] * rows->dim : r->looker.read + i * rows->dim;
        const double score = ki_look_score(&r->looker, &r->query, x);
        if (!(score >= r->least)) continue;
        KI_TRY(ki_grow(&r->found, &r->room, r->n_found + 1, sizeof *r->found, "neighbours", err));
        r->found[r->n_found++] = (kith_neighbor){score, r->row[i]};
    }
    r->n_rows = 0;
    return KITH_OK;
}

static kith_status expect(ranging *r, int64_t row, kith_error *err) {
    if (row == r->query.self || !ki_scan_is_allowed(r->options->allowed, row)) return KITH_OK;
    r->row[r->n_rows++] = row;
    return r->n_rows == KI_LOOK_ROWS ? look(r, err) : KITH_OK;
}

/* The best score that a row can have whose distance from the centroid is at most the radius. */
static double best_of(const ranging *r, double base, double distance, double radius) {
    const double nearest = fmax(0, distance - radius), far = sqrt(r->query.turned_square);
    switch (r->set->coder->metric) {
    case KITH_SQEUCLIDEAN: return -nearest * nearest / 2;
    case KITH_COSINE: /* of two unit rows, one less half the squared distance; a zero row has 0 */
        return fmax(fmin(1 - nearest * nearest / 2, base + far * radius), 0);
    case KITH_INNER: return base + far * radius;
    }
    return INFINITY;
}

static kith_status scan_list(ranging *r, const ki_scan_segment *segment, int64_t list, kith_error *err) {
    const ki_coder *c = r->set->coder;
    const ki_codes *codes = segment->codes;
    const int64_t begin = codes->begin[list], end = codes->begin[list + 1];
    const int64_t bytes = ki_scan_block_bytes(c->coded / KI_SCAN_GROUP, c->bits);
    double distance;
    if (begin == end) return KITH_OK;
    const double base = ki_scan_query_base(&r->query, c, r->looker.kernel, list, &distance);
    const double slack = 1e-5 * (1 + fabs(r->least) + fabs(base));
    if (best_of(r, base, distance, (double)codes->radius[list]) < r->least - slack) return KITH_OK;
    /* The error of scale * <q, y> is scale times |q - c| times that of a code's value, about 0.3 whatever the bits (one step's
     * is 1 / sqrt(12)), and the table's rounding. */
    ki_scan_table table = r->query.table;
    table.shift += (float)(4 * (0.3 * distance + r->query.rounding));
    const double radius = (double)codes->radius[list];
    const double least = r->least - base - slack - 2 * (double)c->dropped * distance * radius;
    float score[KI_SCAN_BLOCK];
    uint32_t mask;
    for (int64_t b = begin / KI_SCAN_BLOCK; b <= (end - 1) / KI_SCAN_BLOCK; b++) {
        r->looker.kernel->estimate(&table, codes->blocks + b * bytes, 1, (float)least, score, &mask);
        for (; mask; mask &= mask - 1) {
            const int64_t at = b * KI_SCAN_BLOCK + __builtin_ctz(mask);
            if (at >= begin && at < end) KI_TRY(expect(r, segment->first + codes->row[at], err));
        }
    }
    return KITH_OK;
}

kith_status ki_scan_range(const ki_scan_set *set, const float *query, double score,
                          const ki_scan_options *options, kith_neighbor **ret_neighbors, int64_t *ret_n,
                          kith_error *err) {
    static const ki_scan_options none = {0};
    const ki_coder *c = set->coder;
    kith_status status = KITH_OK;
    ranging r = {.set = set, .options = options ? options : &none};
    r.least = c->metric == KITH_SQEUCLIDEAN ? -score / 2 : score;
    if (isnan(score)) return ki_fail(err, KITH_EINVAL, "a score of NaN to reach; wanted a number");
    if (set->rows.dim != c->dim)
        return ki_fail(err, KITH_EINVAL, "rows of %lld values for a coder of %lld", (long long)set->rows.dim,
                       (long long)c->dim);
    KI_CHECK(ki_looker_init(&r.looker, c, &set->rows, err));
    KI_CHECK(ki_alloc_or(&r.query.turned, (size_t)c->padded, sizeof(float), "query", err));
    KI_CHECK(ki_alloc_or(&r.query.entry, (size_t)c->padded, 4, "query", err));
    KI_CHECK(ki_scan_query_set(&r.query, c, query, c->dim, 0, err));
    r.query.self = r.options->self ? r.options->self[0] : -1;
    for (int64_t s = 0; s < set->n_segments; s++) {
        const ki_scan_segment *segment = set->segments + s;
        for (int64_t l = 0; segment->codes && l < c->n_lists; l++) KI_CHECK(scan_list(&r, segment, l, err));
        for (int64_t i = 0; !segment->codes && i < segment->n; i++)
            KI_CHECK(expect(&r, segment->first + i, err));
    }
    KI_CHECK(look(&r, err));
    if (r.n_found) qsort(r.found, r.n_found, sizeof *r.found, ki_best_compare);
    for (size_t i = 0; i < r.n_found; i++)
        r.found[i].score = (float)ki_score_shown(c->metric, r.found[i].score);
    *ret_neighbors = r.found;
    *ret_n = (int64_t)r.n_found;
    r.found = NULL;
done:
    ki_looker_release(&r.looker);
    ki_free(r.query.turned);
    ki_free(r.query.entry);
    ki_free(r.found);
    return status;
}
