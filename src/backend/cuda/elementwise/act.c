/* act and glu as ops (act.cu has the kernels). */
#include "backend/cuda/elementwise/kernels.h"
#include "backend/cuda/op.h"

static cudaError_t act_queue(const cuda_op *op, cudaStream_t stream, bool is_backward) {
    const ki_cuda_map *src = &op->src[0], *dst = &op->dst;
    const ki_cuda_act_args args = {.is_bf16 = dst->is_bf16,
                                   .how = (int)op->attr.act.how,
                                   .n = dst->n,
                                   .c = dst->c,
                                   .src_pitch = src->pitch,
                                   .diff_pitch = dst->pitch,
                                   .dst_pitch = is_backward ? src->pitch : dst->pitch,
                                   .src = op->b.src[0],
                                   .diff_dst = is_backward ? op->b.diff_dst[0] : NULL,
                                   .dst = is_backward ? op->b.diff_src[0] : op->b.dst};
    return ki_cuda_act_apply(stream, &args);
}

static kith_status act_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                              ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_cuda_op_new(&ki_cuda_act, backend, spec, act_queue, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    return KITH_OK;
}

const ki_kernel_type ki_cuda_act = {.create = act_create,
                                    .bind = ki_cuda_op_bind,
                                    .forward = ki_cuda_op_forward,
                                    .backward = ki_cuda_op_backward,
                                    .free = ki_cuda_op_free};

static cudaError_t glu_queue(const cuda_op *op, cudaStream_t stream, bool is_backward) {
    const ki_cuda_glu_args args = {.is_bf16 = op->dst.is_bf16,
                                   .n = op->dst.n,
                                   .c = op->dst.c,
                                   .src_pitch = op->src[0].pitch,
                                   .dst_pitch = op->dst.pitch,
                                   .src = op->b.src[0],
                                   .diff_dst = op->b.diff_dst[0],
                                   .dst = op->b.dst,
                                   .diff_src = op->b.diff_src[0]};
    return ki_cuda_glu_apply(stream, &args, is_backward);
}

static kith_status glu_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                              ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_cuda_op_new(&ki_cuda_glu, backend, spec, glu_queue, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    return KITH_OK;
}

const ki_kernel_type ki_cuda_glu = {.create = glu_create,
                                    .bind = ki_cuda_op_bind,
                                    .forward = ki_cuda_op_forward,
                                    .backward = ki_cuda_op_backward,
                                    .free = ki_cuda_op_free};
