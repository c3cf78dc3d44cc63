/* Circle loss on the device (circle.c has the formulas). */
#include "objective/loss/circle.h"

#include "objective/cuda/loss.cuh"

namespace {

struct circle {
    float margin, gamma;
    bool detach;

    /* The exponent of an entry and its derivative by s. */
    __device__ float exponent(float s, int kind, float *slope) const {
        const bool is_pos = ki_is_pos(kind);
        const float sign = is_pos ? -1 : 1;
        const float optimum = is_pos ? 1 + margin : -margin, turn = is_pos ? 1 - margin : margin;
        const float distance = sign * (s - optimum), pace = distance > 0 ? distance : 0;
        *slope = sign * gamma * pace + (!detach && pace > 0 ? gamma * (s - turn) : 0);
        return sign * gamma * pace * (s - turn);
    }
    __device__ void operator()(const ki_cuda_view &v, const ki_cuda_row &row, ki_cuda_tally *t) const {
        (void)v;
        if (row.n_pos == 0 || row.n_neg == 0) return row.clear();
        float most_pos = -FLT_MAX, most_neg = -FLT_MAX, slope = 0;
        KI_COLUMNS(j, row.n) {
            if (row.pair[j] == KI_PAIR_NONE) continue;
            const float z = exponent(row.s[j], row.pair[j], &slope);
            if (ki_is_pos(row.pair[j]))
                most_pos = z > most_pos ? z : most_pos;
            else
                most_neg = z > most_neg ? z : most_neg;
        }
        row.maxima(most_pos, most_neg);
        double pos = 0, neg = 0;
        KI_COLUMNS(j, row.n) {
            float g = 0;
            if (row.pair[j] != KI_PAIR_NONE) {
                const bool is_pos = ki_is_pos(row.pair[j]);
                const float z = exponent(row.s[j], row.pair[j], &slope);
                const float e = expf(z - (is_pos ? most_pos : most_neg));
                (is_pos ? pos : neg) += (double)e;
                g = e * slope;
            }
            row.g[j] = g;
        }
        row.sums(pos, neg);
        const double total = (double)most_pos + (double)most_neg + log(pos) + log(neg);
        const double e = exp(total < 0 ? total : -total), sigmoid = (total < 0 ? e : 1) / (1 + e);
        const float by_pos = (float)(sigmoid / pos), by_neg = (float)(sigmoid / neg);
        KI_COLUMNS(j, row.n) row.g[j] *= ki_is_pos(row.pair[j]) ? by_pos : by_neg;
        t->pos = (total > 0 ? total : 0) + log1p(e);
    }
};

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_circle_settings *o = static_cast<const ki_circle_settings *>(in->settings);
    const circle loss = {(float)o->margin, (float)o->gamma, o->detach};
    return ki_loss_launch(view, loss, stream);
}

} // namespace

const ki_cuda_loss ki_cuda_loss_circle = {.rows = rows, .by = KI_BY_ROWS};
