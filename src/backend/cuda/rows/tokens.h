/* Between maps and tokens, as C calls that queue a kernel and return the error, if any. Tokens are rows of c numbers without a
 * pitch; maps have a `pitch` from pixel to pixel; both are float or (is_bf16) bf16. Parameters and sums are float. Sums over
 * images and over positions have a fixed order. */
#ifndef KI_CUDA_TOKENS_H
#define KI_CUDA_TOKENS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The terms of device/positions.h for the rows and the columns of a grid, in the device's memory. */
typedef struct ki_cuda_position_terms {
    const int32_t *first, *at;
    const float *weight;
} ki_cuda_position_terms;

/* dst [h, w, c] = (or, with adds, +=) the sums over the terms of y and x of src [.., width, c]. */
typedef struct ki_cuda_positions_args {
    ki_cuda_position_terms y, x;
    int64_t h, w, c, width;
    bool adds;
    const float *src;
    float *dst;
} ki_cuda_positions_args;

cudaError_t ki_cuda_positions(cudaStream_t stream, const ki_cuda_positions_args *args);

/* Images of t tokens, of which the first n_special stand for no pixel. */
typedef struct ki_cuda_tokens_args {
    bool is_bf16, has_class;
    int64_t mb, t, n_special, c, pitch;
    const void *map;
    void *tokens;
    const float *class_token, *class_position, *registers, *grid; /* NULL where there is none */
} ki_cuda_tokens_args;

cudaError_t ki_cuda_tokens_forward(cudaStream_t stream, const ki_cuda_tokens_args *args);

/* One pass over the tokens' gradient. All pointers but the gradient itself may be NULL. */
typedef struct ki_cuda_tokens_diff_args {
    bool is_bf16, has_class;
    int64_t mb, t, n_special, c, pitch;
    const void *diff_tokens;
    void *diff_map;
    float *diff_class, *diff_class_position, *diff_registers; /* added to */
    float *grid;    /* [t - n_special, c]: the sums of the pixels … */
    bool adds_grid; /* … added to it, or assigned */
} ki_cuda_tokens_diff_args;

cudaError_t ki_cuda_tokens_backward(cudaStream_t stream, const ki_cuda_tokens_diff_args *args);

/* map = the tokens behind the first `skip`, or, with is_back, the tokens = map, and 0 in the first `skip`. */
typedef struct ki_cuda_grid_args {
    bool is_bf16, is_back;
    int64_t mb, t, skip, c, pitch;
    void *tokens, *map; /* one of them is only read */
} ki_cuda_grid_args;

cudaError_t ki_cuda_grid_rows(cudaStream_t stream, const ki_cuda_grid_args *args);

/* vectors [mb, c] = token `at` of each row; with is_back, tokens = 0, and the vectors at that place. */
typedef struct ki_cuda_token_args {
    bool is_bf16, is_back;
    int64_t mb, t, at, c;
    void *tokens;
    float *vectors;
} ki_cuda_token_args;

cudaError_t ki_cuda_token_rows(cudaStream_t stream, const ki_cuda_token_args *args);

/* tokens [mb, n] = the n learned numbers in each row; with is_back, learned += the sums over the rows. */
typedef struct ki_cuda_probe_args {
    bool is_bf16, is_back;
    int64_t mb, n;
    void *tokens;
    float *learned;
} ki_cuda_probe_args;

cudaError_t ki_cuda_probe_rows(cudaStream_t stream, const ki_cuda_probe_args *args);

#ifdef __cplusplus
}
#endif

#endif
