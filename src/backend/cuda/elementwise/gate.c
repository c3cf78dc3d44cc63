/* gate as an op: the factors' gradient is a sum over the pixels of each row (mix.cu). */
#include "backend/cuda/elementwise/kernels.h"
#include "backend/cuda/op.h"

static cudaError_t scale(const cuda_op *op, const void *src, const ki_cuda_map *src_map, void *dst,
                         const ki_cuda_map *dst_map) {
    const ki_cuda_mix_args mix = {.is_bf16 = op->dst.is_bf16,
                                  .n = op->dst.n,
                                  .c = op->dst.c,
                                  .hw = op->dst.h * op->dst.w,
                                  .x_pitch = src_map->pitch,
                                  .dst_pitch = dst_map->pitch,
                                  .a_step = op->dst.c,
                                  .x = src,
                                  .dst = dst,
                                  .a = op->b.src[1]};
    return ki_cuda_mix(ki_cuda_op_stream(op), &mix);
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_cuda_op_new(&ki_cuda_gate, backend, spec, NULL, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    KI_CUDA(scale(op, op->b.src[0], &op->src[0], op->b.dst, &op->dst));
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    const ki_cuda_stretch_args sums = {.is_bf16 = op->dst.is_bf16,
                                       .n = op->dst.n,
                                       .c = op->dst.c,
                                       .length = op->dst.h * op->dst.w,
                                       .x_pitch = op->dst.pitch,
                                       .y_pitch = op->src[0].pitch,
                                       .x = op->b.diff_dst[0],
                                       .y = op->b.src[0],
                                       .dst = op->b.diff_src[1]};
    if (op->b.diff_src[1]) KI_CUDA(ki_cuda_stretch_sums(ki_cuda_op_stream(op), &sums));
    if (op->b.diff_src[0]) KI_CUDA(scale(op, op->b.diff_dst[0], &op->dst, op->b.diff_src[0], &op->src[0]));
    return KITH_OK;
}

const ki_kernel_type ki_cuda_gate = {.create = create,
                                     .bind = ki_cuda_op_bind,
                                     .forward = forward,
                                     .backward = backward,
                                     .free = ki_cuda_op_free};
