/* windows and merge as ops. */
#include "backend/cuda/attention/kernels.h"
#include "backend/cuda/op.h"

static cudaError_t queue(const cuda_op *op, cudaStream_t stream, bool is_backward) {
    const bool is_merge = op->spec.kind == KI_OP_MERGE, back = !is_merge && op->attr.windows.back;
    const ki_edge *grid = back ? &op->spec.dst : &op->spec.src[0];
    const ki_cuda_moves_args args = {
        .is_bf16 = op->dst.is_bf16,
        .scatters = back != is_backward,
        .moves = is_merge ? ki_moves_of_merge(&op->attr.merge) : ki_moves_of_windows(&op->attr.windows),
        .rows = grid->shape.dim[0],
        .c = grid->shape.dim[2],
        .src = is_backward ? op->b.diff_dst[0] : op->b.src[0],
        .dst = is_backward ? op->b.diff_src[0] : op->b.dst};
    return ki_cuda_moves(stream, &args);
}

static kith_status windows_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                  ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_cuda_op_new(&ki_cuda_windows, backend, spec, queue, ret_kernel, err));
    *ret_info = (ki_kernel_info){0};
    return KITH_OK;
}

static kith_status merge_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_cuda_op_new(&ki_cuda_merge, backend, spec, queue, ret_kernel, err));
    *ret_info = (ki_kernel_info){0};
    return KITH_OK;
}

const ki_kernel_type ki_cuda_windows = {.create = windows_create,
                                        .bind = ki_cuda_op_bind,
                                        .forward = ki_cuda_op_forward,
                                        .backward = ki_cuda_op_backward,
                                        .free = ki_cuda_op_free};
const ki_kernel_type ki_cuda_merge = {.create = merge_create,
                                      .bind = ki_cuda_op_bind,
                                      .forward = ki_cuda_op_forward,
                                      .backward = ki_cuda_op_backward,
                                      .free = ki_cuda_op_free};
