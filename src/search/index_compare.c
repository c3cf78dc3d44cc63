/* Files compared with items: what is new, changed, gone. */
#include <string.h>

#include "core/alloc.h"
#include "core/argument.h"
#include "core/checksum.h"
#include "search/index_handle.h"

/* A hash table of the paths of items, and which of them were met. */
typedef struct paths {
    ki_view *view;
    const ki_cells **cells; /* [segments]: their paths */
    uint32_t *slot;         /* [n_slots]: rows plus 1 */
    size_t n_slots;
    uint64_t *is_met; /* a bit per row */
} paths;

static const char *path_of(const paths *p, int64_t row) {
    const ki_snapshot *s = p->view->snapshot;
    const int64_t i = ki_snapshot_segment(s, row);
    const kith_value value = ki_cells_get(p->cells[i], row - s->first[i]);
    return value.type == KITH_VALUE_TEXT ? value.text : NULL;
}

static size_t slot_of(const paths *p, const char *path) {
    size_t at = (size_t)ki_checksum(path, strlen(path), 0) & (p->n_slots - 1);
    for (; p->slot[at] && strcmp(path_of(p, p->slot[at] - 1), path) != 0;) at = (at + 1) & (p->n_slots - 1);
    return at;
}

static kith_status build(paths *p, kith_error *err) {
    const ki_snapshot *s = p->view->snapshot;
    p->n_slots = 64;
    while (p->n_slots < (size_t)s->n_live * 2) p->n_slots *= 2;
    KI_TRY(ki_zalloc_or(&p->slot, p->n_slots, sizeof *p->slot, "paths", err));
    KI_TRY(ki_zalloc_or(&p->is_met, (size_t)ki_bit_words(s->n_rows), sizeof *p->is_met, "paths", err));
    KI_TRY(ki_zalloc_or(&p->cells, (size_t)s->manifest.n_segments, sizeof *p->cells, "paths", err));
    for (int64_t i = 0; i < s->manifest.n_segments; i++)
        KI_TRY(ki_columns_get(&p->view->columns, i, KI_COLUMN_PATH, &p->cells[i], err));
    for (int64_t row = 0; row < s->n_rows; row++) {
        const char *path = ki_bit(s->alive, row) ? path_of(p, row) : NULL;
        if (path) p->slot[slot_of(p, path)] = (uint32_t)row + 1; /* of two with one path the last counts */
    }
    return KITH_OK;
}

static kith_status compare_file(paths *p, const kith_file_stamp *file, kith_file_state *ret_state,
                                int64_t *ret_id, kith_error *err) {
    const ki_snapshot *s = p->view->snapshot;
    const int64_t row = (int64_t)p->slot[slot_of(p, file->path)] - 1;
    *ret_state = KITH_FILE_NEW;
    *ret_id = -1;
    if (row < 0) return KITH_OK;
    kith_value bytes, mtime;
    KI_TRY(ki_snapshot_cell(s, KI_COLUMN_BYTES, row, &bytes, err));
    KI_TRY(ki_snapshot_cell(s, KI_COLUMN_MTIME, row, &mtime, err));
    const bool is_same = bytes.integer == file->bytes && mtime.integer == file->mtime_ns;
    *ret_state = is_same ? KITH_FILE_SAME : KITH_FILE_CHANGED;
    *ret_id = s->ids[row];
    p->is_met[row / 64] |= UINT64_C(1) << row % 64;
    return KITH_OK;
}

static kith_status list_gone(const paths *p, int64_t **ret_gone, int64_t *ret_n_gone, kith_error *err) {
    const ki_snapshot *s = p->view->snapshot;
    int64_t *gone = NULL, n = 0;
    KI_TRY(ki_alloc_or(&gone, (size_t)s->n_live, sizeof *gone, "ids", err));
    for (int64_t row = 0; row < s->n_rows; row++) {
        if (ki_bit(s->alive, row) && !ki_bit(p->is_met, row) && path_of(p, row)) gone[n++] = s->ids[row];
    }
    *ret_gone = gone;
    *ret_n_gone = n;
    return KITH_OK;
}

kith_status kith_index_compare(const kith_index *index, const kith_file_stamp *files, int64_t n,
                               kith_file_state *ret_states, int64_t *ret_ids, int64_t **ret_gone,
                               int64_t *ret_n_gone, kith_error *err) {
    KI_NEED(err, index, files, ret_states, ret_ids, ret_gone, ret_n_gone);
    KI_NEED_COUNT(err, n);
    kith_status status = KITH_OK;
    paths p = {.view = index->view};
    for (int64_t i = 0; i < n; i++) {
        if (!files[i].path) return ki_fail(err, KITH_EINVAL, "file %lld has no path", (long long)i);
    }
    KI_CHECK(build(&p, err));
    for (int64_t i = 0; i < n; i++) KI_CHECK(compare_file(&p, &files[i], &ret_states[i], &ret_ids[i], err));
    KI_CHECK(list_gone(&p, ret_gone, ret_n_gone, err));
done:
    ki_free(p.cells);
    ki_free(p.slot);
    ki_free(p.is_met);
    return status;
}
