/* Counter-based random numbers, made of Philox (philox.h).
 *
 * A stream is named by (seed, purpose, a, b), for instance (seed, KI_RNG_DROPOUT, step, node): the
 * numbers depend on the name and the position alone, never on threads or on what was drawn before.
 * ki_rng is a plain value: copy it to save a position. */
#ifndef KI_RNG_H
#define KI_RNG_H

#include <stdint.h>

#include "base/philox.h"

typedef enum ki_rng_purpose {
    KI_RNG_INIT = 1, /* parameter initialisation */
    KI_RNG_DROPOUT,  /* dropout masks */
    KI_RNG_SAMPLER,  /* batches */
    KI_RNG_AUGMENT,  /* crops, mirrors */
    KI_RNG_MINER,    /* random pairs */
    KI_RNG_REGULARIZER,
    KI_RNG_KMEANS,
    KI_RNG_BOOTSTRAP,
    KI_RNG_PCA,
    KI_RNG_SPLIT,
    KI_RNG_SYNTH,
    KI_RNG_MAP,
    KI_RNG_TEST,
    KI_RNG_SEARCH,  /* rotations and samples of search */
    KI_RNG_PROXIES, /* classes that take part in a step */
    KI_RNG_EFFECT,  /* colours and so on of what was cut out */
    KI_RNG_SIDE,    /* the size of a batch's images */
} ki_rng_purpose;

typedef struct ki_rng {
    uint32_t key[2];
    uint32_t counter[4]; /* [0] block number, [1] purpose, [2] a, [3] b */
    uint32_t block[4];
    int n_left; /* words of the block that are not used yet */
} ki_rng;

ki_rng ki_rng_at(uint64_t seed, ki_rng_purpose purpose, uint32_t a, uint32_t b);

/* The beginning of the stream that has the same seed, a and b, but another purpose. */
ki_rng ki_rng_beside(const ki_rng *rng, ki_rng_purpose purpose);

uint32_t ki_rng_u32(ki_rng *rng);
/* Uniform in [0, n), without bias; n > 0. */
uint32_t ki_rng_below(ki_rng *rng, uint32_t n);
/* Uniform in [0, 1) with 24 and 53 bits. */
float ki_rng_float(ki_rng *rng);
double ki_rng_double(ki_rng *rng);
/* Standard normal (Box-Muller, one of the pair). */
double ki_rng_normal(ki_rng *rng);
/* Fisher-Yates over an array of indices. */
void ki_rng_shuffle(ki_rng *rng, int64_t *items, int64_t n);

#endif
