/* attend and unfold: the heads of an ensemble in the rows of a batch (device/op.h). Each number is read and written once,
 * but for the map that attend's forward reads once for every head, out of the cache. */
#include "backend/cuda/divide.cuh"
#include "backend/cuda/elementwise/kernels.h"
#include "backend/cuda/number.cuh"

namespace {

enum { THREADS = 256 };

/* Item i is V channels of one pixel of one row: which pixel of which image, head and channel that is. */
struct place {
    uint32_t image_pixel; /* of the images: image * hw + pixel */
    uint32_t row_pixel;   /* of the rows: (image * heads + head) * hw + pixel */
    uint32_t head, c;
};

struct ruler {
    ki_divider per_pixel, hw, heads; /* packs of a pixel, pixels of a row, rows of an image */
};

template <int V>
__device__ __forceinline__ place place_of(uint32_t item, const ruler &by) {
    place p;
    p.row_pixel = ki_divide(item, by.per_pixel);
    p.c = (item - p.row_pixel * by.per_pixel.by) * V;
    const uint32_t row = ki_divide(p.row_pixel, by.hw), image = ki_divide(row, by.heads);
    p.head = row - image * by.heads.by;
    p.image_pixel = image * by.hw.by + (p.row_pixel - row * by.hw.by);
    return p;
}

__device__ __forceinline__ float sigmoid(float z) {
    const float t = expf(z < 0 ? z : -z);
    return (z < 0 ? t : 1) / (1 + t);
}

template <typename T>
__device__ __forceinline__ int64_t all_heads(const ki_cuda_heads_args &a, const place &p, int64_t pitch) {
    return (int64_t)p.image_pixel * pitch + (int64_t)p.head * a.c + p.c;
}

template <typename T, int V>
__global__ void __launch_bounds__(THREADS) attend(ki_cuda_heads_args a, uint32_t n_items, ruler by) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= n_items) return;
    const place p = place_of<V>(item, by);
    ki_floats<T, V> x, z;
    x.load(static_cast<const T *>(a.map) + (int64_t)p.image_pixel * a.map_pitch + p.c);
    z.load(static_cast<const T *>(a.all) + all_heads<T>(a, p, a.all_pitch));
#pragma unroll
    for (int i = 0; i < V; i++) x.v[i] *= sigmoid(z.v[i]);
    x.store(static_cast<T *>(a.rows) + (int64_t)p.row_pixel * a.rows_pitch + p.c);
}

/* Item i is V channels of one pixel of one image; its heads one after the other. */
template <typename T, int V>
__global__ void __launch_bounds__(THREADS) attend_diff(ki_cuda_heads_args a, uint32_t n_items, ruler by) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= n_items) return;
    place p = {};
    p.image_pixel = ki_divide(item, by.per_pixel);
    p.c = (item - p.image_pixel * by.per_pixel.by) * V;
    const uint32_t image = ki_divide(p.image_pixel, by.hw), pixel = p.image_pixel - image * by.hw.by;
    ki_floats<T, V> x, sum;
    x.load(static_cast<const T *>(a.map) + (int64_t)p.image_pixel * a.map_pitch + p.c);
#pragma unroll
    for (int i = 0; i < V; i++) sum.v[i] = 0;
    for (p.head = 0; p.head < by.heads.by; p.head++) {
        p.row_pixel = (image * by.heads.by + p.head) * by.hw.by + pixel;
        ki_floats<T, V> z, d;
        z.load(static_cast<const T *>(a.all) + all_heads<T>(a, p, a.all_pitch));
        d.load(static_cast<const T *>(a.rows) + (int64_t)p.row_pixel * a.rows_pitch + p.c);
#pragma unroll
        for (int i = 0; i < V; i++) {
            const float s = sigmoid(z.v[i]), through = d.v[i] * s;
            sum.v[i] += through;
            z.v[i] = through * x.v[i] * (1 - s);
        }
        if (a.diff_all) z.store(static_cast<T *>(a.diff_all) + all_heads<T>(a, p, a.all_pitch));
    }
    if (a.diff_map) sum.store(static_cast<T *>(a.diff_map) + (int64_t)p.image_pixel * a.map_pitch + p.c);
}

template <typename T, int V>
__global__ void __launch_bounds__(THREADS)
    unfold(ki_cuda_heads_args a, uint32_t n_items, ruler by, bool back) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= n_items) return;
    const place p = place_of<V>(item, by);
    const int64_t row = (int64_t)p.row_pixel * a.rows_pitch + p.c, image = all_heads<T>(a, p, a.all_pitch);
    ki_raw<T, V> x;
    x.load(back ? static_cast<const T *>(a.all) + image : static_cast<const T *>(a.rows) + row);
    x.get().store(back ? static_cast<T *>(a.rows) + row : static_cast<T *>(a.diff_all) + image);
}

enum work { ATTEND, ATTEND_DIFF, UNFOLD, FOLD };

template <typename T, int V>
cudaError_t launch(cudaStream_t stream, const ki_cuda_heads_args &a, work what) {
    const int64_t rows = what == ATTEND_DIFF ? a.mb : a.mb * a.heads, per_pixel = a.c / V;
    const int64_t n_items = rows * a.hw * per_pixel;
    if (n_items > INT32_MAX) return cudaErrorInvalidValue;
    const unsigned grid = (unsigned)((n_items + THREADS - 1) / THREADS);
    const ruler by = {ki_divider_of(per_pixel), ki_divider_of(a.hw), ki_divider_of(a.heads)};
    const uint32_t items = (uint32_t)n_items;
    if (what == ATTEND) return KI_LAUNCH(attend<T, V>, grid, THREADS, 0, stream, a, items, by);
    if (what == ATTEND_DIFF) return KI_LAUNCH(attend_diff<T, V>, grid, THREADS, 0, stream, a, items, by);
    return KI_LAUNCH(unfold<T, V>, grid, THREADS, 0, stream, a, items, by, what == FOLD);
}

template <typename T>
cudaError_t launch_wide(cudaStream_t stream, const ki_cuda_heads_args &a, work what) {
    bool is_wide = ki_fits_packs<T>(a.rows, a.rows_pitch, a.c) && ki_fits_packs<T>(a.all, a.all_pitch, a.c) &&
                   ki_fits_packs<T>(a.diff_all, a.all_pitch, a.c);
    if (what == ATTEND || what == ATTEND_DIFF)
        is_wide &=
            ki_fits_packs<T>(a.map, a.map_pitch, a.c) && ki_fits_packs<T>(a.diff_map, a.map_pitch, a.c);
    return is_wide ? launch<T, ki_pack<T>::N>(stream, a, what) : launch<T, 1>(stream, a, what);
}

cudaError_t run(cudaStream_t stream, const ki_cuda_heads_args *a, work what) {
    return a->is_bf16 ? launch_wide<ki_bf16>(stream, *a, what) : launch_wide<float>(stream, *a, what);
}

} // namespace

extern "C" cudaError_t ki_cuda_heads_attend(cudaStream_t stream, const ki_cuda_heads_args *args) {
    return run(stream, args, ATTEND);
}
extern "C" cudaError_t ki_cuda_heads_attend_diff(cudaStream_t stream, const ki_cuda_heads_args *args) {
    return run(stream, args, ATTEND_DIFF);
}
extern "C" cudaError_t ki_cuda_heads_unfold(cudaStream_t stream, const ki_cuda_heads_args *args) {
    return run(stream, args, UNFOLD);
}
extern "C" cudaError_t ki_cuda_heads_fold(cudaStream_t stream, const ki_cuda_heads_args *args) {
    return run(stream, args, FOLD);
}
