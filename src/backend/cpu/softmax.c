/* Softmax of rows, and back. */
#include "backend/cpu/softmax.h"

#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/products.h"
#include "base/fast_exp.h"

/* Of rows, in 16 lanes each, of which there is a whole number in `wide`. Lanes are added up in the same order everywhere. */
typedef float lanes __attribute__((vector_size(4 * CPU_PANEL), aligned(4)));
typedef int32_t lane_bits __attribute__((vector_size(4 * CPU_PANEL), aligned(4)));

#define INLINE static inline __attribute__((always_inline))

INLINE float lanes_sum(const lanes *x) {
    float lane[CPU_PANEL];
    memcpy(lane, x, sizeof lane);
    for (int l = 0; l < 8; l++) lane[l] += lane[l + 8];
    for (int l = 0; l < 4; l++) lane[l] += lane[l + 4];
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

INLINE float larger(float x, float y) { return x > y ? x : y; }

INLINE float row_most(const float *x, int64_t wide) {
    float lane[CPU_PANEL];
    lanes most = *(const lanes *)x;
    for (int64_t j = CPU_PANEL; j < wide; j += CPU_PANEL) {
        const lanes next = *(const lanes *)(x + j);
        const lane_bits above = next > most;
        most = (lanes)(((lane_bits)next & above) | ((lane_bits)most & ~above));
    }
    memcpy(lane, &most, sizeof lane);
    for (int l = 0; l < 8; l++) lane[l] = larger(lane[l], lane[l + 8]);
    for (int l = 0; l < 4; l++) lane[l] = larger(lane[l], lane[l + 4]);
    return larger(larger(lane[0], lane[2]), larger(lane[1], lane[3]));
}

/* e^(x - minus). What would be subnormal is 0, because some processors compute with that a hundred times as slowly. */
INLINE void exponentials(float *x, float minus, int64_t wide) {
    for (int64_t j = 0; j < wide; j++) {
        const float z = x[j] - minus, e = ki_fast_exp(z);
        x[j] = z > -87.0f ? e : 0;
    }
}

INLINE float row_sum(const float *x, int64_t wide) {
    lanes sum = {0};
    for (int64_t j = 0; j < wide; j += CPU_PANEL) sum += *(const lanes *)(x + j);
    return lanes_sum(&sum);
}

INLINE float row_dot(const float *x, const float *y, int64_t wide) {
    lanes sum = {0};
    for (int64_t j = 0; j < wide; j += CPU_PANEL) sum += *(const lanes *)(x + j) * *(const lanes *)(y + j);
    return lanes_sum(&sum);
}

CPU_WIDE void cpu_soften(float *x, int64_t n, int64_t wide, float *factor, float *saved) {
    for (int64_t i = 0; i < n; i++, x += wide) {
        const float most = row_most(x, wide);
        exponentials(x, most, wide);
        const float sum = row_sum(x, wide);
        factor[i] = 1 / sum;
        if (saved) saved[i] = most + logf(sum);
    }
}

CPU_WIDE void cpu_soften_back(float *x, float *diff, int64_t n, int64_t wide, const float *saved) {
    for (int64_t i = 0; i < n; i++, x += wide, diff += wide) {
        exponentials(x, saved[i], wide);
        const float mean = row_dot(x, diff, wide);
        for (int64_t j = 0; j < wide; j++) diff[j] = x[j] * (diff[j] - mean);
    }
}
