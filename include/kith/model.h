/* Models: a backbone with its weights, pooling and heads, how it wants its images, and who it is: ready to turn images into
 * embeddings and queries, and so that an index can tell which model made it, and refuse the vectors of another.
 *
 *     KITH_OPTIONS(kith_model_options, options);
 *     options.weights = "runs/birds"; // or a safetensors file
 *     kith_model *model = NULL;
 *     if (kith_model_open(&options, &model, &err) != KITH_OK) …
 *     kith_model_embed_files(model, paths, n, NULL, out, NULL, &err);
 *     kith_model_query(model, &image, 1, NULL, row, &err);
 *     kith_model_free(model);
 *
 * A tap is a place whose values can be read: "map" [c, h, w], the last feature map; "pooled" [c];
 * "embedding" [d] and "logits" [classes] when the model has those heads; "features" is the map that is pooled, if the model has a
 * convolution before "map". A model is used by one
 * thread at a time; different models are independent. */
#ifndef KITH_MODEL_H
#define KITH_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/array.h"
#include "kith/calibration.h"
#include "kith/data.h"
#include "kith/status.h"
#include "kith/vectors.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KITH_MOST_CHANNELS 4

/* How a model's input is made from pixels: input channel k = (pixel * scale - mean[k]) / std[k], pixels being
 * 0 to 255. mean and std are in the order of the input's channels: with bgr, [0] is blue. */
typedef struct kith_preprocess {
    bool bgr;
    double scale;
    double mean[KITH_MOST_CHANNELS], std[KITH_MOST_CHANNELS];
    char resize[16];       /* before the centre crop of the input's size: "squash256"; empty: not known */
    char filter[16];       /* of resizing: "bicubic"; empty: bilinear */
    uint8_t background[3]; /* under alpha and around the image, RGB */
} kith_preprocess;

/* For sizes of heads: leave the head out even though the weights file has it. */
#define KITH_NONE (-1)

/* Zero or NULL means: as the weights file says, else the backbone's default. Strings are borrowed
 * for the call that takes the options. */
typedef struct kith_model_options {
    size_t size;          /* of the struct: set by kith_model_options_init */
    const char *backbone; /* may be NULL when the file was written by kith */
    /* A safetensors file, or the folder of a training run: its model.safetensors, else its best.safetensors; or "hub:NAME" for
     * weights in the hub's cache (kith/pull.h); or "general" for the model that came with kith (kith_model_find). NULL: random weights
     * drawn from `seed`, where a backbone is named, and "general" where none is */
    const char *weights;
    uint64_t seed;        /* also draws a head that the file does not have */
    const char *settings; /* the backbone's own options: "stride=1x1,preprocess=caffe" */
    int64_t channels, height, width;
    /* "avg", "max", "both" (their sum) or "gem" (the generalised mean, with a learned power) of the map; of vision transformers also
     * "class" (the class token), "class_avg" (it and the average of the patches, summed) or "attention" (SigLIP's learned query).
     * KITH_EINVAL where the network has no such token or layer */
    const char *pool;
    int64_t embedding;      /* size of the embedding layer; KITH_NONE: without */
    bool no_embedding_bias; /* a new embedding layer gets no bias */
    /* How a new embedding layer starts: "he" (default), "glorot", "caffe" (rows of norm 1) or "torch". If it is said, an embedding layer
     * of another size in the file is left out, and a new one begins; otherwise that is an error */
    const char *embedding_init;
    int64_t classes;       /* of the classifier; KITH_NONE: without */
    const char *device;    /* "cpu" (default), "cuda", "cuda:1", or "ref", the slow one that tests trust */
    const char *precision; /* "float32" (default) or "bf16", on devices that have it */
    bool tf32;             /* float32 products may use TF32 where the device has it */
    bool deterministic;    /* every run gives the same bits, also on a device */
    int64_t batch;         /* most images per pass; 0: 32, on a device 128 */
    int64_t heads;         /* of an ensemble that shares the weights of its heads; 1: a plain network */
    int64_t map_channels;  /* of a 1x1 convolution before the tap "map"; KITH_NONE: without */
    /* How the masks of new heads start. A mask is the sigmoid of what a 1x1 convolution makes of the map: its weights are
     * drawn within mask_gain times the Glorot bound (0: 1), and its biases are mask_bias. With a small gain all masks begin
     * near one half, with a bias above 0 nearer to 1. */
    double mask_gain, mask_bias;
    const char *tap, *resize; /* what kith_embed_options means where it says nothing; part of the identity */
    /* Of the input, as height and width, with the resizing before it in proportion (unless `resize` says it): the whole picture is seen in
     * fewer or more pixels, faster or more accurately. KITH_ESHAPE for one so small that the network's map is less than one number.
     * 0: the model's. kith_model_options_get says it as height, width and resize */
    int64_t side;
    /* Views of every image, whose vectors, each of length 1, are averaged: more accurate, and as many times slower. 1 (0): the centre crop; 2: and its
     * mirror image; up to 10: crops at the four corners, then their mirror images. Part of the identity. Not for floats, which are ready, and for
     * taps that are no vectors; explanations are of one view, and curves of false-match rates, too */
    int64_t views;
} kith_model_options;

/* All 0 and NULL. */
KITH_API void kith_model_options_init(kith_model_options *options, size_t size);

typedef struct kith_model kith_model;

/* The error lists missing and extra tensors of the weights file, and those of a wrong shape. */
KITH_API kith_status kith_model_open(const kith_model_options *options, kith_model **ret_model,
                                     kith_error *err);
KITH_API void kith_model_free(kith_model *model); /* NULL is fine */

/* The file that a name stands for: of the folder of a training run its model.safetensors, else its best.safetensors; of
 * "hub:NAME" the file in the hub's cache; any other name as it is. Into ret_file [bytes]. KITH_EIO for a folder that has neither,
 * KITH_ENOTFOUND for weights that are not in the cache.
 *
 * "general" is the model that came with kith, unless a file or folder of that name lies in the current folder; NULL is it in any case. It
 * is general.safetensors in the folder $KITH_MODELS if that is set, otherwise, starting from the folder of libkith or of the program
 * it is linked into, in ../share/kith/models, ../../share/kith/models (a library in lib/ARCHITECTURE), ../models or ../../models (a
 * build folder). KITH_ENOTFOUND: it is not installed. */
KITH_API kith_status kith_model_find(const char *name, char *ret_file, size_t bytes, kith_error *err);

/* The options it was opened with, for opening it again; nothing is written for a NULL model. Strings are valid as long as the
 * model; `weights` is the absolute path of the file. */
KITH_API void kith_model_options_get(const kith_model *model, kith_model_options *ret_options);

typedef struct kith_model_info {
    const char *backbone, *pool, *device; /* valid as long as the model */
    int64_t channels, height, width;
    int64_t embedding, classes; /* 0: no such head */
    int64_t n_params;           /* numbers that training would change */
    double flops_per_image;     /* forward, all heads */
    kith_preprocess preprocess;
} kith_model_info;

/* What the model is; nothing is written for a NULL model. */
KITH_API void kith_model_info_get(const kith_model *model, kith_model_info *ret_info);

/* Does it take features, rows of `channels` numbers (height and width are 1), instead of images? Its data sets are those of
 * kith_dataset_open_features, and kith_model_embed_floats takes [n, channels]. */
KITH_API bool kith_model_takes_features(const kith_model *model);

/* The shape of a tap for one image; ret_dim has room for KITH_MAX_DIMS. The error of KITH_ENOTFOUND lists the
 * taps of the model. */
KITH_API kith_status kith_model_tap_shape(const kith_model *model, const char *tap, int *ret_n_dims,
                                          int64_t *ret_dim, kith_error *err);

/* The number of values of a vector: of the tap that the options of opening name, else of the embedding, or of "pooled" of a
 * model without one. 0 for a NULL model. */
KITH_API int64_t kith_model_dim(const kith_model *model);

/* Which vectors a model makes. Two models with the same hash and the same words make equal vectors; device, precision and batch
 * are left out, because they change vectors by rounding only. */
typedef struct kith_model_identity {
    const char *file;       /* absolute path */
    const char *hash;       /* SHA-256 of the file, in hex */
    const char *preprocess; /* the rest in words: tap, backbone, resizing, … They are compared as a whole */
    int64_t dim;            /* kith_model_dim */
} kith_model_identity;

/* The model in words for people, into buf [bytes], which is returned: "general (mobilenet_v3_large, 160 px, 5f3a12b0)". The first word is
 * "general" or the file's last names, the last is the beginning of its hash, where it has one. "" for a NULL model. */
KITH_API const char *kith_model_title(kith_model *model, char *buf, size_t bytes);

/* What kith_index_options and kith_index_expect ask for. Strings are valid as long as the model. The file is hashed by the
 * first call. KITH_EINVAL for random weights and after kith_model_param_set, which have no file that an index could name, and
 * when the file has changed since it was opened. */
KITH_API kith_status kith_model_identify(kith_model *model, kith_model_identity *ret_identity,
                                         kith_error *err);

/* ---- images to vectors ----
 *
 * Images are resized, cropped, ordered and scaled as the model wants, by threads that decode ahead of the network; on a
 * device bytes are copied while it computes. The first call for a tap and a number of images plans the network. The plans that
 * were used last are kept, a handful of them. */

/* Strings are borrowed for the call. */
typedef struct kith_embed_options {
    size_t size; /* of the struct: set by kith_embed_options_init */
    /* NULL: as the options of opening say, else "embedding", or "pooled" of a model without */
    const char *tap;
    /* Before the centre crop: "squash256", "shorter256", "atmost512", "none"; NULL: as the options of opening say, else the
     * model's file, else squash256 */
    const char *resize;
    int64_t n_workers;         /* threads that decode; 0: one per core */
    int64_t most_bad;          /* of a data set: unreadable images tolerated, then an error; -1: any number */
    int64_t most_pixels;       /* an image with more is refused; 0: 100 million */
    kith_progress_fn progress; /* between batches; non-zero stops with KITH_ECANCELED. May be NULL */
    void *user;
} kith_embed_options;

/* All 0 and NULL. */
KITH_API void kith_embed_options_init(kith_embed_options *options, size_t size);

/* The tap that options (may be NULL) mean. Valid as long as the model and the options. */
KITH_API const char *kith_model_tap(const kith_model *model, const kith_embed_options *options);

/* Embed image files: ret_values [n, …] receives the tap's values of each, in order. ret_status [n]: KITH_OK, or why a
 * file could not be read, whose values are then 0; NULL: an unreadable file is an error that names it. options may be
 * NULL. KITH_ENUMERIC names the file whose values are not finite. */
KITH_API kith_status kith_model_embed_files(kith_model *model, const char *const *paths, int64_t n,
                                            const kith_embed_options *options, float *ret_values,
                                            kith_status *ret_status, kith_error *err);

/* Embed one split of a data set. Images that cannot be read are left out and counted (kith_vectors_n_bad). The vectors
 * stay on the model's device if there is room, and must be freed before the model; the data set must outlive them.
 * options may be NULL. */
KITH_API kith_status kith_model_embed_dataset(kith_model *model, const kith_dataset *dataset,
                                              kith_split split, const kith_embed_options *options,
                                              kith_vectors **ret_vectors, kith_error *err);

/* The same for n chosen items of a data set, in the order given; there may be none that can be read. kith_vectors_facts then
 * has no hash of the data. */
KITH_API kith_status kith_model_embed_items(kith_model *model, const kith_dataset *dataset,
                                            const int64_t *items, int64_t n,
                                            const kith_embed_options *options, kith_vectors **ret_vectors,
                                            kith_error *err);

/* A decoded image: rows of 1 (grey) or 3 (RGB) bytes per pixel, nothing between rows. */
typedef struct kith_pixels {
    int32_t width, height;
    int channels;
    const uint8_t *data;
} kith_pixels;

/* Embed decoded images of any size; ret_values [n, …]. options may be NULL. Any n goes through the network in groups of a few
 * sizes, each planned once: for programs that decode elsewhere, and for queries that come in any number. */
KITH_API kith_status kith_model_embed_pixels(kith_model *model, const kith_pixels *images, int64_t n,
                                             const kith_embed_options *options, float *ret_values,
                                             kith_error *err);

/* Run n images [n, channels, height, width], already preprocessed, and write the tap's values for
 * each [n, …]. Values that are not finite are KITH_ENUMERIC, naming the image. The first call for a
 * tap plans the network; later ones allocate nothing. */
KITH_API kith_status kith_model_embed_floats(kith_model *model, const float *images, int64_t n,
                                             const char *tap, float *ret_values, kith_error *err);

/* What a cosine of two of its embeddings (tap "embedding") means, where the model's file says so: training writes the curve of
 * the validation classes. KITH_ENOTFOUND where it does not, and where the options of opening or kith_model_param_set have
 * made another model of it. */
KITH_API kith_status kith_model_calibration(const kith_model *model, kith_calibration *ret_calibration,
                                            kith_error *err);

/* The same curve, where it holds for the vectors of kith_model_dim by that metric: not for another tap or another resizing than
 * the model's file has. With another side it is the curve of the file's, the nearest thing known, and its source ends with that
 * side: "validation, at 192 px". KITH_ENOTFOUND: there is none. */
KITH_API kith_status kith_model_curve(const kith_model *model, kith_metric metric,
                                      kith_calibration *ret_calibration, kith_error *err);

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
KITH_API kith_status kith_model_query(kith_model *model, const kith_query_image *images, int64_t n,
                                      const kith_query_options *options, float *ret_row, kith_error *err);

/* One query from n vectors [n, dim], as kith_model_query makes it from n images: the only row as it is, or the sum of the
 * normalised rows times their weights [n]. KITH_EINVAL when no weight is above 0, or the sum is 0. */
KITH_API kith_status kith_query_combine(const float *rows, const double *weights, int64_t n, int64_t dim,
                                        float *ret_row, kith_error *err);

/* ---- the file and the numbers ---- */

/* Write weights, settings, preprocessing and calibration as one safetensors file (docs/model-files.md). */
KITH_API kith_status kith_model_save(const kith_model *model, const char *path, kith_error *err);

/* The parameters, in the order they were declared; running statistics come last. */
typedef struct kith_model_param {
    const char *name; /* valid as long as the model */
    int n_dims;
    int64_t dim[KITH_MAX_DIMS];
    int64_t n;
    bool trained;
} kith_model_param;

/* How many there are. */
KITH_API int64_t kith_model_param_count(const kith_model *model);
/* False when there is no i-th parameter. */
KITH_API bool kith_model_param_at(const kith_model *model, int64_t i, kith_model_param *ret_param);
/* Copy the i-th parameter's values out or in. */
KITH_API kith_status kith_model_param_get(const kith_model *model, int64_t i, float *ret_values,
                                          kith_error *err);
KITH_API kith_status kith_model_param_set(kith_model *model, int64_t i, const float *values, kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
