/* The biases of linear layers: copied to the rows, and their gradient as column sums. */
#include "backend/cuda/number.cuh"
#include "backend/cuda/rows/kernels.h"

enum { THREADS = 256, MOST_BLOCKS = 4096, COLUMN_THREADS = 1024, COLUMN_ROWS = COLUMN_THREADS / 32 };

static __global__ void spread_rows_kernel(int64_t n, int c, const float *bias, float *dst) {
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) dst[i] = bias[i % c];
}

extern "C" cudaError_t ki_cuda_spread_rows(int64_t n_rows, int64_t c, const float *bias, float *dst,
                                           cudaStream_t stream) {
    return KI_LAUNCH(spread_rows_kernel, ki_blocks(n_rows * c, THREADS, MOST_BLOCKS), THREADS, 0, stream,
                     n_rows * c, (int)c, bias, dst);
}

/* 32 columns a block, COLUMN_ROWS rows at a time. */
static __global__ void __launch_bounds__(COLUMN_THREADS)
    add_columns_kernel(int64_t n_rows, int c, const float *src, float *diff) {
    KI_SHARED_ARRAY(float, room, COLUMN_THREADS);
    const int lane = (int)threadIdx.x % 32, row0 = (int)threadIdx.x / 32, at = (int)blockIdx.x * 32 + lane;
    float sum = 0;
    if (at < c) {
#pragma unroll 8
        for (int64_t row = row0; row < n_rows; row += COLUMN_ROWS) sum += src[row * c + at];
    }
    room[threadIdx.x] = sum;
    __syncthreads();
    if (row0 != 0 || at >= c) return;
    float total = 0;
#pragma unroll
    for (int row = 0; row < COLUMN_ROWS; row++) total += room[row * 32 + lane];
    diff[at] += total;
}

extern "C" cudaError_t ki_cuda_add_columns(int64_t n_rows, int64_t c, const float *src, float *diff,
                                           cudaStream_t stream) {
    return KI_LAUNCH(add_columns_kernel, (unsigned)((c + 31) / 32), COLUMN_THREADS, 0, stream, n_rows, (int)c,
                     src, diff);
}
