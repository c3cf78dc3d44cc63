/* Files that were removed by hand: kept as a list, so that what follows the files leaves them out until they are added again. */
#include <string.h>

#include "base/alloc.h"
#include "search/files/writer.h"

/* ---- pending ---- */

/* Text of a row as it is with what is pending; a new string or NULL. */
static kith_status text_of(const ki_writer *s, int64_t column, int64_t row, char **ret_text,
                           kith_error *err) {
    kith_value value = {0};
    if (row < s->now->n_rows) {
        KI_TRY(ki_snapshot_cell(s->now, column, row, &value, err));
        *ret_text = value.type == KITH_VALUE_TEXT ? (char *)value.text : NULL;
        return KITH_OK;
    }
    value = ki_cells_get(&s->writer.columns[column], row - s->now->n_rows);
    *ret_text = value.type == KITH_VALUE_TEXT ? ki_strdup(value.text) : NULL;
    if (value.type == KITH_VALUE_TEXT && !*ret_text)
        return ki_fail_memory(err, strlen(value.text) + 1, "a text");
    return KITH_OK;
}

kith_status ki_writer_exclude_row(ki_writer *s, int64_t id, int64_t row, kith_error *err) {
    kith_status status = KITH_OK;
    char *path = NULL, *hash = NULL;
    KI_CHECK(text_of(s, KI_COLUMN_PATH, row, &path, err));
    KI_CHECK(text_of(s, KI_COLUMN_HASH, row, &hash, err));
    ki_file_record file = {.id = id, .path = path, .hash = hash};
    for (int64_t i = s->moved.n - 1; i >= 0; i--) {
        if (s->moved.record[i].id != id) continue;
        file.path = s->moved.record[i].path;
        break;
    }
    if (file.path) KI_CHECK(ki_writer_exclude(s, &file, err));
    ki_writer_remove(s, row);
done:
    ki_free(path);
    ki_free(hash);
    return status;
}

/* ---- the next list ---- */

/* Which different paths of the rows that were added are of rows that stay: [n_texts]. */
static kith_status list_added(const ki_writer *s, bool **ret_is_added, kith_error *err) {
    const ki_cells *paths = &s->writer.columns[KI_COLUMN_PATH];
    KI_TRY(ki_zalloc_or(ret_is_added, (size_t)paths->n_texts, sizeof **ret_is_added, "paths", err));
    for (int64_t i = 0; i < paths->n; i++) {
        if (paths->code[i] && ki_bit(s->alive, s->now->n_rows + i))
            (*ret_is_added)[paths->code[i] - 1] = true;
    }
    return KITH_OK;
}

/* Leaves out what was added again, and all but the last of one path. */
static kith_status drop(const ki_writer *s, ki_records *all, kith_error *err) {
    kith_status status = KITH_OK;
    bool *is_added = NULL;
    ki_cells seen = {.type = KITH_VALUE_TEXT};
    int64_t n = all->n;
    if (s->is_writing) KI_CHECK(list_added(s, &is_added, err));
    for (int64_t i = all->n - 1; i >= 0; i--) {
        const kith_value path = ki_text_value(all->record[i].path);
        const uint32_t code =
            s->is_writing ? ki_cells_find(&s->writer.columns[KI_COLUMN_PATH], path.text) : 0;
        if ((code && is_added[code - 1]) || ki_cells_find(&seen, path.text)) continue;
        KI_CHECK(ki_cells_add(&seen, &path, err));
        all->record[--n] = all->record[i];
    }
    memmove(all->record, all->record + n, (size_t)(all->n - n) * sizeof *all->record);
    all->n -= n;
done:
    ki_cells_release(&seen);
    ki_free(is_added);
    return status;
}

kith_status ki_writer_write_excluded(ki_writer *s, kith_error *err) {
    kith_status status = KITH_OK;
    ki_records all = {0};
    ki_path path;
    if (s->excluded.n == 0 && (s->now->manifest.n_excluded == 0 || !s->is_writing)) return KITH_OK;
    KI_CHECK(ki_snapshot_excluded(s->now, &all, err));
    for (int64_t i = 0; i < s->excluded.n; i++)
        KI_CHECK(ki_records_add(&all, &s->excluded.record[i], true, err));
    KI_CHECK(ki_records_order(&all, err));
    if (all.n > 0) KI_CHECK(drop(s, &all, err));
    if (s->excluded.n == 0 && all.n == s->now->manifest.n_excluded) goto done; /* as in the file */
    s->next.excluded = (ki_manifest_file){0};
    s->next.n_excluded = all.n;
    if (all.n == 0) goto done;
    const int64_t number = s->next.next_file++;
    KI_CHECK(ki_files_path(s->now->folder, number, KI_KIND_EXCLUDED, &path, err));
    KI_CHECK(ki_records_write(&all, path.s, &s->next.excluded.seal, err));
    s->next.excluded.number = number;
done:
    ki_records_release(&all);
    return status;
}
