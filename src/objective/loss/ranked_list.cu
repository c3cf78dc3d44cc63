/* Ranked list loss on the device (ranked_list.c has the formulas). */
#include "objective/loss/ranked_list.h"

#include "objective/cuda/loss.cuh"

namespace {

struct ranked_list {
    double alpha, margin, temperature, lambda;

    __device__ void operator()(const ki_cuda_view &v, const ki_cuda_row &row, ki_cuda_tally *t) const {
        (void)v;
        const float inner = (float)(alpha - margin);
        double positives = 0, active = 0;
        KI_COLUMNS(j, row.n) {
            if (!ki_is_pos(row.pair[j]) || !(row.s[j] - inner > 0)) continue;
            positives += (double)(row.s[j] - inner);
            active += 1;
        }
        row.sums(positives, active);
        const double pos_weight = active > 0 ? (1 - lambda) / active : 0;
        float least = -FLT_MAX;
        KI_COLUMNS(j, row.n) if (ki_is_neg(row.pair[j]) && -row.s[j] > least) least = -row.s[j];
        const double nearest = -(double)row.max(least);
        const bool has_near = nearest < alpha;
        double sum_w = 0, sum_wl = 0;
        KI_COLUMNS(j, row.n) {
            if (!ki_is_neg(row.pair[j]) || !((double)row.s[j] < alpha)) continue;
            const double w = exp(temperature * (nearest - (double)row.s[j]));
            sum_w += w;
            sum_wl += w * (alpha - (double)row.s[j]);
        }
        row.sums(sum_w, sum_wl);
        const double mean = has_near ? sum_wl / sum_w : 0;
        KI_COLUMNS(j, row.n) {
            double g = 0;
            if (ki_is_pos(row.pair[j]) && row.s[j] - inner > 0) g = pos_weight;
            if (ki_is_neg(row.pair[j]) && (double)row.s[j] < alpha) {
                const double w = exp(temperature * (nearest - (double)row.s[j]));
                g = -lambda * w / sum_w * (1 + temperature * (alpha - (double)row.s[j] - mean));
            }
            row.g[j] = (float)g;
        }
        t->pos = pos_weight * positives;
        t->neg = lambda * mean;
    }
};

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_ranked_list_settings *o = static_cast<const ki_ranked_list_settings *>(in->settings);
    const ranked_list loss = {o->alpha, o->margin, o->temperature, o->lambda};
    return ki_loss_launch(view, loss, stream);
}

} // namespace

const ki_cuda_loss ki_cuda_loss_ranked_list = {.rows = rows, .by = KI_BY_ROWS};
