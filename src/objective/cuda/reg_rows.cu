#include "objective/cuda/reg_rows.h"

#include "backend/cuda/number.cuh"
#include "core/rng.h"

enum { THREADS = 128, SUM_THREADS = 256 };

static __global__ void total(const double *row_value, int n, double *value) {
    KI_SHARED_ARRAY(double, room, 33);
    double sum = 0;
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) sum += row_value[i];
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) *value = sum;
}

extern "C" cudaError_t ki_cuda_rows_total(const double *row_value, int64_t n, double *value,
                                          cudaStream_t stream) {
    return KI_LAUNCH(total, 1, SUM_THREADS, 0, stream, row_value, n, value);
}

static __global__ void entropy_rows(const float *s, int m, float eta, float *g, double *row_value) {
    KI_SHARED_ARRAY(double, room, 33);
    const int i = (int)blockIdx.x;
    const int64_t row = (int64_t)i * m;
    const float share = m > 1 ? (float)(1 / ((double)m * (double)(m - 1))) : 0;
    double sum = 0;
    for (int j = (int)threadIdx.x; j < m; j += (int)blockDim.x) {
        const float z = eta - s[row + j], t = expf(-fabsf(z)), r = t / (1 + t);
        if (j != i) sum += (double)(log1pf(t) + fabsf(z) * r);
        g[row + j] = j == i ? 0 : -share * z * r * (1 - r);
    }
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) row_value[i] = m > 1 ? -sum / ((double)m * (double)(m - 1)) : 0;
}

extern "C" cudaError_t ki_cuda_entropy_rows(const float *s, int64_t m, double eta, float *g,
                                            double *row_value, cudaStream_t stream) {
    return KI_LAUNCH(entropy_rows, (unsigned)m, THREADS, 0, stream, s, m, eta, g, row_value);
}

static __global__ void intra_class_rows(const float *s, const int32_t *label, int m, float *g,
                                        double *row_value) {
    KI_SHARED_ARRAY(double, room, 33);
    const int i = (int)blockIdx.x;
    const int64_t row = (int64_t)i * m;
    double count = 0, sum = 0;
    for (int j = (int)threadIdx.x; j < m; j += (int)blockDim.x) count += j != i && label[j] == label[i];
    count = ki_block_sum(count, room);
    const double share = count > 0 ? 1 / (count * (count + 1)) : 0;
    for (int j = (int)threadIdx.x; j < m; j += (int)blockDim.x) {
        const bool is_positive = j != i && label[j] == label[i];
        const float e = is_positive ? expf(-0.5f * s[row + j]) : 0;
        g[row + j] = (float)(0.5 * share) * e;
        sum += (double)e;
    }
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) row_value[i] = -share * sum;
}

extern "C" cudaError_t ki_cuda_intra_class_rows(const float *s, const int32_t *label, int64_t m, float *g,
                                                double *row_value, cudaStream_t stream) {
    return KI_LAUNCH(intra_class_rows, (unsigned)m, THREADS, 0, stream, s, label, m, g, row_value);
}

static __global__ void orthogonal_sums(const float *s, const int32_t *label, int m, double *row_sum) {
    KI_SHARED_ARRAY(double, room, 33);
    const int i = (int)blockIdx.x;
    double sum = 0, square = 0, count = 0;
    for (int j = (int)threadIdx.x; j < m; j += (int)blockDim.x) {
        if (label[j] == label[i]) continue;
        const double v = (double)s[(int64_t)i * m + j];
        sum += v;
        square += v * v;
        count += 1;
    }
    sum = ki_block_sum(sum, room);
    square = ki_block_sum(square, room);
    count = ki_block_sum(count, room);
    if (threadIdx.x == 0) row_sum[i] = sum, row_sum[m + i] = square, row_sum[2 * m + i] = count;
}

/* dL/ds = coefficient[0] + coefficient[1] s. */
static __global__ void orthogonal_finish(const double *row_sum, int m, int dim, float *coefficient,
                                         double *value) {
    KI_SHARED_ARRAY(double, room, 33);
    double sum[3];
    for (int k = 0; k < 3; k++) {
        double part = 0;
        for (int i = (int)threadIdx.x; i < m; i += (int)blockDim.x) part += row_sum[k * m + i];
        sum[k] = ki_block_sum(part, room);
    }
    if (threadIdx.x != 0) return;
    const double n = sum[2] > 0 ? sum[2] : 1, mean = sum[0] / n, excess = sum[1] / n - 1 / (double)dim;
    *value = sum[2] > 0 ? mean * mean + (excess > 0 ? excess : 0) : 0;
    coefficient[0] = (float)(2 * mean / n);
    coefficient[1] = excess > 0 ? (float)(2 / n) : 0;
}

static __global__ void orthogonal_back(const float *s, const int32_t *label, int m, const float *coefficient,
                                       float *g) {
    const int i = (int)blockIdx.x;
    const int64_t row = (int64_t)i * m;
    for (int j = (int)threadIdx.x; j < m; j += (int)blockDim.x)
        g[row + j] = label[j] != label[i] ? coefficient[0] + coefficient[1] * s[row + j] : 0;
}

extern "C" cudaError_t ki_cuda_orthogonal(const float *s, const int32_t *label, int64_t m, int64_t dim,
                                          float *g, double *row_sum, float *coefficient, double *value,
                                          cudaStream_t stream) {
    KI_LAUNCH_TRY(orthogonal_sums, (unsigned)m, THREADS, 0, stream, s, label, m, row_sum);
    KI_LAUNCH_TRY(orthogonal_finish, 1, SUM_THREADS, 0, stream, row_sum, m, dim, coefficient, value);
    return KI_LAUNCH(orthogonal_back, (unsigned)m, THREADS, 0, stream, s, label, m, coefficient, g);
}

static __global__ void row_norm(const float *w, int64_t rows, int cols, double lam, const float *weight,
                                float *diff, double *row_value) {
    KI_SHARED_ARRAY(double, room, 33);
    const int64_t at = (int64_t)blockIdx.x * cols;
    double sum = 0;
    for (int k = (int)threadIdx.x; k < cols; k += (int)blockDim.x)
        sum += (double)w[at + k] * (double)w[at + k];
    const double share = lam / (double)rows, excess = ki_block_sum(sum, room) - 1;
    const float factor = *weight * (float)(4 * share * excess);
    for (int k = (int)threadIdx.x; k < cols; k += (int)blockDim.x) diff[at + k] += factor * w[at + k];
    if (threadIdx.x == 0) row_value[blockIdx.x] = share * excess * excess;
}

extern "C" cudaError_t ki_cuda_row_norm(const float *w, int64_t rows, int64_t cols, double lam,
                                        const float *weight, float *diff, double *row_value,
                                        cudaStream_t stream) {
    return KI_LAUNCH(row_norm, (unsigned)rows, SUM_THREADS, 0, stream, w, rows, cols, lam, weight, diff,
                     row_value);
}
