/* layer_norm of rows: vectors, tokens, or the channels of each pixel of a map. With xhat = (src - mean) * istd,
 * istd = 1 / sqrt(var + eps) over the c numbers of a row:
 *   dst = gamma * xhat + beta
 *   diff_gamma += sum over rows of diff_dst * xhat,  diff_beta += sum over rows of diff_dst
 *   diff_src = istd * (g - mean(g) - xhat * mean(g * xhat)) with g = gamma * diff_dst
 * RMS: mean is 0, var the mean of squares, there is no beta, and diff_src is without mean(g). */
#include <math.h>

#include "backend/ref/ref.h"
#include "base/parallel.h"

/* Row r begins at begin_of(…, r), and its numbers are `step` apart. */
typedef struct rows {
    int64_t n, c, hw, step;
    double eps;
    bool rms;
} rows;

static rows rows_of(const ki_ref_kernel *k) {
    const ki_ref_dims d = ki_ref_dims_of(&k->spec.dst);
    const int64_t hw = d.h * d.w;
    return (rows){.n = d.mb * hw,
                  .c = d.c,
                  .hw = hw,
                  .step = hw,
                  .eps = k->attr.layer_norm.eps,
                  .rms = k->attr.layer_norm.rms};
}

static int64_t begin_of(const rows *s, int64_t r) { return r / s->hw * s->c * s->hw + r % s->hw; }

typedef struct moments {
    double mean, istd;
} moments;

static moments moments_of(const rows *s, const ki_real *row) {
    double mean = 0, var = 0;
    for (int64_t i = 0; i < s->c && !s->rms; i++) mean += (double)row[i * s->step];
    mean /= (double)s->c;
    for (int64_t i = 0; i < s->c; i++) {
        const double d = (double)row[i * s->step] - mean;
        var += d * d;
    }
    return (moments){mean, 1 / sqrt(var / (double)s->c + s->eps)};
}

/* Items: rows. */
static void forward_rows(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    const rows s = rows_of(k);
    const ki_real *gamma = k->binding.param[KI_W].value, *beta = k->binding.param[KI_B].value;
    for (int64_t r = begin; r < end; r++) {
        const ki_real *src = (const ki_real *)k->binding.src[0] + begin_of(&s, r);
        ki_real *dst = (ki_real *)k->binding.dst + begin_of(&s, r);
        const moments m = moments_of(&s, src);
        for (int64_t i = 0; i < s.c; i++) {
            const double xhat = ((double)src[i * s.step] - m.mean) * m.istd;
            dst[i * s.step] = (ki_real)((double)gamma[i] * xhat + (s.rms ? 0 : (double)beta[i]));
        }
    }
}

/* Items: rows. */
static void backward_rows(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    const rows s = rows_of(k);
    const ki_real *gamma = k->binding.param[KI_W].value;
    for (int64_t r = begin; r < end; r++) {
        const ki_real *src = (const ki_real *)k->binding.src[0] + begin_of(&s, r);
        const ki_real *diff_dst = (const ki_real *)k->binding.diff_dst[0] + begin_of(&s, r);
        ki_real *diff_src = (ki_real *)k->binding.diff_src[0] + begin_of(&s, r);
        const moments m = moments_of(&s, src);
        double sum = 0, sum_xhat = 0;
        for (int64_t i = 0; i < s.c; i++) {
            const double g = (double)gamma[i] * (double)diff_dst[i * s.step];
            sum += s.rms ? 0 : g;
            sum_xhat += g * ((double)src[i * s.step] - m.mean) * m.istd;
        }
        sum /= (double)s.c, sum_xhat /= (double)s.c;
        for (int64_t i = 0; i < s.c; i++) {
            const double g = (double)gamma[i] * (double)diff_dst[i * s.step];
            const double xhat = ((double)src[i * s.step] - m.mean) * m.istd;
            diff_src[i * s.step] = (ki_real)(m.istd * (g - sum - xhat * sum_xhat));
        }
    }
}

/* Row after row, so that the order of the sums is fixed; in double, in the scratch [2, c]. */
static void add_param_diffs(const ki_ref_kernel *k) {
    const rows s = rows_of(k);
    ki_real *diff_gamma = ki_ref_diff(k, KI_W), *diff_beta = ki_ref_diff(k, KI_B);
    double *gamma = k->binding.scratch, *beta = gamma + s.c;
    for (int64_t i = 0; i < 2 * s.c; i++) gamma[i] = 0;
    for (int64_t r = 0; r < s.n; r++) {
        const ki_real *src = (const ki_real *)k->binding.src[0] + begin_of(&s, r);
        const ki_real *diff_dst = (const ki_real *)k->binding.diff_dst[0] + begin_of(&s, r);
        const moments m = moments_of(&s, src);
        for (int64_t i = 0; i < s.c; i++) {
            gamma[i] += (double)diff_dst[i * s.step] * ((double)src[i * s.step] - m.mean) * m.istd;
            beta[i] += (double)diff_dst[i * s.step];
        }
    }
    for (int64_t i = 0; i < s.c; i++) {
        if (diff_gamma) diff_gamma[i] += (ki_real)gamma[i];
        if (diff_beta) diff_beta[i] += (ki_real)beta[i];
    }
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    const ki_ref_dims d = ki_ref_dims_of(&spec->dst);
    KI_TRY(ki_ref_kernel_new(&ki_ref_layer_norm, backend, spec, ret_kernel, err));
    *ret_info =
        (ki_kernel_info){.backward_reads_src = true, .scratch_bytes = 2 * (size_t)d.c * sizeof(double)};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const rows s = rows_of(ki_ref_of(kernel));
    ki_parallel_for(s.n, ki_ref_grain(s.c), forward_rows, kernel);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    ki_ref_kernel *k = ki_ref_of(kernel);
    const rows s = rows_of(k);
    if (ki_ref_diff(k, KI_W) || ki_ref_diff(k, KI_B)) add_param_diffs(k);
    if (k->binding.diff_src[0]) ki_parallel_for(s.n, ki_ref_grain(s.c), backward_rows, k);
    return KITH_OK;
}

const ki_kernel_type ki_ref_layer_norm = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .backward = backward, .free = ki_ref_free};
