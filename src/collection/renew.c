/* Another model for an index: everything embedded anew, beside it, and put in its place in one step. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/atomic.h"
#include "base/path.h"
#include "collection/collection.h"
#include "collection/decisions.h"
#include "collection/remember.h"
#include "io/file.h"
#include "kith/groups.h"
#include "search/files/manifest.h"
#include "search/files/sweep.h"
#include "search/index_handle.h"
#include "search/notes.h"

/* A renewal under way. */
typedef struct renewal {
    ki_path path, aside; /* aside: beside it, where the new one is made */
    kith_collection *old, *new;
    kith_collection_info info; /* of the old one */
} renewal;

static kith_status find_places(renewal *r, const char *path, kith_error *err) {
    char whole[PATH_MAX];
    if (ki_store_type_for(path)->is_far)
        return ki_fail(err, KITH_EUNSUPPORTED,
                       "an index at a server cannot be renewed in place; make another one");
    if (!realpath(path, whole)) return ki_fail(err, KITH_EIO, "%s: %s", path, strerror(errno));
    const char *slash = strrchr(whole, '/');
    KI_TRY(ki_path_print(&r->path, err, "%s", whole));
    return ki_path_print(&r->aside, err, "%.*s/.%s.renewed", (int)(slash - whole), whole, slash + 1);
}

static kith_status open_old(renewal *r, kith_error *err) {
    KITH_OPTIONS(kith_collection_open_options, how);
    how.mode = KITH_INDEX_WRITE; /* nobody else changes it meanwhile */
    KI_TRY(kith_collection_open(r->path.s, &how, &r->old, err));
    KI_TRY(kith_collection_info_get(r->old, &r->info, err));
    if (r->info.n_sources > 0) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "%s was not made from images alone, so they cannot be embedded anew",
            r->path.s);
    return ki_hint(err, KITH_EINVAL, "make another index");
}

/* ---- the new one ---- */

/* Notes that users have set; kith's own are made anew. */
static kith_status copy_notes(const renewal *r, kith_error *err) {
    const ki_manifest *m = ki_index_committed(r->old->index);
    for (int64_t i = 0; i < m->n_notes; i++) {
        if (ki_note_named(m->notes[i].name) == KI_N_NOTES)
            KI_TRY(kith_index_note_set(r->new->index, m->notes[i].name, m->notes[i].text, err));
    }
    /* What is read of photos besides them; the table is joined anew. */
    static const ki_note kept[] = {KI_NOTE_EXIF, KI_NOTE_META};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        const char *text = ki_index_note(r->old->index, kept[i]);
        if (text) KI_TRY(ki_index_note_set(r->new->index, kept[i], text, err));
    }
    /* Where it will lie. */
    return ki_index_note_set(r->new->index, KI_NOTE_PLACE, r->path.s, err);
}

static kith_status copy_excluded(const renewal *r, kith_error *err) {
    ki_records files = {0};
    kith_status status = ki_index_excluded(r->old->index, &files, err);
    for (int64_t i = 0; status == KITH_OK && i < files.n; i++)
        status = ki_index_exclude_file(r->new->index, &files.record[i], err);
    ki_records_release(&files);
    return status;
}

/* Groups are not taken along: items get new ids, and the new vectors have other neighbours. */
static bool is_kept(const renewal *r, int64_t column) {
    return !ki_index_note(r->old->index, KI_NOTE_GROUPS) ||
           strcmp(kith_index_column(r->old->index, column).name, KITH_GROUPS_COLUMN) != 0;
}

static kith_status copy_columns(const renewal *r, kith_error *err) {
    for (int64_t i = 0; i < r->info.index.n_columns; i++) {
        const kith_column column = kith_index_column(r->old->index, i);
        if (!is_kept(r, i)) continue;
        KI_TRY(kith_index_column_add(r->new->index, column.name, column.type, err));
    }
    return KITH_OK;
}

/* Values of the old item that the new one has not got from its file or the table. */
static kith_status copy_item(const renewal *r, const kith_index_item *old, int64_t id, kith_error *err) {
    kith_status status = KITH_OK;
    kith_index_item now;
    const int64_t n = r->info.index.n_columns;
    const char **names = NULL;
    kith_value *values = NULL;
    int64_t n_set = 0;
    KI_TRY(kith_index_item_get(r->new->index, id, &now, err));
    KI_CHECK(ki_alloc_or(&names, (size_t)n, sizeof *names, "columns", err));
    KI_CHECK(ki_alloc_or(&values, (size_t)n, sizeof *values, "values", err));
    for (int64_t i = 0, at = 0; i < n; i++) { /* the new index has the old one's columns first */
        if (!is_kept(r, i)) continue;
        const kith_value *here = &now.values[at++];
        if (old->values[i].type == KITH_VALUE_NONE || here->type != KITH_VALUE_NONE) continue;
        names[n_set] = kith_index_column(r->old->index, i).name;
        values[n_set++] = old->values[i];
    }
    if (n_set > 0) KI_CHECK(kith_index_set(r->new->index, &id, 1, names, n_set, values, err));
done:
    ki_free(names);
    ki_free(values);
    kith_index_item_release(&now);
    return status;
}

/* Items are the same by their paths, sizes and dates. */
static kith_status copy_values(const renewal *r, kith_error *err) {
    kith_status status;
    kith_index_item *old = NULL;
    kith_file_stamp *files = NULL;
    kith_file_state *states = NULL;
    int64_t *was = NULL, *ids = NULL, *gone = NULL, n = 0, n_gone = 0;
    if (r->info.index.n_columns == 0) return KITH_OK;
    KI_CHECK(kith_index_ids(r->old->index, NULL, &was, &n, err));
    KI_CHECK(ki_zalloc_or(&old, (size_t)n, sizeof *old, "items", err));
    KI_CHECK(ki_alloc_or(&files, (size_t)n, sizeof *files, "files", err));
    KI_CHECK(ki_alloc_or(&states, (size_t)n, sizeof *states, "files", err));
    KI_CHECK(ki_alloc_or(&ids, (size_t)n, sizeof *ids, "files", err));
    for (int64_t i = 0; i < n; i++) {
        KI_CHECK(kith_index_item_get(r->old->index, was[i], &old[i], err));
        files[i] = (kith_file_stamp){old[i].path ? old[i].path : "", old[i].bytes, old[i].mtime_ns};
    }
    KI_CHECK(kith_index_compare(r->new->index, files, n, states, ids, &gone, &n_gone, err));
    for (int64_t i = 0; i < n; i++) {
        if (states[i] == KITH_FILE_SAME) KI_CHECK(copy_item(r, &old[i], ids[i], err));
    }
    status = kith_index_commit(r->new->index, NULL, err);
done:
    for (int64_t i = 0; old && i < n; i++) kith_index_item_release(&old[i]);
    ki_free(old);
    kith_ids_free(gone);
    kith_ids_free(was);
    ki_free(ids);
    ki_free(states);
    ki_free(files);
    return status;
}

/* One that an interrupted renewal by the same model left is gone on with. */
static bool goes_on(renewal *r, kith_model *model) {
    KITH_OPTIONS(kith_collection_open_options, how);
    how.mode = KITH_INDEX_WRITE;
    if (kith_collection_open(r->aside.s, &how, &r->new, NULL) != KITH_OK) return false;
    /* Without the note it was stopped before its first commit. */
    if (ki_index_note(r->new->index, KI_NOTE_PLACE) && ki_expect_model(r->new->index, model, NULL) == KITH_OK)
        return true;
    ki_sweep_away(r->aside.s);
    kith_collection_free(r->new);
    r->new = NULL;
    rmdir(r->aside.s);
    return false;
}

static kith_status make_new(renewal *r, const kith_model_options *model, kith_error *err) {
    kith_model *now = NULL;
    KITH_OPTIONS(kith_model_options, o);
    KITH_OPTIONS(kith_collection_options, how);
    if (model) KI_TRY(ki_options_take(model, &o, sizeof o, "kith_model_options", err));
    KI_TRY(ki_remembered_options(r->old->index, &o, err));
    KI_TRY(kith_model_open(&o, &now, err));
    const bool is_there = goes_on(r, now);
    kith_model_free(now);
    if (is_there) return KITH_OK;
    how.model = &o;
    how.metric = r->info.index.metric;
    how.recall = r->info.index.recall_wanted;
    how.first = r->info.index.first;
    how.folder = r->info.folder;
    KI_TRY(kith_collection_create(r->aside.s, &how, &r->new, err));
    /* No id means another photo than before. */
    ki_index_pending(r->new->index)->next_id = ki_index_committed(r->old->index)->next_id;
    KI_TRY(copy_notes(r, err));
    KI_TRY(copy_excluded(r, err));
    KI_TRY(copy_columns(r, err));
    KI_TRY(kith_index_commit(r->new->index, NULL, err));
    ki_collection_committed(r->new);
    return KITH_OK;
}

/* ---- the swap ---- */

/* Files that are not the index's stay in its folder. */
static void move_others(const renewal *r) {
    ki_path from, to;
    int why = 0;
    DIR *dir = opendir(r->aside.s);
    for (const char *name; dir && (name = ki_dir_next(dir, &why));) {
        if (ki_path_print(&from, NULL, "%s/%s", r->aside.s, name) == KITH_OK &&
            ki_path_print(&to, NULL, "%s/%s", r->path.s, name) == KITH_OK)
            renameat2(AT_FDCWD, from.s, AT_FDCWD, to.s, RENAME_NOREPLACE);
    }
    if (dir) closedir(dir);
}

/* A file system that cannot exchange two folders renames one after the other: whoever opens the index in between finds none. */
static kith_status exchange(const renewal *r, kith_error *err) {
    ki_path was;
    if (renameat2(AT_FDCWD, r->aside.s, AT_FDCWD, r->path.s, RENAME_EXCHANGE) == 0) return KITH_OK;
    if (errno != EINVAL && errno != ENOSYS)
        return ki_fail(err, KITH_EIO, "%s cannot take the place of %s: %s", r->aside.s, r->path.s,
                       strerror(errno));
    KI_TRY(ki_path_print(&was, err, "%s.before", r->aside.s));
    if (rename(r->path.s, was.s) == 0 && rename(r->aside.s, r->path.s) == 0 && rename(was.s, r->aside.s) == 0)
        return KITH_OK;
    return ki_fail(err, KITH_EIO, "%s cannot take the place of %s: %s", r->aside.s, r->path.s,
                   strerror(errno));
}

/* Both are locked: what is swept away is the old one. */
static kith_status swap(renewal *r, kith_error *err) {
    KI_TRY(exchange(r, err));
    KI_TRY(ki_parent_sync(r->path.s, err));
    ki_sweep_away(r->aside.s);
    move_others(r);
    rmdir(r->aside.s);
    return KITH_OK;
}

kith_status kith_collection_renew(const char *path, const kith_model_options *model,
                                  const kith_sync_options *options, kith_sync_report *ret_report,
                                  kith_error *err) {
    KI_NEED(err, path);
    kith_status status;
    renewal r = {0};
    kith_sync_report report = {0};
    KI_CHECK(find_places(&r, path, err));
    KI_CHECK(open_old(&r, err));
    KI_CHECK(make_new(&r, model, err));
    const kith_sources sources = {r.info.sources, r.info.n_sources, r.info.kind, r.info.split};
    KI_CHECK(kith_collection_sync(r.new, &sources, options, &report, err));
    if (report.n_added + report.n_same == 0 && r.info.index.n_items > 0) {
        status = ki_fail(err, KITH_EFORMAT, "no image could be read; the index stays as it was");
        goto done;
    }
    /* A sync whose measuring failed is complete, and may have left no index open. */
    KI_CHECK(ki_collection_begin(r.new, err));
    KI_CHECK(copy_values(&r, err));
    KI_CHECK(ki_decisions_carry(r.old->index, r.new->index, err));
    KI_CHECK(kith_index_commit(r.new->index, NULL, err));
    status = swap(&r, err);
done:
    kith_collection_free(r.new);
    kith_collection_free(r.old);
    if (ret_report)
        *ret_report = report;
    else
        kith_sync_report_release(&report);
    return status;
}
