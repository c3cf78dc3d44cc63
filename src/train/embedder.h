/* Embedder: images through an inference plan, the values of one tap out, in the order they came.
 *
 *     for each batch: ki_embedder_add(embedder, &batch, rows, err), rows += batch.n * dim;
 *     ki_embedder_finish(embedder, err);           // now all rows are there
 *
 * On a device the next batch is copied, and the last one's values come back, while one is computed. An
 * embedder sees the parameters as they are at each add. */
#ifndef KI_EMBEDDER_H
#define KI_EMBEDDER_H

#include "nn/plan.h"
#include "train/feed.h"

typedef struct ki_embedder ki_embedder;

/* Everything named by a pointer is borrowed and must outlive the embedder, but for the transform. */
typedef struct ki_embedder_settings {
    ki_backend *backend;
    const ki_net *net;
    ki_params *params;
    const char *tap;
    int64_t batch;          /* most images at once */
    ki_batch_format format; /* ki_feed_format says what suits the backend */
    const kith_transform *transform;
} ki_embedder_settings;

typedef struct ki_embedder_batch {
    int64_t n;             /* 1 … settings.batch */
    const void *data;      /* in settings.format; borrowed until the call returns */
    const int32_t *window; /* [n, 3] with KI_BATCH_WHOLE, else NULL */
} ki_embedder_batch;

kith_status ki_embedder_new(const ki_embedder_settings *settings, ki_embedder **ret_embedder,
                            kith_error *err);
void ki_embedder_free(ki_embedder *embedder); /* NULL is fine */
int64_t ki_embedder_dim(const ki_embedder *embedder);
const ki_plan *ki_embedder_plan(const ki_embedder *embedder); /* for its figures */

/* Rows [n, dim] are written by the time of the next finish; their memory must stay until then. */
kith_status ki_embedder_add(ki_embedder *embedder, const ki_embedder_batch *batch, float *ret_rows,
                            kith_error *err);
kith_status ki_embedder_finish(ki_embedder *embedder, kith_error *err);

#endif
