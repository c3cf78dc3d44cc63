/* Opening and closing cuBLASLt and cuDNN. */
#include "backend/cuda/libraries.h"

#include <stdio.h>

#include "backend/cuda/conv/cudnn_graph.h"
#include "backend/cuda/gemm/lt.h"
#include "base/text.h"

enum { GEMM_WORKSPACE = 32 << 20 }; /* what cuBLAS recommends for this kind of device */

static void libraries_close(cuda_backend *cuda) {
    ki_cuda_libraries *libraries = cuda->libraries;
    if (!libraries) return;
    if (libraries->cudnn) (void)cudnnDestroy(libraries->cudnn);
    if (libraries->lt) (void)cublasLtDestroy(libraries->lt);
    if (libraries->begin) (void)cudaEventDestroy(libraries->begin);
    if (libraries->end) (void)cudaEventDestroy(libraries->end);
    ki_cuda_free(&cuda->base, libraries->workspace);
    ki_cuda_free(&cuda->base, libraries->tune_memory);
    ki_remembered_free(libraries->remembered);
    ki_free(libraries->queue.item);
    ki_free(libraries->kept);
    ki_free(libraries);
    cuda->libraries = NULL;
}

static kith_status open_remembered(cuda_backend *cuda, ki_cuda_libraries *libraries, kith_error *err) {
    struct cudaDeviceProp device;
    char name[sizeof device.name + 80];
    KI_CUDA(cudaGetDeviceProperties(&device, cuda->device));
    /* A share of a device (MPS) has fewer processors, and what was timed on the whole is not for it. */
    ki_snprintf(name, sizeof name, "%s, %d processors, cudnn %zu, cublas %zu", device.name,
                cuda->n_processors, cudnnGetVersion(), cublasLtGetVersion());
    return ki_remembered_open(cuda->base.options.cache, name, &libraries->remembered, err);
}

static kith_status open_all(cuda_backend *cuda, ki_cuda_libraries *libraries, kith_error *err) {
    KI_CUDA(cudaSetDevice(cuda->device));
    KI_CUBLAS(cublasLtCreate(&libraries->lt));
    KI_CUDNN(cudnnCreate(&libraries->cudnn));
    KI_CUDNN(cudnnSetStream(libraries->cudnn, cuda->stream));
    libraries->cudnn_stream = cuda->stream;
    KI_TRY(ki_cuda_alloc(&cuda->base, GEMM_WORKSPACE, &libraries->workspace, err));
    libraries->workspace_bytes = GEMM_WORKSPACE;
    KI_CUDA(cudaEventCreate(&libraries->begin));
    KI_CUDA(cudaEventCreate(&libraries->end));
    return open_remembered(cuda, libraries, err);
}

kith_status ki_cuda_libraries_of(ki_backend *backend, ki_cuda_libraries **ret_libraries, kith_error *err) {
    cuda_backend *cuda = ki_cuda_of(backend);
    if (!cuda->libraries) {
        ki_cuda_libraries *libraries = NULL;
        KI_TRY(ki_zalloc_or(&libraries, 1, sizeof *libraries, "cuDNN's and cuBLAS' handles", err));
        cuda->libraries = libraries;
        cuda->libraries_close = libraries_close;
        const kith_status status = open_all(cuda, libraries, err);
        if (status != KITH_OK) {
            libraries_close(cuda);
            return status;
        }
    }
    *ret_libraries = cuda->libraries;
    return KITH_OK;
}

kith_status ki_conv_queue_of(ki_backend *backend, ki_conv_queue **ret_queue, kith_error *err) {
    ki_cuda_libraries *libraries = NULL;
    KI_TRY(ki_cuda_libraries_of(backend, &libraries, err));
    *ret_queue = &libraries->queue;
    return KITH_OK;
}
