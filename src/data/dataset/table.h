/* Comma-separated tables with a header line: quoted fields ("a ""b"", c"), LF or CRLF. */
#ifndef KI_TABLE_H
#define KI_TABLE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "data/dataset/lines.h"

enum { KI_TABLE_MOST_FIELDS = 64 };

typedef struct ki_table {
    ki_lines lines;
    ki_text field[KI_TABLE_MOST_FIELDS]; /* of the row last read; into the text or the arena */
    size_t n_fields;
    ki_text line; /* where the row begins, for errors */
    ki_arena arena;
} ki_table;

ki_table ki_table_of(const char *name, const char *text, size_t n);
void ki_table_release(ki_table *table);
/* The next row that is not blank. *ret_more is false at the end. */
kith_status ki_table_next(ki_table *table, bool *ret_more, kith_error *err);
/* The column with this name in the row last read (the header), or -1. */
int ki_table_column(const ki_table *table, const char *name);
/* A field of the row; empty when the row is short or column is -1. */
ki_text ki_table_field(const ki_table *table, int column);

/* The reverse: one field, quoted. */
void ki_table_put(ki_buffer *text, const char *field);

#endif
