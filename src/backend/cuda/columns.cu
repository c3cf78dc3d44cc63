/* Sums over the pixels of each channel: the gradient of a bias, with the ReLU mask and the sum of several gradients
 * done in the same pass. */
#include "backend/cuda/channels.cuh"
#include "backend/cuda/kernels.h"

namespace {

const int EACH = 2;
const int THREADS = KI_CHANNEL_THREADS;

struct column_args {
    const void *part[KI_CUDA_MAX_PARTS];
    int64_t pitch;
    const void *mask;
    void *out;
    float *sums, *partial;
    unsigned *counters;
};

template <typename T, int V, int N, bool MASK>
__global__ void __launch_bounds__(THREADS, 2) column_sums(column_args a, ki_channel_grid g) {
    KI_SHARED(float, room);
    const ki_channel_here h = ki_channel_at(g, blockIdx.x);
    float sum[1][V] = {};
    if (h.is_on) {
        for (int64_t p = h.begin + h.row; p < h.end; p += (int64_t)g.rows * EACH) {
            ki_raw<T, V> x[EACH][N], m[EACH];
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                if (p + e * g.rows >= h.end) continue;
                const int64_t at = (p + e * g.rows) * a.pitch + h.pack * V;
#pragma unroll
                for (int k = 0; k < N; k++) x[e][k].load(static_cast<const T *>(a.part[k]) + at);
                if (MASK) m[e].load(static_cast<const T *>(a.mask) + at);
            }
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                if (p + e * g.rows >= h.end) continue;
                ki_vec<T, V> y = x[e][0].get();
#pragma unroll
                for (int k = 1; k < N; k++) {
                    const ki_vec<T, V> part = x[e][k].get();
#pragma unroll
                    for (int i = 0; i < V; i++) y.v[i] += part.v[i];
                }
                if (MASK) {
                    const ki_vec<T, V> mask = m[e].get();
#pragma unroll
                    for (int i = 0; i < V; i++) y.v[i] = mask.v[i] > 0 ? y.v[i] : 0;
                }
#pragma unroll
                for (int i = 0; i < V; i++) sum[0][i] += y.v[i];
                if (a.out) y.store(static_cast<T *>(a.out) + (p + e * g.rows) * a.pitch + h.pack * V);
            }
        }
    }
    ki_channel_sum_rows<1, V>(g, h, sum, room);
    const int c = g.packs * V;
    if (h.is_on && h.row == 0) {
#pragma unroll
        for (int i = 0; i < V; i++) a.partial[(int64_t)blockIdx.x * c + h.pack * V + i] = sum[0][i];
    }
    if (!ki_channel_is_last(a.counters + blockIdx.y, gridDim.x)) return;
    const ki_channel_finish f = ki_channel_finish_at(g, V);
    double total = 0;
    ki_channel_over_chunks<1, 8>(g, f, a.partial, c,
                                 [&](const float *value, int) { total += (double)value[0]; });
    total = ki_channel_sum_slices(g, f, V, total, reinterpret_cast<double *>(room));
    if (f.channel >= 0 && f.slice == 0) a.sums[f.channel] += (float)total;
}

template <typename T, int V, int N>
cudaError_t launch(cudaStream_t stream, const column_args &a, int64_t n, int64_t c, int n_processors) {
    const ki_channel_grid g = ki_channel_grid_of(n, c / V, 2 * n_processors);
    size_t room = ki_channel_room(g, 1, V);
    if (room < THREADS * sizeof(double)) room = THREADS * sizeof(double);
    const dim3 grid((unsigned)g.chunks, (unsigned)g.tiles);
    return a.mask ? KI_LAUNCH(column_sums<T, V, N, true>, grid, THREADS, room, stream, a, g)
                  : KI_LAUNCH(column_sums<T, V, N, false>, grid, THREADS, room, stream, a, g);
}

template <typename T, int V>
cudaError_t launch_n(cudaStream_t stream, const column_args &a, int n_parts, int64_t n, int64_t c,
                     int n_processors) {
    switch (n_parts) {
    case 1: return launch<T, V, 1>(stream, a, n, c, n_processors);
    case 2: return launch<T, V, 2>(stream, a, n, c, n_processors);
    case 3: return launch<T, V, 3>(stream, a, n, c, n_processors);
    case 4: return launch<T, V, 4>(stream, a, n, c, n_processors);
    default: return cudaErrorInvalidValue;
    }
}

template <typename T>
cudaError_t columns(cudaStream_t stream, const column_args &a, int n_parts, int64_t n, int64_t c,
                    int n_processors) {
    const int N = ki_pack<T>::N;
    bool is_wide = ki_fits_packs<T>(a.mask, a.pitch, c) && ki_fits_packs<T>(a.out, a.pitch, c);
    for (int k = 0; k < n_parts; k++) is_wide &= ki_fits_packs<T>(a.part[k], a.pitch, c);
    return is_wide ? launch_n<T, N>(stream, a, n_parts, n, c, n_processors)
                   : launch_n<T, 1>(stream, a, n_parts, n, c, n_processors);
}

} // namespace

extern "C" size_t ki_cuda_columns_scratch(int64_t n, int64_t c, int n_processors) {
    return ki_cuda_bn_scratch(n, c, n_processors) / 2;
}

extern "C" cudaError_t ki_cuda_columns(cudaStream_t stream, bool is_bf16, int n_processors, int64_t n,
                                       int64_t c, int64_t pitch, int n_parts, const void *const *part,
                                       const void *mask, void *out, float *sums, float *scratch,
                                       unsigned *counters) {
    column_args a = {};
    if (n_parts < 1 || n_parts > 4) return cudaErrorInvalidValue;
    for (int k = 0; k < n_parts; k++) a.part[k] = part[k];
    a.pitch = pitch, a.mask = mask, a.out = out, a.sums = sums, a.partial = scratch, a.counters = counters;
    return is_bf16 ? columns<ki_bf16>(stream, a, n_parts, n, c, n_processors)
                   : columns<float>(stream, a, n_parts, n, c, n_processors);
}
