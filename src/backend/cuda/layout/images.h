/* Images in bytes to a network's input: the kernel, as a C call (images.c has the backend's function). */
#ifndef KI_CUDA_IMAGES_H
#define KI_CUDA_IMAGES_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ki_image_step (device/backend.h), and the input it makes: n images of oh x ow pixels, `pitch` elements apart,
 * `row` pixels from row to row; channels from c on and pixels from ow on are set to zero. */
typedef struct ki_cuda_pixels {
    const uint8_t *pixels;
    const int32_t *window;
    int32_t n, h, w, c, oh, ow, row;
    int64_t pitch;
    bool bgr;
    float mean[4], factor[4];
} ki_cuda_pixels;

cudaError_t ki_cuda_images_launch(cudaStream_t stream, bool is_bf16, const ki_cuda_pixels *view, void *dst);

#ifdef __cplusplus
}
#endif

#endif
