/* Several segments into one, without the rows that were removed. */
#include <string.h>

#include "base/alloc.h"
#include "search/files/writer.h"

enum { PIECE_BYTES = 1 << 20 };

typedef struct merge {
    const ki_segment *const *segments;
    int64_t n_segments;
    const uint64_t *alive;
    int64_t first_bit;
    const ki_records *moves;
    const ki_updates *updates;
    ki_segment_writer writer;
    float *piece;
    int64_t piece_rows;
} merge;

static bool is_alive(const merge *m, int64_t row) { return ki_bit(m->alive, m->first_bit + row); }

/* Runs of rows that stay. */
static kith_status copy_vectors(merge *m, const ki_segment *s, int64_t first, ki_tally *tally,
                                kith_error *err) {
    for (int64_t i = 0, end; i < s->n; i = end) {
        end = i + 1;
        if (!is_alive(m, first + i)) continue;
        while (end < s->n && end - i < m->piece_rows && is_alive(m, first + end)) end++;
        KI_TRY(ki_segment_rows(s, i, end - i, false, m->piece, err));
        KI_TRY(ki_segment_write_rows(&m->writer, m->piece, end - i, err));
        KI_TRY(ki_tally_add(tally, end - i, err));
    }
    return KITH_OK;
}

/* A column of a segment, with what has changed. */
static kith_status read_column(const merge *m, const ki_segment *s, int64_t column, ki_cells *ret_cells,
                               kith_error *err) {
    ki_cells ids = {0};
    KI_TRY(ki_segment_column_of(s, column, m->writer.columns[column].type, ret_cells, err));
    if (m->moves->n == 0 && m->updates->n == 0) return KITH_OK;
    kith_status status = ki_segment_column(s, KI_COLUMN_ID, &ids, err);
    if (status == KITH_OK) status = ki_records_apply(m->moves, column, ids.integer, ret_cells, err);
    if (status == KITH_OK) status = ki_updates_apply(m->updates, column, ids.integer, ret_cells, err);
    ki_cells_release(&ids);
    return status;
}

static kith_status copy_column(merge *m, int64_t column, const ki_stamp *stamps, int64_t n_stamps,
                               kith_error *err) {
    kith_status status = KITH_OK;
    ki_cells cells = {0};
    int64_t first = 0, at = 0;
    for (int64_t i = 0; i < m->n_segments; first += m->segments[i++]->n) {
        KI_CHECK(read_column(m, m->segments[i], column, &cells, err));
        for (int64_t j = 0; j < cells.n; j++) {
            kith_value value = ki_cells_get(&cells, j);
            while (at < n_stamps && stamps[at].row < first + j) at++;
            if (at < n_stamps && stamps[at].row == first + j && column == KI_COLUMN_BYTES)
                value = (kith_value){.type = KITH_VALUE_INT, .integer = stamps[at].bytes};
            if (at < n_stamps && stamps[at].row == first + j && column == KI_COLUMN_MTIME)
                value = (kith_value){.type = KITH_VALUE_INT, .integer = stamps[at].mtime_ns};
            if (is_alive(m, first + j)) KI_CHECK(ki_cells_add(&m->writer.columns[column], &value, err));
        }
        ki_cells_release(&cells);
    }
done:
    ki_cells_release(&cells);
    return status;
}

kith_status ki_segments_merge(const ki_segment *const *segments, int64_t n_segments, const uint64_t *alive,
                              int64_t first_bit, const ki_stamp *stamps, int64_t n_stamps,
                              const ki_records *moves, const ki_updates *updates, const char *path,
                              const ki_manifest *manifest, ki_tally *tally, ki_manifest_segment *ret_merged,
                              kith_error *err) {
    kith_status status = KITH_OK;
    merge m = {.segments = segments,
               .n_segments = n_segments,
               .alive = alive,
               .first_bit = first_bit,
               .moves = moves,
               .updates = updates};
    const int64_t row_bytes = manifest->dim * (int64_t)sizeof *m.piece;
    m.piece_rows = row_bytes < PIECE_BYTES ? PIECE_BYTES / row_bytes : 1;
    KI_CHECK(ki_alloc_or(&m.piece, (size_t)m.piece_rows, (size_t)row_bytes, "rows", err));
    KI_CHECK(ki_segment_create(&m.writer, path, manifest->dim, manifest->types, manifest->n_columns, err));
    int64_t first = 0;
    for (int64_t i = 0; i < n_segments; first += segments[i++]->n)
        KI_CHECK(copy_vectors(&m, segments[i], first, tally, err));
    for (int64_t i = 0; i < m.writer.n_columns; i++) KI_CHECK(copy_column(&m, i, stamps, n_stamps, err));
    ki_blocks_seal seal;
    KI_CHECK(ki_segment_finish(&m.writer, &seal, err));
    ret_merged->rows.seal = seal;
    ret_merged->n = m.writer.n_rows;
done:
    ki_segment_discard(&m.writer);
    ki_free(m.piece);
    return status;
}
