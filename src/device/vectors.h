/* Vectors: one row of float32 per image. Rows stay where they were made.
 *
 * They are in the memory of the backend that made them, or in host memory. ki_vectors_host copies them to the host, the
 * first time it is called. Labels and items say which image each row belongs to. */
#ifndef KI_VECTORS_H
#define KI_VECTORS_H

#include "device/backend.h"

typedef struct ki_vectors {
    int64_t n, dim;      /* rows filled so far */
    int64_t n_room;      /* rows there is room for */
    ki_backend *backend; /* the one that made them, borrowed, so that others can work there. NULL: none */
    float *device;       /* [n_room, dim] in the backend's memory; NULL: the rows are on the host */
    float *host;         /* [n_room, dim]; with `device` NULL until ki_vectors_host */
    int64_t *label;      /* [n_room]; of the data set, -1: none */
    int64_t *item;       /* [n_room]; of the data set, or of the list that was given */
    uint8_t *role;       /* [n_room] of kith_role (kith/data.h); NULL: every row is query and gallery */
} ki_vectors;

/* Memory for rows, none of which is filled yet: on the backend, or on the host. */
kith_status ki_vectors_init(ki_backend *backend, bool on_device, int64_t n_room, int64_t dim,
                            ki_vectors *ret_vectors, kith_error *err);
void ki_vectors_release(ki_vectors *vectors); /* fine on a zeroed struct; before its backend is closed */

/* The rows [n, dim] on the host, owned by the vectors. On a device this waits for what is queued, and copies the first
 * time. */
kith_status ki_vectors_host(ki_vectors *vectors, const float **ret_rows, kith_error *err);

#endif
