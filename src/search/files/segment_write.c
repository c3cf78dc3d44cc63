/* Writing a segment. */
#include <string.h>

#include "base/alloc.h"
#include "search/files/segment.h"
#include "search/files/segment_layout.h"

enum { COLUMN_ALIGN = 64 };

kith_value_type ki_column_type(int64_t column, const kith_value_type *types) {
    if (column >= KI_COLUMN_FIRST) return types[column - KI_COLUMN_FIRST];
    return column <= KI_COLUMN_MTIME ? KITH_VALUE_INT : KITH_VALUE_TEXT;
}

kith_status ki_segment_create(ki_segment_writer *w, const char *path, int64_t dim,
                              const kith_value_type *types, int64_t n_types, kith_error *err) {
    w->dim = dim;
    KI_TRY(
        ki_zalloc_or(&w->columns, (size_t)(KI_COLUMN_FIRST + n_types), sizeof *w->columns, "columns", err));
    w->n_columns = KI_COLUMN_FIRST + n_types;
    for (int64_t i = 0; i < w->n_columns; i++) w->columns[i].type = ki_column_type(i, types);
    return ki_blocks_create(&w->blocks, path, err);
}

kith_status ki_segment_column_add(ki_segment_writer *w, kith_value_type type, kith_error *err) {
    const size_t n = (size_t)w->n_columns;
    ki_cells *columns = ki_realloc(w->columns, n + 1, sizeof *columns);
    if (!columns) return ki_fail_memory(err, (n + 1) * sizeof *columns, "columns");
    w->columns = columns;
    columns[n] = (ki_cells){.type = type};
    w->n_columns++;
    const kith_value none = {0};
    for (int64_t i = 0; i < w->n_rows; i++) KI_TRY(ki_cells_add(&columns[n], &none, err));
    return KITH_OK;
}

kith_status ki_segment_write_rows(ki_segment_writer *w, const float *rows, int64_t n, kith_error *err) {
    KI_TRY(ki_blocks_write(&w->blocks, rows, (size_t)(n * w->dim) * sizeof *rows, err));
    w->n_rows += n;
    return KITH_OK;
}

static kith_status write_column(ki_blocks_writer *blocks, const ki_cells *c, ki_segment_entry *entry,
                                kith_error *err) {
    KI_TRY(ki_blocks_pad(blocks, COLUMN_ALIGN, err));
    entry->offset = blocks->bytes;
    const size_t n = (size_t)c->n;
    if (c->type == KITH_VALUE_INT) return ki_blocks_write(blocks, c->integer, n * sizeof *c->integer, err);
    if (c->type == KITH_VALUE_REAL) return ki_blocks_write(blocks, c->real, n * sizeof *c->real, err);
    static const int64_t none = 0;
    entry->n_texts = c->n_texts;
    entry->text_bytes = (int64_t)c->texts.n;
    KI_TRY(ki_blocks_write(blocks, c->code, n * sizeof *c->code, err));
    KI_TRY(ki_blocks_pad(blocks, sizeof(int64_t), err));
    KI_TRY(ki_blocks_write(blocks, c->text_begin ? c->text_begin : &none,
                           (size_t)(c->n_texts + 1) * sizeof *c->text_begin, err));
    return ki_blocks_write(blocks, c->texts.data, c->texts.n, err);
}

kith_status ki_segment_finish(ki_segment_writer *w, ki_blocks_seal *ret_seal, kith_error *err) {
    kith_status status = KITH_OK;
    ki_segment_entry *entries = NULL;
    KI_CHECK(ki_zalloc_or(&entries, (size_t)w->n_columns, sizeof *entries, "columns", err));
    for (int64_t i = 0; i < w->n_columns; i++) {
        if (w->columns[i].n != w->n_rows) {
            status = ki_fail(err, KITH_EINTERNAL, "column %lld has %lld values for %lld rows", (long long)i,
                             (long long)w->columns[i].n, (long long)w->n_rows);
            goto done;
        }
        entries[i].column = i;
        KI_CHECK(write_column(&w->blocks, &w->columns[i], &entries[i], err));
    }
    KI_CHECK(ki_blocks_pad(&w->blocks, COLUMN_ALIGN, err));
    const ki_segment_trailer trailer = {.mark = KI_SEGMENT_MARK,
                                        .n = w->n_rows,
                                        .dim = w->dim,
                                        .n_entries = w->n_columns,
                                        .directory = w->blocks.bytes};
    KI_CHECK(ki_blocks_write(&w->blocks, entries, (size_t)w->n_columns * sizeof *entries, err));
    KI_CHECK(ki_blocks_write(&w->blocks, &trailer, sizeof trailer, err));
    KI_CHECK(ki_blocks_finish(&w->blocks, ret_seal, err));
done:
    ki_free(entries);
    return status;
}

void ki_segment_discard(ki_segment_writer *w) {
    for (int64_t i = 0; i < w->n_columns; i++) ki_cells_release(&w->columns[i]);
    ki_free(w->columns);
    ki_blocks_discard(&w->blocks);
    *w = (ki_segment_writer){0};
}
