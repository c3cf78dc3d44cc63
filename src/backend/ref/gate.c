/* gate: dst = map * factor[n, c]; the factor's gradient is the sum over the plane of diff_dst * map. */
#include "backend/ref/ref.h"
#include "base/parallel.h"

/* Items: planes (n, c), here and below. */
static void forward_planes(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    const ki_ref_dims d = ki_ref_dims_of(&k->spec.dst);
    const int64_t hw = d.h * d.w;
    const ki_real *src = k->binding.src[0], *factor = k->binding.src[1];
    ki_real *dst = k->binding.dst;
    for (int64_t i = begin * hw; i < end * hw; i++) dst[i] = src[i] * factor[i / hw];
}

static void backward_planes(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    const ki_ref_dims d = ki_ref_dims_of(&k->spec.dst);
    const int64_t hw = d.h * d.w;
    const ki_real *src = k->binding.src[0], *factor = k->binding.src[1], *diff_dst = k->binding.diff_dst[0];
    ki_real *diff_src = k->binding.diff_src[0], *diff_factor = k->binding.diff_src[1];
    for (int64_t plane = begin; plane < end; plane++) {
        double sum = 0;
        for (int64_t i = plane * hw; i < (plane + 1) * hw; i++) {
            sum += (double)diff_dst[i] * (double)src[i];
            if (diff_src) diff_src[i] = diff_dst[i] * factor[plane];
        }
        if (diff_factor) diff_factor[plane] = (ki_real)sum;
    }
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_ref_kernel_new(&ki_ref_gate, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    return KITH_OK;
}

static void over_planes(ki_kernel *kernel, ki_range_fn fn) {
    const ki_ref_dims d = ki_ref_dims_of(&ki_ref_of(kernel)->spec.dst);
    ki_parallel_for(d.mb * d.c, ki_ref_grain(d.h * d.w), fn, kernel);
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    over_planes(kernel, forward_planes);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    over_planes(kernel, backward_planes);
    return KITH_OK;
}

const ki_kernel_type ki_ref_gate = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .backward = backward, .free = ki_ref_free};
