/* add: dst = sum of the sources. The gradient of every source is diff_dst itself, so there is no
 * backward: the planner passes the pointer on. */
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

const ki_kernel_type ki_ref_add = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .free = ki_ref_free};
