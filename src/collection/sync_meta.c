/* The table: reading it when it has changed, and joining its rows with files by their paths. */
#include "collection/sync_meta.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/path.h"
#include "base/text.h"
#include "collection/decisions.h"
#include "data/dataset/table.h"
#include "kith/groups.h"
#include "search/files/cells.h"
#include "search/notes.h"

void ki_sync_meta_release(ki_sync_meta *m) {
    kith_items_free(m->items);
    ki_free(m->row);
    ki_arena_release(&m->arena);
    *m = (ki_sync_meta){0};
}

bool ki_sync_meta_has(const ki_sync_meta *m, const char *column) {
    for (int64_t c = 0; c < kith_items_n_columns(m->items); c++) {
        if (strcmp(kith_items_columns(m->items)[c].name, column) == 0) return true;
    }
    return false;
}

kith_value ki_sync_meta_value(const ki_sync_meta *m, int64_t file, int64_t c, kith_value_type type) {
    if (!m->items || m->row[file] < 0) return (kith_value){0};
    kith_value value = kith_items_list(m->items)[m->row[file]].values[c];
    if (value.type == KITH_VALUE_NONE) return value;
    if (type == KITH_VALUE_REAL && value.type == KITH_VALUE_INT) value.real = (double)value.integer;
    value.type = type; /* the text of a number is there, too */
    return value;
}

/* ---- notes ---- */

/* Columns that it had, and whether it was this table with these contents. */
static kith_status recall(ki_sync_meta *m, const kith_index *index, const char *path, const char *hash,
                          kith_error *err) {
    const char *was = ki_index_note(index, KI_NOTE_META), *its_hash = ki_index_note(index, KI_NOTE_META_HASH);
    m->is_changed = !was || !its_hash || strcmp(was, path) != 0 || strcmp(its_hash, hash) != 0;
    int64_t n = 0;
    const char **columns = NULL;
    KI_TRY(ki_index_note_paths(index, KI_NOTE_META_COLUMNS, &m->arena, &columns, &n, err));
    /* No table has more, and there is no room for the changes of more. */
    if (n > KI_TABLE_MOST_FIELDS)
        return ki_fail(err, KITH_EFORMAT,
                       "the index's note 'meta_columns' has %lld columns; a table has at most %d",
                       (long long)n, (int)KI_TABLE_MOST_FIELDS);
    m->dropped = columns;
    for (int64_t i = 0; i < n; i++) {
        if (!ki_sync_meta_has(m, columns[i])) columns[m->n_dropped++] = columns[i];
    }
    return KITH_OK;
}

static kith_status remember(const ki_sync_meta *m, kith_index *index, const char *path, const char *hash,
                            kith_error *err) {
    kith_status status;
    const char **names = NULL;
    const int64_t n = kith_items_n_columns(m->items);
    KI_TRY(ki_alloc_or(&names, (size_t)n, sizeof *names, "columns", err));
    for (int64_t c = 0; c < n; c++) names[c] = kith_items_columns(m->items)[c].name;
    KI_CHECK(ki_index_note_set(index, KI_NOTE_META, path, err));
    KI_CHECK(ki_index_note_set(index, KI_NOTE_META_HASH, hash, err));
    KI_CHECK(ki_index_note_paths_set(index, KI_NOTE_META_COLUMNS, names, n, err));
done:
    ki_free(names);
    return status;
}

/* ---- the table ---- */

/* What people decided, and groups that were found: a table would take them from all photos that it does not name. */
static kith_status check_own(const ki_sync_meta *m, const kith_index *index, const char *path,
                             kith_error *err) {
    const char *groups = ki_index_note(index, KI_NOTE_GROUPS);
    const struct {
        const char *name, *what;
        bool is_ours;
    } own[] = {{KI_NAMED_BY, "who gave a photo its name", true},
               {KI_NAMED_KIND, "who gave a photo its name", true},
               {KITH_GROUPS_COLUMN, "the groups that were found", groups && *groups}};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (!own[i].is_ours || !ki_sync_meta_has(m, own[i].name)) continue;
        ki_fail(err, KITH_EINVAL, "%.300s has a column '%s', which says %s", path, own[i].name, own[i].what);
        return ki_hint(err, KITH_EINVAL, "give the column another name");
    }
    return KITH_OK;
}

static kith_status check_columns(const ki_sync_meta *m, const char *path, kith_error *err) {
    bool has_path = false;
    for (int64_t i = 0; i < kith_items_count(m->items); i++) {
        const kith_index_item *item = &kith_items_list(m->items)[i];
        has_path |= item->path != NULL;
        if (!item->label) continue;
        ki_fail(err, KITH_EINVAL, "%.300s has a column 'label', and photos have the names of their folders",
                path);
        return ki_hint(err, KITH_EINVAL, "give the column another name");
    }
    if (has_path || kith_items_count(m->items) == 0) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "%.300s has no column 'path' that says which photo a row is of", path);
    return ki_hint(err, KITH_EINVAL, "a header such as path,year,place, and the photos' paths below it");
}

/* The index's columns: a number fits where a text or a real is wanted. */
static kith_status add_columns(const ki_sync_meta *m, kith_index *index, const char *path, kith_error *err) {
    for (int64_t c = 0; c < kith_items_n_columns(m->items); c++) {
        const kith_column column = kith_items_columns(m->items)[c];
        kith_value_type type = column.type;
        for (int64_t i = 0; kith_index_column(index, i).name; i++) {
            const kith_column there = kith_index_column(index, i);
            const bool fits = there.type == KITH_VALUE_TEXT ||
                              (there.type == KITH_VALUE_REAL && column.type == KITH_VALUE_INT);
            if (strcmp(there.name, column.name) == 0 && fits) type = there.type;
        }
        const kith_status status = kith_index_column_add(index, column.name, type, err);
        if (status != KITH_OK) return ki_prefix(err, status, "%.200s", path);
    }
    return KITH_OK;
}

/* ---- joining ---- */

typedef struct join {
    ki_sync *sync;
    ki_sync_meta *meta;
    ki_cells names;   /* of the rows that have a path */
    int64_t *row;     /* [names]: whose it is */
    bool *is_known;   /* [rows]: some file has it */
    const char *path; /* of the table */
    const char *folder;
    const char **source;
    int64_t n_sources;
} join;

/* "./a/b.jpg" is "a/b.jpg". */
static const char *plain(const char *path) {
    while (path[0] == '.' && path[1] == '/') path += 2 + strspn(path + 2, "/");
    return path;
}

static kith_status list_names(join *j, kith_error *err) {
    const int64_t n = kith_items_count(j->meta->items);
    j->names.type = KITH_VALUE_TEXT;
    KI_TRY(ki_alloc_or(&j->row, (size_t)n, sizeof *j->row, "rows", err));
    KI_TRY(ki_zalloc_or(&j->is_known, (size_t)n, sizeof *j->is_known, "rows", err));
    for (int64_t i = 0; i < n; i++) {
        const char *path = kith_items_list(j->meta->items)[i].path;
        if (!path) continue;
        const kith_value name = ki_text_value(plain(path));
        if (ki_cells_find(&j->names, name.text))
            return ki_fail(err, KITH_EINVAL, "%.300s names %.300s twice", j->path, path);
        KI_TRY(ki_cells_add(&j->names, &name, err));
        j->row[j->names.n_texts - 1] = i;
    }
    return KITH_OK;
}

static kith_status take(join *j, int64_t file, const char *name, kith_error *err) {
    const uint32_t code = name && *name ? ki_cells_find(&j->names, name) : 0;
    if (!code) return KITH_OK;
    int64_t *row = &j->meta->row[file];
    const int64_t found = j->row[code - 1];
    j->is_known[found] = true;
    if (*row < 0 || *row == found) {
        *row = found;
        return KITH_OK;
    }
    const kith_index_item *items = kith_items_list(j->meta->items);
    return ki_fail(err, KITH_EINVAL, "%.200s names one photo twice, as %.200s and as %.200s", j->path,
                   items[*row].path, items[found].path);
}

/* What a path is called from a folder, or from itself; NULL: it does not lie there. */
static const char *below(const char *path, const char *folder) {
    const char *slash = strrchr(folder, '/');
    if (!ki_path_is_below(path, folder)) return NULL;
    const char *rest = path + strlen(folder);
    if (*rest == '\0') return slash ? slash + 1 : folder;
    return rest + strspn(rest, "/");
}

static kith_status match(join *j, kith_error *err) {
    ki_sync *s = j->sync;
    for (int64_t i = 0; i < s->n; i++) {
        const char *path = s->stamp[i].path;
        j->meta->row[i] = -1;
        KI_TRY(take(j, i, plain(path), err));
        KI_TRY(take(j, i, below(path, j->folder), err));
        for (int64_t k = 0; k < j->n_sources; k++) KI_TRY(take(j, i, below(path, j->source[k]), err));
    }
    return KITH_OK;
}

/* Rows of no photo: counted, the first of them named. */
static kith_status say_unknown(const join *j, kith_error *err) {
    enum { NAMED = 3 };
    ki_buffer line = {.err = err};
    int64_t n = 0;
    for (int64_t i = 0; i < j->names.n_texts; i++) n += !j->is_known[j->row[i]];
    if (n == 0 || j->sync->task->only_adds) return KITH_OK;
    ki_buffer_put(&line,
                  n == 1 ? "%lld row of %s is of no photo here: " : "%lld rows of %s are of no photo here: ",
                  (long long)n, j->path);
    for (int64_t i = 0, named = 0; i < j->names.n_texts && named < NAMED; i++) {
        if (!j->is_known[j->row[i]])
            ki_buffer_put(&line, named++ ? ", %.300s" : "%.300s", ki_cells_text(&j->names, i));
    }
    ki_buffer_put(&line, n > NAMED ? " …" : "");
    ki_buffer_add(&line, "", 1);
    const kith_status status = line.status == KITH_OK ? ki_sync_say(j->sync, line.data, err) : line.status;
    ki_buffer_release(&line);
    return status;
}

static kith_status join_rows(ki_sync *s, ki_sync_meta *m, const char *path, kith_error *err) {
    kith_status status;
    join j = {.sync = s, .meta = m, .path = path};
    char *folder = ki_arena_strdup(&m->arena, path), *slash = folder ? strrchr(folder, '/') : NULL;
    if (!folder) return ki_fail_memory(err, strlen(path), "a path");
    if (slash) *(slash == folder ? slash + 1 : slash) = '\0';
    j.folder = folder;
    KI_CHECK(ki_index_note_paths(s->index, KI_NOTE_SOURCES, &m->arena, &j.source, &j.n_sources, err));
    KI_CHECK(ki_alloc_or(&m->row, (size_t)s->n, sizeof *m->row, "files", err));
    KI_CHECK(list_names(&j, err));
    KI_CHECK(match(&j, err));
    if (m->is_changed) KI_CHECK(say_unknown(&j, err));
done:
    ki_cells_release(&j.names);
    ki_free(j.row);
    ki_free(j.is_known);
    return status;
}

static kith_status fail_gone(bool is_remembered, kith_status status, kith_error *err) {
    if (!is_remembered || status != KITH_EIO) return status;
    return ki_hint(err, status, "say where the table lies now: --meta FILE; or --meta '' to do without");
}

kith_status ki_sync_meta_open(ki_sync *s, kith_error *err) {
    ki_sync_meta *m = s->meta;
    char whole[PATH_MAX], hash[65] = "";
    const char *given = s->task->options->meta, *noted = ki_index_note(s->index, KI_NOTE_META);
    const char *path = given ? given : noted ? noted : "";
    if (!*path && !(noted && *noted)) return KITH_OK;
    if (*path) {
        if (!realpath(path, whole)) ki_snprintf(whole, sizeof whole, "%s", path);
        kith_status status = kith_file_hash(whole, hash, err);
        if (status == KITH_OK) status = kith_items_read(whole, &m->items, err);
        if (status != KITH_OK) return fail_gone(!given, status, err);
        KI_TRY(check_own(m, s->index, path, err));
        KI_TRY(check_columns(m, path, err));
    } else {
        *whole = '\0';
    }
    KI_TRY(recall(m, s->index, whole, hash, err));
    if (m->items) KI_TRY(add_columns(m, s->index, path, err));
    if (m->is_changed) KI_TRY(remember(m, s->index, whole, hash, err));
    return m->items ? join_rows(s, m, whole, err) : KITH_OK;
}
