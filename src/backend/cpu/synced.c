/* Sums over maps for batch norms over ranks. With n values of a channel on all ranks, xhat = (src - mean) * istd:
 *
 *   diff_src -= scale * istd * (sum(diff_dst) + xhat * sum(diff_dst * xhat)) / n,  both sums over all ranks
 *
 * A channel is summed in double, image after image: the result does not depend on the number of threads. */
#include "backend/cpu/synced.h"

#include <math.h>

#include "comm/device.h"

kith_status cpu_synced_init(cpu_synced *s, const ki_kernel_spec *spec, kith_error *err) {
    const ki_edge *edge = &spec->dst;
    const bool is_native = edge->layout == KI_NATIVE;
    s->mb = edge->shape.dim[0];
    s->c = edge->shape.dim[1];
    s->hw = ki_shape_count(&edge->shape) / (s->mb * s->c);
    s->c_padded = is_native ? cpu_padded(s->c) : s->c;
    s->block = is_native ? cpu_block() : s->c;
    s->comm = ki_device_comm_ranks(spec->device_comm);
    return ki_zalloc_or(&s->sum, 2 * (size_t)s->c_padded, sizeof *s->sum, "batch statistics", err);
}

void cpu_synced_release(cpu_synced *s) { ki_free(s->sum); }

/* The values of a block of channels of image i begin here: [hw, block]. */
static int64_t block_at(const cpu_synced *s, int64_t i, int64_t b) {
    return (i * s->c_padded + b * s->block) * s->hw;
}

static void add_values(const float *restrict x, int64_t hw, int64_t n, double *restrict sum) {
    for (int64_t p = 0; p < hw; p++) {
        for (int64_t k = 0; k < n; k++) sum[k] += (double)x[p * n + k];
    }
}

static void add_squares(const float *restrict x, int64_t hw, int64_t n, const double *restrict mean,
                        double *restrict sum) {
    for (int64_t p = 0; p < hw; p++) {
        for (int64_t k = 0; k < n; k++) {
            const double off = (double)x[p * n + k] - mean[k];
            sum[k] += off * off;
        }
    }
}

/* Items: blocks of channels. Padding is 0 and stays 0. */
static void moments_of_blocks(void *context, int64_t begin, int64_t end) {
    const cpu_synced *s = context;
    const double n = (double)(s->mb * s->hw);
    for (int64_t b = begin; b < end; b++) {
        double *mean = s->sum + b * s->block, *squares = mean + s->c_padded;
        for (int64_t k = 0; k < s->block; k++) mean[k] = squares[k] = 0;
        for (int64_t i = 0; i < s->mb; i++) add_values(s->src + block_at(s, i, b), s->hw, s->block, mean);
        for (int64_t k = 0; k < s->block; k++) mean[k] /= n;
        for (int64_t i = 0; i < s->mb; i++)
            add_squares(s->src + block_at(s, i, b), s->hw, s->block, mean, squares);
    }
}

kith_status cpu_synced_moments(cpu_synced *s, float *ret_mean, float *ret_variance, kith_error *err) {
    double *mean = s->sum, *squares = s->sum + s->c_padded;
    ki_parallel_for(s->c_padded / s->block, 1, moments_of_blocks, s);
    KI_TRY(ki_comm_moments(s->comm, (double)(s->mb * s->hw), mean, squares, s->c_padded, &s->n, err));
    for (int64_t k = 0; k < s->c; k++) {
        ret_mean[k] = (float)mean[k];
        ret_variance[k] = (float)(squares[k] / s->n);
    }
    return KITH_OK;
}

/* diff_src -= shift + src * slope for each channel. */
typedef struct correcting {
    const cpu_synced *s;
    float *diff_src;
} correcting;

static void subtract(float *restrict diff, const float *restrict x, int64_t hw, int64_t n,
                     const double *restrict shift, const double *restrict slope) {
    for (int64_t p = 0; p < hw; p++) {
        for (int64_t k = 0; k < n; k++)
            diff[p * n + k] -= (float)(shift[k] + slope[k] * (double)x[p * n + k]);
    }
}

static void correct_blocks(void *context, int64_t begin, int64_t end) {
    const correcting *t = context;
    const cpu_synced *s = t->s;
    for (int64_t at = begin; at < end; at++) {
        const int64_t n_blocks = s->c_padded / s->block, i = at / n_blocks, b = at % n_blocks;
        const double *shift = s->sum + b * s->block;
        subtract(t->diff_src + block_at(s, i, b), s->src + block_at(s, i, b), s->hw, s->block, shift,
                 shift + s->c_padded);
    }
}

kith_status cpu_synced_backward(cpu_synced *s, const cpu_synced_sums *sums, float *diff_src,
                                kith_error *err) {
    double *shift = s->sum, *slope = s->sum + s->c_padded;
    for (int64_t k = 0; k < s->c; k++) {
        shift[k] = (double)sums->diff_shift[k];
        slope[k] = (double)sums->diff_scale[k];
    }
    KI_TRY(ki_comm_sum_doubles(s->comm, s->sum, 2 * s->c_padded, err));
    if (!diff_src) return KITH_OK;
    for (int64_t k = 0; k < s->c; k++) {
        const double istd = 1 / sqrt((double)sums->variance[k] + sums->eps);
        const double by = (double)sums->scale[k] * istd / s->n, by_xhat = by * slope[k] * istd;
        shift[k] = by * shift[k] - by_xhat * (double)sums->mean[k];
        slope[k] = by_xhat;
    }
    for (int64_t k = s->c; k < s->c_padded; k++) shift[k] = slope[k] = 0;
    correcting t = {.s = s, .diff_src = diff_src};
    ki_parallel_for(s->mb * (s->c_padded / s->block), 1, correct_blocks, &t);
    return KITH_OK;
}
