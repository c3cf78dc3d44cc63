/* What the kernels on tensor cores share. A block of a few warps has 16 tokens for each warp, whose results stay in the warp's registers, and goes
 * through the other side's tokens in tiles of KI_TILE, of which the next is on its way while one is used.
 *
 * Tiles are [tokens, D + 8] bf16, D the numbers of a head rounded up; what is behind the last token or the last number is 0. The eight more let
 * eight rows be read at the same columns from all banks. */
#ifndef KI_CUDA_ATTENTION_TENSOR_CUH
#define KI_CUDA_ATTENTION_TENSOR_CUH

#include "backend/cuda/attention/mma.cuh"
#include "backend/cuda/attention/tile.cuh"

enum { KI_TILE = 64, KI_MOST_WARPS = 8 };

static constexpr float KI_LOG2_E = 1.44269504f;

/* Can these kernels take the sizes, and do the pointers allow copies of 16 bytes? NULL pointers are fine. */
static inline bool ki_tensor_takes(const ki_cuda_attention_args *a) {
    const int64_t pitch = a->attr.heads * a->d;
    const void *of_queries[] = {a->q, a->diff_q}, *of_keys[] = {a->k, a->v, a->diff_k, a->diff_v};
    const void *of_result[] = {a->dst, a->result, a->diff_dst};
    if (!a->is_bf16 || a->attr.window > 0 || a->d > 128) return false;
    for (const void *p : of_queries) {
        if (!ki_fits_packs<ki_bf16>(p, a->q_pitch, a->d)) return false;
    }
    for (const void *p : of_keys) {
        if (!ki_fits_packs<ki_bf16>(p, a->kv_pitch, a->d)) return false;
    }
    for (const void *p : of_result) {
        if (!ki_fits_packs<ki_bf16>(p, pitch, a->d)) return false;
    }
    return true;
}

/* Warps of a block for n tokens: so many that the fewest have nothing to do. */
static inline int ki_tensor_warps(const ki_cuda_attention_args *a, int n) {
    const int wanted = (n + 15) / 16;
    int best = 4;
    if (a->warps > 0) return a->warps;
    for (int warps = best + 1; warps <= KI_MOST_WARPS; warps++) {
        if ((wanted + warps - 1) / warps * warps < (wanted + best - 1) / best * best) best = warps;
    }
    return best;
}

/* The part of a block: blocks are numbered [row, head, tokens]. */
static __device__ __forceinline__ ki_tile_place ki_tensor_place(const ki_cuda_attention_args &a, int n) {
    const int each = (int)blockDim.x / 2, tiles = (n + each - 1) / each, heads = (int)a.attr.heads;
    const int row_head = (int)blockIdx.x / tiles;
    return {row_head / heads, row_head % heads, ((int)blockIdx.x - row_head * tiles) * each};
}

/* Queue copies of `tokens` tokens from `first` on of n that begin at `from`. */
template <int D>
__device__ __forceinline__ void ki_tensor_load(const ki_bf16 *from, int64_t pitch, int first, int n, int d,
                                               int tokens, ki_bf16 *to) {
    const int EACH = D / 8;
    for (int i = (int)threadIdx.x; i < tokens * EACH; i += (int)blockDim.x) {
        const int token = i / EACH, column = (i - token * EACH) * 8;
        const bool is_there = first + token < n && column < d;
        ki_copy_later<16>(to + token * (D + 8) + column,
                          is_there ? from + (int64_t)(first + token) * pitch + column : from, is_there);
    }
}

/* Sixteen tokens of a tile, columns 16 k on, as a left side. */
template <int D>
__device__ __forceinline__ ki_blocks_of_8 ki_tensor_left(const ki_bf16 *tokens, int k) {
    const int lane = (int)threadIdx.x & 31;
    return ki_load_blocks<false>(tokens + lane % 16 * (D + 8) + 16 * k + lane / 16 * 8);
}

/* sum[j] = left * the transpose of 8 tokens from 8 j on; 2 N of them. */
template <int D, int N, typename L>
__device__ __forceinline__ void ki_tensor_dots(const L &left, const ki_bf16 *tokens, float (*sum)[4]) {
    const int lane = (int)threadIdx.x & 31;
    const ki_bf16 *at = tokens + (lane % 8 + lane / 16 * 8) * (D + 8) + lane / 8 % 2 * 8;
#pragma unroll
    for (int j = 0; j < 2 * N; j++) sum[j][0] = sum[j][1] = sum[j][2] = sum[j][3] = 0;
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
        const ki_blocks_of_8 of_left = left.at(k);
#pragma unroll
        for (int j = 0; j < N; j++) {
            const ki_blocks_of_8 right = ki_load_blocks<false>(at + 16 * j * (D + 8) + 16 * k);
            ki_multiply(of_left, right.x[0], right.x[1], sum[2 * j]);
            ki_multiply(of_left, right.x[2], right.x[3], sum[2 * j + 1]);
        }
    }
}

/* sum[c] += left, of 16 weights, * 16 tokens at columns 8 c on. */
template <int D>
__device__ __forceinline__ void ki_tensor_add(const ki_blocks_of_8 &left, const ki_bf16 *tokens,
                                              float (&sum)[D / 8][4]) {
    const int lane = (int)threadIdx.x & 31;
    const ki_bf16 *at = tokens + lane % 16 * (D + 8) + lane / 16 * 8;
#pragma unroll
    for (int c = 0; c < D / 16; c++) {
        const ki_blocks_of_8 right = ki_load_blocks<true>(at + 16 * c);
        ki_multiply(left, right.x[0], right.x[1], sum[2 * c]);
        ki_multiply(left, right.x[2], right.x[3], sum[2 * c + 1]);
    }
}

/* The left sides of a warp's 16 tokens: kept in registers, or read again each time. */
template <int D, bool KEPT>
struct ki_tensor_own;
template <int D>
struct ki_tensor_own<D, true> {
    ki_blocks_of_8 kept[D / 16];
    __device__ __forceinline__ void take(const ki_bf16 *tokens) {
#pragma unroll
        for (int k = 0; k < D / 16; k++) kept[k] = ki_tensor_left<D>(tokens, k);
    }
    __device__ __forceinline__ const ki_blocks_of_8 &at(int k) const { return kept[k]; }
};
template <int D>
struct ki_tensor_own<D, false> {
    const ki_bf16 *tokens;
    __device__ __forceinline__ void take(const ki_bf16 *tokens_) { tokens = tokens_; }
    __device__ __forceinline__ ki_blocks_of_8 at(int k) const { return ki_tensor_left<D>(tokens, k); }
};

/* A warp's tokens from `first` on of n = factor * sum, rows g and g + 8 with a factor each; `room` is 16 tokens of shared memory. */
template <int D>
__device__ __forceinline__ void ki_tensor_store(const float (&sum)[D / 8][4], float factor, float factor_8,
                                                int first, int n, int d, ki_bf16 *room, ki_bf16 *to,
                                                int64_t pitch) {
    const int lane = (int)threadIdx.x & 31, EACH = D / 8;
    uint32_t *at = reinterpret_cast<uint32_t *>(room + lane / 4 * (D + 8) + lane % 4 * 2);
    __syncwarp(0xffffffffu);
#pragma unroll
    for (int c = 0; c < D / 8; c++) {
        at[4 * c] = ki_two_bf16(factor * sum[c][0], factor * sum[c][1]);
        at[4 * c + 4 * (D + 8)] = ki_two_bf16(factor_8 * sum[c][2], factor_8 * sum[c][3]);
    }
    __syncwarp(0xffffffffu);
#pragma unroll
    for (int i = lane; i < 16 * EACH; i += 32) {
        const int token = i / EACH, column = (i - token * EACH) * 8;
        if (first + token < n && column < d)
            ki_pack_store(to + (int64_t)(first + token) * pitch + column,
                          ki_pack_load(room + token * (D + 8) + column));
    }
}

/* Over the four lanes of a row, the same in all of them. */
static __device__ __forceinline__ float ki_four_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
static __device__ __forceinline__ float ki_four_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

#define KI_TENSOR_LAUNCH(launch, a, ...)      \
    ((a)->d <= 32   ? launch<32>(__VA_ARGS__) \
     : (a)->d <= 64 ? launch<64>(__VA_ARGS__) \
     : (a)->d <= 80 ? launch<80>(__VA_ARGS__) \
     : (a)->d <= 96 ? launch<96>(__VA_ARGS__) \
                    : launch<128>(__VA_ARGS__))

#endif
