/* Rows of a matrix compared with each other, and the gradient: the parts of regularizers over pairs.
 *
 *   inner   s_ij = x_i . x_j            dL/dx_i = sum_j h_ij x_j
 *   square  s_ij = |x_i - x_j|^2        dL/dx_i = 2 sum_j h_ij (x_i - x_j)
 *   l1      s_ij = sum_k |x_ik - x_jk|  dL/dx_i = sum_j h_ij sign(x_i - x_j),    h = g + g^T, g = dL/ds
 *
 * Differences are taken before they are summed, so that distances keep their digits even if a batch is far
 * from the origin. Sums are made in a fixed order. Everything is device memory; the launchers queue. */
#ifndef KI_OBJECTIVE_CUDA_PAIRWISE_H
#define KI_OBJECTIVE_CUDA_PAIRWISE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ki_pairwise_measure {
    KI_PAIRWISE_INNER,
    KI_PAIRWISE_SQUARE,
    KI_PAIRWISE_L1
} ki_pairwise_measure;

/* s [m, m] from x [m, dim]. n (NULL: m) is device memory: only the first *n rows and columns are valid. */
cudaError_t ki_cuda_pairwise(ki_pairwise_measure measure, const float *x, int64_t m, int64_t dim,
                             const int32_t *n, float *s, cudaStream_t stream);

/* diff [m, dim] += weight * dL/dx, or assigned; weight (NULL: 1) is device memory. */
cudaError_t ki_cuda_pairwise_back(ki_pairwise_measure measure, const float *x, const float *g, int64_t m,
                                  int64_t dim, const int32_t *n, const float *weight, bool add, float *diff,
                                  cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
