/* pool over square windows (rules: device/op.h).
 *
 * Forward: a thread computes a column of outputs of one pack of channels, so that it reads a row of the source that two
 * windows share only once; neighbouring threads share columns through the cache. For a maximum, its place in the window
 * is stored, one byte per value. Backward gathers: a thread computes a few pixels of diff_src from the windows that
 * cover them, and no two threads write the same value. The fewest bytes: src and dst once in each direction, and a byte
 * per value of dst for the places. */
#include "backend/cuda/divide.cuh"
#include "backend/cuda/number.cuh"
#include "backend/cuda/pool/kernels.h"

namespace {

const int THREADS = 256;

struct pool_args {
    const void *src, *diff_dst;
    void *dst, *diff_src;
    uint8_t *place;   /* NULL: not kept */
    const float *pad; /* NULL: zeros */
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

/* What an average gets from the padding: the cells of its window outside the source. */
__device__ __forceinline__ float cells_in_padding(const pool_args &a, int h0, int w0, int k) {
    return (float)(cells(h0, k, a.p, a.ih, true) * cells(w0, k, a.p, a.iw, true) -
                   cells(h0, k, a.p, a.ih, false) * cells(w0, k, a.p, a.iw, false));
}
template <int V>
__device__ __forceinline__ void add_padding(const pool_args &a, int h0, int w0, int k, int pack,
                                            float *value) {
    if (!a.pad) return;
    const float n = cells_in_padding(a, h0, w0, k);
    if (n == 0) return;
#pragma unroll
    for (int i = 0; i < V; i++) value[i] = fmaf(n, a.pad[pack * V + i], value[i]);
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

/* The position of item i: image, pack, and column and strip of the map that is written. */
struct pool_here {
    int image, pack, column, strip;
};
__device__ __forceinline__ pool_here here_of(const pool_args &a, uint32_t item) {
    pool_here h;
    const uint32_t rest = ki_divide(item, a.packs), up = ki_divide(rest, a.columns),
                   image = ki_divide(up, a.strips);
    h.pack = (int)(item - rest * a.packs.by);
    h.column = (int)(rest - up * a.columns.by);
    h.strip = (int)(up - image * a.strips.by);
    h.image = (int)image;
    return h;
}

/* Window K with stride S, ROWS outputs in a column per thread: first the best, or sum, of each row of the source, then
 * of the rows of each window. Loads are unconditional, at clamped places, so that they are all in flight together. */
template <typename T, int V, int K, int S, int ROWS, bool AVERAGE>
__global__ void __launch_bounds__(THREADS) pool_forward(pool_args a) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= a.n_items) return;
    const pool_here here = here_of(a, item);
    const T *src =
        static_cast<const T *>(a.src) + (int64_t)here.image * a.ih * a.iw * a.src_pitch + here.pack * V;
    const int ow = here.column, oh0 = here.strip * ROWS, w0 = ow * S - a.p, h0 = oh0 * S - a.p;
    float value[ROWS][V];
    int place[ROWS][V];
#pragma unroll
    for (int y = 0; y < (ROWS - 1) * S + K; y++) {
        const int h = h0 + y, h_there = h < 0 ? 0 : h < a.ih ? h : a.ih - 1;
        const bool is_row = h == h_there;
        const T *row = src + (int64_t)h_there * a.iw * a.src_pitch;
        ki_raw<T, V> raw[K];
#pragma unroll
        for (int x = 0; x < K; x++) {
            const int w = w0 + x, w_there = w < 0 ? 0 : w < a.iw ? w : a.iw - 1;
            raw[x].load(row + (int64_t)w_there * a.src_pitch);
        }
        float best[V];
        int at[V];
#pragma unroll
        for (int x = 0; x < K; x++) {
            const int w = w0 + x;
            const bool is_in = is_row && w >= 0 && w < a.iw;
            const ki_floats<T, V> v = raw[x].get();
#pragma unroll
            for (int i = 0; i < V; i++) {
                const float one = is_in ? v.v[i] : AVERAGE ? 0 : -INFINITY;
                if (x == 0) {
                    best[i] = one, at[i] = 0;
                } else if (AVERAGE) {
                    best[i] += one;
                } else if (one > best[i]) {
                    best[i] = one, at[i] = x;
                }
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int dy = y - r * S;
            if (dy < 0 || dy >= K) continue;
#pragma unroll
            for (int i = 0; i < V; i++) {
                if (dy == 0) {
                    value[r][i] = best[i], place[r][i] = at[i];
                } else if (AVERAGE) {
                    value[r][i] += best[i];
                } else if (best[i] > value[r][i]) {
                    value[r][i] = best[i], place[r][i] = dy * K + at[i];
                }
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int oh = oh0 + r;
        if (oh >= a.oh) continue;
        const int64_t pixel = ((int64_t)here.image * a.oh + oh) * a.ow + ow;
        ki_floats<T, V> out;
        if (AVERAGE) add_padding<V>(a, oh * S - a.p, w0, K, here.pack, value[r]);
        const float by = AVERAGE ? 1.0f / (float)(cells(oh * S - a.p, K, a.p, a.ih, a.count_pad) *
                                                  cells(w0, K, a.p, a.iw, a.count_pad))
                                 : 1.0f;
#pragma unroll
        for (int i = 0; i < V; i++) out.v[i] = AVERAGE ? value[r][i] * by : value[r][i];
        out.store(static_cast<T *>(a.dst) + pixel * a.dst_pitch + here.pack * V);
        if (!AVERAGE && a.place) store_places<V>(a.place + (pixel * a.packs.by + here.pack) * V, place[r]);
    }
}

/* Any window and stride, one output per thread. */
template <typename T, int V, bool AVERAGE>
__global__ void __launch_bounds__(THREADS) pool_forward_any(pool_args a) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= a.n_items) return;
    const pool_here here = here_of(a, item);
    const T *src =
        static_cast<const T *>(a.src) + (int64_t)here.image * a.ih * a.iw * a.src_pitch + here.pack * V;
    const int h0 = here.strip * a.s - a.p, w0 = here.column * a.s - a.p;
    float value[V];
    int place[V];
#pragma unroll
    for (int i = 0; i < V; i++) value[i] = AVERAGE ? 0 : -INFINITY, place[i] = 255;
    for (int y = h0 < 0 ? -h0 : 0; y < a.k && h0 + y < a.ih; y++) {
        for (int x = w0 < 0 ? -w0 : 0; x < a.k && w0 + x < a.iw; x++) {
            ki_floats<T, V> v;
            v.load(src + ((int64_t)(h0 + y) * a.iw + w0 + x) * a.src_pitch);
#pragma unroll
            for (int i = 0; i < V; i++) {
                if (AVERAGE)
                    value[i] += v.v[i];
                else if (v.v[i] > value[i] || place[i] == 255)
                    value[i] = v.v[i], place[i] = y * a.k + x;
            }
        }
    }
    const int64_t pixel = ((int64_t)here.image * a.oh + here.strip) * a.ow + here.column;
    if (AVERAGE) add_padding<V>(a, h0, w0, a.k, here.pack, value);
    const float by =
        AVERAGE
            ? 1.0f / (float)(cells(h0, a.k, a.p, a.ih, a.count_pad) * cells(w0, a.k, a.p, a.iw, a.count_pad))
            : 1.0f;
    ki_floats<T, V> out;
#pragma unroll
    for (int i = 0; i < V; i++) out.v[i] = AVERAGE ? value[i] * by : value[i];
    out.store(static_cast<T *>(a.dst) + pixel * a.dst_pitch + here.pack * V);
    if (!AVERAGE && a.place) store_places<V>(a.place + (pixel * a.packs.by + here.pack) * V, place);
}

/* A square of B x B pixels of diff_src per thread, from the windows that cover it. The square begins where a window may
 * begin, so the compiler knows which cell of which window each pixel is; B is a multiple of S. */
template <typename T, int V, int K, int S, int B, bool AVERAGE>
__global__ void __launch_bounds__(THREADS) pool_backward(pool_args a) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= a.n_items) return;
    const pool_here here = here_of(a, item);
    const T *diff =
        static_cast<const T *>(a.diff_dst) + (int64_t)here.image * a.oh * a.ow * a.dst_pitch + here.pack * V;
    const uint8_t *places = a.place + ((int64_t)here.image * a.oh * a.ow * a.packs.by + here.pack) * V;
    const int h0 = here.strip * B - a.p % S, w0 = here.column * B - a.p % S;
    const int oh0 = (h0 + a.p) / S, ow0 = (w0 + a.p) / S; /* the windows that begin at the square's corner */
    const int FIRST = -((K - 1) / S), LAST = (B - 1) / S;
    float sum[B][B][V] = {};
#pragma unroll
    for (int y = FIRST; y <= LAST; y++) {
        const int oh = oh0 + y, oh_there = oh < 0 ? 0 : oh < a.oh ? oh : a.oh - 1;
        ki_raw<T, V> raw[LAST - FIRST + 1];
        int place[LAST - FIRST + 1][V];
#pragma unroll
        for (int x = FIRST; x <= LAST; x++) {
            const int ow = ow0 + x, ow_there = ow < 0 ? 0 : ow < a.ow ? ow : a.ow - 1;
            const int64_t pixel = (int64_t)oh_there * a.ow + ow_there;
            raw[x - FIRST].load(diff + pixel * a.dst_pitch);
            if (!AVERAGE) load_places<V>(places + pixel * (int64_t)(a.packs.by * V), place[x - FIRST]);
        }
#pragma unroll
        for (int x = FIRST; x <= LAST; x++) {
            const int ow = ow0 + x;
            if (oh != oh_there || ow < 0 || ow >= a.ow) continue;
            ki_floats<T, V> d = raw[x - FIRST].get();
            if (AVERAGE) {
                const float by = 1.0f / (float)(cells(oh * S - a.p, K, a.p, a.ih, a.count_pad) *
                                                cells(ow * S - a.p, K, a.p, a.iw, a.count_pad));
#pragma unroll
                for (int i = 0; i < V; i++) d.v[i] *= by;
            }
#pragma unroll
            for (int r = 0; r < B; r++) {
#pragma unroll
                for (int c = 0; c < B; c++) {
                    const int dy = r - y * S, dx = c - x * S;
                    if (dy < 0 || dy >= K || dx < 0 || dx >= K) continue;
#pragma unroll
                    for (int i = 0; i < V; i++)
                        sum[r][c][i] += AVERAGE || place[x - FIRST][i] == dy * K + dx ? d.v[i] : 0;
                }
            }
        }
    }
#pragma unroll
    for (int r = 0; r < B; r++) {
#pragma unroll
        for (int c = 0; c < B; c++) {
            const int h = h0 + r, w = w0 + c;
            if (h < 0 || h >= a.ih || w < 0 || w >= a.iw) continue;
            ki_floats<T, V> out;
#pragma unroll
            for (int i = 0; i < V; i++) out.v[i] = sum[r][c][i];
            out.store(static_cast<T *>(a.diff_src) +
                      (((int64_t)here.image * a.ih + h) * a.iw + w) * a.src_pitch + here.pack * V);
        }
    }
}

/* Any window and stride, one pixel of diff_src per thread. */
template <typename T, int V, bool AVERAGE>
__global__ void __launch_bounds__(THREADS) pool_backward_any(pool_args a) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= a.n_items) return;
    const int k = a.k, s = a.s;
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
            ki_floats<T, V> d;
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
    ki_floats<T, V> out;
#pragma unroll
    for (int i = 0; i < V; i++) out.v[i] = sum[i];
    out.store(static_cast<T *>(a.diff_src) + (((int64_t)image * a.ih + h) * a.iw + w) * a.src_pitch +
              pack * V);
}

pool_args args_of(const ki_cuda_pool_args *p, int64_t packs, int64_t columns, int64_t strips) {
    pool_args a = {};
    a.src = p->src, a.dst = p->dst, a.diff_dst = p->diff_dst, a.diff_src = p->diff_src, a.place = p->place;
    a.pad = p->pad;
    a.src_pitch = p->src_pitch, a.dst_pitch = p->dst_pitch;
    a.ih = p->ih, a.iw = p->iw, a.oh = p->oh, a.ow = p->ow, a.k = p->k, a.s = p->s, a.p = p->p;
    a.count_pad = p->count_pad;
    a.packs = ki_divider_of(packs), a.columns = ki_divider_of(columns), a.strips = ki_divider_of(strips);
    a.n_items = (uint32_t)(p->mb * strips * columns * packs);
    return a;
}

/* Items are counted in 31 bits: packs of the larger side, or values where packs do not fit. */
bool is_too_large(const ki_cuda_pool_args *p) {
    const int64_t src = p->mb * p->ih * p->iw, dst = p->mb * p->oh * p->ow;
    const int64_t values = (src > dst ? src : dst) * p->c;
    return values / (p->c % 8 == 0 ? 4 : 1) > INT32_MAX;
}

unsigned grid_of(const pool_args &a) { return (unsigned)((a.n_items + THREADS - 1) / THREADS); }

template <typename T, int V, int K, int S, int ROWS>
cudaError_t forward(cudaStream_t stream, const ki_cuda_pool_args *p) {
    const pool_args a = args_of(p, p->c / V, p->ow, (p->oh + ROWS - 1) / ROWS);
    return p->average ? KI_LAUNCH(pool_forward<T, V, K, S, ROWS, true>, grid_of(a), THREADS, 0, stream, a)
                      : KI_LAUNCH(pool_forward<T, V, K, S, ROWS, false>, grid_of(a), THREADS, 0, stream, a);
}

template <typename T, int V, int K, int S, int B>
cudaError_t backward(cudaStream_t stream, const ki_cuda_pool_args *p) {
    const int shift = p->p % S;
    const pool_args a = args_of(p, p->c / V, (p->iw + shift + B - 1) / B, (p->ih + shift + B - 1) / B);
    return p->average ? KI_LAUNCH(pool_backward<T, V, K, S, B, true>, grid_of(a), THREADS, 0, stream, a)
                      : KI_LAUNCH(pool_backward<T, V, K, S, B, false>, grid_of(a), THREADS, 0, stream, a);
}

template <typename T, int V>
cudaError_t forward_k(cudaStream_t stream, const ki_cuda_pool_args *p) {
    if (p->k == 3 && p->s == 1) return forward<T, V, 3, 1, 4>(stream, p);
    if (p->k == 3 && p->s == 2) return forward<T, V, 3, 2, 2>(stream, p);
    if (p->k == 2 && p->s == 2) return forward<T, V, 2, 2, 2>(stream, p);
    const pool_args a = args_of(p, p->c / V, p->ow, p->oh);
    return p->average ? KI_LAUNCH(pool_forward_any<T, V, true>, grid_of(a), THREADS, 0, stream, a)
                      : KI_LAUNCH(pool_forward_any<T, V, false>, grid_of(a), THREADS, 0, stream, a);
}

template <typename T, int V>
cudaError_t backward_k(cudaStream_t stream, const ki_cuda_pool_args *p) {
    if (p->k == 3 && p->s == 1) return backward<T, V, 3, 1, 2>(stream, p);
    if (p->k == 3 && p->s == 2) return backward<T, V, 3, 2, 2>(stream, p);
    if (p->k == 2 && p->s == 2) return backward<T, V, 2, 2, 2>(stream, p);
    const pool_args a = args_of(p, p->c / V, p->iw, p->ih);
    return p->average ? KI_LAUNCH(pool_backward_any<T, V, true>, grid_of(a), THREADS, 0, stream, a)
                      : KI_LAUNCH(pool_backward_any<T, V, false>, grid_of(a), THREADS, 0, stream, a);
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
    if (is_too_large(pool)) return cudaErrorInvalidValue;
    return pool->is_bf16 ? forward_of<ki_bf16>(stream, pool) : forward_of<float>(stream, pool);
}

extern "C" cudaError_t ki_cuda_pool_backward(cudaStream_t stream, const ki_cuda_pool_args *pool) {
    if (is_too_large(pool)) return cudaErrorInvalidValue;
    return pool->is_bf16 ? backward_of<ki_bf16>(stream, pool) : backward_of<float>(stream, pool);
}
