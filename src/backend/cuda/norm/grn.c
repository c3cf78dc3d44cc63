/* grn as an op: sums over the pixels of each row, what follows from them for each channel (grn.cu), and a pass that applies it. */
#include "backend/cuda/norm/kernels.h"
#include "backend/cuda/op.h"

/* The workspace, in inference the scratch: the norms [mb, c], the factors [mb, c], the rates [mb]. The scratch of backward: two sums and the slopes, each [mb, c]. */
static ki_cuda_grn_args grn_of(const cuda_op *op) {
    const int64_t count = op->dst.mb * op->dst.c;
    float *work = op->spec.mode == KI_TRAIN ? op->b.workspace : op->b.scratch, *scratch = op->b.scratch;
    const bool trains = op->spec.wants_diff_params;
    return (ki_cuda_grn_args){.mb = op->dst.mb,
                              .c = op->dst.c,
                              .eps = (float)op->attr.grn.eps,
                              .gamma = op->b.param[KI_W].value,
                              .norm = work,
                              .factor = work + count,
                              .rate = work + 2 * count,
                              .along = scratch,
                              .sum = scratch + count,
                              .slope = scratch + 2 * count,
                              .diff_gamma = trains ? op->b.param[KI_W].diff : NULL,
                              .diff_beta = trains ? op->b.param[KI_B].diff : NULL};
}

/* Over the pixels of each row, of x * src and, if asked for, of x. */
static cudaError_t sum_rows(const cuda_op *op, const void *x, int64_t x_pitch, bool wants_sums, float *dst) {
    const ki_cuda_stretch_args sums = {.is_bf16 = op->dst.is_bf16,
                                       .wants_sums = wants_sums,
                                       .n = op->dst.n,
                                       .c = op->dst.c,
                                       .length = op->dst.h * op->dst.w,
                                       .x_pitch = x_pitch,
                                       .y_pitch = op->src[0].pitch,
                                       .x = x,
                                       .y = op->b.src[0],
                                       .dst = dst};
    return ki_cuda_stretch_sums(ki_cuda_op_stream(op), &sums);
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    const size_t count = (size_t)(spec->dst.shape.dim[0] * spec->dst.shape.dim[1]);
    KI_TRY(ki_cuda_op_new(&ki_cuda_grn, backend, spec, NULL, ret_kernel, err));
    const size_t kept = (2 * count + (size_t)spec->dst.shape.dim[0]) * sizeof(float);
    const bool trains = spec->mode == KI_TRAIN;
    *ret_info = (ki_kernel_info){.workspace_bytes = trains ? kept : 0,
                                 .scratch_bytes = trains ? 3 * count * sizeof(float) : kept,
                                 .backward_reads_src = true};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    const ki_cuda_grn_args grn = grn_of(op);
    const ki_cuda_mix_args mix = {.is_bf16 = op->dst.is_bf16,
                                  .n = op->dst.n,
                                  .c = op->dst.c,
                                  .hw = op->dst.h * op->dst.w,
                                  .x_pitch = op->src[0].pitch,
                                  .dst_pitch = op->dst.pitch,
                                  .a_step = op->dst.c,
                                  .x = op->b.src[0],
                                  .dst = op->b.dst,
                                  .a = grn.factor,
                                  .bias = op->b.param[KI_B].value};
    KI_CUDA(sum_rows(op, op->b.src[0], op->src[0].pitch, false, grn.norm));
    KI_CUDA(ki_cuda_grn_factors(ki_cuda_op_stream(op), &grn));
    KI_CUDA(ki_cuda_mix(ki_cuda_op_stream(op), &mix));
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    const ki_cuda_grn_args grn = grn_of(op);
    const ki_cuda_mix_args mix = {.is_bf16 = op->dst.is_bf16,
                                  .n = op->dst.n,
                                  .c = op->dst.c,
                                  .hw = op->dst.h * op->dst.w,
                                  .x_pitch = op->dst.pitch,
                                  .y_pitch = op->src[0].pitch,
                                  .dst_pitch = op->src[0].pitch,
                                  .a_step = op->dst.c,
                                  .b_step = op->dst.c,
                                  .x = op->b.diff_dst[0],
                                  .y = op->b.src[0],
                                  .dst = op->b.diff_src[0],
                                  .a = grn.factor,
                                  .b = grn.slope};
    KI_CUDA(sum_rows(op, op->b.diff_dst[0], op->dst.pitch, true, op->b.scratch));
    KI_CUDA(ki_cuda_grn_slopes(ki_cuda_op_stream(op), &grn));
    if (op->b.diff_src[0]) KI_CUDA(ki_cuda_mix(ki_cuda_op_stream(op), &mix));
    return KITH_OK;
}

const ki_kernel_type ki_cuda_grn = {.create = create,
                                    .bind = ki_cuda_op_bind,
                                    .forward = forward,
                                    .backward = backward,
                                    .free = ki_cuda_op_free};
