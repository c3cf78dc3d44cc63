/* Intra-class attraction on the device (intra_class.c has the formulas). */
#include "objective/reg/over_pairs.cuh"

namespace {

__global__ void intra_class_rows(const float *s, const int32_t *label, int m, float *g, double *row_value) {
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

cudaError_t middle(const ki_cuda_reg_in *in, const ki_cuda_over_pairs *at) {
    KI_LAUNCH_TRY(intra_class_rows, (unsigned)in->m, 128, 0, in->stream, at->s, in->label, in->m, at->s,
                  at->row);
    return ki_cuda_rows_total(at->row, in->m, in->value, in->stream);
}

kith_status reg_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    (void)self;
    return ki_over_pairs_launch(in, KI_PAIRWISE_SQUARE, middle, scratch, err);
}

} // namespace

const ki_cuda_reg ki_cuda_reg_intra_class = {.open = ki_over_pairs_open, .launch = reg_launch};
