/* relu, add and concat: sums of one or more maps (elementwise.cu). A concat runs only if its sources could not
 * write into its buffer. It copies source by source. Backward sums the parts of the gradient, and applies the
 * source's ReLU mask if asked. */
#include "backend/cuda/elementwise/kernels.h"
#include "backend/cuda/op.h"

static const char *slice_of(const void *map, const ki_cuda_map *m, int64_t c) {
    return (const char *)map + (size_t)c * m->element_bytes;
}

static cudaError_t relu_queue(const cuda_op *op, cudaStream_t stream, bool is_backward) {
    const ki_cuda_map *src = &op->src[0], *dst = &op->dst;
    return is_backward ? ki_cuda_sum(stream, dst->is_bf16, dst->n, dst->c, 1, op->b.diff_dst, &dst->pitch,
                                     op->b.dst, dst->pitch, false, op->b.diff_src[0], src->pitch)
                       : ki_cuda_sum(stream, dst->is_bf16, dst->n, dst->c, 1, op->b.src, &src->pitch, NULL, 0,
                                     true, op->b.dst, dst->pitch);
}

static kith_status relu_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                               ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_cuda_op_new(&ki_cuda_relu, backend, spec, relu_queue, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_dst = true};
    return KITH_OK;
}

const ki_kernel_type ki_cuda_relu = {.create = relu_create,
                                     .bind = ki_cuda_op_bind,
                                     .forward = ki_cuda_op_forward,
                                     .backward = ki_cuda_op_backward,
                                     .free = ki_cuda_op_free};

static kith_status add_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                              ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_cuda_op_new(&ki_cuda_add, backend, spec, NULL, ret_kernel, err));
    *ret_info = (ki_kernel_info){.shares_diff = true, .mask_in_join = spec->has_relu};
    return KITH_OK;
}

static kith_status add_forward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    int64_t pitch[KI_MAX_SRC];
    for (int i = 0; i < op->spec.n_src; i++) pitch[i] = op->src[i].pitch;
    KI_CUDA(ki_cuda_sum(ki_cuda_op_stream(op), op->dst.is_bf16, op->dst.n, op->dst.c, op->spec.n_src,
                        op->b.src, pitch, NULL, 0, op->spec.has_relu, op->b.dst, op->dst.pitch));
    return KITH_OK;
}

/* Never called: the gradient is shared. */
static kith_status add_backward(ki_kernel *kernel, kith_error *err) {
    (void)kernel;
    return ki_fail(err, KITH_EINTERNAL, "add shares its gradient");
}

const ki_kernel_type ki_cuda_add = {.create = add_create,
                                    .bind = ki_cuda_op_bind,
                                    .forward = add_forward,
                                    .backward = add_backward,
                                    .free = ki_cuda_op_free,
                                    .fuses_relu = true};

static kith_status concat_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                 ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_cuda_op_new(&ki_cuda_concat, backend, spec, NULL, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_dst = spec->masked_src != 0, .joins = true};
    return KITH_OK;
}

static kith_status concat_forward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    int64_t at = 0;
    for (int i = 0; i < op->spec.n_src; at += op->src[i].c, i++) {
        char *to = (char *)op->b.dst + (size_t)at * op->dst.element_bytes;
        KI_CUDA(ki_cuda_sum(ki_cuda_op_stream(op), op->dst.is_bf16, op->dst.n, op->src[i].c, 1, &op->b.src[i],
                            &op->src[i].pitch, NULL, 0, false, to, op->dst.pitch));
    }
    return KITH_OK;
}

static kith_status concat_backward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    const ki_cuda_map *dst = &op->dst;
    int64_t at = 0;
    for (int i = 0; i < op->spec.n_src; at += op->src[i].c, i++) {
        if (!op->b.diff_src[i]) continue;
        const void *part[KI_MAX_SRC];
        int64_t pitch[KI_MAX_SRC];
        for (int p = 0; p < op->b.n_diff_dst; p++) {
            part[p] = slice_of(op->b.diff_dst[p], dst, at);
            pitch[p] = dst->pitch;
        }
        const void *mask = op->spec.masked_src >> i & 1 ? slice_of(op->b.dst, dst, at) : NULL;
        KI_CUDA(ki_cuda_sum(ki_cuda_op_stream(op), dst->is_bf16, dst->n, op->src[i].c, op->b.n_diff_dst, part,
                            pitch, mask, dst->pitch, false, op->b.diff_src[i], op->src[i].pitch));
    }
    return KITH_OK;
}

const ki_kernel_type ki_cuda_concat = {.create = concat_create,
                                       .bind = ki_cuda_op_bind,
                                       .forward = concat_forward,
                                       .backward = concat_backward,
                                       .free = ki_cuda_op_free};
