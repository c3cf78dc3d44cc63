/* The layout of a term's scratch memory. The same function lists the buffers twice: once from NULL, for the
 * size that `open` asks for, and once from the scratch memory that `launch` gets. */
#ifndef KI_OBJECTIVE_CUDA_SCRATCH_H
#define KI_OBJECTIVE_CUDA_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

typedef struct ki_cuda_scratch {
    char *base;
    size_t used;
} ki_cuda_scratch;

/* n things of `size` bytes, 256-byte aligned like the memory itself. */
static inline void *ki_cuda_scratch_take(ki_cuda_scratch *room, int64_t n, size_t size) {
    const size_t at = room->used;
    room->used = (at + (size_t)n * size + 255) / 256 * 256;
    return room->base ? room->base + at : NULL;
}
static inline float *ki_cuda_scratch_floats(ki_cuda_scratch *room, int64_t n) {
    return (float *)ki_cuda_scratch_take(room, n, sizeof(float));
}
static inline double *ki_cuda_scratch_doubles(ki_cuda_scratch *room, int64_t n) {
    return (double *)ki_cuda_scratch_take(room, n, sizeof(double));
}
static inline int32_t *ki_cuda_scratch_ints(ki_cuda_scratch *room, int64_t n) {
    return (int32_t *)ki_cuda_scratch_take(room, n, sizeof(int32_t));
}

#endif
