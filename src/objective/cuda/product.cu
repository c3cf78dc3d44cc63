/* Products of projections and their pooling over positions, and back: every number of p is read once going
 * up, and read and written once coming down, in 16-byte accesses that neighbouring threads take side by
 * side. The running products live in registers: the number of factors is a template argument. */
#include "objective/cuda/product.h"

#include "backend/cuda/number.cuh"

enum { THREADS = 128, RUN = 16 };

/* Everything a thread of the two kernels needs, by value. */
template <int N>
struct chain_args {
    int64_t pitch, width, begin, dim, g_pitch;
    int hw;
    float scale, inverse;
    bool g_is_float;
    void *g[N + 1];
};

template <typename T>
static __device__ __forceinline__ void put(T *to, const float *v) {
    ki_pack<T> pack;
    ki_repack(v, &pack);
    ki_pack_store(to, pack);
}

/* V values as float or as T, V = ki_pack<T>::N. */
template <typename T>
static __device__ __forceinline__ void put_either(void *to, int64_t at, bool is_float, const float *v) {
    if (!is_float) {
        put((T *)to + at, v);
        return;
    }
    for (int k = 0; k < ki_pack<T>::N; k += 4) put((float *)to + at + k, v + k);
}

/* Block: V columns for each thread, of item blockIdx.y. ALL: orders 2 … N, else N alone. */
template <typename T, int N, bool ALL>
static __global__ void pool(const T *p, chain_args<N> o) {
    const int V = ki_pack<T>::N;
    const int64_t column = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * V, item = blockIdx.y;
    if (column >= o.width) return;
    float sum[ALL ? N - 1 : 1][V];
#pragma unroll
    for (int k = 0; k < (ALL ? N - 1 : 1); k++) {
#pragma unroll
        for (int v = 0; v < V; v++) sum[k][v] = 0;
    }
    const T *from = p + item * o.hw * o.pitch + column;
#pragma unroll 2
    for (int at = 0; at < o.hw; at++, from += o.pitch) {
        ki_pack<T> factor[N];
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
        put_either<T>(o.g[ALL ? k + 2 : N], item * o.g_pitch + o.begin + column, o.g_is_float, sum[k]);
    }
}

/* The same threads, for RUN positions of an item from RUN * blockIdx.z on; every factor becomes its own
 * derivative. slope is dL/dphi_k, from the last order down. */
template <typename T, int N, bool ALL>
static __global__ void back(T *p, chain_args<N> o) {
    const int V = ki_pack<T>::N;
    const int64_t column = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * V, item = blockIdx.y;
    if (column >= o.width) return;
    float by_g[ALL ? N - 1 : 1][V];
#pragma unroll
    for (int k = 0; k < (ALL ? N - 1 : 1); k++) {
        const float *g = (const float *)o.g[ALL ? k + 2 : N] + item * o.g_pitch + o.begin + column;
#pragma unroll
        for (int v = 0; v < V; v++) by_g[k][v] = o.begin + column + v < o.dim ? o.inverse * g[v] : 0;
    }
    const int first = (int)blockIdx.z * RUN, end = first + RUN < o.hw ? first + RUN : o.hw;
    T *at_p = p + (item * o.hw + first) * o.pitch + column;
    for (int at = first; at < end; at++, at_p += o.pitch) {
        ki_pack<T> factor[N];
#pragma unroll
        for (int t = 0; t < N; t++) factor[t] = ki_pack_load(at_p + t * o.width);
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
        for (int t = 0; t < N; t++) put(at_p + t * o.width, out[t]);
    }
}

template <typename T, int N, bool ALL>
static cudaError_t launch(const ki_cuda_chain *o, bool is_back, cudaStream_t stream) {
    const int64_t n_packs = o->width / ki_pack<T>::N;
    const dim3 grid((unsigned)((n_packs + THREADS - 1) / THREADS), (unsigned)o->m);
    chain_args<N> args = {};
    args.pitch = o->pitch, args.width = o->width, args.begin = o->begin, args.dim = o->dim;
    args.g_pitch = o->g_pitch, args.hw = (int)o->hw, args.scale = o->scale;
    args.inverse = 1 / (float)o->hw, args.g_is_float = !o->g_is_bf16;
    for (int k = 2; k <= N; k++) args.g[k] = o->g[k];
    T *p = (T *)o->p + o->first * o->width;
    const dim3 back_grid(grid.x, grid.y, (unsigned)((o->hw + RUN - 1) / RUN));
    if (is_back) return KI_LAUNCH((back<T, N, ALL>), back_grid, THREADS, 0, stream, p, args);
    return KI_LAUNCH((pool<T, N, ALL>), grid, THREADS, 0, stream, p, args);
}

template <typename T>
static cudaError_t choose(const ki_cuda_chain *o, bool is_back, cudaStream_t stream) {
    if (o->least < o->n) {
        switch (o->n) {
        case 3: return launch<T, 3, true>(o, is_back, stream);
        case 4: return launch<T, 4, true>(o, is_back, stream);
        case 5: return launch<T, 5, true>(o, is_back, stream);
        case 6: return launch<T, 6, true>(o, is_back, stream);
        case 7: return launch<T, 7, true>(o, is_back, stream);
        case 8: return launch<T, 8, true>(o, is_back, stream);
        default: return cudaErrorInvalidValue;
        }
    }
    switch (o->n) {
    case 2: return launch<T, 2, false>(o, is_back, stream);
    case 3: return launch<T, 3, false>(o, is_back, stream);
    case 4: return launch<T, 4, false>(o, is_back, stream);
    case 5: return launch<T, 5, false>(o, is_back, stream);
    case 6: return launch<T, 6, false>(o, is_back, stream);
    case 7: return launch<T, 7, false>(o, is_back, stream);
    case 8: return launch<T, 8, false>(o, is_back, stream);
    default: return cudaErrorInvalidValue;
    }
}

static cudaError_t run(const ki_cuda_chain *o, bool is_back, cudaStream_t stream) {
    return o->is_bf16 ? choose<ki_bf16>(o, is_back, stream) : choose<float>(o, is_back, stream);
}

extern "C" cudaError_t ki_cuda_product_pool(const ki_cuda_chain *chain, cudaStream_t stream) {
    return run(chain, false, stream);
}

extern "C" cudaError_t ki_cuda_product_back(const ki_cuda_chain *chain, cudaStream_t stream) {
    return run(chain, true, stream);
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
