/* A whole step recorded once and launched again: what device/recording.h is built on. */
#ifndef KI_DEVICE_CAPTURE_H
#define KI_DEVICE_CAPTURE_H

#include "base/error.h"

typedef struct ki_backend ki_backend; /* device/backend.h */

/* Between begin and end calls are recorded instead of run; launch replays them. (optional, all four or none) NULL means that
 * the backend records nothing: every call of a step is made anew. */
typedef struct ki_capture_type {
    kith_status (*begin)(ki_backend *backend, kith_error *err);
    kith_status (*end)(ki_backend *backend, void **ret_step, kith_error *err);
    kith_status (*launch)(ki_backend *backend, void *step, kith_error *err);
    void (*free)(ki_backend *backend, void *step);
} ki_capture_type;

#endif
