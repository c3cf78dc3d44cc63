/* global_pool: what global_pool.cu is called with. */
#include "backend/cuda/op.h"
#include "backend/cuda/pool/kernels.h"

static cudaError_t queue(const cuda_op *op, cudaStream_t stream, bool is_backward) {
    const ki_cuda_map *src = &op->src[0];
    const ki_global_pool how = op->attr.global_pool.how;
    const ki_cuda_global_args global = {.is_bf16 = src->is_bf16,
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
    return is_backward ? ki_cuda_global_backward(stream, &global) : ki_cuda_global_forward(stream, &global);
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    const ki_cuda_map src = ki_cuda_map_of(backend, &spec->src[0]);
    KI_TRY(ki_cuda_op_new(&ki_cuda_global_pool, backend, spec, queue, ret_kernel, err));
    const bool keeps = spec->mode == KI_TRAIN && spec->attr->global_pool.how != KI_GLOBAL_AVG;
    *ret_info = (ki_kernel_info){.workspace_bytes = keeps ? (size_t)(src.mb * src.c) * sizeof(int32_t) : 0};
    return KITH_OK;
}

const ki_kernel_type ki_cuda_global_pool = {.create = create,
                                            .bind = ki_cuda_op_bind,
                                            .forward = ki_cuda_op_forward,
                                            .backward = ki_cuda_op_backward,
                                            .free = ki_cuda_op_free};
