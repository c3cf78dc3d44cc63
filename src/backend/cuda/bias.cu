/* dst = src + bias, with ReLU or without: what follows a product that could not do it itself. */
#include "backend/cuda/divide.cuh"
#include "backend/cuda/kernels.h"
#include "backend/cuda/number.cuh"

namespace {

const int THREADS = 256;

template <typename T, int V, bool RELU>
__global__ void __launch_bounds__(THREADS)
    add_bias(const T *src, int64_t src_pitch, const float *bias, T *dst, int64_t dst_pitch, uint32_t n_items,
             ki_divider per_pixel) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= n_items) return;
    const uint32_t pixel = ki_divide(item, per_pixel), c = (item - pixel * per_pixel.by) * V;
    ki_vec<T, V> x;
    x.load(src + (int64_t)pixel * src_pitch + c);
#pragma unroll
    for (int i = 0; i < V; i++) {
        const float y = x.v[i] + __ldg(bias + c + i);
        x.v[i] = RELU && !(y > 0) ? 0 : y;
    }
    x.store(dst + (int64_t)pixel * dst_pitch + c);
}

template <typename T, int V>
cudaError_t launch(cudaStream_t stream, int64_t n, int64_t c, const void *src, int64_t src_pitch,
                   const float *bias, bool has_relu, void *dst, int64_t dst_pitch) {
    const int64_t per_pixel = c / V, n_items = n * per_pixel;
    if (n_items > INT32_MAX) return cudaErrorInvalidValue;
    const unsigned grid = (unsigned)((n_items + THREADS - 1) / THREADS);
    const ki_divider by = ki_divider_of(per_pixel);
    return has_relu ? KI_LAUNCH(add_bias<T, V, true>, grid, THREADS, 0, stream, static_cast<const T *>(src),
                                src_pitch, bias, static_cast<T *>(dst), dst_pitch, n_items, by)
                    : KI_LAUNCH(add_bias<T, V, false>, grid, THREADS, 0, stream, static_cast<const T *>(src),
                                src_pitch, bias, static_cast<T *>(dst), dst_pitch, n_items, by);
}

template <typename T>
cudaError_t bias_of(cudaStream_t stream, int64_t n, int64_t c, const void *src, int64_t src_pitch,
                    const float *bias, bool has_relu, void *dst, int64_t dst_pitch) {
    const int N = ki_pack<T>::N;
    return ki_fits_packs<T>(src, src_pitch, c) && ki_fits_packs<T>(dst, dst_pitch, c)
               ? launch<T, N>(stream, n, c, src, src_pitch, bias, has_relu, dst, dst_pitch)
               : launch<T, 1>(stream, n, c, src, src_pitch, bias, has_relu, dst, dst_pitch);
}

} // namespace

extern "C" cudaError_t ki_cuda_bias(cudaStream_t stream, bool is_bf16, int64_t n, int64_t c, const void *src,
                                    int64_t src_pitch, const float *bias, bool has_relu, void *dst,
                                    int64_t dst_pitch) {
    return is_bf16 ? bias_of<ki_bf16>(stream, n, c, src, src_pitch, bias, has_relu, dst, dst_pitch)
                   : bias_of<float>(stream, n, c, src, src_pitch, bias, has_relu, dst, dst_pitch);
}
