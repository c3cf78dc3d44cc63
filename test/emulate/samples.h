/* Small kernels that the emulator, and a device, must run rightly. */
#ifndef KI_EMULATE_SAMPLES_H
#define KI_EMULATE_SAMPLES_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* dst[b] = sum of src[b * n .. b * n + n), one block of 256 each. */
cudaError_t sample_block_sums(cudaStream_t stream, const float *src, double *dst, int n_blocks, int n);
/* dst[i] = src[n - 1 - i] through dynamic shared memory; n <= 1024. */
cudaError_t sample_reverse(cudaStream_t stream, const float *src, float *dst, int n);
/* counts[b] = how many of 64 values of block b are positive, by ballot and atomicAdd. */
cudaError_t sample_count(cudaStream_t stream, const float *src, int *counts, int n_blocks);
/* With v(i) = i, dst[i] = v(j) + v(j)^2 (j: mirrored within the 64 of its block) + the sum over blocks of 2 v at its
 * place; blocks of 64 wait for each other four times, and do so in vain unless launched together. */
cudaError_t sample_exchange(cudaStream_t stream, float *values, float *dst, unsigned *counters, int n_blocks,
                            bool together);
/* dst [16, 16] = left [16, 16] right [16, 16], numbers in bf16, by one warp on tensor cores, of which sums are four to a lane; across:
 * right is given transposed. Not to wait for the copies to shared memory is a mistake. */
cudaError_t sample_product(cudaStream_t stream, const uint16_t *left, const uint16_t *right, float *dst,
                           bool across, bool waits);
/* Kernels with mistakes: a barrier that half of the threads skip; a shuffle that one lane skips; shared memory
 * read before it is written (dst[i] takes it). */
cudaError_t sample_skipped_barrier(cudaStream_t stream);
cudaError_t sample_skipped_shuffle(cudaStream_t stream, float *dst);
cudaError_t sample_unwritten(cudaStream_t stream, float *dst);

#ifdef __cplusplus
}
#endif
#endif
