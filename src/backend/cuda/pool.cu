/* pool over square windows (rules: core/op.h).
 *
 * Forward: a thread makes a column of outputs of one pack of channels, so that a row of the source that two windows
 * share is read once by it; threads beside it share the columns through the cache. A maximum leaves the place it
 * came from in its window, one byte per value. Backward gathers: a thread makes one pixel of diff_src from the windows
 * that cover it, no two threads write the same value. Fewest bytes: src and dst once each way, a byte per value
 * of dst for the places. */
#include "backend/cuda/divide.cuh"
#include "backend/cuda/kernels.h"
#include "backend/cuda/number.cuh"

namespace {

const int THREADS = 256;

struct pool_args {
    const void *src, *diff_dst;
    void *dst, *diff_src;
    uint8_t *place; /* NULL: not kept */
    int64_t src_pitch, dst_pitch;
    int ih, iw, oh, ow, k, s, p;
    bool count_pad;
    uint32_t n_items;
    ki_divider packs, columns,
        strips; /* item = ((image * strips + strip) * columns + column) * packs + pack */
};

/* Cells of a window that count, along one side. */
__device__ __forceinline__ int cells(int begin, int k, int p, int size, bool count_pad) {
    const int end = begin + k;
    if (count_pad) return (end < size + p ? end : size + p) - begin;
    return (end < size ? end : size) - (begin > 0 ? begin : 0);
}

template <int V>
__device__ __forceinline__ void store_places(uint8_t *to, const int *place) {
    if constexpr (V == 8) {
        uint2 words;
        words.x = (uint32_t)place[0] | (uint32_t)place[1] << 8 | (uint32_t)place[2] << 16 |
                  (uint32_t)place[3] << 24;
        words.y = (uint32_t)place[4] | (uint32_t)place[5] << 8 | (uint32_t)place[6] << 16 |
                  (uint32_t)place[7] << 24;
        *reinterpret_cast<uint2 *>(to) = words;
    } else if constexpr (V == 4) {
        *reinterpret_cast<uint32_t *>(to) = (uint32_t)place[0] | (uint32_t)place[1] << 8 |
                                            (uint32_t)place[2] << 16 | (uint32_t)place[3] << 24;
    } else {
        to[0] = (uint8_t)place[0];
    }
}

template <int V>
__device__ __forceinline__ void load_places(const uint8_t *from, int *place) {
    if constexpr (V == 8) {
        const uint2 words = *reinterpret_cast<const uint2 *>(from);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            place[i] = (int)(words.x >> 8 * i & 255);
            place[4 + i] = (int)(words.y >> 8 * i & 255);
        }
    } else if constexpr (V == 4) {
        const uint32_t word = *reinterpret_cast<const uint32_t *>(from);
#pragma unroll
        for (int i = 0; i < 4; i++) place[i] = (int)(word >> 8 * i & 255);
    } else {
        place[0] = from[0];
    }
}

/* K: the window, 0 for any; S: the stride when K is not 0; ROWS outputs in a column per thread. */
template <typename T, int V, int K, int S, int ROWS, bool AVERAGE>
__global__ void __launch_bounds__(THREADS) pool_forward(pool_args a) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= a.n_items) return;
    const int k = K ? K : a.k, s = K ? S : a.s;
    uint32_t rest = ki_divide(item, a.packs);
    const int pack = (int)(item - rest * a.packs.by);
    uint32_t up = ki_divide(rest, a.columns);
    const int ow = (int)(rest - up * a.columns.by);
    const uint32_t image = ki_divide(up, a.strips);
    const int oh0 = (int)(up - image * a.strips.by) * ROWS;
    const T *src = static_cast<const T *>(a.src) + (int64_t)image * a.ih * a.iw * a.src_pitch + pack * V;
    const int w0 = ow * s - a.p;

    float value[ROWS][V];
    int place[ROWS][V];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int i = 0; i < V; i++) value[r][i] = AVERAGE ? 0 : -INFINITY, place[r][i] = 255;
    }
    const int n_rows = (ROWS - 1) * s + k; /* source rows of the strip */
#pragma unroll
    for (int y = 0; y < n_rows; y++) {
        const int h = oh0 * s - a.p + y;
        if (h < 0 || h >= a.ih) continue;
        const T *row = src + (int64_t)h * a.iw * a.src_pitch;
#pragma unroll
        for (int x = 0; x < k; x++) {
            const int w = w0 + x;
            if (w < 0 || w >= a.iw) continue;
            ki_vec<T, V> v;
            v.load(row + (int64_t)w * a.src_pitch);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                const int dy = y - r * s;
                if (dy < 0 || dy >= k) continue;
#pragma unroll
                for (int i = 0; i < V; i++) {
                    if (AVERAGE) {
                        value[r][i] += v.v[i];
                    } else if (v.v[i] > value[r][i] || place[r][i] == 255) {
                        value[r][i] = v.v[i];
                        place[r][i] = dy * k + x;
                    }
                }
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int oh = oh0 + r;
        if (oh >= a.oh) continue;
        const int64_t pixel = ((int64_t)image * a.oh + oh) * a.ow + ow;
        ki_vec<T, V> out;
        const float by = AVERAGE ? 1.0f / (float)(cells(oh * s - a.p, k, a.p, a.ih, a.count_pad) *
                                                  cells(w0, k, a.p, a.iw, a.count_pad))
                                 : 1.0f;
#pragma unroll
        for (int i = 0; i < V; i++) out.v[i] = AVERAGE ? value[r][i] * by : value[r][i];
        out.store(static_cast<T *>(a.dst) + pixel * a.dst_pitch + pack * V);
        if (!AVERAGE && a.place) store_places<V>(a.place + (pixel * a.packs.by + pack) * V, place[r]);
    }
}

/* One pixel of diff_src; columns and strips count source pixels here. */
template <typename T, int V, int K, int S, bool AVERAGE>
__global__ void __launch_bounds__(THREADS) pool_backward(pool_args a) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= a.n_items) return;
    const int k = K ? K : a.k, s = K ? S : a.s;
    uint32_t rest = ki_divide(item, a.packs);
    const int pack = (int)(item - rest * a.packs.by);
    uint32_t up = ki_divide(rest, a.columns);
    const int w = (int)(rest - up * a.columns.by);
    const uint32_t image = ki_divide(up, a.strips);
    const int h = (int)(up - image * a.strips.by);
    const T *diff = static_cast<const T *>(a.diff_dst) + pack * V;
    float sum[V] = {};
    /* Windows that begin at or before the pixel and reach it: at most `most` a side. */
    const int most = (k + s - 1) / s, last_h = (h + a.p) / s, last_w = (w + a.p) / s;
#pragma unroll
    for (int y = most - 1; y >= 0; y--) {
        const int oh = last_h - y, dy = h + a.p - oh * s;
        if (oh < 0 || oh >= a.oh || dy >= k) continue;
#pragma unroll
        for (int x = most - 1; x >= 0; x--) {
            const int ow = last_w - x, dx = w + a.p - ow * s;
            if (ow < 0 || ow >= a.ow || dx >= k) continue;
            const int64_t pixel = ((int64_t)image * a.oh + oh) * a.ow + ow;
            ki_vec<T, V> d;
            d.load(diff + pixel * a.dst_pitch);
            if (AVERAGE) {
                const float by = 1.0f / (float)(cells(oh * s - a.p, k, a.p, a.ih, a.count_pad) *
                                                cells(ow * s - a.p, k, a.p, a.iw, a.count_pad));
#pragma unroll
                for (int i = 0; i < V; i++) sum[i] = fmaf(d.v[i], by, sum[i]);
            } else {
                int place[V];
                load_places<V>(a.place + (pixel * a.packs.by + pack) * V, place);
#pragma unroll
                for (int i = 0; i < V; i++) sum[i] += place[i] == dy * k + dx ? d.v[i] : 0;
            }
        }
    }
    ki_vec<T, V> out;
#pragma unroll
    for (int i = 0; i < V; i++) out.v[i] = sum[i];
    out.store(static_cast<T *>(a.diff_src) + (((int64_t)image * a.ih + h) * a.iw + w) * a.src_pitch +
              pack * V);
}

pool_args args_of(const ki_cuda_pool_args *p, int64_t packs, int64_t columns, int64_t strips) {
    pool_args a = {};
    a.src = p->src, a.dst = p->dst, a.diff_dst = p->diff_dst, a.diff_src = p->diff_src, a.place = p->place;
    a.src_pitch = p->src_pitch, a.dst_pitch = p->dst_pitch;
    a.ih = p->ih, a.iw = p->iw, a.oh = p->oh, a.ow = p->ow, a.k = p->k, a.s = p->s, a.p = p->p;
    a.count_pad = p->count_pad;
    a.packs = ki_divider_of(packs), a.columns = ki_divider_of(columns), a.strips = ki_divider_of(strips);
    a.n_items = (uint32_t)(p->mb * strips * columns * packs);
    return a;
}

unsigned grid_of(const pool_args &a) { return (unsigned)((a.n_items + THREADS - 1) / THREADS); }

template <typename T, int V, int K, int S, int ROWS>
cudaError_t forward(cudaStream_t stream, const ki_cuda_pool_args *p) {
    const int64_t strips = (p->oh + ROWS - 1) / ROWS;
    if (p->mb * strips * p->ow * (p->c / V) > INT32_MAX) return cudaErrorInvalidValue;
    const pool_args a = args_of(p, p->c / V, p->ow, strips);
    return p->average ? KI_LAUNCH(pool_forward<T, V, K, S, ROWS, true>, grid_of(a), THREADS, 0, stream, a)
                      : KI_LAUNCH(pool_forward<T, V, K, S, ROWS, false>, grid_of(a), THREADS, 0, stream, a);
}

template <typename T, int V, int K, int S>
cudaError_t backward(cudaStream_t stream, const ki_cuda_pool_args *p) {
    if (p->mb * p->ih * p->iw * (p->c / V) > INT32_MAX) return cudaErrorInvalidValue;
    const pool_args a = args_of(p, p->c / V, p->iw, p->ih);
    return p->average ? KI_LAUNCH(pool_backward<T, V, K, S, true>, grid_of(a), THREADS, 0, stream, a)
                      : KI_LAUNCH(pool_backward<T, V, K, S, false>, grid_of(a), THREADS, 0, stream, a);
}

template <typename T, int V>
cudaError_t forward_k(cudaStream_t stream, const ki_cuda_pool_args *p) {
    if (p->k == 3 && p->s == 1) return forward<T, V, 3, 1, 4>(stream, p);
    if (p->k == 3 && p->s == 2) return forward<T, V, 3, 2, 2>(stream, p);
    if (p->k == 2 && p->s == 2) return forward<T, V, 2, 2, 2>(stream, p);
    return forward<T, V, 0, 0, 1>(stream, p);
}

template <typename T, int V>
cudaError_t backward_k(cudaStream_t stream, const ki_cuda_pool_args *p) {
    if (p->k == 3 && p->s == 1) return backward<T, V, 3, 1>(stream, p);
    if (p->k == 3 && p->s == 2) return backward<T, V, 3, 2>(stream, p);
    if (p->k == 2 && p->s == 2) return backward<T, V, 2, 2>(stream, p);
    return backward<T, V, 0, 0>(stream, p);
}

template <typename T>
bool is_wide(const ki_cuda_pool_args *p) {
    return ki_fits_packs<T>(p->src, p->src_pitch, p->c) && ki_fits_packs<T>(p->dst, p->dst_pitch, p->c) &&
           ki_fits_packs<T>(p->diff_src, p->src_pitch, p->c) &&
           ki_fits_packs<T>(p->diff_dst, p->dst_pitch, p->c);
}

template <typename T>
cudaError_t forward_of(cudaStream_t stream, const ki_cuda_pool_args *p) {
    return is_wide<T>(p) ? forward_k<T, ki_pack<T>::N>(stream, p) : forward_k<T, 1>(stream, p);
}
template <typename T>
cudaError_t backward_of(cudaStream_t stream, const ki_cuda_pool_args *p) {
    return is_wide<T>(p) ? backward_k<T, ki_pack<T>::N>(stream, p) : backward_k<T, 1>(stream, p);
}

} // namespace

extern "C" cudaError_t ki_cuda_pool_forward(cudaStream_t stream, const ki_cuda_pool_args *pool) {
    return pool->is_bf16 ? forward_of<ki_bf16>(stream, pool) : forward_of<float>(stream, pool);
}

extern "C" cudaError_t ki_cuda_pool_backward(cudaStream_t stream, const ki_cuda_pool_args *pool) {
    return pool->is_bf16 ? backward_of<ki_bf16>(stream, pool) : backward_of<float>(stream, pool);
}
