/* What the files of the cuda backend share: its struct, errors, the layout of activations, pinned memory, the
 * second stream. This header names no CUDA library but the runtime, so that the emulator (test/emulate) can
 * replace it.
 *
 * Activations. A map [mb, c, h, w] is NHWC in the backend's precision, `pitch` elements from one pixel to the
 * next; tokens [mb, t, c] are rows in the backend's precision, so a token is a pixel; everything [mb, c] is float, row-major. The plain map, the input of convolutions, is NHWC too, its
 * channels padded with zeros to ki_cuda_input_c and its rows, in bf16, to an even number of pixels: two pixels of
 * four channels are 16 bytes (conv/conv2d.c). Kernels never read between the pixels of a slice. */
#ifndef KI_CUDA_H
#define KI_CUDA_H

#include <cuda_runtime_api.h>

#include "backend/cuda/fail.h"
#include "base/alloc.h"
#include "device/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KI_CUDA_COUNTERS = 4096, KI_CUDA_SUMS = 1 << 16 };

typedef struct cuda_backend cuda_backend;
struct cuda_backend {
    ki_backend base;
    int device;
    int n_processors;
    cudaStream_t stream;      /* everything except what is listed below */
    cudaStream_t copy_stream; /* uploads of the next batch */
    cudaStream_t late_stream; /* weight gradients, beside the rest of backward */
    unsigned *counters; /* KI_CUDA_COUNTERS zeros for kernels of `stream`; zero again when these are done */
    double *sums;       /* KI_CUDA_SUMS, scratch of kernels of `stream` that have no other */
    void *staging;      /* device memory of import and export */
    size_t staging_bytes;
    /* cuDNN and cuBLAS: opened by the first kernel that needs them, closed with the backend. */
    void *libraries;
    void (*libraries_close)(cuda_backend *cuda);
};

static inline cuda_backend *ki_cuda_of(ki_backend *backend) { return (cuda_backend *)backend; }
static inline const cuda_backend *ki_cuda_of_const(const ki_backend *backend) {
    return (const cuda_backend *)backend;
}

/* The stream, after making its device the current one of the calling thread: otherwise the stream accepts no
 * work. */
cudaStream_t ki_cuda_stream(ki_backend *backend);

/* Device memory, 256-byte aligned. When memory runs out, the error says how much was asked for, how much is
 * free, and how much the device has. */
kith_status ki_cuda_alloc(ki_backend *backend, size_t bytes, void **ret_ptr, kith_error *err);
void ki_cuda_free(ki_backend *backend, void *ptr); /* NULL is fine */

/* The memory layout of an edge. */
typedef struct ki_cuda_map {
    int64_t mb, c, h, w;
    int64_t n;     /* pixels: mb * h * w; rows of [mb, c]; tokens, each as a map of one pixel (mb = n) */
    int64_t pitch; /* elements from pixel to pixel */
    int64_t row;   /* pixels from row to row: w, or one more */
    bool is_bf16;
    size_t element_bytes;
} ki_cuda_map;

ki_cuda_map ki_cuda_map_of(const ki_backend *backend, const ki_edge *edge);

/* How many channels an input of c channels takes in memory: 4, or a multiple of 16 bytes. */
int64_t ki_cuda_input_c(const ki_backend *backend, int64_t c);

/* Host memory that copies at full speed and without the host's help. */
kith_status ki_cuda_pinned_alloc(ki_backend *backend, size_t bytes, void **ret_ptr, kith_error *err);
void ki_cuda_pinned_free(ki_backend *backend, void *ptr); /* NULL is fine */

/* A place in the first stream that the host can wait for, to read what was downloaded before it. */
kith_status ki_cuda_event_new(ki_backend *backend, cudaEvent_t *ret_event, kith_error *err);
void ki_cuda_event_free(cudaEvent_t event); /* NULL is fine */
kith_status ki_cuda_event_record(ki_backend *backend, cudaEvent_t event, kith_error *err);
kith_status ki_cuda_event_wait(cudaEvent_t event, kith_error *err);

/* Crop, mirror and normalise bytes into an input (layout/images.c). */
kith_status ki_cuda_images(ki_backend *backend, const ki_image_step *step, const ki_edge *edge, void *dst,
                           kith_error *err);
/* Ranks over NCCL (comm/nccl.c). */
kith_status ki_cuda_nccl_open(ki_backend *backend, struct ki_comm *comm, struct ki_device_comm **ret_device,
                              kith_error *err);
/* The second stream as device/backend.h has it (queues.c). */
extern const ki_queue_type ki_cuda_queues;

extern const ki_backend_type ki_backend_cuda;

/* One record per op, each in the room of its kind. */
#define X(NAME, name) extern const ki_kernel_type ki_cuda_##name;
#include "device/op.def"
#undef X

kith_status ki_cuda_join(ki_backend *backend, const ki_edge *edge, int n_parts, const void *const *parts,
                         const void *mask, void *dst, kith_error *err);

kith_status ki_cuda_optim(ki_backend *backend, const ki_optim_step *step, kith_error *err);
kith_status ki_cuda_sum_squares(ki_backend *backend, int n_runs, const ki_optim_run *runs, double *dst,
                                kith_error *err);

#ifdef __cplusplus
}
#endif

#endif
