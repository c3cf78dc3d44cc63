/* global_pool: a block computes a tile of packs of one image from all its pixels; the result is float [mb, c]. For a
 * maximum its pixel is stored (the first of equals). Backward writes the map once; each thread writes several pixels
 * of a pack, so that it reads the gradient of the pack only once. */
#include "backend/cuda/divide.cuh"
#include "backend/cuda/number.cuh"
#include "backend/cuda/pool/kernels.h"

namespace {

const int THREADS = 256, STRIP = 8;

struct pool_args {
    const void *src;
    float *dst;
    const float *diff_dst;
    void *diff_src;
    int32_t *place; /* [mb, c] */
    int64_t pitch;
    int c, hw, width, rows;
    uint32_t n_items, strips;
    ki_divider packs, per_image;
};

template <typename T, int V, bool AVERAGE, bool MAX>
__global__ void __launch_bounds__(THREADS) global_forward(pool_args a) {
    KI_SHARED(float, room); /* [rows, width * V] sums, then maxima, then places */
    const int row = (int)threadIdx.x / a.width, in_tile = (int)threadIdx.x - row * a.width;
    const int first = ((int)blockIdx.y * a.width + in_tile) * V, image = (int)blockIdx.x;
    const bool is_on = row < a.rows && first < a.c;
    const int width = a.width * V, plane = a.rows * width, at = row * width + in_tile * V;
    float *maxima = room + plane;
    int *places = reinterpret_cast<int *>(room + 2 * plane);
    const T *src = static_cast<const T *>(a.src) + (int64_t)image * a.hw * a.pitch + first;
    float sum[V], most[V];
    int place[V];
#pragma unroll
    for (int i = 0; i < V; i++) sum[i] = 0, most[i] = -INFINITY, place[i] = INT32_MAX;
    if (is_on) {
#pragma unroll 4
        for (int p = row; p < a.hw; p += a.rows) {
            ki_floats<T, V> x;
            x.load(src + (int64_t)p * a.pitch);
#pragma unroll
            for (int i = 0; i < V; i++) {
                sum[i] += x.v[i];
                if (MAX && (x.v[i] > most[i] || place[i] == INT32_MAX)) most[i] = x.v[i], place[i] = p;
            }
        }
#pragma unroll
        for (int i = 0; i < V; i++) {
            room[at + i] = sum[i];
            if (MAX) maxima[at + i] = most[i], places[at + i] = place[i];
        }
    }
    for (int live = a.rows; live > 1;) {
        const int half = (live + 1) / 2;
        __syncthreads();
        if (is_on && row + half < live) {
#pragma unroll
            for (int i = 0; i < V; i++) {
                const int other = at + half * width + i;
                room[at + i] = sum[i] += room[other];
                if (!MAX) continue;
                const float value = maxima[other];
                const int where = places[other];
                if (where != INT32_MAX &&
                    (place[i] == INT32_MAX || value > most[i] || (value == most[i] && where < place[i])))
                    most[i] = value, place[i] = where;
                maxima[at + i] = most[i], places[at + i] = place[i];
            }
        }
        live = half;
    }
    if (!is_on || row != 0) return;
#pragma unroll
    for (int i = 0; i < V; i++) {
        const int64_t to = (int64_t)image * a.c + first + i;
        a.dst[to] = (AVERAGE ? sum[i] / (float)a.hw : 0) + (MAX ? most[i] : 0);
        if (MAX && a.place) a.place[to] = place[i];
    }
}

/* item = (image * strips + strip) * packs + pack */
template <typename T, int V, bool AVERAGE, bool MAX>
__global__ void __launch_bounds__(THREADS) global_backward(pool_args a) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= a.n_items) return;
    const uint32_t rest = ki_divide(item, a.packs), image = ki_divide(rest, a.per_image);
    const int first = (int)(item - rest * a.packs.by) * V, strip = (int)(rest - image * a.per_image.by);
    ki_floats<T, V> share;
    float diff[V];
    int place[V];
#pragma unroll
    for (int i = 0; i < V; i++) {
        diff[i] = a.diff_dst[(int64_t)image * a.c + first + i];
        share.v[i] = AVERAGE ? diff[i] / (float)a.hw : 0;
        if (MAX) place[i] = a.place[(int64_t)image * a.c + first + i];
    }
    T *to = static_cast<T *>(a.diff_src) + (int64_t)image * a.hw * a.pitch + first;
    for (int p = strip; p < a.hw; p += (int)a.strips) {
        ki_floats<T, V> out = share;
#pragma unroll
        for (int i = 0; i < V; i++) {
            if (MAX && place[i] == p) out.v[i] += diff[i];
        }
        out.store(to + (int64_t)p * a.pitch);
    }
}

template <typename T, int V>
cudaError_t launch(cudaStream_t stream, const ki_cuda_global_args *g, bool is_backward) {
    pool_args a = {};
    const int packs = (int)(g->c / V), tiles = (packs + 31) / 32;
    a.src = g->src, a.dst = g->dst, a.diff_dst = g->diff_dst, a.diff_src = g->diff_src, a.place = g->place;
    a.pitch = g->pitch, a.c = (int)g->c, a.hw = (int)g->hw;
    a.width = (packs + tiles - 1) / tiles;
    a.rows = THREADS / a.width;
    const bool average = g->has_average, max = g->has_max;
    if (is_backward) {
        a.strips = (uint32_t)((g->hw + STRIP - 1) / STRIP);
        if (g->mb * a.strips * packs > INT32_MAX) return cudaErrorInvalidValue;
        a.n_items = (uint32_t)(g->mb * a.strips * packs);
        a.packs = ki_divider_of(packs), a.per_image = ki_divider_of(a.strips);
        const unsigned grid = (a.n_items + THREADS - 1) / THREADS;
        if (average && max) return KI_LAUNCH(global_backward<T, V, true, true>, grid, THREADS, 0, stream, a);
        return max ? KI_LAUNCH(global_backward<T, V, false, true>, grid, THREADS, 0, stream, a)
                   : KI_LAUNCH(global_backward<T, V, true, false>, grid, THREADS, 0, stream, a);
    }
    const dim3 grid((unsigned)g->mb, (unsigned)tiles);
    const size_t room = (size_t)(a.rows * a.width * V) * sizeof(float) * (max ? 3 : 1);
    if (average && max) return KI_LAUNCH(global_forward<T, V, true, true>, grid, THREADS, room, stream, a);
    return max ? KI_LAUNCH(global_forward<T, V, false, true>, grid, THREADS, room, stream, a)
               : KI_LAUNCH(global_forward<T, V, true, false>, grid, THREADS, room, stream, a);
}

template <typename T>
cudaError_t pool_of(cudaStream_t stream, const ki_cuda_global_args *g, bool is_backward) {
    const void *map = is_backward ? g->diff_src : g->src;
    return ki_fits_packs<T>(map, g->pitch, g->c) ? launch<T, ki_pack<T>::N>(stream, g, is_backward)
                                                 : launch<T, 1>(stream, g, is_backward);
}

} // namespace

extern "C" cudaError_t ki_cuda_global_forward(cudaStream_t stream, const ki_cuda_global_args *global) {
    return global->is_bf16 ? pool_of<ki_bf16>(stream, global, false) : pool_of<float>(stream, global, false);
}

extern "C" cudaError_t ki_cuda_global_backward(cudaStream_t stream, const ki_cuda_global_args *global) {
    return global->is_bf16 ? pool_of<ki_bf16>(stream, global, true) : pool_of<float>(stream, global, true);
}
