/* The entropy regularizer on the device (entropy.c has the formulas). */
#include "objective/reg/entropy.h"

#include "objective/reg/over_pairs.cuh"

namespace {

__global__ void entropy_rows(const float *s, int m, float eta, float *g, double *row_value) {
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

cudaError_t middle(const ki_cuda_reg_in *in, const ki_cuda_over_pairs *at) {
    const double eta = static_cast<const ki_entropy_settings *>(in->settings)->eta;
    KI_LAUNCH_TRY(entropy_rows, (unsigned)in->m, 128, 0, in->stream, at->s, in->m, eta, at->s, at->row);
    return ki_cuda_rows_total(at->row, in->m, in->value, in->stream);
}

kith_status reg_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    (void)self;
    return ki_over_pairs_launch(in, KI_PAIRWISE_SQUARE, middle, scratch, err);
}

} // namespace

const ki_cuda_reg ki_cuda_reg_entropy = {.open = ki_over_pairs_open, .launch = reg_launch};
