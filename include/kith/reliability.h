/* Reliability: the chance that a hit of a search is wrong, measured on the labels of an index.
 *
 * The false-match rate (kith/calibration.h) is about pairs of different things, not about hits: a hit is the best of many, so it
 * is wrong far more often. Here every labelled item was asked for as if it were new, once with the rest of its label in the
 * index and once without, and the hits were counted by their evidence: score, rank, and by how much the hit is nearer than the
 * nearest hit with another label. What is said holds for queries like the items of the index, of which a part, the share
 * `unknown`, shows things that are not in the index. A plain struct: copy it, store it, no release. */
#ifndef KITH_RELIABILITY_H
#define KITH_RELIABILITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/knn.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KITH_RELIABILITY_KNOTS 128
#define KITH_RELIABILITY_SHARES 4 /* of unknown things that intervals are kept for */
#define KITH_RELIABILITY_TOPS 33
#define KITH_UNKNOWN_DEFAULT 0.1

typedef struct kith_reliability {
    kith_metric metric;
    int64_t n_labels;
    int64_t n_present;                       /* queries whose label was there, with another item */
    int64_t n_absent;                        /* queries whose label was left out */
    int64_t depth;                           /* hits of each that were counted */
    double weight[3];                        /* of score, rank and margin in the evidence, 0 or more */
    int64_t n;                               /* knots; 0: nothing is known */
    double evidence[KITH_RELIABILITY_KNOTS]; /* of a knot's hits on average, rising */
    /* Hits of a knot for each query: right ones, wrong ones, and those of things that are not there. */
    double right[KITH_RELIABILITY_KNOTS], wrong[KITH_RELIABILITY_KNOTS], absent[KITH_RELIABILITY_KNOTS];
    double together
        [2]; /* errors that come together, because photos of a thing are alike: of wrong and absent hits */
    /* The 95 % interval of the chance that a hit is wrong, by share and knot. */
    double low[KITH_RELIABILITY_SHARES][KITH_RELIABILITY_KNOTS];
    double high[KITH_RELIABILITY_SHARES][KITH_RELIABILITY_KNOTS];
    /* Of all hits from this knot on: the part that is wrong, at most, with 95 % confidence. */
    double wrong_most[KITH_RELIABILITY_SHARES][KITH_RELIABILITY_KNOTS];
    /* The part of the queries with a right hit from this knot on, at least, with 95 % confidence. */
    double found_least[KITH_RELIABILITY_KNOTS];
    /* Quantiles of the first hit's score, from the lowest: with the label there, and without. */
    double top_present[KITH_RELIABILITY_TOPS], top_absent[KITH_RELIABILITY_TOPS];
} kith_reliability;

/* The chance that a hit is wrong, and its 95 % interval. */
typedef struct kith_error_rate {
    double rate, low, high;
} kith_error_rate;

/* How much speaks for a hit: more is better. rank counts from 1; margin is the score less that of the nearest hit with another label
 * (with squared distances: that one less this one), below 0 for hits behind it. */
KITH_API double kith_reliability_evidence(const kith_reliability *reliability, double score, int64_t rank,
                                          double margin);

/* The chance that a hit with this evidence is wrong, where the part `unknown` of the queries shows things that are not in the index,
 * 0 to 1. Falls with the evidence, rises with the part. Never 0: as many trials cannot tell that. NaN when nothing is known or an
 * argument is not a number. */
KITH_API kith_error_rate kith_reliability_error_rate(const kith_reliability *reliability, double evidence,
                                                     double unknown);

/* The least evidence with which hits are shown so that no more than the part 1 - precision of all that are shown is wrong, with 95 %
 * confidence. NaN: the trials were too few, or the vectors are not good enough. */
KITH_API double kith_reliability_precise(const kith_reliability *reliability, double precision,
                                         double unknown);

/* The least evidence with which hits are shown so that the part `complete` of the queries whose thing is in the index get a
 * right one, with 95 % confidence; NaN as above. */
KITH_API double kith_reliability_complete(const kith_reliability *reliability, double complete);

/* Queries without an error that it takes to promise a part, with 95 % confidence: 299 for 0.99. */
KITH_API int64_t kith_reliability_needed(double part);

/* Are these queries (top [n]: the score of the first hit of each, NaN where there is none) less like the items of the index than those that
 * were measured (Kolmogorov and Smirnov, one-sided, p < 0.01)? Fewer than 20 cannot tell: false. *ret_unknown receives the least share
 * of unknown things, `unknown` or more, that explains the scores, 1 at most; may be NULL. */
KITH_API bool kith_reliability_is_unlike(const kith_reliability *reliability, const double *top, int64_t n,
                                         double unknown, double *ret_unknown);

/* A rate in words: "1 of 14", "1 of 250,000", "8 of 10". In buf, which is returned; "" when it is NaN. */
KITH_API const char *kith_rate_words(double rate, char *buf, size_t bytes);

/* Is this one: 1 to 128 knots in order, parts from 0 to 1, all finite? For readers of files. The line of the error says what is
 * wrong (KITH_EFORMAT). */
KITH_API kith_status kith_reliability_check(const kith_reliability *reliability, kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
