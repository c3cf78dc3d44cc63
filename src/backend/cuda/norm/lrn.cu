/* lrn across channels (formulas: backend/ref/lrn.c). Nothing is kept from forward: backward reads src and diff_dst,
 * computes the bases again and writes diff_src. A thread has one pack of channels and reads the neighbouring packs
 * through the cache. This works for windows of 3 and 5 channels; other windows are computed channel by channel. */
#include "backend/cuda/divide.cuh"
#include "backend/cuda/norm/kernels.h"
#include "backend/cuda/number.cuh"

namespace {

const int THREADS = 256;

struct lrn_args {
    const void *src, *diff_dst;
    void *dst, *diff_src;
    int64_t src_pitch, dst_pitch;
    float k, slope, beta; /* slope = alpha / size */
    int c, half;
    uint32_t n_items;
    ki_divider packs;
};

/* base^-beta; *ret_steep = base^(-beta - 1). */
template <bool IS_THREE_QUARTERS>
__device__ __forceinline__ float power(float base, float beta, float *ret_steep) {
    if (IS_THREE_QUARTERS) { /* base^-3/4 = base^-1/2 base^-1/4, from two reciprocal roots */
        const float root = rsqrtf(base), factor = root * (root * rsqrtf(root));
        *ret_steep = factor * root * root;
        return factor;
    }
    const float factor = exp2f(-beta * log2f(base));
    *ret_steep = factor / base;
    return factor;
}

/* 3V values: the pack before, this one, the one after; zeros outside the channels. */
template <typename T, int V>
__device__ __forceinline__ void load3(const T *pixel, int first, int c, float *v) {
    ki_floats<T, V> x;
#pragma unroll
    for (int part = 0; part < 3; part++) {
        const int at = first + (part - 1) * V;
        if (at >= 0 && at < c) {
            x.load(pixel + at);
#pragma unroll
            for (int i = 0; i < V; i++) v[part * V + i] = x.v[i];
        } else {
#pragma unroll
            for (int i = 0; i < V; i++) v[part * V + i] = 0;
        }
    }
}

template <typename T, int V, int HALF, bool Q>
__global__ void __launch_bounds__(THREADS) lrn_forward(lrn_args a) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= a.n_items) return;
    const uint32_t pixel = ki_divide(item, a.packs);
    const int first = (int)(item - pixel * a.packs.by) * V;
    float x[3 * V];
    load3<T, V>(static_cast<const T *>(a.src) + (int64_t)pixel * a.src_pitch, first, a.c, x);
    ki_floats<T, V> y;
#pragma unroll
    for (int i = 0; i < V; i++) {
        float sum = 0;
#pragma unroll
        for (int j = -HALF; j <= HALF; j++) sum = fmaf(x[V + i + j], x[V + i + j], sum);
        float steep;
        y.v[i] = x[V + i] * power<Q>(fmaf(a.slope, sum, a.k), a.beta, &steep);
    }
    y.store(static_cast<T *>(a.dst) + (int64_t)pixel * a.dst_pitch + first);
}

template <typename T, int V, int HALF, bool Q>
__global__ void __launch_bounds__(THREADS) lrn_backward(lrn_args a) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= a.n_items) return;
    const uint32_t pixel = ki_divide(item, a.packs);
    const int first = (int)(item - pixel * a.packs.by) * V;
    float x[3 * V], d[3 * V], term[V + 2 * HALF], scale[V];
    load3<T, V>(static_cast<const T *>(a.src) + (int64_t)pixel * a.src_pitch, first, a.c, x);
    load3<T, V>(static_cast<const T *>(a.diff_dst) + (int64_t)pixel * a.dst_pitch, first, a.c, d);
#pragma unroll
    for (int i = -HALF; i < V + HALF; i++) {
        float sum = 0;
#pragma unroll
        for (int j = -HALF; j <= HALF; j++) sum = fmaf(x[V + i + j], x[V + i + j], sum);
        float steep;
        const float factor = power<Q>(fmaf(a.slope, sum, a.k), a.beta, &steep);
        /* Outside the channels d and x are zero. */
        term[i + HALF] = d[V + i] * x[V + i] * steep;
        if (i >= 0 && i < V) scale[i] = factor;
    }
    ki_floats<T, V> y;
#pragma unroll
    for (int i = 0; i < V; i++) {
        float sum = 0;
#pragma unroll
        for (int j = 0; j <= 2 * HALF; j++) sum += term[i + j];
        y.v[i] = d[V + i] * scale[i] - 2 * a.slope * a.beta * x[V + i] * sum;
    }
    y.store(static_cast<T *>(a.diff_src) + (int64_t)pixel * a.src_pitch + first);
}

/* Any window, one channel per thread. */
template <typename T>
__device__ __forceinline__ float base_at(const lrn_args &a, const T *pixel, int c) {
    float sum = 0;
    for (int j = c - a.half; j <= c + a.half; j++) {
        if (j < 0 || j >= a.c) continue;
        const float x = to_float(pixel[j]);
        sum = fmaf(x, x, sum);
    }
    return fmaf(a.slope, sum, a.k);
}

template <typename T>
__global__ void __launch_bounds__(THREADS) lrn_forward_any(lrn_args a) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= a.n_items) return;
    const uint32_t pixel = ki_divide(item, a.packs);
    const int c = (int)(item - pixel * a.packs.by);
    const T *src = static_cast<const T *>(a.src) + (int64_t)pixel * a.src_pitch;
    float steep;
    const float factor = power<false>(base_at(a, src, c), a.beta, &steep);
    static_cast<T *>(a.dst)[(int64_t)pixel * a.dst_pitch + c] = from_float<T>(to_float(src[c]) * factor);
}

template <typename T>
__global__ void __launch_bounds__(THREADS) lrn_backward_any(lrn_args a) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= a.n_items) return;
    const uint32_t pixel = ki_divide(item, a.packs);
    const int c = (int)(item - pixel * a.packs.by);
    const T *src = static_cast<const T *>(a.src) + (int64_t)pixel * a.src_pitch;
    const T *diff = static_cast<const T *>(a.diff_dst) + (int64_t)pixel * a.dst_pitch;
    float sum = 0;
    for (int j = c - a.half; j <= c + a.half; j++) {
        if (j < 0 || j >= a.c) continue;
        float steep;
        power<false>(base_at(a, src, j), a.beta, &steep);
        sum += to_float(diff[j]) * to_float(src[j]) * steep;
    }
    float steep;
    const float factor = power<false>(base_at(a, src, c), a.beta, &steep);
    static_cast<T *>(a.diff_src)[(int64_t)pixel * a.src_pitch + c] =
        from_float<T>(to_float(diff[c]) * factor - 2 * a.slope * a.beta * to_float(src[c]) * sum);
}

lrn_args args_of(const ki_cuda_lrn_args *l, int64_t packs) {
    lrn_args a = {};
    a.src = l->src, a.dst = l->dst, a.diff_dst = l->diff_dst, a.diff_src = l->diff_src;
    a.src_pitch = l->src_pitch, a.dst_pitch = l->dst_pitch;
    a.k = l->k, a.slope = l->alpha / (float)l->size, a.beta = l->beta;
    a.c = (int)l->c, a.half = l->size / 2;
    a.n_items = (uint32_t)(l->n * packs);
    a.packs = ki_divider_of(packs);
    return a;
}

template <typename T, int V, int HALF, bool Q>
cudaError_t launch(cudaStream_t stream, const ki_cuda_lrn_args *l, bool is_backward) {
    const lrn_args a = args_of(l, l->c / V);
    const unsigned grid = (a.n_items + THREADS - 1) / THREADS;
    return is_backward ? KI_LAUNCH(lrn_backward<T, V, HALF, Q>, grid, THREADS, 0, stream, a)
                       : KI_LAUNCH(lrn_forward<T, V, HALF, Q>, grid, THREADS, 0, stream, a);
}

template <typename T>
cudaError_t lrn_of(cudaStream_t stream, const ki_cuda_lrn_args *l, bool is_backward) {
    const int N = ki_pack<T>::N;
    const int half = l->size / 2;
    const bool is_quarters = l->beta == 0.75f;
    const bool is_wide = ki_fits_packs<T>(l->src, l->src_pitch, l->c) &&
                         ki_fits_packs<T>(l->dst, l->dst_pitch, l->c) &&
                         ki_fits_packs<T>(l->diff_src, l->src_pitch, l->c) &&
                         ki_fits_packs<T>(l->diff_dst, l->dst_pitch, l->c);
    if (l->n * l->c > (is_wide ? (int64_t)INT32_MAX * N : INT32_MAX)) return cudaErrorInvalidValue;
    if (is_wide && half == 2)
        return is_quarters ? launch<T, N, 2, true>(stream, l, is_backward)
                           : launch<T, N, 2, false>(stream, l, is_backward);
    if (is_wide && half == 1)
        return is_quarters ? launch<T, N, 1, true>(stream, l, is_backward)
                           : launch<T, N, 1, false>(stream, l, is_backward);
    const lrn_args a = args_of(l, l->c);
    const unsigned grid = (a.n_items + THREADS - 1) / THREADS;
    return is_backward ? KI_LAUNCH(lrn_backward_any<T>, grid, THREADS, 0, stream, a)
                       : KI_LAUNCH(lrn_forward_any<T>, grid, THREADS, 0, stream, a);
}

} // namespace

extern "C" cudaError_t ki_cuda_lrn_forward(cudaStream_t stream, const ki_cuda_lrn_args *lrn) {
    return lrn->is_bf16 ? lrn_of<ki_bf16>(stream, lrn, false) : lrn_of<float>(stream, lrn, false);
}

extern "C" cudaError_t ki_cuda_lrn_backward(cudaStream_t stream, const ki_cuda_lrn_args *lrn) {
    return lrn->is_bf16 ? lrn_of<ki_bf16>(stream, lrn, true) : lrn_of<float>(stream, lrn, true);
}
