/* By how much one result is better than another over the same queries, and how sure that is. */
#ifndef KI_PAIRED_H
#define KI_PAIRED_H

#include "judge/per_query.h"

/* Two sides, each of one or several runs (seeds) over the same queries. */
typedef struct ki_paired_input {
    const ki_per_query *run[2];
    int64_t n_runs[2];
    const int64_t *score; /* [n_scores]: a K of R@K that all runs have, or 0 for MAP@R */
    int64_t n_scores;
    int64_t n_draws;
    uint64_t seed;
} ki_paired_input;

/* The 95 % interval of the second side's mean less the first's, for each score: a percentile bootstrap that draws queries, the
 * same for both sides, and of n > 1 runs of a side n - 1 (Rao and Wu 1988: so the variance between runs is not
 * underestimated), each side by itself. */
kith_status ki_paired_bootstrap(const ki_paired_input *input, kith_interval *ret_intervals, kith_error *err);

#endif
