/* layer_norm of rows [mb, c] in float (formulas: backend/ref): a block for each row, and for the gradients of gamma
 * and beta a thread for each column, which adds up the rows in order. */
#include "backend/cuda/norm/kernels.h"
#include "backend/cuda/number.cuh"

namespace {

const int THREADS = 256;

__global__ void __launch_bounds__(THREADS)
    layer_forward(const float *src, const float *gamma, const float *beta, float *dst, float *saved, int c,
                  float eps) {
    KI_SHARED_ARRAY(float, room, 33);
    src += (int64_t)blockIdx.x * c, dst += (int64_t)blockIdx.x * c;
    float sum = 0, squares = 0;
    for (int i = (int)threadIdx.x; i < c; i += THREADS) sum += src[i];
    const float mean = ki_block_sum(sum, room) / (float)c;
    for (int i = (int)threadIdx.x; i < c; i += THREADS) squares = fmaf(src[i] - mean, src[i] - mean, squares);
    const float istd = 1 / sqrtf(ki_block_sum(squares, room) / (float)c + eps);
    if (saved && threadIdx.x == 0) {
        saved[2 * blockIdx.x] = mean;
        saved[2 * blockIdx.x + 1] = istd;
    }
    for (int i = (int)threadIdx.x; i < c; i += THREADS)
        dst[i] = gamma[i] * ((src[i] - mean) * istd) + beta[i];
}

__global__ void __launch_bounds__(THREADS)
    layer_backward(const float *src, const float *diff_dst, const float *gamma, const float *saved,
                   float *diff_src, int c) {
    KI_SHARED_ARRAY(float, room, 33);
    const float mean = saved[2 * blockIdx.x], istd = saved[2 * blockIdx.x + 1];
    src += (int64_t)blockIdx.x * c, diff_dst += (int64_t)blockIdx.x * c, diff_src += (int64_t)blockIdx.x * c;
    float sum = 0, along = 0;
    for (int i = (int)threadIdx.x; i < c; i += THREADS) {
        const float g = gamma[i] * diff_dst[i];
        sum += g;
        along = fmaf(g, (src[i] - mean) * istd, along);
    }
    sum = ki_block_sum(sum, room) / (float)c;
    along = ki_block_sum(along, room) / (float)c;
    for (int i = (int)threadIdx.x; i < c; i += THREADS)
        diff_src[i] = istd * (gamma[i] * diff_dst[i] - sum - (src[i] - mean) * istd * along);
}

__global__ void __launch_bounds__(THREADS)
    layer_columns(const float *src, const float *diff_dst, const float *saved, float *diff_gamma,
                  float *diff_beta, int mb, int c) {
    const int i = (int)(blockIdx.x * THREADS + threadIdx.x);
    if (i >= c) return;
    float gamma = 0, beta = 0;
    for (int r = 0; r < mb; r++) {
        const float diff = diff_dst[(int64_t)r * c + i];
        gamma = fmaf(diff, (src[(int64_t)r * c + i] - saved[2 * r]) * saved[2 * r + 1], gamma);
        beta += diff;
    }
    diff_gamma[i] += gamma;
    diff_beta[i] += beta;
}

} // namespace

extern "C" cudaError_t ki_cuda_layer_norm_forward(cudaStream_t stream, const ki_cuda_layer_norm_args *n) {
    return KI_LAUNCH(layer_forward, (unsigned)n->mb, THREADS, 0, stream, n->src, n->gamma, n->beta, n->dst,
                     n->saved, n->c, n->eps);
}

extern "C" cudaError_t ki_cuda_layer_norm_backward(cudaStream_t stream, const ki_cuda_layer_norm_args *n) {
    if (n->diff_gamma) {
        const cudaError_t error =
            KI_LAUNCH(layer_columns, (unsigned)((n->c + THREADS - 1) / THREADS), THREADS, 0, stream, n->src,
                      n->diff_dst, n->saved, n->diff_gamma, n->diff_beta, n->mb, n->c);
        if (error != cudaSuccess) return error;
    }
    if (!n->diff_src) return cudaSuccess;
    return KI_LAUNCH(layer_backward, (unsigned)n->mb, THREADS, 0, stream, n->src, n->diff_dst, n->gamma,
                     n->saved, n->diff_src, n->c);
}
