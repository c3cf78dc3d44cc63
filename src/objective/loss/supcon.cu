/* Supervised contrastive loss on the device (supcon.c has the formulas). */
#include "objective/loss/supcon.h"

#include "objective/cuda/loss.cuh"

namespace {

struct supcon {
    float scale;

    __device__ void operator()(const ki_cuda_view &v, const ki_cuda_row &row, ki_cuda_tally *t) const {
        (void)v;
        if (row.n_pos == 0) return row.clear();
        float most = -FLT_MAX;
        KI_COLUMNS(j, row.n) if (row.pair[j] != KI_PAIR_NONE && row.s[j] > most) most = row.s[j];
        most = row.max(most);
        double sum = 0, positives = 0;
        KI_COLUMNS(j, row.n) {
            float e = 0;
            if (row.pair[j] != KI_PAIR_NONE) sum += (double)(e = expf(scale * (row.s[j] - most)));
            if (ki_is_pos(row.pair[j])) positives += (double)(scale * (row.s[j] - most));
            row.g[j] = e;
        }
        row.sums(sum, positives);
        const float factor = (float)((double)scale / sum), share = scale / (float)row.n_pos;
        KI_COLUMNS(j, row.n) row.g[j] = row.g[j] * factor - (ki_is_pos(row.pair[j]) ? share : 0);
        t->pos = log(sum) - positives / (double)row.n_pos;
    }
};

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_supcon_settings *o = static_cast<const ki_supcon_settings *>(in->settings);
    const supcon loss = {(float)(1 / o->temperature)};
    return ki_loss_launch(view, loss, stream);
}

} // namespace

const ki_cuda_loss ki_cuda_loss_supcon = {.rows = rows, .by = KI_BY_ANCHORS};
