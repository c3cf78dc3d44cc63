/* Names with a promised rate of false ones: from trials to a curve of the evidence of a name against two error rates.
 *
 *   unknown   of photos whose thing is not there, the share that is given a name
 *   wrong     of photos whose thing is there, the share that is given another name
 *
 * Each has an upper bound at 95 %, over the draw of the things (classes) that it was measured on. Where both bounds are at most the error
 * that is promised, the error holds for every mix of known and unknown things. */
#ifndef KI_NAMING_H
#define KI_NAMING_H

#include "io/json.h"
#include "judge/evidence.h"
#include "judge/trials.h"

enum { KI_NAMING_POINTS = 256, KI_NAMING_QUANTILES = 33 };

#define KI_NAMING_LEVEL 0.95

/* What happens where a name is given from this evidence on. */
typedef struct ki_naming_point {
    double evidence;
    double unknown, unknown_high;
    double wrong, wrong_high;
    double low;   /* lower bound of the larger of the two */
    double named; /* of photos whose thing is there, the share that is given its name */
} ki_naming_point;

typedef struct ki_name_curve {
    kith_metric metric;
    int64_t n_rows, n_labels, n_single; /* what names were given from; labels of one row */
    int64_t n_unknown, n_known;         /* trials of either kind */
    double
        n_independent; /* as many independent trials say as much of the strictest rates; the fewer of both kinds */
    int64_t n;         /* 0: there is no curve */
    ki_naming_point
        point[KI_NAMING_POINTS]; /* from the strictest on: evidence falls, rates and bounds rise */
    /* How near the nearest photo is: quantiles of both kinds of trial, from the farthest on. Larger is nearer, also for distances. */
    double near_unknown[KI_NAMING_QUANTILES], near_known[KI_NAMING_QUANTILES];
} ki_name_curve;

/* Of trials with lists of at least KI_EVIDENCE_HITS. KITH_ENOTFOUND: there is no label with two rows, or fewer than three labels. */
kith_status ki_naming_make(const ki_trials *trials, ki_name_curve *ret, kith_error *err);

/* The evidence from which on names may be given with at most this rate of false ones. NaN: no evidence promises as much. */
double ki_naming_threshold(const ki_name_curve *naming, double error);
/* The smallest rate that is promised. */
double ki_naming_least(const ki_name_curve *naming);
/* The rates where names are given from this evidence on: those of the last point that is no stricter. */
ki_naming_point ki_naming_at(const ki_name_curve *naming, double evidence);
/* Labelled rows that it takes at least to promise this rate, rounded up to two digits, as far as these tell. */
int64_t ki_naming_wanted(const ki_name_curve *naming, double error);

/* Are the nearest photos of these queries farther than those of things that are not there, or nearer than those of things that are? Then
 * the photos are of another kind than those measured. By the one-sided test of Kolmogorov and Smirnov at 0.1 %: -1 farther, 1 nearer,
 * 0 neither, and of fewer than 20. near [n]: scores of the nearest, which are sorted. */
enum { KI_NAMING_LEAST_ASKED = 20 };
int ki_naming_unlike(const ki_name_curve *naming, double *near, int64_t n);

/* As the text of a note, and back. KITH_EFORMAT: it is not one, or the numbers are no curve. */
kith_status ki_naming_write(const ki_name_curve *naming, kith_json *json, const char **ret_text,
                            kith_error *err);
kith_status ki_naming_read(const char *text, ki_name_curve *ret, kith_error *err);

#endif
