/* The notes that kith itself writes into an index, by type: the one place that knows their names.
 *
 * kith_index_note takes any name, for notes of users. What an index needs to be kept up to date and searched by images is here. */
#ifndef KI_SEARCH_NOTES_H
#define KI_SEARCH_NOTES_H

#include "base/arena.h"
#include "kith/index.h"

typedef enum ki_note {
    KI_NOTE_SOURCES,    /* what the index was made from */
    KI_NOTE_DATASET,    /* the kind of data set that the sources are; "": files and folders */
    KI_NOTE_SPLIT,      /* its part: "train", "validation", "test" or "all" */
    KI_NOTE_FOLDER,     /* where relative paths of items begin */
    KI_NOTE_MODEL,      /* the model's file */
    KI_NOTE_MODEL_NAME, /* "general": the model was named so, not by its file; else none, or "" */
    KI_NOTE_BACKBONE,   /* from here on: options of kith_model_options that the model's file does not hold */
    KI_NOTE_SETTINGS,
    KI_NOTE_POOL,
    KI_NOTE_TAP,
    KI_NOTE_RESIZE,
    KI_NOTE_SIDE,        /* of the model's input, in pixels */
    KI_NOTE_VIEWS,       /* of every image */
    KI_NOTE_MEASURED,    /* of an index that was measured on its own labels: how many items it had
                            then, and an id that none of them had reached: "400 512" */
    KI_NOTE_NAMES,       /* how often names are wrong, measured on its own labels (judge/naming.h) */
    KI_NOTE_RELIABILITY, /* how often its hits are wrong, as JSON; "": its labels are too few */
    KI_NOTE_EXIF,      /* "no": facts of photos are not read; else the columns that they are in, one a line */
    KI_NOTE_META,      /* a table of values by path … */
    KI_NOTE_META_HASH, /* … its contents when it was last read … */
    KI_NOTE_META_COLUMNS, /* … and its columns then, one a line */
    KI_NOTE_GROUPS,       /* how its groups were made (collection/group_kept.c) */
    KI_NOTE_PLACE,        /* where the index itself lay when it was first committed */
    KI_N_NOTES
} ki_note;

typedef enum ki_note_kind {
    KI_NOTE_IS_TEXT,
    KI_NOTE_IS_NUMBER, /* whole */
    KI_NOTE_IS_PATH,   /* absolute */
    KI_NOTE_IS_PATHS,  /* absolute, one a line */
} ki_note_kind;

typedef struct ki_note_type {
    const char *name;
    ki_note_kind kind;
    bool follows; /* names files that an index may be moved with (search/place.h) */
} ki_note_type;

extern const ki_note_type ki_note_types[KI_N_NOTES];

/* The note of that name; KI_N_NOTES: it is not one of kith's. */
ki_note ki_note_named(const char *name);

/* As kith_index_note and kith_index_note_set. */
const char *ki_index_note(const kith_index *index, ki_note note);
kith_status ki_index_note_set(kith_index *index, ki_note note, const char *text, kith_error *err);

/* A number; 0: there is none. KITH_EFORMAT: it is not a number. */
kith_status ki_index_note_number(const kith_index *index, ki_note note, int64_t *ret_value, kith_error *err);
kith_status ki_index_note_number_set(kith_index *index, ki_note note, int64_t value, kith_error *err);

/* A list of paths, which lives as long as the arena; none: *ret_n is 0. */
kith_status ki_index_note_paths(const kith_index *index, ki_note note, ki_arena *arena,
                                const char ***ret_paths, int64_t *ret_n, kith_error *err);
kith_status ki_index_note_paths_set(kith_index *index, ki_note note, const char *const *paths, int64_t n,
                                    kith_error *err);

#endif
