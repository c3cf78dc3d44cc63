/* N-pair loss on the device (npair.c has the formulas). */
#include "objective/loss/npair.h"

#include "objective/cuda/loss.cuh"
#include "objective/loss/softmax_row.cuh"

namespace {

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_npair_settings *o = static_cast<const ki_npair_settings *>(in->settings);
    const ki_cuda_softmax_row loss = {(float)o->scale, (float)(o->l2 / (double)view->m)};
    return ki_loss_launch(view, loss, stream);
}

void weights(const void *settings, const ki_cuda_view *view, ki_cuda_weight weight[3]) {
    const ki_npair_settings *o = static_cast<const ki_npair_settings *>(settings);
    (void)view;
    weight[KI_PAIR_POSITIVE] =
        weight[KI_PAIR_NEGATIVE] = {o->reduction == KI_NPAIR_MEAN ? KI_BY_POS : KI_BY_ONE, 1};
}

} // namespace

const ki_cuda_loss ki_cuda_loss_npair = {.rows = rows, .weights = weights, .reads_norms = true};
