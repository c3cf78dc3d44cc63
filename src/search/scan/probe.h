/* Which lists a query visits. */
#ifndef KI_SEARCH_PROBE_H
#define KI_SEARCH_PROBE_H

#include "search/scan/query.h"
#include "search/scan/scan.h"

static inline bool ki_scan_is_allowed(const uint64_t *allowed, int64_t row) {
    return !allowed || (allowed[row / 64] >> (row % 64) & 1);
}

/* How far a query goes. */
typedef struct ki_probes {
    int64_t n_lists;         /* to visit, at least; at most those of the coder */
    const uint64_t *allowed; /* NULL: all rows, and the rest is not used */
    int64_t n_wanted;        /* allowed rows to meet, at least, as long as there are lists */
    int64_t n_expected;      /* that n_lists lists have, on average */
} ki_probes;

/* What a query does. */
typedef struct ki_visits {
    int64_t n_lists;
    bool is_far; /* allowed rows are rare in the nearest lists: they lie in a corner of their own */
} ki_visits;

typedef struct ki_prober {
    const ki_scan_set *set;
    ki_probes probes;
    int64_t most; /* lists that a query can come to visit */
    ki_coder_ranker ranker;
    float *score;       /* [n_together, n_panels * 64] */
    ki_key *keys;       /* [2 n_lists]: candidates, and scratch */
    int32_t *n_allowed; /* [n_lists]: allowed rows of a list, -1: not counted yet; NULL without a bitmap */
} ki_prober;

/* For up to n_together (1 to 4) queries at a time. */
kith_status ki_prober_init(ki_prober *prober, const ki_scan_set *set, const ki_probes *probes,
                           int64_t n_together, kith_error *err);
void ki_prober_release(ki_prober *prober); /* fine on a zeroed struct */

/* The lists of n queries, up to n_together, whose turned rows follow each other: ret_lists [n, most], the nearest first. Lists
 * without allowed rows are left out. */
void ki_prober_choose(ki_prober *prober, const float *turned, int64_t n, uint32_t *ret_lists,
                      ki_visits *ret_visits);

#endif
