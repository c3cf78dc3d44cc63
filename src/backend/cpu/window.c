/* Pooling and LRN by oneDNN: both are one primitive for each direction on the blocked layout, with a
 * workspace that forward leaves for backward (the place of each maximum; the scales). */
#include <string.h>

#include "backend/cpu/cpu.h"

typedef struct window {
    ki_kernel base;
    cpu_primitive fwd, bwd; /* bwd.run NULL: no gradient is wanted */
    cpu_md *src_md, *dst_md;
    dnnl_memory_t src, dst, diff_src, diff_dst, workspace, fwd_scratch, bwd_scratch;
    bool has_workspace, backward_reads_src;
    /* An average that counts padding but not the overhang of ceil mode: oneDNN divides every window by
     * its full size, so the windows over the edge are scaled afterwards (and their gradients before). */
    bool fixes_edge;
    ki_pool_attr pool;
    ki_shape src_shape, dst_shape;
    float *dst_ptr;
    float *fixed_diff; /* scaled copy of the gradient, in scratch */
    const float *diff_dst_ptr;
} window;

static void window_free(ki_kernel *kernel) {
    window *k = (window *)kernel;
    dnnl_memory_t memories[] = {k->src,       k->dst,         k->diff_src,   k->diff_dst,
                                k->workspace, k->fwd_scratch, k->bwd_scratch};
    for (size_t i = 0; i < sizeof memories / sizeof memories[0]; i++) dnnl_memory_destroy(memories[i]);
    cpu_primitive_release(&k->fwd);
    cpu_primitive_release(&k->bwd);
    cpu_md_free(k->src_md);
    cpu_md_free(k->dst_md);
    ki_free(k);
}

static dnnl_prop_kind_t forward_kind(const ki_kernel_spec *spec) {
    return spec->mode == KI_TRAIN ? dnnl_forward_training : dnnl_forward_inference;
}

static kith_status make_pool(window *k, cpu_dnnl *dnnl, const ki_kernel_spec *spec, kith_error *err) {
    const ki_pool_attr *a = &spec->attr->pool;
    const int64_t *s = spec->src[0].shape.dim, *d = spec->dst.shape.dim;
    const cpu_pool_form form = {
        .src = k->src_md,
        .dst = k->dst_md,
        .alg = !a->average    ? dnnl_pooling_max
               : a->count_pad ? dnnl_pooling_avg_include_padding
                              : dnnl_pooling_avg_exclude_padding,
        .strides = {a->s, a->s},
        .kernel = {a->k, a->k},
        .pad_left = {a->p, a->p},
        .pad_right = {(d[2] - 1) * a->s + a->k - s[2] - a->p, (d[3] - 1) * a->s + a->k - s[3] - a->p}};
    KI_TRY(cpu_make_pool(dnnl, forward_kind(spec), &form, NULL, &k->fwd, err));
    k->pool = *a;
    k->fixes_edge = a->average && a->count_pad && (form.pad_right[0] > a->p || form.pad_right[1] > a->p);
    if (!spec->wants_diff_src[0]) return KITH_OK;
    return cpu_make_pool(dnnl, dnnl_backward_data, &form, &k->fwd, &k->bwd, err);
}

static kith_status make_lrn(window *k, cpu_dnnl *dnnl, const ki_kernel_spec *spec, kith_error *err) {
    const ki_lrn_attr *a = &spec->attr->lrn;
    const cpu_lrn_form form = {.data = k->src_md,
                               .size = a->size,
                               .alpha = (float)a->alpha,
                               .beta = (float)a->beta,
                               .k = (float)a->k};
    KI_TRY(cpu_make_lrn(dnnl, forward_kind(spec), &form, NULL, &k->fwd, err));
    k->backward_reads_src = true;
    if (!spec->wants_diff_src[0]) return KITH_OK;
    return cpu_make_lrn(dnnl, dnnl_backward_data, &form, &k->fwd, &k->bwd, err);
}

static kith_status window_create(ki_backend *backend, const ki_kernel_type *type, const ki_kernel_spec *spec,
                                 ki_kernel_info *ret_info, ki_kernel **ret_kernel, kith_error *err) {
    window *k = NULL;
    kith_status status = KITH_OK;
    KI_TRY(ki_kernel_new(backend, type, sizeof *k, &k, err));
    k->src_shape = spec->src[0].shape;
    k->dst_shape = spec->dst.shape;
    KI_CHECK(cpu_md_of_edge(&spec->src[0], &k->src_md, err));
    KI_CHECK(cpu_md_of_edge(&spec->dst, &k->dst_md, err));
    KI_CHECK(spec->kind == KI_OP_POOL ? make_pool(k, cpu_dnnl_of(backend), spec, err)
                                      : make_lrn(k, cpu_dnnl_of(backend), spec, err));
    const size_t workspace_bytes = cpu_md_bytes(cpu_query_md(&k->fwd, dnnl_query_workspace_md));
    size_t scratch = cpu_scratch_bytes(&k->fwd);
    if (k->bwd.run) {
        const size_t back = cpu_scratch_bytes(&k->bwd) + (k->fixes_edge ? spec->dst.bytes : 0);
        if (back > scratch) scratch = back;
    }
    k->has_workspace = workspace_bytes > 0;
    *ret_info = (ki_kernel_info){.workspace_bytes = workspace_bytes,
                                 .scratch_bytes = scratch,
                                 .backward_reads_src = k->backward_reads_src};
    *ret_kernel = &k->base;
    k = NULL;
done:
    if (k) window_free(&k->base);
    return status;
}

static kith_status pool_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                               ki_kernel **ret_kernel, kith_error *err) {
    return window_create(backend, &cpu_pool, spec, ret_info, ret_kernel, err);
}

static kith_status lrn_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                              ki_kernel **ret_kernel, kith_error *err) {
    return window_create(backend, &cpu_lrn, spec, ret_info, ret_kernel, err);
}

static kith_status window_bind(ki_kernel *kernel, const ki_binding *b, kith_error *err) {
    window *k = (window *)kernel;
    cpu_dnnl *dnnl = cpu_dnnl_of(kernel->backend);
    k->dst_ptr = b->dst;
    KI_TRY(cpu_memory(dnnl, k->src_md, b->src[0], &k->src, err));
    KI_TRY(cpu_memory(dnnl, k->dst_md, b->dst, &k->dst, err));
    KI_TRY(cpu_scratch_memory(dnnl, &k->fwd, b->scratch, &k->fwd_scratch, err));
    if (k->has_workspace)
        KI_TRY(cpu_memory(dnnl, cpu_query_md(&k->fwd, dnnl_query_workspace_md), b->workspace, &k->workspace,
                          err));
    if (!k->bwd.run) return KITH_OK;
    k->diff_dst_ptr = b->diff_dst[0];
    k->fixed_diff = (float *)(void *)((char *)b->scratch + cpu_scratch_bytes(&k->bwd));
    KI_TRY(cpu_memory(dnnl, k->dst_md, k->fixes_edge ? (const void *)k->fixed_diff : b->diff_dst[0],
                      &k->diff_dst, err));
    KI_TRY(cpu_memory(dnnl, k->src_md, b->diff_src[0], &k->diff_src, err));
    return cpu_scratch_memory(dnnl, &k->bwd, b->scratch, &k->bwd_scratch, err);
}

/* Cells of window o inside source and padding, along one side. */
static int64_t cells(const ki_pool_attr *a, int64_t o, int64_t size) {
    const int64_t begin = o * a->s - a->p;
    const int64_t end = begin + a->k < size + a->p ? begin + a->k : size + a->p;
    return end - begin;
}

/* Scale every window from division by k * k to division by the cells it has. */
static void fix_edge(const window *k, const float *from, float *to) {
    const int64_t n_blocks = k->dst_shape.dim[0] * cpu_padded(k->dst_shape.dim[1]) / CPU_BLOCK;
    const int64_t oh = k->dst_shape.dim[2], ow = k->dst_shape.dim[3];
    for (int64_t n = 0; n < n_blocks; n++) {
        for (int64_t y = 0; y < oh; y++) {
            for (int64_t x = 0; x < ow; x++) {
                const int64_t n_cells =
                    cells(&k->pool, y, k->src_shape.dim[2]) * cells(&k->pool, x, k->src_shape.dim[3]);
                const float scale = (float)(k->pool.k * k->pool.k) / (float)n_cells;
                const int64_t at = ((n * oh + y) * ow + x) * CPU_BLOCK;
                for (int64_t i = at; i < at + CPU_BLOCK; i++) to[i] = from[i] * scale;
            }
        }
    }
}

static kith_status window_forward(ki_kernel *kernel, kith_error *err) {
    window *k = (window *)kernel;
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, k->src},
                                    {DNNL_ARG_DST, k->dst},
                                    {DNNL_ARG_SCRATCHPAD, k->fwd_scratch},
                                    {DNNL_ARG_WORKSPACE, k->workspace}};
    KI_TRY(cpu_run(cpu_dnnl_of(kernel->backend), &k->fwd, k->has_workspace ? 4 : 3, args, err));
    if (k->fixes_edge) fix_edge(k, k->dst_ptr, k->dst_ptr);
    return KITH_OK;
}

static kith_status window_backward(ki_kernel *kernel, kith_error *err) {
    window *k = (window *)kernel;
    if (k->fixes_edge) fix_edge(k, k->diff_dst_ptr, k->fixed_diff);
    dnnl_exec_arg_t args[5] = {{DNNL_ARG_DIFF_DST, k->diff_dst},
                               {DNNL_ARG_DIFF_SRC, k->diff_src},
                               {DNNL_ARG_SCRATCHPAD, k->bwd_scratch}};
    int n = 3;
    if (k->backward_reads_src) args[n++] = (dnnl_exec_arg_t){DNNL_ARG_SRC, k->src};
    if (k->has_workspace) args[n++] = (dnnl_exec_arg_t){DNNL_ARG_WORKSPACE, k->workspace};
    return cpu_run(cpu_dnnl_of(kernel->backend), &k->bwd, n, args, err);
}

const ki_kernel_type cpu_pool = {.create = pool_create,
                                 .bind = window_bind,
                                 .forward = window_forward,
                                 .backward = window_backward,
                                 .free = window_free};
const ki_kernel_type cpu_lrn = {.create = lrn_create,
                                .bind = window_bind,
                                .forward = window_forward,
                                .backward = window_backward,
                                .free = window_free};
