/* Looking up a calibration curve. Between two points the score is linear in the logarithm of the false-match rate, since
 * the tail of different pairs falls about exponentially; the true match rate is linear in the score. */
#include "kith/calibration.h"

#include <math.h>
#include <string.h>

#include "base/argument.h"

/* Larger is nearer for every metric. */
static double strictness(const kith_calibration *c, double score) {
    return c->metric == KITH_SQEUCLIDEAN ? -score : score;
}

/* Rates below one pair cannot be told. */
static double least_rate(const kith_calibration *c) {
    return c->n_different > 0 ? 1 / (double)c->n_different : 1;
}

static double told_rate(const kith_calibration *c, int64_t i) { return fmax(c->fmr[i], least_rate(c)); }

static bool has_curve(const kith_calibration *c) { return c && c->n > 0 && c->n <= KITH_CALIBRATION_POINTS; }

double kith_calibration_threshold(const kith_calibration *c, double fmr) {
    /* A rate that was printed and read again may be a little less than 1 / n_different. */
    if (!has_curve(c) || !(fmr > 0) || fmr < least_rate(c) * (1 - 1e-9)) return NAN;
    int64_t i = 0; /* the loosest point that keeps to the rate */
    while (i < c->n && c->fmr[i] > fmr) i++;
    if (i == c->n) return NAN;
    if (i == 0 || told_rate(c, i) >= fmr) return c->threshold[i];
    const double loose = log(c->fmr[i - 1]), strict = log(told_rate(c, i));
    if (!(loose > strict)) return c->threshold[i];
    const double part = (loose - log(fmr)) / (loose - strict);
    return c->threshold[i - 1] + part * (c->threshold[i] - c->threshold[i - 1]);
}

double kith_calibration_least(const kith_calibration *c) {
    if (!has_curve(c)) return NAN;
    const double least = told_rate(c, c->n - 1), digit = pow(10, floor(log10(least)) - 2);
    return fmin(ceil(least / digit * (1 - 1e-12)) * digit, 1);
}

/* The first point that is stricter than the score: 0 … n. */
static int64_t first_stricter(const kith_calibration *c, double score) {
    const double at = strictness(c, score);
    int64_t low = 0, high = c->n;
    while (low < high) {
        const int64_t mid = (low + high) / 2;
        if (strictness(c, c->threshold[mid]) > at)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

/* Where the score lies between points i - 1 and i: 0 … 1. */
static double part_of(const kith_calibration *c, int64_t i, double score) {
    return (score - c->threshold[i - 1]) / (c->threshold[i] - c->threshold[i - 1]);
}

double kith_calibration_false_match_rate(const kith_calibration *c, double score) {
    if (!has_curve(c) || isnan(score)) return NAN;
    const int64_t i = first_stricter(c, score);
    if (i == 0) return 1;
    if (i == c->n || c->fmr[i - 1] <= least_rate(c)) return told_rate(c, i - 1);
    const double loose = log(told_rate(c, i - 1)), strict = log(told_rate(c, i));
    return exp(loose + part_of(c, i, score) * (strict - loose));
}

double kith_calibration_match_rate(const kith_calibration *c, double score) {
    if (!has_curve(c) || isnan(score)) return NAN;
    const int64_t i = first_stricter(c, score);
    if (i == 0) return 1;
    if (i == c->n) return c->tmr[i - 1];
    return c->tmr[i - 1] + part_of(c, i, score) * (c->tmr[i] - c->tmr[i - 1]);
}

static bool is_rate(double x) { return x >= 0 && x <= 1; }

kith_status kith_calibration_check(const kith_calibration *c, kith_error *err) {
    KI_NEED(err, c);
    if (c->n < 1 || c->n > KITH_CALIBRATION_POINTS)
        return ki_fail(err, KITH_EFORMAT, "the calibration has %lld points; wanted 1 to %d", (long long)c->n,
                       KITH_CALIBRATION_POINTS);
    if ((unsigned)c->metric > KITH_SQEUCLIDEAN || c->n_same < 1 || c->n_different < 1 || c->n_classes < 1 ||
        !memchr(c->source, 0, sizeof c->source))
        return ki_fail(err, KITH_EFORMAT, "the calibration does not say what it was made from");
    for (int64_t i = 0; i < c->n; i++) {
        const bool is_point = isfinite(c->threshold[i]) && is_rate(c->fmr[i]) && is_rate(c->tmr[i]);
        const bool is_in_order =
            i == 0 || (strictness(c, c->threshold[i]) > strictness(c, c->threshold[i - 1]) &&
                       c->fmr[i] <= c->fmr[i - 1] && c->tmr[i] <= c->tmr[i - 1]);
        if (!is_point || !is_in_order)
            return ki_fail(err, KITH_EFORMAT,
                           "point %lld of the calibration is %g with rates %g and %g; wanted falling rates "
                           "from 0 to 1 at stricter and stricter thresholds",
                           (long long)i, c->threshold[i], c->fmr[i], c->tmr[i]);
    }
    return KITH_OK;
}
