/* Batch statistics over ranks, beside a batch norm of oneDNN (batch_norm.c). */
#ifndef KI_BACKEND_CPU_SYNCED_H
#define KI_BACKEND_CPU_SYNCED_H

#include "backend/cpu/cpu.h"
#include "comm/moments.h"

typedef struct cpu_synced {
    ki_comm *comm; /* NULL: nothing is synced */
    int64_t mb, c, c_padded, hw;
    int64_t block; /* channels that lie side by side for each pixel */
    double n;      /* values per channel of all ranks, of the last forward */
    double *sum;   /* [2, c_padded] */
    const float *src;
} cpu_synced;

/* What a backward through batch statistics reads; each [c]. */
typedef struct cpu_synced_sums {
    const float *mean, *variance, *scale;
    const float *diff_scale, *diff_shift; /* of this rank's images */
    double eps;
} cpu_synced_sums;

kith_status cpu_synced_init(cpu_synced *synced, const ki_kernel_spec *spec, kith_error *err);
void cpu_synced_release(cpu_synced *synced);
/* Mean and variance [c] of src over all ranks. */
kith_status cpu_synced_moments(cpu_synced *synced, float *ret_mean, float *ret_variance, kith_error *err);
/* diff_src, made as if the statistics were fixed, becomes the gradient through them, too. NULL: it is not wanted; the ranks
 * sum all the same. */
kith_status cpu_synced_backward(cpu_synced *synced, const cpu_synced_sums *sums, float *diff_src,
                                kith_error *err);

#endif
