/* ki_kernel_set.linear_grad: one linear layer trained from a gradient that stops there. */
#ifndef KI_CUDA_LINEAR_H
#define KI_CUDA_LINEAR_H

#include "device/backend.h"

kith_status ki_cuda_linear_grad(ki_backend *backend, const ki_edge *src_edge, const void *src,
                                const ki_real *diff_dst, int64_t oc, ki_real *diff_weights,
                                ki_real *diff_bias, kith_error *err);

#endif
