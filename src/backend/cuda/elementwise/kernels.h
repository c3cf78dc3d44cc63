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
 * device memory, and are copied to keeps[0] and [1] unless that is NULL. is_map: a map of hw pixels, or any rows with hw 1; else float [mb, c] with hw 1. */
typedef struct ki_cuda_dropout_args {
    bool is_bf16, is_map;
    int64_t mb, c, hw, each, src_pitch,
        dst_pitch; /* each: values of one image, in case that `first` is not 0 */
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

/* dst = the function `how` (a ki_act) of src, or, with diff_dst, diff_dst times its slope at src. */
typedef struct ki_cuda_act_args {
    bool is_bf16;
    int how;
    int64_t n, c, src_pitch, diff_pitch, dst_pitch;
    const void *src, *diff_dst;
    void *dst;
} ki_cuda_act_args;

cudaError_t ki_cuda_act_apply(cudaStream_t stream, const ki_cuda_act_args *args);

/* dst [n, c] = silu(a) * b, with a and b the halves of a row of src [n, 2c]; backward from diff_dst to diff_src. */
typedef struct ki_cuda_glu_args {
    bool is_bf16;
    int64_t n, c, src_pitch, dst_pitch; /* gradients have the pitch of their map */
    const void *src, *diff_dst;
    void *dst, *diff_src;
} ki_cuda_glu_args;

cudaError_t ki_cuda_glu_apply(cudaStream_t stream, const ki_cuda_glu_args *args, bool is_backward);

/* dst = a * x + b * y + bias, with hw pixels to a row: a and b are factors for each channel, a_step and b_step floats from one row to the
 * next (0: the same for all rows), bias for each channel. y, b (then 1) and bias may be NULL. */
typedef struct ki_cuda_mix_args {
    bool is_bf16;
    int64_t n, c, hw, x_pitch, y_pitch, dst_pitch, a_step, b_step;
    const void *x, *y;
    void *dst;
    const float *a, *b, *bias;
} ki_cuda_mix_args;

cudaError_t ki_cuda_mix(cudaStream_t stream, const ki_cuda_mix_args *args);

/* Sums over stretches of `length` of the n pixels, the last of which may be shorter: along [stretches, c] of x * y, and, behind them, sums
 * [stretches, c] of x, if asked for. In the same pass, unless `scaled` is NULL, scaled = a * x with a factor for each channel. */
typedef struct ki_cuda_stretch_args {
    bool is_bf16, wants_sums;
    int64_t n, c, length, x_pitch, y_pitch, scaled_pitch;
    const void *x, *y;
    const float *a;
    void *scaled;
    float *dst;
} ki_cuda_stretch_args;

static inline int64_t ki_cuda_stretches(int64_t n, int64_t length) { return (n + length - 1) / length; }
/* The length of stretches for sums over all n pixels: a function of the shape alone. */
int64_t ki_cuda_stretch_length(int64_t n);
cudaError_t ki_cuda_stretch_sums(cudaStream_t stream, const ki_cuda_stretch_args *args);
/* diff [c] += the sum over the stretches of src [stretches, c], and the same for `next` and the sums behind; each may be NULL. */
cudaError_t ki_cuda_add_stretches(cudaStream_t stream, int64_t stretches, int64_t c, const float *src,
                                  float *diff, float *next);

/* Whole rows of hw pixels of c channels through the mask of device/dropout.h, a row being the element; see ki_cuda_dropout_args. */
cudaError_t ki_cuda_drop_path_mask(cudaStream_t stream, const ki_cuda_dropout_args *args);

#ifdef __cplusplus
}
#endif

#endif
