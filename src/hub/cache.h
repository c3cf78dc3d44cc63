/* The hub's cache on disk, laid out as huggingface_hub does it, so that each finds what the other fetched:
 *
 *     CACHE/models--timm--resnet50.a1_in1k/
 *         blobs/ETAG                          contents, named by their hash
 *         snapshots/COMMIT/model.safetensors  -> ../../blobs/ETAG
 *         refs/main                           the commit, 40 hexadecimal digits
 *     CACHE/.locks/models--timm--resnet50.a1_in1k/ETAG.lock
 *
 * CACHE is $HF_HUB_CACHE, else $HUGGINGFACE_HUB_CACHE, else $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else
 * ~/.cache/huggingface/hub. A "~" at the beginning of a variable stands for the home folder. */
#ifndef KI_HUB_CACHE_H
#define KI_HUB_CACHE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/path.h"
#include "hub/name.h"

/* Bytes of a config.json or preprocessor_config.json: one with the names of ImageNet-22k's classes, there and back, has 2 MB. */
enum { KI_HUB_MOST_CONFIG = 8 << 20 };

/* The cache's folder, absolute: `given`, or if that is NULL as the environment says. It need not exist. */
kith_status ki_hub_cache_folder(const char *given, ki_path *ret_folder, kith_error *err);
/* $HF_HOME, else what it stands for. */
kith_status ki_hub_home(ki_path *ret_folder, kith_error *err);
/* "1", "true", "yes" or "on" in any case, as huggingface_hub reads them. */
bool ki_hub_is_set(const char *variable);

/* CACHE/models--ORG--NAME. */
kith_status ki_hub_repo_folder(const char *cache, const char *repo, ki_path *ret_folder, kith_error *err);

/* The commit that a revision stands for; false: the cache does not know. */
bool ki_hub_ref_read(const char *repo_folder, const char *revision, char ret_commit[KI_HUB_COMMIT]);
kith_status ki_hub_ref_write(const char *repo_folder, const char *revision, const char *commit,
                             kith_error *err);
/* mkdir -p; `path` is changed while it works. */
kith_status ki_hub_make_folders(ki_path *path, kith_error *err);

/* The file of a name in the cache (NULL: the environment's). KITH_ENOTFOUND says how to fetch it. */
kith_status ki_hub_find(const char *cache, const ki_hub_name *name, ki_path *ret_file,
                        char ret_commit[KI_HUB_COMMIT], kith_error *err);
/* The same for "hub:NAME", into ret_file [bytes]. */
kith_status ki_hub_resolve(const char *text, char *ret_file, size_t bytes, kith_error *err);

/* Is the path a file of a snapshot (…/models--ORG--NAME/snapshots/COMMIT/FILE)? Then ret_repo is "ORG/NAME". */
bool ki_hub_repo_of_path(const char *path, char ret_repo[KI_HUB_REPO]);

/* ---- what is there ---- */

typedef struct ki_hub_entry {
    const char *repo, *commit; /* commit empty: nothing but a part of a download */
    const char *refs;          /* "main", "main v1.0"; empty: fetched by its commit */
    const char *file;          /* absolute path of the weights; empty as the commit */
    int64_t bytes;             /* of the files of this snapshot; of a part what has arrived */
} ki_hub_entry;

/* The repositories that have weights kith could read (model.safetensors, or the file of their row), by name, one entry for each
 * snapshot; and one for each repository with a part of a download. *ret_entries is freed with ki_free; texts are in the arena. A
 * cache that is not there is empty. */
kith_status ki_hub_entries(const char *cache, ki_arena *arena, ki_hub_entry **ret_entries, int64_t *ret_n,
                           kith_error *err);

/* Remove a repository, or with `has_revision` one snapshot of it with the contents that no other has. *ret_bytes: what was
 * freed. KITH_ENOTFOUND: it is not in the cache. KITH_EINVAL: somebody is fetching it. If it is interrupted, call it again. */
kith_status ki_hub_remove(const char *cache, const ki_hub_name *name, bool has_revision, int64_t *ret_bytes,
                          kith_error *err);

#endif
