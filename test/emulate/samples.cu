/* Small kernels that show what the emulator must do right. */
#include "emulate/samples.h"

#include "backend/cuda/attention/mma.cuh"
#include "backend/cuda/channels.cuh"

namespace {

__global__ void block_sums(const float *src, double *dst, int n) {
    KI_SHARED_ARRAY(double, room, 33);
    double sum = 0;
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) sum += (double)src[(int)blockIdx.x * n + i];
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) dst[blockIdx.x] = sum;
}

__global__ void reverse(const float *src, float *dst) {
    KI_SHARED(float, row);
    row[threadIdx.x] = src[threadIdx.x];
    __syncthreads();
    dst[threadIdx.x] = row[blockDim.x - 1 - threadIdx.x];
}

__global__ void count(const float *src, int *counts) {
    const unsigned yes = __ballot_sync(0xffffffffu, src[blockIdx.x * 64 + threadIdx.x] > 0);
    if (threadIdx.x % 32 == 0) atomicAdd(&counts[blockIdx.x], __popc(yes));
}

__global__ void skipped_barrier() {
    if (threadIdx.x < 16) __syncthreads();
}

__global__ void skipped_shuffle(float *dst) {
    if (threadIdx.x != 5) dst[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
}

__global__ void unwritten(float *dst) {
    KI_SHARED_ARRAY(float, room, 32);
    if (blockIdx.x == 0) room[threadIdx.x] = 1;
    __syncthreads();
    dst[blockIdx.x * 32 + threadIdx.x] = room[threadIdx.x];
}

/* Every block adds up what all of them wrote, and its own shared memory must have lived through the wait. */
__global__ void exchange(float *values, float *dst, unsigned *counter) {
    KI_SHARED(float, mine);
    KI_SHARED_ARRAY(float, square, 64);
    mine[threadIdx.x] = (float)(blockIdx.x * 64 + threadIdx.x);
    square[threadIdx.x] = mine[threadIdx.x] * mine[threadIdx.x];
    values[blockIdx.x * 64 + threadIdx.x] = mine[threadIdx.x];
    for (int round = 0; round < 2; round++) {
        ki_channel_meet(counter, gridDim.x);
        const int other = 63 - (int)threadIdx.x;
        float sum = mine[other] + square[other];
        for (unsigned b = 0; b < gridDim.x; b++) sum += __ldcg(values + b * 64 + threadIdx.x);
        dst[blockIdx.x * 64 + threadIdx.x] = sum;
        ki_channel_meet(counter + 1, gridDim.x);
        values[blockIdx.x * 64 + threadIdx.x] = 2 * mine[threadIdx.x];
    }
}

/* Rows of 24 numbers: eight of them at the same columns lie in all banks. */
__global__ void product(const ki_bf16 *left, const ki_bf16 *right, float *dst, bool across, bool waits) {
    const int PITCH = 24, lane = (int)threadIdx.x;
    KI_SHARED(ki_bf16, tiles);
    ki_bf16 *const of_left = tiles, *const of_right = tiles + 16 * PITCH;
    const int row = lane / 2, column = lane % 2 * 8;
    ki_copy_later<16>(of_left + row * PITCH + column, left + row * 16 + column, true);
    ki_copies_close();
    ki_copy_later<16>(of_right + row * PITCH + column, right + row * 16 + column, true);
    ki_copies_close();
    ki_copies_wait<1>();
    if (waits) ki_copies_wait<0>();
    __syncthreads();
    const ki_blocks_of_8 a = ki_load_blocks<false>(of_left + lane % 16 * PITCH + lane / 16 * 8);
    const ki_blocks_of_8 b =
        across ? ki_load_blocks<false>(of_right + (lane % 8 + lane / 16 * 8) * PITCH + lane / 8 % 2 * 8)
               : ki_load_blocks<true>(of_right + lane % 16 * PITCH + lane / 16 * 8);
    for (int half = 0; half < 2; half++) {
        float sum[4] = {0, 0, 0, 0};
        ki_multiply(a, b.x[2 * half], b.x[2 * half + 1], sum);
        for (int i = 0; i < 4; i++)
            dst[(lane / 4 + i / 2 * 8) * 16 + 8 * half + lane % 4 * 2 + i % 2] = sum[i];
    }
}

} // namespace

extern "C" cudaError_t sample_product(cudaStream_t stream, const uint16_t *left, const uint16_t *right,
                                      float *dst, bool across, bool waits) {
    return KI_LAUNCH(product, 1, 32, 2 * 16 * 24 * sizeof(ki_bf16), stream,
                     reinterpret_cast<const ki_bf16 *>(left), reinterpret_cast<const ki_bf16 *>(right), dst,
                     across, waits);
}
extern "C" cudaError_t sample_exchange(cudaStream_t stream, float *values, float *dst, unsigned *counters,
                                       int n_blocks, bool together) {
    const size_t shared = 64 * sizeof(float);
    return together
               ? KI_LAUNCH_TOGETHER(exchange, (unsigned)n_blocks, 64, shared, stream, values, dst, counters)
               : KI_LAUNCH(exchange, (unsigned)n_blocks, 64, shared, stream, values, dst, counters);
}
extern "C" cudaError_t sample_block_sums(cudaStream_t stream, const float *src, double *dst, int n_blocks,
                                         int n) {
    return KI_LAUNCH(block_sums, (unsigned)n_blocks, 256, 0, stream, src, dst, n);
}
extern "C" cudaError_t sample_reverse(cudaStream_t stream, const float *src, float *dst, int n) {
    return KI_LAUNCH(reverse, 1, (unsigned)n, (size_t)n * sizeof(float), stream, src, dst);
}
extern "C" cudaError_t sample_count(cudaStream_t stream, const float *src, int *counts, int n_blocks) {
    return KI_LAUNCH(count, (unsigned)n_blocks, 64, 0, stream, src, counts);
}
extern "C" cudaError_t sample_skipped_barrier(cudaStream_t stream) {
    return KI_LAUNCH(skipped_barrier, 1, 32, 0, stream);
}
extern "C" cudaError_t sample_skipped_shuffle(cudaStream_t stream, float *dst) {
    return KI_LAUNCH(skipped_shuffle, 1, 32, 0, stream, dst);
}
extern "C" cudaError_t sample_unwritten(cudaStream_t stream, float *dst) {
    return KI_LAUNCH(unwritten, 2, 32, 0, stream, dst);
}
