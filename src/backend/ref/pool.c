/* pool. A maximum sends its gradient to the first of equal cells, in row order; the workspace holds
 * that cell's index in the source plane. */
#include "backend/ref/ref.h"
#include "base/parallel.h"

typedef struct window {
    int64_t h0, h1, w0, w1; /* cells inside the source */
    double n;               /* what an average divides by */
} window;

typedef struct pool {
    ki_ref_dims s, d;
    const ki_pool_attr *a;
    const ki_real *src, *diff_dst;
    ki_real *dst, *diff_src;
    int32_t *index;
} pool;

static pool pool_of(ki_kernel *kernel) {
    const ki_ref_kernel *k = ki_ref_of(kernel);
    return (pool){
        .s = ki_ref_dims_of(&k->spec.src[0]),
        .d = ki_ref_dims_of(&k->spec.dst),
        .a = &k->attr.pool,
        .src = k->binding.src[0],
        .dst = k->binding.dst,
        .diff_dst = k->binding.diff_dst[0],
        .diff_src = k->binding.diff_src[0],
        .index = k->binding.workspace,
    };
}

static void clip(int64_t begin, int64_t k, int64_t p, int64_t size, int64_t *ret_begin, int64_t *ret_end,
                 int64_t *ret_padded) {
    const int64_t end = begin + k;
    *ret_padded = (end < size + p ? end : size + p) - begin;
    *ret_begin = begin > 0 ? begin : 0;
    *ret_end = end < size ? end : size;
}

static window window_at(const pool *p, int64_t oh, int64_t ow) {
    const ki_pool_attr *a = p->a;
    window w;
    int64_t padded_h = 0, padded_w = 0;
    clip(oh * a->s - a->p, a->k, a->p, p->s.h, &w.h0, &w.h1, &padded_h);
    clip(ow * a->s - a->p, a->k, a->p, p->s.w, &w.w0, &w.w1, &padded_w);
    w.n = (double)(a->count_pad ? padded_h * padded_w : (w.h1 - w.h0) * (w.w1 - w.w0));
    return w;
}

static ki_real window_max(const window *w, const ki_real *src, int64_t iw, int64_t *ret_index) {
    int64_t best = w->h0 * iw + w->w0;
    for (int64_t h = w->h0; h < w->h1; h++) {
        for (int64_t i = h * iw + w->w0; i < h * iw + w->w1; i++) {
            if (src[i] > src[best]) best = i;
        }
    }
    *ret_index = best;
    return src[best];
}

static ki_real window_average(const window *w, const ki_real *src, int64_t iw) {
    double sum = 0;
    for (int64_t h = w->h0; h < w->h1; h++) {
        for (int64_t i = h * iw + w->w0; i < h * iw + w->w1; i++) sum += (double)src[i];
    }
    return (ki_real)(sum / w->n);
}

/* Items: planes (n, c), here and below. */
static void forward_planes(void *context, int64_t begin, int64_t end) {
    const pool *p = context;
    for (int64_t plane = begin; plane < end; plane++) {
        const ki_real *src = p->src + plane * p->s.h * p->s.w;
        for (int64_t oh = 0; oh < p->d.h; oh++) {
            for (int64_t ow = 0; ow < p->d.w; ow++) {
                const int64_t at = (plane * p->d.h + oh) * p->d.w + ow;
                const window w = window_at(p, oh, ow);
                if (p->a->average) {
                    p->dst[at] = window_average(&w, src, p->s.w);
                    continue;
                }
                int64_t index = 0;
                p->dst[at] = window_max(&w, src, p->s.w, &index);
                if (p->index) p->index[at] = (int32_t)index;
            }
        }
    }
}

static void backward_planes(void *context, int64_t begin, int64_t end) {
    const pool *p = context;
    for (int64_t plane = begin; plane < end; plane++) {
        ki_real *diff_src = p->diff_src + plane * p->s.h * p->s.w;
        for (int64_t i = 0; i < p->s.h * p->s.w; i++) diff_src[i] = 0;
        for (int64_t oh = 0; oh < p->d.h; oh++) {
            for (int64_t ow = 0; ow < p->d.w; ow++) {
                const int64_t at = (plane * p->d.h + oh) * p->d.w + ow;
                if (!p->a->average) {
                    diff_src[p->index[at]] += p->diff_dst[at];
                    continue;
                }
                const window w = window_at(p, oh, ow);
                const ki_real share = (ki_real)((double)p->diff_dst[at] / w.n);
                for (int64_t h = w.h0; h < w.h1; h++) {
                    for (int64_t i = h * p->s.w + w.w0; i < h * p->s.w + w.w1; i++) diff_src[i] += share;
                }
            }
        }
    }
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    const ki_ref_dims s = ki_ref_dims_of(&spec->src[0]);
    if (s.h * s.w > INT32_MAX)
        return ki_fail(err, KITH_EUNSUPPORTED, "backend ref pools planes of at most 2^31 - 1 cells");
    KI_TRY(ki_ref_kernel_new(&ki_ref_pool, backend, spec, ret_kernel, err));
    const bool keeps = spec->mode == KI_TRAIN && !spec->attr->pool.average;
    *ret_info = (ki_kernel_info){.workspace_bytes =
                                     keeps ? (size_t)ki_shape_count(&spec->dst.shape) * sizeof(int32_t) : 0};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    pool p = pool_of(kernel);
    ki_parallel_for(p.d.mb * p.d.c, ki_ref_grain(p.d.h * p.d.w * p.a->k * p.a->k), forward_planes, &p);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    pool p = pool_of(kernel);
    if (p.diff_src) ki_parallel_for(p.d.mb * p.d.c, ki_ref_grain(p.s.h * p.s.w), backward_planes, &p);
    return KITH_OK;
}

const ki_kernel_type ki_ref_pool = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .backward = backward, .free = ki_ref_free};
