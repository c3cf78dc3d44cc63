/* dropout. The mask is drawn again in backward from the step that forward saw, which is all the workspace holds. In
 * inference dst is src. */
#include "core/dropout.h"

#include "backend/cuda/op.h"

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_cuda_op_new(&ki_cuda_dropout, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){.workspace_bytes = spec->mode == KI_TRAIN ? sizeof(uint64_t) : 0};
    return KITH_OK;
}

static ki_cuda_dropout_args args_of(const cuda_op *op) {
    /* The step is read on the device. */
    const ki_dropout mask = ki_dropout_at(op->spec.seed, 0, op->spec.node, op->attr.dropout.p);
    return (ki_cuda_dropout_args){.is_bf16 = op->dst.is_bf16,
                                  .is_map = op->spec.dst.shape.n_dims == 4,
                                  .mb = op->dst.mb,
                                  .c = op->dst.c,
                                  .hw = op->dst.h * op->dst.w,
                                  .key = {mask.key[0], mask.key[1]},
                                  .node = mask.node,
                                  .purpose = KI_RNG_DROPOUT,
                                  .threshold = mask.threshold,
                                  .scale = (float)mask.scale};
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    if (op->spec.mode == KI_INFER) {
        KI_CUDA(ki_cuda_sum(ki_cuda_op_stream(op), op->dst.is_bf16, op->dst.n, op->dst.c, 1, op->b.src,
                            &op->src[0].pitch, NULL, 0, false, op->b.dst, op->dst.pitch));
        return KITH_OK;
    }
    ki_cuda_dropout_args args = args_of(op);
    args.src = op->b.src[0];
    args.dst = op->b.dst;
    args.src_pitch = op->src[0].pitch;
    args.dst_pitch = op->dst.pitch;
    args.step = op->b.step;
    args.keeps_step = op->b.workspace;
    KI_CUDA(ki_cuda_dropout_mask(ki_cuda_op_stream(op), &args));
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    if (!op->b.diff_src[0]) return KITH_OK;
    ki_cuda_dropout_args args = args_of(op);
    args.src = op->b.diff_dst[0];
    args.dst = op->b.diff_src[0];
    args.src_pitch = op->dst.pitch;
    args.dst_pitch = op->src[0].pitch;
    args.step = op->b.workspace;
    KI_CUDA(ki_cuda_dropout_mask(ki_cuda_op_stream(op), &args));
    return KITH_OK;
}

const ki_kernel_type ki_cuda_dropout = {.create = create,
                                        .bind = ki_cuda_op_bind,
                                        .forward = forward,
                                        .backward = backward,
                                        .free = ki_cuda_op_free};
