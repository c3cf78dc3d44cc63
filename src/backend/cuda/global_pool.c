/* global_pool: what global_pool.cu is called with. */
#include "backend/cuda/op.h"

static ki_cuda_global_args global_of(const cuda_op *op) {
    const ki_cuda_map *src = &op->src[0];
    const ki_global_pool how = op->attr.global_pool.how;
    return (ki_cuda_global_args){.is_bf16 = src->is_bf16,
                                 .has_average = how != KI_GLOBAL_MAX,
                                 .has_max = how != KI_GLOBAL_AVG,
                                 .mb = src->mb,
                                 .c = src->c,
                                 .hw = src->h * src->w,
                                 .pitch = src->pitch,
                                 .src = op->b.src[0],
                                 .dst = op->b.dst,
                                 .diff_dst = op->b.diff_dst[0],
                                 .diff_src = op->b.diff_src[0],
                                 .place = op->b.workspace};
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    const ki_cuda_map src = ki_cuda_map_of(backend, &spec->src[0]);
    KI_TRY(ki_cuda_op_new(&ki_cuda_global_pool, backend, spec, ret_kernel, err));
    const bool keeps = spec->mode == KI_TRAIN && spec->attr->global_pool.how != KI_GLOBAL_AVG;
    *ret_info = (ki_kernel_info){.workspace_bytes = keeps ? (size_t)(src.mb * src.c) * sizeof(int32_t) : 0};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    const ki_cuda_global_args global = global_of(ki_cuda_op_of(kernel));
    KI_CUDA(ki_cuda_global_forward(ki_cuda_op_stream(ki_cuda_op_of(kernel)), &global));
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    const ki_cuda_global_args global = global_of(ki_cuda_op_of(kernel));
    if (!global.diff_src) return KITH_OK;
    KI_CUDA(ki_cuda_global_backward(ki_cuda_op_stream(ki_cuda_op_of(kernel)), &global));
    return KITH_OK;
}

const ki_kernel_type ki_cuda_global_pool = {.create = create,
                                            .bind = ki_cuda_op_bind,
                                            .forward = forward,
                                            .backward = backward,
                                            .free = ki_cuda_op_free};
