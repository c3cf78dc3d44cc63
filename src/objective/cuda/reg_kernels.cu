/* Kernels of several layers, their product, and its derivative by each layer's distances, in one pass over
 * the pairs once the bandwidths are known. */
#include "backend/cuda/number.cuh"
#include "objective/cuda/reg_rows.h"

enum { THREADS = 128, SUM_THREADS = 256 };
#define MOST_KERNEL 1e30
#define MOST_EXPONENT 69.07f /* ln 1e30 */

/* Row sums of distances for block (i, layer); the last layer's index stands for pairs of different classes. */
static __global__ void layer_sums(ki_cuda_layers o, const int32_t *label, int m) {
    KI_SHARED_ARRAY(double, room, 33);
    const int i = (int)blockIdx.x, layer = (int)blockIdx.y;
    double sum = 0;
    for (int j = (int)threadIdx.x; j < m; j += (int)blockDim.x)
        sum += layer == o.n ? (double)(label[j] != label[i]) : (double)o.s[layer][(int64_t)i * m + j];
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) o.row_sum[(int64_t)layer * m + i] = sum;
}

static __global__ void layer_totals(ki_cuda_layers o, int m) {
    KI_SHARED_ARRAY(double, room, 33);
    double sum = 0;
    for (int i = (int)threadIdx.x; i < m; i += (int)blockDim.x) sum += o.row_sum[(int64_t)blockIdx.x * m + i];
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) o.sum[blockIdx.x] = sum;
}

static __device__ void mixture(float bandwidth, int n, float s, float *k, float *slope) {
    *k = *slope = 0;
    if (!(bandwidth > 0)) { /* all points coincide */
        *k = 1;
        return;
    }
    for (int t = 0; t < n; t++) {
        const float a = -1 / (bandwidth * (float)ldexp(1.0, t - n / 2)), e = expf(a * s);
        *k += e / (float)n;
        *slope += a * e / (float)n;
    }
}

static __device__ void poly(float bandwidth, int degree, float s, float *k, float *slope) {
    const double base = (double)s / (double)bandwidth + 1;
    double power = 1;
    for (int t = 1; t < degree; t++) power *= base;
    const double value = power * base;
    const bool is_bounded = fabs(value) < MOST_KERNEL;
    *k = (float)(is_bounded ? value : value > 0 ? MOST_KERNEL : -MOST_KERNEL);
    *slope = (float)(is_bounded ? (double)degree * power / (double)bandwidth : 0);
}

static __device__ double bounded(double v) {
    return v < -MOST_KERNEL ? -MOST_KERNEL : v > MOST_KERNEL ? MOST_KERNEL : v;
}

static __global__ void product_rows(ki_cuda_layers o, const int32_t *label, int m) {
    KI_SHARED_ARRAY(double, room, 33);
    const int i = (int)blockIdx.x;
    const double n = o.sum[o.n], own = (double)m - o.row_sum[(int64_t)o.n * m + i];
    const double different = n > 0 ? (o.is_mmd ? 2 : 1) / n : 0;
    const double same = n > 0 && o.is_mmd ? -2 * ((double)m - own) / (n * own) : 0;
    double sum = 0;
    for (int j = (int)threadIdx.x; j < m; j += (int)blockDim.x) {
        const int64_t at = (int64_t)i * m + j;
        const double c = label[j] != label[i] ? different : same;
        float k[KI_CUDA_MOST_LAYERS], slope[KI_CUDA_MOST_LAYERS];
        double whole = c;
#pragma unroll
        for (int l = 0; l < KI_CUDA_MOST_LAYERS; l++) {
            k[l] = 1, slope[l] = 0;
            if (l >= o.n) continue;
            const float s = o.s[l][at];
            if (o.kind[l] == KI_CUDA_POLY) {
                poly(o.given[l], o.degree[l], s, &k[l], &slope[l]);
            } else if (o.kind[l] == KI_CUDA_MGF) {
                const float most = MOST_EXPONENT * o.given[l];
                k[l] = expf(fminf(s, most) / o.given[l]);
                slope[l] = s < most ? k[l] / o.given[l] : 0;
            } else {
                const double pairs = (double)m * (double)(m - 1);
                const float b = o.given[l] > 0 || m < 2 ? o.given[l] : (float)(o.sum[l] / pairs);
                mixture(b, o.mixed[l], s, &k[l], &slope[l]);
            }
            whole *= (double)k[l];
        }
        sum += bounded(whole);
#pragma unroll
        for (int l = 0; l < KI_CUDA_MOST_LAYERS; l++) {
            if (l >= o.n) continue;
            double others = c;
#pragma unroll
            for (int b = 0; b < KI_CUDA_MOST_LAYERS; b++) others *= b == l ? 1 : (double)k[b];
            o.s[l][at] = (float)bounded(others * (double)slope[l]);
        }
    }
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) o.row_value[i] = sum;
}

extern "C" cudaError_t ki_cuda_layers_rows(const ki_cuda_layers *layers, const int32_t *label, int64_t m,
                                           double *value, cudaStream_t stream) {
    const dim3 rows((unsigned)m, (unsigned)layers->n + 1);
    KI_LAUNCH_TRY(layer_sums, rows, THREADS, 0, stream, *layers, label, m);
    KI_LAUNCH_TRY(layer_totals, (unsigned)layers->n + 1, SUM_THREADS, 0, stream, *layers, m);
    KI_LAUNCH_TRY(product_rows, (unsigned)m, THREADS, 0, stream, *layers, label, m);
    return ki_cuda_rows_total(layers->row_value, m, value, stream);
}
