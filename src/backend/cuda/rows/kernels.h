/* Kernels on rows [mb, c] in float, as C calls that queue a kernel and return the error, if any. */
#ifndef KI_CUDA_ROWS_KERNELS_H
#define KI_CUDA_ROWS_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

cudaError_t ki_cuda_l2_forward(cudaStream_t stream, int64_t mb, int64_t c, float eps, const float *src,
                               float *dst);
cudaError_t ki_cuda_l2_backward(cudaStream_t stream, int64_t mb, int64_t c, float eps, const float *src,
                                const float *diff_dst, float *diff_src);

/* dst [n_rows, c] = bias in every row; diff [c] += column sums of src [n_rows, c]. */
cudaError_t ki_cuda_spread_rows(int64_t n_rows, int64_t c, const float *bias, float *dst,
                                cudaStream_t stream);
cudaError_t ki_cuda_add_columns(int64_t n_rows, int64_t c, const float *src, float *diff,
                                cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
