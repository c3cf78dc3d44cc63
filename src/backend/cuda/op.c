#include "backend/cuda/op.h"

kith_status ki_cuda_op_new(const ki_kernel_type *type, ki_backend *backend, const ki_kernel_spec *spec,
                           ki_kernel **ret_kernel, kith_error *err) {
    cuda_op *op = NULL;
    KI_TRY(ki_cuda_kernel_new(backend, type, sizeof *op, &op, err));
    op->spec = *spec;
    if (spec->attr) op->attr = *spec->attr;
    op->spec.attr = &op->attr;
    for (int i = 0; i < spec->n_src; i++) op->src[i] = ki_cuda_map_of(backend, &spec->src[i]);
    op->dst = ki_cuda_map_of(backend, &spec->dst);
    *ret_kernel = &op->base;
    return KITH_OK;
}

kith_status ki_cuda_op_bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ki_cuda_op_of(kernel)->b = *binding;
    return KITH_OK;
}

void ki_cuda_op_free(ki_kernel *kernel) { ki_free(kernel); }
