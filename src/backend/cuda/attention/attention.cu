/* Attention, forward: a block has a tile of queries and goes through the keys and values tile by tile, with the softmax kept up to date
 * (Dao et al., FlashAttention, 2022). Formulas: backend/ref. Reads q once, k and v once for each tile of queries. */
#include "backend/cuda/attention/tile.cuh"

namespace {

/* Shared memory: queries, then keys or values, weights. */
template <int TILE, int COLUMNS>
size_t shared_bytes() {
    return sizeof(float) * (size_t)(2 * TILE * (KI_SIDE * COLUMNS + 1) + TILE * (TILE + 1));
}

template <typename T, int TILE, int COLUMNS>
__global__ void __launch_bounds__(KI_TILE_THREADS) forward(ki_cuda_attention_args a) {
    const int R = TILE / KI_SIDE, WIDE = KI_SIDE * COLUMNS;
    const int x = (int)threadIdx.x % KI_SIDE, y = (int)threadIdx.x / KI_SIDE;
    KI_SHARED(float, queries);
    float *keys = queries + TILE * (WIDE + 1), *weights = keys + TILE * (WIDE + 1);
    const ki_tile_place at = ki_tile_of<TILE>(a, a.s);
    const T *q = static_cast<const T *>(a.q) + at.row * a.s * a.q_pitch + at.head * a.d;
    const T *k = static_cast<const T *>(a.k) + at.row * a.t * a.kv_pitch + at.head * a.d;
    const T *v = static_cast<const T *>(a.v) + at.row * a.t * a.kv_pitch + at.head * a.d;
    float most[R], total[R], sum[R][COLUMNS];
#pragma unroll
    for (int r = 0; r < R; r++) {
        most[r] = -INFINITY, total[r] = 0;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) sum[r][c] = 0;
    }
    ki_tile_load<T, TILE, WIDE>(q, a.q_pitch, at.first, a.s, a.d, a.scale, queries);
    for (int first = 0; first < a.t; first += TILE) {
        float s[R][R];
        __syncthreads();
        ki_tile_load<T, TILE, WIDE>(k, a.kv_pitch, first, a.t, a.d, 1, keys);
        __syncthreads();
        ki_tile_dots<TILE, WIDE>(queries, keys, a.d, s);
        ki_tile_positions<TILE>(a, at.row, at.head, at.first, first, s);
#pragma unroll
        for (int r = 0; r < R; r++) {
            float top = most[r], of_tile = 0;
#pragma unroll
            for (int c = 0; c < R; c++) top = fmaxf(top, s[r][c]);
            top = ki_side_max(top);
            const float shrink = expf(most[r] - top);
#pragma unroll
            for (int c = 0; c < R; c++) {
                const float weight = expf(s[r][c] - top);
                of_tile += weight;
                weights[(y + KI_SIDE * r) * (TILE + 1) + x + KI_SIDE * c] = weight;
            }
            total[r] = total[r] * shrink + ki_side_sum(of_tile);
            most[r] = top;
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) sum[r][c] *= shrink;
        }
        __syncthreads();
        ki_tile_load<T, TILE, WIDE>(v, a.kv_pitch, first, a.t, a.d, 1, keys);
        __syncthreads();
        ki_tile_add<TILE, COLUMNS>(weights, false, keys, sum);
    }
    const int64_t pitch = a.attr.heads * a.d;
    float factor[R];
#pragma unroll
    for (int r = 0; r < R; r++) {
        const int query = at.first + y + KI_SIDE * r;
        factor[r] = 1 / total[r];
        if (a.saved && x == 0 && query < a.s)
            a.saved[(at.row * a.attr.heads + at.head) * a.s + query] = most[r] + logf(total[r]);
    }
    ki_tile_store<T, TILE, COLUMNS>(sum, factor, at.first, a.s, a.d,
                                    static_cast<T *>(a.dst) + at.row * a.s * pitch + at.head * a.d, pitch);
}

template <int TILE, int COLUMNS>
cudaError_t launch(cudaStream_t stream, const ki_cuda_attention_args *a) {
    const unsigned blocks = ki_tile_blocks(a, a->s, TILE);
    const size_t bytes = shared_bytes<TILE, COLUMNS>();
    if (blocks == 0) return cudaErrorInvalidValue;
    return a->is_bf16
               ? KI_LAUNCH((forward<ki_bf16, TILE, COLUMNS>), blocks, KI_TILE_THREADS, bytes, stream, *a)
               : KI_LAUNCH((forward<float, TILE, COLUMNS>), blocks, KI_TILE_THREADS, bytes, stream, *a);
}

} // namespace

extern "C" cudaError_t ki_cuda_attention_forward(cudaStream_t stream, const ki_cuda_attention_args *args) {
    return KI_TILE_LAUNCH(launch, args, stream, args);
}
