/* attend: row n * heads + k of dst is src[n] * a, a = sigmoid(logits[n, k]). In row-major order the logits of an image
 * lie as its rows of dst do, so that both are walked with one index. Backward:
 *   diff_src[n] = sum over k of diff_dst * a,  diff_logits = diff_dst * src * a * (1 - a)
 * unfold: in row-major order nothing moves. */
#include <string.h>

#include "backend/ref/ref.h"
#include "base/parallel.h"

static double sigmoid(double z) {
    const double t = exp(-fabs(z));
    return (z < 0 ? t : 1) / (1 + t);
}

/* Numbers of a row, here and below; items are those of src. */
static int64_t row_of(const ki_ref_kernel *k) {
    const ki_ref_dims d = ki_ref_dims_of(&k->spec.dst);
    return d.c * d.h * d.w;
}

static int64_t heads_of(const ki_ref_kernel *k) {
    return k->spec.dst.shape.dim[0] / k->spec.src[0].shape.dim[0];
}

static void attend_items(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    const int64_t row = row_of(k), heads = heads_of(k);
    const ki_real *src = k->binding.src[0], *logits = k->binding.src[1];
    ki_real *dst = k->binding.dst;
    for (int64_t i = begin; i < end; i++) {
        for (int64_t h = 0; h < heads; h++) {
            const int64_t at = (i / row * heads + h) * row + i % row;
            dst[at] = (ki_real)((double)src[i] * sigmoid((double)logits[at]));
        }
    }
}

static void attend_diff_items(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    const int64_t row = row_of(k), heads = heads_of(k);
    const ki_real *src = k->binding.src[0], *logits = k->binding.src[1], *diff_dst = k->binding.diff_dst[0];
    ki_real *diff_src = k->binding.diff_src[0], *diff_logits = k->binding.diff_src[1];
    for (int64_t i = begin; i < end; i++) {
        double sum = 0;
        for (int64_t h = 0; h < heads; h++) {
            const int64_t at = (i / row * heads + h) * row + i % row;
            const double a = sigmoid((double)logits[at]), d = (double)diff_dst[at];
            sum += d * a;
            if (diff_logits) diff_logits[at] = (ki_real)(d * (double)src[i] * a * (1 - a));
        }
        if (diff_src) diff_src[i] = (ki_real)sum;
    }
}

static kith_status over_items(ki_kernel *kernel, ki_range_fn items) {
    ki_ref_kernel *k = ki_ref_of(kernel);
    ki_parallel_for(ki_shape_count(&k->spec.src[0].shape), ki_ref_grain(heads_of(k)), items, k);
    return KITH_OK;
}

static kith_status attend_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                 ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_ref_kernel_new(&ki_ref_attend, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    return KITH_OK;
}

static kith_status attend_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    return over_items(kernel, attend_items);
}

static kith_status attend_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    return over_items(kernel, attend_diff_items);
}

const ki_kernel_type ki_ref_attend = {.create = attend_create,
                                      .bind = ki_ref_bind,
                                      .forward = attend_forward,
                                      .backward = attend_backward,
                                      .free = ki_ref_free};

static kith_status unfold_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                 ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_ref_kernel_new(&ki_ref_unfold, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){0};
    return KITH_OK;
}

static kith_status unfold_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const ki_ref_kernel *k = ki_ref_of(kernel);
    memcpy(k->binding.dst, k->binding.src[0], k->spec.dst.bytes);
    return KITH_OK;
}

static kith_status unfold_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const ki_ref_kernel *k = ki_ref_of(kernel);
    if (k->binding.diff_src[0]) memcpy(k->binding.diff_src[0], k->binding.diff_dst[0], k->spec.dst.bytes);
    return KITH_OK;
}

const ki_kernel_type ki_ref_unfold = {.create = unfold_create,
                                      .bind = ki_ref_bind,
                                      .forward = unfold_forward,
                                      .backward = unfold_backward,
                                      .free = ki_ref_free};
