/* Division of numbers below 2^31 by one that is fixed for a launch: a multiplication and a shift (Granlund and
 * Montgomery, "Division by invariant integers using multiplication", PLDI 1994). */
#ifndef KI_CUDA_DIVIDE_CUH
#define KI_CUDA_DIVIDE_CUH

#include <stdint.h>

#include "backend/cuda/launch.h"

struct ki_divider {
    uint32_t by, multiplier, shift;
};

/* 1 <= by < 2^31. */
static inline ki_divider ki_divider_of(int64_t by) {
    ki_divider d = {(uint32_t)by, 0, 0};
    while ((uint64_t)1 << d.shift < (uint64_t)by) d.shift++;
    d.multiplier =
        (uint32_t)((((uint64_t)1 << 32) * (((uint64_t)1 << d.shift) - (uint64_t)by)) / (uint64_t)by + 1);
    return d;
}

static __device__ __forceinline__ uint32_t ki_divide(uint32_t n, ki_divider d) {
    return (__umulhi(n, d.multiplier) + n) >> d.shift;
}

#endif
