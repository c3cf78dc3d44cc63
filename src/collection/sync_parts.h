/* What the parts of a sync share; for sync.c, sync_contents.c and sync_embed.c. */
#ifndef KI_COLLECTION_SYNC_PARTS_H
#define KI_COLLECTION_SYNC_PARTS_H

#include "collection/sync.h"
#include "collection/sync_lost.h"
#include "collection/sync_out.h"

/* One file of the data set. */
typedef struct ki_sync_file {
    int64_t item; /* of the data set */
    int64_t old;  /* the item of the index that it replaces, or -1 */
    int64_t from; /* the lost item whose contents it has, or -1 */
    kith_file_state state;
    bool is_hashed, is_touched, is_out; /* out: removed by hand */
    char hash[65];                      /* "": not read yet, or unreadable */
} ki_sync_file;

typedef struct ki_sync_meta ki_sync_meta;

typedef struct ki_sync {
    kith_index *index;
    kith_model *model;
    const ki_sync_task *task;
    kith_sync_report *report;
    kith_file_stamp *stamp; /* [n] */
    ki_sync_file *file;     /* [n] */
    int64_t n;
    int64_t *gone, n_gone;
    ki_sync_out out;               /* files that were removed by hand */
    ki_sync_lost lost;             /* items whose contents are not at their path */
    int64_t *todo, n_todo, n_done; /* files to embed */
    double committed;              /* when */
    int64_t n_pending;             /* embedded since then */
    ki_sync_meta *meta;            /* never NULL */
    bool reads_exif;               /* of what is new */
    unsigned exif_columns;         /* bits: facts that some photo has had */
} ki_sync;

/* What the index is to know of a file. */
kith_index_item ki_sync_item(const ki_sync *sync, int64_t i);
/* Count one that could not be read, and name it while there is room. */
kith_status ki_sync_name(ki_sync *sync, const char *line, kith_error *err);
/* One more line for people in the report. */
kith_status ki_sync_say(ki_sync *sync, const char *line, kith_error *err);

/* ---- sync_contents.c ---- */

/* Hash n files, given by number, in parallel; those that have been are not read again. */
void ki_sync_hash(ki_sync *sync, const int64_t *files, int64_t n);
/* New files that were removed by hand, by their paths. */
kith_status ki_sync_leave_out(ki_sync *sync, kith_error *err);
/* What the contents say of files that are not as they were: touched, moved, or lost. */
kith_status ki_sync_look_inside(ki_sync *sync, kith_error *err);

/* ---- sync_embed.c ---- */

/* Embed what is in `todo` part by part, and commit now and then. */
kith_status ki_sync_embed(ki_sync *sync, kith_error *err);

#endif
