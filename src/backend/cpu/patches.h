/* The weights' gradient of a convolution that cuts a plain image into patches, as a ViT begins. oneDNN falls back to its reference
 * loops for patches of 14 or 16 pixels, which take a second an image. As rows of numbers the patches are one matrix product. */
#ifndef KI_BACKEND_CPU_PATCHES_H
#define KI_BACKEND_CPU_PATCHES_H

#include "backend/cpu/cpu.h"

typedef struct cpu_patches {
    int64_t mb, ic, ih, iw, oc, oh, ow, kh, kw;
    const float *src;                /* [mb, ic, ih, iw] */
    const float *diff_dst;           /* native */
    float *diff_weights, *diff_bias; /* added to; the second may be NULL */
    float *scratch;
} cpu_patches;

/* Windows side by side, without padding and groups, of a plain source, to a native map. */
bool cpu_is_patches(const ki_kernel_spec *spec);
size_t cpu_patches_scratch_bytes(const cpu_patches *patches);
/* Image after image, so that the number of threads changes no sum. */
void cpu_patches_grad(const cpu_patches *patches);

#endif
