/* The loader: worker threads that keep a bounded queue of finished batches.
 *
 * Batches come in the sampler's order, whatever the number of workers. Workers continue with the next epoch
 * while the last batches of this one are being used. All buffers are allocated when the loader is made. */
#ifndef KI_LOADER_H
#define KI_LOADER_H

#include "comm/comm.h"
#include "data/dataset/dataset.h"
#include "data/sampler/sampler.h"
#include "data/transform/crop_sides.h"

typedef struct ki_loader ki_loader;

typedef enum ki_batch_format {
    KI_BATCH_FLOAT, /* float [n, channels, crop, crop], normalised; of a set of features float [n, dim] */
    KI_BATCH_BYTES, /* uint8 [n, crop, crop, channels], RGB, for a device that normalises */
    KI_BATCH_WHOLE, /* uint8 [n, side, side, channels], RGB, for a device that also cuts and mirrors what
                       `window` says; only where ki_transform_window_side gives a side */
} ki_batch_format;

typedef enum ki_bad_images {
    KI_BAD_REPLACE, /* by the next readable image of the class: batches keep their size */
    KI_BAD_SKIP,    /* the batch gets smaller */
} ki_bad_images;

/* Where the memory of batches comes from; for pinned memory. take may return NULL. All NULL: the heap. */
typedef struct ki_batch_memory {
    void *(*take)(void *user, size_t bytes);
    void (*give)(void *user, void *memory);
    void *user;
} ki_batch_memory;

typedef struct ki_loader_settings {
    kith_transform transform; /* features have none: only KI_BATCH_FLOAT */
    ki_crop_sides sides;      /* of the batches; none with KI_BATCH_WHOLE */
    ki_batch_format format;
    ki_bad_images bad;
    uint64_t seed;      /* of the random part of the transform */
    int view;           /* of images, of a transform that is not random: ki_draw_test_view */
    bool draws_views;   /* of features with several views (views.c): one of them, by chance; else view 0 */
    int64_t n_workers;  /* 0: one per core */
    int n_ahead;        /* finished batches waiting at most; 0: 3 */
    int64_t n_epochs;   /* stop after so many epochs; 0: never */
    size_t cache_bytes; /* for prepared images; 0: no cache */
    struct ki_cache *cache; /* borrowed, for the set's items; NULL: the loader makes one of cache_bytes */
    int64_t most_pixels;
    int64_t most_bad; /* unreadable images tolerated; negative: any number */
    ki_batch_memory memory;
    /* The caller computes with all cores between two calls, on the host. Workers would only take cores from it: it reads
     * features itself, with its own threads, as long as no disk is waited for. Images are not read this way. */
    bool caller_computes;
    /* Batches are dealt out over its ranks (ki_comm_own), and this loader reads its rank's part: random numbers are the same as
     * for the whole batch. Only with KI_BAD_REPLACE. NULL: it reads all. */
    const ki_comm *comm;
} ki_loader_settings;

typedef struct ki_loader_batch {
    int64_t n;            /* 0: the end, or, over ranks, nothing for this rank */
    int64_t n_all;        /* images of the whole batch; 0: the end */
    int64_t first;        /* the place of this rank's first image in it */
    const int64_t *items; /* [n_all] what the sampler asked for; this rank's after replacement */
    const void *data;
    const int32_t *label;
    const int32_t *window; /* KI_BATCH_WHOLE: [n, 3], x and y of the crop and 1 to mirror it; else NULL */
    const int64_t *item;   /* of the data set; what is shown, after replacement */
    uint32_t epoch;
    int64_t number;         /* in the epoch */
    int32_t side;           /* of the images: `crop` in the formats */
    int64_t n_tried;        /* images the sampler asked for, with those left out */
    ki_sampler_state after; /* restore the sampler to this to continue after this batch */
} ki_loader_batch;

/* The loader owns the sampler (it is freed with the loader, and on failure too). The sampler may have been
 * restored to any position; `batch_size` is the most it puts into a batch. The data set is borrowed and must
 * not change meanwhile. */
kith_status ki_loader_new(const kith_dataset *set, ki_sampler *sampler, int64_t batch_size,
                          const ki_loader_settings *settings, ki_loader **ret_loader, kith_error *err);
/* The listed items once, in order, `batch_size` at a time: for reading them all, not for training. */
kith_status ki_loader_new_once(const kith_dataset *set, const int64_t *items, int64_t n, int64_t batch_size,
                               const ki_loader_settings *settings, ki_loader **ret_loader, kith_error *err);
/* Stops the workers wherever they are; NULL is fine. */
void ki_loader_free(ki_loader *loader);

/* The next batch, borrowed until the following call or ki_loader_free. After an error the loader only
 * repeats it. To be called from one thread. */
kith_status ki_loader_next(ki_loader *loader, ki_loader_batch *ret_batch, kith_error *err);

/* Unreadable images so far: how many, and "PATH: why" for the first KI_MOST_BAD_NAMED (else NULL). */
enum { KI_MOST_BAD_NAMED = 100 };
int64_t ki_loader_n_bad(ki_loader *loader);
const char *ki_loader_bad(ki_loader *loader, int64_t i);
/* Over ranks: the items that were found unreadable here, [ki_loader_n_bad_here] so far, and those that other ranks have found, so that
 * they count here, too, and are not tried. KITH_EFORMAT when these are too many. */
int64_t ki_loader_n_bad_here(ki_loader *loader);
int64_t ki_loader_bad_here(ki_loader *loader, int64_t i);
kith_status ki_loader_add_bad(ki_loader *loader, int64_t item, kith_error *err);
/* Why an item of the data set could not be read; KITH_OK when it could, or was not tried yet. */
kith_status ki_loader_item_status(ki_loader *loader, int64_t item);

typedef struct ki_loader_stats {
    int64_t n_decoded, n_from_cache; /* images */
    size_t cache_bytes;
    double wait_s; /* time ki_loader_next spent waiting: near 0 when the loader is fast enough */
} ki_loader_stats;

ki_loader_stats ki_loader_stats_get(ki_loader *loader);

#endif
