/* act and glu: each number is read and written once (formulas: backend/ref). */
#include "backend/cuda/divide.cuh"
#include "backend/cuda/elementwise/kernels.h"
#include "backend/cuda/number.cuh"
#include "device/op.h"

namespace {

enum { THREADS = 256 };

/* In bf16 functions are a few digits better than what is kept of them, and as fast as memory: with expf and a division, or erfcf, they are
 * not. */
template <typename T>
__device__ __forceinline__ float sigmoid(float z) {
    const float t = expf(z < 0 ? z : -z);
    return (z < 0 ? t : 1) / (1 + t);
}
template <>
__device__ __forceinline__ float sigmoid<ki_bf16>(float z) {
    return __fdividef(1, 1 + exp2f(-1.44269504f * z));
}

template <int HOW, typename T>
struct function;
template <>
struct function<KI_ACT_GELU, float> {
    static __device__ __forceinline__ float value(float x) { return x * normcdf_of(x); }
    static __device__ __forceinline__ float slope(float x) {
        return normcdf_of(x) + x * expf(-0.5f * x * x) * 0.39894228f;
    }
    static __device__ __forceinline__ float normcdf_of(float x) { return 0.5f * erfcf(x * -0.70710678f); }
};
/* normcdf(-z) for z >= 0 is exp(-z^2 / 2) times a function that is a polynomial of 1 / (1 + z / 5) to 2.5e-6 of itself, up to z = 14;
 * beyond it is 0 in float. The polynomial goes through the function at the Chebyshev nodes. */
template <>
struct function<KI_ACT_GELU, ki_bf16> {
    static __device__ __forceinline__ float bell(float x) { return exp2f(-0.72134752f * x * x); }
    static __device__ __forceinline__ float normcdf_of(float x, float bell) {
        const float t = __fdividef(1, fmaf(0.2f, fabsf(x), 1));
        float p = 0.2815091642f;
        p = fmaf(p, t, -0.3960591176f);
        p = fmaf(p, t, 0.461157451f);
        p = fmaf(p, t, -0.1344315057f);
        p = fmaf(p, t, 0.1373370713f);
        p = fmaf(p, t, 0.0700470085f);
        p = fmaf(p, t, 0.08044070085f);
        const float tail = p * t * bell;
        return x < 0 ? tail : 1 - tail;
    }
    static __device__ __forceinline__ float value(float x) { return x * normcdf_of(x, bell(x)); }
    static __device__ __forceinline__ float slope(float x) {
        const float e = bell(x);
        return fmaf(x * 0.39894228f, e, normcdf_of(x, e));
    }
};
/* (1 + tanh(u)) / 2 is sigmoid(2 u); here 2 u = 2 sqrt(2 / pi) (x + 0.044715 x^3). */
template <typename T>
struct function<KI_ACT_GELU_TANH, T> {
    static __device__ __forceinline__ float inner(float x) {
        return sigmoid<T>(x * (1.59576912f + 0.07135481f * x * x));
    }
    static __device__ __forceinline__ float value(float x) { return x * inner(x); }
    static __device__ __forceinline__ float slope(float x) {
        const float s = inner(x);
        return s + x * s * (1 - s) * (1.59576912f + 3 * 0.07135481f * x * x);
    }
};
template <typename T>
struct function<KI_ACT_QUICK_GELU, T> {
    static __device__ __forceinline__ float value(float x) { return x * sigmoid<T>(1.702f * x); }
    static __device__ __forceinline__ float slope(float x) {
        const float s = sigmoid<T>(1.702f * x);
        return s + 1.702f * x * s * (1 - s);
    }
};
template <typename T>
struct function<KI_ACT_SILU, T> {
    static __device__ __forceinline__ float value(float x) { return x * sigmoid<T>(x); }
    static __device__ __forceinline__ float slope(float x) {
        const float s = sigmoid<T>(x);
        return s + x * s * (1 - s);
    }
};
template <typename T>
struct function<KI_ACT_SIGMOID, T> {
    static __device__ __forceinline__ float value(float x) { return sigmoid<T>(x); }
    static __device__ __forceinline__ float slope(float x) {
        const float s = sigmoid<T>(x);
        return s * (1 - s);
    }
};
template <typename T>
struct function<KI_ACT_HARD_SIGMOID, T> {
    static __device__ __forceinline__ float value(float x) {
        return fminf(fmaxf(x * (1.0f / 6) + 0.5f, 0), 1);
    }
    static __device__ __forceinline__ float slope(float x) { return x > -3 && x < 3 ? 1.0f / 6 : 0; }
};
template <typename T>
struct function<KI_ACT_HARD_SWISH, T> {
    static __device__ __forceinline__ float value(float x) {
        return x * function<KI_ACT_HARD_SIGMOID, T>::value(x);
    }
    static __device__ __forceinline__ float slope(float x) {
        return x <= -3 ? 0 : x >= 3 ? 1 : x * (1.0f / 3) + 0.5f;
    }
};

/* Item: V channels of a pixel. A thread has EACH of them, all of which are on their way before the first is used. */
template <typename T, int V, int HOW, bool BACK, int EACH>
__global__ void __launch_bounds__(THREADS) apply(ki_cuda_act_args a, uint32_t n_items, ki_divider packs) {
    ki_raw<T, V> x_raw[EACH], d_raw[EACH];
    uint32_t pixel[EACH], c[EACH];
    const uint32_t first = blockIdx.x * (THREADS * EACH) + threadIdx.x;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const uint32_t item = first + e * THREADS;
        pixel[e] = ki_divide(item, packs);
        c[e] = (item - pixel[e] * packs.by) * V;
        if (item >= n_items) continue;
        x_raw[e].load(static_cast<const T *>(a.src) + (int64_t)pixel[e] * a.src_pitch + c[e]);
        if (BACK) d_raw[e].load(static_cast<const T *>(a.diff_dst) + (int64_t)pixel[e] * a.diff_pitch + c[e]);
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        if (first + e * THREADS >= n_items) continue;
        ki_floats<T, V> x = x_raw[e].get(), d;
        if (BACK) d = d_raw[e].get();
#pragma unroll
        for (int i = 0; i < V; i++)
            x.v[i] = BACK ? d.v[i] * function<HOW, T>::slope(x.v[i]) : function<HOW, T>::value(x.v[i]);
        x.store(static_cast<T *>(a.dst) + (int64_t)pixel[e] * a.dst_pitch + c[e]);
    }
}

template <typename T, int V, int HOW>
cudaError_t launch(cudaStream_t stream, const ki_cuda_act_args *a) {
    const int64_t packs = a->c / V, n_items = a->n * packs;
    if (n_items > INT32_MAX - 4 * THREADS) return cudaErrorInvalidValue;
    const ki_divider by = ki_divider_of(packs);
    const int each = a->diff_dst ? 2 : 4;
    const unsigned grid = (unsigned)((n_items + THREADS * each - 1) / (THREADS * each));
    return a->diff_dst
               ? KI_LAUNCH((apply<T, V, HOW, true, 2>), grid, THREADS, 0, stream, *a, (uint32_t)n_items, by)
               : KI_LAUNCH((apply<T, V, HOW, false, 4>), grid, THREADS, 0, stream, *a, (uint32_t)n_items, by);
}

template <int HOW>
cudaError_t launch_number(cudaStream_t stream, const ki_cuda_act_args *a) {
    const bool is_wide = a->is_bf16 ? ki_fits_packs<ki_bf16>(a->src, a->src_pitch, a->c) &&
                                          ki_fits_packs<ki_bf16>(a->diff_dst, a->diff_pitch, a->c) &&
                                          ki_fits_packs<ki_bf16>(a->dst, a->dst_pitch, a->c)
                                    : ki_fits_packs<float>(a->src, a->src_pitch, a->c) &&
                                          ki_fits_packs<float>(a->diff_dst, a->diff_pitch, a->c) &&
                                          ki_fits_packs<float>(a->dst, a->dst_pitch, a->c);
    if (a->is_bf16)
        return is_wide ? launch<ki_bf16, ki_pack<ki_bf16>::N, HOW>(stream, a)
                       : launch<ki_bf16, 1, HOW>(stream, a);
    return is_wide ? launch<float, ki_pack<float>::N, HOW>(stream, a) : launch<float, 1, HOW>(stream, a);
}

/* Item: V channels of a token. */
template <typename T, int V, bool BACK>
__global__ void __launch_bounds__(THREADS) glu(ki_cuda_glu_args g, uint32_t n_items, ki_divider packs) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= n_items) return;
    const uint32_t row = ki_divide(item, packs), c = (item - row * packs.by) * V;
    const int64_t at = (int64_t)row * g.src_pitch + c, to = (int64_t)row * g.dst_pitch + c;
    ki_floats<T, V> a, b, d;
    a.load(static_cast<const T *>(g.src) + at);
    b.load(static_cast<const T *>(g.src) + at + g.c);
    if (BACK) d.load(static_cast<const T *>(g.diff_dst) + to);
#pragma unroll
    for (int i = 0; i < V; i++) {
        const float s = sigmoid<T>(a.v[i]), gate = a.v[i] * s;
        a.v[i] = BACK ? d.v[i] * b.v[i] * (s + gate * (1 - s)) : gate * b.v[i];
        if (BACK) b.v[i] = d.v[i] * gate;
    }
    a.store(BACK ? static_cast<T *>(g.diff_src) + at : static_cast<T *>(g.dst) + to);
    if (BACK) b.store(static_cast<T *>(g.diff_src) + at + g.c);
}

template <typename T, int V>
cudaError_t launch_glu(cudaStream_t stream, const ki_cuda_glu_args *g, bool is_backward) {
    const int64_t packs = g->c / V, n_items = g->n * packs;
    if (n_items > INT32_MAX) return cudaErrorInvalidValue;
    const unsigned grid = (unsigned)((n_items + THREADS - 1) / THREADS);
    const ki_divider by = ki_divider_of(packs);
    return is_backward ? KI_LAUNCH(glu<T, V, true>, grid, THREADS, 0, stream, *g, (uint32_t)n_items, by)
                       : KI_LAUNCH(glu<T, V, false>, grid, THREADS, 0, stream, *g, (uint32_t)n_items, by);
}

template <typename T>
cudaError_t glu_of(cudaStream_t stream, const ki_cuda_glu_args *g, bool is_backward) {
    const bool is_wide = ki_fits_packs<T>(g->src, g->src_pitch, g->c) &&
                         ki_fits_packs<T>(g->dst, g->dst_pitch, g->c) &&
                         ki_fits_packs<T>(g->diff_src, g->src_pitch, g->c) &&
                         ki_fits_packs<T>(g->diff_dst, g->dst_pitch, g->c);
    return is_wide ? launch_glu<T, ki_pack<T>::N>(stream, g, is_backward)
                   : launch_glu<T, 1>(stream, g, is_backward);
}

} // namespace

extern "C" cudaError_t ki_cuda_act_apply(cudaStream_t stream, const ki_cuda_act_args *args) {
    static cudaError_t (*const launches[])(cudaStream_t, const ki_cuda_act_args *) = {
        launch_number<KI_ACT_GELU>,        launch_number<KI_ACT_GELU_TANH>, launch_number<KI_ACT_QUICK_GELU>,
        launch_number<KI_ACT_SILU>,        launch_number<KI_ACT_SIGMOID>,   launch_number<KI_ACT_HARD_SWISH>,
        launch_number<KI_ACT_HARD_SIGMOID>}; /* in the order of ki_act */
    return launches[args->how](stream, args);
}

extern "C" cudaError_t ki_cuda_glu_apply(cudaStream_t stream, const ki_cuda_glu_args *args,
                                         bool is_backward) {
    return args->is_bf16 ? glu_of<ki_bf16>(stream, args, is_backward)
                         : glu_of<float>(stream, args, is_backward);
}
