/* One file on its way into the cache: locked, written beside its place, checked, put in place. */
#ifndef KI_HUB_BLOB_H
#define KI_HUB_BLOB_H

#include <stdint.h>

#include "base/path.h"
#include "hub/answer.h"
#include "hub/name.h"

typedef enum ki_hub_check {
    KI_HUB_NO_HASH, /* nothing that could be compared */
    KI_HUB_SHA256,  /* the etag of a large file (git-lfs) */
    KI_HUB_GIT,     /* that of a small one: git's SHA-1 */
} ki_hub_check;

/* What the hub says of a file before it sends it. */
typedef struct ki_hub_facts {
    char commit[KI_HUB_COMMIT];
    char etag[KI_HUB_ETAG]; /* the name of its contents */
    ki_hub_check check;
    int64_t bytes;
} ki_hub_facts;

/* Called while waiting for others; another status than KITH_OK stops. */
typedef kith_status ki_hub_wait_fn(void *user, kith_error *err);

/* Zero-initialise; release always. */
typedef struct ki_hub_blob {
    ki_path blob, part, pointer; /* blobs/ETAG; blobs/ETAG.incomplete; snapshots/COMMIT/FILE */
    const ki_hub_facts *facts;   /* borrowed */
    const char *file;            /* borrowed; for errors */
    int lock, fd;
    bool is_locked, is_open;
    int64_t n_bytes; /* of the part */
} ki_hub_blob;

/* Make the folders and take the lock, waiting for whoever has it. Then *ret_is_there says whether the contents are there
 * already, complete; otherwise the part is open, and n_bytes says how much of it had arrived before. */
kith_status ki_hub_blob_open(ki_hub_blob *blob, const char *cache, const char *repo, const char *file,
                             const ki_hub_facts *facts, ki_hub_wait_fn *wait, void *user, bool *ret_is_there,
                             kith_error *err);
/* Throw away what has arrived. */
kith_status ki_hub_blob_restart(ki_hub_blob *blob, kith_error *err);
/* More than facts->bytes is KITH_EFORMAT. A full disk is KITH_EIO, and the part is removed. */
kith_status ki_hub_blob_add(ki_hub_blob *blob, const void *bytes, size_t n, kith_error *err);
/* Read the part again, compare its hash, sync it and put it in place. A wrong hash is KITH_EFORMAT, and the part is removed. */
kith_status ki_hub_blob_finish(ki_hub_blob *blob, kith_error *err);
/* Make the snapshot's link, for contents that are there. */
kith_status ki_hub_blob_link(ki_hub_blob *blob, kith_error *err);
void ki_hub_blob_release(ki_hub_blob *blob);

#endif
