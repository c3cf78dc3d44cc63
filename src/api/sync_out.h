/* Files that were removed from an index by hand, as a sync meets them: by their paths first, then by their contents. */
#ifndef KI_API_SYNC_OUT_H
#define KI_API_SYNC_OUT_H

#include "search/index_handle.h"

/* Zero-initialise. */
typedef struct ki_sync_out {
    ki_records files;
    bool *is_met; /* [files.n] */
    int64_t n_met;
} ki_sync_out;

kith_status ki_sync_out_init(ki_sync_out *out, const kith_index *index, kith_error *err);
void ki_sync_out_release(ki_sync_out *out);

/* Was the file of this path removed by hand? */
bool ki_sync_out_meets(ki_sync_out *out, const char *path);
/* A photo of the index now has the path of one that was met. Is that one another? Then it was not met. Before ki_sync_out_turn. */
bool ki_sync_out_gives_way(ki_sync_out *out, const char *path, const char *hash);
/* Are there any that were not met, and so may have been moved? */
static inline bool ki_sync_out_is_left(const ki_sync_out *out) { return out->n_met < out->files.n; }
/* From now on those that were not met are found by their contents. */
void ki_sync_out_turn(ki_sync_out *out);
/* Does the file have the contents of one that was not met? Then that one was moved, and is left out under this path from now on. */
kith_status ki_sync_out_follows(ki_sync_out *out, kith_index *index, const char *path, const char *hash,
                                bool *ret_is_out, kith_error *err);

#endif
