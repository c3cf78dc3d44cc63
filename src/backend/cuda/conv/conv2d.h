/* The passes that a convolution asks way.h for; shared with bench/cuda_conv.c. */
#ifndef KI_CUDA_CONV2D_H
#define KI_CUDA_CONV2D_H

#include "backend/cuda/conv/kernels.h"
#include "backend/cuda/conv/way.h"

/* The passes of a kernel (whether it needs them or not) and the form of its packed weights. */
void ki_conv_problems(const ki_backend *backend, const ki_kernel_spec *spec,
                      ki_conv_problem ret_problems[KI_N_CONV_PASSES], ki_pack_form *ret_form);

#endif
