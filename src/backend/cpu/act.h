/* The functions of op act, for kernels that apply one to their own output while it is in the cache. */
#ifndef KI_BACKEND_CPU_ACT_H
#define KI_BACKEND_CPU_ACT_H

#include <stdint.h>

#include "device/op.h"

/* dst may be src. */
typedef void cpu_act_fn(const float *src, float *dst, int64_t n);

cpu_act_fn *cpu_act_of(ki_act how);

#endif
