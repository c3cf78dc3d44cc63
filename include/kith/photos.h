/* Photos: a folder that is searched without making an index first. The index is there all the same: a collection
 * (kith/collection.h) in the user's cache, found again by the folder and the model.
 *
 *     KITH_OPTIONS(kith_photos_options, options);
 *     kith_photos *photos = NULL;
 *     kith_photos_open("photos", &options, &photos, &err);   // the model `general`, the user's cache
 *     kith_photos_sync(photos, NULL, NULL, &err);             // the first time embeds, later only what has changed
 *     KITH_OPTIONS(kith_collection_open_options, reading);
 *     kith_collection *found = NULL;
 *     kith_collection_open(kith_photos_index(photos), &reading, &found, &err);
 *
 * The cache is $XDG_CACHE_HOME/kith, or ~/.cache/kith where that is not set:
 *
 *     photos/NAME-FOLDER-MODEL/    one entry for each folder and model (0700): the folder's last name, and hashes of its absolute
 *                                  path and of the model with the way it gets its images
 *         entry.json               which folder and which model it is
 *         used                     its date says when it was last used; whoever uses the entry holds it
 *         index/                   the collection
 *     models/HASH.safetensors      models that an index was made from by the name `general` (kith/model.h)
 *
 * Only what has these names and records is an entry: whatever else lies in these folders is never removed. A cache that kith makes has a
 * CACHEDIR.TAG, so that backup programs leave it out; a folder that was there before gets none.
 *
 * A new release with another `general` has entries of its own; vectors of two models never meet (docs/adr/0160). Whatever lies in
 * the cache may be removed at any time while nobody uses it: it is made anew.
 *
 * Any number of processes may use one folder's photos at once; one of them writes. A kith_photos is used by one thread at a time. */
#ifndef KITH_PHOTOS_H
#define KITH_PHOTOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/collection.h"
#include "kith/model.h"
#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Does the path name photos: a folder that is not an index? */
KITH_API bool kith_photos_are(const char *path);

typedef struct kith_photos kith_photos;

/* Strings are borrowed for the call. */
typedef struct kith_photos_options {
    size_t size;                     /* of the struct: set by kith_photos_options_init */
    const char *cache;               /* the folder of the cache; NULL: as above */
    const kith_model_options *model; /* NULL, or without weights and backbone: `general` */
} kith_photos_options;

/* All 0 and NULL. */
KITH_API void kith_photos_options_init(kith_photos_options *options, size_t size);

/* Open the model, and find the entry of the folder, or make it: then its index is empty. From now on until it is freed the entry counts
 * as used. KITH_EIO: the folder or the cache cannot be read or made. KITH_EINVAL: entries would lie among the photos (CACHE/photos is
 * the folder). KITH_ENOTFOUND: the model is not installed. */
KITH_API kith_status kith_photos_open(const char *folder, const kith_photos_options *options,
                                      kith_photos **ret_photos, kith_error *err);
KITH_API void kith_photos_free(kith_photos *photos); /* NULL is fine */

/* The folder's absolute path, the path of its index, and its model, which all stay the photos'. */
KITH_API const char *kith_photos_folder(const kith_photos *photos);
KITH_API const char *kith_photos_index(const kith_photos *photos);
KITH_API kith_model *kith_photos_model(const kith_photos *photos);

/* How far a sync is. */
typedef struct kith_photos_progress {
    int64_t n_photos; /* files in the folder that may be images */
    int64_t n_done;   /* of them: embedded, as before, or cannot be read */
    int64_t n_ready;  /* can be found by a search now */
} kith_photos_progress;

/* Returns non-zero to stop. */
typedef int (*kith_photos_progress_fn)(void *user, const kith_photos_progress *progress);

typedef struct kith_photos_sync_options {
    size_t size;                      /* of the struct: set by kith_photos_sync_options_init */
    kith_photos_progress_fn progress; /* may be NULL. Stopped, what was done is committed */
    void *user;
} kith_photos_sync_options;

/* All 0 and NULL. */
KITH_API void kith_photos_sync_options_init(kith_photos_sync_options *options, size_t size);

/* Make the index hold what the folder holds now, as kith_collection_sync. It commits early and often, so that a search finds the first
 * hundred photos after seconds and a killed process loses little: the next call goes on from the last commit. A folder without photos is
 * fine while the index is empty. If the index is not, KITH_EINVAL and nothing is changed (KITH_SYNC_MOST_REMOVED): a disk may not be
 * mounted. KITH_EIO: the folder cannot be read (KITH_SYNC_SOURCE_MISSING). KITH_EINVAL with KITH_SYNC_BUSY: another process does it
 * already. ret_report may be NULL, and is filled as kith_collection_sync does. */
KITH_API kith_status kith_photos_sync(kith_photos *photos, const kith_photos_sync_options *options,
                                      kith_sync_report *ret_report, kith_error *err);

/* ---- the cache ---- */

/* What lies in the cache: the photos of a folder, or a kept model. */
typedef struct kith_cache_entry {
    const char *name;   /* of the entry: for kith_cache_remove */
    const char *folder; /* the photos'; NULL: it is a kept model, or an entry that cannot be read */
    bool is_there;      /* the photos' folder is there */
    bool is_used;       /* some process uses it now */
    const char *model;  /* "general (mobilenet_v3_large, 160 px, 5f3a12b0)"; NULL: not known */
    int64_t n_photos;   /* searchable; -1: not known */
    int64_t bytes;
    int64_t used; /* seconds since 1970 */
} kith_cache_entry;

typedef struct kith_cache kith_cache;

/* The folder of the cache, into ret_folder [bytes]: `given`, or if that is NULL as above. It need not exist. KITH_EINVAL: there is no
 * home folder. */
KITH_API kith_status kith_cache_folder(const char *given, char *ret_folder, size_t bytes, kith_error *err);

/* What lies in the cache (NULL: the user's), those used last first. One that is not there is empty. */
KITH_API kith_status kith_cache_open(const char *folder, kith_cache **ret_cache, kith_error *err);
KITH_API void kith_cache_free(kith_cache *cache); /* NULL is fine */
KITH_API int64_t kith_cache_count(const kith_cache *cache);
/* False when there is no i-th entry. Its strings live as long as the cache. */
KITH_API bool kith_cache_at(const kith_cache *cache, int64_t i, kith_cache_entry *ret_entry);

/* What was removed. */
typedef struct kith_cache_removed {
    int64_t n, bytes;
    int64_t n_used; /* those that were left, because a process uses them */
} kith_cache_removed;

/* Remove the entries of this name or of this folder of photos, or (which NULL) all. One that is used stays. KITH_ENOTFOUND: there is none
 * of that name. The handle still shows what was there. */
KITH_API kith_status kith_cache_remove(kith_cache *cache, const char *which, kith_cache_removed *ret_removed,
                                       kith_error *err);
/* Remove entries, least recently used first, until the rest has at most so many bytes. */
KITH_API kith_status kith_cache_limit(kith_cache *cache, int64_t most_bytes, kith_cache_removed *ret_removed,
                                      kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
