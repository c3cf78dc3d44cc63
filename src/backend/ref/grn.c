/* grn. With G the L2 norm of a plane, m the mean of G over the channels of a row, r = 1 / (m + eps) and N = G * r:
 *   dst = (gamma * N + 1) * src + beta
 *   diff_gamma += sum over rows of N * S,  diff_beta += sum over rows of the sum over the plane of diff_dst,
 *       with S the sum over the plane of diff_dst * src
 *   diff_src = (gamma * N + 1) * diff_dst + P * src / G (0 where G is 0),
 *       with P = r * (gamma * S - r * mean over channels of gamma * S * G) */
#include <math.h>

#include "backend/ref/ref.h"
#include "base/parallel.h"

/* The workspace, in inference the scratch: G [mb, c] and r [mb]. The scratch of backward: S and the sum of diff_dst [mb, c]. All in double. */
typedef struct grn {
    const ki_ref_kernel *k;
    int64_t mb, c, hw;
    double *norm, *rate, *along, *sum;
} grn;

static grn grn_of(const ki_ref_kernel *k) {
    const ki_ref_dims d = ki_ref_dims_of(&k->spec.dst);
    double *norm = k->spec.mode == KI_TRAIN ? k->binding.workspace : k->binding.scratch;
    double *along = k->binding.scratch;
    return (grn){.k = k,
                 .mb = d.mb,
                 .c = d.c,
                 .hw = d.h * d.w,
                 .norm = norm,
                 .rate = norm + d.mb * d.c,
                 .along = along,
                 .sum = along + d.mb * d.c};
}

/* Items: rows. */
static void forward_rows(void *context, int64_t begin, int64_t end) {
    const grn *g = context;
    const ki_binding *b = &g->k->binding;
    const ki_real *gamma = b->param[KI_W].value, *beta = b->param[KI_B].value;
    for (int64_t n = begin; n < end; n++) {
        const ki_real *src = (const ki_real *)b->src[0] + n * g->c * g->hw;
        ki_real *dst = (ki_real *)b->dst + n * g->c * g->hw;
        double *norm = g->norm + n * g->c, mean = 0;
        for (int64_t c = 0; c < g->c; c++) {
            double squares = 0;
            for (int64_t i = c * g->hw; i < (c + 1) * g->hw; i++) squares += (double)src[i] * (double)src[i];
            norm[c] = sqrt(squares);
            mean += norm[c] / (double)g->c;
        }
        g->rate[n] = 1 / (mean + g->k->attr.grn.eps);
        for (int64_t i = 0; i < g->c * g->hw; i++) {
            const int64_t c = i / g->hw;
            const double factor = (double)gamma[c] * norm[c] * g->rate[n] + 1;
            dst[i] = (ki_real)(factor * (double)src[i] + (double)beta[c]);
        }
    }
}

/* Items: planes (n, c). */
static void sum_planes(void *context, int64_t begin, int64_t end) {
    const grn *g = context;
    const ki_real *src = g->k->binding.src[0], *diff_dst = g->k->binding.diff_dst[0];
    for (int64_t plane = begin; plane < end; plane++) {
        g->along[plane] = g->sum[plane] = 0;
        for (int64_t i = plane * g->hw; i < (plane + 1) * g->hw; i++) {
            g->along[plane] += (double)diff_dst[i] * (double)src[i];
            g->sum[plane] += (double)diff_dst[i];
        }
    }
}

/* Items: rows. */
static void backward_rows(void *context, int64_t begin, int64_t end) {
    const grn *g = context;
    const ki_binding *b = &g->k->binding;
    const ki_real *gamma = b->param[KI_W].value;
    for (int64_t n = begin; n < end; n++) {
        const double *norm = g->norm + n * g->c, *along = g->along + n * g->c, r = g->rate[n];
        double pull = 0;
        for (int64_t c = 0; c < g->c; c++) pull += (double)gamma[c] * along[c] * norm[c] / (double)g->c;
        for (int64_t c = 0; c < g->c; c++) {
            const double p = r * ((double)gamma[c] * along[c] - r * pull),
                         slope = norm[c] > 0 ? p / norm[c] : 0;
            const double factor = (double)gamma[c] * norm[c] * r + 1;
            const int64_t at = (n * g->c + c) * g->hw;
            const ki_real *src = (const ki_real *)b->src[0] + at,
                          *diff_dst = (const ki_real *)b->diff_dst[0] + at;
            ki_real *diff_src = (ki_real *)b->diff_src[0] + at;
            for (int64_t i = 0; i < g->hw; i++)
                diff_src[i] = (ki_real)(factor * (double)diff_dst[i] + slope * (double)src[i]);
        }
    }
}

static void add_param_diffs(const grn *g) {
    ki_real *diff_gamma = ki_ref_diff(g->k, KI_W), *diff_beta = ki_ref_diff(g->k, KI_B);
    for (int64_t c = 0; c < g->c; c++) {
        double gamma = 0, beta = 0;
        for (int64_t n = 0; n < g->mb; n++) {
            gamma += g->norm[n * g->c + c] * g->rate[n] * g->along[n * g->c + c];
            beta += g->sum[n * g->c + c];
        }
        if (diff_gamma) diff_gamma[c] += (ki_real)gamma;
        if (diff_beta) diff_beta[c] += (ki_real)beta;
    }
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    const ki_ref_dims d = ki_ref_dims_of(&spec->dst);
    KI_TRY(ki_ref_kernel_new(&ki_ref_grn, backend, spec, ret_kernel, err));
    const size_t norms = (size_t)(d.mb * (d.c + 1)) * sizeof(double);
    const bool trains = spec->mode == KI_TRAIN;
    *ret_info = (ki_kernel_info){.workspace_bytes = trains ? norms : 0,
                                 .scratch_bytes = trains ? 2 * (size_t)(d.mb * d.c) * sizeof(double) : norms,
                                 .backward_reads_src = true};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    grn g = grn_of(ki_ref_of(kernel));
    ki_parallel_for(g.mb, 1, forward_rows, &g);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    grn g = grn_of(ki_ref_of(kernel));
    ki_parallel_for(g.mb * g.c, ki_ref_grain(g.hw), sum_planes, &g);
    add_param_diffs(&g);
    if (g.k->binding.diff_src[0]) ki_parallel_for(g.mb, 1, backward_rows, &g);
    return KITH_OK;
}

const ki_kernel_type ki_ref_grn = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .backward = backward, .free = ki_ref_free};
