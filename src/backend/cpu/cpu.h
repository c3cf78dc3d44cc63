/* What the kernels of the cpu backend share. */
#ifndef KI_BACKEND_CPU_H
#define KI_BACKEND_CPU_H

#include <oneapi/dnnl/dnnl.h>

#include "core/alloc.h"
#include "core/backend.h"
#include "core/parallel.h"
#include "core/sanitizer.h"

enum { CPU_BLOCK = 16 }; /* channels per block of the native layout */

typedef struct cpu_backend {
    ki_backend base;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr;      /* scratchpad owned by the plan */
    dnnl_primitive_attr_t attr_relu; /* the same, followed by ReLU */
} cpu_backend;

static inline cpu_backend *cpu_of(ki_backend *backend) { return (cpu_backend *)backend; }

/* Turns a oneDNN failure into an error of ours, with the text of the call. */
#define CPU_DNNL(call)                                                              \
    do {                                                                            \
        const dnnl_status_t cpu_dnnl_ = (call);                                     \
        if (cpu_dnnl_ != dnnl_success) return cpu_fail_dnnl(err, cpu_dnnl_, #call); \
    } while (0)

kith_status cpu_fail_dnnl(kith_error *err, dnnl_status_t status, const char *call);

/* The oneDNN description of an edge. */
kith_status cpu_edge_md(const ki_edge *edge, dnnl_memory_desc_t *ret_md, kith_error *err);
kith_status cpu_md(int n_dims, const int64_t *dim, dnnl_format_tag_t tag, dnnl_memory_desc_t *ret_md,
                   kith_error *err);

/* Primitive from an operation descriptor; ret_pd (kept by the caller) may be NULL. */
kith_status cpu_primitive(cpu_backend *cpu, const void *op_desc, const_dnnl_primitive_attr_t attr,
                          const_dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *ret_pd,
                          dnnl_primitive_t *ret_primitive, kith_error *err);
size_t cpu_scratch_bytes(const_dnnl_primitive_desc_t pd);
kith_status cpu_memory(cpu_backend *cpu, const dnnl_memory_desc_t *md, const void *ptr,
                       dnnl_memory_t *ret_memory, kith_error *err);
kith_status cpu_scratch_memory(cpu_backend *cpu, const_dnnl_primitive_desc_t pd, void *ptr,
                               dnnl_memory_t *ret_memory, kith_error *err);
kith_status cpu_reorder(cpu_backend *cpu, const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to,
                        bool accumulates, dnnl_primitive_t *ret_primitive, kith_error *err);
kith_status cpu_run(cpu_backend *cpu, const_dnnl_primitive_t primitive, int n_args,
                    const dnnl_exec_arg_t *args, kith_error *err);

/* dst[i] += src[i]. */
void cpu_accumulate(float *dst, const float *src, int64_t n);

static inline int64_t cpu_padded(int64_t c) { return (c + CPU_BLOCK - 1) / CPU_BLOCK * CPU_BLOCK; }
/* How many floats an edge takes, padding included. */
static inline int64_t cpu_count(const ki_edge *edge) { return (int64_t)(edge->bytes / sizeof(float)); }
/* Place of logical element (n, c, pixel) of a native edge with `hw` pixels. */
static inline int64_t cpu_native_at(int64_t n, int64_t c, int64_t pixel, int64_t c_padded, int64_t hw) {
    return (n * c_padded + c / CPU_BLOCK * CPU_BLOCK) * hw + pixel * CPU_BLOCK + c % CPU_BLOCK;
}

/* Loops that gcc turns into the widest vectors the machine has. clang takes one feature to a clone, not two. */
#if defined(__clang__)
#define CPU_WIDE
#else
#define CPU_WIDE KI_CLONES("avx512f", "avx2,fma")
#endif

extern const ki_backend_type ki_backend_cpu;

extern const ki_kernel_type cpu_conv2d, cpu_batch_norm, cpu_relu, cpu_pool, cpu_lrn, cpu_concat, cpu_add,
    cpu_linear, cpu_dropout, cpu_global_pool, cpu_l2_norm, cpu_attend, cpu_unfold, cpu_layer_norm;

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
