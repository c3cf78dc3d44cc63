/* pool: what pool.cu is called with. */
#include <inttypes.h>

#include "backend/cuda/op.h"
#include "backend/cuda/pool/kernels.h"

enum { MOST_K = 15 }; /* a place in a window fits in a byte; 255: none */

static cudaError_t queue(const cuda_op *op, cudaStream_t stream, bool is_backward) {
    const ki_pool_attr *a = &op->attr.pool;
    const ki_cuda_map *src = &op->src[0], *dst = &op->dst;
    const ki_cuda_pool_args pool = {.is_bf16 = dst->is_bf16,
                                    .average = a->average,
                                    .count_pad = a->count_pad,
                                    .mb = src->mb,
                                    .c = src->c,
                                    .src_pitch = src->pitch,
                                    .dst_pitch = dst->pitch,
                                    .ih = (int)src->h,
                                    .iw = (int)src->w,
                                    .oh = (int)dst->h,
                                    .ow = (int)dst->w,
                                    .k = (int)a->k,
                                    .s = (int)a->s,
                                    .p = (int)a->p,
                                    .src = op->b.src[0],
                                    .dst = op->b.dst,
                                    .diff_dst = op->b.diff_dst[0],
                                    .diff_src = op->b.diff_src[0],
                                    .place = op->b.workspace,
                                    .pad = op->b.param[KI_B].value};
    return is_backward ? ki_cuda_pool_backward(stream, &pool) : ki_cuda_pool_forward(stream, &pool);
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    const ki_pool_attr *a = &spec->attr->pool;
    if (!a->average && a->k > MOST_K)
        return ki_fail(err, KITH_EUNSUPPORTED, "a maximum over %" PRId64 "x%" PRId64 ", at most %dx%d here",
                       a->k, a->k, MOST_K, MOST_K);
    KI_TRY(ki_cuda_op_new(&ki_cuda_pool, backend, spec, queue, ret_kernel, err));
    const bool keeps = spec->mode == KI_TRAIN && !a->average;
    *ret_info = (ki_kernel_info){.workspace_bytes = keeps ? (size_t)ki_shape_count(&spec->dst.shape) : 0};
    return KITH_OK;
}

const ki_kernel_type ki_cuda_pool = {.create = create,
                                     .bind = ki_cuda_op_bind,
                                     .forward = ki_cuda_op_forward,
                                     .backward = ki_cuda_op_backward,
                                     .free = ki_cuda_op_free};
