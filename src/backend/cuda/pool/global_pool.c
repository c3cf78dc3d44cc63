/* global_pool: what global_pool.cu and gem.cu are called with. */
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

static ki_cuda_gem_args gem_of(const cuda_op *op) {
    const ki_cuda_map *src = &op->src[0];
    return (ki_cuda_gem_args){.is_bf16 = src->is_bf16,
                              .mb = src->mb,
                              .c = src->c,
                              .hw = src->h * src->w,
                              .pitch = src->pitch,
                              .least = (float)KI_GEM_LEAST,
                              .src = op->b.src[0],
                              .p = op->b.param[KI_W].value,
                              .dst = op->b.dst,
                              .saved = op->b.workspace,
                              .diff_dst = op->b.diff_dst[0],
                              .diff_src = op->b.diff_src[0],
                              .diff_p = op->spec.wants_diff_params ? op->b.param[KI_W].diff : NULL};
}

static bool is_gem(const cuda_op *op) { return op->attr.global_pool.how == KI_GLOBAL_GEM; }

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    if (!is_gem(op)) return ki_cuda_op_forward(kernel, err);
    const ki_cuda_gem_args gem = gem_of(op);
    KI_CUDA(ki_cuda_gem_forward(ki_cuda_op_stream(op), &gem));
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    if (!is_gem(op)) return ki_cuda_op_backward(kernel, err);
    const ki_cuda_gem_args gem = gem_of(op);
    KI_CUDA(ki_cuda_gem_backward(ki_cuda_op_stream(op), &gem));
    return KITH_OK;
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    const ki_cuda_map src = ki_cuda_map_of(backend, &spec->src[0]);
    KI_TRY(ki_cuda_op_new(&ki_cuda_global_pool, backend, spec, queue, ret_kernel, err));
    const bool keeps = spec->mode == KI_TRAIN && spec->attr->global_pool.how != KI_GLOBAL_AVG;
    const bool gem = is_gem(ki_cuda_op_of(*ret_kernel));
    const size_t each = gem ? 3 * sizeof(float) : sizeof(int32_t);
    *ret_info = (ki_kernel_info){.workspace_bytes = keeps ? (size_t)(src.mb * src.c) * each : 0,
                                 .backward_reads_src = gem};
    return KITH_OK;
}

const ki_kernel_type ki_cuda_global_pool = {.create = create,
                                            .bind = ki_cuda_op_bind,
                                            .forward = forward,
                                            .backward = backward,
                                            .free = ki_cuda_op_free};
