/* The L2 penalty on the norms of embeddings, on the device (norm_l2.c has the formula). */
#include "objective/cuda/reg.cuh"

namespace {

/* A part of the row's |x|^2, and its gradient. */
__global__ void square_rows(const float *x, int dim, float factor, const float *weight, double *part,
                            float *dst) {
    KI_SHARED_ARRAY(double, room, 33);
    const int64_t at = (int64_t)blockIdx.x * dim;
    const float scale = *weight * 2 * factor;
    double sum = 0;
    for (int k = (int)threadIdx.x; k < dim; k += (int)blockDim.x) {
        const float v = x[at + k];
        sum += (double)v * (double)v;
        dst[at + k] += scale * v;
    }
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

__global__ void add_up(const double *part, int m, double factor, double *value) {
    KI_SHARED_ARRAY(double, room, 33);
    double sum = 0;
    for (int i = (int)threadIdx.x; i < m; i += (int)blockDim.x) sum += part[i];
    sum = ki_block_sum(sum, room);
    if (threadIdx.x == 0) *value = factor * sum;
}

kith_status reg_open(const ki_cuda_reg_in *in, void **ret_self, size_t *ret_scratch_bytes, kith_error *err) {
    (void)ret_self, (void)err;
    *ret_scratch_bytes = (size_t)in->m * sizeof(double);
    return KITH_OK;
}

kith_status reg_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    const ki_cuda_tap &x = in->tap[KI_TAP_EMBEDDING];
    const double factor = 1 / (double)in->m;
    double *part = static_cast<double *>(scratch);
    (void)self;
    KI_CUDA(KI_LAUNCH(square_rows, (unsigned)in->m,
                      x.cols <= 32    ? 32
                      : x.cols <= 128 ? 64
                                      : 128,
                      0, in->stream, ki_tap_floats(x), x.cols, factor, in->weight, part, ki_tap_diff(x)));
    KI_CUDA(KI_LAUNCH(add_up, 1, 128, 0, in->stream, part, in->m, factor, in->value));
    return KITH_OK;
}

} // namespace

const ki_cuda_reg ki_cuda_reg_norm_l2 = {.open = reg_open, .launch = reg_launch};
