/* lrn across channels. With base_c = k + alpha / size * sum of src^2 over the channels within
 * size / 2 of c (those that exist):
 *   dst_c = src_c * base_c^-beta
 *   diff_src_c = diff_dst_c * base_c^-beta
 *              - 2 alpha beta / size * src_c * sum over the neighbours j of c of
 *                diff_dst_j * src_j * base_j^(-beta - 1)
 * The workspace keeps base; the terms of the sum go through the scratch memory. */
#include "backend/ref/ref.h"
#include "base/parallel.h"

typedef struct lrn {
    ki_ref_dims d;
    const ki_lrn_attr *a;
    const ki_real *src, *diff_dst;
    ki_real *dst, *base, *term, *diff_src;
} lrn;

static lrn lrn_of(ki_kernel *kernel) {
    const ki_ref_kernel *k = ki_ref_of(kernel);
    return (lrn){
        .d = ki_ref_dims_of(&k->spec.dst),
        .a = &k->attr.lrn,
        .src = k->binding.src[0],
        .dst = k->binding.dst,
        .base = k->binding.workspace,
        .term = k->binding.scratch,
        .diff_dst = k->binding.diff_dst[0],
        .diff_src = k->binding.diff_src[0],
    };
}

static int64_t first_of(const lrn *l, int64_t c) { return c > l->a->size / 2 ? c - l->a->size / 2 : 0; }

static int64_t last_of(const lrn *l, int64_t c) {
    return c + l->a->size / 2 < l->d.c ? c + l->a->size / 2 : l->d.c - 1;
}

/* Items: images, here and below. */
static void forward_images(void *context, int64_t begin, int64_t end) {
    const lrn *l = context;
    const int64_t cells = l->d.h * l->d.w;
    for (int64_t n = begin; n < end; n++) {
        const ki_real *src = l->src + n * l->d.c * cells;
        for (int64_t c = 0; c < l->d.c; c++) {
            for (int64_t i = 0; i < cells; i++) {
                const int64_t at = (n * l->d.c + c) * cells + i;
                double sum = 0;
                for (int64_t j = first_of(l, c); j <= last_of(l, c); j++)
                    sum += (double)src[j * cells + i] * (double)src[j * cells + i];
                const double base = l->a->k + l->a->alpha / (double)l->a->size * sum;
                l->dst[at] = (ki_real)((double)l->src[at] * pow(base, -l->a->beta));
                if (l->base) l->base[at] = (ki_real)base;
            }
        }
    }
}

static void backward_images(void *context, int64_t begin, int64_t end) {
    const lrn *l = context;
    const int64_t cells = l->d.h * l->d.w, n_values = l->d.c * cells;
    const double slope = 2 * l->a->alpha * l->a->beta / (double)l->a->size;
    for (int64_t n = begin; n < end; n++) {
        const int64_t from = n * n_values;
        for (int64_t at = from; at < from + n_values; at++)
            l->term[at] = (ki_real)((double)l->diff_dst[at] * (double)l->src[at] *
                                    pow((double)l->base[at], -l->a->beta - 1));
        for (int64_t c = 0; c < l->d.c; c++) {
            for (int64_t i = 0; i < cells; i++) {
                const int64_t at = from + c * cells + i;
                double sum = 0;
                for (int64_t j = first_of(l, c); j <= last_of(l, c); j++)
                    sum += (double)l->term[from + j * cells + i];
                l->diff_src[at] = (ki_real)((double)l->diff_dst[at] * pow((double)l->base[at], -l->a->beta) -
                                            slope * (double)l->src[at] * sum);
            }
        }
    }
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_ref_kernel_new(&ki_ref_lrn, backend, spec, ret_kernel, err));
    const size_t bytes = spec->mode == KI_TRAIN ? spec->dst.bytes : 0;
    *ret_info =
        (ki_kernel_info){.workspace_bytes = bytes, .scratch_bytes = bytes, .backward_reads_src = true};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    lrn l = lrn_of(kernel);
    ki_parallel_for(l.d.mb, 1, forward_images, &l);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    lrn l = lrn_of(kernel);
    if (l.diff_src) ki_parallel_for(l.d.mb, 1, backward_images, &l);
    return KITH_OK;
}

const ki_kernel_type ki_ref_lrn = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .backward = backward, .free = ki_ref_free};
