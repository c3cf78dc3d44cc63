/* Rows centred in float64, and products rounded to float. */
#include "backend/cuda/number.cuh"
#include "knn/cuda/kernels.h"

namespace {

enum { THREADS = 256 };

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

unsigned n_blocks(int64_t n) {
    const int64_t blocks = (n + THREADS - 1) / THREADS;
    return (unsigned)(blocks < 65535 ? blocks : 65535);
}

} // namespace

extern "C" cudaError_t ki_knn_center(cudaStream_t stream, const float *rows, const double *mean, double *out,
                                     int64_t n, int64_t dim) {
    return KI_LAUNCH(center, n_blocks(n * dim), THREADS, 0, stream, rows, mean, out, n, dim);
}

extern "C" cudaError_t ki_knn_round(cudaStream_t stream, const double *from, float *out, int64_t n) {
    return KI_LAUNCH(round_all, n_blocks(n), THREADS, 0, stream, from, out, n);
}
