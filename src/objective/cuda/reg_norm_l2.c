/* reg/norm_l2.c on the device: mean_i |x_i|^2. */
#include "backend/cuda/cuda.h"
#include "objective/cuda/reg.h"
#include "objective/cuda/rows.h"

static kith_status reg_open(const ki_cuda_reg_in *in, void **ret_self, size_t *ret_scratch_bytes,
                            kith_error *err) {
    (void)err;
    *ret_self = NULL;
    *ret_scratch_bytes = (size_t)in->m * sizeof(double);
    return KITH_OK;
}

static kith_status reg_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    (void)self;
    KI_CUDA(ki_cuda_rows_square(in->tap[KI_TAP_EMBEDDING], in->m, in->edge[KI_TAP_EMBEDDING].shape.dim[1],
                                1 / (double)in->m, in->weight, scratch, in->value, in->diff[KI_TAP_EMBEDDING],
                                in->stream));
    return KITH_OK;
}

const ki_cuda_reg ki_cuda_reg_norm_l2 = {.name = "norm_l2", .open = reg_open, .launch = reg_launch};
