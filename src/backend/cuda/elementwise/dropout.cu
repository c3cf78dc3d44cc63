/* dropout with the mask of device/dropout.h, a function of the element's index in the plain order of the whole batch. Rows are
 * drawn four values at a time: the four of a block of the mask, of which the first and the last block here may have fewer. In
 * a map the four values are not adjacent, so each value draws its own block. */
#include "backend/cuda/divide.cuh"
#include "backend/cuda/elementwise/kernels.h"
#include "backend/cuda/number.cuh"

namespace {

const int THREADS = 256;

struct drop {
    const void *src;
    void *dst;
    int64_t src_pitch, dst_pitch;
    uint32_t n_items, key[2], node, purpose, threshold;
    float scale;
    const uint64_t *step, *first; /* first NULL: 0 */
    uint64_t *keeps;              /* NULL: backward */
    uint64_t each;
    int c, hw;
    ki_divider channels, pixels;
};

__device__ __forceinline__ void words_at(const drop &d, uint32_t block, uint32_t *words) {
    const uint32_t counter[4] = {block, d.purpose, (uint32_t)*d.step, d.node};
    ki_philox(counter, d.key, words);
}

/* The place of the first image here in the whole batch. */
__device__ __forceinline__ uint64_t first_of(const drop &d, uint32_t item) {
    const uint64_t first = d.first ? *d.first : 0;
    if (item == 0 && d.keeps) d.keeps[0] = *d.step, d.keeps[1] = first;
    return first;
}

/* Item: four values of [mb, c], n values in all. */
__global__ void __launch_bounds__(THREADS) drop_rows(drop d, int64_t n) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    const uint64_t begin = first_of(d, item) * d.each;
    if (item >= d.n_items) return;
    uint32_t words[4];
    words_at(d, (uint32_t)(begin / 4 + item), words);
    const float *src = static_cast<const float *>(d.src);
    float *dst = static_cast<float *>(d.dst);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int64_t i = (int64_t)item * 4 + k - (int64_t)(begin & 3);
        if (i >= 0 && i < n) dst[i] = words[k] >= d.threshold ? src[i] * d.scale : 0;
    }
}

/* Item: one value of a map. */
template <typename T>
__global__ void __launch_bounds__(THREADS) drop_map(drop d) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    const uint64_t first = first_of(d, item);
    if (item >= d.n_items) return;
    const uint32_t pixel = ki_divide(item, d.channels), c = item - pixel * d.channels.by;
    const uint32_t image = ki_divide(pixel, d.pixels);
    const uint64_t plain = first * d.each + ((uint64_t)image * (uint64_t)d.c + c) * (uint64_t)d.hw +
                           (pixel - image * d.pixels.by);
    uint32_t words[4];
    words_at(d, (uint32_t)(plain / 4), words);
    const uint32_t k = (uint32_t)(plain & 3);
    const uint32_t word = k == 0 ? words[0] : k == 1 ? words[1] : k == 2 ? words[2] : words[3];
    const float x = to_float(static_cast<const T *>(d.src)[(int64_t)pixel * d.src_pitch + c]);
    static_cast<T *>(d.dst)[(int64_t)pixel * d.dst_pitch + c] =
        from_float<T>(word >= d.threshold ? x * d.scale : 0);
}

} // namespace

extern "C" cudaError_t ki_cuda_dropout_mask(cudaStream_t stream, const ki_cuda_dropout_args *args) {
    drop d = {};
    d.src = args->src, d.dst = args->dst, d.src_pitch = args->src_pitch, d.dst_pitch = args->dst_pitch;
    d.key[0] = args->key[0], d.key[1] = args->key[1], d.node = args->node, d.purpose = args->purpose;
    d.threshold = args->threshold, d.scale = args->scale, d.step = args->step;
    d.first = args->first, d.keeps = args->keeps;
    d.c = (int)args->c, d.hw = (int)args->hw, d.each = (uint64_t)args->each;
    const int64_t n = args->mb * args->hw * args->c, n_items = args->is_map ? n : (n + 3) / 4 + 1;
    if (n_items > INT32_MAX) return cudaErrorInvalidValue;
    d.n_items = (uint32_t)n_items;
    d.channels = ki_divider_of(args->c), d.pixels = ki_divider_of(args->hw);
    const unsigned grid = (d.n_items + THREADS - 1) / THREADS;
    if (!args->is_map) return KI_LAUNCH(drop_rows, grid, THREADS, 0, stream, d, n);
    return args->is_bf16 ? KI_LAUNCH(drop_map<ki_bf16>, grid, THREADS, 0, stream, d)
                         : KI_LAUNCH(drop_map<float>, grid, THREADS, 0, stream, d);
}
