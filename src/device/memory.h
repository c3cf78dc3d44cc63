/* Memory of a backend: tensors as kernels see them, and how bytes get there and back.
 *
 * Layout. An activation is PLAIN (row-major [mb, c, h, w], [mb, t, c] or [mb, c]) or NATIVE, the backend's own
 * form of [mb, c, h, w] (ref: plain; cpu: blocks of 16 channels; cuda: NHWC). Everything [mb, t, c] and [mb, c] is
 * plain. All maps are native, except that the input of a first convolution is plain images. Kernels may
 * rely on this. In both, the images of a tensor that is no slice follow each other, each in bytes / mb. No layer above the backend
 * computes any other address inside a tensor. */
#ifndef KI_DEVICE_MEMORY_H
#define KI_DEVICE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/real.h"
#include "base/shape.h"

typedef struct ki_backend ki_backend; /* device/backend.h */

typedef enum ki_layout { KI_PLAIN, KI_NATIVE } ki_layout;

/* One tensor between two kernels, or its gradient: both have the same layout.
 *
 * A map may be a slice of the channels of a wider one: `pitch` is then the wider one's channels, the
 * elements from one pixel to the next, and the pointer that goes with the edge is that of the slice's
 * first channel. Only backends that CAN_SLICE_CONCAT (their native maps have the channels of a pixel
 * side by side) ever see one; slices start at and hold multiples of KI_SLICE_ALIGN channels. */
typedef struct ki_edge {
    ki_shape shape;
    ki_layout layout;
    size_t bytes;  /* without the gaps between the pixels of a slice */
    int64_t pitch; /* 0: not a slice; same as dim[1] */
} ki_edge;

enum { KI_SLICE_ALIGN = 8 };

/* Calls are queued and may return before they are done; `sync` waits. Host pointers given to upload and download must stay
 * valid until then. All pointers are required. */
typedef struct ki_memory_type {
    kith_status (*alloc)(ki_backend *backend, size_t bytes, void **ret_ptr, kith_error *err);
    void (*free)(ki_backend *backend, void *ptr); /* NULL is fine */
    kith_status (*upload)(ki_backend *backend, void *dst, const void *host, size_t bytes, kith_error *err);
    kith_status (*download)(ki_backend *backend, const void *src, void *host, size_t bytes, kith_error *err);
    kith_status (*zero)(ki_backend *backend, void *dst, size_t bytes, kith_error *err);
    kith_status (*sync)(ki_backend *backend, kith_error *err);

    /* Bytes an activation takes; 0 when it cannot be represented. */
    size_t (*edge_bytes)(const ki_backend *backend, const ki_shape *shape, ki_layout layout);
    /* Between plain ki_real host memory and an edge's device memory; counted as reorders. */
    kith_status (*import)(ki_backend *backend, const ki_edge *edge, void *dst, const ki_real *host,
                          kith_error *err);
    kith_status (*export)(ki_backend *backend, const ki_edge *edge, const void *src, ki_real *host,
                          kith_error *err);
} ki_memory_type;

#endif
