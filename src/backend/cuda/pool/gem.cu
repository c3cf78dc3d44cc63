/* The generalised mean of global_pool: dst = M * s^(1 / p), with M the largest of u = max(src, least), t = u / M and s the mean of
 * t^p. Dividing by M keeps powers of small numbers in float's range. A block has 32 channels of one image. */
#include "backend/cuda/divide.cuh"
#include "backend/cuda/number.cuh"
#include "backend/cuda/pool/kernels.h"

namespace {

enum { LANES = 32, ROWS = 8, THREADS = 256, P_THREADS = 1024 };

__device__ __forceinline__ float at_least(float x, float least) { return x > least ? x : least; }

/* Of the ROWS values of a channel the sum or, with `most`, the maximum, in every row. All threads must call this. */
__device__ __forceinline__ float over_rows(float x, bool most, float *room) {
    const int lane = (int)threadIdx.x % LANES;
    __syncthreads();
    room[threadIdx.x] = x;
    __syncthreads();
    float all = room[lane];
    for (int r = 1; r < ROWS; r++) {
        const float other = room[r * LANES + lane];
        all = most ? fmaxf(all, other) : all + other;
    }
    return all;
}

template <typename T>
__global__ void __launch_bounds__(LANES *ROWS) gem_forward(ki_cuda_gem_args a) {
    KI_SHARED_ARRAY(float, room, LANES *ROWS);
    const int lane = (int)threadIdx.x % LANES, row = (int)threadIdx.x / LANES;
    const int64_t image = blockIdx.x, c = (int64_t)blockIdx.y * LANES + lane;
    const bool is_on = c < a.c;
    const T *src = static_cast<const T *>(a.src) + image * a.hw * a.pitch + c;
    const float p = *a.p, n = (float)a.hw;
    float most = 0, sum = 0, slope = 0;
    for (int64_t i = row; is_on && i < a.hw; i += ROWS)
        most = fmaxf(most, at_least(to_float(src[i * a.pitch]), a.least));
    most = over_rows(most, true, room);
    for (int64_t i = row; is_on && i < a.hw; i += ROWS) {
        const float ln = logf(at_least(to_float(src[i * a.pitch]), a.least) / most), power = expf(p * ln);
        sum += power;
        slope += power * ln;
    }
    const float mean = over_rows(sum, false, room) / n, tilt = over_rows(slope, false, room) / n;
    if (!is_on || row != 0) return;
    const int64_t at = image * a.c + c;
    const float ln = logf(mean), value = most * expf(ln / p);
    a.dst[at] = value;
    if (!a.saved) return;
    a.saved[3 * at] = most;
    a.saved[3 * at + 1] = expf(ln / p - ln) / n;
    a.saved[3 * at + 2] = value * (tilt / mean - ln / p) / p;
}

template <typename T>
__global__ void __launch_bounds__(THREADS) gem_backward(ki_cuda_gem_args a, int64_t n) {
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    const float p = *a.p;
    for (int64_t item = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; item < n; item += stride) {
        const int64_t pixel = item / a.c, c = item - pixel * a.c, at = pixel / a.hw * a.c + c;
        const float x = to_float(static_cast<const T *>(a.src)[pixel * a.pitch + c]);
        const float power = x > a.least ? expf((p - 1) * logf(x / a.saved[3 * at])) : 0;
        static_cast<T *>(a.diff_src)[pixel * a.pitch + c] =
            from_float<T>(a.diff_dst[at] * a.saved[3 * at + 1] * power);
    }
}

/* diff_p += the sum over all of diff_dst times the derivative. */
__global__ void __launch_bounds__(P_THREADS)
    gem_power(const float *diff_dst, const float *saved, int64_t n, float *diff_p) {
    KI_SHARED_ARRAY(float, room, 33);
    float sum = 0;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < n; i += P_THREADS) sum = fmaf(diff_dst[i], saved[3 * i + 2], sum);
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) *diff_p += sum;
}

} // namespace

extern "C" cudaError_t ki_cuda_gem_forward(cudaStream_t stream, const ki_cuda_gem_args *gem) {
    const dim3 grid((unsigned)gem->mb, (unsigned)((gem->c + LANES - 1) / LANES));
    return gem->is_bf16 ? KI_LAUNCH(gem_forward<ki_bf16>, grid, LANES * ROWS, 0, stream, *gem)
                        : KI_LAUNCH(gem_forward<float>, grid, LANES * ROWS, 0, stream, *gem);
}

extern "C" cudaError_t ki_cuda_gem_backward(cudaStream_t stream, const ki_cuda_gem_args *gem) {
    const int64_t n = gem->mb * gem->hw * gem->c;
    const unsigned grid = ki_blocks(n, THREADS, 1 << 16);
    if (gem->diff_p)
        KI_LAUNCH_TRY(gem_power, 1, P_THREADS, 0, stream, gem->diff_dst, gem->saved, gem->mb * gem->c,
                      gem->diff_p);
    if (!gem->diff_src) return cudaSuccess;
    return gem->is_bf16 ? KI_LAUNCH(gem_backward<ki_bf16>, grid, THREADS, 0, stream, *gem, n)
                        : KI_LAUNCH(gem_backward<float>, grid, THREADS, 0, stream, *gem, n);
}
