/* Making an index, holding its lock, and what is pending. commit.c makes the next commit of it. */
#include "search/files/writer.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "io/file.h"
#include "io/lock.h"
#include "search/files/sweep.h"

/* Of vectors in a segment. A merge needs that much room and time again, and saves less and less. */
#define LARGE_BYTES ((int64_t)2 << 30)

/* Is there nothing in the folder but perhaps a lock? */
static bool is_empty(const char *folder) {
    DIR *dir = opendir(folder);
    int why = 0, n = 0;
    for (const char *name; dir && (name = ki_dir_next(dir, &why));) n += strcmp(name, "lock") != 0;
    if (dir) closedir(dir);
    return dir && why == 0 && n == 0;
}

static kith_status hold(const char *folder, int *ret_lock, kith_error *err) {
    ki_path path;
    bool is_mine = false;
    KI_TRY(ki_path_print(&path, err, "%s/lock", folder));
    KI_TRY(ki_lock_try(path.s, ret_lock, &is_mine, err));
    if (is_mine) return KITH_OK;
    close(*ret_lock);
    *ret_lock = -1;
    ki_fail(err, KITH_EINVAL, "%s is being written by another process", folder);
    return ki_hint(err, KITH_EINVAL, "wait until it has ended; reading is possible meanwhile");
}

static kith_status refuse(const char *folder, kith_error *err) {
    ki_fail(err, KITH_EINVAL, "%s is there already; wanted a new name or an empty folder", folder);
    return ki_hint(err, KITH_EINVAL, "remove it, or give another name");
}

/* Two processes may do this at once. The one with the lock looks again whether the folder is empty, and the first manifest is
 * written before the lock is given back. */
kith_status ki_writer_create(const char *folder, const ki_manifest *manifest, kith_error *err) {
    kith_status status;
    ki_path path;
    char *text = NULL;
    size_t n = 0;
    int lock = -1;
    const bool is_new = mkdir(folder, 0777) == 0;
    if (!is_new && errno != EEXIST)
        return ki_fail(err, KITH_EIO, "cannot make %s: %s", folder, strerror(errno));
    if (!is_empty(folder)) return refuse(folder, err);
    KI_CHECK(hold(folder, &lock, err));
    if (!is_empty(folder)) {
        status = refuse(folder, err);
        goto done;
    }
    KI_CHECK(ki_parent_sync(folder, err));
    KI_CHECK(ki_path_print(&path, err, "%s/" KI_MANIFEST_NAME, folder));
    KI_CHECK(ki_manifest_print(manifest, &text, &n, err));
    KI_CHECK(ki_file_write(path.s, text, n, err));
done:
    /* With the lock held nobody else has written here. */
    if (status != KITH_OK && lock >= 0 && is_empty(folder) &&
        ki_path_print(&path, NULL, "%s/lock", folder) == KITH_OK)
        unlink(path.s);
    if (status != KITH_OK && is_new) rmdir(folder);
    if (lock >= 0) close(lock);
    ki_free(text);
    return status;
}

static kith_status take_lock(ki_writer *s, const char *folder, kith_error *err) {
    /* Said here, before a lock file is made in a folder that is no index. */
    ki_manifest manifest = {0};
    KI_TRY(ki_manifest_read(folder, &manifest, err));
    ki_manifest_release(&manifest);
    return hold(folder, &s->lock, err);
}

kith_status ki_writer_begin(ki_writer *s, kith_error *err) {
    ki_manifest_release(&s->next);
    ki_free(s->alive);
    s->alive = NULL;
    s->n_stamps = 0;
    ki_records_release(&s->moved);
    ki_updates_release(&s->updated);
    ki_records_release(&s->excluded);
    s->n_removed = 0;
    s->is_changed = false;
    KI_TRY(ki_manifest_copy(&s->now->manifest, &s->next, err));
    const size_t words = (size_t)ki_bit_words(s->now->n_rows) + 1;
    KI_TRY(ki_alloc_or(&s->alive, words, sizeof *s->alive, "rows", err));
    memcpy(s->alive, s->now->alive, words * sizeof *s->alive);
    s->alive_capacity = words;
    return KITH_OK;
}

kith_status ki_writer_open(const char *folder, ki_writer **ret_writer, kith_error *err) {
    kith_status status = KITH_OK;
    ki_writer *s = NULL;
    KI_CHECK(ki_zalloc_or(&s, 1, sizeof *s, "an index", err));
    s->lock = -1;
    KI_CHECK(take_lock(s, folder, err));
    KI_CHECK(ki_snapshot_open(folder, &s->now, err));
    s->large_rows = LARGE_BYTES / (s->now->manifest.dim * (int64_t)sizeof(float)) + 1;
    ki_sweep(folder);
    KI_CHECK(ki_writer_begin(s, err));
    *ret_writer = s;
    s = NULL;
done:
    ki_writer_free(s);
    return status;
}

void ki_writer_free(ki_writer *s) {
    if (!s) return;
    ki_segment_discard(&s->writer);
    if (s->now && s->is_broken) ki_sweep(s->now->folder);
    ki_manifest_release(&s->next);
    ki_free(s->alive);
    ki_free(s->stamps);
    ki_records_release(&s->moved);
    ki_updates_release(&s->updated);
    ki_records_release(&s->excluded);
    ki_snapshot_free(s->now);
    if (s->lock >= 0) close(s->lock);
    ki_free(s);
}

/* ---- pending rows ---- */

static kith_status begin_rows(ki_writer *s, kith_error *err) {
    if (s->is_writing) return KITH_OK;
    ki_path path;
    s->pending = (ki_manifest_file){.number = s->next.next_file};
    KI_TRY(ki_files_path(s->now->folder, s->pending.number, KI_KIND_SEGMENT, &path, err));
    KI_TRY(ki_segment_create(&s->writer, path.s, s->next.dim, s->next.types, s->next.n_columns, err));
    s->next.next_file++;
    s->is_writing = true;
    return KITH_OK;
}

static kith_status add_item(ki_segment_writer *w, int64_t id, const kith_index_item *item, kith_error *err) {
    const kith_index_item nothing = {.bytes = -1, .mtime_ns = -1};
    if (!item) item = &nothing;
    const kith_value fixed[KI_COLUMN_FIRST] = {
        [KI_COLUMN_ID] = {.type = KITH_VALUE_INT, .integer = id},
        [KI_COLUMN_BYTES] = {.type = KITH_VALUE_INT, .integer = item->bytes},
        [KI_COLUMN_MTIME] = {.type = KITH_VALUE_INT, .integer = item->mtime_ns},
        [KI_COLUMN_PATH] = ki_text_value(item->path),
        [KI_COLUMN_LABEL] = ki_text_value(item->label),
        [KI_COLUMN_HASH] = ki_text_value(item->hash),
    };
    const kith_value none = {0};
    for (int64_t i = 0; i < w->n_columns; i++) {
        const kith_value *value = i < KI_COLUMN_FIRST ? &fixed[i]
                                  : item->values      ? &item->values[i - KI_COLUMN_FIRST]
                                                      : &none;
        KI_TRY(ki_cells_add(&w->columns[i], value, err));
    }
    return KITH_OK;
}

static kith_status add_rows(ki_writer *s, const float *rows, int64_t n, const kith_index_item *items,
                            kith_error *err) {
    KI_TRY(begin_rows(s, err));
    const int64_t first = s->now->n_rows + s->writer.n_rows;
    if (n > KI_MOST_ROWS - first)
        return ki_fail(err, KITH_EINVAL, "%lld rows more; an index has at most %lld", (long long)n,
                       (long long)KI_MOST_ROWS);
    const size_t before = s->alive_capacity, words = (size_t)ki_bit_words(first + n) + 1;
    KI_TRY(ki_grow(&s->alive, &s->alive_capacity, words, sizeof *s->alive, "rows", err));
    memset(s->alive + before, 0, (s->alive_capacity - before) * sizeof *s->alive);
    KI_TRY(ki_segment_write_rows(&s->writer, rows, n, err));
    for (int64_t i = 0; i < n; i++) {
        KI_TRY(add_item(&s->writer, s->next.next_id + i, items ? &items[i] : NULL, err));
        s->alive[(first + i) / 64] |= UINT64_C(1) << (first + i) % 64;
    }
    return KITH_OK;
}

kith_status ki_writer_add(ki_writer *s, const float *rows, int64_t n, const kith_index_item *items,
                          int64_t *ret_first_id, kith_error *err) {
    if (n == 0) return KITH_OK;
    s->is_changed = true;
    const kith_status status = add_rows(s, rows, n, items, err);
    /* Columns and vectors may be of different lengths now. */
    if (status != KITH_OK) s->is_broken = true;
    if (status != KITH_OK) return status;
    *ret_first_id = s->next.next_id;
    s->next.next_id += n;
    return KITH_OK;
}

int64_t ki_writer_row(const ki_writer *s, int64_t id) {
    int64_t row = ki_snapshot_row(s->now, id);
    const int64_t first_id = s->now->manifest.next_id;
    if (id >= first_id && id < s->next.next_id) row = s->now->n_rows + (id - first_id);
    return row >= 0 && ki_bit(s->alive, row) ? row : -1;
}

void ki_writer_remove(ki_writer *s, int64_t row) {
    s->alive[row / 64] &= ~(UINT64_C(1) << row % 64);
    s->n_removed++;
    s->is_changed = true;
}

kith_status ki_writer_stamp(ki_writer *s, const ki_stamp *stamp, kith_error *err) {
    KI_TRY(ki_grow(&s->stamps, &s->stamp_capacity, s->n_stamps + 1, sizeof *s->stamps, "touched files", err));
    s->stamps[s->n_stamps++] = *stamp;
    s->is_changed = true;
    return KITH_OK;
}

kith_status ki_writer_move(ki_writer *s, const ki_file_record *move, kith_error *err) {
    const ki_update label = {move->id, KI_COLUMN_LABEL, ki_text_value(move->label)};
    s->is_changed = true;
    KI_TRY(ki_records_add(&s->moved, move, false, err));
    if (s->updated.n == 0 && !ki_updates_find(&s->now->updates, KI_COLUMN_LABEL, move->id)) return KITH_OK;
    /* A label that was given before does not count any more. */
    const kith_status status = ki_updates_add(&s->updated, &label, false, err);
    if (status != KITH_OK) s->moved.n--;
    return status;
}

kith_status ki_writer_update(ki_writer *s, const ki_new_values *v, kith_error *err) {
    const int64_t before = s->updated.n;
    for (int64_t i = 0; i < v->n * v->n_columns; i++) {
        const ki_update update = {v->ids[i / v->n_columns], v->columns[i % v->n_columns], v->values[i]};
        const kith_status status = ki_updates_add(&s->updated, &update, false, err);
        if (status == KITH_OK) continue;
        s->updated.n = before;
        return status;
    }
    s->is_changed |= s->updated.n > before;
    return KITH_OK;
}

kith_status ki_writer_exclude(ki_writer *s, const ki_file_record *file, kith_error *err) {
    s->is_changed = true;
    return ki_records_add(&s->excluded, file, false, err);
}

kith_status ki_writer_column_add(ki_writer *s, const char *name, kith_value_type type, kith_error *err) {
    const int64_t before = s->next.n_columns;
    KI_TRY(ki_manifest_column_add(&s->next, name, type, err));
    if (s->next.n_columns == before) return KITH_OK;
    s->is_changed = true;
    if (!s->is_writing) return KITH_OK;
    const kith_status status = ki_segment_column_add(&s->writer, type, err);
    if (status != KITH_OK) s->is_broken = true;
    return status;
}
