/* oneDNN as the kernels see it. The C API changed between oneDNN 2 and 3: operation descriptors went away, and
 * memory descriptors became opaque. dnnl.c is the only file that knows which version is there (docs/adr/0017).
 *
 * Kernels name tensors, directions and algorithms in oneDNN's words (dnnl_forward_training, DNNL_ARG_SRC), which
 * are the same in both, and run primitives with dnnl_exec_arg_t. All that is made here is freed here; freeing NULL,
 * or what was zeroed and never made, is fine. */
#ifndef KI_BACKEND_CPU_DNNL_H
#define KI_BACKEND_CPU_DNNL_H

#include <oneapi/dnnl/dnnl.h>

#include "device/backend.h"

/* oneDNN's engine and the attributes that primitives are made with. */
typedef struct cpu_dnnl {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr;      /* scratchpad owned by the plan */
    dnnl_primitive_attr_t attr_relu; /* the same, followed by ReLU */
} cpu_dnnl;

/* The sizes and the layout of a tensor of floats: oneDNN's memory descriptor. */
typedef struct cpu_md cpu_md;

/* A primitive and its descriptor, which also says what memory the primitive needs. */
typedef struct cpu_primitive {
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t run;
} cpu_primitive;

/* Channels per block of the native layout: 16 with AVX-512, 8 with AVX2, 1 (plain) elsewhere. For any other layout
 * oneDNN falls back to its reference loops, a thousand times slower. It counts what ONEDNN_MAX_CPU_ISA allows. Constant while the process runs. */
enum { CPU_MOST_BLOCK = 16 };
int64_t cpu_block(void);

kith_status cpu_dnnl_open(cpu_dnnl *dnnl, kith_error *err);
/* Returns when all that was run has finished. */
kith_status cpu_dnnl_wait(cpu_dnnl *dnnl, kith_error *err);
void cpu_dnnl_close(cpu_dnnl *dnnl);

kith_status cpu_md_new(int n_dims, const int64_t *dim, dnnl_format_tag_t tag, cpu_md **ret_md,
                       kith_error *err);
/* The description of an edge. */
kith_status cpu_md_of_edge(const ki_edge *edge, cpu_md **ret_md, kith_error *err);
void cpu_md_free(cpu_md *md);
size_t cpu_md_bytes(const cpu_md *md);
bool cpu_md_equal(const cpu_md *a, const cpu_md *b);

/* What a primitive wants for a tensor (dnnl_query_weights_md, dnnl_query_workspace_md …); it belongs to the
 * primitive. Empty (0 bytes) if the primitive does not use that tensor. */
const cpu_md *cpu_query_md(const cpu_primitive *primitive, dnnl_query_t what);
/* Bytes of the scratchpad, rounded up to KI_ALIGN. */
size_t cpu_scratch_bytes(const cpu_primitive *primitive);

/* A memory object over memory of the caller. */
kith_status cpu_memory(cpu_dnnl *dnnl, const cpu_md *md, const void *ptr, dnnl_memory_t *ret_memory,
                       kith_error *err);
kith_status cpu_scratch_memory(cpu_dnnl *dnnl, const cpu_primitive *primitive, void *ptr,
                               dnnl_memory_t *ret_memory, kith_error *err);

/* The primitives. `prop` is the direction: dnnl_forward_training, dnnl_forward_inference, dnnl_backward (batch
 * norm), dnnl_backward_data or dnnl_backward_weights. A backward primitive needs `forward`, the forward one it
 * belongs to; NULL otherwise. The gradient of a tensor has the tensor's own layout. */
typedef struct cpu_conv_form {
    const cpu_md *src, *weights, *bias, *dst; /* weights may be dnnl_format_tag_any */
    dnnl_dims_t strides, pad_left, pad_right;
    bool has_relu; /* forward only */
    bool has_act;  /* the same, with a function that cpu_dnnl_has */
    ki_act act;
} cpu_conv_form;

/* Whether oneDNN has the function behind a convolution, where the padding of a map stays 0. */
bool cpu_dnnl_has(ki_act how);

typedef struct cpu_pool_form {
    const cpu_md *src, *dst;
    dnnl_alg_kind_t alg;
    dnnl_dims_t strides, kernel, pad_left, pad_right;
} cpu_pool_form;

typedef struct cpu_lrn_form {
    const cpu_md *data;
    int64_t size;
    float alpha, beta, k;
} cpu_lrn_form;

typedef struct cpu_bn_form {
    const cpu_md *data;
    float eps;
    unsigned flags; /* dnnl_use_scale … */
} cpu_bn_form;

kith_status cpu_make_conv(cpu_dnnl *dnnl, dnnl_prop_kind_t prop, const cpu_conv_form *form,
                          const cpu_primitive *forward, cpu_primitive *ret_primitive, kith_error *err);
kith_status cpu_make_pool(cpu_dnnl *dnnl, dnnl_prop_kind_t prop, const cpu_pool_form *form,
                          const cpu_primitive *forward, cpu_primitive *ret_primitive, kith_error *err);
kith_status cpu_make_lrn(cpu_dnnl *dnnl, dnnl_prop_kind_t prop, const cpu_lrn_form *form,
                         const cpu_primitive *forward, cpu_primitive *ret_primitive, kith_error *err);
kith_status cpu_make_bn(cpu_dnnl *dnnl, dnnl_prop_kind_t prop, const cpu_bn_form *form,
                        const cpu_primitive *forward, cpu_primitive *ret_primitive, kith_error *err);
/* A copy between two layouts; accumulates: to += from. */
kith_status cpu_make_reorder(cpu_dnnl *dnnl, const cpu_md *from, const cpu_md *to, bool accumulates,
                             cpu_primitive *ret_primitive, kith_error *err);
void cpu_primitive_release(cpu_primitive *primitive);

/* Adds the shift to the n arguments of batch norm's backward and returns how many there are then: oneDNN 2 requires
 * it, though nothing reads it, and oneDNN 3 refuses it. */
int cpu_add_bn_shift(dnnl_exec_arg_t *args, int n, dnnl_memory_t shift);

kith_status cpu_run(cpu_dnnl *dnnl, const cpu_primitive *primitive, int n_args, const dnnl_exec_arg_t *args,
                    kith_error *err);

#endif
