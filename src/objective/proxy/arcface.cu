/* ArcFace on the device (arcface.c has the formulas). */
#include "objective/proxy/arcface.h"

#include "objective/cuda/loss.cuh"
#include "objective/proxy/proxies.cuh"

namespace {

struct arcface {
    float scale, margin, cos_m, sin_m;
    __device__ void operator()(const ki_cuda_view &v, const ki_cuda_row &row, ki_cuda_tally *t) const {
        const float s = row.s[v.label[row.i]], square = (1 - s) * (1 + s), least = 1e-6f;
        const float sine = sqrtf(square > least ? square : least);
        float own = s - margin * sin_m, slope = 1;
        if (s > -cos_m) { /* theta < pi - margin */
            own = s * cos_m - sine * sin_m;
            slope = cos_m + (square > least ? s * sin_m / sine : 0);
        }
        ki_cuda_cross_entropy(v, row, own, slope, scale, t);
    }
};

cudaError_t rows(const ki_cuda_loss_in *in, const ki_cuda_view *view, cudaStream_t stream) {
    const ki_arcface_settings *o = static_cast<const ki_arcface_settings *>(in->settings);
    const arcface loss = {(float)o->scale, (float)o->margin, (float)cos(o->margin), (float)sin(o->margin)};
    return ki_loss_launch(view, loss, stream);
}

} // namespace

const ki_cuda_loss ki_cuda_loss_arcface = {.rows = rows, .by = KI_BY_ROWS};
