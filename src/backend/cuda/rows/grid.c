/* grid, token and probe as ops (tokens.cu has the kernels). */
#include "backend/cuda/op.h"
#include "backend/cuda/rows/tokens.h"

static void *writable(const void *ptr) { return (void *)(uintptr_t)ptr; }

static cudaError_t grid_queue(const cuda_op *op, cudaStream_t stream, bool is_backward) {
    const ki_shape *s = &op->spec.src[0].shape;
    const ki_cuda_grid_args args = {.is_bf16 = op->dst.is_bf16,
                                    .is_back = is_backward,
                                    .mb = s->dim[0],
                                    .t = s->dim[1],
                                    .skip = op->attr.grid.skip,
                                    .c = s->dim[2],
                                    .pitch = op->dst.pitch,
                                    .tokens = is_backward ? op->b.diff_src[0] : writable(op->b.src[0]),
                                    .map = is_backward ? writable(op->b.diff_dst[0]) : op->b.dst};
    return ki_cuda_grid_rows(stream, &args);
}

static kith_status grid_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                               ki_kernel **ret_kernel, kith_error *err) {
    *ret_info = (ki_kernel_info){0};
    return ki_cuda_op_new(&ki_cuda_grid, backend, spec, grid_queue, ret_kernel, err);
}

const ki_kernel_type ki_cuda_grid = {.create = grid_create,
                                     .bind = ki_cuda_op_bind,
                                     .forward = ki_cuda_op_forward,
                                     .backward = ki_cuda_op_backward,
                                     .free = ki_cuda_op_free};

static cudaError_t token_queue(const cuda_op *op, cudaStream_t stream, bool is_backward) {
    const ki_shape *s = &op->spec.src[0].shape;
    const ki_cuda_token_args args = {.is_bf16 = op->src[0].is_bf16,
                                     .is_back = is_backward,
                                     .mb = s->dim[0],
                                     .t = s->dim[1],
                                     .at = op->attr.token.at,
                                     .c = s->dim[2],
                                     .tokens = is_backward ? op->b.diff_src[0] : writable(op->b.src[0]),
                                     .vectors = is_backward ? writable(op->b.diff_dst[0]) : op->b.dst};
    return ki_cuda_token_rows(stream, &args);
}

static kith_status token_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                ki_kernel **ret_kernel, kith_error *err) {
    *ret_info = (ki_kernel_info){0};
    return ki_cuda_op_new(&ki_cuda_token, backend, spec, token_queue, ret_kernel, err);
}

const ki_kernel_type ki_cuda_token = {.create = token_create,
                                      .bind = ki_cuda_op_bind,
                                      .forward = ki_cuda_op_forward,
                                      .backward = ki_cuda_op_backward,
                                      .free = ki_cuda_op_free};

static kith_status probe_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                ki_kernel **ret_kernel, kith_error *err) {
    *ret_info = (ki_kernel_info){0};
    return ki_cuda_op_new(&ki_cuda_probe, backend, spec, NULL, ret_kernel, err);
}

static ki_cuda_probe_args probe_args(const cuda_op *op) {
    const ki_shape *d = &op->spec.dst.shape;
    return (ki_cuda_probe_args){.is_bf16 = op->dst.is_bf16, .mb = d->dim[0], .n = d->dim[1] * d->dim[2]};
}

static kith_status probe_forward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    ki_cuda_probe_args args = probe_args(op);
    args.tokens = op->b.dst;
    args.learned = op->b.param[KI_W].value;
    KI_CUDA(ki_cuda_probe_rows(ki_cuda_op_stream(op), &args));
    return KITH_OK;
}

static kith_status probe_backward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    ki_cuda_probe_args args = probe_args(op);
    args.is_back = true;
    args.tokens = writable(op->b.diff_dst[0]); /* only read */
    args.learned = op->spec.wants_diff_params ? op->b.param[KI_W].diff : NULL;
    if (args.learned) KI_CUDA(ki_cuda_probe_rows(ki_cuda_op_stream(op), &args));
    const size_t bytes = (size_t)(op->src[0].n * op->src[0].c) * op->src[0].element_bytes;
    if (op->b.diff_src[0]) KI_CUDA(cudaMemsetAsync(op->b.diff_src[0], 0, bytes, ki_cuda_op_stream(op)));
    return KITH_OK;
}

const ki_kernel_type ki_cuda_probe = {.create = probe_create,
                                      .bind = ki_cuda_op_bind,
                                      .forward = probe_forward,
                                      .backward = probe_backward,
                                      .free = ki_cuda_op_free};
