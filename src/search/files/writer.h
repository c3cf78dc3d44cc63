/* The writer of an index: what is pending, and how it becomes the next commit.
 *
 * A commit writes new files first, each whole and synced, and then replaces the manifest, which is the one moment that counts.
 * Files that no manifest names any more, or none yet, are swept away by whoever holds the lock. */
#ifndef KI_SEARCH_WRITER_H
#define KI_SEARCH_WRITER_H

#include "search/files/snapshot.h"
#include "search/tally.h"

typedef struct ki_writer {
    int lock;
    ki_snapshot *now;         /* the last commit */
    ki_manifest next;         /* what will be committed, but for the lists of files */
    ki_segment_writer writer; /* of the rows that were added, when is_writing */
    bool is_writing;
    ki_manifest_file pending; /* the writer's file */
    uint64_t *alive;          /* rows of `now` and then the pending ones; bits beyond them are 0 */
    int64_t n_removed;        /* pending removals */
    size_t alive_capacity;    /* words */
    ki_stamp *stamps;         /* pending, by when they came */
    size_t n_stamps, stamp_capacity;
    ki_records moved, excluded; /* pending, by when they came */
    ki_updates updated;         /* the same */
    int64_t large_rows;         /* segments from this size on are merged on demand only */
    bool is_changed;            /* something is pending */
    bool is_broken;             /* a commit or an addition failed: only free it */
} ki_writer;

/* What a commit asks of others. */
typedef struct ki_writer_hook {
    /* Makes the codes that are missing, before the manifest is written: sets the files of codes and coder in it, with numbers
     * from next_file. to_be: the rows of the manifest, readable. May be NULL. */
    kith_status (*encode)(ki_tally *tally, const ki_snapshot *to_be, ki_manifest *manifest, bool anew,
                          kith_error *err);
    /* For how many rows it will make codes, of a commit of so many, of which n_new are in a new segment. With `encode`. */
    int64_t (*rows)(const ki_manifest *manifest, int64_t n_rows, int64_t n_live, int64_t n_new, bool anew);
    ki_tally *tally; /* each row counts when it is copied, and when its code is made; may be NULL */
} ki_writer_hook;

/* A new folder with the empty commit of this manifest. */
kith_status ki_writer_create(const char *folder, const ki_manifest *manifest, kith_error *err);
/* Takes the lock; KITH_EINVAL when another process has it. */
kith_status ki_writer_open(const char *folder, ki_writer **ret_writer, kith_error *err);
void ki_writer_free(ki_writer *writer); /* NULL is fine */

/* items [n] or NULL; their values have been checked. ret_first_id: the ids count up from it. */
kith_status ki_writer_add(ki_writer *writer, const float *rows, int64_t n, const kith_index_item *items,
                          int64_t *ret_first_id, kith_error *err);
/* The row, counted on from the rows of `now` for pending ones, that has the id; -1 when it is not there. */
int64_t ki_writer_row(const ki_writer *writer, int64_t id);
void ki_writer_remove(ki_writer *writer, int64_t row);
kith_status ki_writer_stamp(ki_writer *writer, const ki_stamp *stamp, kith_error *err);
/* The item of the id has another path and label. */
kith_status ki_writer_move(ki_writer *writer, const ki_file_record *move, kith_error *err);
/* Values are new; all of them or, after a failure, none. */
kith_status ki_writer_update(ki_writer *writer, const ki_new_values *values, kith_error *err);
/* A file that was removed by hand: its item's id, path and hash. */
kith_status ki_writer_exclude(ki_writer *writer, const ki_file_record *file, kith_error *err);
/* Removes a row by hand: its file is excluded from now on, where it has a path. */
kith_status ki_writer_exclude_row(ki_writer *writer, int64_t id, int64_t row, kith_error *err);
kith_status ki_writer_column_add(ki_writer *writer, const char *name, kith_value_type type, kith_error *err);

/* Nothing is pending: as after opening. */
kith_status ki_writer_begin(ki_writer *writer, kith_error *err);

/* *ret_before: the commit before, which the caller frees, also after a failure; NULL when there is no new one. */
kith_status ki_writer_commit(ki_writer *writer, bool compact, const ki_writer_hook *hook,
                             ki_snapshot **ret_before, kith_error *err);

/* The list of excluded files as it will be, for the next manifest: without those that the pending rows have added again. */
kith_status ki_writer_write_excluded(ki_writer *writer, kith_error *err);

/* A segment from several (merge.c): the rows of `segments` that are alive, in order, with these stamps, moves and updates. alive and stamps count
 * rows from the first of the segments. tally may be NULL. */
kith_status ki_segments_merge(const ki_segment *const *segments, int64_t n_segments, const uint64_t *alive,
                              int64_t first_bit, const ki_stamp *stamps, int64_t n_stamps,
                              const ki_records *moves, const ki_updates *updates, const char *path,
                              const ki_manifest *manifest, ki_tally *tally, ki_manifest_segment *ret_merged,
                              kith_error *err);

#endif
