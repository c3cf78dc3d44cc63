/* The user's cache: where it is, and models kept in it by their hash (kith/photos.h has its layout). */
#ifndef KI_COLLECTION_CACHE_H
#define KI_COLLECTION_CACHE_H

#include "base/path.h"

/* The cache's folder, absolute: `given`, or if that is NULL as the environment says. It need not exist. */
kith_status ki_cache_folder(const char *given, ki_path *ret_folder, kith_error *err);

/* CACHE/NAME, made with all above it, for the user alone. The hint of KITH_EIO says how to name another place. */
kith_status ki_cache_make(const char *cache, const char *name, ki_path *ret_folder, kith_error *err);

/* Copy a model's file to CACHE/models/HASH.safetensors, unless it is there. KITH_EINVAL: the file does not have that hash. */
kith_status ki_cache_keep_model(const char *cache, const char *file, const char *hash, kith_error *err);
/* The kept model of that hash; false: there is none. Its date is now the time of its last use. */
bool ki_cache_kept_model(const char *cache, const char *hash, ki_path *ret_file);

/* Removes a folder and all in it; links are not followed. Nothing is said of what cannot be removed. */
void ki_cache_remove_folder(const char *folder);
/* Bytes of the files in a folder, as they lie on the disk. */
int64_t ki_cache_folder_bytes(const char *folder);

#endif
