/* Sums, ReLU, copies and dropout, as C calls that queue a kernel and return the error, if any.
 *
 * Maps are n pixels of c channels, `pitch` elements apart, in float or (is_bf16) bf16. A pointer that is not aligned to
 * 16 bytes, a pitch or a channel count that is not a multiple of 16 bytes costs speed, not correctness. */
#ifndef KI_CUDA_ELEMENTWISE_KERNELS_H
#define KI_CUDA_ELEMENTWISE_KERNELS_H

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

/* dst = src through the mask of device/dropout.h at *step, for rows from *first of the whole batch on (NULL: 0); both are
 * device memory, and are copied to keeps[0] and [1] unless that is NULL. is_map: a map of hw pixels; else float [mb, c] with hw 1. */
typedef struct ki_cuda_dropout_args {
    bool is_bf16, is_map;
    int64_t mb, c, hw, src_pitch, dst_pitch;
    uint32_t key[2], node, purpose, threshold;
    float scale;
    const void *src;
    void *dst;
    const uint64_t *step, *first;
    uint64_t *keeps;
} ki_cuda_dropout_args;

cudaError_t ki_cuda_dropout_mask(cudaStream_t stream, const ki_cuda_dropout_args *args);

/* The heads of mb images, each c channels of hw pixels: `rows` has a row for each head [mb * heads], `all` the heads of
 * an image side by side [mb, heads * c], `map` what they look at [mb, c]. */
typedef struct ki_cuda_heads_args {
    bool is_bf16;
    int64_t mb, heads, c, hw, rows_pitch, all_pitch, map_pitch;
    void *rows;
    const void *all, *map;
    void *diff_all, *diff_map; /* of the pitches of all and map */
} ki_cuda_heads_args;

/* rows = map * sigmoid(all). */
cudaError_t ki_cuda_heads_attend(cudaStream_t stream, const ki_cuda_heads_args *args);
/* diff_map and diff_all (each NULL: not wanted) from the gradient `rows`. */
cudaError_t ki_cuda_heads_attend_diff(cudaStream_t stream, const ki_cuda_heads_args *args);
/* diff_all = rows, and rows = all: a change of places. */
cudaError_t ki_cuda_heads_unfold(cudaStream_t stream, const ki_cuda_heads_args *args);
cudaError_t ki_cuda_heads_fold(cudaStream_t stream, const ki_cuda_heads_args *args);

#ifdef __cplusplus
}
#endif

#endif
