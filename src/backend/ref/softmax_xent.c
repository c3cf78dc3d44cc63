/* softmax_xent: dst[n] = log(sum over c of exp(src[n, c])) - src[n, label], taken after the row's
 * maximum is subtracted; diff_src[n, c] = (softmax - [c = label]) * diff_dst[n]. */
#include <inttypes.h>

#include "backend/ref/ref.h"

static void row_moments(const ki_real *src, int64_t n, double *ret_max, double *ret_sum) {
    double max = (double)src[0], sum = 0;
    for (int64_t i = 1; i < n; i++) max = (double)src[i] > max ? (double)src[i] : max;
    for (int64_t i = 0; i < n; i++) sum += exp((double)src[i] - max);
    *ret_max = max;
    *ret_sum = sum;
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_ref_kernel_new(&ki_ref_softmax_xent, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    const ki_ref_kernel *k = ki_ref_of(kernel);
    const int64_t mb = k->spec.src[0].shape.dim[0], n = k->spec.src[0].shape.dim[1];
    ki_real *dst = k->binding.dst;
    for (int64_t r = 0; r < mb; r++) {
        const ki_real *src = (const ki_real *)k->binding.src[0] + r * n;
        const int32_t label = k->binding.labels[r];
        if (label < 0 || label >= n)
            return ki_fail(err, KITH_EINVAL,
                           "the label of row %" PRId64 " is %" PRId32 ", wanted 0 to %" PRId64, r, label,
                           n - 1);
        double max = 0, sum = 0;
        row_moments(src, n, &max, &sum);
        dst[r] = (ki_real)(log(sum) + max - (double)src[label]);
    }
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const ki_ref_kernel *k = ki_ref_of(kernel);
    const int64_t mb = k->spec.src[0].shape.dim[0], n = k->spec.src[0].shape.dim[1];
    const ki_real *diff_dst = k->binding.diff_dst[0];
    if (!k->binding.diff_src[0]) return KITH_OK;
    for (int64_t r = 0; r < mb; r++) {
        const ki_real *src = (const ki_real *)k->binding.src[0] + r * n;
        ki_real *diff_src = (ki_real *)k->binding.diff_src[0] + r * n;
        double max = 0, sum = 0;
        row_moments(src, n, &max, &sum);
        for (int64_t i = 0; i < n; i++) {
            const double softmax = exp((double)src[i] - max) / sum;
            diff_src[i] = (ki_real)((softmax - (i == k->binding.labels[r])) * (double)diff_dst[r]);
        }
    }
    return KITH_OK;
}

const ki_kernel_type ki_ref_softmax_xent = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .backward = backward, .free = ki_ref_free};
