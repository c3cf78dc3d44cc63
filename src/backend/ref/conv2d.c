/* conv2d, written as its definition: every dst value is one sum in double, in the order kh, kw, ic. With groups ic and oc count
 * the channels of one group, where they are not all channels.
 *
 * The innermost loop runs along a row, over CHUNK sums kept on the stack, because a compiler can vectorise
 * this without changing the order of any sum. */
#include "backend/ref/ref.h"
#include "base/parallel.h"

enum { CHUNK = 64, LANES = 8 };

typedef struct conv {
    int64_t mb, ic, ih, iw, oc, oh, ow;
    int64_t group_ic, group_oc; /* channels of a group */
    const ki_conv_attr *a;
    const ki_real *src, *weights, *bias, *diff_dst;
    ki_real *dst, *diff_src, *diff_weights, *diff_bias;
} conv;

static conv conv_of(ki_kernel *kernel) {
    const ki_ref_kernel *k = ki_ref_of(kernel);
    const ki_ref_dims s = ki_ref_dims_of(&k->spec.src[0]), d = ki_ref_dims_of(&k->spec.dst);
    const int64_t groups = k->attr.conv.groups ? k->attr.conv.groups : 1;
    return (conv){
        .group_ic = s.c / groups,
        .group_oc = d.c / groups,
        .mb = s.mb,
        .ic = s.c,
        .ih = s.h,
        .iw = s.w,
        .oc = d.c,
        .oh = d.h,
        .ow = d.w,
        .a = &k->attr.conv,
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

/* The first channel that output channel oc reads. */
static int64_t first_ic(const conv *c, int64_t oc) { return oc / c->group_oc * c->group_ic; }

/* The first and one past the last ow in [begin, end) whose source column ow * sw - pw + kw is in
 * [low, high). */
static void ow_range(const ki_conv_attr *a, int64_t kw, int64_t low, int64_t high, int64_t begin, int64_t end,
                     int64_t *ret_begin, int64_t *ret_end) {
    const int64_t least = low + a->pw - kw, limit = high + a->pw - kw;
    const int64_t first = least > 0 ? (least + a->sw - 1) / a->sw : 0;
    const int64_t past = limit > 0 ? (limit + a->sw - 1) / a->sw : 0;
    *ret_begin = first > begin ? first : begin;
    *ret_end = past < end ? past : end;
}

/* Items: planes (n, oc) of dst. */
static void forward_planes(void *context, int64_t begin, int64_t end) {
    const conv *c = context;
    const ki_conv_attr *a = c->a;
    for (int64_t plane = begin; plane < end; plane++) {
        const int64_t n = plane / c->oc, oc = plane % c->oc;
        for (int64_t oh = 0; oh < c->oh; oh++) {
            for (int64_t w0 = 0; w0 < c->ow; w0 += CHUNK) {
                const int64_t w1 = w0 + CHUNK < c->ow ? w0 + CHUNK : c->ow;
                double sum[CHUNK];
                for (int64_t i = 0; i < CHUNK; i++) sum[i] = c->bias ? (double)c->bias[oc] : 0;
                for (int64_t kh = 0; kh < a->kh; kh++) {
                    const int64_t ih = oh * a->sh - a->ph + kh;
                    if (ih < 0 || ih >= c->ih) continue;
                    for (int64_t kw = 0; kw < a->kw; kw++) {
                        int64_t from = 0, to = 0;
                        ow_range(a, kw, 0, c->iw, w0, w1, &from, &to);
                        for (int64_t ic = 0; ic < c->group_ic; ic++) {
                            const int64_t channel = first_ic(c, oc) + ic;
                            const ki_real *row = c->src + ((n * c->ic + channel) * c->ih + ih) * c->iw;
                            const double weight =
                                (double)c->weights[((oc * c->group_ic + ic) * a->kh + kh) * a->kw + kw];
                            for (int64_t ow = from; ow < to; ow++)
                                sum[ow - w0] += weight * (double)row[ow * a->sw - a->pw + kw];
                        }
                    }
                }
                ki_real *dst = c->dst + (plane * c->oh + oh) * c->ow;
                for (int64_t ow = w0; ow < w1; ow++) dst[ow] = (ki_real)sum[ow - w0];
            }
        }
    }
}

/* Items: planes (n, ic) of diff_src. */
static void backward_planes(void *context, int64_t begin, int64_t end) {
    const conv *c = context;
    const ki_conv_attr *a = c->a;
    for (int64_t plane = begin; plane < end; plane++) {
        const int64_t n = plane / c->ic, ic = plane % c->ic;
        const int64_t first_oc = ic / c->group_ic * c->group_oc, in_group = ic % c->group_ic;
        for (int64_t ih = 0; ih < c->ih; ih++) {
            for (int64_t w0 = 0; w0 < c->iw; w0 += CHUNK) {
                const int64_t w1 = w0 + CHUNK < c->iw ? w0 + CHUNK : c->iw;
                double sum[CHUNK] = {0};
                for (int64_t kh = 0; kh < a->kh; kh++) {
                    const int64_t offset = ih + a->ph - kh, oh = offset / a->sh;
                    if (offset < 0 || offset % a->sh || oh >= c->oh) continue;
                    for (int64_t kw = 0; kw < a->kw; kw++) {
                        int64_t from = 0, to = 0;
                        ow_range(a, kw, w0, w1, 0, c->ow, &from, &to);
                        for (int64_t oc = first_oc; oc < first_oc + c->group_oc; oc++) {
                            const ki_real *row = c->diff_dst + ((n * c->oc + oc) * c->oh + oh) * c->ow;
                            const double weight =
                                (double)c->weights[((oc * c->group_ic + in_group) * a->kh + kh) * a->kw + kw];
                            for (int64_t ow = from; ow < to; ow++)
                                sum[ow * a->sw - a->pw + kw - w0] += weight * (double)row[ow];
                        }
                    }
                }
                ki_real *diff = c->diff_src + (plane * c->ih + ih) * c->iw;
                for (int64_t iw = w0; iw < w1; iw++) diff[iw] = (ki_real)sum[iw - w0];
            }
        }
    }
}

/* ic: of all channels. */
static double weight_gradient(const conv *c, int64_t oc, int64_t ic, int64_t kh, int64_t kw) {
    const ki_conv_attr *a = c->a;
    double lane[LANES] = {0};
    int64_t from = 0, to = 0;
    ow_range(a, kw, 0, c->iw, 0, c->ow, &from, &to);
    for (int64_t n = 0; n < c->mb; n++) {
        for (int64_t oh = 0; oh < c->oh; oh++) {
            const int64_t ih = oh * a->sh - a->ph + kh;
            if (ih < 0 || ih >= c->ih) continue;
            const ki_real *diff = c->diff_dst + ((n * c->oc + oc) * c->oh + oh) * c->ow;
            const ki_real *src = c->src + ((n * c->ic + ic) * c->ih + ih) * c->iw;
            int64_t ow = from;
            for (; ow + LANES <= to; ow += LANES) {
                for (int64_t i = 0; i < LANES; i++)
                    lane[i] += (double)diff[ow + i] * (double)src[(ow + i) * a->sw - a->pw + kw];
            }
            for (; ow < to; ow++) lane[0] += (double)diff[ow] * (double)src[ow * a->sw - a->pw + kw];
        }
    }
    double sum = 0;
    for (int64_t i = 0; i < LANES; i++) sum += lane[i];
    return sum;
}

/* Items: kernels (oc, ic of the group) of diff_weights. */
static void backward_weights(void *context, int64_t begin, int64_t end) {
    const conv *c = context;
    for (int64_t item = begin; item < end; item++) {
        const int64_t oc = item / c->group_ic, ic = first_ic(c, oc) + item % c->group_ic;
        ki_real *diff = c->diff_weights + item * c->a->kh * c->a->kw;
        for (int64_t kh = 0; kh < c->a->kh; kh++) {
            for (int64_t kw = 0; kw < c->a->kw; kw++) *diff++ += (ki_real)weight_gradient(c, oc, ic, kh, kw);
        }
    }
}

/* Items: channels oc. */
static void backward_bias(void *context, int64_t begin, int64_t end) {
    const conv *c = context;
    const int64_t cells = c->oh * c->ow;
    for (int64_t oc = begin; oc < end; oc++) {
        double sum = 0;
        for (int64_t n = 0; n < c->mb; n++) {
            const ki_real *diff = c->diff_dst + (n * c->oc + oc) * cells;
            for (int64_t i = 0; i < cells; i++) sum += (double)diff[i];
        }
        c->diff_bias[oc] += (ki_real)sum;
    }
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_ref_kernel_new(&ki_ref_conv2d, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_src = spec->wants_diff_params};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    conv c = conv_of(kernel);
    ki_parallel_for(c.mb * c.oc, 1, forward_planes, &c);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    conv c = conv_of(kernel);
    if (c.diff_src) ki_parallel_for(c.mb * c.ic, 1, backward_planes, &c);
    if (c.diff_weights) ki_parallel_for(c.oc * c.group_ic, 1, backward_weights, &c);
    if (c.diff_bias) ki_parallel_for(c.oc, 1, backward_bias, &c);
    return KITH_OK;
}

const ki_kernel_type ki_ref_conv2d = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .backward = backward, .free = ki_ref_free};
