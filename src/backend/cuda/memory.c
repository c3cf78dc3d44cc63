/* Device memory, pinned host memory, and places in the stream that the host waits for. */
#include <string.h>

#include "backend/cuda/cuda.h"

kith_status ki_cuda_fail(kith_error *err, cudaError_t error, const char *call) {
    const kith_status status = error == cudaErrorMemoryAllocation ? KITH_ENOMEM : KITH_EBACKEND;
    (void)cudaGetLastError(); /* said once */
    return ki_fail(err, status, "CUDA: %s (%.80s)", cudaGetErrorString(error), call);
}

static double gib(size_t bytes) { return (double)bytes / (double)((size_t)1 << 30); }

kith_status ki_cuda_alloc(ki_backend *backend, size_t bytes, void **ret_ptr, kith_error *err) {
    const cuda_backend *cuda = ki_cuda_of(backend);
    KI_CUDA(cudaSetDevice(cuda->device));
    const cudaError_t error = cudaMalloc(ret_ptr, bytes ? bytes : 1);
    if (error != cudaErrorMemoryAllocation) {
        KI_CUDA(error);
        return KITH_OK;
    }
    (void)cudaGetLastError();
    size_t free_bytes = 0, total_bytes = 0;
    KI_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    ki_fail(err, KITH_ENOMEM, "CUDA device %d: %.2f GiB wanted, %.2f GiB free of %.2f GiB", cuda->device,
            gib(bytes), gib(free_bytes), gib(total_bytes));
    return ki_hint(err, KITH_ENOMEM, "use a smaller batch or image, precision bf16, or accumulate");
}

void ki_cuda_free(ki_backend *backend, void *ptr) {
    if (!ptr) return;
    (void)cudaSetDevice(ki_cuda_of(backend)->device);
    (void)cudaFree(ptr);
}

kith_status ki_cuda_pinned_alloc(ki_backend *backend, size_t bytes, void **ret_ptr, kith_error *err) {
    KI_CUDA(cudaSetDevice(ki_cuda_of(backend)->device));
    KI_CUDA(cudaHostAlloc(ret_ptr, bytes ? bytes : 1, cudaHostAllocPortable));
    return KITH_OK;
}

void ki_cuda_pinned_free(ki_backend *backend, void *ptr) {
    if (!ptr) return;
    (void)cudaSetDevice(ki_cuda_of(backend)->device);
    (void)cudaFreeHost(ptr);
}

kith_status ki_cuda_event_new(ki_backend *backend, cudaEvent_t *ret_event, kith_error *err) {
    KI_CUDA(cudaSetDevice(ki_cuda_of(backend)->device));
    KI_CUDA(cudaEventCreateWithFlags(ret_event, cudaEventDisableTiming));
    return KITH_OK;
}

void ki_cuda_event_free(cudaEvent_t event) {
    if (event) (void)cudaEventDestroy(event);
}

kith_status ki_cuda_event_record(ki_backend *backend, cudaEvent_t event, kith_error *err) {
    KI_CUDA(cudaEventRecord(event, ki_cuda_of(backend)->stream));
    return KITH_OK;
}

kith_status ki_cuda_event_wait(cudaEvent_t event, kith_error *err) {
    KI_CUDA(cudaEventSynchronize(event));
    return KITH_OK;
}

cudaStream_t ki_cuda_stream(ki_backend *backend) {
    const cuda_backend *cuda = ki_cuda_of(backend);
    (void)cudaSetDevice(cuda->device); /* if the device does not exist, the next call fails */
    return cuda->stream;
}
