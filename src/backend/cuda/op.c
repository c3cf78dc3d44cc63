/* What the ops written as kernels of our own share: making, binding, running and freeing one. */
#include "backend/cuda/op.h"

#include <stdio.h>

#include "base/text.h"

kith_status ki_cuda_op_new(const ki_kernel_type *type, ki_backend *backend, const ki_kernel_spec *spec,
                           ki_cuda_op_queue *queue, ki_kernel **ret_kernel, kith_error *err) {
    cuda_op *op = NULL;
    KI_TRY(ki_kernel_new(backend, type, sizeof *op, &op, err));
    op->spec = *spec;
    if (spec->attr) op->attr = *spec->attr;
    op->spec.attr = &op->attr;
    for (int i = 0; i < spec->n_src; i++) op->src[i] = ki_cuda_map_of(backend, &spec->src[i]);
    op->dst = ki_cuda_map_of(backend, &spec->dst);
    op->queue = queue;
    *ret_kernel = &op->base;
    return KITH_OK;
}

kith_status ki_cuda_op_bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ki_cuda_op_of(kernel)->b = *binding;
    return KITH_OK;
}

void ki_cuda_op_free(ki_kernel *kernel) { ki_free(kernel); }

static kith_status run(const cuda_op *op, bool is_backward, kith_error *err) {
    const cudaError_t error = op->queue(op, ki_cuda_op_stream(op), is_backward);
    if (error == cudaSuccess) return KITH_OK;
    char what[64];
    ki_snprintf(what, sizeof what, "%s %s", ki_op_name(op->spec.kind), is_backward ? "backward" : "forward");
    return ki_cuda_fail(err, error, what);
}

kith_status ki_cuda_op_forward(ki_kernel *kernel, kith_error *err) {
    return run(ki_cuda_op_of(kernel), false, err);
}

kith_status ki_cuda_op_backward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    return op->b.diff_src[0] ? run(op, true, err) : KITH_OK;
}
