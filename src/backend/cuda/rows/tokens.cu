/* Between maps and tokens: each kernel reads and writes every number once, V of them (a pack) at a time. */
#include "backend/cuda/rows/tokens.h"

#include "backend/cuda/divide.cuh"
#include "backend/cuda/number.cuh"

namespace {

enum { THREADS = 256, SMALL = 64, MOST_BLOCKS = 1 << 20 };

/* Item: V numbers of a row. */
struct place {
    uint32_t row, c;
};

template <int V>
__device__ __forceinline__ place place_of(uint32_t item, ki_divider per_row) {
    const uint32_t row = ki_divide(item, per_row);
    return place{row, (item - row * per_row.by) * V};
}

/* Item: one number of the new grid. */
__global__ void __launch_bounds__(THREADS) positions(ki_cuda_positions_args a) {
    const int64_t n = a.h * a.w * a.c, stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t item = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; item < n; item += stride) {
        const int64_t pixel = item / a.c, c = item - pixel * a.c, y = pixel / a.w, x = pixel - y * a.w;
        float sum = a.adds ? a.dst[item] : 0;
        for (int j = a.y.first[y]; j < a.y.first[y + 1]; j++) {
            for (int i = a.x.first[x]; i < a.x.first[x + 1]; i++)
                sum += a.y.weight[j] * a.x.weight[i] *
                       a.src[((int64_t)a.y.at[j] * a.width + a.x.at[i]) * a.c + c];
        }
        a.dst[item] = sum;
    }
}

/* Item: V numbers of a token. */
template <typename T, int V>
__global__ void __launch_bounds__(THREADS)
    tokens_forward(ki_cuda_tokens_args a, uint32_t n_items, ki_divider per_row, ki_divider per_image) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= n_items) return;
    const place p = place_of<V>(item, per_row);
    const uint32_t image = ki_divide(p.row, per_image);
    const int64_t t = p.row - image * per_image.by, pixel = t - a.n_special, reg = t - (a.has_class ? 1 : 0);
    ki_floats<T, V> x;
    if (pixel >= 0) {
        x.load(static_cast<const T *>(a.map) + (image * (a.t - a.n_special) + pixel) * a.pitch + p.c);
#pragma unroll
        for (int i = 0; a.grid && i < V; i++) x.v[i] += a.grid[pixel * a.c + p.c + i];
    } else if (reg >= 0) {
#pragma unroll
        for (int i = 0; i < V; i++) x.v[i] = a.registers[reg * a.c + p.c + i];
    } else {
#pragma unroll
        for (int i = 0; i < V; i++)
            x.v[i] = a.class_token[p.c + i] + (a.class_position ? a.class_position[p.c + i] : 0);
    }
    x.store(static_cast<T *>(a.tokens) + (int64_t)p.row * a.c + p.c);
}

/* Item: V numbers of one token, in all images. */
template <typename T, int V>
__global__ void __launch_bounds__(SMALL)
    tokens_backward(ki_cuda_tokens_diff_args a, uint32_t n_items, ki_divider per_row) {
    const uint32_t item = blockIdx.x * SMALL + threadIdx.x;
    if (item >= n_items) return;
    const place p = place_of<V>(item, per_row);
    const int64_t t = p.row, pixel = t - a.n_special, reg = t - (a.has_class ? 1 : 0);
    const T *from = static_cast<const T *>(a.diff_tokens) + t * a.c + p.c;
    T *to = pixel >= 0 && a.diff_map ? static_cast<T *>(a.diff_map) + pixel * a.pitch + p.c : nullptr;
    float sum[V];
#pragma unroll
    for (int i = 0; i < V; i++) sum[i] = 0;
#pragma unroll 4
    for (int64_t n = 0; n < a.mb; n++) {
        ki_floats<T, V> x;
        x.load(from + n * a.t * a.c);
        if (to) x.store(to + n * (a.t - a.n_special) * a.pitch);
#pragma unroll
        for (int i = 0; i < V; i++) sum[i] += x.v[i];
    }
    float *const rows[2] = {pixel >= 0 ? (a.grid ? a.grid + pixel * a.c : nullptr)
                            : reg >= 0 ? (a.diff_registers ? a.diff_registers + reg * a.c : nullptr)
                                       : a.diff_class,
                            pixel < 0 && reg < 0 ? a.diff_class_position : nullptr};
    const bool adds = pixel < 0 || a.adds_grid;
    for (int r = 0; r < 2; r++) {
        if (!rows[r]) continue;
#pragma unroll
        for (int i = 0; i < V; i++) rows[r][p.c + i] = (adds ? rows[r][p.c + i] : 0) + sum[i];
    }
}

template <typename T, int V>
__global__ void __launch_bounds__(THREADS)
    grid_rows(ki_cuda_grid_args a, uint32_t n_items, ki_divider per_row, ki_divider per_image) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= n_items) return;
    const place p = place_of<V>(item, per_row);
    const uint32_t image = ki_divide(p.row, per_image);
    const int64_t pixel = (int64_t)(p.row - image * per_image.by) - a.skip;
    T *token = static_cast<T *>(a.tokens) + (int64_t)p.row * a.c + p.c;
    T *map = static_cast<T *>(a.map) + (image * (a.t - a.skip) + pixel) * a.pitch + p.c;
    ki_floats<T, V> x;
    if (pixel >= 0) {
        x.load(a.is_back ? map : token);
        x.store(a.is_back ? token : map);
    } else if (a.is_back) {
#pragma unroll
        for (int i = 0; i < V; i++) x.v[i] = 0;
        x.store(token);
    }
}

/* Item: V numbers of a token that is written, or of the ones that are read. */
template <typename T, int V>
__global__ void __launch_bounds__(THREADS)
    token_rows(ki_cuda_token_args a, uint32_t n_items, ki_divider per_row, ki_divider per_image) {
    const uint32_t item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= n_items) return;
    const place p = place_of<V>(item, per_row);
    T *tokens = static_cast<T *>(a.tokens);
    ki_floats<T, V> x;
    if (!a.is_back) {
        x.load(tokens + ((int64_t)p.row * a.t + a.at) * a.c + p.c);
#pragma unroll
        for (int i = 0; i < V; i++) a.vectors[(int64_t)p.row * a.c + p.c + i] = x.v[i];
        return;
    }
    const uint32_t image = ki_divide(p.row, per_image);
    const bool is_it = (int64_t)(p.row - image * per_image.by) == a.at;
#pragma unroll
    for (int i = 0; i < V; i++) x.v[i] = is_it ? a.vectors[(int64_t)image * a.c + p.c + i] : 0;
    x.store(tokens + (int64_t)p.row * a.c + p.c);
}

template <typename T>
__global__ void __launch_bounds__(THREADS) probe_rows(ki_cuda_probe_args a) {
    const int64_t stride = (int64_t)gridDim.x * blockDim.x, n = a.is_back ? a.n : a.mb * a.n;
    T *tokens = static_cast<T *>(a.tokens);
    for (int64_t item = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; item < n; item += stride) {
        if (!a.is_back) {
            tokens[item] = from_float<T>(a.learned[item % a.n]);
            continue;
        }
        float sum = 0;
        for (int64_t row = 0; row < a.mb; row++) sum += to_float(tokens[row * a.n + item]);
        a.learned[item] += sum;
    }
}

/* Blocks for n items, which are counted in 31 bits; 0: too many. */
unsigned blocks_of(int64_t n, int threads) {
    return n > INT32_MAX ? 0 : (unsigned)((n + threads - 1) / threads);
}

template <typename T, int V>
cudaError_t forward_packs(cudaStream_t stream, const ki_cuda_tokens_args &a) {
    const int64_t n = a.mb * a.t * (a.c / V);
    const unsigned grid = blocks_of(n, THREADS);
    if (!grid) return cudaErrorInvalidValue;
    return KI_LAUNCH((tokens_forward<T, V>), grid, THREADS, 0, stream, a, (uint32_t)n, ki_divider_of(a.c / V),
                     ki_divider_of(a.t));
}

template <typename T, int V>
cudaError_t backward_packs(cudaStream_t stream, const ki_cuda_tokens_diff_args &a) {
    const int64_t n = a.t * (a.c / V);
    const unsigned grid = blocks_of(n, SMALL);
    if (!grid) return cudaErrorInvalidValue;
    return KI_LAUNCH((tokens_backward<T, V>), grid, SMALL, 0, stream, a, (uint32_t)n, ki_divider_of(a.c / V));
}

template <typename T, int V>
cudaError_t grid_packs(cudaStream_t stream, const ki_cuda_grid_args &a) {
    const int64_t n = a.mb * a.t * (a.c / V);
    const unsigned grid = blocks_of(n, THREADS);
    if (!grid) return cudaErrorInvalidValue;
    return KI_LAUNCH((grid_rows<T, V>), grid, THREADS, 0, stream, a, (uint32_t)n, ki_divider_of(a.c / V),
                     ki_divider_of(a.t));
}

template <typename T, int V>
cudaError_t token_packs(cudaStream_t stream, const ki_cuda_token_args &a) {
    const int64_t n = a.mb * (a.is_back ? a.t : 1) * (a.c / V);
    const unsigned grid = blocks_of(n, THREADS);
    if (!grid) return cudaErrorInvalidValue;
    return KI_LAUNCH((token_rows<T, V>), grid, THREADS, 0, stream, a, (uint32_t)n, ki_divider_of(a.c / V),
                     ki_divider_of(a.t));
}

template <typename T>
cudaError_t forward(cudaStream_t stream, const ki_cuda_tokens_args &a) {
    const bool packs = ki_fits_packs<T>(a.map, a.pitch, a.c) && ki_fits_packs<T>(a.tokens, a.c, a.c);
    return packs ? forward_packs<T, ki_pack<T>::N>(stream, a) : forward_packs<T, 1>(stream, a);
}

template <typename T>
cudaError_t backward(cudaStream_t stream, const ki_cuda_tokens_diff_args &a) {
    const bool packs =
        ki_fits_packs<T>(a.diff_map, a.pitch, a.c) && ki_fits_packs<T>(a.diff_tokens, a.c, a.c);
    return packs ? backward_packs<T, ki_pack<T>::N>(stream, a) : backward_packs<T, 1>(stream, a);
}

template <typename T>
cudaError_t grid_of(cudaStream_t stream, const ki_cuda_grid_args &a) {
    const bool packs = ki_fits_packs<T>(a.map, a.pitch, a.c) && ki_fits_packs<T>(a.tokens, a.c, a.c);
    return packs ? grid_packs<T, ki_pack<T>::N>(stream, a) : grid_packs<T, 1>(stream, a);
}

template <typename T>
cudaError_t token_of(cudaStream_t stream, const ki_cuda_token_args &a) {
    return ki_fits_packs<T>(a.tokens, a.c, a.c) ? token_packs<T, ki_pack<T>::N>(stream, a)
                                                : token_packs<T, 1>(stream, a);
}

} // namespace

extern "C" cudaError_t ki_cuda_positions(cudaStream_t stream, const ki_cuda_positions_args *args) {
    return KI_LAUNCH(positions, ki_blocks(args->h * args->w * args->c, THREADS, MOST_BLOCKS), THREADS, 0,
                     stream, *args);
}
extern "C" cudaError_t ki_cuda_tokens_forward(cudaStream_t stream, const ki_cuda_tokens_args *args) {
    return args->is_bf16 ? forward<ki_bf16>(stream, *args) : forward<float>(stream, *args);
}
extern "C" cudaError_t ki_cuda_tokens_backward(cudaStream_t stream, const ki_cuda_tokens_diff_args *args) {
    return args->is_bf16 ? backward<ki_bf16>(stream, *args) : backward<float>(stream, *args);
}
extern "C" cudaError_t ki_cuda_grid_rows(cudaStream_t stream, const ki_cuda_grid_args *args) {
    return args->is_bf16 ? grid_of<ki_bf16>(stream, *args) : grid_of<float>(stream, *args);
}
extern "C" cudaError_t ki_cuda_token_rows(cudaStream_t stream, const ki_cuda_token_args *args) {
    return args->is_bf16 ? token_of<ki_bf16>(stream, *args) : token_of<float>(stream, *args);
}
extern "C" cudaError_t ki_cuda_probe_rows(cudaStream_t stream, const ki_cuda_probe_args *args) {
    const unsigned grid = ki_blocks((args->is_back ? 1 : args->mb) * args->n, THREADS, MOST_BLOCKS);
    return args->is_bf16 ? KI_LAUNCH(probe_rows<ki_bf16>, grid, THREADS, 0, stream, *args)
                         : KI_LAUNCH(probe_rows<float>, grid, THREADS, 0, stream, *args);
}
