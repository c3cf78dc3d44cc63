/* linear: dst[n, oc] = sum over ic of weights[oc, ic] * src[n, ic] + bias[oc]; n counts vectors or tokens. */
#include "backend/ref/ref.h"
#include "base/parallel.h"

typedef struct linear {
    int64_t mb, ic, oc;
    const ki_real *src, *weights, *bias, *diff_dst;
    ki_real *dst, *diff_src, *diff_weights, *diff_bias;
} linear;

static linear linear_of(ki_kernel *kernel) {
    const ki_ref_kernel *k = ki_ref_of(kernel);
    return (linear){
        .mb = ki_shape_rows(&k->spec.dst.shape),
        .ic = ki_shape_width(&k->spec.src[0].shape),
        .oc = ki_shape_width(&k->spec.dst.shape),
        .src = k->binding.src[0],
        .weights = k->binding.param[KI_W].value,
        .bias = k->binding.param[KI_B].value,
        .dst = k->binding.dst,
        .diff_dst = k->binding.diff_dst[0],
        .diff_src = k->binding.diff_src[0],
        .diff_weights = ki_ref_diff(k, KI_W),
        .diff_bias = ki_ref_diff(k, KI_B),
    };
}

/* Items: values of dst. */
static void forward_items(void *context, int64_t begin, int64_t end) {
    const linear *l = context;
    for (int64_t item = begin; item < end; item++) {
        const ki_real *src = l->src + item / l->oc * l->ic, *weights = l->weights + item % l->oc * l->ic;
        double sum = l->bias ? (double)l->bias[item % l->oc] : 0;
        for (int64_t ic = 0; ic < l->ic; ic++) sum += (double)weights[ic] * (double)src[ic];
        l->dst[item] = (ki_real)sum;
    }
}

/* Items: values of diff_src. */
static void backward_items(void *context, int64_t begin, int64_t end) {
    const linear *l = context;
    for (int64_t item = begin; item < end; item++) {
        const ki_real *diff = l->diff_dst + item / l->ic * l->oc, *weights = l->weights + item % l->ic;
        double sum = 0;
        for (int64_t oc = 0; oc < l->oc; oc++) sum += (double)diff[oc] * (double)weights[oc * l->ic];
        l->diff_src[item] = (ki_real)sum;
    }
}

/* Items: rows of weights. */
static void backward_rows(void *context, int64_t begin, int64_t end) {
    const linear *l = context;
    for (int64_t oc = begin; oc < end; oc++) {
        for (int64_t ic = 0; l->diff_weights && ic < l->ic; ic++) {
            double sum = 0;
            for (int64_t n = 0; n < l->mb; n++)
                sum += (double)l->diff_dst[n * l->oc + oc] * (double)l->src[n * l->ic + ic];
            l->diff_weights[oc * l->ic + ic] += (ki_real)sum;
        }
        double sum = 0;
        for (int64_t n = 0; n < l->mb; n++) sum += (double)l->diff_dst[n * l->oc + oc];
        if (l->diff_bias) l->diff_bias[oc] += (ki_real)sum;
    }
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_ref_kernel_new(&ki_ref_linear, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_src = spec->wants_diff_params && !spec->keeps_params,
                                 .skips_diffs = true};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    linear l = linear_of(kernel);
    ki_parallel_for(l.mb * l.oc, ki_ref_grain(l.ic), forward_items, &l);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    linear l = linear_of(kernel);
    if (l.diff_src) ki_parallel_for(l.mb * l.ic, ki_ref_grain(l.oc), backward_items, &l);
    if (l.diff_weights || l.diff_bias) ki_parallel_for(l.oc, ki_ref_grain(l.mb * l.ic), backward_rows, &l);
    return KITH_OK;
}

kith_status ki_ref_linear_grad(ki_backend *backend, const ki_edge *src_edge, const void *src,
                               const ki_real *diff_dst, int64_t oc, ki_real *diff_weights, ki_real *diff_bias,
                               kith_error *err) {
    (void)backend, (void)err;
    linear l = {.mb = src_edge->shape.dim[0],
                .ic = src_edge->shape.dim[1],
                .oc = oc,
                .src = src,
                .diff_dst = diff_dst,
                .diff_weights = diff_weights,
                .diff_bias = diff_bias};
    ki_parallel_for(l.oc, ki_ref_grain(l.mb * l.ic), backward_rows, &l);
    return KITH_OK;
}

const ki_kernel_type ki_ref_linear = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .backward = backward, .free = ki_ref_free};
