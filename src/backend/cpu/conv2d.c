/* Convolution by oneDNN, on blocked activations.
 *
 * The algorithm is left to oneDNN (dnnl_convolution_auto): Winograd for most 3x3 layers of stride 1, direct
 * otherwise. Its choice depends on the shape alone, so that the same shape gives the same bits in every run;
 * timing candidates at start-up would not (docs/adr). Forward and the two backward passes choose
 * independently, and each may need its weights in another form: `pack` makes these forms from the masters,
 * and backward adds its result to the masters' gradient. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/depthwise.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/patches.h"

typedef struct conv_pass {
    cpu_primitive primitive; /* run NULL: the pass is not wanted */
    dnnl_memory_t weights, scratch;
    cpu_primitive pack; /* masters to weights, or back; run NULL when the form is the masters' own */
    void *packed;       /* own memory of the packed weights */
} conv_pass;

typedef struct conv {
    ki_kernel base;
    ki_conv_attr attr;
    int64_t ic, groups; /* ic: of a group */
    bool has_relu, has_bn, wants_diff_src;
    bool trains, is_depthwise; /* is_depthwise: the weights' gradient is our own (depthwise.h) */
    bool is_patches;           /* so it is here (patches.h) */
    cpu_depthwise depthwise;
    cpu_patches patches;
    double bn_eps;
    cpu_md *src_md, *dst_md, *bias_md, *plain_md, *any_md;
    conv_pass fwd, bwd_data, bwd_weights;
    dnnl_memory_t src, dst, bias, diff_src, diff_dst, diff_bias, master, diff_master, folded;
    float *bias_own; /* zeros or the folded bias, when the master has none */
    ki_param_slot param[KI_MAX_PARAMS];
    float *diff_bias_ptr, *scratch;
} conv;

static void pass_free(conv_pass *pass) {
    cpu_primitive_release(&pass->primitive);
    cpu_primitive_release(&pass->pack);
    dnnl_memory_destroy(pass->weights);
    dnnl_memory_destroy(pass->scratch);
    ki_free(pass->packed);
}

static void conv_free(ki_kernel *kernel) {
    conv *k = (conv *)kernel;
    pass_free(&k->fwd);
    pass_free(&k->bwd_data);
    pass_free(&k->bwd_weights);
    dnnl_memory_t memories[] = {k->src,       k->dst,    k->bias,        k->diff_src, k->diff_dst,
                                k->diff_bias, k->master, k->diff_master, k->folded};
    for (size_t i = 0; i < sizeof memories / sizeof memories[0]; i++) dnnl_memory_destroy(memories[i]);
    cpu_md *const mds[] = {k->src_md, k->dst_md, k->bias_md, k->plain_md, k->any_md};
    for (size_t i = 0; i < sizeof mds / sizeof mds[0]; i++) cpu_md_free(mds[i]);
    ki_free(k->bias_own);
    ki_free(k);
}

static const cpu_md *weights_md(const conv_pass *pass, bool is_diff) {
    return cpu_query_md(&pass->primitive, is_diff ? dnnl_query_diff_weights_md : dnnl_query_weights_md);
}

static kith_status make_passes(conv *k, cpu_dnnl *dnnl, const ki_kernel_spec *spec, kith_error *err) {
    const ki_conv_attr *a = &k->attr;
    const int64_t *s = spec->src[0].shape.dim, *d = spec->dst.shape.dim;
    /* [groups, oc, ic, kh, kw], or without groups all but the first. */
    const int64_t dims[] = {k->groups, a->oc / k->groups, k->ic, a->kh, a->kw};
    const int n_dims = k->groups > 1 ? 5 : 4;
    KI_TRY(cpu_md_new(n_dims, dims + 5 - n_dims, n_dims == 5 ? dnnl_goihw : dnnl_oihw, &k->plain_md, err));
    KI_TRY(cpu_md_new(n_dims, dims + 5 - n_dims, dnnl_format_tag_any, &k->any_md, err));
    KI_TRY(cpu_md_new(1, &a->oc, dnnl_a, &k->bias_md, err));
    KI_TRY(cpu_md_of_edge(&spec->src[0], &k->src_md, err));
    KI_TRY(cpu_md_of_edge(&spec->dst, &k->dst_md, err));
    /* The padding on the right gives exactly the inferred output: floor division may leave pixels unused. */
    const cpu_conv_form form = {
        .src = k->src_md,
        .weights = k->any_md,
        .bias = k->bias_md,
        .dst = k->dst_md,
        .strides = {a->sh, a->sw},
        .pad_left = {a->ph, a->pw},
        .pad_right = {(d[2] - 1) * a->sh + a->kh - s[2] - a->ph, (d[3] - 1) * a->sw + a->kw - s[3] - a->pw},
        .has_relu = k->has_relu,
        .has_act = spec->has_act,
        .act = spec->act};
    const cpu_primitive *forward = &k->fwd.primitive;
    const dnnl_prop_kind_t prop = spec->mode == KI_TRAIN ? dnnl_forward_training : dnnl_forward_inference;
    KI_TRY(cpu_make_conv(dnnl, prop, &form, NULL, &k->fwd.primitive, err));
    if (!spec->wants_diff_params) return KITH_OK;
    if (k->wants_diff_src)
        KI_TRY(cpu_make_conv(dnnl, dnnl_backward_data, &form, forward, &k->bwd_data.primitive, err));
    if (k->is_patches) return cpu_gemm_prepare(err);
    if (k->is_depthwise) return KITH_OK;
    return cpu_make_conv(dnnl, dnnl_backward_weights, &form, forward, &k->bwd_weights.primitive, err);
}

static size_t plain_bytes(const conv *k) { return ki_round_up(cpu_md_bytes(k->plain_md), KI_ALIGN); }
static size_t bias_bytes(const conv *k) { return ki_round_up((size_t)k->attr.oc * sizeof(float), KI_ALIGN); }

static size_t scratch_needed(const conv *k) {
    const cpu_primitive *data = &k->bwd_data.primitive, *weights = &k->bwd_weights.primitive;
    size_t most = cpu_scratch_bytes(&k->fwd.primitive);
    if (k->has_bn && plain_bytes(k) > most) most = plain_bytes(k);
    if (k->is_patches && cpu_patches_scratch_bytes(&k->patches) > most)
        most = cpu_patches_scratch_bytes(&k->patches);
    if (data->run && cpu_scratch_bytes(data) > most) most = cpu_scratch_bytes(data);
    if (weights->run) {
        const size_t form = ki_round_up(cpu_md_bytes(weights_md(&k->bwd_weights, true)), KI_ALIGN);
        const size_t total = form + bias_bytes(k) + cpu_scratch_bytes(weights);
        if (total > most) most = total;
    }
    return most;
}

static kith_status conv_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                               ki_kernel **ret_kernel, kith_error *err) {
    conv *k = NULL;
    KI_TRY(ki_kernel_new(backend, &cpu_conv2d, sizeof *k, &k, err));
    k->attr = spec->attr->conv;
    k->groups = k->attr.groups ? k->attr.groups : 1;
    k->ic = spec->src[0].shape.dim[1] / k->groups;
    k->has_relu = spec->has_relu;
    k->has_bn = spec->has_folded_bn;
    k->bn_eps = spec->bn_eps;
    k->wants_diff_src = spec->wants_diff_src[0];
    k->trains = spec->wants_diff_params;
    k->is_depthwise =
        cpu_is_depthwise(&k->attr, spec->src[0].shape.dim[1]) && spec->src[0].layout == KI_NATIVE;
    const ki_shape *s = &spec->src[0].shape, *d = &spec->dst.shape;
    k->depthwise = (cpu_depthwise){.attr = &k->attr,
                                   .mb = s->dim[0],
                                   .c = s->dim[1],
                                   .ih = s->dim[2],
                                   .iw = s->dim[3],
                                   .oh = d->dim[2],
                                   .ow = d->dim[3]};
    k->is_patches = k->trains && cpu_is_patches(spec);
    k->patches = (cpu_patches){.mb = s->dim[0],
                               .ic = s->dim[1],
                               .ih = s->dim[2],
                               .iw = s->dim[3],
                               .oc = d->dim[1],
                               .oh = d->dim[2],
                               .ow = d->dim[3],
                               .kh = k->attr.kh,
                               .kw = k->attr.kw};
    const kith_status status = make_passes(k, cpu_dnnl_of(backend), spec, err);
    if (status != KITH_OK) {
        conv_free(&k->base);
        return status;
    }
    *ret_info = (ki_kernel_info){
        .scratch_bytes = scratch_needed(k), .backward_reads_src = true, .mask_in_join = k->has_relu};
    *ret_kernel = &k->base;
    return KITH_OK;
}

/* Weights of a pass: the masters themselves if they have the right form, otherwise separate memory and a
 * reorder. */
static kith_status bind_weights(conv *k, cpu_dnnl *dnnl, conv_pass *pass, kith_error *err) {
    const cpu_md *md = weights_md(pass, false);
    if (cpu_md_equal(md, k->plain_md) && !k->has_bn)
        return cpu_memory(dnnl, md, k->param[KI_W].value, &pass->weights, err);
    KI_TRY(ki_alloc_or(&pass->packed, 1, cpu_md_bytes(md), "packed weights", err));
    KI_TRY(cpu_memory(dnnl, md, pass->packed, &pass->weights, err));
    return cpu_make_reorder(dnnl, k->plain_md, md, false, &pass->pack, err);
}

static kith_status bind_backward_weights(conv *k, cpu_dnnl *dnnl, const ki_binding *b, kith_error *err) {
    const cpu_md *md = weights_md(&k->bwd_weights, true);
    char *at = b->scratch;
    KI_TRY(cpu_memory(dnnl, md, at, &k->bwd_weights.weights, err));
    at += ki_round_up(cpu_md_bytes(md), KI_ALIGN);
    k->diff_bias_ptr = (float *)(void *)at;
    KI_TRY(cpu_memory(dnnl, k->bias_md, at, &k->diff_bias, err));
    at += bias_bytes(k);
    KI_TRY(cpu_scratch_memory(dnnl, &k->bwd_weights.primitive, at, &k->bwd_weights.scratch, err));
    KI_TRY(cpu_memory(dnnl, k->plain_md, k->param[KI_W].diff, &k->diff_master, err));
    return cpu_make_reorder(dnnl, md, k->plain_md, true, &k->bwd_weights.pack, err);
}

static kith_status conv_bind(ki_kernel *kernel, const ki_binding *b, kith_error *err) {
    conv *k = (conv *)kernel;
    cpu_dnnl *dnnl = cpu_dnnl_of(kernel->backend);
    memcpy(k->param, b->param, sizeof k->param);
    k->scratch = b->scratch;
    KI_TRY(cpu_memory(dnnl, k->src_md, b->src[0], &k->src, err));
    KI_TRY(cpu_memory(dnnl, k->dst_md, b->dst, &k->dst, err));
    KI_TRY(cpu_memory(dnnl, k->plain_md, k->param[KI_W].value, &k->master, err));
    KI_TRY(cpu_memory(dnnl, k->plain_md, b->scratch, &k->folded, err));
    if (!k->param[KI_B].value || k->has_bn)
        KI_TRY(ki_zalloc_or(&k->bias_own, (size_t)k->attr.oc, sizeof *k->bias_own, "a bias", err));
    KI_TRY(cpu_memory(dnnl, k->bias_md, k->bias_own ? k->bias_own : k->param[KI_B].value, &k->bias, err));
    KI_TRY(bind_weights(k, dnnl, &k->fwd, err));
    KI_TRY(cpu_scratch_memory(dnnl, &k->fwd.primitive, b->scratch, &k->fwd.scratch, err));
    if (!k->trains) return KITH_OK;
    KI_TRY(cpu_memory(dnnl, k->dst_md, b->diff_dst[0], &k->diff_dst, err));
    k->depthwise.src = b->src[0], k->depthwise.diff_dst = b->diff_dst[0];
    k->depthwise.diff_weights = b->param[KI_W].diff, k->depthwise.diff_bias = b->param[KI_B].diff;
    k->patches.src = b->src[0], k->patches.diff_dst = b->diff_dst[0], k->patches.scratch = b->scratch;
    k->patches.diff_weights = b->param[KI_W].diff, k->patches.diff_bias = b->param[KI_B].diff;
    if (!k->is_depthwise && !k->is_patches) KI_TRY(bind_backward_weights(k, dnnl, b, err));
    if (!k->wants_diff_src) return KITH_OK;
    KI_TRY(cpu_memory(dnnl, k->src_md, b->diff_src[0], &k->diff_src, err));
    KI_TRY(bind_weights(k, dnnl, &k->bwd_data, err));
    return cpu_scratch_memory(dnnl, &k->bwd_data.primitive, b->scratch, &k->bwd_data.scratch, err);
}

/* y = gamma (w x + b - mean) / sqrt(var + eps) + beta as one convolution. */
static void fold_bn(conv *k) {
    const int64_t n_each = k->ic * k->attr.kh * k->attr.kw;
    for (int64_t o = 0; o < k->attr.oc; o++) {
        const double scale =
            (double)k->param[KI_GAMMA].value[o] / sqrt((double)k->param[KI_VAR].value[o] + k->bn_eps);
        const double bias = k->param[KI_B].value ? (double)k->param[KI_B].value[o] : 0;
        k->bias_own[o] =
            (float)(scale * (bias - (double)k->param[KI_MEAN].value[o]) + (double)k->param[KI_BETA].value[o]);
        for (int64_t i = 0; i < n_each; i++)
            k->scratch[o * n_each + i] = (float)(scale * (double)k->param[KI_W].value[o * n_each + i]);
    }
}

static kith_status conv_pack(ki_kernel *kernel, kith_error *err) {
    conv *k = (conv *)kernel;
    cpu_dnnl *dnnl = cpu_dnnl_of(kernel->backend);
    if (k->has_bn) fold_bn(k);
    conv_pass *const passes[] = {&k->fwd, &k->bwd_data};
    for (int i = 0; i < 2; i++) {
        if (!passes[i]->pack.run) continue;
        const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, k->has_bn ? k->folded : k->master},
                                        {DNNL_ARG_TO, passes[i]->weights}};
        KI_TRY(cpu_run(dnnl, &passes[i]->pack, 2, args, err));
        kernel->backend->n_reorders++;
    }
    return KITH_OK;
}

static kith_status conv_forward(ki_kernel *kernel, kith_error *err) {
    conv *k = (conv *)kernel;
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, k->src},
                                    {DNNL_ARG_WEIGHTS, k->fwd.weights},
                                    {DNNL_ARG_BIAS, k->bias},
                                    {DNNL_ARG_DST, k->dst},
                                    {DNNL_ARG_SCRATCHPAD, k->fwd.scratch}};
    return cpu_run(cpu_dnnl_of(kernel->backend), &k->fwd.primitive, 5, args, err);
}

static kith_status backward_weights(conv *k, cpu_dnnl *dnnl, kith_error *err) {
    const dnnl_exec_arg_t weights_args[] = {{DNNL_ARG_SRC, k->src},
                                            {DNNL_ARG_DIFF_DST, k->diff_dst},
                                            {DNNL_ARG_DIFF_WEIGHTS, k->bwd_weights.weights},
                                            {DNNL_ARG_DIFF_BIAS, k->diff_bias},
                                            {DNNL_ARG_SCRATCHPAD, k->bwd_weights.scratch}};
    KI_TRY(cpu_run(dnnl, &k->bwd_weights.primitive, 5, weights_args, err));
    const dnnl_exec_arg_t add_args[] = {{DNNL_ARG_FROM, k->bwd_weights.weights},
                                        {DNNL_ARG_TO, k->diff_master}};
    KI_TRY(cpu_run(dnnl, &k->bwd_weights.pack, 2, add_args, err));
    k->base.backend->n_reorders++;
    if (k->param[KI_B].diff) cpu_accumulate(k->param[KI_B].diff, k->diff_bias_ptr, k->attr.oc);
    return KITH_OK;
}

static kith_status conv_backward(ki_kernel *kernel, kith_error *err) {
    conv *k = (conv *)kernel;
    cpu_dnnl *dnnl = cpu_dnnl_of(kernel->backend);
    if (k->is_depthwise)
        cpu_depthwise_grad(&k->depthwise);
    else if (k->is_patches)
        cpu_patches_grad(&k->patches);
    else
        KI_TRY(backward_weights(k, dnnl, err));
    if (!k->wants_diff_src) return KITH_OK;
    const dnnl_exec_arg_t data_args[] = {{DNNL_ARG_DIFF_DST, k->diff_dst},
                                         {DNNL_ARG_WEIGHTS, k->bwd_data.weights},
                                         {DNNL_ARG_DIFF_SRC, k->diff_src},
                                         {DNNL_ARG_SCRATCHPAD, k->bwd_data.scratch}};
    return cpu_run(dnnl, &k->bwd_data.primitive, 4, data_args, err);
}

const ki_kernel_type cpu_conv2d = {.create = conv_create,
                                   .bind = conv_bind,
                                   .pack = conv_pack,
                                   .forward = conv_forward,
                                   .backward = conv_backward,
                                   .free = conv_free,
                                   .fuses_relu = true,
                                   .fuses_act = cpu_dnnl_has};
