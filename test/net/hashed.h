/* Numbers from a hash of a name, the same here as in test/golden/net/make_steps.py. */
#ifndef KITH_TEST_HASHED_H
#define KITH_TEST_HASHED_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/shape.h"

static inline uint64_t hashed_name(const char *name) {
    uint64_t h = 0xcbf29ce484222325u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return h;
}

static inline uint64_t hashed_word(uint64_t name, int64_t i) {
    uint64_t z = name + (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Uniform in [low, high). */
static inline void hashed_fill(const char *name, float *values, int64_t n, double low, double high) {
    const uint64_t seed = hashed_name(name);
    for (int64_t i = 0; i < n; i++)
        values[i] = (float)(low + (high - low) * ((double)(hashed_word(seed, i) >> 40) / 16777216.0));
}

/* He-uniform weights; the scales and shifts of a batch norm (has_stats) as make_steps.py explains. */
static inline void hashed_param(const char *name, const ki_shape *shape, bool has_stats, float *values) {
    const int64_t n = ki_shape_count(shape);
    const char *role = strrchr(name, '.') + 1;
    if (shape->n_dims > 1) {
        const double bound = sqrt(6.0 / (double)(n / shape->dim[0]));
        hashed_fill(name, values, n, -bound, bound);
    } else if (has_stats && !strcmp(role, "weight")) {
        hashed_fill(name, values, n, 0.4, 0.5);
    } else if (has_stats && !strcmp(role, "bias")) {
        hashed_fill(name, values, n, 0.9, 1.1);
    } else if (has_stats && !strcmp(role, "running_var")) {
        hashed_fill(name, values, n, 0.8, 1.2);
    } else {
        hashed_fill(name, values, n, -0.1, 0.1);
    }
}

#endif
