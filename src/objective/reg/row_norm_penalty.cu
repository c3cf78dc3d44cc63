/* The penalty on row norms of the embedding layer, on the device (row_norm_penalty.c has the formula). */
#include "objective/reg/row_norm_penalty.h"

#include "objective/cuda/reg.cuh"

namespace {

__global__ void row_norm(const float *w, int64_t rows, int cols, double lam, const float *weight, float *diff,
                         double *row_value) {
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

kith_status reg_open(const ki_cuda_reg_in *in, void **ret_self, size_t *ret_scratch_bytes, kith_error *err) {
    (void)ret_self, (void)err;
    *ret_scratch_bytes = (size_t)in->tap[KI_TAP_WEIGHT].rows * sizeof(double);
    return KITH_OK;
}

kith_status reg_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    const ki_row_norm_penalty_settings *o = static_cast<const ki_row_norm_penalty_settings *>(in->settings);
    const ki_cuda_tap &w = in->tap[KI_TAP_WEIGHT];
    double *row_value = static_cast<double *>(scratch);
    (void)self;
    KI_CUDA(KI_LAUNCH(row_norm, (unsigned)w.rows, 256, 0, in->stream, ki_tap_floats(w), w.rows, w.cols,
                      o->lam, in->weight, ki_tap_diff(w), row_value));
    KI_CUDA(ki_cuda_rows_total(row_value, w.rows, in->value, in->stream));
    return KITH_OK;
}

} // namespace

const ki_cuda_reg ki_cuda_reg_row_norm_penalty = {.open = reg_open, .launch = reg_launch};
