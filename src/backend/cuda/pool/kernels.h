/* Pooling, as C calls that queue a kernel and return the error, if any. Sums are computed in float, in an order that
 * depends on the shapes alone.
 *
 * Maps are n pixels of c channels, `pitch` elements apart, in float or (is_bf16) bf16. A pointer that is not aligned to
 * 16 bytes, a pitch or a channel count that is not a multiple of 16 bytes costs speed, not correctness. */
#ifndef KI_CUDA_POOL_KERNELS_H
#define KI_CUDA_POOL_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* pool (device/op.h). `place` holds, per value of dst [pixels, c], where in its window a maximum came from: written by
 * forward unless NULL, read by backward. k is at most 15 for maxima. */
typedef struct ki_cuda_pool_args {
    bool is_bf16, average, count_pad;
    int64_t mb, c, src_pitch, dst_pitch;
    int ih, iw, oh, ow, k, s, p;
    const void *src;
    void *dst;
    const void *diff_dst;
    void *diff_src;
    uint8_t *place;
    const float *pad; /* [c]: for averages, the values of the padding; NULL: zeros */
} ki_cuda_pool_args;

cudaError_t ki_cuda_pool_forward(cudaStream_t stream, const ki_cuda_pool_args *pool);
cudaError_t ki_cuda_pool_backward(cudaStream_t stream, const ki_cuda_pool_args *pool);

/* global_pool: dst and diff_dst are float [mb, c]; place, for maxima, is [mb, c]. */
typedef struct ki_cuda_global_args {
    bool is_bf16, has_average, has_max;
    int64_t mb, c, hw, pitch;
    const void *src;
    float *dst;
    const float *diff_dst;
    void *diff_src;
    int32_t *place;
} ki_cuda_global_args;

cudaError_t ki_cuda_global_forward(cudaStream_t stream, const ki_cuda_global_args *global);
cudaError_t ki_cuda_global_backward(cudaStream_t stream, const ki_cuda_global_args *global);

/* The generalised mean. `saved` [mb, c, 3] is written by forward unless NULL, and read by backward: the largest number, the
 * factor of the source's gradient, and the derivative by p. */
typedef struct ki_cuda_gem_args {
    bool is_bf16;
    int64_t mb, c, hw, pitch;
    float least;
    const void *src;
    const float *p;
    float *dst, *saved;
    const float *diff_dst;
    void *diff_src; /* NULL: not wanted */
    float *diff_p;  /* added to; NULL: not wanted */
} ki_cuda_gem_args;

cudaError_t ki_cuda_gem_forward(cudaStream_t stream, const ki_cuda_gem_args *gem);
cudaError_t ki_cuda_gem_backward(cudaStream_t stream, const ki_cuda_gem_args *gem);

#ifdef __cplusplus
}
#endif

#endif
