/* The order makes a stop harmless: dates, moves and removals come first and take no network; after that every part of files
 * adds its items and removes those they replace. Whatever was done is a state that the next call goes on from. */
#include "collection/sync.h"

#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/text.h"
#include "collection/sync_facts.h"
#include "collection/sync_files.h"
#include "collection/sync_meta.h"
#include "collection/sync_parts.h"
#include "data/dataset/dataset.h"
#include "search/index_handle.h"

KI_OPTIONS_INIT(kith_sync_options, .most_removed = 1)

kith_index_item ki_sync_item(const ki_sync *s, int64_t i) {
    const ki_item *from = &s->task->set->item[s->file[i].item];
    return (kith_index_item){.path = from->path,
                             .label = kith_dataset_class_name(s->task->set, from->label),
                             .hash = s->file[i].hash[0] ? s->file[i].hash : NULL,
                             .bytes = s->stamp[i].bytes,
                             .mtime_ns = s->stamp[i].mtime_ns};
}

kith_status ki_sync_name(ki_sync *s, const char *line, kith_error *err) {
    kith_sync_report *r = s->report;
    r->n_bad++;
    if (r->n_named == KITH_SYNC_NAMED) return KITH_OK;
    r->bad[r->n_named] = ki_strdup(line);
    if (!r->bad[r->n_named]) return ki_fail_memory(err, 1, "a file's name");
    r->n_named++;
    return KITH_OK;
}

kith_status ki_sync_say(ki_sync *s, const char *line, kith_error *err) {
    kith_sync_report *r = s->report;
    char **said = ki_realloc(r->said, (size_t)r->n_said + 1, sizeof *said), *copy = ki_strdup(line);
    if (said) r->said = said;
    if (said && copy) {
        said[r->n_said++] = copy;
        return KITH_OK;
    }
    ki_free(copy);
    return ki_fail_memory(err, strlen(line), "a line");
}

/* ---- what is there ---- */

static kith_status compare(ki_sync *s, kith_error *err) {
    kith_status status;
    int64_t *items = NULL, *old = NULL;
    kith_file_state *state = NULL;
    KI_CHECK(ki_sync_files(s->task, &items, &s->stamp, &s->n, err));
    KI_CHECK(ki_zalloc_or(&s->file, (size_t)s->n, sizeof *s->file, "files", err));
    KI_CHECK(ki_alloc_or(&s->todo, (size_t)s->n, sizeof *s->todo, "files", err));
    KI_CHECK(ki_alloc_or(&state, (size_t)s->n, sizeof *state, "files", err));
    KI_CHECK(ki_alloc_or(&old, (size_t)s->n, sizeof *old, "files", err));
    for (int64_t i = 0; i < s->n; i++) s->file[i].item = items[i];
    KI_CHECK(kith_index_compare(s->index, s->stamp, s->n, state, old, &s->gone, &s->n_gone, err));
    for (int64_t i = 0; i < s->n; i++) {
        s->file[i].old = old[i];
        s->file[i].from = -1;
        s->file[i].state = state[i];
        s->report->n_same += state[i] == KITH_FILE_SAME;
    }
    s->report->n_files = s->n;
    if (s->task->only_adds) s->n_gone = 0;
done:
    ki_free(items);
    ki_free(old);
    ki_free(state);
    return status;
}

/* Files whose names the index cannot keep are named and left out. */
static kith_status leave_out_names(ki_sync *s, kith_error *err) {
    for (int64_t i = 0; i < s->n; i++) {
        char line[8192];
        const ki_item *item = &s->task->set->item[s->file[i].item];
        const char *label = kith_dataset_class_name(s->task->set, item->label);
        if (ki_index_keeps_text(s->index, item->path) && ki_index_keeps_text(s->index, label)) continue;
        s->file[i].is_out = true;
        ki_snprintf(line, sizeof line,
                    "%.4000s: its name is not text in UTF-8, and PostgreSQL keeps no other", item->path);
        KI_TRY(ki_sync_name(s, line, err));
    }
    return KITH_OK;
}

/* ---- what takes no network ---- */

/* Those that were not found, but for items that a file with other contents replaces: with it. */
static kith_status remove_lost(ki_sync *s, kith_error *err) {
    int64_t n = 0, *ids = NULL;
    KI_TRY(ki_alloc_or(&ids, (size_t)s->lost.n, sizeof *ids, "ids", err));
    for (int64_t i = 0; i < s->lost.n; i++) {
        const ki_lost *item = &s->lost.item[i];
        const ki_sync_file *at = item->file < 0 ? NULL : &s->file[item->file];
        if (!item->is_found && (!at || at->from >= 0 || at->is_out)) ids[n++] = item->id;
    }
    kith_index_info info;
    kith_index_info_get(s->index, &info);
    kith_status status = KITH_OK;
    if ((double)n > s->task->options->most_removed * (double)info.n_items) {
        s->report->reason = KITH_SYNC_MOST_REMOVED;
        status =
            ki_fail(err, KITH_EINVAL, "%lld of the %lld items of the index are not in the folders any more",
                    (long long)n, (long long)info.n_items);
        ki_hint(err, status, "is a disk missing, or another folder meant?");
    } else if (n > 0) {
        status = kith_index_remove(s->index, ids, n, err);
    }
    s->report->n_removed = n;
    ki_free(ids);
    return status;
}

/* A data set may give a file that is as it was another label. Without classes it says nothing of them. */
static kith_status relabel(ki_sync *s, kith_error *err) {
    kith_status status = KITH_OK;
    ki_arena arena = {0};
    int64_t *ids = NULL, *at = NULL, n = 0;
    const char **labels = NULL;
    if (s->task->only_adds) return KITH_OK;
    KI_CHECK(ki_alloc_or(&ids, (size_t)s->n, sizeof *ids, "ids", err));
    KI_CHECK(ki_alloc_or(&at, (size_t)s->n, sizeof *at, "files", err));
    KI_CHECK(ki_zalloc_or(&labels, (size_t)s->n, sizeof *labels, "labels", err));
    for (int64_t i = 0; i < s->n; i++) {
        const ki_sync_file *f = &s->file[i];
        const bool stays = f->old >= 0 && (f->state == KITH_FILE_SAME || f->is_touched);
        if (!stays || !ki_sync_item(s, i).label) continue;
        ids[n] = f->old;
        at[n++] = i;
    }
    KI_CHECK(ki_index_labels(s->index, ids, n, &arena, labels, err));
    for (int64_t k = 0; k < n; k++) {
        const kith_index_item item = ki_sync_item(s, at[k]);
        if (labels[k] && strcmp(labels[k], item.label) == 0) continue;
        s->report->n_relabelled++;
        s->report->n_same -= s->file[at[k]].state == KITH_FILE_SAME;
        KI_CHECK(kith_index_move(s->index, ids[k], item.path, item.label, item.bytes, item.mtime_ns, err));
    }
done:
    ki_free(ids);
    ki_free(at);
    ki_free(labels);
    ki_arena_release(&arena);
    return status;
}

/* The item under the new path. The label comes from where the file lies now. */
static kith_status move(ki_sync *s, int64_t i, int64_t id, kith_error *err) {
    const kith_index_item item = ki_sync_item(s, i);
    s->report->n_moved++;
    return kith_index_move(s->index, id, item.path, item.label, item.bytes, item.mtime_ns, err);
}

/* Dates and moves; the rest is left in `todo`. */
static kith_status settle(ki_sync *s, kith_error *err) {
    s->n_todo = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const ki_sync_file *f = &s->file[i];
        if (f->state == KITH_FILE_SAME || f->is_out) continue;
        if (f->is_touched) {
            s->report->n_touched++;
            KI_TRY(kith_index_restamp(s->index, f->old, s->stamp[i].bytes, s->stamp[i].mtime_ns, err));
        } else if (f->from >= 0) {
            KI_TRY(move(s, i, f->from, err));
        } else {
            s->todo[s->n_todo++] = i;
        }
    }
    return KITH_OK;
}

static kith_status run(ki_sync *s, kith_error *err) {
    kith_status status;
    KI_CHECK(compare(s, err));
    KI_CHECK(leave_out_names(s, err));
    KI_CHECK(ki_sync_facts_open(s, err));
    KI_CHECK(ki_sync_leave_out(s, err));
    KI_CHECK(ki_sync_look_inside(s, err));
    KI_CHECK(remove_lost(s, err));
    KI_CHECK(relabel(s, err));
    KI_CHECK(settle(s, err));
    KI_CHECK(ki_sync_facts_update(s, err));
    status = ki_sync_embed(s, err);
    if (status != KITH_OK && status != KITH_ECANCELED) goto done;
    kith_error why = {0};
    const kith_status committed = kith_index_commit(s->index, NULL, &why);
    if (committed != KITH_OK) {
        status = committed;
        if (err) *err = why;
    }
done:
    return status;
}

kith_status ki_sync_run(kith_index *index, kith_model *model, const ki_sync_task *task,
                        kith_sync_report *ret_report, kith_error *err) {
    kith_sync_report report = {0};
    ki_sync_meta meta = {0};
    ki_sync s = {.index = index, .model = model, .task = task, .report = &report, .meta = &meta};
    KI_TRY(ki_zalloc_or(&report.bad, KITH_SYNC_NAMED, sizeof *report.bad, "files' names", err));
    const kith_status status = run(&s, err);
    kith_ids_free(s.gone);
    ki_free(s.file);
    ki_free(s.stamp);
    ki_free(s.todo);
    ki_sync_out_release(&s.out);
    ki_sync_lost_release(&s.lost);
    ki_sync_meta_release(&meta);
    if (status == KITH_OK || status == KITH_ECANCELED) {
        *ret_report = report;
    } else {
        const kith_sync_reason reason = report.reason;
        kith_sync_report_release(&report);
        *ret_report = (kith_sync_report){.reason = reason};
    }
    return status;
}

void kith_sync_report_release(kith_sync_report *report) {
    if (!report) return;
    for (int64_t i = 0; i < report->n_named; i++) ki_free(report->bad[i]);
    ki_free(report->bad);
    for (int64_t i = 0; i < report->n_said; i++) ki_free(report->said[i]);
    ki_free(report->said);
    *report = (kith_sync_report){0};
}
