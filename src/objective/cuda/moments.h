/* High-order moments of a feature map on the device (reg/moments.h has the formulas): matrix products for the
 * projections, one kernel that multiplies and pools, and one for the backward pass.
 *
 * The projections are packed side by side in the precision of the map, so that one product makes all
 * factors of a block of columns. Only what goes into a matrix product is ever rounded to the map's precision: the map
 * itself, the projections and, on the way back, dL/dp. Projected positions, their products, the sums over positions and
 * the moments are float32. Blocks are as wide as most_bytes of projected positions allow; when there is more than one,
 * backward computes all but the last again. */
#ifndef KI_OBJECTIVE_CUDA_MOMENTS_H
#define KI_OBJECTIVE_CUDA_MOMENTS_H

#include <cuda_runtime_api.h>

#include "backend/cuda/gemm/gemm.h"
#include "objective/cuda/product.h"
#include "objective/cuda/scratch.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ki_cuda_moments {
    ki_backend *backend;
    cudaStream_t stream;
    int64_t m, hw, c, dim;
    int orders;
    bool cascaded;
    const void *f; /* [m * hw, f_pitch]: the map */
    int64_t f_pitch;
    ki_number type; /* of the map, and of what is multiplied with it */
    const float *w[KI_MOST_PROJECTIONS];
    size_t most_bytes;

    /* The rest is filled in by ki_cuda_moments_place. */
    int n_w, n_chains;
    ki_cuda_chain chain[KI_HORDE_MOST_ORDERS];
    int64_t padded; /* dim with padding: the pitch of g */
    int64_t block;
    float *g[KI_HORDE_MOST_ORDERS + 1]; /* [2] … [orders]: [m, padded] */
    float *p;                           /* a block of projected positions */
    void *diff_p, *packed;              /* in `type`; diff_p is p where that is float */
    float *diff_f;                      /* [m * hw, c], NULL with one block */
} ki_cuda_moments;

/* Sizes, and places in `room`. */
void ki_cuda_moments_place(ki_cuda_moments *moments, ki_cuda_scratch *room);

/* g from f and w. */
kith_status ki_cuda_moments_forward(const ki_cuda_moments *moments, kith_error *err);

/* From diff_g[2 … orders] (float, [m, diff_g_pitch]), after forward: diff_w[t] [c, dim] += (NULL: not wanted),
 * and diff_f [m * hw, diff_f_pitch] in `type`, assigned or added to. */
kith_status ki_cuda_moments_backward(const ki_cuda_moments *moments, float *const *diff_g,
                                     int64_t diff_g_pitch, float *const *diff_w, bool add, void *diff_f,
                                     int64_t diff_f_pitch, kith_error *err);

#ifdef __cplusplus
}
#endif

#endif
