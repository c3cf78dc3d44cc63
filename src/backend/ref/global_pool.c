/* global_pool: average, maximum (the first of equals takes the gradient), their sum, or the generalised mean per plane. */
#include <math.h>

#include "backend/ref/ref.h"
#include "base/parallel.h"

typedef struct global_pool {
    int64_t n_planes, cells;
    bool has_average, has_max;
    const ki_real *src, *diff_dst;
    ki_real *dst, *diff_src;
    int32_t *index;
    const ki_real *p; /* of the generalised mean; NULL otherwise */
    ki_real *diff_p;
} global_pool;

static global_pool global_pool_of(ki_kernel *kernel) {
    const ki_ref_kernel *k = ki_ref_of(kernel);
    const ki_ref_dims s = ki_ref_dims_of(&k->spec.src[0]);
    return (global_pool){
        .n_planes = s.mb * s.c,
        .cells = s.h * s.w,
        .has_average = k->attr.global_pool.how != KI_GLOBAL_MAX,
        .has_max = k->attr.global_pool.how != KI_GLOBAL_AVG,
        .src = k->binding.src[0],
        .dst = k->binding.dst,
        .diff_dst = k->binding.diff_dst[0],
        .diff_src = k->binding.diff_src[0],
        .index = k->binding.workspace,
        .p = k->binding.param[KI_W].value,
        .diff_p = ki_ref_diff(k, KI_W),
    };
}

/* Items: planes (n, c), here and below. */
static void forward_planes(void *context, int64_t begin, int64_t end) {
    const global_pool *g = context;
    for (int64_t plane = begin; plane < end; plane++) {
        const ki_real *src = g->src + plane * g->cells;
        double sum = 0;
        int64_t best = 0;
        for (int64_t i = 0; i < g->cells; i++) {
            sum += (double)src[i];
            if (src[i] > src[best]) best = i;
        }
        double value = 0;
        if (g->has_average) value += sum / (double)g->cells;
        if (g->has_max) value += (double)src[best];
        g->dst[plane] = (ki_real)value;
        if (g->index) g->index[plane] = (int32_t)best;
    }
}

static void backward_planes(void *context, int64_t begin, int64_t end) {
    const global_pool *g = context;
    for (int64_t plane = begin; plane < end; plane++) {
        ki_real *diff_src = g->diff_src + plane * g->cells;
        const ki_real share = g->has_average ? (ki_real)((double)g->diff_dst[plane] / (double)g->cells) : 0;
        for (int64_t i = 0; i < g->cells; i++) diff_src[i] = share;
        if (g->has_max) diff_src[g->index[plane]] += g->diff_dst[plane];
    }
}

/* The mean of max(src, least)^p of a plane and, if ret_slope is not NULL, its derivative by p. */
static double power_mean(const global_pool *g, int64_t plane, double p, double *ret_slope) {
    double mean = 0, slope = 0;
    for (int64_t i = 0; i < g->cells; i++) {
        const double u = fmax((double)g->src[plane * g->cells + i], KI_GEM_LEAST), power = pow(u, p);
        mean += power / (double)g->cells;
        slope += power * log(u) / (double)g->cells;
    }
    if (ret_slope) *ret_slope = slope;
    return mean;
}

static void gem_forward(const global_pool *g) {
    const double p = (double)*g->p;
    for (int64_t plane = 0; plane < g->n_planes; plane++)
        g->dst[plane] = (ki_real)pow(power_mean(g, plane, p, NULL), 1 / p);
}

static void gem_backward(const global_pool *g) {
    const double p = (double)*g->p;
    double diff_p = 0;
    for (int64_t plane = 0; plane < g->n_planes; plane++) {
        double slope = 0;
        const double diff = (double)g->diff_dst[plane], mean = power_mean(g, plane, p, &slope),
                     value = pow(mean, 1 / p);
        diff_p += diff * value * (slope / (p * mean) - log(mean) / (p * p));
        for (int64_t i = plane * g->cells; g->diff_src && i < (plane + 1) * g->cells; i++) {
            const double x = (double)g->src[i], share = value / mean / (double)g->cells;
            g->diff_src[i] = x > KI_GEM_LEAST ? (ki_real)(diff * share * pow(x, p - 1)) : 0;
        }
    }
    if (g->diff_p) *g->diff_p += (ki_real)diff_p;
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    const ki_ref_dims s = ki_ref_dims_of(&spec->src[0]);
    if (s.h * s.w > INT32_MAX)
        return ki_fail(err, KITH_EUNSUPPORTED, "backend ref pools planes of at most 2^31 - 1 cells");
    KI_TRY(ki_ref_kernel_new(&ki_ref_global_pool, backend, spec, ret_kernel, err));
    const ki_global_pool how = spec->attr->global_pool.how;
    const bool keeps = spec->mode == KI_TRAIN && (how == KI_GLOBAL_MAX || how == KI_GLOBAL_BOTH);
    *ret_info = (ki_kernel_info){.workspace_bytes = keeps ? (size_t)(s.mb * s.c) * sizeof(int32_t) : 0,
                                 .backward_reads_src = how == KI_GLOBAL_GEM};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    global_pool g = global_pool_of(kernel);
    if (g.p)
        gem_forward(&g);
    else
        ki_parallel_for(g.n_planes, ki_ref_grain(g.cells), forward_planes, &g);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    global_pool g = global_pool_of(kernel);
    if (g.p)
        gem_backward(&g);
    else if (g.diff_src)
        ki_parallel_for(g.n_planes, ki_ref_grain(g.cells), backward_planes, &g);
    return KITH_OK;
}

const ki_kernel_type ki_ref_global_pool = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .backward = backward, .free = ki_ref_free};
