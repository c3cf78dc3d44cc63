/* reg/row_norm_penalty.c on the device. */
#include "backend/cuda/cuda.h"
#include "objective/cuda/reg.h"
#include "objective/cuda/reg_rows.h"

static kith_status penalty_open(const ki_cuda_reg_in *in, void **ret_self, size_t *ret_scratch_bytes,
                                kith_error *err) {
    (void)err;
    *ret_self = NULL;
    *ret_scratch_bytes = (size_t)in->edge[KI_TAP_WEIGHT].shape.dim[0] * sizeof(double);
    return KITH_OK;
}

static kith_status penalty_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    const ki_shape *shape = &in->edge[KI_TAP_WEIGHT].shape;
    const double lam = ki_method_real(in->method, in->settings, "lam");
    (void)self;
    KI_CUDA(ki_cuda_row_norm(in->tap[KI_TAP_WEIGHT], shape->dim[0], shape->dim[1], lam, in->weight,
                             in->diff[KI_TAP_WEIGHT], scratch, in->stream));
    KI_CUDA(ki_cuda_rows_total(scratch, shape->dim[0], in->value, in->stream));
    return KITH_OK;
}

const ki_cuda_reg ki_cuda_reg_row_norm_penalty = {
    .name = "row_norm_penalty", .open = penalty_open, .launch = penalty_launch};
