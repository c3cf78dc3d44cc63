/* concat along channels: each image of each source is one run of memory in dst. */
#include <string.h>

#include "backend/ref/ref.h"
#include "base/parallel.h"

/* Items: images, here and below. */
static void forward_images(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    const ki_ref_dims d = ki_ref_dims_of(&k->spec.dst);
    for (int64_t n = begin; n < end; n++) {
        ki_real *dst = (ki_real *)k->binding.dst + n * d.c * d.h * d.w;
        for (int i = 0; i < k->spec.n_src; i++) {
            const int64_t run = ki_ref_dims_of(&k->spec.src[i]).c * d.h * d.w;
            memcpy(dst, (const ki_real *)k->binding.src[i] + n * run, (size_t)run * sizeof *dst);
            dst += run;
        }
    }
}

static void backward_images(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    const ki_ref_dims d = ki_ref_dims_of(&k->spec.dst);
    for (int64_t n = begin; n < end; n++) {
        const ki_real *diff_dst = (const ki_real *)k->binding.diff_dst[0] + n * d.c * d.h * d.w;
        for (int i = 0; i < k->spec.n_src; i++) {
            const int64_t run = ki_ref_dims_of(&k->spec.src[i]).c * d.h * d.w;
            ki_real *diff_src = k->binding.diff_src[i];
            if (diff_src) memcpy(diff_src + n * run, diff_dst, (size_t)run * sizeof *diff_dst);
            diff_dst += run;
        }
    }
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_ref_kernel_new(&ki_ref_concat, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){0};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    ki_ref_kernel *k = ki_ref_of(kernel);
    ki_parallel_for(k->spec.dst.shape.dim[0], 1, forward_images, k);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    ki_ref_kernel *k = ki_ref_of(kernel);
    ki_parallel_for(k->spec.dst.shape.dim[0], 1, backward_images, k);
    return KITH_OK;
}

const ki_kernel_type ki_ref_concat = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .backward = backward, .free = ki_ref_free};
