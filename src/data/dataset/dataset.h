/* Data sets: a list of items with classes and splits, filled by one of the layouts in table.def. */
#ifndef KI_DATASET_H
#define KI_DATASET_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/path.h"
#include "data/dataset/unread.h"
#include "data/image/image.h"
#include "io/npy_rows.h"
#include "kith/data.h"

enum { KI_MOST_MISSING_NAMED = 100, KI_MOST_NESTED_NAMED = 10 };

typedef struct ki_item {
    const char *path;
    int32_t label;
    int32_t group; /* from 1: what must not be parted; 0: in none */
    uint8_t split, role;
    bool has_box;
    float box[4];
    int64_t pixels; /* offset into the set's pixel block; -1: the pixels are in the file */
} ki_item;

typedef struct ki_class {
    const char *key, *name;
    uint32_t hash;
    int64_t n_images;
    int32_t super; /* its super-class, from 1; 0: none */
    bool is_none;  /* stands for the items of a set without labels: they have no class */
} ki_class;

typedef struct ki_dataset_kind ki_dataset_kind;

struct kith_dataset {
    const ki_dataset_kind *kind;
    const char *root;
    ki_arena arena; /* strings */
    ki_item *item;
    size_t n_items, item_capacity;
    ki_class *class_;
    size_t n_classes, class_capacity;
    int32_t *bucket; /* hash table over class_: index or -1 */
    size_t n_buckets;
    int64_t n_missing;
    const char *missing[KI_MOST_MISSING_NAMED];
    ki_unread unread; /* what is not read in the folders that were walked */
    int64_t n_nested; /* folders inside class folders that hold images */
    const char *nested[KI_MOST_NESTED_NAMED], *last_nested;
    uint8_t *pixels; /* grey images of equal size held in memory (idx files) */
    size_t pixel_bytes;
    int32_t pixels_w, pixels_h;
    ki_npy_rows *rows;    /* item i is row i, numbers instead of an image; NULL: a set of images */
    kith_dataset *groups; /* their names, as classes; NULL: there are none, or they are a part's */
    int64_t n_groups;
    kith_dataset *supers; /* names of super-classes, as classes; NULL: there are none */
    struct ki_tar **tar;  /* tar files whose members are items: held as long as the set lives */
    size_t n_tars, tar_capacity;
    struct ki_item_views
        *views; /* … unless there are these: then views.c says which row of which file an item is */
    /* Of several sets (join.c): the sets, whose items follow each other, and every item's name: "1/rook/3.jpg". NULL: one set. */
    kith_dataset **part;
    size_t n_parts;
    const char **name;
    double weight; /* of a part, in a batch; 0: by its number of training images */
    atomic_uchar
        *told; /* [n_items]: a warning about the item's file was given; NULL until the items are settled */
};

struct ki_dataset_kind {
    const char *name;
    const char *summary;
    /* Does the folder `root` have this layout? */
    bool (*found)(const char *root);
    kith_status (*read)(kith_dataset *set, const char *root, kith_error *err);
};

#define X(name) extern const ki_dataset_kind ki_dataset_##name;
#include "data/dataset/table.def"
#undef X

/* ---- filling ---- */

kith_status ki_dataset_new(const ki_dataset_kind *kind, const char *root, kith_dataset **ret_set,
                           kith_error *err);
/* The layout of the folder `root`, the first one in the table's order that fits; NULL: none. */
const ki_dataset_kind *ki_dataset_kind_at(const char *root);
/* In the layout with a folder per class: where the class begins in a path below the root, "rook" in
 * "train/rook/1.jpg", and its length in *ret_n. NULL: the image is in no class. has_parts: the classes are in
 * train/, test/ … */
const char *ki_folder_class(const char *below_root, bool has_parts, size_t *ret_n);
bool ki_folder_has_parts(const char *root);
/* Is the name "train", "test", "val" or "validation"? */
bool ki_part_named(const char *name, size_t n, kith_split *ret_split);
/* The class with this key, made (and named after the key) when it is new. */
kith_status ki_dataset_class(kith_dataset *set, const char *key, size_t key_length, int32_t *ret_label,
                             kith_error *err);
kith_status ki_dataset_name_class(kith_dataset *set, int32_t label, const char *name, size_t length,
                                  kith_error *err);
/* Classes that are alike have the same super-class. KITH_EFORMAT: it has another one. */
kith_status ki_dataset_super_class(kith_dataset *set, int32_t label, const char *name, size_t length,
                                   kith_error *err);
/* Add an item with the file folder/path (path alone when folder is NULL or path is absolute). The caller
 * fills in the rest of the item through *ret_item, which is valid until the next call. */
kith_status ki_dataset_add(kith_dataset *set, const char *folder, const char *path, size_t path_length,
                           int32_t label, kith_split split, ki_item **ret_item, kith_error *err);
/* One item per path, whether or not the file exists: without a class, in the test split. */
kith_status ki_dataset_of_paths(const char *const *paths, size_t n_paths, kith_dataset **ret_set,
                                kith_error *err);
/* Features and their classes: the rows of a .npy file. labels NULL: the file beside it (kith_dataset_open_features); where
 * there is none the items have no class, if `may_lack_labels`, else KITH_EIO. */
kith_status ki_dataset_of_features(const char *features, const char *labels, bool may_lack_labels,
                                   kith_dataset **ret_set, kith_error *err);
/* Remove items whose file does not exist; KITH_EIO when none is left. */
kith_status ki_dataset_drop_missing(kith_dataset *set, kith_error *err);
/* Classes in order of their keys, numbers by their value. */
kith_status ki_dataset_sort_classes(kith_dataset *set, kith_error *err);
/* Classes [0, n_train) train, the others test. */
void ki_dataset_split_at(kith_dataset *set, int32_t n_train);
/* The first half of the classes trains; as near to that as groups let it be. */
kith_status ki_dataset_halve(kith_dataset *set, kith_error *err);

/* ---- group.c: what must not be parted between splits ---- */

/* The group with this name, made when it is new. */
kith_status ki_dataset_group(kith_dataset *set, const char *name, size_t n, int32_t *ret_group,
                             kith_error *err);
/* Classes that share groups, directly or through other classes, are a unit: *ret_unit[n_classes] is the lowest number among them. Without
 * groups every class is one. Items of the test split count if `with_test`. Free with ki_free. */
kith_status ki_dataset_units(const kith_dataset *set, bool with_test, int32_t **ret_unit, kith_error *err);
/* KITH_EINVAL names a group that is in two splits. */
kith_status ki_dataset_check_groups(const kith_dataset *set, kith_error *err);

/* ---- list_rows.c: items as rows of a manifest ---- */

typedef struct ki_list_rows {
    bool roles, boxes, groups, supers; /* columns: those that an item needs */
    bool names;                        /* classes by their names; else by their keys */
} ki_list_rows;
ki_list_rows ki_list_rows_of(const kith_dataset *set);
void ki_list_rows_head(const ki_list_rows *rows, ki_buffer *out);
void ki_list_rows_row(const ki_list_rows *rows, const kith_dataset *set, const ki_item *item,
                      const char *path, kith_split split, ki_buffer *out);

/* Every image below a folder, whatever its folders are called, without a class; a layout that the caller names may be something else
 * than a folder: then its training images, without theirs. kind "auto": a folder. */
kith_status ki_dataset_open_unlabelled(const char *kind, const char *root, kith_dataset **ret_set,
                                       kith_error *err);

/* ---- several sets as one ---- */

/* Classes of different sets are different classes: "0/rook" and "1/rook". Takes over the sets, also on failure. KITH_EUNSUPPORTED: a
 * set has no files of images. */
kith_status ki_dataset_join(kith_dataset *const *sets, size_t n_sets, kith_dataset **ret_set,
                            kith_error *err);
/* The items [*ret_first, *ret_first + *ret_n) of part p; of a set of its own all are of part 0. */
void ki_dataset_part(const kith_dataset *set, size_t p, size_t *ret_first, size_t *ret_n);
/* Have the items of that label a class? */
static inline bool ki_dataset_is_class(const kith_dataset *set, int32_t label) {
    return !set->class_[label].is_none;
}

/* The items are complete: from now on the set only changes its splits. */
kith_status ki_dataset_settle(kith_dataset *set, kith_error *err);

/* ---- reading ---- */

/* Is this the first time that a reader wants to warn about the item's file? So several readers of a set, at once or one
 * after the other, warn about it once. Always true for a set that was not settled. */
bool ki_dataset_tell_once(const kith_dataset *set, int64_t item);

/* Pixels of an item into ret_image: decoded from its file or copied from memory. `bytes` is scratch.
 * Errors are prefixed with the path. */
kith_status ki_dataset_pixels(const kith_dataset *set, int64_t item, const ki_decode *how, ki_bytes *bytes,
                              ki_image *ret_image, kith_error *err);
/* Numbers of an item of a set of features, [dim] of the set's rows; KITH_ENUMERIC, with the item's name, when one is not
 * finite. */
kith_status ki_dataset_row(const kith_dataset *set, int64_t item, float *ret_values, kith_error *err);
/* Numbers of n items, [n, dim] in ordinary memory, faster than one by one. False when something is wrong with one of them: read them one by
 * one. */
bool ki_dataset_rows(const kith_dataset *set, const int64_t *items, int64_t n, float *ret_values);
/* KITH_ENUMERIC, naming the item, if one of the numbers of its row is not finite; and of any numbers, quickly. */
kith_status ki_dataset_check_row(const kith_dataset *set, int64_t item, const float *values, kith_error *err);
bool ki_are_finite(const float *values, int64_t n);

/* ---- views.c: features that a network made of the images of a set, several views of each ---- */

/* From now on an item is not an image but numbers. File k is view k of the items, row by row in their order; view 0 is how they are
 * judged. `lone` (NULL: none) has the rows of items that only have view 0. Nothing is written there. */
typedef struct ki_view_files {
    const char *const *view; /* [n_views] .npy files */
    int64_t n_views;
    const int64_t *items; /* [n] whose rows these are */
    int64_t n;
    const char *lone;
    const int64_t *lone_items; /* [n_lone] */
    int64_t n_lone;
} ki_view_files;
/* KITH_ESHAPE: a file has another number of rows, or of numbers in a row, than the others. */
kith_status ki_dataset_take_views(kith_dataset *set, const ki_view_files *files, kith_error *err);
void ki_item_views_free(struct ki_item_views *views); /* NULL is fine */
int64_t ki_dataset_n_views(const kith_dataset *set);  /* 1: there is one of every item */
/* As ki_dataset_row and ki_dataset_rows, of these views ([n]; NULL: view 0). */
kith_status ki_dataset_view_row(const kith_dataset *set, int64_t item, int64_t view, float *ret_values,
                                kith_error *err);
bool ki_dataset_view_rows(const kith_dataset *set, const int64_t *items, const int64_t *views, int64_t n,
                          float *ret_values);

/* Indices of the items of a split, or of all, in order; free with ki_free. */
kith_status ki_dataset_select(const kith_dataset *set, kith_split split, int64_t **ret_items, int64_t *ret_n,
                              kith_error *err);

/* ---- what the set is now and what it was (kith_dataset_hash says whether the two are the same) ---- */

/* The item's path, relative to the root if it is below the root. */
const char *ki_dataset_item_name(const kith_dataset *set, size_t i);
/* Every item as a row of a CSV file: path,label,split. */
kith_status ki_dataset_list_write(const kith_dataset *set, const char *path, kith_error *err);
/* How the set differs from the list in the file, as words for an error line: "2 classes removed (a, b), 1 image
 * added (c/7.png)". Nothing is written when only the order differs. The file was written by
 * ki_dataset_list_write, or by kith_dataset_split_write, which lists only training classes. folds_differ: it
 * does not matter which of the training classes are held out. */
kith_status ki_dataset_compare(const kith_dataset *set, const char *path, bool folds_differ,
                               ki_buffer *ret_words, kith_error *err);

/* ---- list parsers: text in memory, so that they can be fuzzed ---- */

kith_status ki_cub_parse(kith_dataset *set, const char *folder, const char *images, size_t n_images,
                         const char *labels, size_t n_labels, const char *boxes, size_t n_boxes,
                         const char *names, size_t n_names, kith_error *err);
kith_status ki_sop_parse(kith_dataset *set, const char *folder, const char *text, size_t n, kith_split split,
                         kith_error *err);
kith_status ki_inshop_parse(kith_dataset *set, const char *folder, const char *text, size_t n,
                            kith_error *err);
kith_status ki_csv_parse(kith_dataset *set, const char *folder, const char *text, size_t n, kith_error *err);
/* One of Cars196's .mat files; path_field is the field of the annotations that holds the path, or NULL when the
 * file has only class names. */
kith_status ki_cars_parse(kith_dataset *set, const char *folder, const char *name, const void *bytes,
                          size_t n, const char *path_field, kith_error *err);
/* A gzipped idx file of n_dims axes into `bytes`; `what` ("images") is for errors. Memory is allocated only if
 * the packed bytes can contain what the header promises. */
kith_status ki_idx_unpack(const void *packed, size_t n_packed, const char *name, const char *what, int n_dims,
                          ki_bytes *bytes, kith_error *err);
/* One pair of idx files, already unpacked. Images of all calls must have one size. */
kith_status ki_idx_parse(kith_dataset *set, const char *name, const uint8_t *images, size_t n_images,
                         const uint8_t *labels, size_t n_labels, kith_split split, kith_error *err);

/* ---- tar.c, shards.c: images in tar files, as WebDataset writes them (docs/data.md) ---- */

bool ki_is_tar_name(const char *path);
/* Do the words name tar files: one, a pattern, several with "::" between them? */
bool ki_names_tars(const char *root);
/* The tar files that the words, or a folder, name, whether or not they are there; into the arena. KITH_EINVAL: a pattern that is none. */
kith_status ki_shards_list(const char *root, ki_arena *arena, char ***ret_paths, size_t *ret_n,
                           kith_error *err);
/* Do the names of the files, or of the folders they are in, say which are for training, and which are not? Then *ret_split[n] has them. */
bool ki_shards_split(char *const *paths, size_t n, kith_split *ret_split);
/* The images in the files. Those without a label and a class folder are without a class, label -1. Files that are damaged or not there
 * are counted as not read; KITH_EIO when there is no image. All are in the test split unless folders inside the files say otherwise,
 * *ret_has_splits (may be NULL). */
kith_status ki_dataset_add_tars(kith_dataset *set, char *const *paths, size_t n, bool *ret_has_splits,
                                kith_error *err);

/* ---- walking folders ---- */

/* What systems put beside people's files: thumbnails, resource forks, bins. Hidden files, such as .DS_Store, too. */
bool ki_is_litter(const char *name);

/* Called for each regular file named as an image (ki_is_image_name) under `folder`, in byte order of the names at
 * every level. `path` is the whole path. Pictures of other formats, raw files, videos, names with control characters, links in a circle and
 * folders nested too deep are counted in the set as not read. Thumbnails of systems (@eaDir, __MACOSX) are passed over. */
typedef kith_status (*ki_walk_fn)(void *context, const char *path, kith_error *err);
kith_status ki_walk_images(const char *folder, kith_dataset *set, ki_walk_fn fn, void *context,
                           kith_error *err);
/* Names of the folders in `folder`, sorted; into the arena. Links to folders count. ki_list_classes: those that may be classes; images
 * beside them, and what else cannot be read, are counted in the set. */
kith_status ki_list_folders(const char *folder, ki_arena *arena, char ***ret_names, size_t *ret_n,
                            kith_error *err);
/* Files in the folder itself that are images by their names. */
int64_t ki_count_images(const char *folder);
kith_status ki_list_classes(const char *folder, kith_dataset *set, ki_arena *arena, char ***ret_names,
                            size_t *ret_n, kith_error *err);

#endif
