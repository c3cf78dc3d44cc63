/* layer_scale: dst = gamma[c] * src, diff_gamma[c] += sum over rows and pixels of diff_dst * src. */
#include "backend/ref/ref.h"
#include "base/parallel.h"

typedef struct scaling {
    const ki_real *gamma, *src;
    ki_real *dst;
    int64_t c, hw;
} scaling;

static void scale_items(void *context, int64_t begin, int64_t end) {
    const scaling *s = context;
    for (int64_t i = begin; i < end; i++) s->dst[i] = s->gamma[i / s->hw % s->c] * s->src[i];
}

static void scale(const ki_ref_kernel *k, const ki_real *src, ki_real *dst) {
    const ki_ref_dims d = ki_ref_dims_of(&k->spec.dst);
    scaling s = {k->binding.param[KI_W].value, src, dst, d.c, d.h * d.w};
    ki_parallel_for(ki_shape_count(&k->spec.dst.shape), ki_ref_grain(2), scale_items, &s);
}

static void add_diff_gamma(const ki_ref_kernel *k, ki_real *diff_gamma) {
    const ki_ref_dims d = ki_ref_dims_of(&k->spec.dst);
    const ki_real *src = k->binding.src[0], *diff_dst = k->binding.diff_dst[0];
    const int64_t hw = d.h * d.w;
    for (int64_t c = 0; c < d.c; c++) {
        double sum = 0;
        for (int64_t n = 0; n < d.mb; n++) {
            const int64_t at = (n * d.c + c) * hw;
            for (int64_t i = at; i < at + hw; i++) sum += (double)diff_dst[i] * (double)src[i];
        }
        diff_gamma[c] += (ki_real)sum;
    }
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_ref_kernel_new(&ki_ref_layer_scale, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    const ki_ref_kernel *k = ki_ref_of(kernel);
    (void)err;
    scale(k, k->binding.src[0], k->binding.dst);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    const ki_ref_kernel *k = ki_ref_of(kernel);
    (void)err;
    if (ki_ref_diff(k, KI_W)) add_diff_gamma(k, ki_ref_diff(k, KI_W));
    if (k->binding.diff_src[0]) scale(k, k->binding.diff_dst[0], k->binding.diff_src[0]);
    return KITH_OK;
}

const ki_kernel_type ki_ref_layer_scale = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .backward = backward, .free = ki_ref_free};
