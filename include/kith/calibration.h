/* Calibration: from a score to a false-match rate, and back.
 *
 * A calibration is a short curve made from pairs of items whose classes are known: with a threshold on the score, which share
 * of the pairs of different classes is taken for the same (the false-match rate), and which share of the pairs of one class
 * is (the true match rate). What it says holds for classes like those it was made from; kith makes it from classes that
 * training has not seen (kith_verification_run, kith train). It is a plain struct: copy it, store it, no release. */
#ifndef KITH_CALIBRATION_H
#define KITH_CALIBRATION_H

#include <stdint.h>

#include "kith/knn.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KITH_CALIBRATION_POINTS 256

typedef struct kith_calibration {
    kith_metric metric;          /* of the scores; squared distances are thresholds from above */
    char source[32];             /* which items: "validation"; ends with a 0 */
    int64_t n_classes;           /* that the pairs come from */
    int64_t n_same, n_different; /* pairs of one class, and of two */
    int64_t n;                   /* points; 0: there is no curve */
    /* From the loosest threshold to the strictest; a score that equals the threshold is a match. */
    double threshold[KITH_CALIBRATION_POINTS];
    double fmr[KITH_CALIBRATION_POINTS]; /* false-match rate at it, falling */
    double tmr[KITH_CALIBRATION_POINTS]; /* true match rate at it, falling */
} kith_calibration;

/* The threshold at which at most the part `fmr` of different pairs match, between two points of the curve on the line that
 * joins them (fmr on a logarithmic scale). NaN when there is no curve, fmr is not above 0, or the pairs were too few to tell
 * so small a rate: below 1 / n_different. The loosest threshold for rates above the curve's. */
KITH_API double kith_calibration_threshold(const kith_calibration *calibration, double fmr);

/* The smallest rate that there is a threshold for, rounded up to three digits; NaN when there is no curve. */
KITH_API double kith_calibration_least(const kith_calibration *calibration);

/* The false-match rate of a threshold put at this score: how often a pair of different classes scores as well. At least
 * 1 / n_different, as fewer than one of the pairs cannot be counted; at most 1. NaN when there is no curve or score is NaN. */
KITH_API double kith_calibration_false_match_rate(const kith_calibration *calibration, double score);

/* The true match rate of the same threshold: how often a pair of one class scores as well. */
KITH_API double kith_calibration_match_rate(const kith_calibration *calibration, double score);

/* Is this a curve: 1 to 256 points in order, rates from 0 to 1, all finite? For readers of files. The line of the error says
 * what is wrong (KITH_EFORMAT). */
KITH_API kith_status kith_calibration_check(const kith_calibration *calibration, kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
