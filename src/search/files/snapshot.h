/* One commit of an index, opened: its files stay readable until it is freed, also when a writer has removed them. */
#ifndef KI_SEARCH_SNAPSHOT_H
#define KI_SEARCH_SNAPSHOT_H

#include "base/path.h"
#include "search/files/changes.h"
#include "search/files/manifest.h"
#include "search/files/records.h"
#include "search/files/segment.h"
#include "search/files/updates.h"

/* Nothing in it changes but what is kept in memory of it: any number of threads may read. */
typedef struct ki_snapshot {
    char *folder;
    ki_manifest manifest;
    ki_segment *segments; /* [manifest.n_segments] */
    ki_blocks *codes;     /* [manifest.n_segments]: their codes; not open where there are none */
    ki_blocks coder;      /* not open when there is none */
    int64_t *first;       /* [manifest.n_segments + 1]: the first row of each, and n_rows */
    int64_t n_rows, n_live;
    uint64_t *alive; /* bit row % 64 of word row / 64: not removed. Bits beyond n_rows are 0 */
    int64_t *ids;    /* [n_rows], ascending */
    ki_changes changes;
    ki_records moves;   /* paths and labels as they are now */
    ki_updates updates; /* the same of values, and of labels once more: these count */
    ki_keep keep;       /* of the segments' blocks, after ki_snapshot_keep */
} ki_snapshot;

/* "FOLDER/00000007.segment" */
kith_status ki_files_path(const char *folder, int64_t number, const char *kind, ki_path *ret_path,
                          kith_error *err);
#define KI_KIND_SEGMENT "segment"
#define KI_KIND_CHANGES "changes"
#define KI_KIND_MOVES "moves"
#define KI_KIND_UPDATES "updates"
#define KI_KIND_EXCLUDED "excluded"
#define KI_KIND_CODES "codes"
#define KI_KIND_CODER "coder"

/* A copy of its own. */
kith_status ki_manifest_copy(const ki_manifest *manifest, ki_manifest *ret_copy, kith_error *err);
kith_status ki_manifest_read(const char *folder, ki_manifest *ret_manifest, kith_error *err);

/* The last commit. A commit or compaction at the same time is no error: then the newer one is opened. */
kith_status ki_snapshot_open(const char *folder, ki_snapshot **ret_snapshot, kith_error *err);
/* What a manifest says that is not on disk yet, though its files are. */
kith_status ki_snapshot_preview(const char *folder, const ki_manifest *manifest, ki_snapshot **ret_snapshot,
                                kith_error *err);
void ki_snapshot_free(ki_snapshot *snapshot); /* NULL is fine */

static inline bool ki_bit(const uint64_t *bits, int64_t i) { return bits[i / 64] >> i % 64 & 1; }
static inline int64_t ki_bit_words(int64_t n) { return (n + 63) / 64; }

/* The row of an id; -1: never there, or removed. */
int64_t ki_snapshot_row(const ki_snapshot *snapshot, int64_t id);
/* Which segment a row is in. */
int64_t ki_snapshot_segment(const ki_snapshot *snapshot, int64_t row);
/* From now on rows that ki_snapshot_read reads stay in memory, up to so many bytes. Once, before other threads read. */
kith_status ki_snapshot_keep(ki_snapshot *snapshot, int64_t bytes, kith_error *err);
/* Rows first … first + n - 1; and rows by number. */
kith_status ki_snapshot_span(const ki_snapshot *snapshot, int64_t first, int64_t n, float *dst,
                             kith_error *err);
kith_status ki_snapshot_read(const ki_snapshot *snapshot, const int64_t *row, int64_t n, float *dst,
                             kith_error *err);
/* A row that such a read left in memory; NULL: it has to be read. */
const float *ki_snapshot_kept_row(const ki_snapshot *snapshot, int64_t row);
/* One value, with what changed since. Text is a new string, given back with ki_free. */
kith_status ki_snapshot_cell(const ki_snapshot *snapshot, int64_t column, int64_t row, kith_value *ret_value,
                             kith_error *err);
/* The items that were removed by hand, by id; the caller releases them. */
kith_status ki_snapshot_excluded(const ki_snapshot *snapshot, ki_records *ret_excluded, kith_error *err);
/* Bytes of all files. */
int64_t ki_snapshot_file_bytes(const ki_snapshot *snapshot);

#endif
