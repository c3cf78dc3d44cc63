/* The second queue and the marks (ki_queue_type): streams and events. */
#include "backend/cuda/cuda.h"

struct ki_mark {
    cudaEvent_t event;
};

static cudaStream_t stream_of(ki_backend *backend, ki_queue queue) {
    const cuda_backend *cuda = ki_cuda_of(backend);
    return queue == KI_QUEUE_COPY ? cuda->copy_stream : cuda->stream;
}

static kith_status copy(ki_backend *backend, ki_queue queue, void *dst, const void *src, size_t bytes,
                        kith_error *err) {
    KI_CUDA(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, stream_of(backend, queue)));
    return KITH_OK;
}

static void mark_free(ki_backend *backend, ki_mark *mark) {
    (void)backend;
    if (!mark) return;
    if (mark->event) (void)cudaEventDestroy(mark->event);
    ki_free(mark);
}

static kith_status mark_new(ki_backend *backend, ki_mark **ret_mark, kith_error *err) {
    ki_mark *mark = NULL;
    KI_CUDA(cudaSetDevice(ki_cuda_of(backend)->device));
    KI_TRY(ki_zalloc_or(&mark, 1, sizeof *mark, "a mark", err));
    const cudaError_t error = cudaEventCreateWithFlags(&mark->event, cudaEventDefault);
    if (error != cudaSuccess) {
        ki_free(mark);
        return ki_cuda_fail(err, error, "cudaEventCreateWithFlags");
    }
    *ret_mark = mark;
    return KITH_OK;
}

static kith_status mark_set(ki_backend *backend, ki_mark *mark, ki_queue queue, kith_error *err) {
    KI_CUDA(cudaEventRecord(mark->event, stream_of(backend, queue)));
    return KITH_OK;
}

static kith_status mark_follow(ki_backend *backend, const ki_mark *mark, ki_queue queue, kith_error *err) {
    KI_CUDA(cudaStreamWaitEvent(stream_of(backend, queue), mark->event, 0));
    return KITH_OK;
}

static kith_status mark_wait(ki_backend *backend, const ki_mark *mark, kith_error *err) {
    (void)backend;
    KI_CUDA(cudaEventSynchronize(mark->event));
    return KITH_OK;
}

static kith_status mark_seconds(ki_backend *backend, const ki_mark *from, const ki_mark *to,
                                double *ret_seconds, kith_error *err) {
    (void)backend;
    float ms = 0;
    KI_CUDA(cudaEventSynchronize(from->event));
    KI_CUDA(cudaEventSynchronize(to->event));
    KI_CUDA(cudaEventElapsedTime(&ms, from->event, to->event));
    *ret_seconds = 1e-3 * (double)ms;
    return KITH_OK;
}

static kith_status memory(ki_backend *backend, size_t *ret_used, size_t *ret_all, kith_error *err) {
    size_t free_bytes = 0, all_bytes = 0;
    KI_CUDA(cudaSetDevice(ki_cuda_of(backend)->device));
    KI_CUDA(cudaMemGetInfo(&free_bytes, &all_bytes));
    *ret_used = all_bytes - free_bytes;
    *ret_all = all_bytes;
    return KITH_OK;
}

const ki_queue_type ki_cuda_queues = {
    .host_alloc = ki_cuda_pinned_alloc,
    .host_free = ki_cuda_pinned_free,
    .copy = copy,
    .mark_new = mark_new,
    .mark_free = mark_free,
    .mark_set = mark_set,
    .mark_follow = mark_follow,
    .mark_wait = mark_wait,
    .mark_seconds = mark_seconds,
    .memory = memory,
};
