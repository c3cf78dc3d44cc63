/* lrn: what lrn.cu is called with. */
#include "backend/cuda/op.h"

static ki_cuda_lrn_args lrn_of(const cuda_op *op) {
    const ki_lrn_attr *a = &op->attr.lrn;
    return (ki_cuda_lrn_args){.is_bf16 = op->dst.is_bf16,
                              .size = (int)a->size,
                              .alpha = (float)a->alpha,
                              .beta = (float)a->beta,
                              .k = (float)a->k,
                              .n = op->dst.n,
                              .c = op->dst.c,
                              .src_pitch = op->src[0].pitch,
                              .dst_pitch = op->dst.pitch,
                              .src = op->b.src[0],
                              .dst = op->b.dst,
                              .diff_dst = op->b.diff_dst[0],
                              .diff_src = op->b.diff_src[0]};
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_cuda_op_new(&ki_cuda_lrn, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    const ki_cuda_lrn_args lrn = lrn_of(ki_cuda_op_of(kernel));
    KI_CUDA(ki_cuda_lrn_forward(ki_cuda_op_stream(ki_cuda_op_of(kernel)), &lrn));
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    const ki_cuda_lrn_args lrn = lrn_of(ki_cuda_op_of(kernel));
    if (!lrn.diff_src) return KITH_OK;
    KI_CUDA(ki_cuda_lrn_backward(ki_cuda_op_stream(ki_cuda_op_of(kernel)), &lrn));
    return KITH_OK;
}

const ki_kernel_type ki_cuda_lrn = {.create = create,
                                    .bind = ki_cuda_op_bind,
                                    .forward = forward,
                                    .backward = backward,
                                    .free = ki_cuda_op_free};
