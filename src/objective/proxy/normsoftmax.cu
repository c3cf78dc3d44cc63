/* Normalised softmax on the device (normsoftmax.c has the formulas). */
#include "objective/proxy/normsoftmax.h"

#include "objective/cuda/loss.cuh"
#include "objective/proxy/proxies.cuh"

namespace {

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_normsoftmax_settings *o = static_cast<const ki_normsoftmax_settings *>(in->settings);
    const ki_cuda_margin_softmax loss = {(float)(1 / o->temperature), 0};
    return ki_loss_launch(view, loss, stream);
}

} // namespace

const ki_cuda_loss ki_cuda_loss_normsoftmax = {.rows = rows, .by = KI_BY_ROWS};
