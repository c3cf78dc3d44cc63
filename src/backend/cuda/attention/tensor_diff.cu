/* Attention on tensor cores, backward: as attention_diff.cu, with weights and gradients of scores rounded to bf16 for products. Where keys are a
 * block's own, scores are made transposed (keys by queries), so that what a warp has in registers is the left side of the sums over
 * queries. */
#include "backend/cuda/attention/tensor.cuh"

namespace {

enum { CHUNK = 16, DOTS_THREADS = 256 };

/* LANES for each row, head and query: 16 bytes each. */
template <int D>
__global__ void __launch_bounds__(DOTS_THREADS) dots(ki_cuda_attention_args a) {
    const int LANES = D <= 32 ? 4 : D <= 64 ? 8 : 16;
    const int64_t item = ((int64_t)blockIdx.x * DOTS_THREADS + threadIdx.x) / LANES, heads = a.attr.heads;
    const int column = (int)threadIdx.x % LANES * 8;
    const bool is_there = item < a.rows * a.s * heads;
    float sum = 0;
    /* Items in the order of memory: rows, queries, heads. */
    if (is_there && column < a.d) {
        ki_floats<ki_bf16, 8> result, diff;
        result.load(static_cast<const ki_bf16 *>(a.result) + item * a.d + column);
        diff.load(static_cast<const ki_bf16 *>(a.diff_dst) + item * a.d + column);
#pragma unroll
        for (int i = 0; i < 8; i++) sum = fmaf(result.v[i], diff.v[i], sum);
    }
#pragma unroll
    for (int step = LANES / 2; step > 0; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (!is_there || column > 0) return;
    const int64_t token = item / heads, head = item - token * heads, row = token / a.s;
    a.dots[(row * heads + head) * a.s + token - row * a.s] = sum;
}

/* The parts of a row and head. */
struct parts {
    const ki_bf16 *q, *k, *v, *diff;
    const float *saved, *dots;
    int64_t pitch; /* of diff */
    __device__ __forceinline__ parts(const ki_cuda_attention_args &a, int64_t row, int head) {
        pitch = a.attr.heads * a.d;
        q = static_cast<const ki_bf16 *>(a.q) + row * a.s * a.q_pitch + head * a.d;
        k = static_cast<const ki_bf16 *>(a.k) + row * a.t * a.kv_pitch + head * a.d;
        v = static_cast<const ki_bf16 *>(a.v) + row * a.t * a.kv_pitch + head * a.d;
        diff = static_cast<const ki_bf16 *>(a.diff_dst) + row * a.s * pitch + head * a.d;
        saved = a.saved + (row * a.attr.heads + head) * a.s;
        dots = a.dots + (row * a.attr.heads + head) * a.s;
    }
};

/* Shared memory: keys, values; two tiles of queries, of gradients of the result, of what was saved of queries and of dots. Of queries:
 * queries, gradients; two tiles of keys and of values. */
template <int D>
size_t shared_bytes(int warps) {
    return sizeof(ki_bf16) * (size_t)((2 * 16 * warps + 4 * KI_TILE) * (D + 8)) + sizeof(float) * 4 * KI_TILE;
}

/* Of a tile of n queries. */
static __device__ __forceinline__ void load_numbers(const parts &from, int first, int n, float *saved,
                                                    float *dots) {
    for (int i = (int)threadIdx.x; i < 2 * KI_TILE; i += (int)blockDim.x) {
        const int query = i % KI_TILE;
        const bool is_there = query < n;
        const float *source = i < KI_TILE ? from.saved : from.dots;
        ki_copy_later<4>((i < KI_TILE ? saved : dots) + query, is_there ? source + first + query : source,
                         is_there);
    }
}

template <int D>
__global__ void __launch_bounds__(32 * KI_MOST_WARPS, D <= 64 ? 2 : 1) diff_keys(ki_cuda_attention_args a) {
    const int SIZE = KI_TILE * (D + 8), warp = (int)threadIdx.x >> 5, lane = (int)threadIdx.x & 31;
    const int own_size = (int)blockDim.x / 2 * (D + 8);
    KI_SHARED(ki_bf16, keys);
    ki_bf16 *const values = keys + own_size, *const queries = values + own_size,
                   *const diffs = queries + 2 * SIZE;
    float *const saved = reinterpret_cast<float *>(diffs + 2 * SIZE), *const dots_of = saved + 2 * KI_TILE;
    const ki_tile_place at = ki_tensor_place(a, a.t);
    const parts from(a, at.row, at.head);
    const int mine = at.first + 16 * warp, tiles = (a.s + KI_TILE - 1) / KI_TILE;
    const float factor = a.scale * KI_LOG2_E;
    ki_tensor_own<D, (D <= 96)> own_k, own_v;
    float of_k[D / 8][4], of_v[D / 8][4];
#pragma unroll
    for (int c = 0; c < D / 8; c++) {
#pragma unroll
        for (int i = 0; i < 4; i++) of_k[c][i] = of_v[c][i] = 0;
    }
    ki_tensor_load<D>(from.k, a.kv_pitch, at.first, a.t, a.d, (int)blockDim.x / 2, keys);
    ki_tensor_load<D>(from.v, a.kv_pitch, at.first, a.t, a.d, (int)blockDim.x / 2, values);
    ki_tensor_load<D>(from.q, a.q_pitch, 0, a.s, a.d, KI_TILE, queries);
    ki_tensor_load<D>(from.diff, from.pitch, 0, a.s, a.d, KI_TILE, diffs);
    load_numbers(from, 0, a.s, saved, dots_of);
    ki_copies_close();
    for (int tile = 0; tile < tiles; tile++) {
        const int first = tile * KI_TILE, n = min(a.s - first, (int)KI_TILE), odd = tile % 2;
        if (tile + 1 < tiles) {
            const int next = first + KI_TILE;
            ki_tensor_load<D>(from.q, a.q_pitch, next, a.s, a.d, KI_TILE, queries + (1 - odd) * SIZE);
            ki_tensor_load<D>(from.diff, from.pitch, next, a.s, a.d, KI_TILE, diffs + (1 - odd) * SIZE);
            load_numbers(from, next, a.s - next, saved + (1 - odd) * KI_TILE, dots_of + (1 - odd) * KI_TILE);
        }
        ki_copies_close();
        ki_copies_wait<1>();
        __syncthreads();
        if (tile == 0) {
            own_k.take(keys + 16 * warp * (D + 8));
            own_v.take(values + 16 * warp * (D + 8));
        }
        /* Not unrolled: two chunks at a time would need more registers than there are. */
#pragma unroll 1
        for (int query = 0; query < n && mine < a.t; query += CHUNK) {
            const int place = odd * SIZE + query * (D + 8);
            float p[CHUNK / 8][4], diff_s[CHUNK / 8][4];
            ki_tensor_dots<D, CHUNK / 16>(own_k, queries + place, p);
            ki_tensor_dots<D, CHUNK / 16>(own_v, diffs + place, diff_s);
#pragma unroll
            for (int j = 0; j < CHUNK / 8; j++) {
                /* Behind the last query all is 0: so is what is added for it. */
                const int number = odd * KI_TILE + query + 8 * j + lane % 4 * 2;
                const float2 sums = *reinterpret_cast<const float2 *>(saved + number),
                             dot = *reinterpret_cast<const float2 *>(dots_of + number);
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    p[j][i] = ki_exp2(fmaf(p[j][i], factor, -(i % 2 ? sums.y : sums.x) * KI_LOG2_E));
                    diff_s[j][i] = p[j][i] * (diff_s[j][i] - (i % 2 ? dot.y : dot.x));
                }
            }
#pragma unroll
            for (int j = 0; j < CHUNK / 16; j++) {
                ki_tensor_add<D>(ki_rounded(p[2 * j], p[2 * j + 1]), diffs + place + 16 * j * (D + 8), of_v);
                ki_tensor_add<D>(ki_rounded(diff_s[2 * j], diff_s[2 * j + 1]),
                                 queries + place + 16 * j * (D + 8), of_k);
            }
        }
        __syncthreads();
    }
    if (mine >= a.t) return;
    const int64_t to = at.row * a.t * a.kv_pitch + at.head * a.d;
    ki_tensor_store<D>(of_k, a.scale, a.scale, mine, a.t, a.d, keys + 16 * warp * (D + 8),
                       static_cast<ki_bf16 *>(a.diff_k) + to, a.kv_pitch);
    ki_tensor_store<D>(of_v, 1, 1, mine, a.t, a.d, values + 16 * warp * (D + 8),
                       static_cast<ki_bf16 *>(a.diff_v) + to, a.kv_pitch);
}

template <int D>
__global__ void __launch_bounds__(32 * KI_MOST_WARPS, D <= 64 ? 2 : 1)
    diff_queries(ki_cuda_attention_args a) {
    const int SIZE = KI_TILE * (D + 8), warp = (int)threadIdx.x >> 5, lane = (int)threadIdx.x & 31;
    const int own_size = (int)blockDim.x / 2 * (D + 8);
    KI_SHARED(ki_bf16, queries);
    ki_bf16 *const diffs = queries + own_size, *const keys = diffs + own_size,
                   *const values = keys + 2 * SIZE;
    const ki_tile_place at = ki_tensor_place(a, a.s);
    const parts from(a, at.row, at.head);
    const int mine = at.first + 16 * warp, tiles = (a.t + KI_TILE - 1) / KI_TILE;
    const float factor = a.scale * KI_LOG2_E;
    ki_tensor_own<D, true> own_q, own_diff;
    float of_q[D / 8][4], saved[2], dot[2];
#pragma unroll
    for (int c = 0; c < D / 8; c++) of_q[c][0] = of_q[c][1] = of_q[c][2] = of_q[c][3] = 0;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int query = mine + lane / 4 + 8 * r;
        saved[r] = query < a.s ? from.saved[query] * KI_LOG2_E : 0;
        dot[r] = query < a.s ? from.dots[query] : 0;
    }
    ki_tensor_load<D>(from.q, a.q_pitch, at.first, a.s, a.d, (int)blockDim.x / 2, queries);
    ki_tensor_load<D>(from.diff, from.pitch, at.first, a.s, a.d, (int)blockDim.x / 2, diffs);
    ki_tensor_load<D>(from.k, a.kv_pitch, 0, a.t, a.d, KI_TILE, keys);
    ki_tensor_load<D>(from.v, a.kv_pitch, 0, a.t, a.d, KI_TILE, values);
    ki_copies_close();
    for (int tile = 0; tile < tiles; tile++) {
        const int first = tile * KI_TILE, n = min(a.t - first, (int)KI_TILE), odd = tile % 2;
        if (tile + 1 < tiles) {
            const int next = first + KI_TILE;
            ki_tensor_load<D>(from.k, a.kv_pitch, next, a.t, a.d, KI_TILE, keys + (1 - odd) * SIZE);
            ki_tensor_load<D>(from.v, a.kv_pitch, next, a.t, a.d, KI_TILE, values + (1 - odd) * SIZE);
        }
        ki_copies_close();
        ki_copies_wait<1>();
        __syncthreads();
        if (tile == 0) {
            own_q.take(queries + 16 * warp * (D + 8));
            own_diff.take(diffs + 16 * warp * (D + 8));
        }
#pragma unroll 1
        for (int key = 0; key < n && mine < a.s; key += CHUNK) {
            const int place = odd * SIZE + key * (D + 8);
            float p[CHUNK / 8][4], diff_s[CHUNK / 8][4];
            ki_tensor_dots<D, CHUNK / 16>(own_q, keys + place, p);
            ki_tensor_dots<D, CHUNK / 16>(own_diff, values + place, diff_s);
#pragma unroll
            for (int j = 0; j < CHUNK / 8; j++) {
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    /* The keys behind the last one are 0, but their weights need not be finite. */
                    const bool is_there = key + 8 * j + lane % 4 * 2 + i % 2 < n;
                    const float weight = ki_exp2(fmaf(p[j][i], factor, -saved[i / 2]));
                    diff_s[j][i] = is_there ? weight * (diff_s[j][i] - dot[i / 2]) : 0;
                }
            }
#pragma unroll
            for (int j = 0; j < CHUNK / 16; j++)
                ki_tensor_add<D>(ki_rounded(diff_s[2 * j], diff_s[2 * j + 1]),
                                 keys + place + 16 * j * (D + 8), of_q);
        }
        __syncthreads();
    }
    if (mine >= a.s) return;
    ki_tensor_store<D>(of_q, a.scale, a.scale, mine, a.s, a.d, queries + 16 * warp * (D + 8),
                       static_cast<ki_bf16 *>(a.diff_q) + at.row * a.s * a.q_pitch + at.head * a.d,
                       a.q_pitch);
}

template <int D>
cudaError_t launch(cudaStream_t stream, const ki_cuda_attention_args *a) {
    const int LANES = D <= 32   ? 4
                      : D <= 64 ? 8
                                : 16,
              q_warps = ki_tensor_warps(a, a->s), k_warps = ki_tensor_warps(a, a->t);
    const unsigned queries = ki_tile_blocks(a, a->s, 16 * q_warps),
                   keys = ki_tile_blocks(a, a->t, 16 * k_warps);
    const int64_t n = a->rows * a->attr.heads * a->s;
    if (queries == 0 || keys == 0 || n > INT32_MAX) return cudaErrorInvalidValue;
    KI_LAUNCH_TRY(dots<D>, (unsigned)((n * LANES + DOTS_THREADS - 1) / DOTS_THREADS), DOTS_THREADS, 0, stream,
                  *a);
    if (a->diff_k)
        KI_LAUNCH_TRY(diff_keys<D>, keys, (unsigned)(32 * k_warps), shared_bytes<D>(k_warps), stream, *a);
    if (a->diff_q)
        KI_LAUNCH_TRY(diff_queries<D>, queries, (unsigned)(32 * q_warps), shared_bytes<D>(q_warps), stream,
                      *a);
    return cudaSuccess;
}

} // namespace

extern "C" cudaError_t ki_cuda_tensor_backward(cudaStream_t stream, const ki_cuda_attention_args *args) {
    return KI_TENSOR_LAUNCH(launch, args, stream, args);
}
