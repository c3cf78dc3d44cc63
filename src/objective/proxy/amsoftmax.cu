/* Additive-margin softmax on the device (amsoftmax.c has the formulas). */
#include "objective/proxy/amsoftmax.h"

#include "objective/cuda/loss.cuh"
#include "objective/proxy/proxies.cuh"

namespace {

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_amsoftmax_settings *o = static_cast<const ki_amsoftmax_settings *>(in->settings);
    const ki_cuda_margin_softmax loss = {(float)o->scale, (float)o->margin};
    return ki_loss_launch(view, loss, stream);
}

} // namespace

const ki_cuda_loss ki_cuda_loss_amsoftmax = {.rows = rows, .by = KI_BY_ROWS};
