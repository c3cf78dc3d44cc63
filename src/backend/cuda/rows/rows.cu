/* Ops on rows [mb, c] in float, one block per row: l2_norm and softmax_xent (formulas: backend/ref). */
#include "backend/cuda/number.cuh"
#include "backend/cuda/rows/kernels.h"

namespace {

const int THREADS = 256;

__device__ __forceinline__ float block_max(float x, float *room) {
    const int lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x >> 5;
    x = ki_warp_max(x);
    if (lane == 0) room[warp] = x;
    __syncthreads();
    float most = room[0];
    for (int i = 1; i < THREADS / 32; i++) most = fmaxf(most, room[i]);
    __syncthreads();
    return most;
}

__global__ void __launch_bounds__(THREADS) l2_forward(const float *src, float *dst, int c, float eps) {
    KI_SHARED_ARRAY(float, room, 33);
    src += (int64_t)blockIdx.x * c, dst += (int64_t)blockIdx.x * c;
    float squares = 0;
    for (int i = (int)threadIdx.x; i < c; i += THREADS) squares = fmaf(src[i], src[i], squares);
    const float by = 1 / fmaxf(sqrtf(ki_block_sum(squares, room)), eps);
    for (int i = (int)threadIdx.x; i < c; i += THREADS) dst[i] = src[i] * by;
}

__global__ void __launch_bounds__(THREADS)
    l2_backward(const float *src, const float *diff_dst, float *diff_src, int c, float eps) {
    KI_SHARED_ARRAY(float, room, 33);
    src += (int64_t)blockIdx.x * c, diff_dst += (int64_t)blockIdx.x * c, diff_src += (int64_t)blockIdx.x * c;
    float squares = 0, along = 0;
    for (int i = (int)threadIdx.x; i < c; i += THREADS) {
        squares = fmaf(src[i], src[i], squares);
        along = fmaf(src[i], diff_dst[i], along);
    }
    squares = ki_block_sum(squares, room);
    along = ki_block_sum(along, room);
    const float norm = sqrtf(squares), by = 1 / fmaxf(norm, eps);
    along = norm >= eps ? along / squares : 0;
    for (int i = (int)threadIdx.x; i < c; i += THREADS) diff_src[i] = (diff_dst[i] - along * src[i]) * by;
}

/* Maximum and sum of exp(x - maximum) of a row. */
__device__ __forceinline__ void row_moments(const float *src, int c, float *room, float *ret_max,
                                            float *ret_sum) {
    float most = -INFINITY, sum = 0;
    for (int i = (int)threadIdx.x; i < c; i += THREADS) most = fmaxf(most, src[i]);
    most = block_max(most, room);
    for (int i = (int)threadIdx.x; i < c; i += THREADS) sum += expf(src[i] - most);
    *ret_max = most;
    *ret_sum = ki_block_sum(sum, room);
}

/* A label that is not a class gives NaN, which the step's check of its loss detects. */
__global__ void __launch_bounds__(THREADS)
    softmax_forward(const float *src, const int32_t *labels, float *dst, int c) {
    KI_SHARED_ARRAY(float, room, 33);
    float most, sum;
    src += (int64_t)blockIdx.x * c;
    row_moments(src, c, room, &most, &sum);
    const int label = labels[blockIdx.x];
    if (threadIdx.x == 0)
        dst[blockIdx.x] =
            label >= 0 && label < c ? logf(sum) + (most - src[label]) : ki_bits_float(0x7fc00000u);
}

__global__ void __launch_bounds__(THREADS)
    softmax_backward(const float *src, const int32_t *labels, const float *diff_dst, float *diff_src, int c) {
    KI_SHARED_ARRAY(float, room, 33);
    float most, sum;
    src += (int64_t)blockIdx.x * c, diff_src += (int64_t)blockIdx.x * c;
    row_moments(src, c, room, &most, &sum);
    const int label = labels[blockIdx.x];
    const float diff = diff_dst[blockIdx.x], by = 1 / sum;
    for (int i = (int)threadIdx.x; i < c; i += THREADS)
        diff_src[i] = (expf(src[i] - most) * by - (i == label ? 1.0f : 0.0f)) * diff;
}

} // namespace

extern "C" cudaError_t ki_cuda_l2_forward(cudaStream_t stream, int64_t mb, int64_t c, float eps,
                                          const float *src, float *dst) {
    return KI_LAUNCH(l2_forward, (unsigned)mb, THREADS, 0, stream, src, dst, c, eps);
}
extern "C" cudaError_t ki_cuda_l2_backward(cudaStream_t stream, int64_t mb, int64_t c, float eps,
                                           const float *src, const float *diff_dst, float *diff_src) {
    return KI_LAUNCH(l2_backward, (unsigned)mb, THREADS, 0, stream, src, diff_dst, diff_src, c, eps);
}
extern "C" cudaError_t ki_cuda_softmax_forward(cudaStream_t stream, int64_t mb, int64_t c, const float *src,
                                               const int32_t *labels, float *dst) {
    return KI_LAUNCH(softmax_forward, (unsigned)mb, THREADS, 0, stream, src, labels, dst, c);
}
extern "C" cudaError_t ki_cuda_softmax_backward(cudaStream_t stream, int64_t mb, int64_t c, const float *src,
                                                const int32_t *labels, const float *diff_dst,
                                                float *diff_src) {
    return KI_LAUNCH(softmax_backward, (unsigned)mb, THREADS, 0, stream, src, labels, diff_dst, diff_src, c);
}
