/* Lists of items with texts: collecting, ordering, the file, and what they change in a column. */
#include "search/files/records.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void ki_records_release(ki_records *r) {
    ki_arena_release(&r->arena);
    ki_free(r->record);
    *r = (ki_records){0};
}

static kith_status keep(ki_records *r, const char **text, kith_error *err) {
    if (!*text) return KITH_OK;
    const char *copy = ki_arena_strdup(&r->arena, *text);
    if (!copy) return ki_fail_memory(err, strlen(*text) + 1, "a text");
    *text = copy;
    return KITH_OK;
}

kith_status ki_records_add(ki_records *r, const ki_file_record *record, bool borrow, kith_error *err) {
    ki_file_record own = *record;
    if (!borrow) {
        KI_TRY(keep(r, &own.path, err));
        KI_TRY(keep(r, &own.label, err));
        KI_TRY(keep(r, &own.hash, err));
    }
    KI_TRY(ki_grow(&r->record, &r->capacity, (size_t)r->n + 1, sizeof *r->record, "items", err));
    r->record[r->n++] = own;
    return KITH_OK;
}

/* ---- order ---- */

typedef struct placed {
    ki_file_record record;
    int64_t order;
} placed;

static int compare_placed(const void *a, const void *b) {
    const placed *x = a, *y = b;
    if (x->record.id != y->record.id) return x->record.id < y->record.id ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

kith_status ki_records_order(ki_records *r, kith_error *err) {
    placed *all = NULL;
    const int64_t n = r->n;
    if (n == 0) return KITH_OK;
    KI_TRY(ki_alloc_or(&all, (size_t)n, sizeof *all, "items", err));
    for (int64_t i = 0; i < n; i++) all[i] = (placed){r->record[i], i};
    qsort(all, (size_t)n, sizeof *all, compare_placed);
    r->n = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i + 1 == n || all[i + 1].record.id != all[i].record.id) r->record[r->n++] = all[i].record;
    }
    ki_free(all);
    return KITH_OK;
}

/* The first record whose id is not smaller. */
static int64_t lower(const ki_records *r, int64_t id) {
    int64_t low = 0, high = r->n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (r->record[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const ki_file_record *ki_records_find(const ki_records *r, int64_t id) {
    const int64_t at = lower(r, id);
    return at < r->n && r->record[at].id == id ? &r->record[at] : NULL;
}

/* ---- the file ---- */

static kith_status put(ki_segment_writer *w, const ki_file_record *record, kith_error *err) {
    const kith_value values[KI_COLUMN_FIRST] = {
        [KI_COLUMN_ID] = {.type = KITH_VALUE_INT, .integer = record->id},
        [KI_COLUMN_PATH] = ki_text_value(record->path),
        [KI_COLUMN_LABEL] = ki_text_value(record->label),
        [KI_COLUMN_HASH] = ki_text_value(record->hash),
    };
    for (int64_t i = 0; i < KI_COLUMN_FIRST; i++) KI_TRY(ki_cells_add(&w->columns[i], &values[i], err));
    return KITH_OK;
}

kith_status ki_records_write(const ki_records *r, const char *path, ki_blocks_seal *ret_seal,
                             kith_error *err) {
    kith_status status = KITH_OK;
    ki_segment_writer w = {0};
    KI_CHECK(ki_segment_create(&w, path, 0, NULL, 0, err));
    for (int64_t i = 0; i < r->n; i++) KI_CHECK(put(&w, &r->record[i], err));
    w.n_rows = r->n;
    KI_CHECK(ki_segment_finish(&w, ret_seal, err));
done:
    ki_segment_discard(&w);
    return status;
}

static const char *text_at(const ki_cells *cells, int64_t row) {
    const kith_value value = ki_cells_get(cells, row);
    return value.type == KITH_VALUE_TEXT ? value.text : NULL;
}

kith_status ki_records_read(const char *path, ki_blocks_seal seal, int64_t next_id, ki_records *ret_records,
                            kith_error *err) {
    kith_status status = KITH_OK;
    ki_segment segment = {0};
    ki_cells cells[KI_COLUMN_FIRST] = {{0}};
    ki_records r = {0};
    KI_CHECK(ki_segment_open(&segment, path, seal, 0, NULL, 0, err));
    for (int64_t i = 0; i < KI_COLUMN_FIRST; i++) KI_CHECK(ki_segment_column(&segment, i, &cells[i], err));
    const int64_t *ids = cells[KI_COLUMN_ID].integer;
    for (int64_t i = 0; i < segment.n; i++) {
        if (ids[i] < (i ? ids[i - 1] + 1 : 0) || ids[i] >= next_id) {
            status =
                ki_fail(err, KITH_EFORMAT, "%s: id %lld; wanted ids that ascend", path, (long long)ids[i]);
            ki_hint(err, status, "copy the index back from a backup, or make it again");
            goto done;
        }
        const ki_file_record record = {ids[i], text_at(&cells[KI_COLUMN_PATH], i),
                                       text_at(&cells[KI_COLUMN_LABEL], i),
                                       text_at(&cells[KI_COLUMN_HASH], i)};
        KI_CHECK(ki_records_add(&r, &record, false, err));
    }
    *ret_records = r;
    r = (ki_records){0};
done:
    ki_records_release(&r);
    for (int64_t i = 0; i < KI_COLUMN_FIRST; i++) ki_cells_release(&cells[i]);
    ki_segment_close(&segment);
    return status;
}

/* ---- columns ---- */

kith_status ki_records_apply(const ki_records *moves, int64_t column, const int64_t *ids, ki_cells *cells,
                             kith_error *err) {
    if (moves->n == 0 || cells->n == 0 || (column != KI_COLUMN_PATH && column != KI_COLUMN_LABEL))
        return KITH_OK;
    int64_t at = lower(moves, ids[0]);
    if (at == moves->n || moves->record[at].id > ids[cells->n - 1]) return KITH_OK;
    ki_cells anew = {.type = cells->type};
    for (int64_t i = 0; i < cells->n; i++) {
        while (at < moves->n && moves->record[at].id < ids[i]) at++;
        const ki_file_record *move =
            at < moves->n && moves->record[at].id == ids[i] ? &moves->record[at] : NULL;
        const kith_value value = !move ? ki_cells_get(cells, i)
                                       : ki_text_value(column == KI_COLUMN_PATH ? move->path : move->label);
        const kith_status status = ki_cells_add(&anew, &value, err);
        if (status == KITH_OK) continue;
        ki_cells_release(&anew);
        return status;
    }
    ki_cells_release(cells);
    *cells = anew;
    return KITH_OK;
}
