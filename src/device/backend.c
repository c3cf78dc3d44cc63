/* What backends have in common behind the interface. */
#include "device/backend.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

kith_status ki_kernel_new(ki_backend *backend, const ki_kernel_type *type, size_t bytes, void *ret_kernel,
                          kith_error *err) {
    ki_kernel *kernel = NULL;
    KI_TRY(ki_zalloc_or(&kernel, 1, bytes, "a kernel", err));
    kernel->type = type;
    kernel->backend = backend;
    memcpy(ret_kernel, &kernel, sizeof kernel);
    return KITH_OK;
}

double ki_optim_scale(const ki_optim_step *step) {
    if (step->max_norm <= 0) return step->diff_scale;
    double sum = 0;
    for (int i = 0; i < step->n_runs; i++) {
        if (step->clock->t > step->runs[i].start) sum += step->norm_sq[i];
    }
    const double factor = step->max_norm / (step->diff_scale * sqrt(sum) + 1e-6);
    return step->diff_scale * (factor < 1 ? factor : 1);
}
