/* layer_norm. With xhat = (src - mean) * istd, istd = 1 / sqrt(var + eps) over the n numbers of a row:
 *   dst = gamma * xhat + beta
 *   diff_gamma += sum over rows of diff_dst * xhat,  diff_beta += sum over rows of diff_dst
 *   diff_src = istd * (g - mean(g) - xhat * mean(g * xhat)) with g = gamma * diff_dst */
#include "backend/ref/ref.h"
#include "base/parallel.h"

typedef struct moments {
    double mean, istd;
} moments;

static moments moments_of(const ki_ref_kernel *k, int64_t row) {
    const int64_t n = k->spec.dst.shape.dim[1];
    const ki_real *src = (const ki_real *)k->binding.src[0] + row * n;
    double mean = 0, var = 0;
    for (int64_t i = 0; i < n; i++) mean += (double)src[i];
    mean /= (double)n;
    for (int64_t i = 0; i < n; i++) var += ((double)src[i] - mean) * ((double)src[i] - mean);
    return (moments){mean, 1 / sqrt(var / (double)n + k->attr.layer_norm.eps)};
}

/* Items: rows. */
static void forward_rows(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    const int64_t n = k->spec.dst.shape.dim[1];
    const ki_real *gamma = k->binding.param[KI_W].value, *beta = k->binding.param[KI_B].value;
    for (int64_t r = begin; r < end; r++) {
        const ki_real *src = (const ki_real *)k->binding.src[0] + r * n;
        ki_real *dst = (ki_real *)k->binding.dst + r * n;
        const moments m = moments_of(k, r);
        for (int64_t i = 0; i < n; i++)
            dst[i] = (ki_real)((double)gamma[i] * ((double)src[i] - m.mean) * m.istd + (double)beta[i]);
    }
}

/* Items: rows. */
static void backward_rows(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    const int64_t n = k->spec.dst.shape.dim[1];
    const ki_real *gamma = k->binding.param[KI_W].value;
    for (int64_t r = begin; r < end; r++) {
        const ki_real *src = (const ki_real *)k->binding.src[0] + r * n;
        const ki_real *diff_dst = (const ki_real *)k->binding.diff_dst[0] + r * n;
        ki_real *diff_src = (ki_real *)k->binding.diff_src[0] + r * n;
        const moments m = moments_of(k, r);
        double sum = 0, sum_xhat = 0;
        for (int64_t i = 0; i < n; i++) {
            const double g = (double)gamma[i] * (double)diff_dst[i];
            sum += g;
            sum_xhat += g * ((double)src[i] - m.mean) * m.istd;
        }
        sum /= (double)n, sum_xhat /= (double)n;
        for (int64_t i = 0; i < n; i++) {
            const double g = (double)gamma[i] * (double)diff_dst[i];
            const double xhat = ((double)src[i] - m.mean) * m.istd;
            diff_src[i] = (ki_real)(m.istd * (g - sum - xhat * sum_xhat));
        }
    }
}

/* Row after row, so that the order of the sums is fixed. */
static void add_param_diffs(const ki_ref_kernel *k) {
    const int64_t mb = k->spec.dst.shape.dim[0], n = k->spec.dst.shape.dim[1];
    ki_real *diff_gamma = ki_ref_diff(k, KI_W), *diff_beta = ki_ref_diff(k, KI_B);
    for (int64_t r = 0; r < mb; r++) {
        const ki_real *src = (const ki_real *)k->binding.src[0] + r * n;
        const ki_real *diff_dst = (const ki_real *)k->binding.diff_dst[0] + r * n;
        const moments m = moments_of(k, r);
        for (int64_t i = 0; i < n; i++) {
            if (diff_gamma)
                diff_gamma[i] += (ki_real)((double)diff_dst[i] * ((double)src[i] - m.mean) * m.istd);
            if (diff_beta) diff_beta[i] += diff_dst[i];
        }
    }
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_ref_kernel_new(&ki_ref_layer_norm, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    ki_ref_kernel *k = ki_ref_of(kernel);
    ki_parallel_for(k->spec.dst.shape.dim[0], ki_ref_grain(k->spec.dst.shape.dim[1]), forward_rows, k);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    ki_ref_kernel *k = ki_ref_of(kernel);
    add_param_diffs(k);
    if (k->binding.diff_src[0])
        ki_parallel_for(k->spec.dst.shape.dim[0], ki_ref_grain(k->spec.dst.shape.dim[1]), backward_rows, k);
    return KITH_OK;
}

const ki_kernel_type ki_ref_layer_norm = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .backward = backward, .free = ki_ref_free};
