/* layer_norm: what layer_norm.cu is called with. */
#include "backend/cuda/norm/kernels.h"
#include "backend/cuda/op.h"

static ki_cuda_layer_norm_args norm_of(const cuda_op *op) {
    const ki_binding *b = &op->b;
    const bool trains = op->spec.wants_diff_params;
    return (ki_cuda_layer_norm_args){.is_bf16 = op->dst.is_bf16,
                                     .rms = op->attr.layer_norm.rms,
                                     .n = op->dst.n,
                                     .c = op->dst.c,
                                     .src_pitch = op->src[0].pitch,
                                     .dst_pitch = op->dst.pitch,
                                     .eps = (float)op->attr.layer_norm.eps,
                                     .src = b->src[0],
                                     .dst = b->dst,
                                     .gamma = b->param[KI_W].value,
                                     .beta = b->param[KI_B].value,
                                     .saved = b->workspace,
                                     .diff_dst = b->diff_dst[0],
                                     .diff_src = b->diff_src[0],
                                     .diff_added = b->diff_added,
                                     .diff_gamma = trains ? b->param[KI_W].diff : NULL,
                                     .diff_beta = trains ? b->param[KI_B].diff : NULL,
                                     .scratch = b->scratch};
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    const ki_cuda_map m = ki_cuda_map_of(backend, &spec->dst);
    const bool trains = spec->mode == KI_TRAIN;
    KI_TRY(ki_cuda_op_new(&ki_cuda_layer_norm, backend, spec, NULL, ret_kernel, err));
    *ret_info =
        (ki_kernel_info){.workspace_bytes = trains ? 2 * (size_t)m.n * sizeof(float) : 0,
                         .scratch_bytes = trains ? ki_cuda_layer_norm_scratch(m.n, m.c) * sizeof(float) : 0,
                         .backward_reads_src = true,
                         .takes_part = true};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    const ki_cuda_layer_norm_args norm = norm_of(ki_cuda_op_of(kernel));
    KI_CUDA(ki_cuda_layer_norm_forward(ki_cuda_op_stream(ki_cuda_op_of(kernel)), &norm));
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    const ki_cuda_layer_norm_args norm = norm_of(ki_cuda_op_of(kernel));
    KI_CUDA(ki_cuda_layer_norm_backward(ki_cuda_op_stream(ki_cuda_op_of(kernel)), &norm));
    return KITH_OK;
}

const ki_kernel_type ki_cuda_layer_norm = {.create = create,
                                           .bind = ki_cuda_op_bind,
                                           .forward = forward,
                                           .backward = backward,
                                           .free = ki_cuda_op_free};
