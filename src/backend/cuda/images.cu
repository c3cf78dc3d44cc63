/* Crop, mirror, order of channels, mean and scale in one pass over the pixels that are shown. A thread makes
 * one pixel of the input: neighbours read neighbouring bytes and write neighbouring 16-byte packs. */
#include "backend/cuda/images.h"

#include "backend/cuda/divide.cuh"
#include "backend/cuda/number.cuh"

namespace {

enum { THREADS = 256 };

/* blockIdx.y is the image. */
template <typename T>
__global__ void __launch_bounds__(THREADS) make_input(ki_cuda_pixels v, ki_divider row, T *dst) {
    const uint32_t at = blockIdx.x * THREADS + threadIdx.x, n = (uint32_t)(v.oh * v.ow), image = blockIdx.y;
    if (at >= n) return;
    int32_t y = (int32_t)ki_divide(at, row), x = (int32_t)at - y * v.ow;
    if (v.window) {
        const int32_t *w = v.window + 3 * image;
        x = w[0] + (w[2] ? v.ow - 1 - x : x);
        y += w[1];
    }
    /* A window outside the image would be a bug of the caller; it must not read what is not there. */
    x = x < 0 ? 0 : x < v.w ? x : v.w - 1;
    y = y < 0 ? 0 : y < v.h ? y : v.h - 1;
    const uint8_t *from = v.pixels + (((int64_t)image * v.h + y) * v.w + x) * v.c;
    T *to = dst + ((int64_t)image * n + at) * v.pitch;
    for (int64_t c0 = 0; c0 < v.pitch; c0 += ki_pack<T>::N) {
        ki_vec<T, ki_pack<T>::N> out;
#pragma unroll
        for (int k = 0; k < ki_pack<T>::N; k++) {
            const int c = (int)c0 + k;
            out.v[k] = 0;
            if (c < v.c && k < 4) out.v[k] = ((float)from[v.bgr ? v.c - 1 - c : c] - v.mean[k]) * v.factor[k];
        }
        out.store(to + c0);
    }
}

template <typename T>
cudaError_t launch(cudaStream_t stream, const ki_cuda_pixels &v, void *dst) {
    if (v.pitch % ki_pack<T>::N != 0 || v.c > 4 || v.n > 65535) return cudaErrorInvalidValue;
    const dim3 grid((unsigned)((v.oh * v.ow + THREADS - 1) / THREADS), (unsigned)v.n);
    return KI_LAUNCH(make_input<T>, grid, THREADS, 0, stream, v, ki_divider_of(v.ow), static_cast<T *>(dst));
}

} // namespace

cudaError_t ki_cuda_images_launch(cudaStream_t stream, bool is_bf16, const ki_cuda_pixels *view, void *dst) {
    return is_bf16 ? launch<ki_bf16>(stream, *view, dst) : launch<float>(stream, *view, dst);
}
