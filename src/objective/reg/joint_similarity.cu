/* Joint representation similarity on the device (joint_similarity.c has the formulas). */
#include "objective/reg/kernels.cuh"

static kith_status reg_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    (void)self;
    return ki_cuda_layers_launch(in, false, scratch, err);
}

const ki_cuda_reg ki_cuda_reg_joint_similarity = {.open = ki_cuda_layers_open, .launch = reg_launch};
