/* Kernels of several layers on the device (kernels.h has the formulas): their product and its derivative by each
 * layer's distances, in one pass over the pairs once the bandwidths are known. */
#include "objective/reg/kernels.cuh"

#include "objective/cuda/pairwise.h"

namespace {

enum { THREADS = 128, SUM_THREADS = 256 };
#define MOST_KERNEL 1e30
#define MOST_EXPONENT 69.07f /* ln 1e30 */

struct layers {
    int n;
    bool is_mmd;              /* joint_mmd's coefficients, else joint_similarity's */
    int kind[KI_MOST_LAYERS]; /* ki_layer_kind */
    int mixed[KI_MOST_LAYERS];
    int degree[KI_MOST_LAYERS];
    float given[KI_MOST_LAYERS]; /* bandwidth; 0: from the batch, never of poly and mgf */
    float *s[KI_MOST_LAYERS];    /* [m, m] each; they become g */
    double *row_sum;             /* [n + 1, m] */
    double *sum;                 /* [n + 1]: of all distances of a layer; pairs of different classes */
    double *row_value;           /* [m] */
};

/* Row sums of distances for block (i, layer); the index after the last layer means pairs of different classes. */
__global__ void layer_sums(layers o, const int32_t *label, int m) {
    KI_SHARED_ARRAY(double, room, 33);
    const int i = (int)blockIdx.x, layer = (int)blockIdx.y;
    double sum = 0;
    for (int j = (int)threadIdx.x; j < m; j += (int)blockDim.x)
        sum += layer == o.n ? (double)(label[j] != label[i]) : (double)o.s[layer][(int64_t)i * m + j];
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) o.row_sum[(int64_t)layer * m + i] = sum;
}

__global__ void layer_totals(layers o, int m) {
    KI_SHARED_ARRAY(double, room, 33);
    double sum = 0;
    for (int i = (int)threadIdx.x; i < m; i += (int)blockDim.x) sum += o.row_sum[(int64_t)blockIdx.x * m + i];
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) o.sum[blockIdx.x] = sum;
}

__device__ void mixture(float bandwidth, int n, float s, float *k, float *slope) {
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

__device__ void poly(float bandwidth, int degree, float s, float *k, float *slope) {
    const double base = (double)s / (double)bandwidth + 1;
    double power = 1;
    for (int t = 1; t < degree; t++) power *= base;
    const double value = power * base;
    const bool is_bounded = fabs(value) < MOST_KERNEL;
    *k = (float)(is_bounded ? value : value > 0 ? MOST_KERNEL : -MOST_KERNEL);
    *slope = (float)(is_bounded ? (double)degree * power / (double)bandwidth : 0);
}

__device__ double bounded(double v) {
    return v < -MOST_KERNEL ? -MOST_KERNEL : v > MOST_KERNEL ? MOST_KERNEL : v;
}

__global__ void product_rows(layers o, const int32_t *label, int m) {
    KI_SHARED_ARRAY(double, room, 33);
    const int i = (int)blockIdx.x;
    const double n = o.sum[o.n], own = (double)m - o.row_sum[(int64_t)o.n * m + i];
    const double different = n > 0 ? (o.is_mmd ? 2 : 1) / n : 0;
    const double same = n > 0 && o.is_mmd ? -2 * ((double)m - own) / (n * own) : 0;
    double sum = 0;
    for (int j = (int)threadIdx.x; j < m; j += (int)blockDim.x) {
        const int64_t at = (int64_t)i * m + j;
        const double c = label[j] != label[i] ? different : same;
        float k[KI_MOST_LAYERS], slope[KI_MOST_LAYERS];
        double whole = c;
#pragma unroll
        for (int l = 0; l < KI_MOST_LAYERS; l++) {
            k[l] = 1, slope[l] = 0;
            if (l >= o.n) continue;
            const float s = o.s[l][at];
            if (o.kind[l] == KI_LAYER_POLY) {
                poly(o.given[l], o.degree[l], s, &k[l], &slope[l]);
            } else if (o.kind[l] == KI_LAYER_MGF) {
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
        for (int l = 0; l < KI_MOST_LAYERS; l++) {
            if (l >= o.n) continue;
            double others = c;
#pragma unroll
            for (int b = 0; b < KI_MOST_LAYERS; b++) others *= b == l ? 1 : (double)k[b];
            o.s[l][at] = (float)bounded(others * (double)slope[l]);
        }
    }
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) o.row_value[i] = sum;
}

layers place(const ki_cuda_reg_in *in, const ki_layers &named, bool is_mmd, ki_cuda_scratch *room) {
    layers o = {};
    o.n = named.n;
    o.is_mmd = is_mmd;
    for (int i = 0; i < named.n; i++) {
        o.kind[i] = named.kernel[i].kind;
        o.mixed[i] = (int)named.kernel[i].n;
        o.degree[i] = (int)named.kernel[i].degree;
        o.given[i] = (float)named.kernel[i].bandwidth;
        o.s[i] = ki_cuda_scratch_floats(room, in->m * in->m);
    }
    o.row_sum = ki_cuda_scratch_doubles(room, (named.n + 1) * in->m);
    o.sum = ki_cuda_scratch_doubles(room, named.n + 1);
    o.row_value = ki_cuda_scratch_doubles(room, in->m);
    return o;
}

kith_status read(const ki_cuda_reg_in *in, ki_layers *ret_named, kith_error *err) {
    return ki_layers_read(static_cast<const ki_layers_options *>(in->settings), in->name, ret_named, err);
}

ki_pairwise_measure measure_of(int kind) {
    return kind == KI_LAYER_GAUSSIAN  ? KI_PAIRWISE_SQUARE
           : kind == KI_LAYER_LAPLACE ? KI_PAIRWISE_L1
                                      : KI_PAIRWISE_INNER;
}

} // namespace

kith_status ki_cuda_layers_open(const ki_cuda_reg_in *in, void **ret_self, size_t *ret_scratch_bytes,
                                kith_error *err) {
    ki_cuda_scratch room = {};
    ki_layers named;
    (void)ret_self;
    KI_TRY(read(in, &named, err));
    place(in, named, false, &room);
    *ret_scratch_bytes = room.used;
    return KITH_OK;
}

kith_status ki_cuda_layers_launch(const ki_cuda_reg_in *in, bool is_mmd, void *scratch, kith_error *err) {
    ki_cuda_scratch room = {static_cast<char *>(scratch), 0};
    ki_layers named;
    KI_TRY(read(in, &named, err));
    const layers o = place(in, named, is_mmd, &room);
    const dim3 rows((unsigned)in->m, (unsigned)o.n + 1);
    for (int i = 0; i < o.n; i++) {
        const ki_cuda_tap &x = in->tap[named.tap[i]];
        KI_CUDA(ki_cuda_pairwise(measure_of(o.kind[i]), ki_tap_floats(x), in->m, x.cols, NULL, o.s[i],
                                 in->stream));
    }
    KI_CUDA(KI_LAUNCH(layer_sums, rows, THREADS, 0, in->stream, o, in->label, in->m));
    KI_CUDA(KI_LAUNCH(layer_totals, (unsigned)o.n + 1, SUM_THREADS, 0, in->stream, o, in->m));
    KI_CUDA(KI_LAUNCH(product_rows, (unsigned)in->m, THREADS, 0, in->stream, o, in->label, in->m));
    KI_CUDA(ki_cuda_rows_total(o.row_value, in->m, in->value, in->stream));
    for (int i = 0; i < o.n; i++) {
        const ki_cuda_tap &x = in->tap[named.tap[i]];
        KI_CUDA(ki_cuda_pairwise_back(measure_of(o.kind[i]), ki_tap_floats(x), o.s[i], in->m, x.cols, NULL,
                                      in->weight, true, ki_tap_diff(x), in->stream));
    }
    return KITH_OK;
}
