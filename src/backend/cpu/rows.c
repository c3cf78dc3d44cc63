/* L2 normalisation of plain rows [mb, c]. It is small compared with the network, so the sums are simply computed in double. */
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"

typedef struct rows {
    ki_kernel base;
    int64_t mb, c;
    double eps;
    ki_binding b;
} rows;

static void rows_free(ki_kernel *kernel) { ki_free(kernel); }

static kith_status rows_bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ((rows *)kernel)->b = *binding;
    return KITH_OK;
}

static kith_status rows_create(ki_backend *backend, const ki_kernel_type *type, const ki_kernel_spec *spec,
                               ki_kernel **ret_kernel, kith_error *err) {
    rows *k = NULL;
    KI_TRY(ki_kernel_new(backend, type, sizeof *k, &k, err));
    k->mb = spec->src[0].shape.dim[0];
    k->c = spec->src[0].shape.dim[1];
    k->eps = spec->attr->l2_norm.eps;
    *ret_kernel = &k->base;
    return KITH_OK;
}

static kith_status l2_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                             ki_kernel **ret_kernel, kith_error *err) {
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    return rows_create(backend, &cpu_l2_norm, spec, ret_kernel, err);
}

static double norm_of(const float *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

static kith_status l2_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const rows *k = (rows *)kernel;
    for (int64_t n = 0; n < k->mb; n++) {
        const float *x = (const float *)k->b.src[0] + n * k->c;
        float *y = (float *)k->b.dst + n * k->c;
        const double scale = 1 / fmax(norm_of(x, k->c), k->eps);
        for (int64_t i = 0; i < k->c; i++) y[i] = (float)((double)x[i] * scale);
    }
    return KITH_OK;
}

/* y = x / r: dx = (dy - y (y . dy)) / r; where r was clamped it is a constant: dx = dy / eps. */
static kith_status l2_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const rows *k = (rows *)kernel;
    for (int64_t n = 0; n < k->mb; n++) {
        const float *x = (const float *)k->b.src[0] + n * k->c,
                    *dy = (const float *)k->b.diff_dst[0] + n * k->c;
        float *dx = (float *)k->b.diff_src[0] + n * k->c;
        const double norm = norm_of(x, k->c), r = fmax(norm, k->eps);
        double dot = 0;
        for (int64_t i = 0; norm >= k->eps && i < k->c; i++) dot += (double)x[i] * (double)dy[i];
        dot /= r * r;
        for (int64_t i = 0; i < k->c; i++) dx[i] = (float)(((double)dy[i] - (double)x[i] * dot) / r);
    }
    return KITH_OK;
}

const ki_kernel_type cpu_l2_norm = {.create = l2_create,
                                    .bind = rows_bind,
                                    .forward = l2_forward,
                                    .backward = l2_backward,
                                    .free = rows_free};
