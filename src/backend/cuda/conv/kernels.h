/* Hand-written kernels around convolutions, by their launchers. All are queued on a
 * stream and give the same bits in every run. */
#ifndef KI_CUDA_CONV_KERNELS_H
#define KI_CUDA_CONV_KERNELS_H

#include <cuda_runtime_api.h>

#include "backend/cuda/conv/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How packed weights [oc, kh, packed_kw, packed_ic] contain the masters [oc, ic, kh, kw]: `fold` neighbours
 * in x share one packed place, with `step` channels each, and the first of them is at x = -shift. Packed
 * weights without a master are zero. Without folding fold = 1, shift = 0, step = packed_ic. */
typedef struct ki_pack_form {
    int oc, ic, kh, kw, packed_kw, packed_ic, fold, shift, step;
} ki_pack_form;

/* The work of one block: n_o output channels and chunk_c packed channels of them. */
typedef struct ki_pack_tiling {
    int n_o, chunk_c, n_chunks, n_blocks;
} ki_pack_tiling;

/* False when a form is beyond what a block can hold (kernels of more than 4096 weights a channel). */
bool ki_pack_tile(const ki_pack_form *form, ki_pack_tiling *ret_tiling);

/* One convolution's masters to packed weights. With gamma, the batch norm after it is folded in: weights * s
 * and s * (bias - mean) + beta, s = gamma / sqrt(var + eps). */
typedef struct ki_pack_item {
    ki_pack_form form;
    ki_pack_tiling tiling;
    int first_block;
    const float *weights, *bias, *mean, *var, *gamma, *beta; /* all but weights may be NULL */
    float eps;
    void *packed;
    float *packed_bias; /* [oc]; NULL: none */
    void *stored_bias;  /* the same in the type of activations */
} ki_pack_item;

/* Packed weight gradients added to the masters', or the columns of n_runs rows of sums to a bias'. */
typedef struct ki_unpack_item {
    int is_bias, is_bf16, first_block, n_runs;
    ki_pack_form form; /* of a bias: oc only */
    ki_pack_tiling tiling;
    const void *packed; /* or float [n_runs, oc] */
    float *diff;
} ki_unpack_item;

enum { KI_UNPACK_BIAS_BLOCK = 32 }; /* channels of a bias per block */

/* items: device memory, first_block ascending: from 0, or from the first_block of the first item. One launch for all. */
cudaError_t ki_cuda_pack(const ki_pack_item *items, int n_items, int n_blocks, ki_number type,
                         cudaStream_t stream);
cudaError_t ki_cuda_unpack(const ki_unpack_item *items, int n_items, int first_block, int n_blocks,
                           cudaStream_t stream);

/* Numbers between 0.5 and 1, of either sign, whether read as float or as bf16. */
cudaError_t ki_cuda_noise(void *dst, size_t bytes, uint32_t seed, cudaStream_t stream);

/* dst = src + bias, then ReLU, on rows of c numbers; bias may be NULL, dst may be src. */
cudaError_t ki_cuda_bias_relu(ki_number type, int64_t n_rows, int64_t c, const void *src, int64_t src_pitch,
                              const float *bias, bool has_relu, void *dst, int64_t dst_pitch,
                              cudaStream_t stream);

/* The gradient that arrives at a convolution followed by a ReLU or a bias, in one pass over memory: x = sum
 * of parts, where mask > 0; out = x without a pitch; sums [n_runs, c] have the same column sums as x. */
enum { KI_DIFF_MAX_PARTS = 8 };
typedef struct ki_diff_rows {
    int64_t n_rows, c, pitch; /* of parts and mask */
    int n_parts, n_runs;      /* n_runs: ki_cuda_diff_runs */
    const void *part[KI_DIFF_MAX_PARTS];
    const void *mask; /* NULL: keep all */
    void *out;        /* NULL: not wanted; a sum of several parts is rounded to the type of out */
    float *sums;      /* NULL: not wanted */
} ki_diff_rows;

int ki_cuda_diff_runs(int64_t n_rows, int64_t c);
cudaError_t ki_cuda_diff_rows(ki_number type, const ki_diff_rows *args, cudaStream_t stream);

/* Depthwise convolutions (each channel a group) of square kernels 3, 5 or 7 wide, strides 1 or 2, and channels that are whole
 * packs of 16 bytes. Weight gradients are packed floats. */
bool ki_cuda_conv_is_depthwise(const ki_conv_problem *problem);
size_t ki_cuda_conv_depthwise_workspace(const ki_conv_problem *problem);
cudaError_t ki_cuda_conv_depthwise(const ki_conv_problem *problem, const ki_conv_io *io, cudaStream_t stream);

/* A pass computed by plain loops: any sizes and strides, slow. Weight gradients are packed floats. */
cudaError_t ki_cuda_conv_plain(const ki_conv_problem *problem, const ki_conv_io *io, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
