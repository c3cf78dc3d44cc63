/* Kernels of several layers on the device, for joint_similarity and joint_mmd. */
#ifndef KI_OBJECTIVE_KERNELS_CUH
#define KI_OBJECTIVE_KERNELS_CUH

#include "objective/cuda/reg.cuh"
#include "objective/reg/layers.h"

/* Both are functions of ki_cuda_reg; the settings are ki_layers_options. is_mmd: joint_mmd's coefficients,
 * else joint_similarity's. */
kith_status ki_cuda_layers_open(const ki_cuda_reg_in *in, void **ret_self, size_t *ret_scratch_bytes,
                                kith_error *err);
kith_status ki_cuda_layers_launch(const ki_cuda_reg_in *in, bool is_mmd, void *scratch, kith_error *err);

#endif
