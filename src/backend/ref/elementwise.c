/* relu: max(src, 0); the gradient at 0 is 0.
 * add: dst = sum of the sources. The gradient of every source is diff_dst itself; a planner that
 * honours shares_diff passes the pointer on and never calls backward. */
#include <string.h>

#include "backend/ref/ref.h"
#include "base/parallel.h"

/* `items` over all values of dst. */
static kith_status over_values(ki_kernel *kernel, ki_range_fn items) {
    ki_ref_kernel *k = ki_ref_of(kernel);
    ki_parallel_for(ki_shape_count(&k->spec.dst.shape), ki_ref_grain(1), items, k);
    return KITH_OK;
}

static void relu_items(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    const ki_real *src = k->binding.src[0];
    ki_real *dst = k->binding.dst;
    for (int64_t i = begin; i < end; i++) dst[i] = src[i] > 0 ? src[i] : 0;
}

static void relu_diff_items(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    const ki_real *dst = k->binding.dst, *diff_dst = k->binding.diff_dst[0];
    ki_real *diff_src = k->binding.diff_src[0];
    for (int64_t i = begin; i < end; i++) diff_src[i] = dst[i] > 0 ? diff_dst[i] : 0;
}

static kith_status relu_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                               ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_ref_kernel_new(&ki_ref_relu, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_dst = true};
    return KITH_OK;
}

static kith_status relu_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    return over_values(kernel, relu_items);
}

static kith_status relu_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    return ki_ref_of(kernel)->binding.diff_src[0] ? over_values(kernel, relu_diff_items) : KITH_OK;
}

const ki_kernel_type ki_ref_relu = {.create = relu_create,
                                    .bind = ki_ref_bind,
                                    .forward = relu_forward,
                                    .backward = relu_backward,
                                    .free = ki_ref_free};

static void add_items(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    ki_real *dst = k->binding.dst;
    for (int64_t i = begin; i < end; i++) {
        ki_real sum = 0;
        for (int j = 0; j < k->spec.n_src; j++) sum += ((const ki_real *)k->binding.src[j])[i];
        dst[i] = sum;
    }
}

static kith_status add_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                              ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_ref_kernel_new(&ki_ref_add, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){.shares_diff = true};
    return KITH_OK;
}

static kith_status add_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    return over_values(kernel, add_items);
}

static kith_status add_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const ki_ref_kernel *k = ki_ref_of(kernel);
    for (int i = 0; i < k->spec.n_src; i++) {
        if (k->binding.diff_src[i]) memcpy(k->binding.diff_src[i], k->binding.diff_dst[0], k->spec.dst.bytes);
    }
    return KITH_OK;
}

const ki_kernel_type ki_ref_add = {.create = add_create,
                                   .bind = ki_ref_bind,
                                   .forward = add_forward,
                                   .backward = add_backward,
                                   .free = ki_ref_free};
