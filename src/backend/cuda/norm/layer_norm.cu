/* layer_norm (formulas: backend/ref) of rows of any length; layer_norm_kept.cu has the kernels for those that fit in registers. Here a warp
 * has a row, which it reads from memory once and then from the cache. The gradients of gamma and beta are sums over stretches of rows, one
 * block for each and a tile of channels (channels.cuh), and then over the stretches. */
#include "backend/cuda/channels.cuh"
#include "backend/cuda/elementwise/kernels.h"
#include "backend/cuda/norm/kernels.h"
#include "backend/cuda/number.cuh"

namespace {

enum { THREADS = 256, ROWS = THREADS / 32 };

template <typename T, int V>
__global__ void __launch_bounds__(THREADS) layer_forward(ki_cuda_layer_norm_args a) {
    const int64_t row = (int64_t)blockIdx.x * ROWS + threadIdx.x / 32;
    const int lane = (int)(threadIdx.x % 32), c = (int)a.c;
    if (row >= a.n) return;
    const T *src = static_cast<const T *>(a.src) + row * a.src_pitch;
    T *dst = static_cast<T *>(a.dst) + row * a.dst_pitch;
    ki_floats<T, V> x;
    float sum = 0, squares = 0;
    for (int first = lane * V; first < c && !a.rms; first += 32 * V) {
        x.load(src + first);
#pragma unroll
        for (int i = 0; i < V; i++) sum += x.v[i];
    }
    const float mean = ki_warp_sum(sum) / (float)c;
    for (int first = lane * V; first < c; first += 32 * V) {
        x.load(src + first);
#pragma unroll
        for (int i = 0; i < V; i++) squares = fmaf(x.v[i] - mean, x.v[i] - mean, squares);
    }
    const float istd = 1 / sqrtf(ki_warp_sum(squares) / (float)c + a.eps);
    if (a.saved && lane == 0) a.saved[2 * row] = mean, a.saved[2 * row + 1] = istd;
    for (int first = lane * V; first < c; first += 32 * V) {
        x.load(src + first);
#pragma unroll
        for (int i = 0; i < V; i++) {
            x.v[i] = a.gamma[first + i] * ((x.v[i] - mean) * istd);
            if (!a.rms) x.v[i] += a.beta[first + i];
        }
        x.store(dst + first);
    }
}

template <typename T, int V>
__global__ void __launch_bounds__(THREADS) layer_backward(ki_cuda_layer_norm_args a) {
    const int64_t row = (int64_t)blockIdx.x * ROWS + threadIdx.x / 32;
    const int lane = (int)(threadIdx.x % 32), c = (int)a.c;
    if (row >= a.n) return;
    const float mean = a.saved[2 * row], istd = a.saved[2 * row + 1];
    const T *src = static_cast<const T *>(a.src) + row * a.src_pitch;
    const T *diff_dst = static_cast<const T *>(a.diff_dst) + row * a.dst_pitch;
    T *diff_src = static_cast<T *>(a.diff_src) + row * a.src_pitch;
    ki_floats<T, V> x, d;
    float sum = 0, along = 0;
    for (int first = lane * V; first < c; first += 32 * V) {
        x.load(src + first), d.load(diff_dst + first);
#pragma unroll
        for (int i = 0; i < V; i++) {
            const float g = a.gamma[first + i] * d.v[i];
            sum += g;
            along = fmaf(g, (x.v[i] - mean) * istd, along);
        }
    }
    sum = a.rms ? 0 : sum;
    const float shift = ki_warp_sum(sum) / (float)c, slope = ki_warp_sum(along) / (float)c;
    for (int first = lane * V; first < c; first += 32 * V) {
        x.load(src + first), d.load(diff_dst + first);
#pragma unroll
        for (int i = 0; i < V; i++)
            x.v[i] = istd * (a.gamma[first + i] * d.v[i] - shift - (x.v[i] - mean) * istd * slope);
        if (a.diff_added) {
            d.load(static_cast<const T *>(a.diff_added) + row * a.src_pitch + first);
#pragma unroll
            for (int i = 0; i < V; i++) x.v[i] += d.v[i];
        }
        x.store(diff_src + first);
    }
}

/* Block: a stretch of rows and a tile of packs. The sums are [2, stretches, c]: of diff_dst * xhat, and of diff_dst. */
template <typename T, int V>
__global__ void __launch_bounds__(KI_CHANNEL_THREADS)
    layer_sums(ki_cuda_layer_norm_args a, ki_channel_grid g) {
    KI_SHARED(float, room);
    const ki_channel_here h = ki_channel_at(g, blockIdx.x);
    const int first = h.pack * V;
    float sum[2][V];
#pragma unroll
    for (int i = 0; i < V; i++) sum[0][i] = sum[1][i] = 0;
    if (h.is_on) {
        for (int64_t row = h.begin + h.row; row < h.end; row += g.rows) {
            const float mean = a.saved[2 * row], istd = a.saved[2 * row + 1];
            ki_floats<T, V> x, d;
            x.load(static_cast<const T *>(a.src) + row * a.src_pitch + first);
            d.load(static_cast<const T *>(a.diff_dst) + row * a.dst_pitch + first);
#pragma unroll
            for (int i = 0; i < V; i++) {
                sum[0][i] = fmaf(d.v[i], (x.v[i] - mean) * istd, sum[0][i]);
                sum[1][i] += d.v[i];
            }
        }
    }
    ki_channel_sum_rows<2, V>(g, h, sum, room);
    if (!h.is_on || h.row != 0) return;
    float *dst = a.scratch + (int64_t)blockIdx.x * a.c + first;
#pragma unroll
    for (int i = 0; i < V; i++) {
        dst[i] = sum[0][i];
        dst[(int64_t)g.chunks * a.c + i] = sum[1][i];
    }
}

template <typename T, int V>
cudaError_t add_params(cudaStream_t stream, const ki_cuda_layer_norm_args *a) {
    ki_channel_grid g = ki_channel_grid_of(a->n, a->c / V, 1);
    g.chunk = ki_cuda_stretch_length(a->n);
    g.chunks = (int)ki_cuda_stretches(a->n, g.chunk);
    KI_LAUNCH_TRY(layer_sums<T, V>, dim3((unsigned)g.chunks, (unsigned)g.tiles), KI_CHANNEL_THREADS,
                  ki_channel_room(g, 2, V), stream, *a, g);
    return ki_cuda_add_stretches(stream, g.chunks, a->c, a->scratch, a->diff_gamma, a->diff_beta);
}

unsigned blocks_of(const ki_cuda_layer_norm_args *a) { return (unsigned)((a->n + ROWS - 1) / ROWS); }

template <typename T, int V>
cudaError_t backward(cudaStream_t stream, const ki_cuda_layer_norm_args *a) {
    if (a->diff_gamma || a->diff_beta) {
        const cudaError_t error = add_params<T, V>(stream, a);
        if (error != cudaSuccess) return error;
    }
    if (!a->diff_src) return cudaSuccess;
    return KI_LAUNCH(layer_backward<T, V>, blocks_of(a), THREADS, 0, stream, *a);
}

template <typename T>
cudaError_t forward_of(cudaStream_t stream, const ki_cuda_layer_norm_args *a) {
    const bool is_wide =
        ki_fits_packs<T>(a->src, a->src_pitch, a->c) && ki_fits_packs<T>(a->dst, a->dst_pitch, a->c);
    return is_wide ? KI_LAUNCH(layer_forward<T, ki_pack<T>::N>, blocks_of(a), THREADS, 0, stream, *a)
                   : KI_LAUNCH(layer_forward<T, 1>, blocks_of(a), THREADS, 0, stream, *a);
}

template <typename T>
cudaError_t backward_of(cudaStream_t stream, const ki_cuda_layer_norm_args *a) {
    const bool is_wide = ki_fits_packs<T>(a->src, a->src_pitch, a->c) &&
                         ki_fits_packs<T>(a->diff_src, a->src_pitch, a->c) &&
                         ki_fits_packs<T>(a->diff_added, a->src_pitch, a->c) &&
                         ki_fits_packs<T>(a->diff_dst, a->dst_pitch, a->c);
    return is_wide ? backward<T, ki_pack<T>::N>(stream, a) : backward<T, 1>(stream, a);
}

} // namespace

extern "C" size_t ki_cuda_layer_norm_scratch(int64_t n, int64_t c) {
    const size_t kept = ki_cuda_layer_norm_kept_scratch(n, c),
                 any = 2 * (size_t)(ki_cuda_stretches(n, ki_cuda_stretch_length(n)) * c);
    return kept > any ? kept : any;
}

extern "C" cudaError_t ki_cuda_layer_norm_forward(cudaStream_t stream, const ki_cuda_layer_norm_args *norm) {
    if (ki_cuda_layer_norm_is_kept(norm, false)) return ki_cuda_layer_norm_kept(stream, norm, false);
    return norm->is_bf16 ? forward_of<ki_bf16>(stream, norm) : forward_of<float>(stream, norm);
}

extern "C" cudaError_t ki_cuda_layer_norm_backward(cudaStream_t stream, const ki_cuda_layer_norm_args *norm) {
    if (ki_cuda_layer_norm_is_kept(norm, true)) return ki_cuda_layer_norm_kept(stream, norm, true);
    return norm->is_bf16 ? backward_of<ki_bf16>(stream, norm) : backward_of<float>(stream, norm);
}
