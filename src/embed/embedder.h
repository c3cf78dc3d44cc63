/* Embedder: images to vectors on one backend. Evaluations during training, kith embed, kith eval and the public API all
 * use it.
 *
 *     items of a data set ─ loader (decodes ahead) ─┐
 *     decoded images ──── transform ────────────────┼─► forward (embed/forward.h) ─► ki_vectors, where they were made
 *     ready-made floats ────────────────────────────┘
 *
 * An embedder keeps the plan of its last call. Each call uses the parameters as they are then, so it can be called between
 * any two training steps. Use it from one thread at a time. */
#ifndef KI_EMBEDDER_H
#define KI_EMBEDDER_H

#include "data/dataset/dataset.h"
#include "embed/forward.h"
#include "kith/knn.h"

typedef struct ki_embedder ki_embedder;

/* Pointers are borrowed and must outlive the embedder. */
typedef struct ki_embedder_settings {
    ki_backend *backend;
    const ki_net *net;
    ki_params *params;
    kith_transform transform; /* not random; images become what the network takes (embed/preprocess.h) */
    int64_t batch;            /* images per pass */
    int64_t n_workers;        /* threads that decode; 0: one per core */
} ki_embedder_settings;

kith_status ki_embedder_new(const ki_embedder_settings *settings, ki_embedder **ret_embedder,
                            kith_error *err);
void ki_embedder_free(ki_embedder *embedder); /* NULL is fine */
/* From now on images are prepared by this transform, and items decoded by so many threads. The plan stays, so that where it takes
 * bytes (ki_feed_format) the transform must make the same of them as the one before. */
void ki_embedder_set_loading(ki_embedder *embedder, const kith_transform *transform, int64_t n_workers);
/* From now on it makes the vectors of this view of every image (ki_draw_test_view), 0 at the beginning; prepared images of items are kept in
 * the cache, and taken from there (NULL: no cache). views.h calls it. */
struct ki_cache;
void ki_embedder_set_view(ki_embedder *embedder, int view, struct ki_cache *cache);
/* Free the plan and its memory; the next call makes a new one. A describer that was used must stay valid until this, or
 * until a call with another tap or describer. */
void ki_embedder_drop_plan(ki_embedder *embedder);

/* What to make of which images. */
typedef struct ki_embed_request {
    const kith_dataset *set;
    const int64_t *items; /* [n] of the set */
    int64_t n;
    const char *tap;               /* a row is the value of this tap … */
    const ki_describer *describer; /* … unless there is a describer, which makes it */
    bool on_host;              /* rows are wanted on the host: they are copied while the next batch runs */
    int64_t most_bad;          /* unreadable images tolerated; the next is an error. Negative: any number */
    int64_t most_pixels;       /* an image with more is refused; 0: the decoder's limit */
    kith_progress_fn progress; /* between batches, in images tried; non-zero: KITH_ECANCELED. May be NULL */
    void *user;
} ki_embed_request;

/* Vectors of the images that could be read, in the order of the items, with labels, items and, where the set has
 * them, roles. They stay on the backend if it has queues and enough memory. KITH_ENUMERIC names the first
 * image whose row is not finite; KITH_EFORMAT when no image could be read. */
kith_status ki_embedder_items(ki_embedder *embedder, const ki_embed_request *request, ki_vectors *ret_vectors,
                              kith_error *err);

/* Of the last ki_embedder_items: images that could not be read, the first of them as "PATH: why" (NULL past the first
 * KI_MOST_BAD_NAMED), and the status of the place-th of its items. */
int64_t ki_embedder_n_bad(const ki_embedder *embedder);
const char *ki_embedder_bad(const ki_embedder *embedder, int64_t i);
kith_status ki_embedder_status(const ki_embedder *embedder, int64_t place);

/* Values [n, …] of a tap for n images that are the network's input already: float [n, c, h, w]. KITH_ENUMERIC for
 * input or values that are not finite, with the image's number. */
kith_status ki_embedder_floats(ki_embedder *embedder, const float *images, int64_t n, const char *tap,
                               float *ret_values, kith_error *err);
/* The same for decoded images of any size, which are prepared as files are. */
kith_status ki_embedder_images(ki_embedder *embedder, const ki_image *images, int64_t n, const char *tap,
                               float *ret_values, kith_error *err);

#endif
