/* Attention, backward: the scores are made again from what forward saved. First dots[i] = diff_dst[i] . dst[i], which is the sum over j of
 * p[i, j] diff_p[i, j]; then a block for each tile of keys sums the gradients of k and v, and one for each tile of queries those of q and
 * of the bias table. */
#include "backend/cuda/attention/tile.cuh"

namespace {

enum { WARPS = 8, SUM_THREADS = 256 };

/* A warp for each row, head and query. */
template <typename T>
__global__ void __launch_bounds__(32 * WARPS) dots(ki_cuda_attention_args a) {
    const int64_t item = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5), heads = a.attr.heads;
    if (item >= a.rows * heads * a.s) return;
    const int64_t query = item % a.s, head = item / a.s % heads, row = item / a.s / heads;
    const int64_t at = ((row * a.s + query) * heads + head) * a.d;
    const T *result = static_cast<const T *>(a.result) + at, *diff = static_cast<const T *>(a.diff_dst) + at;
    float sum = 0;
    for (int c = (int)threadIdx.x & 31; c < a.d; c += 32)
        sum = fmaf(to_float(result[c]), to_float(diff[c]), sum);
    sum = ki_warp_sum(sum);
    if ((threadIdx.x & 31) == 0) a.dots[item] = sum;
}

/* The weights of a tile of queries and one of keys, and the gradients of the scores. Queries are scaled. */
template <int TILE, int WIDE>
__device__ __forceinline__ void weights_of(const ki_cuda_attention_args &a, int64_t row, int head,
                                           int first_query, int first_key, const float *queries,
                                           const float *keys, const float *diffs, const float *values,
                                           float (&p)[TILE / KI_SIDE][TILE / KI_SIDE],
                                           float (&diff_s)[TILE / KI_SIDE][TILE / KI_SIDE]) {
    const int y = (int)threadIdx.x / KI_SIDE, R = TILE / KI_SIDE;
    ki_tile_dots<TILE, WIDE>(queries, keys, a.d, p);
    ki_tile_positions<TILE>(a, row, head, first_query, first_key, p);
    ki_tile_dots<TILE, WIDE>(diffs, values, a.d, diff_s);
#pragma unroll
    for (int r = 0; r < R; r++) {
        const int query = first_query + y + KI_SIDE * r;
        const bool is_there = query < a.s;
        const int64_t at = (row * a.attr.heads + head) * a.s + query;
        const float saved = is_there ? a.saved[at] : 0, dot = is_there ? a.dots[at] : 0;
#pragma unroll
        for (int c = 0; c < R; c++) {
            p[r][c] = is_there ? expf(p[r][c] - saved) : 0;
            diff_s[r][c] = p[r][c] * (diff_s[r][c] - dot);
        }
    }
}

template <int TILE>
__device__ __forceinline__ void keep(const float (&x)[TILE / KI_SIDE][TILE / KI_SIDE], float *to) {
    const int column = (int)threadIdx.x % KI_SIDE, row = (int)threadIdx.x / KI_SIDE;
#pragma unroll
    for (int r = 0; r < TILE / KI_SIDE; r++) {
#pragma unroll
        for (int c = 0; c < TILE / KI_SIDE; c++)
            to[(row + KI_SIDE * r) * (TILE + 1) + column + KI_SIDE * c] = x[r][c];
    }
}

/* The parts of a row and head. */
template <typename T>
struct parts {
    const T *q, *k, *v, *diff;
    int64_t pitch; /* of diff */
    __device__ __forceinline__ parts(const ki_cuda_attention_args &a, int64_t row, int head) {
        pitch = a.attr.heads * a.d;
        q = static_cast<const T *>(a.q) + row * a.s * a.q_pitch + head * a.d;
        k = static_cast<const T *>(a.k) + row * a.t * a.kv_pitch + head * a.d;
        v = static_cast<const T *>(a.v) + row * a.t * a.kv_pitch + head * a.d;
        diff = static_cast<const T *>(a.diff_dst) + row * a.s * pitch + head * a.d;
    }
};

/* Shared memory: queries, keys, gradients of the result, values; weights and the gradients of scores. */
template <int TILE, int COLUMNS>
size_t shared_bytes() {
    return sizeof(float) * (size_t)(4 * TILE * (KI_SIDE * COLUMNS + 1) + 2 * TILE * (TILE + 1));
}

template <typename T, int TILE, int COLUMNS>
__global__ void __launch_bounds__(KI_TILE_THREADS) diff_keys(ki_cuda_attention_args a) {
    const int R = TILE / KI_SIDE, WIDE = KI_SIDE * COLUMNS, SIZE = TILE * (WIDE + 1);
    KI_SHARED(float, queries);
    float *keys = queries + SIZE, *diffs = keys + SIZE, *values = diffs + SIZE, *weights = values + SIZE,
          *diff_scores = weights + TILE * (TILE + 1);
    const ki_tile_place at = ki_tile_of<TILE>(a, a.t);
    const parts<T> from(a, at.row, at.head);
    float of_k[R][COLUMNS], of_v[R][COLUMNS], one[R];
#pragma unroll
    for (int r = 0; r < R; r++) {
        one[r] = 1;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) of_k[r][c] = of_v[r][c] = 0;
    }
    ki_tile_load<T, TILE, WIDE>(from.k, a.kv_pitch, at.first, a.t, a.d, 1, keys);
    ki_tile_load<T, TILE, WIDE>(from.v, a.kv_pitch, at.first, a.t, a.d, 1, values);
    for (int first = 0; first < a.s; first += TILE) {
        float p[R][R], diff_s[R][R];
        __syncthreads();
        ki_tile_load<T, TILE, WIDE>(from.q, a.q_pitch, first, a.s, a.d, a.scale, queries);
        ki_tile_load<T, TILE, WIDE>(from.diff, from.pitch, first, a.s, a.d, 1, diffs);
        __syncthreads();
        weights_of<TILE, WIDE>(a, at.row, at.head, first, at.first, queries, keys, diffs, values, p, diff_s);
        keep<TILE>(p, weights);
        keep<TILE>(diff_s, diff_scores);
        __syncthreads();
        ki_tile_add<TILE, COLUMNS>(weights, true, diffs, of_v);
        ki_tile_add<TILE, COLUMNS>(diff_scores, true, queries, of_k);
    }
    const int64_t to = at.row * a.t * a.kv_pitch + at.head * a.d;
    /* The queries were scaled already. */
    ki_tile_store<T, TILE, COLUMNS>(of_k, one, at.first, a.t, a.d, static_cast<T *>(a.diff_k) + to,
                                    a.kv_pitch);
    ki_tile_store<T, TILE, COLUMNS>(of_v, one, at.first, a.t, a.d, static_cast<T *>(a.diff_v) + to,
                                    a.kv_pitch);
}

/* Add to this block's own table the gradients of a tile of scores: a thread has rows of the table, and finds for each query the one key
 * that is so far from it. */
template <int TILE>
__device__ __forceinline__ void add_table(const ki_cuda_attention_args &a, const float *diff_scores,
                                          int first_query, int first_key, float *table) {
    const int window = (int)a.attr.window, side = 2 * window - 1;
    for (int at = (int)threadIdx.x; at < side * side; at += KI_TILE_THREADS) {
        const int down = at / side - window + 1, right = at % side - window + 1;
        float sum = first_key == 0 ? 0 : table[at];
        for (int i = 0; i < TILE && first_query + i < a.s; i++) {
            const int y = (first_query + i) / window - down, x = (first_query + i) % window - right;
            const int j = y * window + x - first_key;
            if (y >= 0 && y < window && x >= 0 && x < window && j >= 0 && j < TILE)
                sum += diff_scores[i * (TILE + 1) + j];
        }
        table[at] = sum;
    }
}

template <typename T, int TILE, int COLUMNS>
__global__ void __launch_bounds__(KI_TILE_THREADS) diff_queries(ki_cuda_attention_args a) {
    const int R = TILE / KI_SIDE, WIDE = KI_SIDE * COLUMNS, SIZE = TILE * (WIDE + 1);
    KI_SHARED(float, queries);
    float *keys = queries + SIZE, *diffs = keys + SIZE, *values = diffs + SIZE, *diff_scores = values + SIZE;
    const ki_tile_place at = ki_tile_of<TILE>(a, a.s);
    const parts<T> from(a, at.row, at.head);
    float of_q[R][COLUMNS], factor[R];
#pragma unroll
    for (int r = 0; r < R; r++) {
        factor[r] = a.scale;
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) of_q[r][c] = 0;
    }
    ki_tile_load<T, TILE, WIDE>(from.q, a.q_pitch, at.first, a.s, a.d, a.scale, queries);
    ki_tile_load<T, TILE, WIDE>(from.diff, from.pitch, at.first, a.s, a.d, 1, diffs);
    const int side = 2 * (int)a.attr.window - 1;
    for (int first = 0; first < a.t; first += TILE) {
        float p[R][R], diff_s[R][R];
        __syncthreads();
        ki_tile_load<T, TILE, WIDE>(from.k, a.kv_pitch, first, a.t, a.d, 1, keys);
        ki_tile_load<T, TILE, WIDE>(from.v, a.kv_pitch, first, a.t, a.d, 1, values);
        __syncthreads();
        weights_of<TILE, WIDE>(a, at.row, at.head, at.first, first, queries, keys, diffs, values, p, diff_s);
        keep<TILE>(diff_s, diff_scores);
        __syncthreads();
        if (a.diff_q) ki_tile_add<TILE, COLUMNS>(diff_scores, false, keys, of_q);
        if (a.tables)
            add_table<TILE>(a, diff_scores, at.first, first, a.tables + (int64_t)blockIdx.x * side * side);
    }
    if (!a.diff_q) return;
    ki_tile_store<T, TILE, COLUMNS>(of_q, factor, at.first, a.s, a.d,
                                    static_cast<T *>(a.diff_q) + at.row * a.s * a.q_pitch + at.head * a.d,
                                    a.q_pitch);
}

/* A block for each number of the table: the sum over rows and tiles of queries. */
__global__ void __launch_bounds__(SUM_THREADS) sum_tables(ki_cuda_attention_args a, int tiles) {
    KI_SHARED_ARRAY(float, room, 33);
    const int64_t heads = a.attr.heads, side = 2 * a.attr.window - 1, head = blockIdx.x % heads,
                  number = blockIdx.x / heads;
    float sum = 0;
    for (int64_t i = threadIdx.x; i < a.rows * tiles; i += SUM_THREADS) {
        const int64_t block = (i / tiles * heads + head) * tiles + i % tiles;
        sum += a.tables[block * side * side + number];
    }
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) a.diff_table[blockIdx.x] += sum;
}

template <typename T, int TILE, int COLUMNS>
cudaError_t launch_typed(cudaStream_t stream, const ki_cuda_attention_args *a) {
    const unsigned queries = ki_tile_blocks(a, a->s, TILE), keys = ki_tile_blocks(a, a->t, TILE);
    const size_t bytes = shared_bytes<TILE, COLUMNS>();
    const int64_t n = a->rows * a->attr.heads * a->s, side = 2 * a->attr.window - 1;
    if (queries == 0 || keys == 0 || n > INT32_MAX) return cudaErrorInvalidValue;
    KI_LAUNCH_TRY(dots<T>, (unsigned)((n + WARPS - 1) / WARPS), 32 * WARPS, 0, stream, *a);
    if (a->diff_k) KI_LAUNCH_TRY((diff_keys<T, TILE, COLUMNS>), keys, KI_TILE_THREADS, bytes, stream, *a);
    if (a->diff_q || a->tables)
        KI_LAUNCH_TRY((diff_queries<T, TILE, COLUMNS>), queries, KI_TILE_THREADS, bytes, stream, *a);
    if (a->tables)
        KI_LAUNCH_TRY(sum_tables, (unsigned)(side * side * a->attr.heads), SUM_THREADS, 0, stream, *a,
                      (a->s + TILE - 1) / TILE);
    return cudaSuccess;
}

template <int TILE, int COLUMNS>
cudaError_t launch(cudaStream_t stream, const ki_cuda_attention_args *a) {
    return a->is_bf16 ? launch_typed<ki_bf16, TILE, COLUMNS>(stream, a)
                      : launch_typed<float, TILE, COLUMNS>(stream, a);
}

template <int TILE, int COLUMNS>
int64_t tables(const ki_cuda_attention_args *a) {
    const int64_t side = 2 * a->attr.window - 1;
    return side * side * a->rows * a->attr.heads * ((a->s + TILE - 1) / TILE);
}

} // namespace

extern "C" cudaError_t ki_cuda_attention_backward(cudaStream_t stream, const ki_cuda_attention_args *args) {
    return KI_TILE_LAUNCH(launch, args, stream, args);
}

extern "C" int64_t ki_cuda_attention_tables(const ki_cuda_attention_args *args) {
    return args->attr.window > 0 ? KI_TILE_LAUNCH(tables, args, args) : 0;
}
