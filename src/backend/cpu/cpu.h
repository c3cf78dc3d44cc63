/* What the kernels of the cpu backend share. */
#ifndef KI_BACKEND_CPU_H
#define KI_BACKEND_CPU_H

#include "backend/cpu/dnnl.h"
#include "base/alloc.h"
#include "base/parallel.h"
#include "base/sanitizer.h"
#include "device/backend.h"

typedef struct cpu_backend {
    ki_backend base;
    cpu_dnnl dnnl;
} cpu_backend;

static inline cpu_dnnl *cpu_dnnl_of(ki_backend *backend) { return &((cpu_backend *)backend)->dnnl; }

/* dst[i] += src[i]. */
void cpu_accumulate(float *dst, const float *src, int64_t n);

/* Blocks are powers of two. */
static inline int64_t cpu_padded(int64_t c) { return (c + cpu_block() - 1) & -cpu_block(); }
/* How many floats an edge takes, padding included. */
static inline int64_t cpu_count(const ki_edge *edge) { return (int64_t)(edge->bytes / sizeof(float)); }
/* Place of logical element (n, c, pixel) of a native edge with `hw` pixels. */
static inline int64_t cpu_native_at(int64_t n, int64_t c, int64_t pixel, int64_t c_padded, int64_t hw) {
    const int64_t block = cpu_block();
    return (n * c_padded + (c & -block)) * hw + pixel * block + (c & (block - 1));
}

/* Set the channels that pad a native map to 0. Nothing is done to other edges. */
void cpu_clear_padding(const ki_edge *edge, float *map);

/* Loops that gcc turns into the widest vectors the machine has. clang takes one feature to a clone, not two. */
#if defined(__clang__)
#define CPU_WIDE
#else
#define CPU_WIDE KI_CLONES("avx512f", "avx2,fma")
#endif

extern const ki_backend_type ki_backend_cpu;

/* One record per op. */
#define X(NAME, name) extern const ki_kernel_type cpu_##name;
#include "device/op.def"
#undef X

kith_status cpu_join(ki_backend *backend, const ki_edge *edge, int n_parts, const void *const *parts,
                     const void *mask, void *dst, kith_error *err);
/* dst[0..n) = (sum of parts) * [mask > 0], on one thread; mask may be NULL. */
void cpu_join_range(int n_parts, const float *const *parts, const float *mask, float *dst, int64_t n);
kith_status cpu_optim(ki_backend *backend, const ki_optim_step *step, kith_error *err);
kith_status cpu_sum_squares(ki_backend *backend, int n_runs, const ki_optim_run *runs, double *dst,
                            kith_error *err);
kith_status cpu_linear_grad(ki_backend *backend, const ki_edge *src_edge, const void *src,
                            const ki_real *diff_dst, int64_t oc, ki_real *diff_weights, ki_real *diff_bias,
                            kith_error *err);

#endif
