/* drop_path: every thread draws the word of its row, which costs less than to fetch it. */
#include "backend/cuda/divide.cuh"
#include "backend/cuda/elementwise/kernels.h"
#include "backend/cuda/number.cuh"

namespace {

enum { THREADS = 256 };

__device__ __forceinline__ bool is_kept(const ki_cuda_dropout_args &d, uint64_t row) {
    const uint32_t counter[4] = {(uint32_t)(row / 4), d.purpose, (uint32_t)*d.step, d.node};
    uint32_t words[4];
    ki_philox(counter, d.key, words);
    const uint32_t k = (uint32_t)(row & 3);
    const uint32_t word = k == 0 ? words[0] : k == 1 ? words[1] : k == 2 ? words[2] : words[3];
    return word >= d.threshold;
}

/* Item: V channels of a pixel. */
template <typename T, int V>
__global__ void __launch_bounds__(THREADS)
    drop(ki_cuda_dropout_args d, uint32_t n_items, ki_divider packs, ki_divider hw) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    const uint64_t first = d.first ? *d.first : 0;
    if (item == 0 && d.keeps) d.keeps[0] = *d.step, d.keeps[1] = first;
    if (item >= n_items) return;
    const uint32_t pixel = ki_divide(item, packs), c = (item - pixel * packs.by) * V;
    const float factor = is_kept(d, first + ki_divide(pixel, hw)) ? d.scale : 0;
    ki_floats<T, V> x;
    x.load(static_cast<const T *>(d.src) + (int64_t)pixel * d.src_pitch + c);
#pragma unroll
    for (int i = 0; i < V; i++) x.v[i] = factor > 0 ? x.v[i] * factor : 0;
    x.store(static_cast<T *>(d.dst) + (int64_t)pixel * d.dst_pitch + c);
}

template <typename T, int V>
cudaError_t launch(cudaStream_t stream, const ki_cuda_dropout_args *d) {
    const int64_t packs = d->c / V, n_items = d->mb * d->hw * packs;
    if (n_items > INT32_MAX) return cudaErrorInvalidValue;
    return KI_LAUNCH(drop<T, V>, (unsigned)((n_items + THREADS - 1) / THREADS), THREADS, 0, stream, *d,
                     (uint32_t)n_items, ki_divider_of(packs), ki_divider_of(d->hw));
}

template <typename T>
cudaError_t drop_of(cudaStream_t stream, const ki_cuda_dropout_args *d) {
    const bool is_wide =
        ki_fits_packs<T>(d->src, d->src_pitch, d->c) && ki_fits_packs<T>(d->dst, d->dst_pitch, d->c);
    return is_wide ? launch<T, ki_pack<T>::N>(stream, d) : launch<T, 1>(stream, d);
}

} // namespace

extern "C" cudaError_t ki_cuda_drop_path_mask(cudaStream_t stream, const ki_cuda_dropout_args *args) {
    return args->is_bf16 ? drop_of<ki_bf16>(stream, args) : drop_of<float>(stream, args);
}
