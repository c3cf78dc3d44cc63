/* Scores as integers of the same order, and a sort of many of them with any number of equal ones. */
#ifndef KI_PAIR_KEYS_H
#define KI_PAIR_KEYS_H

#include <string.h>

#include "knn/topk.h"

/* -0 becomes 0: they are the same score. */
static inline ki_key ki_pair_key(double score) {
    uint64_t bits;
    score += 0.0;
    memcpy(&bits, &score, sizeof bits);
    return bits ^ (bits >> 63 ? UINT64_MAX : UINT64_C(1) << 63);
}

static inline double ki_pair_score(ki_key key) {
    const uint64_t bits = key ^ (key >> 63 ? UINT64_C(1) << 63 : UINT64_MAX);
    double score;
    memcpy(&score, &bits, sizeof score);
    return score;
}

/* Largest first. scratch [n]. */
void ki_pair_keys_sort(ki_key *keys, int64_t n, ki_key *scratch);

#endif
