/* The weights' gradient of depthwise convolutions: oneDNN has it for kernels 3 wide only, and falls back to its reference loops,
 * a thousand times slower, for those of ConvNeXt and EfficientNet. */
#ifndef KI_BACKEND_CPU_DEPTHWISE_H
#define KI_BACKEND_CPU_DEPTHWISE_H

#include "device/kernel.h"

typedef struct cpu_depthwise {
    const ki_conv_attr *attr;
    int64_t mb, c, ih, iw, oh, ow;
    const float *src, *diff_dst;     /* native maps */
    float *diff_weights, *diff_bias; /* [c, kh, kw] and [c], added to; NULL: not wanted */
} cpu_depthwise;

/* Every channel a group of its own, and a kernel 3, 5 or 7 wide? */
bool cpu_is_depthwise(const ki_conv_attr *attr, int64_t ic);
/* The sums do not depend on the number of threads. */
void cpu_depthwise_grad(const cpu_depthwise *depthwise);

#endif
