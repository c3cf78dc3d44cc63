/* Kernels of high-order moments besides the matrix products; moments.h is the interface.
 *
 * A block of columns of the projected positions is p [m * hw, n_w * width]: for each position the `width`
 * columns of the first projection, then those of the second, and so on. `width` is a multiple of 8; everything
 * after the last column of the projections (dim) is 0. Products and sums are float, whatever the network's
 * precision; what a matrix product takes is ki_bf16 or float. */
#ifndef KI_OBJECTIVE_CUDA_PRODUCT_H
#define KI_OBJECTIVE_CUDA_PRODUCT_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "objective/reg/orders.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KI_CUDA_PAD = 8 };

/* dst [rows, n * padded]: the n matrices src[t] [rows, dim] side by side, `block` columns of each at a time
 * as p has them; columns from dim to padded are 0. */
typedef struct ki_cuda_pack {
    int n;
    int64_t rows, dim, padded, block;
    const float *src[KI_MOST_PROJECTIONS];
} ki_cuda_pack;
cudaError_t ki_cuda_product_pack(const ki_cuda_pack *pack, bool is_bf16, void *dst, cudaStream_t stream);

/* One product of projections: factors [first, first + n) of p. Orders from `least` on are asked for (2:
 * cascaded, all; n: the last alone). */
typedef struct ki_cuda_chain {
    int first, n, least;
    int64_t m, hw, dim;          /* dim: columns of the projections, without padding */
    int64_t begin, width, pitch; /* columns of the block; elements between positions of p */
    float scale;                 /* 1 / sqrt(dim) */
    float *p;
    void *diff_p; /* laid out as p; may be p when it is float */
    bool diff_is_bf16;
    /* [2] … [n], each [m, g_pitch]: pooling writes the moments; the way back reads dL/dg. */
    float *g[KI_HORDE_MOST_ORDERS + 1];
    int64_t g_pitch;
} ki_cuda_chain;
cudaError_t ki_cuda_product_pool(const ki_cuda_chain *chain, cudaStream_t stream);
/* diff_p becomes dL/dp. */
cudaError_t ki_cuda_product_back(const ki_cuda_chain *chain, cudaStream_t stream);

/* dst [rows, dst_pitch] = src [rows, src_pitch] (or += with add), cols columns of each row. */
cudaError_t ki_cuda_product_store(const float *src, int64_t rows, int64_t cols, int64_t src_pitch, bool add,
                                  bool is_bf16, void *dst, int64_t dst_pitch, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
