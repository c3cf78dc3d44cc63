/* A segment: some rows of an index, their vectors and columns, in one file that is never changed (blocks.h).
 *
 *   vectors     float32 [n, dim]
 *   columns     each at a multiple of 64 bytes: int64 [n], float64 [n], or for text
 *               uint32 [n] codes, padded to 8 bytes; int64 [n_texts + 1] beginnings; the texts
 *   directory   an entry of 32 bytes for each column there is, by number
 *   trailer     64 bytes: the mark, n, dim, the number of entries, where the directory begins
 *
 * Numbers are little-endian. Rows are in the order of ids. */
#ifndef KI_SEARCH_SEGMENT_H
#define KI_SEARCH_SEGMENT_H

#include "search/files/blocks.h"
#include "search/files/cells.h"

/* Numbers of columns. Every segment has the first ones; those of the index follow, from KI_COLUMN_FIRST. */
enum {
    KI_COLUMN_ID,
    KI_COLUMN_BYTES,
    KI_COLUMN_MTIME,
    KI_COLUMN_PATH,
    KI_COLUMN_LABEL,
    KI_COLUMN_HASH,
    KI_COLUMN_FIRST,
    KI_MOST_COLUMNS = 1000,
    KI_MOST_DIM = 65536,
};
#define KI_MOST_ROWS INT64_C(0x7fffffff)

/* The type of a column of that number. `types` [n_types] are those of the index's own columns. */
kith_value_type ki_column_type(int64_t column, const kith_value_type *types);

/* ---- writing ---- */

/* Vectors go to the file as they come, columns are collected. Zero-initialise. */
typedef struct ki_segment_writer {
    ki_blocks_writer blocks;
    int64_t dim, n_rows; /* of vectors written */
    int64_t n_columns;
    ki_cells *columns;
} ki_segment_writer;

/* types [n_types] of the index's own columns. */
kith_status ki_segment_create(ki_segment_writer *writer, const char *path, int64_t dim,
                              const kith_value_type *types, int64_t n_types, kith_error *err);
/* A column behind the others; rows that are there have no value in it. */
kith_status ki_segment_column_add(ki_segment_writer *writer, kith_value_type type, kith_error *err);
kith_status ki_segment_write_rows(ki_segment_writer *writer, const float *rows, int64_t n, kith_error *err);
/* All columns must have a value for each row by now. */
kith_status ki_segment_finish(ki_segment_writer *writer, ki_blocks_seal *ret_seal, kith_error *err);
void ki_segment_discard(ki_segment_writer *writer);

/* ---- reading ---- */

typedef struct ki_segment_entry {
    int64_t column;
    int64_t offset, n_texts, text_bytes;
} ki_segment_entry;

/* Zero-initialise. Any number of threads may read. */
typedef struct ki_segment {
    ki_blocks blocks;
    int64_t n, dim;
    const kith_value_type *types; /* borrowed */
    ki_segment_entry *entries;
    int64_t n_entries;
} ki_segment;

/* Checks all sizes. Columns of the file beyond `types` [n_types] are KITH_EFORMAT. */
kith_status ki_segment_open(ki_segment *segment, const char *path, ki_blocks_seal seal, int64_t dim,
                            const kith_value_type *types, int64_t n_types, kith_error *err);
void ki_segment_close(ki_segment *segment);

/* keep: by ki_blocks_read_kept. */
kith_status ki_segment_rows(const ki_segment *segment, int64_t first, int64_t n, bool keep, float *dst,
                            kith_error *err);
/* A row that is in memory already, as ki_blocks_kept_at has it; else NULL. */
const float *ki_segment_kept_row(const ki_segment *segment, int64_t row);
/* A whole column; rows have no values when the segment is older than the column. The caller releases it. */
kith_status ki_segment_column(const ki_segment *segment, int64_t column, ki_cells *ret_cells,
                              kith_error *err);
/* The same where the column may be newer than the types that the segment was opened with. */
kith_status ki_segment_column_of(const ki_segment *segment, int64_t column, kith_value_type type,
                                 ki_cells *ret_cells, kith_error *err);
/* One value of a column. Text is a new string, given back with ki_free. */
kith_status ki_segment_cell(const ki_segment *segment, int64_t column, int64_t row, kith_value *ret_value,
                            kith_error *err);

#endif
