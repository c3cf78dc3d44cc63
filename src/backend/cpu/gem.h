/* The generalised mean of global_pool on blocked maps. */
#ifndef KI_BACKEND_CPU_GEM_H
#define KI_BACKEND_CPU_GEM_H

#include "device/kernel.h"

typedef struct cpu_gem {
    int64_t mb, c, hw;
    const float *src, *p;
    float *dst;
    float *saved; /* [mb, c, 3]: written by forward unless NULL, read by backward */
    const float *diff_dst;
    float *diff_src; /* NULL: not wanted */
    float *diff_p;   /* added to; NULL: not wanted */
} cpu_gem;

void cpu_gem_forward(const cpu_gem *gem);
void cpu_gem_backward(const cpu_gem *gem);

#endif
