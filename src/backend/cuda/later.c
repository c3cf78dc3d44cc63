/* Ops that are still to come. */
#include "backend/cuda/cuda.h"

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    (void)backend, (void)ret_info, (void)ret_kernel;
    return ki_fail(err, KITH_EUNSUPPORTED, "no kernel for %s yet", ki_op_name(spec->kind));
}

const ki_kernel_type ki_cuda_act = {.create = create};
const ki_kernel_type ki_cuda_glu = {.create = create};
const ki_kernel_type ki_cuda_layer_scale = {.create = create};
const ki_kernel_type ki_cuda_drop_path = {.create = create};
const ki_kernel_type ki_cuda_gate = {.create = create};
const ki_kernel_type ki_cuda_grn = {.create = create};
const ki_kernel_type ki_cuda_attention = {.create = create};
const ki_kernel_type ki_cuda_windows = {.create = create};
const ki_kernel_type ki_cuda_merge = {.create = create};
