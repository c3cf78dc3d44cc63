/* Turns a failure of the CUDA runtime, or of a launcher, into an error of ours: for C and for kernels. */
#ifndef KI_CUDA_FAIL_H
#define KI_CUDA_FAIL_H

#include <cuda_runtime_api.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Return the failure, with the call's text. */
#define KI_CUDA(call)                                                           \
    do {                                                                        \
        const cudaError_t ki_cuda_ = (call);                                    \
        if (ki_cuda_ != cudaSuccess) return ki_cuda_fail(err, ki_cuda_, #call); \
    } while (0)

kith_status ki_cuda_fail(kith_error *err, cudaError_t error, const char *call);

#ifdef __cplusplus
}
#endif
#endif
