/* Reading everything of a folder, to find what is damaged. */
#include "base/alloc.h"
#include "knn/rows.h"
#include "search/local/local.h"

enum { PIECE_NUMBERS = 1 << 18 };

static kith_status check_vectors(const ki_snapshot *s, int64_t first, int64_t n, float *piece,
                                 kith_error *err) {
    const int64_t dim = s->manifest.dim, step = PIECE_NUMBERS / dim;
    for (int64_t i = first; i < first + n; i += step) {
        const int64_t take = first + n - i < step ? first + n - i : step;
        KI_TRY(ki_snapshot_span(s, i, take, piece, err));
        const kith_array array = {KITH_F32, 2, {take, dim}, piece};
        ki_rows rows;
        if (ki_rows_init(&array, "segment", &rows, err) != KITH_OK)
            return ki_fail(err, KITH_EFORMAT, "%s: rows %lld to %lld have a number that is not finite",
                           s->folder, (long long)i, (long long)(i + take - 1));
    }
    return KITH_OK;
}

static kith_status check_columns(const ki_segment *segment, int64_t n_columns, kith_error *err) {
    for (int64_t i = 0; i < n_columns; i++) {
        ki_cells cells = {0};
        KI_TRY(ki_segment_column(segment, i, &cells, err));
        ki_cells_release(&cells);
    }
    return KITH_OK;
}

/* The bytes anew, and then that a search can use them. */
static kith_status check_codes(ki_view *view, const kith_work_options *o, int64_t *done, int64_t all,
                               kith_error *err) {
    const ki_snapshot *s = view->snapshot;
    if (!ki_coded_is_there(s)) return KITH_OK;
    KI_TRY(ki_blocks_check(&s->coder, o->progress, o->user, *done, all, err));
    *done += ki_blocks_file_bytes(s->coder.bytes);
    for (int64_t i = 0; i < s->manifest.n_segments; i++) {
        if (!s->codes[i].is_open) continue;
        KI_TRY(ki_blocks_check(&s->codes[i], o->progress, o->user, *done, all, err));
        *done += ki_blocks_file_bytes(s->codes[i].bytes);
    }
    ki_scan_set set;
    ki_scan_effort effort;
    return ki_coded_set(&view->coded, &set, &effort, err);
}

/* Moves were read when the snapshot was opened, from memory that does not tell what is on disk now. */
static kith_status check_records(const ki_snapshot *s, int64_t *done, kith_error *err) {
    const struct {
        const ki_manifest_file *file;
        const char *kind;
    } lists[] = {{&s->manifest.moves, KI_KIND_MOVES}, {&s->manifest.excluded, KI_KIND_EXCLUDED}};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        ki_path path;
        ki_records records = {0};
        if (!lists[i].file->number) continue;
        KI_TRY(ki_files_path(s->folder, lists[i].file->number, lists[i].kind, &path, err));
        KI_TRY(ki_records_read(path.s, lists[i].file->seal, s->manifest.next_id, &records, err));
        ki_records_release(&records);
        *done += ki_blocks_file_bytes(lists[i].file->seal.bytes);
    }
    return KITH_OK;
}

static kith_status check_updates(const ki_snapshot *s, int64_t *done, kith_error *err) {
    const ki_manifest *m = &s->manifest;
    ki_path path;
    ki_updates updates = {0};
    if (!m->updates.number) return KITH_OK;
    KI_TRY(ki_files_path(s->folder, m->updates.number, KI_KIND_UPDATES, &path, err));
    KI_TRY(ki_updates_read(path.s, m->updates.seal, m->next_id, m->types, m->n_columns, &updates, err));
    ki_updates_release(&updates);
    *done += ki_blocks_file_bytes(m->updates.seal.bytes);
    return KITH_OK;
}

kith_status ki_local_check(ki_store *store, const kith_work_options *o, int64_t *ret_bytes, kith_error *err) {
    kith_status status = KITH_OK;
    ki_view *view = ki_local_of(store)->view;
    const ki_snapshot *s = view->snapshot;
    float *piece = NULL;
    ki_changes changes = {0};
    ki_path path;
    int64_t done = 0;
    const int64_t all = ki_snapshot_file_bytes(s);
    KI_CHECK(ki_alloc_or(&piece, PIECE_NUMBERS, sizeof *piece, "rows", err));
    for (int64_t i = 0; i < s->manifest.n_segments; i++) {
        const ki_segment *segment = &s->segments[i];
        KI_CHECK(ki_blocks_check(&segment->blocks, o->progress, o->user, done, all, err));
        done += ki_blocks_file_bytes(segment->blocks.bytes);
        KI_CHECK(check_vectors(s, s->first[i], segment->n, piece, err));
        KI_CHECK(check_columns(segment, KI_COLUMN_FIRST + s->manifest.n_columns, err));
    }
    KI_CHECK(check_codes(view, o, &done, all, err));
    const ki_manifest_file *file = &s->manifest.changes;
    if (file->number) {
        KI_CHECK(ki_files_path(s->folder, file->number, KI_KIND_CHANGES, &path, err));
        KI_CHECK(ki_changes_read(path.s, file->seal, s->n_rows, &changes, err));
        done += ki_blocks_file_bytes(file->seal.bytes);
    }
    KI_CHECK(check_records(s, &done, err));
    KI_CHECK(check_updates(s, &done, err));
    *ret_bytes = done;
done:
    ki_changes_release(&changes);
    ki_free(piece);
    return status;
}
