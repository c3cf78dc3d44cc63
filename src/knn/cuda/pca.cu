/* Sums of columns, rows centred in float64, and products rounded to float. */
#include "backend/cuda/number.cuh"
#include "knn/cuda/kernels.h"

namespace {

enum { THREADS = 256, MOST_BLOCKS = 65535 };

__global__ void center(const float *rows, const double *mean, double *out, int64_t n, int64_t dim) {
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < n * dim; at += stride)
        out[at] = (double)rows[at] - mean[at % dim];
}

__global__ void round_all(const double *from, float *out, int64_t n) {
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < n; at += stride)
        out[at] = (float)from[at];
}

/* One thread a column, so that a sum has one order. */
__global__ void add_columns(const float *rows, const double *mean, double *sum, int64_t n, int64_t dim) {
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k >= dim) return;
    double all = sum[k];
    for (int64_t i = 0; i < n; i++) {
        const double x = (double)rows[i * dim + k];
        all += mean ? (x - mean[k]) * (x - mean[k]) : x;
    }
    sum[k] = all;
}

} // namespace

extern "C" cudaError_t ki_knn_center(cudaStream_t stream, const float *rows, const double *mean, double *out,
                                     int64_t n, int64_t dim) {
    return KI_LAUNCH(center, ki_blocks(n * dim, THREADS, MOST_BLOCKS), THREADS, 0, stream, rows, mean, out, n,
                     dim);
}

extern "C" cudaError_t ki_knn_round(cudaStream_t stream, const double *from, float *out, int64_t n) {
    return KI_LAUNCH(round_all, ki_blocks(n, THREADS, MOST_BLOCKS), THREADS, 0, stream, from, out, n);
}

extern "C" cudaError_t ki_knn_add_columns(cudaStream_t stream, const float *rows, const double *mean,
                                          double *sum, int64_t n, int64_t dim) {
    return KI_LAUNCH(add_columns, (unsigned)((dim + THREADS - 1) / THREADS), THREADS, 0, stream, rows, mean,
                     sum, n, dim);
}
