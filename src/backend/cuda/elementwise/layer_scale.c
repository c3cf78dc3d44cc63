/* layer_scale as an op: factors for each channel, and their gradient, which is a sum over all pixels (mix.cu). */
#include "backend/cuda/elementwise/kernels.h"
#include "backend/cuda/op.h"

static cudaError_t scale(const cuda_op *op, const void *src, const ki_cuda_map *src_map, const void *other,
                         void *dst, const ki_cuda_map *dst_map) {
    const ki_cuda_mix_args mix = {.is_bf16 = op->dst.is_bf16,
                                  .n = op->dst.n,
                                  .c = op->dst.c,
                                  .hw = 1,
                                  .x_pitch = src_map->pitch,
                                  .dst_pitch = dst_map->pitch,
                                  .y_pitch = other ? op->src[1].pitch : 0,
                                  .x = src,
                                  .y = other,
                                  .dst = dst,
                                  .a = op->b.param[KI_W].value};
    return ki_cuda_mix(ki_cuda_op_stream(op), &mix);
}

/* The gradient of the factors, and, where it is wanted, of src in the same pass. */
static cudaError_t diff_both(const cuda_op *op) {
    const int64_t n = op->dst.n, length = ki_cuda_stretch_length(n);
    const ki_cuda_stretch_args sums = {.is_bf16 = op->dst.is_bf16,
                                       .n = n,
                                       .c = op->dst.c,
                                       .length = length,
                                       .x_pitch = op->dst.pitch,
                                       .y_pitch = op->src[0].pitch,
                                       .scaled_pitch = op->src[0].pitch,
                                       .x = op->b.diff_dst[0],
                                       .y = op->b.src[0],
                                       .a = op->b.param[KI_W].value,
                                       .scaled = op->b.diff_src[0],
                                       .dst = op->b.scratch};
    const cudaError_t error = ki_cuda_stretch_sums(ki_cuda_op_stream(op), &sums);
    if (error != cudaSuccess) return error;
    return ki_cuda_add_stretches(ki_cuda_op_stream(op), ki_cuda_stretches(n, length), op->dst.c,
                                 op->b.scratch, op->b.param[KI_W].diff, NULL);
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    const ki_cuda_map m = ki_cuda_map_of(backend, &spec->dst);
    const int64_t stretches = ki_cuda_stretches(m.n, ki_cuda_stretch_length(m.n));
    KI_TRY(ki_cuda_op_new(&ki_cuda_layer_scale, backend, spec, NULL, ret_kernel, err));
    *ret_info = (ki_kernel_info){
        .scratch_bytes = spec->mode == KI_TRAIN ? (size_t)(stretches * m.c) * sizeof(float) : 0,
        .backward_reads_src = true,
        .shares_added = spec->has_add};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    KI_CUDA(
        scale(op, op->b.src[0], &op->src[0], op->spec.has_add ? op->b.src[1] : NULL, op->b.dst, &op->dst));
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    if (op->spec.wants_diff_params && op->b.param[KI_W].diff)
        KI_CUDA(diff_both(op));
    else if (op->b.diff_src[0])
        KI_CUDA(scale(op, op->b.diff_dst[0], &op->dst, NULL, op->b.diff_src[0], &op->src[0]));
    return KITH_OK;
}

const ki_kernel_type ki_cuda_layer_scale = {.create = create,
                                            .bind = ki_cuda_op_bind,
                                            .forward = forward,
                                            .backward = backward,
                                            .free = ki_cuda_op_free,
                                            .fuses_add = true};
