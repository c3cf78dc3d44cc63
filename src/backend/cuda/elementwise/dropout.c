/* dropout. Backward draws the mask again from the step and the first row that forward saw: the workspace has these two.
 * In inference dst is src. */
#include "device/dropout.h"

#include "backend/cuda/elementwise/kernels.h"
#include "backend/cuda/op.h"

static ki_cuda_dropout_args args_of(const cuda_op *op) {
    /* The step is read on the device. */
    const ki_dropout mask = ki_dropout_at(op->spec.seed, 0, op->spec.node, op->attr.dropout.p);
    const ki_shape *shape = &op->spec.dst.shape;
    return (ki_cuda_dropout_args){.is_bf16 = op->dst.is_bf16,
                                  .is_map = shape->n_dims == 4 || op->dst.is_bf16,
                                  .mb = op->dst.mb,
                                  .c = op->dst.c,
                                  .hw = op->dst.h * op->dst.w,
                                  .each = ki_shape_count(shape) / shape->dim[0],
                                  .key = {mask.key[0], mask.key[1]},
                                  .node = mask.node,
                                  .purpose = KI_RNG_DROPOUT,
                                  .threshold = mask.threshold,
                                  .scale = (float)mask.scale};
}

static cudaError_t queue(const cuda_op *op, cudaStream_t stream, bool is_backward) {
    if (op->spec.mode == KI_INFER)
        return ki_cuda_sum(stream, op->dst.is_bf16, op->dst.n, op->dst.c, 1, op->b.src, &op->src[0].pitch,
                           NULL, 0, false, op->b.dst, op->dst.pitch);
    ki_cuda_dropout_args args = args_of(op);
    args.src = is_backward ? op->b.diff_dst[0] : op->b.src[0];
    args.dst = is_backward ? op->b.diff_src[0] : op->b.dst;
    args.src_pitch = is_backward ? op->dst.pitch : op->src[0].pitch;
    args.dst_pitch = is_backward ? op->src[0].pitch : op->dst.pitch;
    uint64_t *kept = op->b.workspace;
    args.step = is_backward ? kept : op->b.step;
    args.first = is_backward ? kept + 1 : op->b.first;
    args.keeps = is_backward ? NULL : kept;
    return ki_cuda_dropout_mask(stream, &args);
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_cuda_op_new(&ki_cuda_dropout, backend, spec, queue, ret_kernel, err));
    *ret_info = (ki_kernel_info){.workspace_bytes = spec->mode == KI_TRAIN ? 2 * sizeof(uint64_t) : 0};
    return KITH_OK;
}

const ki_kernel_type ki_cuda_dropout = {.create = create,
                                        .bind = ki_cuda_op_bind,
                                        .forward = ki_cuda_op_forward,
                                        .backward = ki_cuda_op_backward,
                                        .free = ki_cuda_op_free};
