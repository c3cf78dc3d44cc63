/* An embedder: a model with everything else that decides what its vectors are, so that an index can tell which embedder made
 * it, and refuse the vectors of another.
 *
 *     KITH_OPTIONS(kith_embedder_options, options);
 *     options.model = "run/model.safetensors";
 *     kith_embedder *embedder = NULL;
 *     kith_embedder_open(&options, &embedder, &err);
 *     kith_embedder_query(embedder, &image, 1, NULL, row, &err);
 *
 * An embedder is used by one thread at a time. */
#ifndef KITH_EMBEDDER_H
#define KITH_EMBEDDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/index.h"
#include "kith/model.h"
#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kith_embedder kith_embedder;

/* Zero or NULL means: as the model's file says, else the default. Strings are borrowed for the call. */
typedef struct kith_embedder_options {
    size_t size;       /* of the struct: set by kith_embedder_options_init */
    const char *model; /* a safetensors file; yours to set */
    const char *backbone, *settings, *pool, *tap, *resize; /* as in kith_model_options, kith_embed_options */
    int64_t side;                                          /* of the model's input, in pixels */
    const char *device;    /* these do not count as another embedder: vectors differ by rounding only */
    const char *precision; /* as in kith_model_options */
    bool tf32;
    int64_t batch;
} kith_embedder_options;

/* All 0 and NULL. */
KITH_API void kith_embedder_options_init(kith_embedder_options *options, size_t size);

/* Open the model and hash its file. KITH_EINVAL without a file: random weights have no name that an index could keep. */
KITH_API kith_status kith_embedder_open(const kith_embedder_options *options, kith_embedder **ret_embedder,
                                        kith_error *err);
/* Open the embedder that an index was made with (kith_embedder_remember). Of the options only the model's file, if it lies
 * elsewhere now, device, precision, tf32 and batch count; NULL: as it was made, on the CPU. KITH_ENOTFOUND when the index does
 * not say which model made it; KITH_EINVAL when the file is another model now. */
KITH_API kith_status kith_embedder_open_index(const kith_index *index, const kith_embedder_options *options,
                                              kith_embedder **ret_embedder, kith_error *err);
KITH_API void kith_embedder_free(kith_embedder *embedder); /* NULL is fine */

/* The number of values of a vector. */
KITH_API int64_t kith_embedder_dim(const kith_embedder *embedder);
/* SHA-256 of the model's file in hex, and the rest in words: what kith_index_options and kith_index_expect ask for. They
 * live as long as the embedder. */
KITH_API const char *kith_embedder_hash(const kith_embedder *embedder);
KITH_API const char *kith_embedder_preprocess(const kith_embedder *embedder);
/* The model, for whatever else it can do; it stays the embedder's. */
KITH_API kith_model *kith_embedder_model(kith_embedder *embedder);

/* The curve of false-match rates in the model's file, where it holds for this embedder's vectors by that metric. KITH_ENOTFOUND: there
 * is none. */
KITH_API kith_status kith_embedder_calibration(const kith_embedder *embedder, kith_metric metric,
                                               kith_calibration *ret_calibration, kith_error *err);

/* Write into the index what kith_embedder_open_index needs, and, where the model's file has one for the index's metric, the
 * curve of false-match rates. Counts from the next commit on. */
KITH_API kith_status kith_embedder_remember(const kith_embedder *embedder, kith_index *index,
                                            kith_error *err);

/* Embed n items of a data set, as kith_model_embed_items does. progress may be NULL. */
KITH_API kith_status kith_embedder_items(kith_embedder *embedder, const kith_dataset *dataset,
                                         const int64_t *items, int64_t n, kith_progress_fn progress,
                                         void *user, kith_vectors **ret_vectors, kith_error *err);

/* Measure how often different things look alike: embed a split of a data set whose classes the model was not trained on, and
 * write the curve of false-match rates into the index (kith_index_calibrate), by the index's metric; its source is "data". Counts from the next commit
 * on. KITH_EINVAL when the split has no two images of one class, or of two. progress may be NULL. */
KITH_API kith_status kith_embedder_calibrate(kith_embedder *embedder, const kith_dataset *dataset,
                                             kith_split split, kith_index *index, kith_progress_fn progress,
                                             void *user, kith_calibration *ret_calibration, kith_error *err);

/* ---- queries ---- */

/* One image of a query. */
typedef struct kith_query_image {
    const char *path;  /* a file, or … */
    const void *bytes; /* … the contents of one, when path is NULL, or … */
    size_t n_bytes;
    const kith_pixels *pixels; /* … an image that is decoded already, when it is not NULL */
    bool has_box;
    double box[4]; /* only this part: x, y, width, height in pixels of the upright image */
    double weight; /* above 0: like it; below 0: unlike it */
} kith_query_image;

typedef struct kith_query_options {
    size_t size;         /* of the struct: set by kith_query_options_init */
    bool flips;          /* the mean of the image and its mirror image */
    int64_t most_pixels; /* an image with more is refused; 0: 100 million */
} kith_query_options;

/* All 0. */
KITH_API void kith_query_options_init(kith_query_options *options, size_t size);

/* One query from n images: ret_row [dim] receives the model's vector of the only image, or the sum of the images' normalised
 * vectors times their weights. options NULL: the defaults. KITH_EINVAL names a box outside its image, and is returned when
 * all weights are 0 or negative, or the sum is 0. */
KITH_API kith_status kith_embedder_query(kith_embedder *embedder, const kith_query_image *images, int64_t n,
                                         const kith_query_options *options, float *ret_row, kith_error *err);

/* The model's vectors of n pictures that are decoded already: ret_rows [n, dim]. For programs that decode elsewhere, and for many
 * queries at once. Any n goes through the network in groups of a few sizes, each planned once. */
KITH_API kith_status kith_embedder_pixels(kith_embedder *embedder, const kith_pixels *images, int64_t n,
                                          float *ret_rows, kith_error *err);

/* One query from n vectors [n, dim], as kith_embedder_query makes it from n images: the only row as it is, or the sum of the
 * normalised rows times their weights [n]. KITH_EINVAL when no weight is above 0, or the sum is 0. */
KITH_API kith_status kith_query_combine(const float *rows, const double *weights, int64_t n, int64_t dim,
                                        float *ret_row, kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
