/* Attention on tensor cores, forward: as attention.cu in another shape. A warp keeps its 16 queries, the sums of their weights and their
 * results in registers; weights are rounded to bf16 for the second product. Reads q once, k and v once for each block of queries. */
#include "backend/cuda/attention/tensor.cuh"

namespace {

/* Shared memory: queries, two tiles of keys, two of values. */
template <int D>
size_t shared_bytes(int warps) {
    return sizeof(ki_bf16) * (size_t)((16 * warps + 4 * KI_TILE) * (D + 8));
}

template <int D>
__global__ void __launch_bounds__(32 * KI_MOST_WARPS, D <= 64 ? 2 : 1) forward(ki_cuda_attention_args a) {
    const int SIZE = KI_TILE * (D + 8), CHUNKS = KI_TILE / 16;
    const int warp = (int)threadIdx.x >> 5, lane = (int)threadIdx.x & 31;
    KI_SHARED(ki_bf16, queries);
    ki_bf16 *const keys = queries + (int)blockDim.x / 2 * (D + 8), *const values = keys + 2 * SIZE;
    const ki_tile_place at = ki_tensor_place(a, a.s);
    const int mine = at.first + 16 * warp, tiles = (a.t + KI_TILE - 1) / KI_TILE;
    const ki_bf16 *q = static_cast<const ki_bf16 *>(a.q) + at.row * a.s * a.q_pitch + at.head * a.d;
    const ki_bf16 *k = static_cast<const ki_bf16 *>(a.k) + at.row * a.t * a.kv_pitch + at.head * a.d;
    const ki_bf16 *v = static_cast<const ki_bf16 *>(a.v) + at.row * a.t * a.kv_pitch + at.head * a.d;
    const float factor = a.scale * KI_LOG2_E;
    ki_tensor_own<D, true> own;
    float most[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0}, sum[D / 8][4];
#pragma unroll
    for (int c = 0; c < D / 8; c++) sum[c][0] = sum[c][1] = sum[c][2] = sum[c][3] = 0;
    ki_tensor_load<D>(q, a.q_pitch, at.first, a.s, a.d, (int)blockDim.x / 2, queries);
    ki_tensor_load<D>(k, a.kv_pitch, 0, a.t, a.d, KI_TILE, keys);
    ki_tensor_load<D>(v, a.kv_pitch, 0, a.t, a.d, KI_TILE, values);
    ki_copies_close();
    for (int tile = 0; tile < tiles; tile++) {
        const int first = tile * KI_TILE, n = min(a.t - first, (int)KI_TILE);
        const ki_bf16 *const tile_k = keys + tile % 2 * SIZE, *const tile_v = values + tile % 2 * SIZE;
        if (tile + 1 < tiles) {
            const int next = (tile + 1) % 2 * SIZE;
            ki_tensor_load<D>(k, a.kv_pitch, first + KI_TILE, a.t, a.d, KI_TILE, keys + next);
            ki_tensor_load<D>(v, a.kv_pitch, first + KI_TILE, a.t, a.d, KI_TILE, values + next);
        }
        ki_copies_close();
        ki_copies_wait<1>();
        __syncthreads();
        if (tile == 0) own.take(queries + 16 * warp * (D + 8));
        if (mine < a.s) {
            float s[2 * CHUNKS][4], shrink[2];
#pragma unroll
            for (int i = 0; i < CHUNKS; i++) {
                if (16 * i < n) ki_tensor_dots<D, 1>(own, tile_k + 16 * i * (D + 8), s + 2 * i);
            }
            if (n < KI_TILE) {
#pragma unroll
                for (int j = 0; j < 2 * CHUNKS; j++) {
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        if (8 * j + lane % 4 * 2 + i % 2 >= n) s[j][i] = -INFINITY;
                    }
                }
            }
#pragma unroll
            for (int r = 0; r < 2; r++) {
                float top = most[r];
#pragma unroll
                for (int j = 0; j < 2 * CHUNKS; j++) top = fmaxf(top, fmaxf(s[j][2 * r], s[j][2 * r + 1]));
                top = ki_four_max(top);
                shrink[r] = ki_exp2((most[r] - top) * factor);
                most[r] = top;
                total[r] *= shrink[r];
#pragma unroll
                for (int j = 0; j < 2 * CHUNKS; j++) {
#pragma unroll
                    for (int i = 2 * r; i < 2 * r + 2; i++) {
                        s[j][i] = ki_exp2(fmaf(s[j][i], factor, -top * factor));
                        total[r] += s[j][i];
                    }
                }
            }
#pragma unroll
            for (int c = 0; c < D / 8; c++) {
                sum[c][0] *= shrink[0], sum[c][1] *= shrink[0];
                sum[c][2] *= shrink[1], sum[c][3] *= shrink[1];
            }
#pragma unroll
            for (int i = 0; i < CHUNKS; i++) {
                if (16 * i < n)
                    ki_tensor_add<D>(ki_rounded(s[2 * i], s[2 * i + 1]), tile_v + 16 * i * (D + 8), sum);
            }
        }
        __syncthreads();
    }
    if (mine >= a.s) return;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int query = mine + lane / 4 + 8 * r;
        total[r] = ki_four_sum(total[r]);
        if (a.saved && lane % 4 == 0 && query < a.s)
            a.saved[(at.row * a.attr.heads + at.head) * a.s + query] = most[r] * a.scale + logf(total[r]);
    }
    const int64_t pitch = a.attr.heads * a.d;
    ki_tensor_store<D>(sum, 1 / total[0], 1 / total[1], mine, a.s, a.d, queries + 16 * warp * (D + 8),
                       static_cast<ki_bf16 *>(a.dst) + at.row * a.s * pitch + at.head * a.d, pitch);
}

template <int D>
cudaError_t launch(cudaStream_t stream, const ki_cuda_attention_args *a) {
    const int warps = ki_tensor_warps(a, a->s);
    const unsigned blocks = ki_tile_blocks(a, a->s, 16 * warps);
    if (blocks == 0) return cudaErrorInvalidValue;
    return KI_LAUNCH(forward<D>, blocks, (unsigned)(32 * warps), shared_bytes<D>(warps), stream, *a);
}

} // namespace

extern "C" bool ki_cuda_attention_on_tensor_cores(const ki_cuda_attention_args *args) {
    return ki_tensor_takes(args);
}

extern "C" cudaError_t ki_cuda_tensor_forward(cudaStream_t stream, const ki_cuda_attention_args *args) {
    return KI_TENSOR_LAUNCH(launch, args, stream, args);
}
