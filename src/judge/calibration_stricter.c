/* The stricter of two calibration curves: at every score the larger of the two false-match rates, so that no rate is told that one
 * of them measured to be larger.
 *
 * In the plane of score and log rate both curves are made of lines that meet at their points. Between two neighbouring points
 * of both lists the larger of two lines is convex, and the chord lies on it or above. So the curve through all points would
 * do. It has too many; what is left out must lie on the new curve or below it. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "judge/verification.h"

enum { MOST = KITH_CALIBRATION_POINTS };

typedef struct point {
    double threshold, fmr;
} point;

/* Larger is nearer for every metric. */
static double strictness(const kith_calibration *c, double score) {
    return c->metric == KITH_SQEUCLIDEAN ? -score : score;
}

/* Below the loosest threshold everything matches; at it the rate may jump, and the upper end counts. */
static double rate_at(const kith_calibration *c, double score) {
    return strictness(c, score) <= strictness(c, c->threshold[0])
               ? 1
               : kith_calibration_false_match_rate(c, score);
}

/* The thresholds of both, the loosest first, each once. */
static int64_t list_points(const kith_calibration *a, const kith_calibration *b, point *ret) {
    int64_t n = 0;
    for (int64_t i = 0, j = 0; i < a->n || j < b->n; n++) {
        const double x = i < a->n ? strictness(a, a->threshold[i]) : INFINITY,
                     y = j < b->n ? strictness(b, b->threshold[j]) : INFINITY;
        const double threshold = x <= y ? a->threshold[i] : b->threshold[j];
        i += x <= y;
        j += y <= x;
        ret[n] = (point){threshold, fmax(rate_at(a, threshold), rate_at(b, threshold))};
    }
    for (int64_t i = n - 1; i > 0; i--) ret[i - 1].fmr = fmax(ret[i - 1].fmr, ret[i].fmr); /* rounding */
    return n;
}

/* At rates that fall by equal factors, as ki_calibration_make, the loosest of each factor. Before a drop by several factors also the
 * strictest, so that what is left out says nothing of the drop. ret_kept [MOST], the loosest first. */
static int64_t choose(const point *all, int64_t n, int64_t n_different, int64_t *ret_kept) {
    int64_t kept[MOST], n_kept = 0, i = n;
    bool has_room = false; /* the factor before had no point */
    for (int k = MOST - 1; k >= 0; k--) {
        const double most = pow((double)n_different, -(double)k / (MOST - 1)) * (1 + 1e-12);
        const int64_t before = i;
        while (i > 0 && all[i - 1].fmr <= most) i--;
        if (i < before - 1 && has_room) kept[n_kept++] = before - 1;
        if (i < before) kept[n_kept++] = i;
        has_room = i == before;
    }
    for (i = 0; i < n_kept; i++) ret_kept[i] = kept[n_kept - 1 - i];
    return n_kept;
}

/* The least rate of point `to` with which the line from `from` passes none of the points between them from below. It is at most
 * the rate of one of those, so at most two factors too large. */
static double raise(const point *all, int64_t from, int64_t to) {
    double most = log(all[to].fmr);
    const double begin = log(all[from].fmr), length = all[to].threshold - all[from].threshold;
    for (int64_t i = from + 1; i < to; i++) {
        const double part = (all[i].threshold - all[from].threshold) / length;
        most = fmax(most, begin + (log(all[i].fmr) - begin) / part);
    }
    return most > log(all[to].fmr) ? fmin(exp(most) * (1 + 1e-12), all[from].fmr) : all[to].fmr;
}

void ki_calibration_stricter(const kith_calibration *own, const kith_calibration *beside,
                             kith_calibration *ret) {
    point all[2 * MOST];
    int64_t kept[MOST];
    kith_calibration c = {
        .metric = own->metric,
        .n_classes = own->n_classes,
        .n_same = own->n_same,
        .n_different = own->n_different < beside->n_different ? own->n_different : beside->n_different};
    const bool fits = strlen(beside->source) + strlen(own->source) + sizeof ", " <= sizeof c.source;
    ki_snprintf(c.source, sizeof c.source, "%s, %s", fits && *beside->source ? beside->source : "other",
                own->source);
    const int64_t n = list_points(own, beside, all);
    c.n = choose(all, n, c.n_different, kept);
    for (int64_t i = 0; i < c.n; i++) {
        point *at = &all[kept[i]];
        if (i > 0) at->fmr = raise(all, kept[i - 1], kept[i]);
        c.threshold[i] = at->threshold;
        c.fmr[i] = at->fmr;
        c.tmr[i] = kith_calibration_match_rate(own, at->threshold);
        if (i > 0) c.tmr[i] = fmin(c.tmr[i], c.tmr[i - 1]);
    }
    *ret = c;
}
