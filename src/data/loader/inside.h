/* What the files of the loader share: its batches, and the loader itself. loader.c says how they are used. */
#ifndef KI_LOADER_INSIDE_H
#define KI_LOADER_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "data/loader/cache.h"
#include "data/loader/loader.h"

typedef enum ki_loader_slot_state {
    KI_SLOT_FREE,
    KI_SLOT_FILLING,
    KI_SLOT_READY,
    KI_SLOT_HELD
} ki_loader_slot_state;

typedef struct ki_loader_slot {
    ki_loader_slot_state state;
    ki_loader_batch batch;
    void *data;
    int32_t *label, *window;
    int64_t *item;
    bool *left_out;
    int64_t first;     /* position of the batch's first image in its epoch */
    int64_t begin;     /* … and in the batch, of the first image that is read here */
    size_t item_bytes; /* of one of its images */
    int64_t n_taken, n_done;
} ki_loader_slot;

typedef struct ki_loader_scratch {
    ki_bytes bytes;
    ki_image image, base;
    ki_image kept; /* a view of the cache */
    ki_transform_scratch transform;
} ki_loader_scratch;

struct ki_loader {
    const kith_dataset *set;
    ki_loader_settings settings;
    ki_sampler *sampler;
    ki_cache *cache, *own_cache;
    size_t item_bytes;             /* of one image in a batch, at most */
    int64_t n_at_once;             /* images that a worker takes at once */
    int64_t batch_size, part_size; /* the most images of a batch, and of the part that is read here */
    atomic_uchar *bad_status;      /* per item of the data set: KITH_OK until it could not be read */

    pthread_mutex_t mutex;
    pthread_cond_t work, done; /* something to take; a batch is ready */
    ki_loader_slot *slots;
    int n_slots;
    int64_t n_planned, n_out; /* batches planned, and batches returned to the caller */
    int64_t n_tried;
    int64_t n_calm; /* reads since one waited for a disk; only while it matters */
    bool has_ended, must_stop;
    kith_status status; /* the first failure … */
    kith_error error;   /* … and its text */
    int64_t n_bad;
    int64_t *bad_here; /* items, in the order in which they were found */
    size_t n_bad_here, bad_here_capacity;
    char *bad[KI_MOST_BAD_NAMED];
    double wait_s;
    atomic_int_least64_t n_decoded, n_from_cache;

    pthread_t *threads;
    int n_threads;
    bool has_mutex, has_conditions;
};

/* Read items first … first + n of a batch to where they belong, bad ones as the settings say. The mutex is not held. Only images need
 * the scratch memory. */
kith_status ki_loader_make_items(ki_loader *loader, ki_loader_slot *to, int64_t first, int64_t n,
                                 ki_loader_scratch *scratch, kith_error *err);

#endif
