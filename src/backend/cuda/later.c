/* Ops that are still to come. */
#include "backend/cuda/cuda.h"

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    (void)backend, (void)ret_info, (void)ret_kernel;
    return ki_fail(err, KITH_EUNSUPPORTED, "no kernel for %s yet", ki_op_name(spec->kind));
}

const ki_kernel_type ki_cuda_tokens = {.create = create};
const ki_kernel_type ki_cuda_grid = {.create = create};
const ki_kernel_type ki_cuda_token = {.create = create};
const ki_kernel_type ki_cuda_probe = {.create = create};
