/* Convolution on NHWC maps. A way to compute each pass is chosen when the kernel is created (way.h) and bound to
 * its pointers once. After that it runs without further decisions.
 *
 * Weights are kept a second time as [oc, kh, kw, ic] in the type of activations, with a folded batch norm's scale
 * in them; biases too. Weight gradients are computed in the same order, in memory of the kernel, and added to the
 * masters' for all convolutions at once (group.h). For 1x1 convolutions that are computed as a product, the product
 * itself adds them.
 *
 * If a ReLU is fused, backward first computes the gradient before the ReLU, in separate memory. One pass sums its
 * parts, masks them, and sums columns for the bias' gradient.
 *
 * Only the optimizer waits for weight gradients. So if the planner allows it, they are computed on a separate
 * stream, in the gaps that the gradients of earlier layers leave. Under a probe, which times kernels one by one,
 * this is not done.
 *
 * Images have few channels, padded with zeros. If two neighbouring pixels of 4 channels make 16 bytes and the
 * stride is 2, the convolution is done on pairs of pixels: a kernel half as wide on 8 channels, at stride 1. The
 * first pair of a window may begin one pixel early; the weights of that pixel are zero. Windows that lie side by side
 * (patches) are read as one pixel each row, which is a convolution of one column on many channels. */
#include "backend/cuda/conv/conv2d.h"

#include "backend/cuda/conv/group.h"
#include "backend/cuda/cuda.h"

typedef struct conv {
    ki_kernel base;
    ki_conv_attr attr;
    bool has_relu, has_bn, has_bias, is_trained, wants_diff_src, is_late;
    double bn_eps;
    ki_conv_problem problem; /* of the forward pass */
    ki_pack_form form;
    ki_conv_way *pass[KI_N_CONV_PASSES];
    void *memory; /* the device's; below are places in it */
    void *packed, *stored_bias, *diff_weights;
    float *packed_bias, *bias_sums;
    size_t masked_bytes; /* diff_dst after the ReLU, without a pitch: in late memory, or first in scratch */
    cudaEvent_t forked, done; /* the late stream's input is ready; the weight gradient is finished */
    ki_diff_rows diff;        /* what makes it */
    ki_conv_member member;
} conv;

static void conv_free(ki_kernel *kernel) {
    conv *k = (conv *)kernel;
    ki_conv_member_leave(kernel->backend, &k->member);
    for (int i = 0; i < KI_N_CONV_PASSES; i++) ki_conv_way_free(k->pass[i]);
    ki_cuda_event_free(k->forked);
    ki_cuda_event_free(k->done);
    ki_cuda_free(kernel->backend, k->memory);
    ki_free(k);
}

static ki_conv_strides strides_of(const ki_cuda_map *m) {
    return (ki_conv_strides){.image = m->h * m->row * m->pitch, .row = m->row * m->pitch, .pixel = m->pitch};
}

/* Windows side by side are as many pixels, each of all the channels in a row of a window. Pixels behind the last window are not read. */
static bool fold_windows(ki_conv_problem *p, ki_pack_form *f) {
    if (p->type != KI_NUMBER_BF16 || p->src.pixel != 4 || p->kw != p->sw || p->pw != 0 || p->kw % 2 != 0)
        return false;
    f->packed_kw = 1, f->packed_ic = (int)(4 * p->kw), f->fold = (int)p->kw, f->step = 4;
    p->ic = p->src.pixel = 4 * p->kw, p->iw = p->ow;
    p->kw = p->sw = 1, p->pw_end = 0;
    return true;
}

/* Pairs of pixels instead of pixels, where that helps. */
static void fold_pixels(ki_conv_problem *p, ki_pack_form *f) {
    const int64_t iw = p->src.row / p->src.pixel; /* with the zeros that make rows even */
    if (p->type != KI_NUMBER_BF16 || p->src.pixel != 4 || p->sw != 2 || iw % 2 != 0) return;
    const int64_t shift = p->pw % 2, kw = (p->kw + shift + 1) / 2, pw = (p->pw + shift) / 2;
    const int64_t pw_end = p->ow - 1 + kw - iw / 2 - pw;
    if (pw_end < 0) return;
    f->packed_kw = (int)kw, f->packed_ic = 8, f->fold = 2, f->shift = (int)shift, f->step = 4;
    p->kw = kw, p->pw = pw, p->pw_end = pw_end, p->sw = 1;
    p->ic = 8, p->iw = iw / 2, p->src.pixel = 8;
}

void ki_conv_problems(const ki_backend *backend, const ki_kernel_spec *spec,
                      ki_conv_problem ret_problems[KI_N_CONV_PASSES], ki_pack_form *ret_form) {
    const ki_cuda_map src = ki_cuda_map_of(backend, &spec->src[0]), dst = ki_cuda_map_of(backend, &spec->dst);
    const ki_conv_attr *a = &spec->attr->conv;
    const bool is_image = spec->src[0].layout == KI_PLAIN;
    const int64_t ic = is_image ? src.pitch : src.c;
    ki_conv_problem all = {
        .type = src.is_bf16 ? KI_NUMBER_BF16 : KI_NUMBER_FLOAT,
        .mb = src.mb,
        .ic = ic,
        .ih = src.h,
        .iw = src.w,
        .oc = a->oc,
        .oh = dst.h,
        .ow = dst.w,
        .kh = a->kh,
        .kw = a->kw,
        .sh = a->sh,
        .sw = a->sw,
        .ph = a->ph,
        .pw = a->pw,
        .ph_end = a->ph,
        .pw_end = a->pw,
        .src = strides_of(&src),
        .dst = strides_of(&dst),
    };
    const int64_t groups = a->groups > 1 ? a->groups : 1;
    all.groups = groups;
    *ret_form = (ki_pack_form){.oc = (int)a->oc,
                               .ic = (int)(src.c / groups),
                               .kh = (int)a->kh,
                               .kw = (int)a->kw,
                               .packed_kw = (int)a->kw,
                               .packed_ic = (int)(ic / groups),
                               .fold = 1,
                               .step = (int)(ic / groups)};
    if (is_image && !spec->wants_diff_src[0] && !fold_windows(&all, ret_form)) fold_pixels(&all, ret_form);
    for (int i = 0; i < KI_N_CONV_PASSES; i++) {
        ret_problems[i] = all;
        ret_problems[i].pass = (ki_conv_pass)i;
    }
    ret_problems[KI_CONV_FORWARD].has_bias = a->bias || spec->has_folded_bn || spec->has_relu;
    ret_problems[KI_CONV_FORWARD].has_relu = spec->has_relu;
    ret_problems[KI_CONV_DIFF_SRC].adds = spec->adds_diff_src;
    ret_problems[KI_CONV_DIFF_WEIGHTS].plain_weights = a->kh == 1 && a->kw == 1 && ic == src.c && groups == 1;
    if (!spec->has_relu) return;
    /* Backward reads the gradient before the ReLU, which has no pitch. */
    const ki_conv_strides packed = {.image = dst.h * dst.w * dst.c, .row = dst.w * dst.c, .pixel = dst.c};
    ret_problems[KI_CONV_DIFF_SRC].dst = ret_problems[KI_CONV_DIFF_WEIGHTS].dst = packed;
}

static size_t workspace_bytes(const conv *k, ki_conv_pass pass) {
    return k->pass[pass] ? ki_conv_way_workspace_bytes(k->pass[pass]) : 0;
}

/* What the weight gradient needs in addition to what the planner keeps for it. */
static size_t own_bytes(const conv *k) { return k->masked_bytes + workspace_bytes(k, KI_CONV_DIFF_WEIGHTS); }

static size_t scratch_bytes(const conv *k) {
    const size_t forward = workspace_bytes(k, KI_CONV_FORWARD),
                 diff_src = workspace_bytes(k, KI_CONV_DIFF_SRC) + (k->is_late ? 0 : k->masked_bytes),
                 diff_weights = k->is_late ? 0 : own_bytes(k);
    const size_t backward = diff_src > diff_weights ? diff_src : diff_weights;
    return forward > backward ? forward : backward;
}

static kith_status conv_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                               ki_kernel **ret_kernel, kith_error *err) {
    conv *k = NULL;
    kith_status status = KITH_OK;
    KI_TRY(ki_kernel_new(backend, &ki_cuda_conv2d, sizeof *k, &k, err));
    k->attr = spec->attr->conv;
    k->has_relu = spec->has_relu;
    k->has_bn = spec->has_folded_bn;
    k->has_bias = k->attr.bias || k->has_bn || k->has_relu; /* cuDNN fuses a ReLU only after a bias */
    k->bn_eps = spec->bn_eps;
    k->is_trained = spec->wants_diff_params;
    k->is_late = k->is_trained && spec->may_be_late;
    k->wants_diff_src = spec->wants_diff_params && spec->wants_diff_src[0];
    ki_conv_problem problems[KI_N_CONV_PASSES];
    ki_conv_problems(backend, spec, problems, &k->form);
    k->problem = problems[KI_CONV_FORWARD];
    k->member = (ki_conv_member){.is_trained = k->is_trained, .type = k->problem.type};
    if (k->attr.groups > 1 && spec->src[0].layout == KI_PLAIN) {
        status = ki_fail(err, KITH_EUNSUPPORTED,
                         "a convolution of images in %lld groups; wanted one of a map, or in one group",
                         (long long)k->attr.groups);
        goto done;
    }
    if (!ki_pack_tile(&k->form, &k->member.pack.tiling)) {
        status = ki_fail(err, KITH_EUNSUPPORTED,
                         "kernel of %lld x %lld on %lld channels; wanted at most 4096 cells",
                         (long long)k->attr.kh, (long long)k->attr.kw, (long long)k->problem.ic);
        goto done;
    }
    const bool wanted[KI_N_CONV_PASSES] = {true, k->wants_diff_src, k->is_trained};
    for (int i = 0; i < KI_N_CONV_PASSES; i++) {
        if (wanted[i]) KI_CHECK(ki_conv_tune(backend, &problems[i], &k->pass[i], NULL, err));
    }
    if (k->has_relu && k->is_trained)
        k->masked_bytes =
            ki_round_up((size_t)(k->problem.mb * k->problem.oh * k->problem.ow * k->problem.oc) *
                            ki_number_bytes(k->problem.type),
                        256);
    if (k->is_late) {
        KI_CHECK(ki_cuda_event_new(backend, &k->forked, err));
        KI_CHECK(ki_cuda_event_new(backend, &k->done, err));
    }
    *ret_info = (ki_kernel_info){.scratch_bytes = scratch_bytes(k),
                                 .backward_reads_src = true,
                                 .backward_reads_dst = k->has_relu,
                                 .joins = k->has_relu,
                                 .is_late = k->is_late,
                                 .takes_part = k->pass[KI_CONV_DIFF_SRC] && !spec->adds_diff_src &&
                                               ki_conv_way_takes_part(k->pass[KI_CONV_DIFF_SRC]),
                                 .late_reads_diff_dst = !k->has_relu,
                                 .late_bytes = k->is_late ? own_bytes(k) : 0};
    *ret_kernel = &k->base;
    k = NULL;
done:
    if (k) conv_free(&k->base);
    return status;
}

static kith_status alloc_memory(conv *k, bool has_bias_diff, kith_error *err) {
    const ki_conv_problem *p = &k->problem;
    ki_conv_way *weights_pass = k->pass[KI_CONV_DIFF_WEIGHTS];
    const size_t n = (size_t)(k->form.oc * k->form.kh * k->form.packed_kw) * (size_t)k->form.packed_ic,
                 oc = (size_t)k->form.oc, each = ki_number_bytes(p->type);
    const bool has_diff = weights_pass && !ki_conv_way_accumulates(weights_pass);
    const int n_runs = ki_cuda_diff_runs(p->mb * p->oh * p->ow, p->oc);
    const size_t bytes[] = {n * each, k->has_bias ? oc * sizeof(float) : 0, k->has_bias ? oc * each : 0,
                            has_diff ? n * ki_number_bytes(ki_conv_way_diff_type(weights_pass)) : 0,
                            has_bias_diff ? (size_t)n_runs * oc * sizeof(float) : 0};
    enum { N = sizeof bytes / sizeof bytes[0] };
    void *at[N] = {NULL};
    size_t total = 0;
    for (int i = 0; i < N; i++) total += ki_round_up(bytes[i], 256);
    KI_TRY(ki_cuda_alloc(k->base.backend, total, &k->memory, err));
    char *next = k->memory;
    for (int i = 0; i < N; i++) {
        if (bytes[i]) at[i] = next;
        next += ki_round_up(bytes[i], 256);
    }
    k->packed = at[0];
    k->packed_bias = at[1];
    k->stored_bias = at[2];
    k->diff_weights = at[3];
    k->bias_sums = at[4];
    k->diff = (ki_diff_rows){.n_rows = p->mb * p->oh * p->ow,
                             .c = p->oc,
                             .pitch = p->dst.pixel,
                             .n_runs = n_runs,
                             .sums = k->bias_sums};
    return KITH_OK;
}

static void describe_packing(conv *k, const ki_binding *b) {
    ki_conv_member *m = &k->member;
    const ki_param_slot *param = b->param;
    m->pack = (ki_pack_item){.form = k->form,
                             .tiling = m->pack.tiling,
                             .weights = param[KI_W].value,
                             .bias = k->attr.bias ? param[KI_B].value : NULL,
                             .eps = (float)k->bn_eps,
                             .packed = k->packed,
                             .packed_bias = k->packed_bias,
                             .stored_bias = k->stored_bias};
    if (k->has_bn) {
        m->pack.mean = param[KI_MEAN].value;
        m->pack.var = param[KI_VAR].value;
        m->pack.gamma = param[KI_GAMMA].value;
        m->pack.beta = param[KI_BETA].value;
    }
    m->n_unpack = 0;
    if (k->diff_weights)
        m->unpack[m->n_unpack++] = (ki_unpack_item){
            .is_bf16 = ki_conv_way_diff_type(k->pass[KI_CONV_DIFF_WEIGHTS]) == KI_NUMBER_BF16,
            .form = k->form,
            .tiling = m->pack.tiling,
            .packed = k->diff_weights,
            .diff = param[KI_W].diff};
    if (k->bias_sums)
        m->unpack[m->n_unpack++] = (ki_unpack_item){.is_bias = 1,
                                                    .n_runs = k->diff.n_runs,
                                                    .form = {.oc = k->form.oc},
                                                    .packed = k->bias_sums,
                                                    .diff = param[KI_B].diff};
}

static kith_status conv_bind(ki_kernel *kernel, const ki_binding *b, kith_error *err) {
    conv *k = (conv *)kernel;
    KI_TRY(alloc_memory(k, k->is_trained && k->attr.bias && b->param[KI_B].diff, err));
    describe_packing(k, b);
    char *own = k->is_late ? b->late : b->scratch;
    k->diff.n_parts = b->n_diff_dst;
    for (int i = 0; i < b->n_diff_dst; i++) k->diff.part[i] = b->diff_dst[i];
    if (k->has_relu) {
        k->diff.mask = b->dst;
        k->diff.out = k->masked_bytes ? own : NULL;
    }
    ki_conv_io io = {.src = b->src[0],
                     .weights = k->packed,
                     .bias = k->packed_bias,
                     .bias_stored = k->stored_bias,
                     .dst = b->dst,
                     .diff_dst = b->diff_dst[0],
                     .diff_src = b->diff_src[0],
                     .diff_added = b->diff_added,
                     .diff_weights = k->diff_weights,
                     .diff_master = b->param[KI_W].diff,
                     .workspace = b->scratch};
    for (int i = 0; i < KI_N_CONV_PASSES; i++) {
        if (k->masked_bytes) io.diff_dst = own; /* forward does not read it */
        if (i == KI_CONV_DIFF_WEIGHTS || (i == KI_CONV_DIFF_SRC && !k->is_late))
            io.workspace = own ? own + k->masked_bytes : NULL;
        if (k->pass[i]) KI_TRY(ki_conv_way_bind(k->pass[i], &io, err));
    }
    return KITH_OK;
}

static kith_status conv_pack(ki_kernel *kernel, kith_error *err) {
    return ki_conv_pack_later(kernel->backend, &((conv *)kernel)->member, err);
}

/* For measurements: the bytes that a pass must move. */
static double src_bytes(const conv *k) {
    const ki_conv_problem *p = &k->problem;
    return (double)(p->mb * p->ih * p->iw * p->ic) * (p->type == KI_NUMBER_BF16 ? 2 : 4);
}
static double dst_bytes(const conv *k) {
    const ki_conv_problem *p = &k->problem;
    return (double)(p->mb * p->oh * p->ow * p->oc) * (p->type == KI_NUMBER_BF16 ? 2 : 4);
}

static kith_status conv_forward(ki_kernel *kernel, kith_error *err) {
    const conv *k = (const conv *)kernel;
    KI_TRY(ki_conv_pack_now(kernel->backend, err));
    ki_backend_note(kernel->backend, "weights packed", 0);
    KI_TRY(ki_conv_way_run(k->pass[KI_CONV_FORWARD], ki_cuda_of(kernel->backend)->stream, err));
    ki_backend_note(kernel->backend, "conv2d forward", src_bytes(k) + dst_bytes(k));
    return KITH_OK;
}

/* The weight gradient, which runs beside the next work of the stream. */
static kith_status queue_late(const conv *k, kith_error *err) {
    const cuda_backend *cuda = ki_cuda_of(k->base.backend);
    KI_CUDA(cudaEventRecord(k->forked, cuda->stream));
    KI_CUDA(cudaStreamWaitEvent(cuda->late_stream, k->forked, 0));
    KI_TRY(ki_conv_way_run(k->pass[KI_CONV_DIFF_WEIGHTS], cuda->late_stream, err));
    KI_CUDA(cudaEventRecord(k->done, cuda->late_stream));
    return KITH_OK;
}

static kith_status conv_settle(ki_kernel *kernel, kith_error *err) {
    const conv *k = (const conv *)kernel;
    if (!k->is_late || kernel->backend->probe) return KITH_OK;
    KI_CUDA(cudaStreamWaitEvent(ki_cuda_of(kernel->backend)->stream, k->done, 0));
    return KITH_OK;
}

static kith_status conv_backward(ki_kernel *kernel, kith_error *err) {
    conv *k = (conv *)kernel;
    ki_backend *backend = kernel->backend;
    cudaStream_t stream = ki_cuda_of(backend)->stream;
    if (k->diff.out || k->diff.sums) {
        KI_CUDA(ki_cuda_diff_rows(k->problem.type, &k->diff, stream));
        ki_backend_note(backend, "conv2d mask and bias", (k->diff.out ? 3 : 1) * dst_bytes(k));
    }
    const bool is_late = k->is_late && !backend->probe;
    if (is_late) KI_TRY(queue_late(k, err));
    if (k->pass[KI_CONV_DIFF_SRC]) {
        KI_TRY(ki_conv_way_run(k->pass[KI_CONV_DIFF_SRC], stream, err));
        ki_backend_note(backend, "conv2d dgrad", src_bytes(k) + dst_bytes(k));
    }
    if (!k->is_trained) return KITH_OK;
    if (!is_late) {
        KI_TRY(ki_conv_way_run(k->pass[KI_CONV_DIFF_WEIGHTS], stream, err));
        ki_backend_note(backend, "conv2d wgrad", src_bytes(k) + dst_bytes(k));
    }
    if (ki_conv_is_last(&k->member)) {
        KI_TRY(conv_settle(kernel, err));
        KI_TRY(ki_conv_unpack(backend, &k->member, stream, err));
        ki_backend_note(backend, "weight gradients unpacked", 0);
    }
    return KITH_OK;
}

/* On the stream that the gradients are made on, so that nothing waits; `done` is then after them. */
static kith_status conv_flush(ki_kernel *kernel, kith_error *err) {
    const conv *k = (const conv *)kernel;
    const cuda_backend *cuda = ki_cuda_of(kernel->backend);
    if (!k->is_trained || ki_conv_is_last(&k->member)) return KITH_OK;
    if (!k->is_late || kernel->backend->probe)
        return ki_conv_unpack(kernel->backend, &k->member, cuda->stream, err);
    KI_TRY(ki_conv_unpack(kernel->backend, &k->member, cuda->late_stream, err));
    KI_CUDA(cudaEventRecord(k->done, cuda->late_stream));
    return KITH_OK;
}

const ki_kernel_type ki_cuda_conv2d = {.create = conv_create,
                                       .bind = conv_bind,
                                       .pack = conv_pack,
                                       .forward = conv_forward,
                                       .backward = conv_backward,
                                       .settle = conv_settle,
                                       .flush = conv_flush,
                                       .free = conv_free,
                                       .fuses_relu = true};
