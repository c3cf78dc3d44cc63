/* Crop, mirror, order of channels, mean and scale in one pass over the pixels that are shown. A thread makes
 * 16 bytes of the input or more, one pixel or two: neighbours read neighbouring bytes and write neighbouring
 * packs. */
#include "backend/cuda/layout/images.h"

#include "backend/cuda/divide.cuh"
#include "backend/cuda/number.cuh"

namespace {

enum { THREADS = 256 };

/* The bytes of a pixel of the input; x is at or after the end of a row for a pixel that is only padding. */
__device__ __forceinline__ const uint8_t *source_of(const ki_cuda_pixels &v, uint32_t image, int32_t x,
                                                    int32_t y) {
    if (v.window) {
        const int32_t *w = v.window + 3 * image;
        x = w[0] + (w[2] ? v.ow - 1 - x : x);
        y += w[1];
    }
    /* A window outside the image would be a bug of the caller; even so, nothing outside the image may be
     * read. */
    x = x < 0 ? 0 : x < v.w ? x : v.w - 1;
    y = y < 0 ? 0 : y < v.h ? y : v.h - 1;
    return v.pixels + (((int64_t)image * v.h + y) * v.w + x) * v.c;
}

/* blockIdx.y is the image. The PIXELS of a thread are in one pack, or one pixel takes several packs. */
template <typename T, int PIXELS>
__global__ void __launch_bounds__(THREADS) make_input(ki_cuda_pixels v, ki_divider row, T *dst) {
    const int N = ki_pack<T>::N, EACH = N / PIXELS;
    const uint32_t at = (blockIdx.x * THREADS + threadIdx.x) * PIXELS, n = (uint32_t)(v.oh * v.row),
                   image = blockIdx.y;
    if (at >= n) return;
    const int32_t y = (int32_t)ki_divide(at, row), x = (int32_t)at - y * v.row;
    const uint8_t *from[PIXELS];
#pragma unroll
    for (int i = 0; i < PIXELS; i++) from[i] = source_of(v, image, x + i, y);
    T *to = dst + ((int64_t)image * n + at) * v.pitch;
    for (int64_t c0 = 0; c0 < (PIXELS == 1 ? v.pitch : 1); c0 += N) {
        ki_floats<T, ki_pack<T>::N> out;
#pragma unroll
        for (int k = 0; k < N; k++) {
            const int pixel = k / EACH, c = (int)c0 + k % EACH;
            out.v[k] = 0;
            if (c < v.c && k % EACH < 4 && x + pixel < v.ow)
                out.v[k] =
                    ((float)from[pixel][v.bgr ? v.c - 1 - c : c] - v.mean[k % EACH]) * v.factor[k % EACH];
        }
        out.store(to + c0);
    }
}

template <typename T>
cudaError_t launch(cudaStream_t stream, const ki_cuda_pixels &v, void *dst) {
    const int N = ki_pack<T>::N;
    const bool in_pairs = v.pitch * 2 == N && v.row % 2 == 0;
    if ((v.pitch % N != 0 && !in_pairs) || v.c > 4 || v.n > 65535) return cudaErrorInvalidValue;
    const int64_t threads = (int64_t)v.oh * v.row / (in_pairs ? 2 : 1);
    const dim3 grid((unsigned)((threads + THREADS - 1) / THREADS), (unsigned)v.n);
    if (in_pairs)
        return KI_LAUNCH((make_input<T, 2>), grid, THREADS, 0, stream, v, ki_divider_of(v.row),
                         static_cast<T *>(dst));
    return KI_LAUNCH((make_input<T, 1>), grid, THREADS, 0, stream, v, ki_divider_of(v.row),
                     static_cast<T *>(dst));
}

} // namespace

cudaError_t ki_cuda_images_launch(cudaStream_t stream, bool is_bf16, const ki_cuda_pixels *view, void *dst) {
    return is_bf16 ? launch<ki_bf16>(stream, *view, dst) : launch<float>(stream, *view, dst);
}
