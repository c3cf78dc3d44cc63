/* l2_norm and softmax_xent: what rows.cu is called with. */
#include "backend/cuda/op.h"

static kith_status l2_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                             ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_cuda_op_new(&ki_cuda_l2_norm, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    return KITH_OK;
}

static kith_status l2_forward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    KI_CUDA(ki_cuda_l2_forward(ki_cuda_op_stream(op), op->dst.mb, op->dst.c, (float)op->attr.l2_norm.eps,
                               op->b.src[0], op->b.dst));
    return KITH_OK;
}

static kith_status l2_backward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    if (!op->b.diff_src[0]) return KITH_OK;
    KI_CUDA(ki_cuda_l2_backward(ki_cuda_op_stream(op), op->dst.mb, op->dst.c, (float)op->attr.l2_norm.eps,
                                op->b.src[0], op->b.diff_dst[0], op->b.diff_src[0]));
    return KITH_OK;
}

const ki_kernel_type ki_cuda_l2_norm = {.create = l2_create,
                                        .bind = ki_cuda_op_bind,
                                        .forward = l2_forward,
                                        .backward = l2_backward,
                                        .free = ki_cuda_op_free};

static kith_status softmax_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                  ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_cuda_op_new(&ki_cuda_softmax_xent, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    return KITH_OK;
}

static kith_status softmax_forward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    KI_CUDA(ki_cuda_softmax_forward(ki_cuda_op_stream(op), op->src[0].mb, op->src[0].c, op->b.src[0],
                                    op->b.labels, op->b.dst));
    return KITH_OK;
}

static kith_status softmax_backward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    if (!op->b.diff_src[0]) return KITH_OK;
    KI_CUDA(ki_cuda_softmax_backward(ki_cuda_op_stream(op), op->src[0].mb, op->src[0].c, op->b.src[0],
                                     op->b.labels, op->b.diff_dst[0], op->b.diff_src[0]));
    return KITH_OK;
}

const ki_kernel_type ki_cuda_softmax_xent = {.create = softmax_create,
                                             .bind = ki_cuda_op_bind,
                                             .forward = softmax_forward,
                                             .backward = softmax_backward,
                                             .free = ki_cuda_op_free};
