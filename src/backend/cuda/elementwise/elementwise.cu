/* Sums of maps, followed by ReLU or a ReLU mask: add, relu, and the joining of gradients. One pass: each part
 * is read once, and dst is written once. */
#include "backend/cuda/divide.cuh"
#include "backend/cuda/elementwise/kernels.h"
#include "backend/cuda/number.cuh"

namespace {

enum { THREADS = 256, EACH = 2 };

struct parts {
    const void *part[KI_CUDA_MAX_PARTS];
    int64_t pitch[KI_CUDA_MAX_PARTS];
    const void *mask;
    int64_t mask_pitch;
    void *dst;
    int64_t dst_pitch;
};

/* Item i is V channels of one pixel; per_pixel divides. MASK: dst = sum where mask > 0. RELU: dst = sum where the
 * sum is > 0. */
template <typename T, int V, int N, bool MASK, bool RELU>
__global__ void __launch_bounds__(THREADS) sum_parts(parts p, uint32_t n_items, ki_divider per_pixel) {
    ki_raw<T, V> x[EACH][N], m[EACH];
    uint32_t pixel[EACH], c[EACH];
    const uint32_t first = blockIdx.x * (THREADS * EACH) + threadIdx.x;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const uint32_t item = first + e * THREADS;
        pixel[e] = ki_divide(item, per_pixel);
        c[e] = (item - pixel[e] * per_pixel.by) * V;
        if (item >= n_items) continue;
#pragma unroll
        for (int k = 0; k < N; k++)
            x[e][k].load(static_cast<const T *>(p.part[k]) + (int64_t)pixel[e] * p.pitch[k] + c[e]);
        if (MASK) m[e].load(static_cast<const T *>(p.mask) + (int64_t)pixel[e] * p.mask_pitch + c[e]);
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        if (first + e * THREADS >= n_items) continue;
        ki_floats<T, V> sum = x[e][0].get();
#pragma unroll
        for (int k = 1; k < N; k++) {
            const ki_floats<T, V> part = x[e][k].get();
#pragma unroll
            for (int i = 0; i < V; i++) sum.v[i] += part.v[i];
        }
        if (RELU) {
#pragma unroll
            for (int i = 0; i < V; i++) sum.v[i] = sum.v[i] > 0 ? sum.v[i] : 0;
        }
        if (MASK) {
            const ki_floats<T, V> mask = m[e].get();
#pragma unroll
            for (int i = 0; i < V; i++) sum.v[i] = mask.v[i] > 0 ? sum.v[i] : 0;
        }
        sum.store(static_cast<T *>(p.dst) + (int64_t)pixel[e] * p.dst_pitch + c[e]);
    }
}

template <typename T, int V, int N>
cudaError_t launch_sum(cudaStream_t stream, const parts &p, int64_t n, int64_t c, bool has_mask,
                       bool has_relu) {
    const int64_t per_pixel = c / V, n_items = n * per_pixel;
    if (n_items > INT32_MAX) return cudaErrorInvalidValue;
    const unsigned grid = (unsigned)((n_items + THREADS * EACH - 1) / (THREADS * EACH));
    const ki_divider by = ki_divider_of(per_pixel);
    const uint32_t items = (uint32_t)n_items;
    if (has_mask) return KI_LAUNCH(sum_parts<T, V, N, true, false>, grid, THREADS, 0, stream, p, items, by);
    if (has_relu) return KI_LAUNCH(sum_parts<T, V, N, false, true>, grid, THREADS, 0, stream, p, items, by);
    return KI_LAUNCH(sum_parts<T, V, N, false, false>, grid, THREADS, 0, stream, p, items, by);
}

template <typename T, int V>
cudaError_t launch_n(cudaStream_t stream, const parts &p, int n_parts, int64_t n, int64_t c, bool has_mask,
                     bool has_relu) {
    switch (n_parts) {
    case 1: return launch_sum<T, V, 1>(stream, p, n, c, has_mask, has_relu);
    case 2: return launch_sum<T, V, 2>(stream, p, n, c, has_mask, has_relu);
    case 3: return launch_sum<T, V, 3>(stream, p, n, c, has_mask, has_relu);
    case 4: return launch_sum<T, V, 4>(stream, p, n, c, has_mask, has_relu);
    case 5: return launch_sum<T, V, 5>(stream, p, n, c, has_mask, has_relu);
    case 6: return launch_sum<T, V, 6>(stream, p, n, c, has_mask, has_relu);
    case 7: return launch_sum<T, V, 7>(stream, p, n, c, has_mask, has_relu);
    case 8: return launch_sum<T, V, 8>(stream, p, n, c, has_mask, has_relu);
    default: return cudaErrorInvalidValue;
    }
}

template <typename T>
cudaError_t sum_of(cudaStream_t stream, parts p, int n_parts, int64_t n, int64_t c, bool has_relu) {
    const int N = ki_pack<T>::N;
    bool is_dense = p.dst_pitch == c && (!p.mask || p.mask_pitch == c);
    for (int k = 0; k < n_parts; k++) is_dense &= p.pitch[k] == c;
    if (is_dense && n * c <= INT32_MAX) {
        c *= n, n = 1;
        p.dst_pitch = p.mask_pitch = c;
        for (int k = 0; k < n_parts; k++) p.pitch[k] = c;
    }
    bool is_wide =
        ki_fits_packs<T>(p.dst, p.dst_pitch, c) && (!p.mask || ki_fits_packs<T>(p.mask, p.mask_pitch, c));
    for (int k = 0; k < n_parts; k++) is_wide &= ki_fits_packs<T>(p.part[k], p.pitch[k], c);
    if (is_wide) return launch_n<T, N>(stream, p, n_parts, n, c, p.mask != NULL, has_relu);
    return launch_n<T, 1>(stream, p, n_parts, n, c, p.mask != NULL, has_relu);
}

} // namespace

extern "C" cudaError_t ki_cuda_sum(cudaStream_t stream, bool is_bf16, int64_t n, int64_t c, int n_parts,
                                   const void *const *part, const int64_t *pitch, const void *mask,
                                   int64_t mask_pitch, bool has_relu, void *dst, int64_t dst_pitch) {
    parts p = {};
    if (n_parts < 1 || n_parts > KI_CUDA_MAX_PARTS) return cudaErrorInvalidValue;
    for (int k = 0; k < n_parts; k++) p.part[k] = part[k], p.pitch[k] = pitch[k];
    p.mask = mask, p.mask_pitch = mask_pitch, p.dst = dst, p.dst_pitch = dst_pitch;
    return is_bf16 ? sum_of<ki_bf16>(stream, p, n_parts, n, c, has_relu)
                   : sum_of<float>(stream, p, n_parts, n, c, has_relu);
}
