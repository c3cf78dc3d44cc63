/* The hand-written kernels of the ops, as C calls: queue and return what went wrong.
 *
 * Maps are n pixels of c channels, `pitch` elements apart, in float or (is_bf16) bf16; sums are made in float
 * in an order that depends on the shapes alone. A pointer that is not aligned to 16 bytes, a pitch or a channel
 * count that is not a multiple of 16 bytes costs speed, not correctness. */
#ifndef KI_CUDA_KERNELS_H
#define KI_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KI_CUDA_MAX_PARTS = 8 };

/* dst = sum of parts, then ReLU (has_relu), or kept where mask > 0 (mask not NULL). dst may be any of the parts
 * of the same pitch. */
cudaError_t ki_cuda_sum(cudaStream_t stream, bool is_bf16, int64_t n, int64_t c, int n_parts,
                        const void *const *part, const int64_t *pitch, const void *mask, int64_t mask_pitch,
                        bool has_relu, void *dst, int64_t dst_pitch);

/* Row-major [mb, c, hw] float and a map; channels from c to c_filled of the map are set to zero. */
cudaError_t ki_cuda_import_map(cudaStream_t stream, bool is_bf16, int64_t mb, int64_t c, int64_t hw,
                               const float *plain, void *map, int64_t pitch, int64_t c_filled);
cudaError_t ki_cuda_export_map(cudaStream_t stream, bool is_bf16, int64_t mb, int64_t c, int64_t hw,
                               const void *map, int64_t pitch, float *plain);

#ifdef __cplusplus
}
#endif

#endif
