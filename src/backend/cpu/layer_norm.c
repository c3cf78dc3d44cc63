/* Layer norm of plain rows [mb, c]. Forward keeps the mean and 1 / sqrt(var + eps) of each row for backward.
 *
 * The gradients of gamma and beta are sums over rows: a thread takes columns and adds up their rows in order, so
 * that the number of threads does not change the sums. */
#include <math.h>

#include "backend/cpu/cpu.h"

typedef struct layer_norm {
    ki_kernel base;
    int64_t mb, c;
    double eps;
    ki_binding b;
} layer_norm;

enum { LEAST_NUMBERS = 16384 }; /* for a thread */

static int64_t grain(int64_t numbers_each) { return LEAST_NUMBERS / numbers_each + 1; }

static void norm_free(ki_kernel *kernel) { ki_free(kernel); }

static kith_status norm_bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ((layer_norm *)kernel)->b = *binding;
    return KITH_OK;
}

static kith_status norm_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                               ki_kernel **ret_kernel, kith_error *err) {
    layer_norm *k = NULL;
    KI_TRY(ki_kernel_new(backend, &cpu_layer_norm, sizeof *k, &k, err));
    k->mb = spec->dst.shape.dim[0];
    k->c = spec->dst.shape.dim[1];
    k->eps = spec->attr->layer_norm.eps;
    *ret_info =
        (ki_kernel_info){.workspace_bytes = spec->mode == KI_TRAIN ? 2 * (size_t)k->mb * sizeof(float) : 0,
                         .backward_reads_src = true};
    *ret_kernel = &k->base;
    return KITH_OK;
}

/* Sums in double, in eight parts so that they are computed side by side. */
enum { PARTS = 8 };

CPU_WIDE static double sum_of(const float *x, int64_t n, double minus, bool squares) {
    double part[PARTS] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + PARTS <= n; i += PARTS) {
        for (int p = 0; p < PARTS; p++) {
            const double d = (double)x[i + p] - minus;
            part[p] += squares ? d * d : d;
        }
    }
    for (; i < n; i++) {
        const double d = (double)x[i] - minus;
        part[0] += squares ? d * d : d;
    }
    for (int p = 0; p < PARTS; p++) sum += part[p];
    return sum;
}

CPU_WIDE static void scale_row(const float *x, const float *gamma, const float *beta, float mean, float istd,
                               float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = gamma[i] * ((x[i] - mean) * istd) + beta[i];
}

static void forward_rows(void *context, int64_t begin, int64_t end) {
    const layer_norm *k = context;
    float *saved = k->b.workspace;
    for (int64_t r = begin; r < end; r++) {
        const float *x = (const float *)k->b.src[0] + r * k->c;
        const double mean = sum_of(x, k->c, 0, false) / (double)k->c;
        const double var = sum_of(x, k->c, mean, true) / (double)k->c;
        const float m = (float)mean, istd = (float)(1 / sqrt(var + k->eps));
        if (saved) saved[2 * r] = m, saved[2 * r + 1] = istd;
        scale_row(x, k->b.param[KI_W].value, k->b.param[KI_B].value, m, istd, (float *)k->b.dst + r * k->c,
                  k->c);
    }
}

/* The sums of g = gamma * diff_dst and of g * xhat. */
CPU_WIDE static void gradient_sums(const float *x, const float *dy, const float *gamma, float mean,
                                   float istd, int64_t n, double *ret_sum, double *ret_along) {
    double sum[PARTS] = {0}, along[PARTS] = {0};
    int64_t i = 0;
    for (; i + PARTS <= n; i += PARTS) {
        for (int p = 0; p < PARTS; p++) {
            const double g = (double)gamma[i + p] * (double)dy[i + p];
            sum[p] += g;
            along[p] += g * (double)((x[i + p] - mean) * istd);
        }
    }
    for (; i < n; i++) {
        const double g = (double)gamma[i] * (double)dy[i];
        sum[0] += g;
        along[0] += g * (double)((x[i] - mean) * istd);
    }
    *ret_sum = *ret_along = 0;
    for (int p = 0; p < PARTS; p++) *ret_sum += sum[p], *ret_along += along[p];
}

CPU_WIDE static void gradient_row(const float *x, const float *dy, const float *gamma, float mean, float istd,
                                  float shift, float slope, float *dx, int64_t n) {
    for (int64_t i = 0; i < n; i++) dx[i] = istd * (gamma[i] * dy[i] - shift - (x[i] - mean) * istd * slope);
}

static void backward_rows(void *context, int64_t begin, int64_t end) {
    const layer_norm *k = context;
    const float *saved = k->b.workspace, *gamma = k->b.param[KI_W].value;
    for (int64_t r = begin; r < end; r++) {
        const float *x = (const float *)k->b.src[0] + r * k->c;
        const float *dy = (const float *)k->b.diff_dst[0] + r * k->c;
        double sum = 0, along = 0;
        gradient_sums(x, dy, gamma, saved[2 * r], saved[2 * r + 1], k->c, &sum, &along);
        gradient_row(x, dy, gamma, saved[2 * r], saved[2 * r + 1], (float)(sum / (double)k->c),
                     (float)(along / (double)k->c), (float *)k->b.diff_src[0] + r * k->c, k->c);
    }
}

CPU_WIDE static void add_columns(const float *x, const float *dy, float mean, float istd, float *diff_gamma,
                                 float *diff_beta, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        diff_gamma[i] += dy[i] * ((x[i] - mean) * istd);
        diff_beta[i] += dy[i];
    }
}

static void backward_columns(void *context, int64_t begin, int64_t end) {
    const layer_norm *k = context;
    const float *saved = k->b.workspace;
    for (int64_t r = 0; r < k->mb; r++) {
        const int64_t at = r * k->c + begin;
        add_columns((const float *)k->b.src[0] + at, (const float *)k->b.diff_dst[0] + at, saved[2 * r],
                    saved[2 * r + 1], k->b.param[KI_W].diff + begin, k->b.param[KI_B].diff + begin,
                    end - begin);
    }
}

static kith_status norm_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const layer_norm *k = (layer_norm *)kernel;
    ki_parallel_for(k->mb, grain(k->c), forward_rows, kernel);
    return KITH_OK;
}

static kith_status norm_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const layer_norm *k = (layer_norm *)kernel;
    if (k->b.param[KI_W].diff) ki_parallel_for(k->c, grain(k->mb), backward_columns, kernel);
    if (k->b.diff_src[0]) ki_parallel_for(k->mb, grain(k->c), backward_rows, kernel);
    return KITH_OK;
}

const ki_kernel_type cpu_layer_norm = {.create = norm_create,
                                       .bind = norm_bind,
                                       .forward = norm_forward,
                                       .backward = norm_backward,
                                       .free = norm_free};
