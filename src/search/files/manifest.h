/* The manifest: the one small file that says what the last commit is. Replaced as a whole, never changed.
 *
 * It is JSON in one line, whose last entry is the checksum of all before it. */
#ifndef KI_SEARCH_MANIFEST_H
#define KI_SEARCH_MANIFEST_H

#include "base/arena.h"
#include "base/buffer.h"
#include "kith/index.h"
#include "search/files/blocks.h"

/* Format 2 has lists of moved and removed items beside format 1, and is written where there are any: an older kith would lose them. So is format 3,
 * which has codes of the first values of vectors, and format 4, which has values that have changed. */
enum {
    KI_INDEX_FORMAT = 4,
    KI_INDEX_FORMAT_UPDATES = 4,
    KI_INDEX_FORMAT_START = 3,
    KI_INDEX_FORMAT_MOVES = 2,
    KI_INDEX_FORMAT_FIRST = 1
};
#define KI_MANIFEST_NAME "manifest.json"

/* A file of the folder: its name is its number and what it holds. Number 0: there is none. */
typedef struct ki_manifest_file {
    int64_t number;
    ki_blocks_seal seal;
} ki_manifest_file;

typedef struct ki_manifest_segment {
    ki_manifest_file rows, codes;
    int64_t n;
} ki_manifest_segment;

typedef struct ki_manifest_note {
    const char *name, *text;
} ki_manifest_note;

/* What is known of the codes without reading them. */
typedef struct ki_manifest_coding {
    int64_t bits, n_lists;
    int64_t coder_rows;                 /* rows there were when the coder was made … */
    int64_t tuned_rows;                 /* … and when the effort below was measured */
    int64_t n_probes, n_looks, tuned_k; /* how much work a search takes on (scan/scan.h) */
    double recall;                      /* measured */
} ki_manifest_coding;

/* Zero-initialise. Everything it points to is in the arena. */
typedef struct ki_manifest {
    ki_arena arena;
    int64_t generation, dim, next_id, next_file;
    kith_metric metric;
    const char *model, *preprocess; /* "" when not known */
    double recall;                  /* wanted */
    kith_column *columns;
    kith_value_type *types; /* [n_columns], of the columns */
    int64_t n_columns;
    ki_manifest_note *notes;
    int64_t n_notes;
    kith_calibration *calibration; /* NULL: none */
    ki_manifest_segment *segments;
    int64_t n_segments;
    ki_manifest_file changes;
    ki_manifest_file
        moves; /* paths and labels that have changed since their segments were written (records.h) */
    ki_manifest_file updates;  /* values and labels that have (updates.h) */
    ki_manifest_file excluded; /* items that were removed by hand; a server keeps them in a table */
    int64_t n_excluded;
    int64_t exact_numbers; /* rows times dim up to which there are no codes */
    int64_t first;         /* values of a vector that codes are made of; 0: all */
    ki_manifest_file coder;
    ki_manifest_coding coding; /* with a coder */
    uint64_t sum;              /* of the text it was read from */
} ki_manifest;

void ki_manifest_release(ki_manifest *manifest);
/* The format it is written in. */
int64_t ki_manifest_format(const ki_manifest *manifest);

/* `name` is what errors call it. KITH_EFORMAT for anything but a manifest, KITH_EUNSUPPORTED for one of another format.
 * All numbers are in range afterwards, and sizes of files are not negative. */
kith_status ki_manifest_parse(const char *text, size_t n, const char *name, ki_manifest *ret_manifest,
                              kith_error *err);
/* The text, to be given back with ki_free. */
kith_status ki_manifest_print(const ki_manifest *manifest, char **ret_text, size_t *ret_n, kith_error *err);

kith_status ki_manifest_column_add(ki_manifest *manifest, const char *name, kith_value_type type,
                                   kith_error *err);
kith_status ki_manifest_note_set(ki_manifest *manifest, const char *name, const char *text, kith_error *err);
/* KITH_EINVAL unless a column may have this name and type. */
kith_status ki_column_check(const char *name, kith_value_type type, kith_error *err);

#endif
