/* What the softmax losses share on the device: one positive against all negatives of a row. */
#ifndef KI_OBJECTIVE_SOFTMAX_ROW_CUH
#define KI_OBJECTIVE_SOFTMAX_ROW_CUH

#include "objective/cuda/loss.cuh"

/* Each file has its own copy, because the kernels made from it belong to the file, too. */
namespace {

/* Each positive against all negatives, which matter only through A = ln sum_j e^(scale s_j); norm_weight goes
 * to the diagonal. */
struct ki_cuda_softmax_row {
    float scale, norm_weight;

    __device__ void operator()(const ki_cuda_view &v, const ki_cuda_row &row, ki_cuda_tally *t) const {
        const bool is_empty = row.n_pos == 0 || row.n_neg == 0;
        const float most = row.most(KI_PAIR_NEGATIVE);
        double sum = 0;
        KI_COLUMNS(j, row.n) {
            float e = 0;
            if (!is_empty && ki_is_neg(row.pair[j])) sum += (double)(e = expf(scale * (row.s[j] - most)));
            row.g[j] = e;
        }
        sum = row.sum(sum);
        const float ln_sum = is_empty ? 0 : (float)log(sum);
        double value = 0, pull = 0;
        KI_COLUMNS(j, row.n) {
            if (is_empty || !ki_is_pos(row.pair[j])) continue;
            const float z = scale * (most - row.s[j]) + ln_sum; /* A - scale s_p */
            const float e = expf(z < 0 ? z : -z), sigmoid = (z < 0 ? e : 1) / (1 + e);
            value += (double)((z > 0 ? z : 0) + log1pf(e));
            row.g[j] = -scale * sigmoid;
            pull += (double)sigmoid;
        }
        row.sums(value, pull);
        t->pos = value;
        const float push = is_empty ? 0 : (float)((double)scale * pull / sum);
        KI_COLUMNS(j, row.n) {
            if (ki_is_neg(row.pair[j])) row.g[j] *= push;
            if (j == row.i && !v.n_centers) row.g[j] = norm_weight;
        }
        if (norm_weight != 0) t->plain = (double)norm_weight * (double)v.x_sq[row.i];
    }
};

} // namespace

#endif
