/* Proxy-NCA on the device (proxy_nca.c has the formulas). */
#include "objective/proxy/proxy_nca.h"

#include "objective/cuda/loss.cuh"

namespace {

struct proxy_nca {
    float b; /* 2 scale^2 */
    __device__ void operator()(const ki_cuda_view &v, const ki_cuda_row &row, ki_cuda_tally *t) const {
        const int y = v.label[row.i];
        if (row.n_neg == 0 || !ki_is_pos(row.pair[y])) return row.clear();
        const float most = row.most(KI_PAIR_NEGATIVE);
        double sum = 0;
        KI_COLUMNS(j, row.n) {
            float e = 0;
            if (ki_is_neg(row.pair[j])) sum += (double)(e = expf(b * (row.s[j] - most)));
            row.g[j] = e;
        }
        sum = row.sum(sum);
        const float share = (float)((double)b / sum);
        KI_COLUMNS(j, row.n) row.g[j] = j == y ? -b : row.g[j] * share;
        t->pos = (double)(b * (most - row.s[y])) + log(sum);
    }
};

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_proxy_nca_settings *o = static_cast<const ki_proxy_nca_settings *>(in->settings);
    const proxy_nca loss = {(float)(2 * o->scale * o->scale)};
    return ki_loss_launch(view, loss, stream);
}

} // namespace

const ki_cuda_loss ki_cuda_loss_proxy_nca = {.rows = rows, .by = KI_BY_ROWS};
