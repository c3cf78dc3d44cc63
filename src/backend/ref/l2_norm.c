/* l2_norm: y = x / max(|x|, eps) per row. Above eps
 *   diff_x = (diff_y - y (y . diff_y)) / |x|
 * and below it the norm is a constant: diff_x = diff_y / eps. */
#include "backend/ref/ref.h"
#include "base/parallel.h"

static double row_norm(const ki_real *row, int64_t n) {
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += (double)row[i] * (double)row[i];
    return sqrt(squares);
}

/* Items: rows, here and below. */
static void forward_rows(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    const int64_t n = k->spec.dst.shape.dim[1];
    const double eps = k->attr.l2_norm.eps;
    for (int64_t r = begin; r < end; r++) {
        const ki_real *src = (const ki_real *)k->binding.src[0] + r * n;
        ki_real *dst = (ki_real *)k->binding.dst + r * n;
        const double norm = row_norm(src, n), divisor = norm > eps ? norm : eps;
        for (int64_t i = 0; i < n; i++) dst[i] = (ki_real)((double)src[i] / divisor);
    }
}

static void backward_rows(void *context, int64_t begin, int64_t end) {
    const ki_ref_kernel *k = context;
    const int64_t n = k->spec.dst.shape.dim[1];
    const double eps = k->attr.l2_norm.eps;
    for (int64_t r = begin; r < end; r++) {
        const ki_real *src = (const ki_real *)k->binding.src[0] + r * n;
        const ki_real *diff_dst = (const ki_real *)k->binding.diff_dst[0] + r * n;
        ki_real *diff_src = (ki_real *)k->binding.diff_src[0] + r * n;
        const double norm = row_norm(src, n);
        double along = 0; /* x . diff_y / |x|^2 */
        if (norm >= eps) {
            for (int64_t i = 0; i < n; i++) along += (double)src[i] * (double)diff_dst[i];
            along /= norm * norm;
        }
        const double divisor = norm > eps ? norm : eps;
        for (int64_t i = 0; i < n; i++)
            diff_src[i] = (ki_real)(((double)diff_dst[i] - along * (double)src[i]) / divisor);
    }
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_ref_kernel_new(&ki_ref_l2_norm, backend, spec, ret_kernel, err));
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
    if (k->binding.diff_src[0])
        ki_parallel_for(k->spec.dst.shape.dim[0], ki_ref_grain(k->spec.dst.shape.dim[1]), backward_rows, k);
    return KITH_OK;
}

const ki_kernel_type ki_ref_l2_norm = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .backward = backward, .free = ki_ref_free};
