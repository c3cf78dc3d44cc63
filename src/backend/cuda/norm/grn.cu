/* grn between its sums and what they are applied to (formulas: backend/ref): a block for each row, and for the gradients of gamma and beta
 * a thread for each channel, which adds up the rows in order. */
#include "backend/cuda/norm/kernels.h"
#include "backend/cuda/number.cuh"

namespace {

enum { THREADS = 256 };

__global__ void __launch_bounds__(THREADS) factors(ki_cuda_grn_args g) {
    KI_SHARED_ARRAY(float, room, 33);
    const int c = (int)g.c, row = (int)blockIdx.x;
    float *norm = g.norm + (int64_t)row * c, *factor = g.factor + (int64_t)row * c, sum = 0;
    for (int i = (int)threadIdx.x; i < c; i += THREADS) {
        norm[i] = sqrtf(norm[i]);
        sum += norm[i];
    }
    const float rate = 1 / (ki_block_sum(sum, room) / (float)c + g.eps);
    for (int i = (int)threadIdx.x; i < c; i += THREADS) factor[i] = g.gamma[i] * norm[i] * rate + 1;
    if (threadIdx.x == 0) g.rate[row] = rate;
}

__global__ void __launch_bounds__(THREADS) slopes(ki_cuda_grn_args g) {
    KI_SHARED_ARRAY(float, room, 33);
    const int c = (int)g.c, row = (int)blockIdx.x;
    const float *norm = g.norm + (int64_t)row * c, *along = g.along + (int64_t)row * c;
    float *slope = g.slope + (int64_t)row * c, rate = g.rate[row], sum = 0;
    for (int i = (int)threadIdx.x; i < c; i += THREADS) sum += g.gamma[i] * along[i] * norm[i];
    const float pull = rate * ki_block_sum(sum, room) / (float)c;
    for (int i = (int)threadIdx.x; i < c; i += THREADS)
        slope[i] = norm[i] > 0 ? rate * (g.gamma[i] * along[i] - pull) / norm[i] : 0;
}

__global__ void __launch_bounds__(THREADS) add_params(ki_cuda_grn_args g) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= g.c) return;
    float gamma = 0, beta = 0;
    for (int64_t row = 0; row < g.mb; row++) {
        gamma += g.norm[row * g.c + i] * g.rate[row] * g.along[row * g.c + i];
        beta += g.sum[row * g.c + i];
    }
    if (g.diff_gamma) g.diff_gamma[i] += gamma;
    if (g.diff_beta) g.diff_beta[i] += beta;
}

} // namespace

extern "C" cudaError_t ki_cuda_grn_factors(cudaStream_t stream, const ki_cuda_grn_args *grn) {
    return KI_LAUNCH(factors, (unsigned)grn->mb, THREADS, 0, stream, *grn);
}

extern "C" cudaError_t ki_cuda_grn_slopes(cudaStream_t stream, const ki_cuda_grn_args *grn) {
    if (grn->diff_gamma || grn->diff_beta)
        KI_LAUNCH_TRY(add_params, (unsigned)((grn->c + THREADS - 1) / THREADS), THREADS, 0, stream, *grn);
    return KI_LAUNCH(slopes, (unsigned)grn->mb, THREADS, 0, stream, *grn);
}
