/* Files that were removed from an index by hand, as a sync meets them: by their paths, and by their contents where those are not what they
 * were. */
#ifndef KI_COLLECTION_SYNC_OUT_H
#define KI_COLLECTION_SYNC_OUT_H

#include "search/index_handle.h"

/* Zero-initialise. */
typedef struct ki_sync_out {
    ki_records files; /* by their paths */
    int64_t *file; /* [files.n] the sync's file with that path, left out because of it; -1: there is none */
    bool *is_followed;    /* [files.n] found under another path */
    int64_t *by_contents; /* [n_contents] which of `files` have a hash, by it */
    int64_t n_contents;
} ki_sync_out;

kith_status ki_sync_out_init(ki_sync_out *out, const kith_index *index, kith_error *err);
void ki_sync_out_release(ki_sync_out *out);

/* Was the file of this path removed by hand? Then `file` is remembered with it. */
bool ki_sync_out_meets(ki_sync_out *out, const char *path, int64_t file);
/* A photo of the index now has the path of one that was removed. Is that one another? Then it is not there any more. */
bool ki_sync_out_gives_way(ki_sync_out *out, const char *path, const char *hash);

/* Those with these contents are the numbers k from ki_sync_out_first on for which ki_sync_out_has holds. */
int64_t ki_sync_out_first(const ki_sync_out *out, const char *hash);
bool ki_sync_out_has(const ki_sync_out *out, int64_t k, const char *hash);
/* Number k was moved, and is left out under this path from now on. */
kith_status ki_sync_out_follow(ki_sync_out *out, int64_t k, kith_index *index, const char *path,
                               kith_error *err);

#endif
