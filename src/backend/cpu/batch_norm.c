/* Batch norm by oneDNN, ReLU fused through its mask workspace. Training uses batch statistics and updates the
 * running ones. Frozen batch norms and inference use the running ones and do not change them.
 *
 * Over ranks the statistics are those of all ranks' images (synced.c): oneDNN is given them as if they were fixed. Its
 * backward then lacks the part of the gradient that flows through the statistics, which is subtracted afterwards. */
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/synced.h"
#include "comm/device.h"

typedef struct bn {
    ki_kernel base;
    ki_bn_attr attr;
    int64_t c, n_each; /* values per channel */
    bool uses_batch_stats, trains;
    cpu_synced synced;      /* over ranks; comm NULL: the batch is whole */
    cpu_primitive fwd, bwd; /* bwd.run NULL: it does not train */
    cpu_md *data_md, *stat_md;
    dnnl_memory_t src, dst, mean, variance, scale, shift, workspace, diff_src, diff_dst, diff_scale,
        diff_shift;
    dnnl_memory_t fwd_scratch, bwd_scratch;
    bool has_workspace;
    float *diff_src_at; /* NULL: not wanted */
    float *stats;       /* batch mean and variance, then diff_scale and diff_shift: [4, c] */
    ki_param_slot param[KI_MAX_PARAMS];
} bn;

static void bn_free(ki_kernel *kernel) {
    bn *k = (bn *)kernel;
    dnnl_memory_t memories[] = {k->src,        k->dst,         k->mean,       k->variance, k->scale,
                                k->shift,      k->workspace,   k->diff_src,   k->diff_dst, k->diff_scale,
                                k->diff_shift, k->fwd_scratch, k->bwd_scratch};
    for (size_t i = 0; i < sizeof memories / sizeof memories[0]; i++) dnnl_memory_destroy(memories[i]);
    cpu_primitive_release(&k->fwd);
    cpu_primitive_release(&k->bwd);
    cpu_md_free(k->data_md);
    cpu_md_free(k->stat_md);
    cpu_synced_release(&k->synced);
    ki_free(k->stats);
    ki_free(k);
}

static kith_status make_primitives(bn *k, cpu_dnnl *dnnl, const ki_kernel_spec *spec, kith_error *err) {
    unsigned flags = dnnl_use_scale | dnnl_use_shift;
    if (!k->uses_batch_stats || k->synced.comm) flags |= dnnl_use_global_stats;
    if (spec->has_relu) flags |= dnnl_fuse_norm_relu;
    const dnnl_prop_kind_t prop = spec->mode == KI_TRAIN ? dnnl_forward_training : dnnl_forward_inference;
    KI_TRY(cpu_md_of_edge(&spec->dst, &k->data_md, err));
    KI_TRY(cpu_md_new(1, &k->c, dnnl_a, &k->stat_md, err));
    const cpu_bn_form form = {.data = k->data_md, .eps = (float)k->attr.eps, .flags = flags};
    KI_TRY(cpu_make_bn(dnnl, prop, &form, NULL, &k->fwd, err));
    return k->trains ? cpu_make_bn(dnnl, dnnl_backward, &form, &k->fwd, &k->bwd, err) : KITH_OK;
}

static kith_status bn_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                             ki_kernel **ret_kernel, kith_error *err) {
    bn *k = NULL;
    kith_status status = KITH_OK;
    KI_TRY(ki_kernel_new(backend, &cpu_batch_norm, sizeof *k, &k, err));
    k->attr = spec->attr->bn;
    k->c = spec->dst.shape.dim[1];
    k->n_each = ki_shape_count(&spec->dst.shape) / k->c;
    k->uses_batch_stats = spec->mode == KI_TRAIN && !spec->frozen_stats;
    k->trains = spec->wants_diff_params;
    KI_CHECK(ki_zalloc_or(&k->stats, 4 * (size_t)k->c, sizeof *k->stats, "batch statistics", err));
    if (k->uses_batch_stats && ki_device_comm_ranks(spec->device_comm))
        KI_CHECK(cpu_synced_init(&k->synced, spec, err));
    KI_CHECK(make_primitives(k, cpu_dnnl_of(backend), spec, err));
    const size_t workspace_bytes = cpu_md_bytes(cpu_query_md(&k->fwd, dnnl_query_workspace_md));
    size_t scratch = cpu_scratch_bytes(&k->fwd);
    if (k->bwd.run && cpu_scratch_bytes(&k->bwd) > scratch) scratch = cpu_scratch_bytes(&k->bwd);
    k->has_workspace = workspace_bytes > 0;
    *ret_info = (ki_kernel_info){
        .workspace_bytes = workspace_bytes, .scratch_bytes = scratch, .backward_reads_src = true};
    *ret_kernel = &k->base;
    k = NULL;
done:
    if (k) bn_free(&k->base);
    return status;
}

static kith_status bn_bind(ki_kernel *kernel, const ki_binding *b, kith_error *err) {
    bn *k = (bn *)kernel;
    cpu_dnnl *dnnl = cpu_dnnl_of(kernel->backend);
    memcpy(k->param, b->param, sizeof k->param);
    k->synced.src = b->src[0];
    k->diff_src_at = b->diff_src[0];
    KI_TRY(cpu_memory(dnnl, k->data_md, b->src[0], &k->src, err));
    KI_TRY(cpu_memory(dnnl, k->data_md, b->dst, &k->dst, err));
    KI_TRY(cpu_memory(dnnl, k->stat_md, k->uses_batch_stats ? k->stats : k->param[KI_MEAN].value, &k->mean,
                      err));
    KI_TRY(cpu_memory(dnnl, k->stat_md, k->uses_batch_stats ? k->stats + k->c : k->param[KI_VAR].value,
                      &k->variance, err));
    KI_TRY(cpu_memory(dnnl, k->stat_md, k->param[KI_W].value, &k->scale, err));
    KI_TRY(cpu_memory(dnnl, k->stat_md, k->param[KI_B].value, &k->shift, err));
    KI_TRY(cpu_scratch_memory(dnnl, &k->fwd, b->scratch, &k->fwd_scratch, err));
    if (k->has_workspace)
        KI_TRY(cpu_memory(dnnl, cpu_query_md(&k->fwd, dnnl_query_workspace_md), b->workspace, &k->workspace,
                          err));
    if (!k->bwd.run) return KITH_OK;
    KI_TRY(cpu_memory(dnnl, k->data_md, b->diff_dst[0], &k->diff_dst, err));
    /* oneDNN always writes diff_src; if it is not wanted, it goes to the buffer of diff_dst. */
    KI_TRY(cpu_memory(dnnl, k->data_md, b->diff_src[0] ? b->diff_src[0] : b->diff_dst[0], &k->diff_src, err));
    KI_TRY(cpu_memory(dnnl, k->stat_md, k->stats + 2 * k->c, &k->diff_scale, err));
    KI_TRY(cpu_memory(dnnl, k->stat_md, k->stats + 3 * k->c, &k->diff_shift, err));
    return cpu_scratch_memory(dnnl, &k->bwd, b->scratch, &k->bwd_scratch, err);
}

static void update_running(bn *k) {
    const double n = k->synced.comm ? k->synced.n : (double)k->n_each, unbias = n > 1 ? n / (n - 1) : 1;
    const double m = k->attr.momentum;
    float *mean = k->param[KI_MEAN].value, *variance = k->param[KI_VAR].value;
    for (int64_t c = 0; c < k->c; c++) {
        mean[c] = (float)((1 - m) * (double)mean[c] + m * (double)k->stats[c]);
        variance[c] = (float)((1 - m) * (double)variance[c] + m * unbias * (double)k->stats[k->c + c]);
    }
}

static kith_status bn_forward(ki_kernel *kernel, kith_error *err) {
    bn *k = (bn *)kernel;
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, k->src},
                                    {DNNL_ARG_DST, k->dst},
                                    {DNNL_ARG_MEAN, k->mean},
                                    {DNNL_ARG_VARIANCE, k->variance},
                                    {DNNL_ARG_SCALE, k->scale},
                                    {DNNL_ARG_SHIFT, k->shift},
                                    {DNNL_ARG_SCRATCHPAD, k->fwd_scratch},
                                    {DNNL_ARG_WORKSPACE, k->workspace}};
    if (k->synced.comm) KI_TRY(cpu_synced_moments(&k->synced, k->stats, k->stats + k->c, err));
    KI_TRY(cpu_run(cpu_dnnl_of(kernel->backend), &k->fwd, k->has_workspace ? 8 : 7, args, err));
    if (k->uses_batch_stats) update_running(k);
    return KITH_OK;
}

static kith_status bn_backward(ki_kernel *kernel, kith_error *err) {
    bn *k = (bn *)kernel;
    dnnl_exec_arg_t args[11] = {
        {DNNL_ARG_SRC, k->src},
        {DNNL_ARG_DIFF_DST, k->diff_dst},
        {DNNL_ARG_MEAN, k->mean},
        {DNNL_ARG_VARIANCE, k->variance},
        {DNNL_ARG_SCALE, k->scale},
        {DNNL_ARG_DIFF_SRC, k->diff_src},
        {DNNL_ARG_DIFF_SCALE, k->diff_scale},
        {DNNL_ARG_DIFF_SHIFT, k->diff_shift},
        {DNNL_ARG_SCRATCHPAD, k->bwd_scratch},
    };
    int n = cpu_add_bn_shift(args, 9, k->shift);
    if (k->has_workspace) args[n++] = (dnnl_exec_arg_t){DNNL_ARG_WORKSPACE, k->workspace};
    KI_TRY(cpu_run(cpu_dnnl_of(kernel->backend), &k->bwd, n, args, err));
    cpu_accumulate(k->param[KI_W].diff, k->stats + 2 * k->c, k->c);
    cpu_accumulate(k->param[KI_B].diff, k->stats + 3 * k->c, k->c);
    if (!k->synced.comm) return KITH_OK;
    const cpu_synced_sums sums = {.mean = k->stats,
                                  .variance = k->stats + k->c,
                                  .scale = k->param[KI_W].value,
                                  .diff_scale = k->stats + 2 * k->c,
                                  .diff_shift = k->stats + 3 * k->c,
                                  .eps = k->attr.eps};
    return cpu_synced_backward(&k->synced, &sums, k->diff_src_at, err);
}

const ki_kernel_type cpu_batch_norm = {.create = bn_create,
                                       .bind = bn_bind,
                                       .forward = bn_forward,
                                       .backward = bn_backward,
                                       .free = bn_free,
                                       .fuses_relu = true};
