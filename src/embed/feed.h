/* Feed: batches from host memory to where a device's step reads them.
 *
 * A batch is copied to staging memory while the device does other work. From there, in the order of the
 * main queue, its images become the input of a plan, and labels, crop windows and a few numbers
 * go where recorded work expects them. All addresses stay the same for the life of the feed.
 *
 * Other networks may see the same batches, each prepared its own way from the same pixels (ki_feed_add_view). */
#ifndef KI_FEED_H
#define KI_FEED_H

#include "data/loader/loader.h"
#include "device/backend.h"
#include "net/net.h"

typedef struct ki_feed ki_feed;

enum { KI_FEED_NUMBERS = 3 };

/* The format that a loader should use for this backend, and where it should put batches. On the host, and for networks that
 * take features: floats. On a device: bytes in pinned memory, whole images where the transform allows it. net NULL: one that takes
 * images. */
ki_batch_format ki_feed_format(const ki_backend *backend, const ki_net *net, const kith_transform *transform);
ki_batch_memory ki_feed_memory(ki_backend *backend);

/* A batch has 1 … most images. */
kith_status ki_feed_check_size(int64_t n, int64_t most, kith_error *err);

/* Of at most `batch` images. On the host they must be floats: KITH_EUNSUPPORTED. The transform is borrowed for the call and may be NULL with
 * KI_BATCH_FLOAT. */
kith_status ki_feed_new(ki_backend *backend, const ki_net *net, int64_t batch, ki_batch_format format,
                        const kith_transform *transform, ki_feed **ret_feed, kith_error *err);
void ki_feed_free(ki_feed *feed); /* NULL is fine */

/* Backend memory: [batch] labels and the numbers of the batch brought last. */
const int32_t *ki_feed_labels(const ki_feed *feed);
const uint64_t *ki_feed_numbers(const ki_feed *feed);

/* Another network wants every batch, too: channel order, mean and standard deviation are its own. From now on ki_feed_bring takes one
 * more destination, in the order of these calls. KITH_ESHAPE: it takes images of another size or number of channels than the
 * feed's network. */
kith_status ki_feed_add_view(ki_feed *feed, const ki_net *net, kith_error *err);

/* Where a plan has its input (ki_plan_input_memory). */
typedef struct ki_feed_place {
    ki_edge edge;
    void *input;
} ki_feed_place;

typedef struct ki_feed_batch {
    int64_t n;
    const void *data;      /* in the format */
    const int32_t *window; /* [n, 3] with KI_BATCH_WHOLE, else NULL */
    const int32_t *label;  /* [n]; NULL: none */
    uint64_t number[KI_FEED_NUMBERS];
    const ki_feed_place *view; /* one for each view of the feed; NULL: nobody else wants this batch */
    int64_t
        side; /* of the images, at most that of the feed's network, if they are not whole; 0: the network's */
} ki_feed_batch;

/* Bytes of an image of a side (0: the network's) in the feed's format: where the next one begins in the data of a batch. */
size_t ki_feed_image_bytes(const ki_feed *feed, int64_t side);

/* Queue a batch: `input` is where the plan has it (ki_plan_input_memory). The memory of `data` may not
 * change before ki_feed_wait. A batch of 0 images brings its numbers alone; `input` and the views are not read then. */
kith_status ki_feed_bring(ki_feed *feed, const ki_feed_batch *batch, const ki_edge *input_edge, void *input,
                          kith_error *err);
/* The host waits until the last batch has been copied out of its memory. */
kith_status ki_feed_wait(ki_feed *feed, kith_error *err);

#endif
