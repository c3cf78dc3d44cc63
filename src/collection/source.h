/* Where the images of a collection come from: folders, files, a data set, a recipe; as callers name it, and as the index remembers it. */
#ifndef KI_COLLECTION_SOURCE_H
#define KI_COLLECTION_SOURCE_H

#include "base/arena.h"
#include "kith/collection.h"

/* Zero-initialise; ki_source_release. */
typedef struct ki_source {
    ki_arena arena;
    const char **
        path; /* [n] from the root of the file system on: they mean the same in whatever folder they are read */
    int64_t n;
    const char *kind; /* of a data set; NULL: files, folders or a recipe */
    kith_split split;
} ki_source;

/* What the caller names. KITH_EIO: something is not there; KITH_EINVAL: several data sets. */
kith_status ki_source_take(ki_source *source, const kith_sources *given, kith_error *err);
/* What the index remembers; nothing: n is 0. */
kith_status ki_source_recall(ki_source *source, const kith_index *index, kith_error *err);
/* The part of a data set that it remembers; KITH_SPLIT_ALL where it says none. */
kith_split ki_source_split(const kith_index *index);
/* One more, which lives as long as the source. */
kith_status ki_source_add(ki_source *source, const char *path, kith_error *err);
void ki_source_release(ki_source *source);

/* The kind of the data set that it is, or the recipe that names one; NULL: files and folders. */
const char *ki_source_dataset(const ki_source *source);

/* From the next commit on the index remembers it. */
kith_status ki_source_remember(const ki_source *source, kith_index *index, kith_error *err);

kith_status ki_source_open(const ki_source *source, kith_dataset **ret_dataset, kith_error *err);

#endif
