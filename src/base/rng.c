/* Streams of random numbers, block after block of ki_philox. */
#include "base/rng.h"

#include <math.h>

ki_rng ki_rng_at(uint64_t seed, ki_rng_purpose purpose, uint32_t a, uint32_t b) {
    return (ki_rng){.key = {(uint32_t)seed, (uint32_t)(seed >> 32)}, .counter = {0, (uint32_t)purpose, a, b}};
}

ki_rng ki_rng_beside(const ki_rng *rng, ki_rng_purpose purpose) {
    return (ki_rng){.key = {rng->key[0], rng->key[1]},
                    .counter = {0, (uint32_t)purpose, rng->counter[2], rng->counter[3]}};
}

uint32_t ki_rng_u32(ki_rng *rng) {
    if (rng->n_left == 0) {
        ki_philox(rng->counter, rng->key, rng->block);
        rng->counter[0]++;
        rng->n_left = 4;
    }
    return rng->block[4 - rng->n_left--];
}

/* Lemire's multiply-and-reject. */
uint32_t ki_rng_below(ki_rng *rng, uint32_t n) {
    const uint32_t least = (uint32_t)-n % n;
    uint64_t product = 0;
    do {
        product = (uint64_t)ki_rng_u32(rng) * n;
    } while ((uint32_t)product < least);
    return (uint32_t)(product >> 32);
}

float ki_rng_float(ki_rng *rng) { return (float)(ki_rng_u32(rng) >> 8) * 0x1p-24f; }

double ki_rng_double(ki_rng *rng) {
    const uint64_t high = ki_rng_u32(rng) >> 5, low = ki_rng_u32(rng) >> 6;
    return (double)(high << 26 | low) * 0x1p-53;
}

double ki_rng_normal(ki_rng *rng) {
    const double u = 1.0 - ki_rng_double(rng), v = ki_rng_double(rng);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586476925 * v);
}

void ki_rng_shuffle(ki_rng *rng, int64_t *items, int64_t n) {
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = ki_rng_below(rng, (uint32_t)(i + 1));
        const int64_t t = items[i];
        items[i] = items[j];
        items[j] = t;
    }
}
