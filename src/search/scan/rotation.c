/* Rounds of signs and Hadamard transforms. One transform covers a power of two values. For other dims, rounds take the first
 * and the last values in turn, and a step between them mixes the two halves, as the FHT-Kac rotation of the RaBitQ
 * library does. Every step is orthogonal. */
#include "search/scan/rotation.h"

#include <math.h>

#include "base/alloc.h"
#include "base/rng.h"

enum { ROUNDS = 4 };

kith_status ki_rotation_init(ki_rotation *rotation, int64_t dim, uint64_t seed, kith_error *err) {
    *rotation = (ki_rotation){.dim = dim, .width = 1};
    while (rotation->width * 2 <= dim) rotation->width *= 2;
    KI_TRY(ki_alloc_or(&rotation->sign, (size_t)dim, ROUNDS * sizeof(float), "rotation", err));
    const float scale = 1 / sqrtf((float)rotation->width);
    for (int r = 0; r < ROUNDS; r++) {
        ki_rng rng = ki_rng_at(seed, KI_RNG_SEARCH, 0, (uint32_t)r);
        const int64_t begin = r % 2 ? dim - rotation->width : 0;
        for (int64_t k = 0; k < dim; k++) {
            const bool is_inside = k >= begin && k < begin + rotation->width;
            rotation->sign[r * dim + k] = (ki_rng_u32(&rng) & 1 ? 1 : -1) * (is_inside ? scale : 1);
        }
    }
    return KITH_OK;
}

void ki_rotation_release(ki_rotation *rotation) {
    ki_free(rotation->sign);
    *rotation = (ki_rotation){0};
}

/* Four values, wherever they lie. */
typedef float four __attribute__((vector_size(16), aligned(4)));

static inline four *fours(float *x) { return (four *)(void *)x; }

/* A round's first pass: signs, and the two steps between values that are neighbours. */
static void begin_hadamard(float *x, const float *sign, int64_t n) {
    const four odd = {1, -1, 1, -1}, high = {1, 1, -1, -1};
    for (int64_t i = 0; i < n; i += 4) {
        four v = *fours(x + i);
        if (sign) v *= *(const four *)(const void *)(sign + i);
        v = __builtin_shufflevector(v, v, 1, 0, 3, 2) + v * odd;
        *fours(x + i) = __builtin_shufflevector(v, v, 2, 3, 0, 1) + v * high;
    }
}

/* Two steps in one pass: between values that are h and 2 h apart. */
static void two_steps(float *x, int64_t n, int64_t h) {
    for (int64_t i = 0; i < n; i += 4 * h) {
        for (int64_t j = i; j < i + h; j += 4) {
            const four a = *fours(x + j), b = *fours(x + j + h), c = *fours(x + j + 2 * h),
                       d = *fours(x + j + 3 * h);
            const four ab = a + b, ba = a - b, cd = c + d, dc = c - d;
            *fours(x + j) = ab + cd;
            *fours(x + j + h) = ba + dc;
            *fours(x + j + 2 * h) = ab - cd;
            *fours(x + j + 3 * h) = ba - dc;
        }
    }
}

/* n is a power of two, 16 or more. sign: multiplied by it first; NULL: by nothing. */
static void hadamard(float *x, const float *sign, int64_t n) {
    begin_hadamard(x, sign, n);
    int64_t h = 4;
    for (; 4 * h <= n; h *= 4) two_steps(x, n, h);
    if (h == n) return;
    for (int64_t j = 0; j < h; j += 4) {
        const four a = *fours(x + j), b = *fours(x + j + h);
        *fours(x + j) = a + b;
        *fours(x + j + h) = a - b;
    }
}

static void mix_halves(float *x, int64_t dim) {
    const float scale = 0.70710678F;
    for (int64_t j = 0; j < dim / 2; j++) {
        const float a = x[j], b = x[j + dim / 2];
        x[j] = (a + b) * scale;
        x[j + dim / 2] = (a - b) * scale;
    }
}

void ki_rotation_apply(const ki_rotation *rotation, float *x) {
    const int64_t dim = rotation->dim, width = rotation->width;
    for (int r = 0; r < ROUNDS; r++) {
        const float *sign = rotation->sign + r * dim;
        const int64_t begin = r % 2 ? dim - width : 0;
        for (int64_t k = 0; k < begin; k++) x[k] *= sign[k];
        for (int64_t k = begin + width; k < dim; k++) x[k] *= sign[k];
        hadamard(x + begin, sign + begin, width);
        if (width < dim) mix_halves(x, dim);
    }
}

/* Each step is its own inverse but for the signs, which come last. */
void ki_rotation_undo(const ki_rotation *rotation, float *x) {
    const int64_t dim = rotation->dim, width = rotation->width;
    for (int r = ROUNDS - 1; r >= 0; r--) {
        const float *sign = rotation->sign + r * dim;
        if (width < dim) mix_halves(x, dim);
        hadamard(x + (r % 2 ? dim - width : 0), NULL, width);
        for (int64_t k = 0; k < dim; k++) x[k] *= sign[k];
    }
}

size_t ki_rotation_numbers(const ki_rotation *rotation) { return ROUNDS * (size_t)rotation->dim; }
