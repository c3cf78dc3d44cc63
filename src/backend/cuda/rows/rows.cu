/* l2_norm on rows [mb, c] in float, one block per row (formulas: backend/ref). */
#include "backend/cuda/number.cuh"
#include "backend/cuda/rows/kernels.h"

namespace {

const int THREADS = 256;

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

} // namespace

extern "C" cudaError_t ki_cuda_l2_forward(cudaStream_t stream, int64_t mb, int64_t c, float eps,
                                          const float *src, float *dst) {
    return KI_LAUNCH(l2_forward, (unsigned)mb, THREADS, 0, stream, src, dst, c, eps);
}
extern "C" cudaError_t ki_cuda_l2_backward(cudaStream_t stream, int64_t mb, int64_t c, float eps,
                                           const float *src, const float *diff_dst, float *diff_src) {
    return KI_LAUNCH(l2_backward, (unsigned)mb, THREADS, 0, stream, src, diff_dst, diff_src, c, eps);
}
