/* Forward: batches of images through an inference plan, with one row per image as the result. A row is the value of a tap,
 * or what a describer makes of several taps.
 *
 *     for each batch: ki_forward_add(forward, &batch, &vectors, err);
 *     ki_forward_finish(forward, err);           // now all rows are there
 *
 * On a device the next batch is copied while one is computed, the forward is recorded once and launched again, and
 * rows stay on the device or are copied back while the next batch runs, as the vectors ask. Each add uses the parameters as
 * they are then. */
#ifndef KI_FORWARD_H
#define KI_FORWARD_H

#include "device/vectors.h"
#include "embed/feed.h"
#include "nn/plan.h"

/* A describer makes rows from the taps it names: descriptors that a term of an objective offers at test time. Its functions
 * are called with `user`, while one forward exists. */
typedef struct ki_describer {
    int64_t dim;                   /* numbers of a row */
    const char *taps[KI_MAX_TAPS]; /* of the plan; NULL-terminated */
    void *user;
    /* The plan is there, for batches of `batch` images. *ret_there: memory of the backend [batch, dim] where `queue` makes the
     * rows. */
    kith_status (*open)(void *user, ki_plan *plan, const ki_feed *feed, int64_t batch, float **ret_there,
                        kith_error *err);
    /* Queue the work that makes the rows, after a forward pass that is queued; may be captured. */
    kith_status (*queue)(void *user, kith_error *err);
    /* Undoes open, also one that failed. */
    void (*close)(void *user);
} ki_describer;

/* Everything behind a pointer is borrowed and must outlive the forward, except the transform. */
typedef struct ki_forward_settings {
    ki_backend *backend;
    const ki_net *net;
    ki_params *params;
    const char *tap;               /* a row is the value of this tap … */
    const ki_describer *describer; /* … unless there is a describer */
    int64_t batch;                 /* the most images at once; memory is planned for so many */
    ki_batch_format format;        /* ki_feed_format says what suits the backend */
    const kith_transform *transform;
} ki_forward_settings;

typedef struct ki_forward_batch {
    int64_t n;             /* 1 … settings.batch */
    const void *data;      /* in settings.format; borrowed until the call returns */
    const int32_t *window; /* [n, 3] with KI_BATCH_WHOLE, else NULL */
} ki_forward_batch;

typedef struct ki_forward ki_forward;

kith_status ki_forward_new(const ki_forward_settings *settings, ki_forward **ret_forward, kith_error *err);
void ki_forward_free(ki_forward *forward); /* NULL is fine */
int64_t ki_forward_dim(const ki_forward *forward);
const ki_plan *ki_forward_plan(const ki_forward *forward); /* for its figures */
/* Whether rows are made in the backend's memory and may stay there. */
bool ki_forward_can_stay(const ki_forward *forward);

/* Add n rows after those of `to`, which has room for them: in its device memory if it has any (ki_forward_can_stay),
 * else in its host memory, written by the time of the next finish. The vectors must stay until then. Labels and items
 * are left alone. */
kith_status ki_forward_add(ki_forward *forward, const ki_forward_batch *batch, ki_vectors *to,
                           kith_error *err);
kith_status ki_forward_finish(ki_forward *forward, kith_error *err);
/* Forget rows that were added and are not finished. Their vectors may then be freed. */
void ki_forward_abandon(ki_forward *forward);

#endif
