/* batch_norm. With xhat = (src - mean) * istd, istd = 1 / sqrt(var + eps) over the n = mb * h * w
 * values of a channel:
 *   dst = gamma * xhat + beta
 *   diff_gamma += sum diff_dst * xhat,  diff_beta += sum diff_dst
 *   diff_src = gamma * istd * (diff_dst - mean(diff_dst) - xhat * mean(diff_dst * xhat))
 * and with fixed statistics diff_src = gamma * istd * diff_dst. The workspace keeps mean and istd of the
 * batch, because the running statistics have changed by the time backward runs.
 *
 * Over ranks n, the moments and the sums in diff_src are those of all ranks' images; diff_gamma and diff_beta stay this
 * rank's share, as all gradients of parameters do. */
#include <inttypes.h>

#include "backend/ref/ref.h"
#include "base/parallel.h"
#include "comm/device.h"
#include "comm/moments.h"

typedef struct norm {
    ki_ref_dims d;
    bool uses_batch;
    double eps, momentum;
    const ki_real *src, *gamma, *beta, *diff_dst;
    ki_real *dst, *mean, *var, *saved, *diff_src, *diff_gamma, *diff_beta;
    /* In the workspace, with batch statistics: n of all ranks, and two sums for each channel: mean and squared deviations in
     * forward, those of the gradient in backward. */
    double *n, *sum[2];
} norm;

static bool uses_batch(const ki_kernel_spec *spec) { return spec->mode == KI_TRAIN && !spec->frozen_stats; }

static norm norm_of(ki_kernel *kernel) {
    const ki_ref_kernel *k = ki_ref_of(kernel);
    const ki_binding *b = &k->binding;
    norm made = {
        .d = ki_ref_dims_of(&k->spec.dst),
        .uses_batch = uses_batch(&k->spec),
        .eps = k->attr.bn.eps,
        .momentum = k->attr.bn.momentum,
        .src = b->src[0],
        .gamma = b->param[KI_W].value,
        .beta = b->param[KI_B].value,
        .dst = b->dst,
        .mean = b->param[KI_MEAN].value,
        .var = b->param[KI_VAR].value,
        .diff_dst = b->diff_dst[0],
        .diff_src = b->diff_src[0],
        .diff_gamma = ki_ref_diff(k, KI_W),
        .diff_beta = ki_ref_diff(k, KI_B),
    };
    if (made.uses_batch) {
        made.n = b->workspace;
        made.sum[0] = made.n + 1;
        made.sum[1] = made.sum[0] + made.d.c;
        made.saved = (ki_real *)(made.sum[1] + made.d.c);
    }
    return made;
}

/* Items: channels, here and below. */
static void moments_of_channels(void *context, int64_t begin, int64_t end) {
    const norm *b = context;
    const int64_t cells = b->d.h * b->d.w;
    const double n = (double)(b->d.mb * cells);
    for (int64_t c = begin; c < end; c++) {
        double mean = 0, squares = 0;
        for (int64_t i = 0; i < b->d.mb; i++) {
            const ki_real *src = b->src + (i * b->d.c + c) * cells;
            for (int64_t j = 0; j < cells; j++) mean += (double)src[j];
        }
        mean /= n;
        for (int64_t i = 0; i < b->d.mb; i++) {
            const ki_real *src = b->src + (i * b->d.c + c) * cells;
            for (int64_t j = 0; j < cells; j++) squares += ((double)src[j] - mean) * ((double)src[j] - mean);
        }
        b->sum[0][c] = mean;
        b->sum[1][c] = squares;
    }
}

static void forward_channels(void *context, int64_t begin, int64_t end) {
    const norm *b = context;
    const int64_t cells = b->d.h * b->d.w;
    for (int64_t c = begin; c < end; c++) {
        double mean = (double)b->mean[c], var = (double)b->var[c];
        if (b->uses_batch) {
            const double n = *b->n;
            mean = b->sum[0][c];
            var = b->sum[1][c] / n;
            b->mean[c] = (ki_real)((1 - b->momentum) * (double)b->mean[c] + b->momentum * mean);
            b->var[c] = (ki_real)((1 - b->momentum) * (double)b->var[c] + b->momentum * var * n / (n - 1));
        }
        const double istd = 1 / sqrt(var + b->eps), gamma = (double)b->gamma[c], beta = (double)b->beta[c];
        if (b->uses_batch) {
            b->saved[c] = (ki_real)mean;
            b->saved[b->d.c + c] = (ki_real)istd;
        }
        for (int64_t i = 0; i < b->d.mb; i++) {
            const int64_t at = (i * b->d.c + c) * cells;
            for (int64_t j = 0; j < cells; j++)
                b->dst[at + j] = (ki_real)(gamma * ((double)b->src[at + j] - mean) * istd + beta);
        }
    }
}

static double mean_at(const norm *b, int64_t c) { return (double)(b->uses_batch ? b->saved[c] : b->mean[c]); }

static double istd_at(const norm *b, int64_t c) {
    return b->uses_batch ? (double)b->saved[b->d.c + c] : 1 / sqrt((double)b->var[c] + b->eps);
}

static void sums_of_channels(void *context, int64_t begin, int64_t end) {
    const norm *b = context;
    const int64_t cells = b->d.h * b->d.w;
    for (int64_t c = begin; c < end; c++) {
        const double mean = mean_at(b, c), istd = istd_at(b, c);
        double sum = 0, sum_xhat = 0;
        for (int64_t i = 0; i < b->d.mb; i++) {
            const int64_t at = (i * b->d.c + c) * cells;
            for (int64_t j = 0; j < cells; j++) {
                const double diff = (double)b->diff_dst[at + j];
                sum += diff;
                sum_xhat += diff * ((double)b->src[at + j] - mean) * istd;
            }
        }
        if (b->diff_gamma) b->diff_gamma[c] += (ki_real)sum_xhat;
        if (b->diff_beta) b->diff_beta[c] += (ki_real)sum;
        if (b->uses_batch) b->sum[0][c] = sum, b->sum[1][c] = sum_xhat;
    }
}

static void backward_channels(void *context, int64_t begin, int64_t end) {
    const norm *b = context;
    const int64_t cells = b->d.h * b->d.w;
    for (int64_t c = begin; c < end; c++) {
        const double mean = mean_at(b, c), istd = istd_at(b, c), scale = (double)b->gamma[c] * istd;
        const double shift = b->uses_batch ? b->sum[0][c] / *b->n : 0;
        const double slope = b->uses_batch ? b->sum[1][c] / *b->n : 0;
        for (int64_t i = 0; i < b->d.mb; i++) {
            const int64_t at = (i * b->d.c + c) * cells;
            for (int64_t j = 0; j < cells; j++) {
                const double xhat = ((double)b->src[at + j] - mean) * istd;
                b->diff_src[at + j] = (ki_real)(scale * ((double)b->diff_dst[at + j] - shift - xhat * slope));
            }
        }
    }
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    const ki_ref_dims d = ki_ref_dims_of(&spec->dst);
    if (uses_batch(spec) && !ki_device_comm_ranks(spec->device_comm) && d.mb * d.h * d.w < 2) {
        ki_fail(err, KITH_ESHAPE, "batch statistics of %" PRId64 " value per channel, wanted 2 or more",
                d.mb * d.h * d.w);
        return ki_hint(err, KITH_ESHAPE, "use a larger batch or frozen statistics");
    }
    KI_TRY(ki_ref_kernel_new(&ki_ref_batch_norm, backend, spec, ret_kernel, err));
    const size_t c = (size_t)d.c;
    *ret_info = (ki_kernel_info){
        .workspace_bytes = uses_batch(spec) ? (2 * c + 1) * sizeof(double) + 2 * c * sizeof(ki_real) : 0,
        .backward_reads_src = true,
    };
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    norm b = norm_of(kernel);
    const int64_t each = b.d.mb * b.d.h * b.d.w, grain = ki_ref_grain(each);
    if (b.uses_batch) {
        ki_parallel_for(b.d.c, grain, moments_of_channels, &b);
        KI_TRY(ki_comm_moments(ki_device_comm_ranks(ki_ref_of(kernel)->spec.device_comm), (double)each,
                               b.sum[0], b.sum[1], b.d.c, b.n, err));
    }
    ki_parallel_for(b.d.c, grain, forward_channels, &b);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    norm b = norm_of(kernel);
    const int64_t grain = ki_ref_grain(b.d.mb * b.d.h * b.d.w);
    ki_parallel_for(b.d.c, grain, sums_of_channels, &b);
    if (b.uses_batch)
        KI_TRY(ki_comm_sum_doubles(ki_device_comm_ranks(ki_ref_of(kernel)->spec.device_comm), b.sum[0],
                                   2 * b.d.c, err));
    if (b.diff_src) ki_parallel_for(b.d.c, grain, backward_channels, &b);
    return KITH_OK;
}

const ki_kernel_type ki_ref_batch_norm = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .backward = backward, .free = ki_ref_free};
