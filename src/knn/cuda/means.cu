/* Means of some rows, summed in float64 in the order of their list, one thread a column, which gives the same bits as
 * the host (knn/kmeans.c); and what panels store about them (knn/panels.c). */
#include "backend/cuda/number.cuh"
#include "knn/cuda/kernels.h"

namespace {

enum { THREADS = 128 };

/* A block takes some columns of one mean. */
__global__ void move_means(ki_knn_moving m) {
    const int64_t k = (int64_t)blockIdx.y * THREADS + threadIdx.x;
    if (k >= m.dim) return;
    const int32_t c = m.which[blockIdx.x];
    const int64_t begin = m.begin[c], end = m.begin[c + 1];
    double sum = 0;
    for (int64_t i = begin; i < end; i++) sum += (double)m.rows[m.member[i] * m.dim + k];
    const float mean = (float)(sum / (double)(end - begin));
    m.mean[c * m.dim + k] = mean;
    m.centred[c * m.dim + k] = (float)((double)mean - m.center[k]);
}

/* One thread a mean: a sum in one order. The products are exact in float64. */
__global__ void halve_squares(ki_knn_moving m) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= m.n) return;
    const int32_t c = m.which[i];
    double half = 0;
    for (int64_t k = 0; k < m.dim; k++) {
        const double y = (double)m.centred[c * m.dim + k];
        half += y * y / 2;
    }
    m.half[c] = (float)half;
}

} // namespace

extern "C" cudaError_t ki_knn_move(cudaStream_t stream, const ki_knn_moving *m) {
    const dim3 grid((unsigned)m->n, (unsigned)((m->dim + THREADS - 1) / THREADS));
    KI_LAUNCH_TRY(move_means, grid, THREADS, 0, stream, *m);
    return KI_LAUNCH(halve_squares, (unsigned)((m->n + THREADS - 1) / THREADS), THREADS, 0, stream, *m);
}
