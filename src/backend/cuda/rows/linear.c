/* dst = src W^T + b: rows [mb, ic] and [oc, ic] plain.
 *
 * Vectors are small compared with the maps before them, so they are computed in float in every precision. Tokens are in the
 * backend's precision. In bf16 weights and bias are then kept a second time in bf16, packed with those of the convolutions
 * (conv/group.h); their gradients are float sums, added to the masters'. A layer of such tokens is a convolution of 1x1 on maps of one
 * column, so that its products are chosen by time, too (conv/way.h). */
#include "backend/cuda/rows/linear.h"

#include "backend/cuda/conv/group.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/elementwise/kernels.h"
#include "backend/cuda/gemm/gemm.h"
#include "backend/cuda/rows/kernels.h"

typedef struct linear {
    ki_kernel base;
    int64_t mb, ic, oc;
    bool is_tokens, is_trained, adds;
    ki_number type;
    ki_binding b;
    const void *weights, *bias; /* in `type`; bias NULL: none */
    void *memory;               /* of those in bf16; NULL: they are the masters */
    ki_conv_member member;
    ki_conv_way *pass[KI_N_CONV_PASSES]; /* NULL: what cuBLASLt offers first */
} linear;

static void linear_free(ki_kernel *kernel) {
    linear *k = (linear *)kernel;
    ki_conv_member_leave(kernel->backend, &k->member);
    for (int i = 0; i < KI_N_CONV_PASSES; i++) ki_conv_way_free(k->pass[i]);
    ki_cuda_free(kernel->backend, k->memory);
    ki_free(k);
}

/* Rows of column sums of a bias' gradient: with many rows they are summed in parts first. */
static int n_runs_of(int64_t mb, int64_t oc) { return mb > 256 ? ki_cuda_diff_runs(mb, oc) : 1; }

static bool is_summed_twice(const linear *k) {
    return k->is_trained && (k->type == KI_NUMBER_BF16 || n_runs_of(k->mb, k->oc) > 1);
}

static kith_status choose(linear *k, const ki_kernel_spec *spec, kith_error *err) {
    const ki_shape *shape = &spec->src[0].shape;
    const bool is_training = spec->mode == KI_TRAIN;
    const bool wanted[KI_N_CONV_PASSES] = {true, is_training && spec->wants_diff_src[0], k->is_trained};
    if (!k->is_tokens || shape->n_dims != 3 || k->type != KI_NUMBER_BF16) return KITH_OK;
    const int64_t t = shape->dim[1];
    for (int i = 0; i < KI_N_CONV_PASSES; i++) {
        const ki_conv_problem problem = {.pass = (ki_conv_pass)i,
                                         .type = k->type,
                                         .mb = shape->dim[0],
                                         .ic = k->ic,
                                         .ih = t,
                                         .iw = 1,
                                         .oc = k->oc,
                                         .oh = t,
                                         .ow = 1,
                                         .kh = 1,
                                         .kw = 1,
                                         .sh = 1,
                                         .sw = 1,
                                         .src = {.image = t * k->ic, .row = k->ic, .pixel = k->ic},
                                         .dst = {.image = t * k->oc, .row = k->oc, .pixel = k->oc},
                                         .has_bias = i == KI_CONV_FORWARD && spec->attr->linear.bias,
                                         .adds = i == KI_CONV_FORWARD && k->adds,
                                         .plain_weights = i == KI_CONV_DIFF_WEIGHTS,
                                         .is_product = true};
        if (!wanted[i]) continue;
        KI_TRY(ki_conv_tune(k->base.backend, &problem, &k->pass[i], NULL, err));
        if (!ki_conv_way_is_plain(k->pass[i])) continue;
        ki_conv_way_free(k->pass[i]);
        k->pass[i] = NULL;
    }
    return KITH_OK;
}

/* The passes and the sums of the bias' gradient use it one after the other. */
static size_t scratch_bytes(const linear *k, bool has_bias) {
    size_t most =
        has_bias && is_summed_twice(k) ? (size_t)n_runs_of(k->mb, k->oc) * (size_t)k->oc * sizeof(float) : 0;
    for (int i = 0; i < KI_N_CONV_PASSES; i++) {
        const size_t bytes = k->pass[i] ? ki_conv_way_workspace_bytes(k->pass[i]) : 0;
        if (bytes > most) most = bytes;
    }
    return most;
}

static kith_status linear_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                 ki_kernel **ret_kernel, kith_error *err) {
    linear *k = NULL;
    const ki_cuda_map src = ki_cuda_map_of(backend, &spec->src[0]), dst = ki_cuda_map_of(backend, &spec->dst);
    KI_TRY(ki_kernel_new(backend, &ki_cuda_linear, sizeof *k, &k, err));
    k->mb = dst.n;
    k->ic = src.c;
    k->oc = dst.c;
    k->is_tokens = spec->dst.shape.n_dims == 3;
    k->is_trained = spec->wants_diff_params && !spec->keeps_params;
    k->type = src.is_bf16 ? KI_NUMBER_BF16 : KI_NUMBER_FLOAT;
    k->adds = spec->has_add;
    const kith_status status = choose(k, spec, err);
    if (status != KITH_OK) {
        linear_free(&k->base);
        return status;
    }
    *ret_info = (ki_kernel_info){.scratch_bytes = scratch_bytes(k, spec->attr->linear.bias),
                                 .backward_reads_src = k->is_trained,
                                 .skips_diffs = true,
                                 .shares_added = k->adds};
    *ret_kernel = &k->base;
    return KITH_OK;
}

/* Memory for weights and bias in bf16, and how they get there. */
static kith_status bind_packed(linear *k, const ki_param_slot *param, kith_error *err) {
    const size_t weights = ki_round_up((size_t)(k->oc * k->ic) * ki_number_bytes(k->type), 256),
                 bias = param[KI_B].value ? ki_round_up((size_t)k->oc * sizeof(float), 256) : 0;
    const int ic = (int)k->ic;
    ki_pack_item *pack = &k->member.pack;
    KI_TRY(ki_cuda_alloc(k->base.backend, weights + 2 * bias, &k->memory, err));
    char *at = k->memory;
    *pack = (ki_pack_item){.form = {.oc = (int)k->oc,
                                    .ic = ic,
                                    .kh = 1,
                                    .kw = 1,
                                    .packed_kw = 1,
                                    .packed_ic = ic,
                                    .fold = 1,
                                    .step = ic},
                           .weights = param[KI_W].value,
                           .bias = param[KI_B].value,
                           .packed = at,
                           .packed_bias = bias ? (float *)(void *)(at + weights) : NULL,
                           .stored_bias = bias ? at + weights + bias : NULL};
    if (!ki_pack_tile(&pack->form, &pack->tiling))
        return ki_fail(err, KITH_EINTERNAL, "weights of %d x %d cannot be packed", (int)k->oc, ic);
    k->member.type = k->type;
    k->weights = pack->packed;
    k->bias = pack->stored_bias;
    return KITH_OK;
}

static kith_status bind_passes(linear *k, kith_error *err) {
    const ki_binding *b = &k->b;
    const ki_conv_io io = {.src = b->src[0],
                           .weights = k->weights,
                           .bias = k->member.pack.packed_bias,
                           .bias_stored = k->bias,
                           .dst = b->dst,
                           .added = k->adds ? b->src[1] : NULL,
                           .diff_dst = b->diff_dst[0],
                           .diff_src = b->diff_src[0],
                           .diff_master = b->param[KI_W].diff,
                           .workspace = b->scratch};
    for (int i = 0; i < KI_N_CONV_PASSES; i++) {
        if (k->pass[i]) KI_TRY(ki_conv_way_bind(k->pass[i], &io, err));
    }
    return KITH_OK;
}

static kith_status linear_bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    linear *k = (linear *)kernel;
    k->b = *binding;
    if (k->type == KI_NUMBER_BF16) {
        KI_TRY(bind_packed(k, binding->param, err));
        return bind_passes(k, err);
    }
    k->weights = binding->param[KI_W].value;
    k->bias = binding->param[KI_B].value;
    return KITH_OK;
}

static kith_status linear_pack(ki_kernel *kernel, kith_error *err) {
    linear *k = (linear *)kernel;
    return k->memory ? ki_conv_pack_later(kernel->backend, &k->member, err) : KITH_OK;
}

/* dst = src W^T + b, by what cuBLASLt offers first. */
static kith_status multiply(const linear *k, kith_error *err) {
    ki_backend *backend = k->base.backend;
    if (k->is_tokens && k->bias)
        return ki_cuda_gemm_bias(backend, false, true, k->mb, k->oc, k->ic, k->b.src[0], k->type, k->ic,
                                 k->weights, k->ic, k->bias, k->b.dst, k->type, k->oc, err);
    if (k->bias) KI_CUDA(ki_cuda_spread_rows(k->mb, k->oc, k->bias, k->b.dst, ki_cuda_of(backend)->stream));
    return ki_cuda_gemm(backend, false, true, k->mb, k->oc, k->ic, 1, k->b.src[0], k->type, k->ic, k->weights,
                        k->ic, k->bias ? 1 : 0, k->b.dst, k->type, k->oc, err);
}

static kith_status linear_forward(ki_kernel *kernel, kith_error *err) {
    const linear *k = (linear *)kernel;
    cudaStream_t stream = ki_cuda_of(kernel->backend)->stream;
    if (k->memory) KI_TRY(ki_conv_pack_now(kernel->backend, err));
    if (k->pass[KI_CONV_FORWARD]) return ki_conv_way_run(k->pass[KI_CONV_FORWARD], stream, err);
    KI_TRY(multiply(k, err));
    if (!k->adds) return KITH_OK;
    const void *const part[] = {k->b.dst, k->b.src[1]};
    const int64_t pitch[] = {k->oc, k->oc};
    KI_CUDA(ki_cuda_sum(stream, k->type == KI_NUMBER_BF16, k->mb, k->oc, 2, part, pitch, NULL, 0, false,
                        k->b.dst, k->oc));
    return KITH_OK;
}

/* diff_weights [oc, ic] += diff_dst^T src */
static kith_status add_weights(ki_backend *backend, int64_t mb, int64_t ic, int64_t oc, ki_number type,
                               const void *src, const void *diff_dst, float *diff_weights, kith_error *err) {
    return ki_cuda_gemm(backend, true, false, oc, ic, mb, 1, diff_dst, type, oc, src, ic, 1, diff_weights,
                        KI_NUMBER_FLOAT, ic, err);
}

static kith_status add_bias(const linear *k, kith_error *err) {
    cudaStream_t stream = ki_cuda_of(k->base.backend)->stream;
    float *diff = k->b.param[KI_B].diff;
    if (!is_summed_twice(k)) {
        KI_CUDA(ki_cuda_add_columns(k->mb, k->oc, k->b.diff_dst[0], diff, stream));
        return KITH_OK;
    }
    const ki_diff_rows rows = {.n_rows = k->mb,
                               .c = k->oc,
                               .pitch = k->oc,
                               .n_parts = 1,
                               .n_runs = n_runs_of(k->mb, k->oc),
                               .part = {k->b.diff_dst[0]},
                               .sums = k->b.scratch};
    KI_CUDA(ki_cuda_diff_rows(k->type, &rows, stream));
    KI_CUDA(ki_cuda_add_columns(rows.n_runs, k->oc, rows.sums, diff, stream));
    return KITH_OK;
}

static kith_status diff_weights(const linear *k, kith_error *err) {
    ki_backend *backend = k->base.backend;
    if (k->pass[KI_CONV_DIFF_WEIGHTS])
        return ki_conv_way_run(k->pass[KI_CONV_DIFF_WEIGHTS], ki_cuda_of(backend)->stream, err);
    return add_weights(backend, k->mb, k->ic, k->oc, k->type, k->b.src[0], k->b.diff_dst[0],
                       k->b.param[KI_W].diff, err);
}

static kith_status linear_backward(ki_kernel *kernel, kith_error *err) {
    const linear *k = (linear *)kernel;
    ki_backend *backend = kernel->backend;
    const ki_param_slot *param = k->b.param;
    if (k->is_trained && param[KI_B].diff) KI_TRY(add_bias(k, err));
    if (k->is_trained && param[KI_W].diff) KI_TRY(diff_weights(k, err));
    if (!k->b.diff_src[0]) return KITH_OK;
    if (k->pass[KI_CONV_DIFF_SRC])
        return ki_conv_way_run(k->pass[KI_CONV_DIFF_SRC], ki_cuda_of(backend)->stream, err);
    return ki_cuda_gemm(backend, false, false, k->mb, k->ic, k->oc, 1, k->b.diff_dst[0], k->type, k->oc,
                        k->weights, k->ic, 0, k->b.diff_src[0], k->type, k->ic, err);
}

kith_status ki_cuda_linear_grad(ki_backend *backend, const ki_edge *src_edge, const void *src,
                                const ki_real *diff_dst, int64_t oc, ki_real *diff_weights,
                                ki_real *diff_bias, kith_error *err) {
    const int64_t mb = src_edge->shape.dim[0], ic = src_edge->shape.dim[1];
    if (diff_bias) KI_CUDA(ki_cuda_add_columns(mb, oc, diff_dst, diff_bias, ki_cuda_of(backend)->stream));
    return add_weights(backend, mb, ic, oc, KI_NUMBER_FLOAT, src, diff_dst, diff_weights, err);
}

const ki_kernel_type ki_cuda_linear = {.create = linear_create,
                                       .bind = linear_bind,
                                       .pack = linear_pack,
                                       .forward = linear_forward,
                                       .backward = linear_backward,
                                       .free = linear_free,
                                       .fuses_add = true};
