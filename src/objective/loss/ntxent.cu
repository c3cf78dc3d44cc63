/* NT-Xent on the device (ntxent.c has the formula). */
#include "objective/loss/ntxent.h"

#include "objective/cuda/loss.cuh"
#include "objective/loss/softmax_row.cuh"

namespace {

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_ntxent_settings *o = static_cast<const ki_ntxent_settings *>(in->settings);
    const ki_cuda_softmax_row loss = {(float)(1 / o->temperature), 0};
    return ki_loss_launch(view, loss, stream);
}

} // namespace

const ki_cuda_loss ki_cuda_loss_ntxent = {.rows = rows, .by = KI_BY_POS};
