/* Maps, tokens and vectors times a factor for each channel, and sums over the pixels of each channel: what gate, grn and layer_scale
 * are made of.
 *
 * A run is the pixels of one block of channels of one image (cpu_block() numbers to a pixel), which lie side by side in a native map. Its
 * factors are cpu_block() numbers, of which those of padding are 0. */
#ifndef KI_BACKEND_CPU_CHANNELS_H
#define KI_BACKEND_CPU_CHANNELS_H

#include "backend/cpu/cpu.h"

/* dst = a * x + b * y + c for each of hw pixels; y may be NULL. */
typedef struct cpu_mix {
    const float *x, *y;
    float *dst;
    float a[CPU_MOST_BLOCK], b[CPU_MOST_BLOCK], c[CPU_MOST_BLOCK];
} cpu_mix;

void cpu_mix_run(const cpu_mix *mix, int64_t hw);

/* Sums over hw pixels, in double over short sums in float: of x * y, and of x. */
void cpu_sum_run(const float *x, const float *y, int64_t hw, double *ret_products, double *ret_sums);

/* The channels of the run's block that are not padding. */
static inline int64_t cpu_channels_of(int64_t c, int64_t first) {
    return c - first < cpu_block() ? c - first : cpu_block();
}

#endif
