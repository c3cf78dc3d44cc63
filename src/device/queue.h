/* Queues of a device: copies beside the main queue, and marks to wait for. */
#ifndef KI_DEVICE_QUEUE_H
#define KI_DEVICE_QUEUE_H

#include <stddef.h>

#include "base/error.h"

typedef struct ki_backend ki_backend; /* device/backend.h */

/* What a device adds to plain calls: copies beside the main queue, and marks that one queue or the host can
 * wait for. Nothing here may be called while a step is recorded (device/capture.h). All pointers are required. */
typedef enum ki_queue { KI_QUEUE_MAIN, KI_QUEUE_COPY } ki_queue;
typedef struct ki_mark ki_mark;

typedef struct ki_queue_type {
    /* Host memory that is copied at full speed and without the host's help. */
    kith_status (*host_alloc)(ki_backend *backend, size_t bytes, void **ret_ptr, kith_error *err);
    void (*host_free)(ki_backend *backend, void *ptr); /* NULL is fine */
    /* Queue a copy between such memory and the device's, or inside the device's. */
    kith_status (*copy)(ki_backend *backend, ki_queue queue, void *dst, const void *src, size_t bytes,
                        kith_error *err);
    kith_status (*mark_new)(ki_backend *backend, ki_mark **ret_mark, kith_error *err);
    void (*mark_free)(ki_backend *backend, ki_mark *mark); /* NULL is fine */
    /* The mark is passed when everything queued so far is done. */
    kith_status (*mark_set)(ki_backend *backend, ki_mark *mark, ki_queue queue, kith_error *err);
    /* Work queued from now on starts after the mark; the host does not wait. */
    kith_status (*mark_follow)(ki_backend *backend, const ki_mark *mark, ki_queue queue, kith_error *err);
    /* The host waits for the mark. A mark that was never set is passed. */
    kith_status (*mark_wait)(ki_backend *backend, const ki_mark *mark, kith_error *err);
    /* Seconds between two marks; the host waits for both. */
    kith_status (*mark_seconds)(ki_backend *backend, const ki_mark *from, const ki_mark *to,
                                double *ret_seconds, kith_error *err);
    /* Of the whole device, counting all processes: bytes in use and bytes in total. */
    kith_status (*memory)(ki_backend *backend, size_t *ret_used, size_t *ret_all, kith_error *err);
} ki_queue_type;

#endif
