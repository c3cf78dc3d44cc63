/* Reliability of hits from trials, and as text.
 *
 * reliability_fit.c makes one number, the evidence, of score, rank and margin. reliability_measure.c counts the hits of the
 * trials by it, and draws classes for the intervals. reliability.c answers. */
#ifndef KI_RELIABILITY_H
#define KI_RELIABILITY_H

#include <math.h>

#include "judge/trials.h"
#include "kith/reliability.h"

enum {
    KI_RELIABILITY_DEPTH = 24,
    KI_RELIABILITY_LEAST_LABELS = 10, /* with two rows or more */
    KI_RELIABILITY_FEATURES = 3       /* score, rank, margin */
};

typedef enum ki_hit_kind { KI_HIT_RIGHT, KI_HIT_WRONG, KI_HIT_ABSENT } ki_hit_kind;

/* A hit of a trial. */
typedef struct ki_counted_hit {
    float x[KI_RELIABILITY_FEATURES]; /* each: the more, the better */
    float evidence;
    int32_t label; /* of the query */
    int32_t query;
    uint8_t kind;
} ki_counted_hit;

/* What is measured by score, rank and margin. */
static inline void ki_reliability_features(kith_metric metric, double score, int64_t rank, double margin,
                                           double ret[KI_RELIABILITY_FEATURES]) {
    ret[0] = metric == KITH_SQEUCLIDEAN ? -score : score;
    ret[1] = -log((double)(rank < 1 ? 1 : rank));
    ret[2] = margin;
}

/* margin [n] of a list, nearest first; label -1: a hit without one. See kith_reliability_evidence. Only the first `depth` are compared
 * with, so that a margin does not depend on how many hits are asked for; where all of them have one label, the last stands for the
 * one that would follow. */
void ki_reliability_margins(kith_metric metric, const double *score, const int64_t *label, int64_t n,
                            int64_t depth, double *ret_margin);

/* The hits of all trials, in order: ret_hits belongs to the caller. Rows that are alone with their label are absent only. */
kith_status ki_reliability_hits(const ki_trials *trials, ki_counted_hit **ret_hits, int64_t *ret_n,
                                int64_t *ret_n_present, kith_error *err);

/* Weights of the features, 0 or more, by logistic regression; then every hit's evidence is filled in. */
void ki_reliability_fit(ki_counted_hit *hits, int64_t n, double n_present, double n_absent,
                        double ret_weight[KI_RELIABILITY_FEATURES]);

/* All of it. KITH_ENOTFOUND: fewer than 10 labels with two rows, or nothing is right or wrong. */
kith_status ki_reliability_measure(const ki_trials *trials, kith_reliability *ret, kith_error *err);

/* Rates that rise while the evidence falls, by pooling neighbours: ret_rate [n]; ret_mass [n] the hits that were pooled, for each query.
 * `odds` of unknown things are share / (1 - share). */
void ki_reliability_pool(const double *right, const double *wrong, const double *absent, double odds,
                         int64_t n, double *ret_rate, double *ret_mass);

/* The rates of every knot for one share of unknown things, as log odds: kith_reliability_error_rate looks a hit up in them. */
typedef struct ki_error_rates {
    int64_t n;
    double evidence[KITH_RELIABILITY_KNOTS];
    double rate[KITH_RELIABILITY_KNOTS], low[KITH_RELIABILITY_KNOTS], high[KITH_RELIABILITY_KNOTS];
} ki_error_rates;

/* unknown from 0 to 1. */
void ki_error_rates_make(const kith_reliability *reliability, double unknown, ki_error_rates *ret);
kith_error_rate ki_error_rates_at(const ki_error_rates *rates, double evidence);

/* The shares that intervals are kept for. */
extern const double ki_reliability_shares[KITH_RELIABILITY_SHARES];

/* ---- as text (JSON), for a note of an index ---- */

/* *ret_text is freed with ki_free. */
kith_status ki_reliability_write(const kith_reliability *reliability, char **ret_text, kith_error *err);
/* KITH_EFORMAT: it is damaged. */
kith_status ki_reliability_read(const char *text, kith_reliability *ret, kith_error *err);

#endif
