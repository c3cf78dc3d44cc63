/* cuBLASLt, cuDNN and what they need: opened once per backend, by the first kernel that asks for them, and
 * closed with the backend. */
#ifndef KI_CUDA_LIBRARIES_H
#define KI_CUDA_LIBRARIES_H

#include <cublasLt.h>
#include <cudnn.h>

#include "backend/cuda/conv/group.h"
#include "backend/cuda/conv/remember.h"
#include "backend/cuda/cuda.h"

typedef struct ki_lt_kept ki_lt_kept; /* gemm.c: algorithms by shape */

typedef struct ki_cuda_libraries {
    cublasLtHandle_t lt;
    cudnnHandle_t cudnn;
    cudaStream_t cudnn_stream; /* what it queues on */
    void *workspace;           /* of gemm: calls on one stream take turns */
    size_t workspace_bytes;
    ki_lt_kept *kept;
    size_t n_kept, kept_capacity;
    ki_remembered *remembered;
    void *tune_memory; /* conv/tune_time.c: scratch tensors */
    size_t tune_bytes;
    cudaEvent_t begin, end;
    bool has_said; /* that it takes a while */
    ki_conv_queue queue;
} ki_cuda_libraries;

kith_status ki_cuda_libraries_of(ki_backend *backend, ki_cuda_libraries **ret_libraries, kith_error *err);

#endif
