/* Global orthogonal regularization on the device (global_orthogonal.c has the formulas). */
#include "objective/reg/over_pairs.cuh"

namespace {

/* row_sum [3, m]: the sum, the sum of squares and the number of different-class pairs of each row. */
__global__ void orthogonal_sums(const float *s, const int32_t *label, int m, double *row_sum) {
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
__global__ void orthogonal_finish(const double *row_sum, int m, int dim, float *coefficient, double *value) {
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

__global__ void orthogonal_back(const float *s, const int32_t *label, int m, const float *coefficient,
                                float *g) {
    const int i = (int)blockIdx.x;
    const int64_t row = (int64_t)i * m;
    for (int j = (int)threadIdx.x; j < m; j += (int)blockDim.x)
        g[row + j] = label[j] != label[i] ? coefficient[0] + coefficient[1] * s[row + j] : 0;
}

cudaError_t middle(const ki_cuda_reg_in *in, const ki_cuda_over_pairs *at) {
    const int64_t m = in->m, dim = in->tap[KI_TAP_EMBEDDING].cols;
    KI_LAUNCH_TRY(orthogonal_sums, (unsigned)m, 128, 0, in->stream, at->s, in->label, m, at->row);
    KI_LAUNCH_TRY(orthogonal_finish, 1, 256, 0, in->stream, at->row, m, dim, at->coefficient, in->value);
    return KI_LAUNCH(orthogonal_back, (unsigned)m, 128, 0, in->stream, at->s, in->label, m, at->coefficient,
                     at->s);
}

kith_status reg_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    (void)self;
    return ki_over_pairs_launch(in, KI_PAIRWISE_INNER, middle, scratch, err);
}

} // namespace

const ki_cuda_reg ki_cuda_reg_global_orthogonal = {.open = ki_over_pairs_open, .launch = reg_launch};
