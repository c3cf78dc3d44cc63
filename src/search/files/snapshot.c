/* Opening a commit, and rows and values by number. */
#include "search/files/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/file.h"

enum { MOST_MANIFEST_BYTES = 64 << 20, MOST_TRIES = 100 };

kith_status ki_files_path(const char *folder, int64_t number, const char *kind, ki_path *ret_path,
                          kith_error *err) {
    return ki_path_print(ret_path, err, "%s/%08lld.%s", folder, (long long)number, kind);
}

kith_status ki_manifest_read(const char *folder, ki_manifest *ret_manifest, kith_error *err) {
    ki_path path;
    char *text = NULL;
    size_t n = 0;
    KI_TRY(ki_path_print(&path, err, "%s/" KI_MANIFEST_NAME, folder));
    if (!ki_is_folder("%s", folder)) {
        ki_fail(err, KITH_EFORMAT, "%s is not an index: wanted a folder that `kith index` made", folder);
        if (access(folder, F_OK) != 0) ki_fail(err, KITH_EIO, "cannot open %s: %s", folder, strerror(errno));
        return err ? err->status : KITH_EIO;
    }
    if (access(path.s, F_OK) != 0 && errno == ENOENT)
        return ki_fail(err, KITH_EFORMAT, "%s is not an index: it has no " KI_MANIFEST_NAME, folder);
    KI_TRY(ki_file_read(path.s, MOST_MANIFEST_BYTES, &text, &n, err));
    const kith_status status = ki_manifest_parse(text, n, path.s, ret_manifest, err);
    ki_free(text);
    return status;
}

void ki_snapshot_free(ki_snapshot *s) {
    if (!s) return;
    for (int64_t i = 0; s->segments && i < s->manifest.n_segments; i++) ki_segment_close(&s->segments[i]);
    for (int64_t i = 0; s->codes && i < s->manifest.n_segments; i++) ki_blocks_close(&s->codes[i]);
    ki_blocks_close(&s->coder);
    ki_free(s->segments);
    ki_free(s->codes);
    ki_free(s->first);
    ki_free(s->alive);
    ki_free(s->ids);
    ki_free(s->folder);
    ki_changes_release(&s->changes);
    ki_records_release(&s->moves);
    ki_updates_release(&s->updates);
    ki_manifest_release(&s->manifest);
    ki_free(s);
}

static kith_status open_segments(ki_snapshot *s, kith_error *err) {
    const ki_manifest *m = &s->manifest;
    KI_TRY(ki_zalloc_or(&s->segments, (size_t)m->n_segments, sizeof *s->segments, "segments", err));
    KI_TRY(ki_zalloc_or(&s->first, (size_t)m->n_segments + 1, sizeof *s->first, "segments", err));
    for (int64_t i = 0; i < m->n_segments; i++) {
        ki_path path;
        const ki_manifest_segment *wanted = &m->segments[i];
        KI_TRY(ki_files_path(s->folder, wanted->rows.number, KI_KIND_SEGMENT, &path, err));
        KI_TRY(
            ki_segment_open(&s->segments[i], path.s, wanted->rows.seal, m->dim, m->types, m->n_columns, err));
        if (s->segments[i].n != wanted->n)
            return ki_fail(err, KITH_EFORMAT, "%s has %lld rows; wanted %lld", path.s,
                           (long long)s->segments[i].n, (long long)wanted->n);
        s->first[i + 1] = s->first[i] + wanted->n;
    }
    s->n_rows = s->first[m->n_segments];
    return KITH_OK;
}

static kith_status read_ids(ki_snapshot *s, kith_error *err) {
    KI_TRY(ki_alloc_or(&s->ids, (size_t)s->n_rows, sizeof *s->ids, "ids", err));
    for (int64_t i = 0; i < s->manifest.n_segments; i++) {
        const ki_segment *segment = &s->segments[i];
        KI_TRY(ki_blocks_read(&segment->blocks, segment->entries[KI_COLUMN_ID].offset,
                              (size_t)segment->n * sizeof *s->ids, s->ids + s->first[i], err));
    }
    for (int64_t i = 0; i < s->n_rows; i++) {
        if (s->ids[i] < (i ? s->ids[i - 1] + 1 : 0) || s->ids[i] >= s->manifest.next_id)
            return ki_fail(err, KITH_EFORMAT, "%s: row %lld has id %lld; wanted ids that ascend", s->folder,
                           (long long)i, (long long)s->ids[i]);
    }
    return KITH_OK;
}

static kith_status read_changes(ki_snapshot *s, kith_error *err) {
    const ki_manifest_file *file = &s->manifest.changes;
    if (file->number) {
        ki_path path;
        KI_TRY(ki_files_path(s->folder, file->number, KI_KIND_CHANGES, &path, err));
        KI_TRY(ki_changes_read(path.s, file->seal, s->n_rows, &s->changes, err));
    }
    KI_TRY(ki_zalloc_or(&s->alive, (size_t)ki_bit_words(s->n_rows) + 1, sizeof *s->alive, "rows", err));
    for (int64_t i = 0; i < s->n_rows; i++) s->alive[i / 64] |= UINT64_C(1) << i % 64;
    for (int64_t i = 0; i < s->changes.n_removed; i++) {
        const int64_t row = s->changes.removed[i];
        s->alive[row / 64] &= ~(UINT64_C(1) << row % 64);
    }
    s->n_live = s->n_rows - s->changes.n_removed;
    return KITH_OK;
}

static kith_status read_records(const ki_snapshot *s, const ki_manifest_file *file, const char *kind,
                                ki_records *ret_records, kith_error *err) {
    if (!file->number) return KITH_OK;
    ki_path path;
    KI_TRY(ki_files_path(s->folder, file->number, kind, &path, err));
    return ki_records_read(path.s, file->seal, s->manifest.next_id, ret_records, err);
}

static kith_status read_updates(const ki_snapshot *s, ki_updates *ret_updates, kith_error *err) {
    const ki_manifest *m = &s->manifest;
    if (!m->updates.number) return KITH_OK;
    ki_path path;
    KI_TRY(ki_files_path(s->folder, m->updates.number, KI_KIND_UPDATES, &path, err));
    return ki_updates_read(path.s, m->updates.seal, m->next_id, m->types, m->n_columns, ret_updates, err);
}

kith_status ki_snapshot_excluded(const ki_snapshot *s, ki_records *ret_excluded, kith_error *err) {
    return read_records(s, &s->manifest.excluded, KI_KIND_EXCLUDED, ret_excluded, err);
}

static kith_status open_file(const ki_snapshot *s, const ki_manifest_file *file, const char *kind,
                             ki_blocks *ret_blocks, kith_error *err) {
    if (!file->number) return KITH_OK;
    ki_path path;
    KI_TRY(ki_files_path(s->folder, file->number, kind, &path, err));
    return ki_blocks_open(ret_blocks, path.s, file->seal, err);
}

static kith_status open_codes(ki_snapshot *s, kith_error *err) {
    const ki_manifest *m = &s->manifest;
    KI_TRY(ki_zalloc_or(&s->codes, (size_t)m->n_segments, sizeof *s->codes, "codes", err));
    KI_TRY(open_file(s, &m->coder, KI_KIND_CODER, &s->coder, err));
    for (int64_t i = 0; i < m->n_segments; i++)
        KI_TRY(open_file(s, &m->segments[i].codes, KI_KIND_CODES, &s->codes[i], err));
    return KITH_OK;
}

/* Takes the manifest over, also on failure. */
static kith_status open_files(const char *folder, ki_manifest *manifest, ki_snapshot **ret_snapshot,
                              kith_error *err) {
    kith_status status = KITH_OK;
    ki_snapshot *s = NULL;
    KI_CHECK(ki_zalloc_or(&s, 1, sizeof *s, "an index", err));
    s->manifest = *manifest;
    *manifest = (ki_manifest){0};
    if (!(s->folder = ki_strdup(folder))) {
        status = ki_fail_memory(err, strlen(folder), "a folder's name");
        goto done;
    }
    KI_CHECK(open_segments(s, err));
    KI_CHECK(read_ids(s, err));
    KI_CHECK(read_changes(s, err));
    KI_CHECK(read_records(s, &s->manifest.moves, KI_KIND_MOVES, &s->moves, err));
    KI_CHECK(read_updates(s, &s->updates, err));
    KI_CHECK(open_codes(s, err));
    *ret_snapshot = s;
    s = NULL;
done:
    ki_manifest_release(manifest);
    ki_snapshot_free(s);
    return status;
}

kith_status ki_manifest_copy(const ki_manifest *manifest, ki_manifest *ret_copy, kith_error *err) {
    char *text = NULL;
    size_t n = 0;
    KI_TRY(ki_manifest_print(manifest, &text, &n, err));
    const kith_status status = ki_manifest_parse(text, n, KI_MANIFEST_NAME, ret_copy, err);
    ki_free(text);
    return status;
}

kith_status ki_snapshot_preview(const char *folder, const ki_manifest *manifest, ki_snapshot **ret_snapshot,
                                kith_error *err) {
    ki_manifest copy = {0};
    KI_TRY(ki_manifest_copy(manifest, &copy, err));
    return open_files(folder, &copy, ret_snapshot, err);
}

/* A file may be gone because a writer has committed between our reading the manifest and opening the file. Then the
 * manifest is another one by now. */
kith_status ki_snapshot_open(const char *folder, ki_snapshot **ret_snapshot, kith_error *err) {
    kith_status status = KITH_OK;
    for (int i = 0; i < MOST_TRIES; i++) {
        ki_manifest manifest = {0};
        KI_TRY(ki_manifest_read(folder, &manifest, err));
        const int64_t generation = manifest.generation;
        status = open_files(folder, &manifest, ret_snapshot, err);
        if (status != KITH_EIO) return status;
        ki_manifest now = {0};
        kith_error why;
        if (ki_manifest_read(folder, &now, &why) != KITH_OK) return status;
        const bool is_same = now.generation == generation;
        ki_manifest_release(&now);
        if (is_same) return status;
    }
    return status;
}

int64_t ki_snapshot_row(const ki_snapshot *s, int64_t id) {
    int64_t low = 0, high = s->n_rows;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (s->ids[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->n_rows && s->ids[low] == id && ki_bit(s->alive, low) ? low : -1;
}

int64_t ki_snapshot_segment(const ki_snapshot *s, int64_t row) {
    int64_t low = 0, high = s->manifest.n_segments;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (s->first[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

kith_status ki_snapshot_keep(ki_snapshot *s, int64_t bytes, kith_error *err) {
    atomic_store(&s->keep.left, bytes);
    for (int64_t i = 0; i < s->manifest.n_segments; i++)
        KI_TRY(ki_blocks_keep(&s->segments[i].blocks, &s->keep, err));
    return KITH_OK;
}

static kith_status read_span(const ki_snapshot *s, int64_t first, int64_t n, bool keep, float *dst,
                             kith_error *err) {
    while (n > 0) {
        const int64_t i = ki_snapshot_segment(s, first), left = s->first[i + 1] - first;
        const int64_t take = n < left ? n : left;
        KI_TRY(ki_segment_rows(&s->segments[i], first - s->first[i], take, keep, dst, err));
        dst += take * s->manifest.dim;
        first += take;
        n -= take;
    }
    return KITH_OK;
}

kith_status ki_snapshot_span(const ki_snapshot *s, int64_t first, int64_t n, float *dst, kith_error *err) {
    return read_span(s, first, n, false, dst, err);
}

kith_status ki_snapshot_read(const ki_snapshot *s, const int64_t *row, int64_t n, float *dst,
                             kith_error *err) {
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && row[end] == row[end - 1] + 1;) end++;
        KI_TRY(read_span(s, row[i], end - i, true, dst + i * s->manifest.dim, err));
    }
    return KITH_OK;
}

const float *ki_snapshot_kept_row(const ki_snapshot *s, int64_t row) {
    const int64_t i = ki_snapshot_segment(s, row);
    return ki_segment_kept_row(&s->segments[i], row - s->first[i]);
}

static int compare_stamp(const void *row, const void *stamp) {
    const int64_t a = *(const int64_t *)row, b = ((const ki_stamp *)stamp)->row;
    return (a > b) - (a < b);
}

/* A new string, as a cell of text is. */
static kith_status copy_text(const char *text, kith_value *ret_value, kith_error *err) {
    char *copy = text ? ki_strdup(text) : NULL;
    if (text && !copy) return ki_fail_memory(err, strlen(text) + 1, "a text");
    *ret_value = ki_text_value(copy);
    return KITH_OK;
}

kith_status ki_snapshot_cell(const ki_snapshot *s, int64_t column, int64_t row, kith_value *ret_value,
                             kith_error *err) {
    const bool is_stamp = column == KI_COLUMN_BYTES || column == KI_COLUMN_MTIME;
    const ki_stamp *stamp = is_stamp && s->changes.n_stamps > 0
                                ? bsearch(&row, s->changes.stamps, (size_t)s->changes.n_stamps,
                                          sizeof *s->changes.stamps, compare_stamp)
                                : NULL;
    if (stamp) {
        *ret_value = (kith_value){.type = KITH_VALUE_INT,
                                  .integer = column == KI_COLUMN_BYTES ? stamp->bytes : stamp->mtime_ns};
        return KITH_OK;
    }
    const ki_update *update = ki_updates_find(&s->updates, column, s->ids[row]);
    if (update && update->value.type == KITH_VALUE_TEXT) return copy_text(update->value.text, ret_value, err);
    if (update) {
        *ret_value = update->value;
        return KITH_OK;
    }
    const bool may_move = column == KI_COLUMN_PATH || column == KI_COLUMN_LABEL;
    const ki_file_record *move = may_move ? ki_records_find(&s->moves, s->ids[row]) : NULL;
    if (move) return copy_text(column == KI_COLUMN_PATH ? move->path : move->label, ret_value, err);
    const int64_t i = ki_snapshot_segment(s, row);
    return ki_segment_cell(&s->segments[i], column, row - s->first[i], ret_value, err);
}

static int64_t file_bytes(const ki_manifest_file *file) {
    return file->number ? ki_blocks_file_bytes(file->seal.bytes) : 0;
}

int64_t ki_snapshot_file_bytes(const ki_snapshot *s) {
    int64_t bytes = file_bytes(&s->manifest.changes) + file_bytes(&s->manifest.coder) +
                    file_bytes(&s->manifest.moves) + file_bytes(&s->manifest.updates) +
                    file_bytes(&s->manifest.excluded);
    for (int64_t i = 0; i < s->manifest.n_segments; i++)
        bytes += file_bytes(&s->manifest.segments[i].rows) + file_bytes(&s->manifest.segments[i].codes);
    return bytes;
}
