/* A device, or the emulator, for tests that call kernels themselves: open_device and close_device are a group's set-up and tear-down.
 * Included by one test program each; everything is static. */
#ifndef KITH_TEST_CUDA_SIDE_H
#define KITH_TEST_CUDA_SIDE_H

#include <stdlib.h>

#include "backend/cuda/cuda.h"
#include "support/op_check.h"
#include "support/testing.h"

static ki_backend *backend;
static cudaStream_t stream;

static inline int open_device(void **state) {
    (void)state;
    backend = op_backend("cuda", NULL);
    stream = ki_cuda_stream(backend);
    return 0;
}
static inline int close_device(void **state) {
    (void)state;
    ki_backend_close(backend);
    return 0;
}

static inline void *device(size_t bytes) {
    void *ptr = NULL;
    kith_error err;
    assert_ok(ki_cuda_alloc(backend, bytes, &ptr, &err), &err);
    return ptr;
}
/* Zeroed. */
static inline void *host(size_t bytes) {
    void *ptr = calloc(1, bytes);
    assert_non_null(ptr);
    return ptr;
}

#endif
