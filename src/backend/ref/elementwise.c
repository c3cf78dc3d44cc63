/* relu: max(src, 0); the gradient at 0 is 0. */
#include "backend/ref/ref.h"
#include "core/parallel.h"

static void forward_items(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    const ki_real *src = k->binding.src[0];
    ki_real *dst = k->binding.dst;
    for (int64_t i = begin; i < end; i++) dst[i] = src[i] > 0 ? src[i] : 0;
}

static void backward_items(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    const ki_real *dst = k->binding.dst, *diff_dst = k->binding.diff_dst[0];
    ki_real *diff_src = k->binding.diff_src[0];
    for (int64_t i = begin; i < end; i++) diff_src[i] = dst[i] > 0 ? diff_dst[i] : 0;
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_ref_kernel_new(&ki_ref_relu, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_dst = true};
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
    ki_ref_kernel *k = ki_ref_of(kernel);
    if (k->binding.diff_src[0])
        ki_parallel_for(ki_shape_count(&k->spec.dst.shape), ki_ref_grain(1), backward_items, k);
    return KITH_OK;
}

const ki_kernel_type ki_ref_relu = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .backward = backward, .free = ki_ref_free};
