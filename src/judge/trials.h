/* Trials: every labelled row asked for as if it were a new picture, once with the rest of its label there and once with all
 * of its label left out. The first says how right hits differ from wrong ones, the second what the hits of a thing look like that
 * is not there. */
#ifndef KI_TRIALS_H
#define KI_TRIALS_H

#include "kith/knn.h"

enum { KI_TRIALS_MOST_K = 1000 };

typedef struct ki_trial_hit {
    float score; /* as a search shows it */
    int32_t row; /* -1: none, and then the score is NaN */
} ki_trial_hit;

typedef struct ki_trials {
    int64_t n, k, n_labels; /* queries, hits kept of each, different labels */
    kith_metric metric;
    int64_t n_rows;     /* rows that can be hits: the queries come first, the others after them */
    int64_t *label;     /* [n_rows]: the number of its label, 0 to n_labels - 1, rising with the caller's */
    ki_trial_hit *with; /* [n, k]: the nearest other rows, nearest first, ties by lower row */
    ki_trial_hit *without; /* [n, k]: the nearest rows of other labels */
} ki_trials;

/* rows [n, dim] of any float type, labels [n] from 0 on; every row is a query (n_rows is n). k may be larger than the number of
 * rows. The same bits for any number of threads. Memory besides *ret is linear in n and in k.
 *
 * KITH_EINVAL: no matrix, a label below 0, or k is not 1 to KI_TRIALS_MOST_K. KITH_ENOTFOUND: fewer than two labels.
 * KITH_ENUMERIC: a row that is not finite. */
kith_status ki_trials_run(const kith_array *rows, const int64_t *labels, kith_metric metric, int64_t k,
                          ki_trials *ret, kith_error *err);
void ki_trials_release(ki_trials *trials); /* fine on a zeroed struct */

/* Number labels: ret_number [n] from 0 on, rising with the label; *ret_n how many there are. */
kith_status ki_trials_number(const int64_t *labels, int64_t n, int64_t *ret_number, int64_t *ret_n,
                             kith_error *err);

#endif
