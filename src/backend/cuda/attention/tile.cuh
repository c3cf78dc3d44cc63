/* What the kernels of attention share. A block of 16 x 16 threads works on a tile of TILE queries and one of TILE keys in shared
 * memory; thread (y, x) has the scores of queries y, y + 16 … and keys x, x + 16 …, and of a result the columns x, x + 16 …
 *
 * Tiles are [TILE, WIDE + 1] floats, WIDE = 16 * COLUMNS; what is behind the last token or the last number of a head is 0. The
 * one more lets 16 threads read a column from 16 banks. */
#ifndef KI_CUDA_ATTENTION_TILE_CUH
#define KI_CUDA_ATTENTION_TILE_CUH

#include "backend/cuda/attention/kernels.h"
#include "backend/cuda/number.cuh"

enum { KI_SIDE = 16, KI_TILE_THREADS = KI_SIDE * KI_SIDE };

/* Which part of the work a block has: blocks are numbered [row, head, tile]. */
struct ki_tile_place {
    int64_t row;
    int head, first;
};

template <int TILE>
__device__ __forceinline__ ki_tile_place ki_tile_of(const ki_cuda_attention_args &a, int n) {
    const int tiles = (n + TILE - 1) / TILE, heads = (int)a.attr.heads;
    const int row_head = (int)blockIdx.x / tiles;
    return {row_head / heads, row_head % heads, ((int)blockIdx.x - row_head * tiles) * TILE};
}

/* Tokens from `first` on of n that begin at `from`. */
template <typename T, int TILE, int WIDE>
__device__ __forceinline__ void ki_tile_load(const T *from, int64_t pitch, int first, int n, int d,
                                             float scale, float *to) {
    const int lane = (int)threadIdx.x & 31;
    for (int i = (int)threadIdx.x >> 5; i < TILE; i += KI_TILE_THREADS / 32) {
        const T *token = from + (int64_t)(first + i) * pitch;
        for (int c = lane; c < WIDE; c += 32)
            to[i * (WIDE + 1) + c] = first + i < n && c < d ? scale * to_float(token[c]) : 0;
    }
}

/* dst[r][c] = row y + 16 r of x times row `x + 16 c` of y, over d numbers. */
template <int TILE, int WIDE>
__device__ __forceinline__ void ki_tile_dots(const float *left, const float *right, int d,
                                             float (&dst)[TILE / KI_SIDE][TILE / KI_SIDE]) {
    const int x = (int)threadIdx.x % KI_SIDE, y = (int)threadIdx.x / KI_SIDE, R = TILE / KI_SIDE;
#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
        for (int c = 0; c < R; c++) dst[r][c] = 0;
    }
    for (int k = 0; k < d; k++) {
        float from_left[R], from_right[R];
#pragma unroll
        for (int r = 0; r < R; r++) {
            from_left[r] = left[(y + KI_SIDE * r) * (WIDE + 1) + k];
            from_right[r] = right[(x + KI_SIDE * r) * (WIDE + 1) + k];
        }
#pragma unroll
        for (int r = 0; r < R; r++) {
#pragma unroll
            for (int c = 0; c < R; c++) dst[r][c] = fmaf(from_left[r], from_right[c], dst[r][c]);
        }
    }
}

/* Bias and mask are added to the scores of windows; keys behind the last one get -INFINITY. */
template <int TILE>
__device__ __forceinline__ void ki_tile_positions(const ki_cuda_attention_args &a, int64_t row, int head,
                                                  int first_query, int first_key,
                                                  float (&s)[TILE / KI_SIDE][TILE / KI_SIDE]) {
    const int x = (int)threadIdx.x % KI_SIDE, y = (int)threadIdx.x / KI_SIDE, R = TILE / KI_SIDE;
    const int64_t window = a.attr.window;
    int code[R], part[R];
#pragma unroll
    for (int r = 0; r < R; r++) {
        const int query = first_query + y + KI_SIDE * r;
        const bool has_place = window > 0 && query < a.s;
        code[r] = has_place ? (int)ki_window_code(window, query) : 0;
        part[r] = has_place ? ki_window_part(&a.attr, row, query) : 0;
    }
#pragma unroll
    for (int c = 0; c < R; c++) {
        const int key = first_key + x + KI_SIDE * c;
        if (key >= a.t) {
#pragma unroll
            for (int r = 0; r < R; r++) s[r][c] = -INFINITY;
        } else if (window > 0) {
            const int from = (int)(ki_window_middle(window) - ki_window_code(window, key));
            const int part_of_key = ki_window_part(&a.attr, row, key);
#pragma unroll
            for (int r = 0; r < R; r++) {
                if (first_query + y + KI_SIDE * r >= a.s) continue;
                s[r][c] += a.table[(from + code[r]) * a.attr.heads + head];
                if (part[r] != part_of_key) s[r][c] += (float)KI_WINDOW_UNSEEN;
            }
        }
    }
}

/* sum[r][c] += row y + 16 r of the weights [TILE, TILE + 1] times the rows of a tile; `across`: column instead of row. */
template <int TILE, int COLUMNS>
__device__ __forceinline__ void ki_tile_add(const float *weights, bool across, const float *tile,
                                            float (&sum)[TILE / KI_SIDE][COLUMNS]) {
    const int x = (int)threadIdx.x % KI_SIDE, y = (int)threadIdx.x / KI_SIDE, R = TILE / KI_SIDE;
    const int WIDE = KI_SIDE * COLUMNS, row = across ? 1 : TILE + 1, step = across ? TILE + 1 : 1;
    for (int j = 0; j < TILE; j++) {
        float weight[R], value[COLUMNS];
#pragma unroll
        for (int r = 0; r < R; r++) weight[r] = weights[(y + KI_SIDE * r) * row + j * step];
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) value[c] = tile[j * (WIDE + 1) + x + KI_SIDE * c];
#pragma unroll
        for (int r = 0; r < R; r++) {
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) sum[r][c] = fmaf(weight[r], value[c], sum[r][c]);
        }
    }
}

/* Tokens from `first` on of n = factor[r] * sum[r]. */
template <typename T, int TILE, int COLUMNS>
__device__ __forceinline__ void ki_tile_store(const float (&sum)[TILE / KI_SIDE][COLUMNS],
                                              const float (&factor)[TILE / KI_SIDE], int first, int n, int d,
                                              T *to, int64_t pitch) {
    const int x = (int)threadIdx.x % KI_SIDE, y = (int)threadIdx.x / KI_SIDE;
#pragma unroll
    for (int r = 0; r < TILE / KI_SIDE; r++) {
        const int token = first + y + KI_SIDE * r;
        if (token >= n) continue;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            const int column = x + KI_SIDE * c;
            if (column < d) to[(int64_t)token * pitch + column] = from_float<T>(factor[r] * sum[r][c]);
        }
    }
}

/* Over the 16 threads of a row of the block, the same in all of them. */
static __device__ __forceinline__ float ki_side_sum(float x) {
#pragma unroll
    for (int step = KI_SIDE / 2; step > 0; step >>= 1) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}
static __device__ __forceinline__ float ki_side_max(float x) {
#pragma unroll
    for (int step = KI_SIDE / 2; step > 0; step >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

/* Blocks for tiles of n tokens of every row and head; 0: too many. */
static inline unsigned ki_tile_blocks(const ki_cuda_attention_args *a, int n, int tile) {
    const int64_t blocks = a->rows * a->attr.heads * ((n + tile - 1) / tile);
    return blocks <= INT32_MAX ? (unsigned)blocks : 0;
}

/* Tiles of 64 for heads of up to 64 numbers, smaller ones for wider heads, so that all tiles fit in shared memory. */
#define KI_TILE_LAUNCH(launch, a, ...)            \
    ((a)->d <= 32    ? launch<64, 2>(__VA_ARGS__) \
     : (a)->d <= 64  ? launch<64, 4>(__VA_ARGS__) \
     : (a)->d <= 128 ? launch<32, 8>(__VA_ARGS__) \
                     : launch<16, 16>(__VA_ARGS__))

#endif
