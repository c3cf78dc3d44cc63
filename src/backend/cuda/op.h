/* What the ops written as kernels of our own have in common: the spec, the maps, the binding. */
#ifndef KI_CUDA_OP_H
#define KI_CUDA_OP_H

#include "backend/cuda/cuda.h"

typedef struct cuda_op cuda_op;
/* Queue forward or backward on the stream. */
typedef cudaError_t ki_cuda_op_queue(const cuda_op *op, cudaStream_t stream, bool is_backward);

struct cuda_op {
    ki_kernel base;
    ki_kernel_spec spec; /* spec.attr points to attr */
    ki_attr attr;
    ki_cuda_map src[KI_MAX_SRC], dst;
    ki_binding b;
    ki_cuda_op_queue *queue;
};

static inline cuda_op *ki_cuda_op_of(ki_kernel *kernel) { return (cuda_op *)kernel; }
static inline cudaStream_t ki_cuda_op_stream(const cuda_op *op) { return ki_cuda_stream(op->base.backend); }

/* queue: NULL for types that have their own forward and backward. */
kith_status ki_cuda_op_new(const ki_kernel_type *type, ki_backend *backend, const ki_kernel_spec *spec,
                           ki_cuda_op_queue *queue, ki_kernel **ret_kernel, kith_error *err);
/* `bind` and `free` of them all. */
kith_status ki_cuda_op_bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err);
void ki_cuda_op_free(ki_kernel *kernel);
/* `forward` and `backward` of those with `queue`; backward does nothing if diff_src[0] is not wanted. */
kith_status ki_cuda_op_forward(ki_kernel *kernel, kith_error *err);
kith_status ki_cuda_op_backward(ki_kernel *kernel, kith_error *err);

#endif
