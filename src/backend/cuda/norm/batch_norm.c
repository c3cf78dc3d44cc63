/* batch_norm: what batch_norm.cu is called with.
 *
 * Over ranks batch statistics are those of all ranks' pixels: every rank makes its share, the shares are gathered, and every
 * rank merges them. The gradients of gamma and beta are of its own pixels, to be summed with all others. */
#include <inttypes.h>

#include "backend/cuda/norm/kernels.h"
#include "backend/cuda/op.h"
#include "comm/device.h"

static bool uses_batch(const ki_kernel_spec *spec) { return spec->mode == KI_TRAIN && !spec->frozen_stats; }

static size_t chunks_bytes(const ki_backend *backend, const ki_cuda_map *m) {
    return ki_round_up(ki_cuda_bn_scratch(m->n, m->c, ki_cuda_of_const(backend)->n_processors), 256);
}

static size_t share_bytes(const ki_cuda_map *m) { return (size_t)ki_cuda_bn_share(m->c) * sizeof(double); }

/* Scratch: the sums of chunks; over ranks all ranks' shares and what backward subtracts. */
static size_t sums_bytes(const ki_backend *backend, const ki_device_comm *device, const ki_cuda_map *m) {
    const size_t n_ranks = device ? (size_t)device->comm->size : 0;
    return chunks_bytes(backend, m) +
           ki_round_up(n_ranks * share_bytes(m) + 2 * (size_t)m->c * sizeof(float), 256);
}

static ki_cuda_bn_args bn_of(const cuda_op *op) {
    const ki_binding *b = &op->b;
    const cuda_backend *cuda = ki_cuda_of(op->base.backend);
    const bool trains = op->spec.wants_diff_params;
    ki_cuda_bn_args bn = {.is_bf16 = op->dst.is_bf16,
                          .has_relu = op->spec.has_relu,
                          .is_frozen = !uses_batch(&op->spec),
                          .has_add = op->spec.has_add,
                          .n_processors = cuda->n_processors,
                          .n = op->dst.n,
                          .c = op->dst.c,
                          .src_pitch = op->src[0].pitch,
                          .dst_pitch = op->dst.pitch,
                          .eps = (float)op->attr.bn.eps,
                          .momentum = (float)op->attr.bn.momentum,
                          .src = b->src[0],
                          .dst = b->dst,
                          .diff_src = b->diff_src[0],
                          .gamma = b->param[KI_W].value,
                          .beta = b->param[KI_B].value,
                          .mean = b->param[KI_MEAN].value,
                          .var = b->param[KI_VAR].value,
                          .diff_gamma = trains ? b->param[KI_W].diff : NULL,
                          .diff_beta = trains ? b->param[KI_B].diff : NULL,
                          .saved = b->workspace,
                          .scratch = b->scratch,
                          .counters = cuda->counters};
    if (trains) {
        bn.n_parts = b->n_diff_dst;
        for (int i = 0; i < bn.n_parts; i++) bn.diff_dst[i] = b->diff_dst[i];
    }
    if (bn.has_add) {
        bn.other = b->src[1];
        bn.other_pitch = op->src[1].pitch;
        /* The sum's gradient is needed as an intermediate result even if it is not wanted itself. */
        bn.diff_other = b->diff_src[1] ? b->diff_src[1]
                                       : (char *)b->scratch +
                                             sums_bytes(op->base.backend, op->spec.device_comm, &op->dst);
    }
    return bn;
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    const ki_cuda_map m = ki_cuda_map_of(backend, &spec->dst);
    const bool is_shared = spec->device_comm && spec->device_comm->comm->size > 1;
    if (uses_batch(spec) && m.n < 2 && !is_shared) {
        ki_fail(err, KITH_ESHAPE, "batch statistics of %" PRId64 " value per channel, wanted 2 or more", m.n);
        return ki_hint(err, KITH_ESHAPE, "use a larger batch or frozen statistics");
    }
    KI_TRY(ki_cuda_op_new(&ki_cuda_batch_norm, backend, spec, NULL, ret_kernel, err));
    *ret_info = (ki_kernel_info){
        .workspace_bytes = uses_batch(spec) ? 2 * (size_t)m.c * sizeof(float) : 0,
        .scratch_bytes = spec->mode == KI_TRAIN ? sums_bytes(backend, spec->device_comm, &m) : 0,
        .backward_reads_src = true,
        .backward_reads_dst = spec->has_add && spec->has_relu,
        .joins = spec->has_add};
    if (spec->has_add && spec->wants_diff_params && !spec->wants_diff_src[1]) {
        const ki_cuda_map other = ki_cuda_map_of(backend, &spec->src[1]);
        ret_info->scratch_bytes += (size_t)(other.n * other.pitch) * other.element_bytes;
    }
    return KITH_OK;
}

static kith_status over_ranks(const cuda_op *op, ki_cuda_bn_args *bn, bool is_backward, kith_error *err) {
    ki_device_comm *device = op->spec.device_comm;
    const cudaStream_t stream = ki_cuda_op_stream(op);
    const int n_ranks = device->comm->size;
    double *shares = (double *)(void *)((char *)op->b.scratch + chunks_bytes(op->base.backend, &op->dst));
    bn->share = shares + device->comm->rank * ki_cuda_bn_share(bn->c);
    bn->subtract = (float *)(void *)(shares + n_ranks * ki_cuda_bn_share(bn->c));
    bn->half = KI_CUDA_BN_SUMS;
    KI_CUDA(is_backward ? ki_cuda_bn_backward(stream, bn) : ki_cuda_bn_forward(stream, bn));
    KI_TRY(ki_device_comm_gather(device, bn->share, shares, n_ranks, share_bytes(&op->dst), err));
    KI_CUDA(ki_cuda_bn_merge(stream, bn, is_backward, shares, n_ranks));
    bn->half = KI_CUDA_BN_REST;
    KI_CUDA(is_backward ? ki_cuda_bn_backward(stream, bn) : ki_cuda_bn_forward(stream, bn));
    return KITH_OK;
}

static kith_status run(const cuda_op *op, bool is_backward, kith_error *err) {
    ki_cuda_bn_args bn = bn_of(op);
    if (op->spec.device_comm && !bn.is_frozen) return over_ranks(op, &bn, is_backward, err);
    const cudaStream_t stream = ki_cuda_op_stream(op);
    KI_CUDA(is_backward ? ki_cuda_bn_backward(stream, &bn) : ki_cuda_bn_forward(stream, &bn));
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    return run(ki_cuda_op_of(kernel), false, err);
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    return run(ki_cuda_op_of(kernel), true, err);
}

const ki_kernel_type ki_cuda_batch_norm = {.create = create,
                                           .bind = ki_cuda_op_bind,
                                           .forward = forward,
                                           .backward = backward,
                                           .free = ki_cuda_op_free,
                                           .fuses_relu = true};
