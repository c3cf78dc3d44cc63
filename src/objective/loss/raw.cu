/* RAW on the device (raw.c has the formulas). */
#include "objective/loss/raw.h"

#include "objective/cuda/loss.cuh"

namespace {

struct raw {
    float alpha, beta, gamma;

    __device__ void operator()(const ki_cuda_view &v, const ki_cuda_row &row, ki_cuda_tally *t) const {
        (void)v;
        /* Shift by the largest exponent; the 1 counts as the exponent 0. */
        float hard_pos = 0, hard_neg = 0;
        row.hardest(&hard_pos, &hard_neg);
        const float z_pos = row.n_pos ? -alpha * (hard_pos - gamma) : 0;
        const float z_neg = row.n_neg ? beta * (hard_neg - gamma) : 0;
        const float from_pos = z_pos > 0 ? hard_pos : gamma, from_neg = z_neg > 0 ? hard_neg : gamma;
        const float shift_pos = z_pos > 0 ? z_pos : 0, shift_neg = z_neg > 0 ? z_neg : 0;
        double pos = 0, neg = 0;
        KI_COLUMNS(j, row.n) {
            float e = 0;
            if (ki_is_pos(row.pair[j])) pos += (double)(e = expf(-alpha * (row.s[j] - from_pos)));
            if (ki_is_neg(row.pair[j])) neg += (double)(e = expf(beta * (row.s[j] - from_neg)));
            row.g[j] = e;
        }
        row.sums(pos, neg);
        const float sum_pos = expf(-shift_pos) + (float)pos, sum_neg = expf(-shift_neg) + (float)neg;
        KI_COLUMNS(j, row.n) row.g[j] *= ki_is_pos(row.pair[j]) ? -1 / sum_pos : 1 / sum_neg;
        if (row.n_pos) t->pos = ((double)shift_pos + log((double)sum_pos)) / (double)alpha;
        if (row.n_neg) t->neg = ((double)shift_neg + log((double)sum_neg)) / (double)beta;
    }
};

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_raw_settings *o = static_cast<const ki_raw_settings *>(in->settings);
    const raw loss = {(float)o->alpha, (float)o->beta, (float)o->gamma};
    return ki_loss_launch(view, loss, stream);
}

} // namespace

const ki_cuda_loss ki_cuda_loss_raw = {.rows = rows, .by = KI_BY_ROWS};
