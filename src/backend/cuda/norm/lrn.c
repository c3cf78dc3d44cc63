/* lrn: what lrn.cu is called with. */
#include "backend/cuda/norm/kernels.h"
#include "backend/cuda/op.h"

static cudaError_t queue(const cuda_op *op, cudaStream_t stream, bool is_backward) {
    const ki_lrn_attr *a = &op->attr.lrn;
    const ki_cuda_lrn_args lrn = {.is_bf16 = op->dst.is_bf16,
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
    return is_backward ? ki_cuda_lrn_backward(stream, &lrn) : ki_cuda_lrn_forward(stream, &lrn);
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_cuda_op_new(&ki_cuda_lrn, backend, spec, queue, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    return KITH_OK;
}

const ki_kernel_type ki_cuda_lrn = {.create = create,
                                    .bind = ki_cuda_op_bind,
                                    .forward = ki_cuda_op_forward,
                                    .backward = ki_cuda_op_backward,
                                    .free = ki_cuda_op_free};
