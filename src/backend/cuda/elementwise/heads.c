/* attend and unfold as ops (heads.cu has the kernels). */
#include "backend/cuda/elementwise/kernels.h"
#include "backend/cuda/op.h"

static void *writable(const void *ptr) { return (void *)(uintptr_t)ptr; }

/* rows, all: the edges with a row for each head, and with all heads of an image in one. */
static ki_cuda_heads_args args_of(const ki_cuda_map *rows, const ki_cuda_map *all) {
    return (ki_cuda_heads_args){.is_bf16 = rows->is_bf16,
                                .mb = all->mb,
                                .heads = rows->mb / all->mb,
                                .c = rows->c,
                                .hw = rows->h * rows->w,
                                .rows_pitch = rows->pitch,
                                .all_pitch = all->pitch};
}

static kith_status attend_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                 ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_cuda_op_new(&ki_cuda_attend, backend, spec, NULL, ret_kernel, err));
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    return KITH_OK;
}

static ki_cuda_heads_args attend_args(const cuda_op *op) {
    ki_cuda_heads_args a = args_of(&op->dst, &op->src[1]);
    a.map = op->b.src[0];
    a.map_pitch = op->src[0].pitch;
    a.all = op->b.src[1];
    return a;
}

static kith_status attend_forward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    ki_cuda_heads_args a = attend_args(op);
    a.rows = op->b.dst;
    KI_CUDA(ki_cuda_heads_attend(ki_cuda_op_stream(op), &a));
    return KITH_OK;
}

static kith_status attend_backward(ki_kernel *kernel, kith_error *err) {
    const cuda_op *op = ki_cuda_op_of(kernel);
    ki_cuda_heads_args a = attend_args(op);
    a.rows = writable(op->b.diff_dst[0]); /* only read */
    a.diff_map = op->b.diff_src[0];
    a.diff_all = op->b.diff_src[1];
    KI_CUDA(ki_cuda_heads_attend_diff(ki_cuda_op_stream(op), &a));
    return KITH_OK;
}

const ki_kernel_type ki_cuda_attend = {.create = attend_create,
                                       .bind = ki_cuda_op_bind,
                                       .forward = attend_forward,
                                       .backward = attend_backward,
                                       .free = ki_cuda_op_free};

static cudaError_t unfold_queue(const cuda_op *op, cudaStream_t stream, bool is_backward) {
    ki_cuda_heads_args a = args_of(&op->src[0], &op->dst);
    if (is_backward) {
        a.all = op->b.diff_dst[0];
        a.rows = op->b.diff_src[0];
        return ki_cuda_heads_fold(stream, &a);
    }
    a.rows = writable(op->b.src[0]); /* only read */
    a.diff_all = op->b.dst;
    return ki_cuda_heads_unfold(stream, &a);
}

static kith_status unfold_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                 ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_cuda_op_new(&ki_cuda_unfold, backend, spec, unfold_queue, ret_kernel, err));
    *ret_info = (ki_kernel_info){0};
    return KITH_OK;
}

const ki_kernel_type ki_cuda_unfold = {.create = unfold_create,
                                       .bind = ki_cuda_op_bind,
                                       .forward = ki_cuda_op_forward,
                                       .backward = ki_cuda_op_backward,
                                       .free = ki_cuda_op_free};
