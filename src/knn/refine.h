/* Decide in float64: lists made with float32 scores become lists in the order of float64 scores. */
#ifndef KI_REFINE_H
#define KI_REFINE_H

#include "knn/topk.h"

typedef struct ki_ranked {
    double score;
    int32_t index;
    bool is_exact;
} ki_ranked;

typedef struct ki_refine {
    const ki_panels *query, *gallery;
    const uint64_t *allowed; /* as ki_topk's */
    int64_t n_allowed;       /* gallery rows that may be found */
} ki_refine;

/* Candidates to keep beyond k, so that the k best in float64 are nearly always among them. */
static inline int64_t ki_refine_spare(int64_t k) { return 16 + k / 8; }

/* keys [n_keys] best first, the float32 list of query row i; self is the gallery row to leave out, or
 * -1. ret_list has room for all gallery rows, because all of them are scored when more rows than the spare ones
 * are too close to call. Returns the number of valid
 * entries, at most k. */
int64_t ki_refine_row(const ki_refine *refine, int64_t i, int64_t self, const ki_key *keys, int64_t n_keys,
                      int64_t k, ki_ranked *ret_list);

/* For qsort: larger score first, then lower index. */
int ki_ranked_compare(const void *a, const void *b);

#endif
