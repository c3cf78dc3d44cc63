/* Which values a dropout keeps. Every backend draws this same mask.
 *
 * The mask is a pure function of (seed, step, node, element), where `element` is the index in the plain [mb,
 * c, h, w] or [mb, c] order, whatever the backend's layout: words 4b to 4b + 3 of the stream are ki_philox at
 * counter {b, KI_RNG_DROPOUT, step, node} with the seed as key, low half first, and element i is kept when
 * word i >= p * 2^32 (rounded). Only the low 32 bits of the step count. The block number has 32 bits, enough
 * for 2^34 elements. */
#ifndef KI_DROPOUT_H
#define KI_DROPOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

typedef struct ki_dropout {
    uint32_t key[2];
    uint32_t step, node;
    uint32_t threshold; /* words below it are dropped */
    double scale;       /* of what is kept: 1 / (1 - p) */
} ki_dropout;

/* 0 <= p < 1. */
static inline ki_dropout ki_dropout_at(uint64_t seed, uint64_t step, uint32_t node, double p) {
    const double threshold = p * 0x1p32 + 0.5;
    return (ki_dropout){.key = {(uint32_t)seed, (uint32_t)(seed >> 32)},
                        .step = (uint32_t)step,
                        .node = node,
                        .threshold = threshold < 0x1p32 ? (uint32_t)threshold : UINT32_MAX,
                        .scale = 1 / (1 - p)};
}

/* Are elements 4 * block to 4 * block + 3 kept? */
static inline void ki_dropout_block(const ki_dropout *dropout, int64_t block, bool ret_keep[4]) {
    const uint32_t counter[4] = {(uint32_t)block, KI_RNG_DROPOUT, dropout->step, dropout->node};
    uint32_t words[4];
    ki_philox(counter, dropout->key, words);
    for (int i = 0; i < 4; i++) ret_keep[i] = words[i] >= dropout->threshold;
}

/* The same for single elements, one after the other: keep and block are the caller's, and block is -1 before the first. */
static inline bool ki_dropout_keeps(const ki_dropout *dropout, int64_t element, bool keep[4],
                                    int64_t *block) {
    if (element / 4 != *block) {
        *block = element / 4;
        ki_dropout_block(dropout, *block, keep);
    }
    return keep[element % 4];
}

#endif
