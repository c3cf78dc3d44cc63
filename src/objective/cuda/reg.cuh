/* What the regularizers' .cu files need: the interface, launches, sums over a block, scratch memory. */
#ifndef KI_OBJECTIVE_CUDA_REG_CUH
#define KI_OBJECTIVE_CUDA_REG_CUH

#include "backend/cuda/fail.h"
#include "backend/cuda/number.cuh"
#include "objective/cuda/reg.h"
#include "objective/cuda/rows.h"
#include "objective/cuda/scratch.h"

static inline const float *ki_tap_floats(const ki_cuda_tap &tap) {
    return static_cast<const float *>(tap.data);
}
static inline float *ki_tap_diff(const ki_cuda_tap &tap) { return static_cast<float *>(tap.diff); }

#endif
