/* l2_norm: what rows.cu is called with. */
#include "backend/cuda/op.h"
#include "backend/cuda/rows/kernels.h"

static cudaError_t l2_queue(const cuda_op *op, cudaStream_t stream, bool is_backward) {
    const int64_t mb = op->dst.mb, c = op->dst.c;
    const float eps = (float)op->attr.l2_norm.eps;
    return is_backward
               ? ki_cuda_l2_backward(stream, mb, c, eps, op->b.src[0], op->b.diff_dst[0], op->b.diff_src[0])
               : ki_cuda_l2_forward(stream, mb, c, eps, op->b.src[0], op->b.dst);
}

static kith_status l2_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                             ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_cuda_op_new(&ki_cuda_l2_norm, backend, spec, l2_queue, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    return KITH_OK;
}

const ki_kernel_type ki_cuda_l2_norm = {.create = l2_create,
                                        .bind = ki_cuda_op_bind,
                                        .forward = ki_cuda_op_forward,
                                        .backward = ki_cuda_op_backward,
                                        .free = ki_cuda_op_free};
