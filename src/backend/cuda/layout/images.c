/* The backend's function for images in bytes: checks, and the kernel's arguments. */
#include "backend/cuda/layout/images.h"

#include <string.h>

#include "backend/cuda/cuda.h"

kith_status ki_cuda_images(ki_backend *backend, const ki_image_step *step, const ki_edge *edge, void *dst,
                           kith_error *err) {
    const ki_cuda_map m = ki_cuda_map_of(backend, edge);
    if (step->n < 1 || step->n > m.mb || step->c != m.c || step->c > 4 ||
        (!step->window && (step->h != m.h || step->w != m.w)) || step->h < m.h || step->w < m.w)
        return ki_fail(err, KITH_ESHAPE, "%lld images of %lldx%lldx%lld for an input of %lldx%lldx%lldx%lld",
                       (long long)step->n, (long long)step->c, (long long)step->h, (long long)step->w,
                       (long long)m.mb, (long long)m.c, (long long)m.h, (long long)m.w);
    ki_cuda_pixels view = {.pixels = step->pixels,
                           .window = step->window,
                           .n = (int32_t)step->n,
                           .h = (int32_t)step->h,
                           .w = (int32_t)step->w,
                           .c = (int32_t)step->c,
                           .oh = (int32_t)m.h,
                           .ow = (int32_t)m.w,
                           .row = (int32_t)m.row,
                           .pitch = m.pitch,
                           .bgr = step->bgr};
    memcpy(view.mean, step->mean, sizeof view.mean);
    memcpy(view.factor, step->factor, sizeof view.factor);
    KI_CUDA(ki_cuda_images_launch(ki_cuda_of(backend)->stream, m.is_bf16, &view, dst));
    return KITH_OK;
}
