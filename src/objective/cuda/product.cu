/* Products of projections and their pooling over positions, and back: every number of p is read once going
 * up, and read once, with its derivative written, coming down, in 16-byte accesses that neighbouring threads take
 * side by side. The running products and sums are float32 in registers: the number of factors is a template argument. */
#include "objective/cuda/product.h"

#include "backend/cuda/number.cuh"

enum { THREADS = 128, RUN = 16, V = ki_pack<float>::N /* columns of a thread */ };

/* Everything a thread of the two kernels needs, by value. */
template <int N>
struct chain_args {
    int64_t pitch, width, begin, dim, g_pitch;
    int hw;
    float scale, inverse;
    float *g[N + 1];
};

template <typename T>
static __device__ __forceinline__ void put(T *to, const float *v) {
    ki_pack<T> pack;
    ki_repack(v, &pack);
    ki_pack_store(to, pack);
}

/* V values. */
static __device__ __forceinline__ void put_columns(float *to, const float *v) { put(to, v); }
static __device__ __forceinline__ void put_columns(ki_bf16 *to, const float *v) {
    struct alignas(8) columns {
        ki_bf16 value[V];
    } all;
#pragma unroll
    for (int k = 0; k < V; k++) all.value[k] = from_float<ki_bf16>(v[k]);
    *reinterpret_cast<columns *>(to) = all;
}

/* Block: V columns for each thread, of item blockIdx.y. ALL: orders 2 … N, else N alone. */
template <int N, bool ALL>
static __global__ void pool(const float *p, chain_args<N> o) {
    const int64_t column = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * V, item = blockIdx.y;
    if (column >= o.width) return;
    float sum[ALL ? N - 1 : 1][V];
#pragma unroll
    for (int k = 0; k < (ALL ? N - 1 : 1); k++) {
#pragma unroll
        for (int v = 0; v < V; v++) sum[k][v] = 0;
    }
    const float *from = p + item * o.hw * o.pitch + column;
#pragma unroll 2
    for (int at = 0; at < o.hw; at++, from += o.pitch) {
        ki_pack<float> factor[N];
#pragma unroll
        for (int t = 0; t < N; t++) factor[t] = ki_pack_load(from + t * o.width);
#pragma unroll
        for (int v = 0; v < V; v++) {
            float phi = o.scale * ki_get(factor[0], v);
#pragma unroll
            for (int t = 1; t < N; t++) {
                phi *= ki_get(factor[t], v);
                if (ALL) sum[ALL ? t - 1 : 0][v] += phi;
            }
            if (!ALL) sum[0][v] += phi;
        }
    }
#pragma unroll
    for (int k = 0; k < (ALL ? N - 1 : 1); k++) {
#pragma unroll
        for (int v = 0; v < V; v++) sum[k][v] *= o.inverse;
        put(o.g[ALL ? k + 2 : N] + item * o.g_pitch + o.begin + column, sum[k]);
    }
}

/* The same threads, for RUN positions of an item from RUN * blockIdx.z on: the derivative of every factor, which may take
 * its place. slope is dL/dphi_k, from the last order down. */
template <typename T, int N, bool ALL>
static __global__ void back(const float *p, T *diff_p, chain_args<N> o) {
    const int64_t column = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * V, item = blockIdx.y;
    if (column >= o.width) return;
    float by_g[ALL ? N - 1 : 1][V];
#pragma unroll
    for (int k = 0; k < (ALL ? N - 1 : 1); k++) {
        const float *g = o.g[ALL ? k + 2 : N] + item * o.g_pitch + o.begin + column;
#pragma unroll
        for (int v = 0; v < V; v++) by_g[k][v] = o.begin + column + v < o.dim ? o.inverse * g[v] : 0;
    }
    const int first = (int)blockIdx.z * RUN, end = first + RUN < o.hw ? first + RUN : o.hw;
    const int64_t begin = (item * o.hw + first) * o.pitch + column;
    const float *from = p + begin;
    T *to = diff_p + begin;
    for (int at = first; at < end; at++, from += o.pitch, to += o.pitch) {
        ki_pack<float> factor[N];
#pragma unroll
        for (int t = 0; t < N; t++) factor[t] = ki_pack_load(from + t * o.width);
        float out[N][V];
#pragma unroll
        for (int v = 0; v < V; v++) {
            float f[N], phi[N]; /* phi[t]: factors before t */
            phi[0] = o.scale;
#pragma unroll
            for (int t = 0; t < N; t++) {
                f[t] = ki_get(factor[t], v);
                if (t > 0) phi[t] = phi[t - 1] * f[t - 1];
            }
            float slope = by_g[ALL ? N - 2 : 0][v];
#pragma unroll
            for (int t = N - 1; t >= 0; t--) {
                out[t][v] = slope * phi[t];
                slope *= f[t];
                if (ALL && t >= 2) slope += by_g[ALL && t >= 2 ? t - 2 : 0][v];
            }
        }
#pragma unroll
        for (int t = 0; t < N; t++) put_columns(to + t * o.width, out[t]);
    }
}

template <int N, bool ALL>
static cudaError_t launch(const ki_cuda_chain *o, bool is_back, cudaStream_t stream) {
    const int64_t n_packs = o->width / V;
    const dim3 grid((unsigned)((n_packs + THREADS - 1) / THREADS), (unsigned)o->m);
    chain_args<N> args = {};
    args.pitch = o->pitch, args.width = o->width, args.begin = o->begin, args.dim = o->dim;
    args.g_pitch = o->g_pitch, args.hw = (int)o->hw, args.scale = o->scale;
    args.inverse = 1 / (float)o->hw;
    for (int k = 2; k <= N; k++) args.g[k] = o->g[k];
    const int64_t first = o->first * o->width;
    const float *p = o->p + first;
    const dim3 back_grid(grid.x, grid.y, (unsigned)((o->hw + RUN - 1) / RUN));
    if (!is_back) return KI_LAUNCH((pool<N, ALL>), grid, THREADS, 0, stream, p, args);
    if (o->diff_is_bf16)
        return KI_LAUNCH((back<ki_bf16, N, ALL>), back_grid, THREADS, 0, stream, p,
                         (ki_bf16 *)o->diff_p + first, args);
    return KI_LAUNCH((back<float, N, ALL>), back_grid, THREADS, 0, stream, p, (float *)o->diff_p + first,
                     args);
}

static cudaError_t choose(const ki_cuda_chain *o, bool is_back, cudaStream_t stream) {
    if (o->least < o->n) {
        switch (o->n) {
        case 3: return launch<3, true>(o, is_back, stream);
        case 4: return launch<4, true>(o, is_back, stream);
        case 5: return launch<5, true>(o, is_back, stream);
        case 6: return launch<6, true>(o, is_back, stream);
        case 7: return launch<7, true>(o, is_back, stream);
        case 8: return launch<8, true>(o, is_back, stream);
        default: return cudaErrorInvalidValue;
        }
    }
    switch (o->n) {
    case 2: return launch<2, false>(o, is_back, stream);
    case 3: return launch<3, false>(o, is_back, stream);
    case 4: return launch<4, false>(o, is_back, stream);
    case 5: return launch<5, false>(o, is_back, stream);
    case 6: return launch<6, false>(o, is_back, stream);
    case 7: return launch<7, false>(o, is_back, stream);
    case 8: return launch<8, false>(o, is_back, stream);
    default: return cudaErrorInvalidValue;
    }
}

extern "C" cudaError_t ki_cuda_product_pool(const ki_cuda_chain *chain, cudaStream_t stream) {
    return choose(chain, false, stream);
}

extern "C" cudaError_t ki_cuda_product_back(const ki_cuda_chain *chain, cudaStream_t stream) {
    return choose(chain, true, stream);
}

/* Eight columns for each thread, of matrix blockIdx.y. */
template <typename T>
static __global__ void pack_columns(ki_cuda_pack o, bool is_aligned, T *dst) {
    const int t = (int)blockIdx.y;
    const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, n_packs = o.padded / 8;
    if (at >= o.rows * n_packs) return;
    const int64_t row = at / n_packs, column = at % n_packs * 8;
    const float *from = o.src[t] + row * o.dim + column;
    float v[8];
    if (is_aligned && column + 8 <= o.dim) {
        ki_unpack(ki_pack_load(from), v);
        ki_unpack(ki_pack_load(from + 4), v + 4);
    } else {
        for (int k = 0; k < 8; k++) v[k] = column + k < o.dim ? from[k] : 0;
    }
    const int64_t begin = column / o.block * o.block;
    const int64_t width = o.padded - begin < o.block ? o.padded - begin : o.block;
    T *to = dst + row * o.n * o.padded + o.n * begin + t * width + (column - begin);
    for (int k = 0; k < 8; k += ki_pack<T>::N) put(to + k, v + k);
}

extern "C" cudaError_t ki_cuda_product_pack(const ki_cuda_pack *pack, bool is_bf16, void *dst,
                                            cudaStream_t stream) {
    const int64_t n_packs = pack->rows * (pack->padded / 8);
    const dim3 grid((unsigned)((n_packs + THREADS - 1) / THREADS), (unsigned)pack->n);
    bool is_aligned = pack->dim % 4 == 0;
    for (int t = 0; t < pack->n; t++) is_aligned &= (uintptr_t)pack->src[t] % 16 == 0;
    if (is_bf16)
        return KI_LAUNCH(pack_columns<ki_bf16>, grid, THREADS, 0, stream, *pack, is_aligned, (ki_bf16 *)dst);
    return KI_LAUNCH(pack_columns<float>, grid, THREADS, 0, stream, *pack, is_aligned, (float *)dst);
}

template <typename T>
static __global__ void store(const float *src, int64_t n, int64_t cols, int64_t src_pitch, bool add, T *dst,
                             int64_t dst_pitch) {
    const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n) return;
    const int64_t row = at / cols, column = at % cols;
    T *to = dst + row * dst_pitch + column;
    *to = from_float<T>(src[row * src_pitch + column] + (add ? to_float(*to) : 0));
}

extern "C" cudaError_t ki_cuda_product_store(const float *src, int64_t rows, int64_t cols, int64_t src_pitch,
                                             bool add, bool is_bf16, void *dst, int64_t dst_pitch,
                                             cudaStream_t stream) {
    const int64_t n = rows * cols;
    const unsigned blocks = (unsigned)((n + 255) / 256);
    if (is_bf16)
        return KI_LAUNCH(store<ki_bf16>, blocks, 256, 0, stream, src, n, cols, src_pitch, add, (ki_bf16 *)dst,
                         dst_pitch);
    return KI_LAUNCH(store<float>, blocks, 256, 0, stream, src, n, cols, src_pitch, add, (float *)dst,
                     dst_pitch);
}
