/* Normalising the rows of a matrix, its gradient, and sums over rows. */
#include "objective/cuda/rows.h"

#include <float.h>

#include "backend/cuda/number.cuh"

namespace {

const float EPS = 1e-12f;

int threads_of(int64_t dim) { return dim <= 32 ? 32 : dim <= 128 ? 64 : 128; }

__global__ void normalize(const float *x, int dim, float *y, int64_t pitch, float *norm, float *sq,
                          int32_t *fault) {
    KI_SHARED_ARRAY(double, room, 33);
    const int64_t at = (int64_t)blockIdx.x * dim;
    double sum = 0;
    for (int k = (int)threadIdx.x; k < dim; k += (int)blockDim.x)
        sum += (double)x[at + k] * (double)x[at + k];
    sum = ki_block_sum(sum, room);
    const float length = (float)sqrt(sum), inverse = 1 / (length > EPS ? length : EPS);
    double square = 0;
    if (y) {
        for (int k = (int)threadIdx.x; k < dim; k += (int)blockDim.x) {
            const float v = x[at + k] * inverse;
            y[blockIdx.x * pitch + k] = v;
            square += (double)v * (double)v;
        }
        if (sq) square = ki_block_sum(square, room);
    } else {
        square = sum;
    }
    if (threadIdx.x != 0) return;
    if (norm) norm[blockIdx.x] = length;
    if (sq) sq[blockIdx.x] = (float)square;
    /* Not NaN, not infinite: */
    if (fault && !(length <= FLT_MAX)) atomicMax(fault, 1);
}

__global__ void place_rows(const float *x, int64_t m, int64_t dim, float *y, int64_t pitch) {
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < m * dim; at += stride)
        y[at / dim * pitch + at % dim] = x[at];
}

__global__ void cut_rows(const float *x, int64_t m, int64_t dim, int64_t width, float *y) {
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < m * width; at += stride)
        y[at] = x[at / width * dim + at % width];
}

__global__ void add_cut(const float *x, int64_t m, int64_t width, float *y, int64_t pitch) {
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < m * width; at += stride)
        y[at / width * pitch + at % width] += x[at];
}

__global__ void normalize_backward(const float *y, const float *norm, const float *diff_y,
                                   const float *diff_more, int dim, bool add, float *diff_x) {
    KI_SHARED_ARRAY(double, room, 33);
    const int64_t at = (int64_t)blockIdx.x * dim;
    const float length = norm[blockIdx.x];
    const bool is_tiny = length < EPS;
    double dot = 0;
    for (int k = (int)threadIdx.x; k < dim; k += (int)blockDim.x) {
        const float diff = diff_y[at + k] + (diff_more ? diff_more[at + k] : 0);
        dot += (double)y[at + k] * (double)diff;
    }
    dot = ki_block_sum(dot, room);
    const float inverse = 1 / (is_tiny ? EPS : length), along = is_tiny ? 0 : (float)dot;
    for (int k = (int)threadIdx.x; k < dim; k += (int)blockDim.x) {
        const float diff = diff_y[at + k] + (diff_more ? diff_more[at + k] : 0);
        const float by_x = inverse * (diff - along * y[at + k]);
        diff_x[at + k] = add ? diff_x[at + k] + by_x : by_x;
    }
}

__global__ void total(const double *row_value, int n, double *value) {
    KI_SHARED_ARRAY(double, room, 33);
    double sum = 0;
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) sum += row_value[i];
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) *value = sum;
}

} // namespace

cudaError_t ki_cuda_rows_normalize(const float *x, int64_t m, int64_t dim, float *y, float *norm, float *sq,
                                   int32_t *fault, cudaStream_t stream) {
    return KI_LAUNCH(normalize, (unsigned)m, threads_of(dim), 0, stream, x, (int)dim, y, dim, norm, sq,
                     fault);
}

cudaError_t ki_cuda_rows_normalize_into(const float *x, int64_t m, int64_t dim, float *y, int64_t pitch,
                                        cudaStream_t stream) {
    return KI_LAUNCH(normalize, (unsigned)m, threads_of(dim), 0, stream, x, (int)dim, y, pitch, nullptr,
                     nullptr, nullptr);
}

cudaError_t ki_cuda_rows_place(const float *x, int64_t m, int64_t dim, float *y, int64_t pitch,
                               cudaStream_t stream) {
    return KI_LAUNCH(place_rows, ki_blocks(m * dim, 256, 4096), 256, 0, stream, x, m, dim, y, pitch);
}

cudaError_t ki_cuda_rows_cut(const float *x, int64_t m, int64_t dim, int64_t width, float *y,
                             cudaStream_t stream) {
    return KI_LAUNCH(cut_rows, ki_blocks(m * width, 256, 4096), 256, 0, stream, x, m, dim, width, y);
}

cudaError_t ki_cuda_rows_add_cut(const float *x, int64_t m, int64_t width, float *y, int64_t pitch,
                                 cudaStream_t stream) {
    return KI_LAUNCH(add_cut, ki_blocks(m * width, 256, 4096), 256, 0, stream, x, m, width, y, pitch);
}

cudaError_t ki_cuda_rows_normalize_backward(const float *y, const float *norm, const float *diff_y,
                                            const float *diff_more, int64_t m, int64_t dim, bool add,
                                            float *diff_x, cudaStream_t stream) {
    return KI_LAUNCH(normalize_backward, (unsigned)m, threads_of(dim), 0, stream, y, norm, diff_y, diff_more,
                     (int)dim, add, diff_x);
}

cudaError_t ki_cuda_rows_total(const double *row_value, int64_t n, double *value, cudaStream_t stream) {
    return KI_LAUNCH(total, 1, 256, 0, stream, row_value, n, value);
}
