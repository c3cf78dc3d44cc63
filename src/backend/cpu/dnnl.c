/* The one place that knows oneDNN's version: 2.6 (Debian 12) to 3.x (Debian 13), by DNNL_VERSION_MAJOR.
 *
 * oneDNN 2 makes a primitive from an operation descriptor, oneDNN 3 from the arguments themselves; each cpu_make_…
 * has both forms side by side. A memory descriptor is a struct in 2, allocated here, and oneDNN's own object in 3. */
#include "backend/cpu/dnnl.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"

#define HAS_OP_DESCRIPTORS (DNNL_VERSION_MAJOR < 3)

/* Turns a oneDNN failure into an error of ours, with the text of the call. */
#define DNNL_TRY(call)                                                      \
    do {                                                                    \
        const dnnl_status_t status_ = (call);                               \
        if (status_ != dnnl_success) return fail_dnnl(err, status_, #call); \
    } while (0)

/* oneDNN writes its machine code into memory without checking that the allocation succeeded. One primitive
 * takes less than this. */
static const size_t kernel_room = (size_t)16 << 20;

static kith_status fail_dnnl(kith_error *err, dnnl_status_t status, const char *call) {
    const kith_status ours = status == dnnl_out_of_memory ? KITH_ENOMEM : KITH_EBACKEND;
    ki_fail(err, ours, "oneDNN: %s (%.80s)",
            status == dnnl_out_of_memory ? "out of memory" : "the call failed", call);
    return ki_hint(err, ours, "ONEDNN_VERBOSE=1 in the environment shows more");
}

/* The native layout. */

int64_t cpu_block(void) {
    static _Atomic int known;
    int block = atomic_load_explicit(&known, memory_order_relaxed);
    if (block == 0) {
        const unsigned isa = (unsigned)dnnl_get_effective_cpu_isa();
        const unsigned avx512 = dnnl_cpu_isa_avx512_core, avx2 = dnnl_cpu_isa_avx2;
        block = (isa & avx512) == avx512 ? 16 : (isa & avx2) == avx2 ? 8 : 1;
        atomic_store_explicit(&known, block, memory_order_relaxed);
    }
    return block;
}

static dnnl_format_tag_t native_tag(void) {
    return cpu_block() == 16 ? dnnl_nChw16c : cpu_block() == 8 ? dnnl_nChw8c : dnnl_nchw;
}

/* Memory descriptors. oneDNN declares its dims as arrays of DNNL_MAX_NDIMS. */

static void copy_dims(int n_dims, const int64_t *dim, dnnl_dims_t ret_dims) {
    memset(ret_dims, 0, sizeof(dnnl_dims_t));
    memcpy(ret_dims, dim, (size_t)n_dims * sizeof *dim);
}

#if HAS_OP_DESCRIPTORS
typedef const dnnl_memory_desc_t *any_md;

kith_status cpu_md_new(int n_dims, const int64_t *dim, dnnl_format_tag_t tag, cpu_md **ret_md,
                       kith_error *err) {
    dnnl_memory_desc_t *md = NULL;
    KI_TRY(ki_zalloc_or(&md, 1, sizeof *md, "a tensor's description", err));
    dnnl_dims_t dims;
    copy_dims(n_dims, dim, dims);
    const dnnl_status_t status = dnnl_memory_desc_init_by_tag(md, n_dims, dims, dnnl_f32, tag);
    if (status != dnnl_success) {
        ki_free(md);
        return fail_dnnl(err, status, "dnnl_memory_desc_init_by_tag");
    }
    *ret_md = (cpu_md *)(void *)md;
    return KITH_OK;
}

void cpu_md_free(cpu_md *md) { ki_free(md); }
#else
typedef const_dnnl_memory_desc_t any_md;

kith_status cpu_md_new(int n_dims, const int64_t *dim, dnnl_format_tag_t tag, cpu_md **ret_md,
                       kith_error *err) {
    dnnl_memory_desc_t md = NULL;
    dnnl_dims_t dims;
    copy_dims(n_dims, dim, dims);
    DNNL_TRY(dnnl_memory_desc_create_with_tag(&md, n_dims, dims, dnnl_f32, tag));
    *ret_md = (cpu_md *)(void *)md;
    return KITH_OK;
}

void cpu_md_free(cpu_md *md) {
    if (md) dnnl_memory_desc_destroy((dnnl_memory_desc_t)(void *)md);
}
#endif

static any_md their(const cpu_md *md) { return (any_md)(const void *)md; }

kith_status cpu_md_of_edge(const ki_edge *edge, cpu_md **ret_md, kith_error *err) {
    const dnnl_format_tag_t tag = edge->shape.n_dims == 2     ? dnnl_nc
                                  : edge->layout == KI_NATIVE ? native_tag()
                                                              : dnnl_nchw;
    return cpu_md_new(edge->shape.n_dims, edge->shape.dim, tag, ret_md, err);
}

size_t cpu_md_bytes(const cpu_md *md) { return md ? dnnl_memory_desc_get_size(their(md)) : 0; }

bool cpu_md_equal(const cpu_md *a, const cpu_md *b) {
    return dnnl_memory_desc_equal(their(a), their(b)) == 1;
}

const cpu_md *cpu_query_md(const cpu_primitive *primitive, dnnl_query_t what) {
    return (const cpu_md *)(const void *)dnnl_primitive_desc_query_md(primitive->pd, what, 0);
}

size_t cpu_scratch_bytes(const cpu_primitive *primitive) {
    return ki_round_up(cpu_md_bytes(cpu_query_md(primitive, dnnl_query_scratchpad_md)), KI_ALIGN);
}

/* oneDNN's memory objects take a non-const void pointer, even for memory that is only read. */
kith_status cpu_memory(cpu_dnnl *dnnl, const cpu_md *md, const void *ptr, dnnl_memory_t *ret_memory,
                       kith_error *err) {
    void *writable = NULL;
    memcpy(&writable, &ptr, sizeof ptr);
    DNNL_TRY(dnnl_memory_create(ret_memory, their(md), dnnl->engine, writable));
    return KITH_OK;
}

kith_status cpu_scratch_memory(cpu_dnnl *dnnl, const cpu_primitive *primitive, void *ptr,
                               dnnl_memory_t *ret_memory, kith_error *err) {
    return cpu_memory(dnnl, cpu_query_md(primitive, dnnl_query_scratchpad_md), ptr, ret_memory, err);
}

/* Primitives. */

/* Takes pd over, with the status of the call that made it. */
static kith_status finish(dnnl_status_t status, dnnl_primitive_desc_t pd, const char *what,
                          cpu_primitive *ret_primitive, kith_error *err) {
    dnnl_primitive_t run = NULL;
    if (status == dnnl_success) status = dnnl_primitive_create(&run, pd);
    if (status != dnnl_success) {
        if (pd) dnnl_primitive_desc_destroy(pd);
        return fail_dnnl(err, status, what);
    }
    *ret_primitive = (cpu_primitive){pd, run};
    return KITH_OK;
}

static const_dnnl_primitive_desc_t hint_of(const cpu_primitive *forward) {
    return forward ? forward->pd : NULL;
}

static bool is_forward(dnnl_prop_kind_t prop) {
    return prop == dnnl_forward_training || prop == dnnl_forward_inference;
}

/* Adds what is computed to what was there. */
static dnnl_status_t append_sum(dnnl_post_ops_t ops) {
#if HAS_OP_DESCRIPTORS
    return dnnl_post_ops_append_sum(ops, 1.0f);
#else
    return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
#endif
}

static dnnl_status_t append_function(dnnl_post_ops_t ops, dnnl_alg_kind_t alg, float alpha, float beta) {
#if HAS_OP_DESCRIPTORS
    return dnnl_post_ops_append_eltwise(ops, 1.0f, alg, alpha, beta);
#else
    return dnnl_post_ops_append_eltwise(ops, alg, alpha, beta);
#endif
}

static dnnl_status_t append_relu(dnnl_post_ops_t ops) {
    return append_function(ops, dnnl_eltwise_relu, 0, 0);
}
static dnnl_status_t append_gelu(dnnl_post_ops_t ops) {
    return append_function(ops, dnnl_eltwise_gelu_erf, 0, 0);
}
static dnnl_status_t append_gelu_tanh(dnnl_post_ops_t ops) {
    return append_function(ops, dnnl_eltwise_gelu_tanh, 0, 0);
}
static dnnl_status_t append_quick_gelu(dnnl_post_ops_t ops) {
    return append_function(ops, dnnl_eltwise_swish, 1.702f, 0);
}
static dnnl_status_t append_silu(dnnl_post_ops_t ops) {
    return append_function(ops, dnnl_eltwise_swish, 1, 0);
}
/* 2.x has these two numbers by itself and ignores them. */
static dnnl_status_t append_hard_swish(dnnl_post_ops_t ops) {
    return append_function(ops, dnnl_eltwise_hardswish, 1.0f / 6, 0.5f);
}

typedef dnnl_status_t append_fn(dnnl_post_ops_t ops);

/* Not those that make something else of 0. */
static append_fn *const functions[] = {
    [KI_ACT_GELU] = append_gelu,
    [KI_ACT_GELU_TANH] = append_gelu_tanh,
    [KI_ACT_QUICK_GELU] = append_quick_gelu,
    [KI_ACT_SILU] = append_silu,
    [KI_ACT_HARD_SWISH] = append_hard_swish,
    [KI_ACT_HARD_SIGMOID] = NULL,
};

bool cpu_dnnl_has(ki_act how) { return functions[how] != NULL; }

static dnnl_status_t set_post_op(dnnl_primitive_attr_t attr, append_fn *append) {
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t status = dnnl_post_ops_create(&ops);
    if (status == dnnl_success) status = append(ops);
    if (status == dnnl_success) status = dnnl_primitive_attr_set_post_ops(attr, ops);
    if (ops) dnnl_post_ops_destroy(ops);
    return status;
}

/* Attributes with a scratchpad of the plan's, followed by something. */
static dnnl_status_t make_attr(append_fn *append, dnnl_primitive_attr_t *ret_attr) {
    dnnl_status_t status = dnnl_primitive_attr_create(ret_attr);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(*ret_attr, dnnl_scratchpad_mode_user);
    return status == dnnl_success ? set_post_op(*ret_attr, append) : status;
}

kith_status cpu_make_conv(cpu_dnnl *dnnl, dnnl_prop_kind_t prop, const cpu_conv_form *form,
                          const cpu_primitive *forward, cpu_primitive *ret_primitive, kith_error *err) {
    const any_md src = their(form->src), weights = their(form->weights), bias = their(form->bias),
                 dst = their(form->dst);
    const int64_t *s = form->strides, *l = form->pad_left, *r = form->pad_right;
    const dnnl_alg_kind_t alg = dnnl_convolution_auto;
    const_dnnl_primitive_attr_t attr = form->has_relu && is_forward(prop) ? dnnl->attr_relu : dnnl->attr;
    dnnl_primitive_attr_t own = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = dnnl_success;
    KI_TRY(ki_room_or(kernel_room, "a kernel of oneDNN", err));
    if (form->has_act && is_forward(prop)) {
        status = make_attr(functions[form->act], &own);
        if (status != dnnl_success) {
            if (own) dnnl_primitive_attr_destroy(own);
            return fail_dnnl(err, status, "a function behind a convolution");
        }
        attr = own;
    }
#if HAS_OP_DESCRIPTORS
    dnnl_convolution_desc_t d;
    if (is_forward(prop))
        status = dnnl_convolution_forward_desc_init(&d, prop, alg, src, weights, bias, dst, s, l, r);
    else if (prop == dnnl_backward_data)
        status = dnnl_convolution_backward_data_desc_init(&d, alg, src, weights, dst, s, l, r);
    else
        status = dnnl_convolution_backward_weights_desc_init(&d, alg, src, weights, bias, dst, s, l, r);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(&pd, &d, attr, dnnl->engine, hint_of(forward));
#else
    const dnnl_dims_t gap = {0};
    if (is_forward(prop))
        status = dnnl_convolution_forward_primitive_desc_create(&pd, dnnl->engine, prop, alg, src, weights,
                                                                bias, dst, s, gap, l, r, attr);
    else if (prop == dnnl_backward_data)
        status = dnnl_convolution_backward_data_primitive_desc_create(
            &pd, dnnl->engine, alg, src, weights, dst, s, gap, l, r, hint_of(forward), attr);
    else
        status = dnnl_convolution_backward_weights_primitive_desc_create(
            &pd, dnnl->engine, alg, src, weights, bias, dst, s, gap, l, r, hint_of(forward), attr);
#endif
    if (own) dnnl_primitive_attr_destroy(own);
    return finish(status, pd, "convolution", ret_primitive, err);
}

kith_status cpu_make_pool(cpu_dnnl *dnnl, dnnl_prop_kind_t prop, const cpu_pool_form *form,
                          const cpu_primitive *forward, cpu_primitive *ret_primitive, kith_error *err) {
    const any_md src = their(form->src), dst = their(form->dst);
    const int64_t *s = form->strides, *k = form->kernel, *l = form->pad_left, *r = form->pad_right;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = dnnl_success;
    KI_TRY(ki_room_or(kernel_room, "a kernel of oneDNN", err));
#if HAS_OP_DESCRIPTORS
    dnnl_pooling_desc_t d;
    if (is_forward(prop))
        status = dnnl_pooling_forward_desc_init(&d, prop, form->alg, src, dst, s, k, l, r);
    else
        status = dnnl_pooling_backward_desc_init(&d, form->alg, src, dst, s, k, l, r);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(&pd, &d, dnnl->attr, dnnl->engine, hint_of(forward));
#else
    const dnnl_dims_t gap = {0};
    if (is_forward(prop))
        status = dnnl_pooling_forward_primitive_desc_create(&pd, dnnl->engine, prop, form->alg, src, dst, s,
                                                            k, gap, l, r, dnnl->attr);
    else
        status = dnnl_pooling_backward_primitive_desc_create(&pd, dnnl->engine, form->alg, src, dst, s, k,
                                                             gap, l, r, hint_of(forward), dnnl->attr);
#endif
    return finish(status, pd, "pooling", ret_primitive, err);
}

kith_status cpu_make_lrn(cpu_dnnl *dnnl, dnnl_prop_kind_t prop, const cpu_lrn_form *form,
                         const cpu_primitive *forward, cpu_primitive *ret_primitive, kith_error *err) {
    const any_md md = their(form->data);
    const dnnl_alg_kind_t alg = dnnl_lrn_across_channels;
    const int64_t n = form->size;
    const float a = form->alpha, b = form->beta, k = form->k;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = dnnl_success;
    KI_TRY(ki_room_or(kernel_room, "a kernel of oneDNN", err));
#if HAS_OP_DESCRIPTORS
    dnnl_lrn_desc_t d;
    if (is_forward(prop))
        status = dnnl_lrn_forward_desc_init(&d, prop, alg, md, n, a, b, k);
    else
        status = dnnl_lrn_backward_desc_init(&d, alg, md, md, n, a, b, k);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(&pd, &d, dnnl->attr, dnnl->engine, hint_of(forward));
#else
    if (is_forward(prop))
        status = dnnl_lrn_forward_primitive_desc_create(&pd, dnnl->engine, prop, alg, md, md, n, a, b, k,
                                                        dnnl->attr);
    else
        status = dnnl_lrn_backward_primitive_desc_create(&pd, dnnl->engine, alg, md, md, md, n, a, b, k,
                                                         hint_of(forward), dnnl->attr);
#endif
    return finish(status, pd, "local response normalization", ret_primitive, err);
}

kith_status cpu_make_bn(cpu_dnnl *dnnl, dnnl_prop_kind_t prop, const cpu_bn_form *form,
                        const cpu_primitive *forward, cpu_primitive *ret_primitive, kith_error *err) {
    const any_md md = their(form->data);
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = dnnl_success;
    KI_TRY(ki_room_or(kernel_room, "a kernel of oneDNN", err));
#if HAS_OP_DESCRIPTORS
    dnnl_batch_normalization_desc_t d;
    if (is_forward(prop))
        status = dnnl_batch_normalization_forward_desc_init(&d, prop, md, form->eps, form->flags);
    else
        status = dnnl_batch_normalization_backward_desc_init(&d, prop, md, md, form->eps, form->flags);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(&pd, &d, dnnl->attr, dnnl->engine, hint_of(forward));
#else
    if (is_forward(prop))
        status = dnnl_batch_normalization_forward_primitive_desc_create(&pd, dnnl->engine, prop, md, md,
                                                                        form->eps, form->flags, dnnl->attr);
    else
        status = dnnl_batch_normalization_backward_primitive_desc_create(
            &pd, dnnl->engine, prop, md, md, md, form->eps, form->flags, hint_of(forward), dnnl->attr);
#endif
    return finish(status, pd, "batch norm", ret_primitive, err);
}

kith_status cpu_make_reorder(cpu_dnnl *dnnl, const cpu_md *from, const cpu_md *to, bool accumulates,
                             cpu_primitive *ret_primitive, kith_error *err) {
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    KI_TRY(ki_room_or(kernel_room, "a kernel of oneDNN", err));
    dnnl_status_t status = dnnl_primitive_attr_create(&attr);
    if (status == dnnl_success && accumulates) status = set_post_op(attr, append_sum);
    if (status == dnnl_success)
        status =
            dnnl_reorder_primitive_desc_create(&pd, their(from), dnnl->engine, their(to), dnnl->engine, attr);
    if (attr) dnnl_primitive_attr_destroy(attr);
    return finish(status, pd, "reorder", ret_primitive, err);
}

void cpu_primitive_release(cpu_primitive *primitive) {
    if (primitive->run) dnnl_primitive_destroy(primitive->run);
    if (primitive->pd) dnnl_primitive_desc_destroy(primitive->pd);
    *primitive = (cpu_primitive){NULL, NULL};
}

int cpu_add_bn_shift(dnnl_exec_arg_t *args, int n, dnnl_memory_t shift) {
    if (HAS_OP_DESCRIPTORS) args[n++] = (dnnl_exec_arg_t){DNNL_ARG_SHIFT, shift};
    return n;
}

kith_status cpu_run(cpu_dnnl *dnnl, const cpu_primitive *primitive, int n_args, const dnnl_exec_arg_t *args,
                    kith_error *err) {
    DNNL_TRY(dnnl_primitive_execute(primitive->run, dnnl->stream, n_args, args));
    return KITH_OK;
}

/* The engine. */

kith_status cpu_dnnl_open(cpu_dnnl *dnnl, kith_error *err) {
    KI_TRY(ki_room_or(kernel_room, "oneDNN", err));
    DNNL_TRY(dnnl_engine_create(&dnnl->engine, dnnl_cpu, 0));
    DNNL_TRY(dnnl_stream_create(&dnnl->stream, dnnl->engine, dnnl_stream_default_flags));
    DNNL_TRY(dnnl_primitive_attr_create(&dnnl->attr));
    DNNL_TRY(dnnl_primitive_attr_set_scratchpad_mode(dnnl->attr, dnnl_scratchpad_mode_user));
    DNNL_TRY(make_attr(append_relu, &dnnl->attr_relu));
    return KITH_OK;
}

kith_status cpu_dnnl_wait(cpu_dnnl *dnnl, kith_error *err) {
    DNNL_TRY(dnnl_stream_wait(dnnl->stream));
    return KITH_OK;
}

void cpu_dnnl_close(cpu_dnnl *dnnl) {
    if (dnnl->attr) dnnl_primitive_attr_destroy(dnnl->attr);
    if (dnnl->attr_relu) dnnl_primitive_attr_destroy(dnnl->attr_relu);
    if (dnnl->stream) dnnl_stream_destroy(dnnl->stream);
    if (dnnl->engine) dnnl_engine_destroy(dnnl->engine);
}
