/* attention as an op: on tensor cores what they take, the rest by kernels in float. Both keep the same for backward. */
#include "backend/cuda/attention/kernels.h"

#include <math.h>

#include "backend/cuda/op.h"

static const void *element(const ki_cuda_map *map, const void *base, int64_t at) {
    return (const char *)base + (size_t)at * map->element_bytes;
}

static void *element_or_null(const ki_cuda_map *map, void *base, int64_t at) {
    return base ? (char *)base + (size_t)at * map->element_bytes : NULL;
}

/* Sizes; the pointers of forward. */
static ki_cuda_attention_args args_of(const cuda_op *op) {
    const ki_kernel_spec *spec = &op->spec;
    const int from = spec->n_src - 1;
    const int64_t c = op->dst.c, k_at = from ? 0 : c, v_at = from ? c : 2 * c;
    const ki_cuda_map *kv = &op->src[from];
    ki_cuda_attention_args a = {.is_bf16 = op->dst.is_bf16,
                                .attr = op->attr.attention,
                                .rows = spec->dst.shape.dim[0],
                                .q_pitch = op->src[0].pitch,
                                .kv_pitch = kv->pitch,
                                .s = (int)spec->dst.shape.dim[1],
                                .t = (int)spec->src[from].shape.dim[1],
                                .d = (int)(c / op->attr.attention.heads)};
    a.scale = (float)(1 / sqrt((double)a.d));
    if (!op->b.dst) return a;
    a.q = op->b.src[0];
    a.k = element(kv, op->b.src[from], k_at);
    a.v = element(kv, op->b.src[from], v_at);
    a.table = op->b.param[KI_W].value;
    a.dst = op->b.dst;
    a.saved = op->b.workspace;
    return a;
}

static int64_t queries_of(const ki_cuda_attention_args *a) { return a->rows * a->attr.heads * a->s; }

static kith_status check(const ki_kernel_spec *spec, kith_error *err) {
    const int64_t d = spec->dst.shape.dim[2] / spec->attr->attention.heads;
    const int64_t s = spec->dst.shape.dim[1], t = spec->src[spec->n_src - 1].shape.dim[1];
    if (d > KI_CUDA_MOST_HEAD)
        return ki_fail(err, KITH_EUNSUPPORTED, "a head of %lld numbers; cuda has kernels for up to %d",
                       (long long)d, KI_CUDA_MOST_HEAD);
    if (s > INT32_MAX / 2 || t > INT32_MAX / 2)
        return ki_fail(err, KITH_ESHAPE, "%lld and %lld tokens in a row, wanted fewer than 2^30",
                       (long long)s, (long long)t);
    return KITH_OK;
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(check(spec, err));
    KI_TRY(ki_cuda_op_new(&ki_cuda_attention, backend, spec, NULL, ret_kernel, err));
    const ki_cuda_attention_args a = args_of(ki_cuda_op_of(*ret_kernel));
    const size_t saved = (size_t)queries_of(&a) * sizeof(float);
    const bool trains = spec->mode == KI_TRAIN;
    *ret_info = (ki_kernel_info){
        .workspace_bytes = trains ? saved : 0,
        .scratch_bytes = trains ? saved + (size_t)ki_cuda_attention_tables(&a) * sizeof(float) : 0,
        .backward_reads_src = true,
        .backward_reads_dst = true};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    const ki_cuda_attention_args a = args_of(op);
    KI_CUDA(ki_cuda_attention_on_tensor_cores(&a) ? ki_cuda_tensor_forward(ki_cuda_op_stream(op), &a)
                                                  : ki_cuda_attention_forward(ki_cuda_op_stream(op), &a));
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    const int from = op->spec.n_src - 1;
    const ki_cuda_map *kv = &op->src[from];
    const int64_t c = op->dst.c;
    ki_cuda_attention_args a = args_of(op);
    a.result = op->b.dst;
    a.diff_dst = op->b.diff_dst[0];
    a.diff_q = op->b.diff_src[0];
    a.diff_k = element_or_null(kv, op->b.diff_src[from], from ? 0 : c);
    a.diff_v = element_or_null(kv, op->b.diff_src[from], from ? c : 2 * c);
    a.dots = op->b.scratch;
    a.diff_table = op->spec.wants_diff_params ? op->b.param[KI_W].diff : NULL;
    a.tables = a.attr.window > 0 && a.diff_table ? a.dots + queries_of(&a) : NULL;
    KI_CUDA(ki_cuda_attention_on_tensor_cores(&a) ? ki_cuda_tensor_backward(ki_cuda_op_stream(op), &a)
                                                  : ki_cuda_attention_backward(ki_cuda_op_stream(op), &a));
    return KITH_OK;
}

const ki_kernel_type ki_cuda_attention = {.create = create,
                                          .bind = ki_cuda_op_bind,
                                          .forward = forward,
                                          .backward = backward,
                                          .free = ki_cuda_op_free};
