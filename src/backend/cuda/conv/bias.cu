/* Biases and ReLU on rows of channels: for convolutions that could not do them inside, and the column sums
 * that are a bias' gradient. */
#include "backend/cuda/conv/kernels.h"
#include "backend/cuda/number.cuh"

enum { THREADS = 256, MOST_BLOCKS = 4096 };

/* Can a tensor be read in packs: do its rows consist of whole packs, aligned to 16 bytes? */
template <typename T>
static bool in_packs(const void *ptr, int64_t c, int64_t pitch) {
    const int n = ki_pack<T>::N;
    return ((uintptr_t)ptr & 15) == 0 && c % n == 0 && pitch % n == 0;
}

template <typename T, int V>
static __global__ void bias_relu_kernel(int64_t n_rows, int c, const T *src, int64_t src_pitch,
                                        const float *bias, int has_relu, T *dst, int64_t dst_pitch) {
    const int per_row = c / V;
    const int64_t n = n_rows * per_row, stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        const int64_t row = i / per_row;
        const int at = (int)(i - row * per_row) * V;
        ki_floats<T, V> x;
        x.load(src + row * src_pitch + at);
#pragma unroll
        for (int k = 0; k < V; k++) {
            if (bias) x.v[k] += bias[at + k];
            if (has_relu) x.v[k] = fmaxf(x.v[k], 0.0f);
        }
        x.store(dst + row * dst_pitch + at);
    }
}

template <typename T>
static cudaError_t bias_relu(int64_t n_rows, int64_t c, const void *src, int64_t src_pitch, const float *bias,
                             bool has_relu, void *dst, int64_t dst_pitch, cudaStream_t stream) {
    const int N = ki_pack<T>::N;
    if (in_packs<T>(src, c, src_pitch) && in_packs<T>(dst, c, dst_pitch))
        return KI_LAUNCH((bias_relu_kernel<T, ki_pack<T>::N>),
                         ki_blocks(n_rows * (c / N), THREADS, MOST_BLOCKS), THREADS, 0, stream, n_rows,
                         (int)c, (const T *)src, src_pitch, bias, (int)has_relu, (T *)dst, dst_pitch);
    return KI_LAUNCH((bias_relu_kernel<T, 1>), ki_blocks(n_rows * c, THREADS, MOST_BLOCKS), THREADS, 0,
                     stream, n_rows, (int)c, (const T *)src, src_pitch, bias, (int)has_relu, (T *)dst,
                     dst_pitch);
}

extern "C" cudaError_t ki_cuda_bias_relu(ki_number type, int64_t n_rows, int64_t c, const void *src,
                                         int64_t src_pitch, const float *bias, bool has_relu, void *dst,
                                         int64_t dst_pitch, cudaStream_t stream) {
    if (type == KI_NUMBER_BF16)
        return bias_relu<ki_bf16>(n_rows, c, src, src_pitch, bias, has_relu, dst, dst_pitch, stream);
    return bias_relu<float>(n_rows, c, src, src_pitch, bias, has_relu, dst, dst_pitch, stream);
}

/* A block takes `lanes` packs of channels and a run of rows, THREADS / lanes rows at a time, and at the end adds
 * these up in order. SUMS: of one part, and nothing else; with no store between them more loads are in flight. */
template <typename T, int V, bool ONE, bool SUMS>
static __global__ void diff_rows_kernel(ki_diff_rows a, int lanes) {
    KI_SHARED_ARRAY(float, room, THREADS *V);
    const int lane = (int)threadIdx.x % lanes, row0 = (int)threadIdx.x / lanes, n_row = THREADS / lanes;
    const int at = ((int)blockIdx.x * lanes + lane) * V, c = (int)a.c;
    const int64_t begin = a.n_rows * blockIdx.y / a.n_runs, end = a.n_rows * (blockIdx.y + 1) / a.n_runs;
    float sum[V];
#pragma unroll
    for (int k = 0; k < V; k++) sum[k] = 0;
    if (SUMS && at < c) {
        int64_t row = begin + row0;
        for (; row + 7 * n_row < end; row += 8 * n_row) {
            ki_raw<T, V> x[8];
#pragma unroll
            for (int i = 0; i < 8; i++) x[i].load((const T *)a.part[0] + (row + i * n_row) * a.pitch + at);
#pragma unroll
            for (int i = 0; i < 8; i++) {
                const ki_floats<T, V> values = x[i].get();
#pragma unroll
                for (int k = 0; k < V; k++) sum[k] += values.v[k];
            }
        }
        for (; row < end; row += n_row) {
            ki_floats<T, V> x;
            x.load((const T *)a.part[0] + row * a.pitch + at);
#pragma unroll
            for (int k = 0; k < V; k++) sum[k] += x.v[k];
        }
    } else if (at < c) {
#pragma unroll 4
        for (int64_t row = begin + row0; row < end; row += n_row) {
            ki_floats<T, V> x, other;
            x.load((const T *)a.part[0] + row * a.pitch + at);
            for (int i = 1; !ONE && i < a.n_parts; i++) {
                other.load((const T *)a.part[i] + row * a.pitch + at);
#pragma unroll
                for (int k = 0; k < V; k++) x.v[k] += other.v[k];
            }
            if (a.mask) {
                other.load((const T *)a.mask + row * a.pitch + at);
#pragma unroll
                for (int k = 0; k < V; k++) x.v[k] = other.v[k] > 0 ? x.v[k] : 0;
            }
#pragma unroll
            for (int k = 0; k < V; k++) sum[k] += x.v[k];
            if (a.out) x.store((T *)a.out + row * c + at);
        }
    }
    if (!a.sums) return;
#pragma unroll
    for (int k = 0; k < V; k++) room[k * THREADS + (int)threadIdx.x] = sum[k];
    __syncthreads();
    for (int i = (int)threadIdx.x; i < lanes * V; i += THREADS) {
        const int k = i / lanes, l = i % lanes;
        const int to = ((int)blockIdx.x * lanes + l) * V + k;
        float total = 0;
        for (int row = 0; row < n_row; row++) total += room[k * THREADS + row * lanes + l];
        if (to < c) a.sums[(int64_t)blockIdx.y * c + to] = total;
    }
}

static int lanes_of(int64_t n) {
    int lanes = 1;
    while (lanes < n && lanes < 32) lanes *= 2;
    return lanes;
}

extern "C" int ki_cuda_diff_runs(int64_t n_rows, int64_t c) {
    /* Enough blocks to fill the device several times, each with work for a few rounds. */
    const int64_t n_columns = (c + 255) / 256, most = (n_rows + 31) / 32;
    int64_t n = 660 / n_columns;
    if (n > most) n = most;
    return n < 1 ? 1 : (int)n;
}

template <typename T>
static cudaError_t diff_rows(const ki_diff_rows *a, cudaStream_t stream) {
    bool packs = in_packs<T>(a->mask, a->c, a->pitch) && in_packs<T>(a->out, a->c, a->c);
    for (int i = 0; i < a->n_parts; i++) packs = packs && in_packs<T>(a->part[i], a->c, a->pitch);
    const int64_t n = packs ? a->c / ki_pack<T>::N : a->c;
    const int lanes = lanes_of(n);
    const dim3 grid((unsigned)((n + lanes - 1) / lanes), (unsigned)a->n_runs);
    const int N = ki_pack<T>::N;
    if (packs && a->n_parts == 1 && !a->mask && !a->out)
        return KI_LAUNCH((diff_rows_kernel<T, N, true, true>), grid, THREADS, 0, stream, *a, lanes);
    if (packs && a->n_parts == 1)
        return KI_LAUNCH((diff_rows_kernel<T, N, true, false>), grid, THREADS, 0, stream, *a, lanes);
    if (packs) return KI_LAUNCH((diff_rows_kernel<T, N, false, false>), grid, THREADS, 0, stream, *a, lanes);
    return KI_LAUNCH((diff_rows_kernel<T, 1, false, false>), grid, THREADS, 0, stream, *a, lanes);
}

extern "C" cudaError_t ki_cuda_diff_rows(ki_number type, const ki_diff_rows *args, cudaStream_t stream) {
    return type == KI_NUMBER_BF16 ? diff_rows<ki_bf16>(args, stream) : diff_rows<float>(args, stream);
}
