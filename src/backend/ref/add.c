/* add: dst = sum of the sources. The gradient of every source is diff_dst itself; a planner that
 * honours shares_diff passes the pointer on and never calls backward. */
#include <string.h>

#include "backend/ref/ref.h"
#include "core/parallel.h"

static void forward_items(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    ki_real *dst = k->binding.dst;
    for (int64_t i = begin; i < end; i++) {
        ki_real sum = 0;
        for (int j = 0; j < k->spec.n_src; j++) sum += ((const ki_real *)k->binding.src[j])[i];
        dst[i] = sum;
    }
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_ref_kernel_new(&ki_ref_add, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){.shares_diff = true};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    ki_ref_kernel *k = ki_ref_of(kernel);
    ki_parallel_for(ki_shape_count(&k->spec.dst.shape), ki_ref_grain(1), forward_items, k);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const ki_ref_kernel *k = ki_ref_of(kernel);
    for (int i = 0; i < k->spec.n_src; i++) {
        if (k->binding.diff_src[i]) memcpy(k->binding.diff_src[i], k->binding.diff_dst[0], k->spec.dst.bytes);
    }
    return KITH_OK;
}

const ki_kernel_type ki_ref_add = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .backward = backward, .free = ki_ref_free};
