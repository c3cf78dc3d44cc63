/* Generalised lifted structure on the device (lifted.c has the formulas). */
#include "objective/loss/lifted.h"

#include "objective/cuda/loss.cuh"

namespace {

struct lifted {
    double margin;

    __device__ void operator()(const ki_cuda_view &v, const ki_cuda_row &row, ki_cuda_tally *t) const {
        (void)v;
        if (row.n_pos == 0 || row.n_neg == 0) return row.clear();
        float least = 0, most = 0;
        row.hardest(&least, &most);
        double pos = 0, neg = 0;
        KI_COLUMNS(j, row.n) {
            float e = 0;
            if (ki_is_pos(row.pair[j])) pos += (double)(e = expf(least - row.s[j]));
            if (ki_is_neg(row.pair[j])) neg += (double)(e = expf(row.s[j] - most));
            row.g[j] = e;
        }
        row.sums(pos, neg);
        const double z = (double)(most - least) + margin + log(pos) + log(neg);
        const float by_pos = z > 0 ? (float)(-1 / pos) : 0, by_neg = z > 0 ? (float)(1 / neg) : 0;
        KI_COLUMNS(j, row.n) row.g[j] *= ki_is_pos(row.pair[j]) ? by_pos : by_neg;
        t->pos = z > 0 ? z : 0;
    }
};

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_lifted_settings *o = static_cast<const ki_lifted_settings *>(in->settings);
    const lifted loss = {o->margin};
    return ki_loss_launch(view, loss, stream);
}

} // namespace

const ki_cuda_loss ki_cuda_loss_lifted = {.rows = rows, .by = KI_BY_ROWS};
