/* Attention and the moves of tokens around it, as C calls that queue kernels and return the error, if any. */
#ifndef KI_CUDA_ATTENTION_KERNELS_H
#define KI_CUDA_ATTENTION_KERNELS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/windows.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KI_CUDA_MOST_HEAD = 256 }; /* numbers of a head */

/* Rows of s queries and t keys; numbers d of each head side by side. Pointers are to the first number of their part: token i of row r is
 * (r * s + i) * q_pitch elements on for queries and their gradient, (r * t + i) * kv_pitch for keys, values and theirs, and
 * (r * s + i) * heads * d for the result. */
typedef struct ki_cuda_attention_args {
    bool is_bf16;
    ki_attention_attr attr;
    int64_t rows, q_pitch, kv_pitch;
    int s, t, d;
    int warps; /* of a block on tensor cores, 1 to 8; 0: the kernel's choice */
    float scale;
    const void *q, *k, *v;
    const float *table; /* of windows: [(2 window - 1)^2, heads] */
    void *dst;
    float *saved; /* [rows, heads, s]: logarithms of the sums of exponentials; forward may have NULL */

    /* Backward. */
    const void *result, *diff_dst;
    void *diff_q, *diff_k, *diff_v; /* NULL: not wanted; k and v together */
    float *dots;                    /* [rows, heads, s] */
    float *tables;     /* ki_cuda_attention_tables numbers; NULL: the table's gradient is not wanted */
    float *diff_table; /* added to */
} ki_cuda_attention_args;

/* d is at most KI_CUDA_MOST_HEAD. */
cudaError_t ki_cuda_attention_forward(cudaStream_t stream, const ki_cuda_attention_args *args);
/* Reads what forward saved, of either kind of kernel. Each gradient is summed by one block, in order: no atomics. */
cudaError_t ki_cuda_attention_backward(cudaStream_t stream, const ki_cuda_attention_args *args);
int64_t ki_cuda_attention_tables(const ki_cuda_attention_args *args);

/* The same on tensor cores, for what they take: bf16, no windows, heads of up to 128 numbers, pointers and pitches of whole 16 bytes. Weights
 * and gradients of scores are rounded to bf16. */
bool ki_cuda_attention_on_tensor_cores(const ki_cuda_attention_args *args);
cudaError_t ki_cuda_tensor_forward(cudaStream_t stream, const ki_cuda_attention_args *args);
cudaError_t ki_cuda_tensor_backward(cudaStream_t stream, const ki_cuda_attention_args *args);

/* Whole tokens of c numbers: `cut` [rows, moves.n, c] from `grid` [rows, h * w, c], with zeros for padding, or (scatters) the other way. */
typedef struct ki_cuda_moves_args {
    bool is_bf16, scatters;
    ki_moves moves;
    int64_t rows, c;
    const void *src;
    void *dst;
} ki_cuda_moves_args;

cudaError_t ki_cuda_moves(cudaStream_t stream, const ki_cuda_moves_args *args);

#ifdef __cplusplus
}
#endif

#endif
