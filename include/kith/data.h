/* Data: labelled image sets in their original layouts, and images as network input.
 *
 * A kith_dataset is a list of items (where the image is, its class, its split) made from a folder or a list
 * on disk; no pixel is read until it is asked for. A kith_image_reader turns any images into preprocessed
 * batches. Strings that functions return live as long as the object they came from. A data set may be read by
 * several threads at once; functions that change its splits may not run beside them. */
#ifndef KITH_DATA_H
#define KITH_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- data sets ---- */

typedef struct kith_dataset kith_dataset;

/* ALL is for functions that read one split or every item; no item has it. */
typedef enum kith_split {
    KITH_SPLIT_ALL = -1,
    KITH_SPLIT_TRAIN,
    KITH_SPLIT_VALIDATION,
    KITH_SPLIT_TEST
} kith_split;
#define KITH_N_SPLITS 3

/* For test items of sets with a fixed query / gallery protocol; everywhere else BOTH. */
typedef enum kith_role { KITH_ROLE_BOTH, KITH_ROLE_QUERY, KITH_ROLE_GALLERY } kith_role;

typedef struct kith_item {
    const char *path; /* the image file; "FILE#17" for the 17th image inside an idx file */
    int64_t label;    /* 0 … number of classes - 1 */
    kith_split split;
    kith_role role;
    bool has_box;
    double box[4]; /* x, y, width, height in pixels of the image, when has_box */
} kith_item;

/* "train", "validation", "test"; "all". */
KITH_API const char *kith_split_name(kith_split split);

/* The layouts the library reads: names in table order (NULL past the end) and one line about each. */
KITH_API const char *kith_dataset_kind_name(int64_t i);
KITH_API const char *kith_dataset_kind_summary(int64_t i);

/* Open the data set at `root` (a folder, a list file, a tar file or a pattern of them as in shards/{00..09}.tar, or a recipe's root).
 * Members of tar files have paths such as shards/00.tar/rook/1.jpg; wherever the library reads an image by its path, it takes these, too. `kind` is one of the names above;
 * NULL or "auto" detects it. Listed files that do not exist are left out and counted; KITH_EFORMAT when a
 * list is malformed (with its line), KITH_EIO when no file exists. */
KITH_API kith_status kith_dataset_open(const char *kind, const char *root, kith_dataset **ret_dataset,
                                       kith_error *err);
/* Open what the `data:` section of a recipe file says, splits included. */
KITH_API kith_status kith_dataset_open_recipe(const char *recipe_path, kith_dataset **ret_dataset,
                                              kith_error *err);
/* Images named one by one; tar files and patterns of them, with or without labels. Folders are searched at all levels, in byte order of the names, for .jpg .jpeg .png .webp
 * .heic .heif .avif files. An image in a folder below a named folder has that inner folder as its class (below train/
 * and test/ if there are such parts); any other image has none (label -1). All are in the test split. A single path
 * that is a data set of a known layout, or a .csv manifest, is opened as that. The error of KITH_EIO names a path that
 * does not exist. */
KITH_API kith_status kith_dataset_open_files(const char *const *paths, int64_t n_paths,
                                             kith_dataset **ret_dataset, kith_error *err);
/* Features made elsewhere instead of images: the rows of a .npy file, float32 or float16 [n, dim], read when they are
 * needed. `labels` has one for each row (kith/labels.h). NULL: the file beside the features, NAME.labels.npy, .txt or .csv
 * of NAME.npy. Numbers become classes in rising order, names in the order in which they first appear; the first half of the
 * classes trains, the others test. An item's path is "NAME.npy#17". */
KITH_API kith_status kith_dataset_open_features(const char *features, const char *labels,
                                                kith_dataset **ret_dataset, kith_error *err);
KITH_API void kith_dataset_free(kith_dataset *dataset); /* NULL is fine */

/* The layout and the root it was opened with, and how many items and classes it has. An item number out of range gives
 * path NULL and label -1; a class number out of range gives the name NULL. */
KITH_API const char *kith_dataset_kind(const kith_dataset *dataset);
KITH_API const char *kith_dataset_root(const kith_dataset *dataset);
KITH_API int64_t kith_dataset_count(const kith_dataset *dataset);
/* Numbers of an item of a set of features; 0: a set of images. */
KITH_API int64_t kith_dataset_n_features(const kith_dataset *dataset);
KITH_API kith_item kith_dataset_item(const kith_dataset *dataset, int64_t i);
KITH_API int64_t kith_dataset_n_classes(const kith_dataset *dataset);
KITH_API const char *kith_dataset_class_name(const kith_dataset *dataset, int64_t label);
/* Images of a class, all splits together; 0 for a class that was listed without any. */
KITH_API int64_t kith_dataset_class_count(const kith_dataset *dataset, int64_t label);
/* Listed files that do not exist: how many, and the names of the first of them (NULL past the end). */
KITH_API int64_t kith_dataset_n_missing(const kith_dataset *dataset);
KITH_API const char *kith_dataset_missing(const kith_dataset *dataset, int64_t i);

/* Files in the folders of the set that are not items, though they may be meant: pictures of other formats (GIF, BMP, TIFF …), raw
 * files, videos, images in no class folder, names with control characters, links in a circle. How many, the first of them as
 * "PATH: why" in one line (NULL past the end), and how many of each kind: "3 raw files, 1 video"; "" when there are none. */
KITH_API int64_t kith_dataset_n_unread(const kith_dataset *dataset);
KITH_API const char *kith_dataset_unread(const kith_dataset *dataset, int64_t i);
KITH_API const char *kith_dataset_unread_kinds(const kith_dataset *dataset);

/* Folders inside class folders, in the layout with a folder per class: their images are of the outer folder's class. How many hold
 * images, and the first of them. */
KITH_API int64_t kith_dataset_n_nested(const kith_dataset *dataset);
KITH_API const char *kith_dataset_nested(const kith_dataset *dataset, int64_t i);

/* Groups of items that must not be parted between splits (the column `group` of a manifest); 0: there are none. */
KITH_API int64_t kith_dataset_n_groups(const kith_dataset *dataset);

/* Super-classes, of classes that are alike (Stanford Online Products, a manifest's column `superclass`); 0: there are none. */
KITH_API int64_t kith_dataset_n_super_classes(const kith_dataset *dataset);

/* SHA-256, in lower-case hex, of which items the set has: their paths below the root and their labels, in order,
 * not their pixels. `split` is a kith_split for only the items of that split, or KITH_SPLIT_ALL (-1); then the
 * splits count, too. */
KITH_API void kith_dataset_hash(const kith_dataset *dataset, int split, char ret_hex[65]);

/* Make the first n classes training and the others test, instead of the set's own split. */
KITH_API kith_status kith_dataset_split_first(kith_dataset *dataset, int64_t n_train_classes,
                                              kith_error *err);

/* Move training classes to the validation split: a `fraction` of them (rounded, at least one, at
 * most all but one), or fold `fold` of `n_folds` equal parts. Same seed, same classes. Classes that
 * were validation before become training first. Classes that share a group go together: then the fraction is not passed, unless every
 * part that goes together is larger, and parts are as equal as that lets them be. */
KITH_API kith_status kith_dataset_hold_out(kith_dataset *dataset, double fraction, uint64_t seed,
                                           kith_error *err);
KITH_API kith_status kith_dataset_hold_out_fold(kith_dataset *dataset, int64_t n_folds, int64_t fold,
                                                uint64_t seed, kith_error *err);
/* The validation classes as a CSV file (class,split), and back. Reading names every class of the
 * training side that the file does not know. */
KITH_API kith_status kith_dataset_split_write(const kith_dataset *dataset, const char *path, kith_error *err);
KITH_API kith_status kith_dataset_split_read(kith_dataset *dataset, const char *path, kith_error *err);

typedef struct kith_split_summary {
    int64_t n_images;
    int64_t n_classes; /* with at least one image */
    int64_t per_class_min, per_class_median, per_class_max;
    int64_t n_single;           /* classes with one image only */
    int64_t n_query, n_gallery; /* items with such a role */
} kith_split_summary;

/* Count one split. */
KITH_API kith_status kith_dataset_summary(const kith_dataset *dataset, kith_split split,
                                          kith_split_summary *ret_summary, kith_error *err);

/* The result of checking every file. */
typedef struct kith_scan {
    int64_t n_read;              /* images whose header (or all, when decoding) is valid */
    int32_t width[3], height[3]; /* min, median, max */
    int64_t n_bad;     /* files that cannot be read; a tar file that is damaged or missing counts as one */
    int64_t n_named;   /* entries of bad and why */
    char **bad, **why; /* the first KITH_SCAN_NAMED bad files, with the reason */
} kith_scan;
#define KITH_SCAN_NAMED 100

/* Read the header of every image, or decode it whole when `decode`. */
KITH_API kith_status kith_dataset_scan(const kith_dataset *dataset, bool decode, kith_progress_fn progress,
                                       void *user, kith_scan *ret_scan, kith_error *err);
KITH_API void kith_scan_release(kith_scan *scan); /* fine on a zeroed struct */

/* ---- from image to network input ---- */

typedef enum kith_resize {
    KITH_RESIZE_NONE,    /* as it is in the file */
    KITH_RESIZE_SHORTER, /* shorter side to resize_to, aspect kept */
    KITH_RESIZE_SQUASH,  /* to a square of resize_to, aspect lost */
    KITH_RESIZE_AT_MOST, /* as SHORTER, but never enlarged */
    KITH_RESIZE_PAD,     /* longer side to resize_to, aspect kept, in the middle of a square of background */
} kith_resize;

typedef enum kith_crop {
    KITH_CROP_CENTRE,     /* the middle; a smaller image is centred on the background */
    KITH_CROP_RANDOM,     /* anywhere; a smaller image is centred on the background */
    KITH_CROP_RESIZED,    /* a random part of random area and aspect, resized to the crop */
    KITH_CROP_MULTISCALE, /* the longer side to a random multiple of the crop, aspect kept, then as RANDOM */
} kith_crop;

typedef enum kith_filter { KITH_FILTER_BILINEAR, KITH_FILTER_BICUBIC, KITH_FILTER_LANCZOS } kith_filter;

/* What is done to the pixels of a training view after it was cut out: colours, blur, erased parts (`kith list effects`). They are read
 * from a recipe (kith_transform_open_recipe); the numbers are not to be set by hand. */
typedef struct kith_effect {
    int kind;
    double setting[14];
} kith_effect;
#define KITH_MOST_EFFECTS 8

/* value = (pixel * pixel_scale - mean[c]) / std[c], with c counted after the channels were put in
 * order. kith_transform_init gives: squash to 256, centre crop 227, bilinear, three channels in RGB,
 * pixel_scale 1/255, mean 0, std 1, black background. */
typedef struct kith_transform {
    size_t size; /* of the struct: set by kith_transform_init */
    kith_resize resize;
    int resize_to;
    kith_crop crop;
    int crop_to; /* side of the output, 1 … 4096 */
    kith_filter filter;
    double scale[2]; /* RESIZED: part of the area, (0, 1]; MULTISCALE: multiple of crop_to */
    double ratio[2]; /* RESIZED: width / height */
    bool mirror;     /* left-right, for every other image at random */
    bool use_box;    /* cut the item's box out first, where it has one */
    int channels;    /* 3 or 1; grey images are repeated, colour images turned grey */
    bool bgr;
    double pixel_scale;
    double mean[3], std[3];
    uint8_t background[3]; /* under alpha and around small images, RGB */
    int n_effects;         /* of training, in this order; 0: none */
    kith_effect effect[KITH_MOST_EFFECTS];
} kith_transform;

/* The defaults above. */
KITH_API void kith_transform_init(kith_transform *transform, size_t size);
KITH_API kith_status kith_transform_check(const kith_transform *transform, kith_error *err);
/* What the `input:` section of a recipe file says: the views of training, which are random, and those of tests. Channel order, mean and
 * standard deviation belong to the model, and stay at their defaults. */
KITH_API kith_status kith_transform_open_recipe(const char *recipe_path, kith_transform *ret_train,
                                                kith_transform *ret_test, kith_error *err);

/* ---- any images, in order, as batches ---- */

typedef struct kith_image_reader kith_image_reader;

typedef struct kith_image_batch {
    int64_t n;               /* images in this batch; 0 at the end */
    const float *data;       /* [n, channels, crop_to, crop_to] */
    const char *const *path; /* n paths */
    int64_t n_tried;         /* images tried so far, this batch and unreadable ones included */
} kith_image_batch;

typedef struct kith_image_reader_options {
    size_t size;         /* of the struct: set by kith_image_reader_options_init */
    int64_t batch;       /* images per batch; 0 = 32 */
    int64_t n_workers;   /* threads; 0 = one per core */
    int64_t most_bad;    /* unreadable images tolerated; the next is an error. -1: any number */
    int64_t most_pixels; /* an image with more is refused; 0 = 100 million */
} kith_image_reader_options;

/* All 0, but most_bad -1. */
KITH_API void kith_image_reader_options_init(kith_image_reader_options *options, size_t size);

/* `paths` name images and folders; folders are searched at all levels, in byte order of the names, for .jpg
 * .jpeg .png .webp .heic .heif .avif files. Random parts of the transform are not allowed here. */
KITH_API kith_status kith_image_reader_new(const char *const *paths, int64_t n_paths,
                                           const kith_transform *transform,
                                           const kith_image_reader_options *options,
                                           kith_image_reader **ret_reader, kith_error *err);
/* The items of one split of a data set, in its order. The data set must outlive the reader. */
KITH_API kith_status kith_image_reader_dataset(const kith_dataset *dataset, kith_split split,
                                               const kith_transform *transform,
                                               const kith_image_reader_options *options,
                                               kith_image_reader **ret_reader, kith_error *err);
KITH_API void kith_image_reader_free(kith_image_reader *reader); /* NULL is fine; at any moment */
/* All images the reader will try. */
KITH_API int64_t kith_image_reader_count(const kith_image_reader *reader);
/* The next batch, borrowed until the following call. Unreadable images are left out and counted. */
KITH_API kith_status kith_image_reader_next(kith_image_reader *reader, kith_image_batch *ret_batch,
                                            kith_error *err);
/* The label of the i-th image of the last batch: its class in the data set, -1 without one. */
KITH_API int64_t kith_image_reader_label(const kith_image_reader *reader, int64_t i);
KITH_API int64_t kith_image_reader_n_bad(const kith_image_reader *reader);
/* The i-th unreadable file so far, as "PATH: why"; NULL past the first hundred. */
KITH_API const char *kith_image_reader_bad(const kith_image_reader *reader, int64_t i);

/* ---- how fast ---- */

typedef struct kith_data_speed {
    int64_t n_images;
    int64_t n_workers;
    double decoded_per_second; /* read, decoded and transformed */
    double cached_per_second;  /* transformed from the cache */
    uint64_t cache_bytes;      /* what the images took there */
} kith_data_speed;

/* Time the loader over the first n_images of a split (0: all), without and then with a cache that holds
 * them; shuffled batches of 64, float output. n_workers 0 = one per core. */
KITH_API kith_status kith_data_speed_measure(const kith_dataset *dataset, kith_split split,
                                             const kith_transform *transform, int64_t n_workers,
                                             int64_t n_images, kith_data_speed *ret_speed, kith_error *err);

/* ---- the built-in data set ---- */

typedef struct kith_synth_options {
    size_t size; /* of the struct: set by kith_synth_options_init */
    int64_t n_classes;
    int64_t n_images; /* per class */
    int64_t side;     /* in pixels, 16 … 512 */
    uint64_t seed;
    bool colour;     /* coloured ink and ground instead of grey */
    bool background; /* a texture behind the glyph */
    double noise;    /* standard deviation in grey levels */
    double jitter;   /* 1 = default strength of shift, affine and elastic change; 0 = none */
} kith_synth_options;

/* 200 classes of 20 grey images of 64 pixels, seed 1, noise 10, jitter 1. */
KITH_API void kith_synth_options_init(kith_synth_options *options, size_t size);
/* Write a folder per class of PNG files under `dir`, which must be absent or empty. Same options,
 * same bytes. */
KITH_API kith_status kith_synth_write(const char *dir, const kith_synth_options *options,
                                      kith_progress_fn progress, void *user, kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
