/* kith_index_sync: compare files with items, do what costs nothing first, then embed part by part.
 *
 * The order makes a stop harmless: dates, moves and removals come first and take no network; after that every part of files
 * adds its items and removes those they replace. Whatever was done is a state that the next call goes on from. */
#include "kith/sync.h"

#include <stdlib.h>
#include <string.h>

#include "api/sync_files.h"
#include "api/sync_lost.h"
#include "api/sync_out.h"
#include "core/alloc.h"
#include "core/argument.h"
#include "core/clock.h"
#include "core/parallel.h"
#include "core/text.h"
#include "data/dataset/dataset.h"
#include "kith/eval.h"

enum { PART = 512 };                      /* images embedded and added at a time: what a stop loses at most */
static const double COMMIT_EVERY_S = 300; /* a killed program loses at most so much work */

KI_OPTIONS_INIT(kith_sync_options, .split = KITH_SPLIT_ALL, .most_removed = 1)

/* One file of the data set. */
typedef struct file {
    int64_t item; /* of the data set */
    int64_t old;  /* the item of the index that it replaces, or -1 */
    int64_t from; /* the lost item whose contents it has, or -1 */
    kith_file_state state;
    bool is_hashed, is_touched, is_out; /* out: removed by hand */
    char hash[65];                      /* "": not read yet, or unreadable */
} file;

typedef struct sync {
    kith_index *index;
    kith_embedder *embedder;
    const kith_dataset *set;
    const kith_sync_options *options;
    kith_sync_report *report;
    kith_file_stamp *stamp; /* [n] */
    file *file;             /* [n] */
    int64_t n;
    int64_t *gone, n_gone;
    ki_sync_out out;               /* files that were removed by hand */
    ki_sync_lost lost;             /* items whose contents are not at their path */
    int64_t *todo, n_todo, n_done; /* files to embed */
    double committed;              /* when */
} sync;

/* ---- what is there ---- */

static kith_status compare(sync *s, kith_error *err) {
    kith_status status;
    int64_t *items = NULL, *old = NULL;
    kith_file_state *state = NULL;
    KI_CHECK(ki_sync_files(s->set, s->options, &items, &s->stamp, &s->n, err));
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
    if (s->options->only_adds) s->n_gone = 0;
done:
    ki_free(items);
    ki_free(old);
    ki_free(state);
    return status;
}

static kith_status name_one(sync *s, const char *line, kith_error *err) {
    kith_sync_report *r = s->report;
    r->n_bad++;
    if (r->n_named == KITH_SYNC_NAMED) return KITH_OK;
    r->bad[r->n_named] = ki_strdup(line);
    if (!r->bad[r->n_named]) return ki_fail_memory(err, 1, "a file's name");
    r->n_named++;
    return KITH_OK;
}

/* Files whose names the index cannot keep are named and left out. */
static kith_status leave_out_names(sync *s, kith_error *err) {
    for (int64_t i = 0; i < s->n; i++) {
        char line[8192];
        const ki_item *item = &s->set->item[s->file[i].item];
        const char *label = kith_dataset_class_name(s->set, item->label);
        if (ki_index_keeps_text(s->index, item->path) && ki_index_keeps_text(s->index, label)) continue;
        s->file[i].is_out = true;
        ki_snprintf(line, sizeof line,
                    "%.4000s: its name is not text in UTF-8, and PostgreSQL keeps no other", item->path);
        KI_TRY(name_one(s, line, err));
    }
    return KITH_OK;
}

/* ---- by contents ---- */

/* Some of `todo`. */
typedef struct hashing {
    sync *sync;
    const int64_t *part;
} hashing;

static void hash_some(void *context, int64_t begin, int64_t end) {
    const hashing *h = context;
    for (int64_t k = begin; k < end; k++) {
        file *f = &h->sync->file[h->part[k]];
        const kith_file_stamp *stamp = &h->sync->stamp[h->part[k]];
        if (f->is_hashed) continue;
        f->is_hashed = true;
        /* One that no image is as large as will not be read: a sparse file of a terabyte has no bytes on disk. */
        const bool is_file = stamp->bytes >= 0 && stamp->bytes <= KI_IMAGE_MOST_FILE_BYTES;
        if (!is_file || kith_file_hash(stamp->path, f->hash, NULL) != KITH_OK) f->hash[0] = '\0';
    }
}

static void hash(sync *s, const int64_t *part, int64_t n) {
    hashing h = {s, part};
    ki_parallel_for(n, 1, hash_some, &h);
}

/* A file that is not as it was: the same contents, or others, and then its item is lost unless they are found elsewhere. */
static kith_status look_at_changed(sync *s, int64_t i, kith_error *err) {
    file *f = &s->file[i];
    kith_index_item item;
    kith_status status = kith_index_item_get(s->index, f->old, &item, err);
    if (status != KITH_OK) return status;
    f->is_touched = f->hash[0] && item.hash && strcmp(item.hash, f->hash) == 0;
    if (!f->is_touched) status = ki_sync_lost_add(&s->lost, f->old, item.hash, i, err);
    kith_index_item_release(&item);
    return status;
}

static kith_status list_gone(sync *s, kith_error *err) {
    for (int64_t i = 0; i < s->n_gone; i++) {
        kith_index_item item;
        KI_TRY(kith_index_item_get(s->index, s->gone[i], &item, err));
        const kith_status status = ki_sync_lost_add(&s->lost, s->gone[i], item.hash, -1, err);
        kith_index_item_release(&item);
        KI_TRY(status);
    }
    return KITH_OK;
}

static kith_index_item item_of(const sync *s, int64_t i) {
    const ki_item *from = &s->set->item[s->file[i].item];
    return (kith_index_item){.path = from->path,
                             .label = kith_dataset_class_name(s->set, from->label),
                             .hash = s->file[i].hash[0] ? s->file[i].hash : NULL,
                             .bytes = s->stamp[i].bytes,
                             .mtime_ns = s->stamp[i].mtime_ns};
}

/* The item under the new path. The label comes from where the file lies now. */
static kith_status move(sync *s, int64_t i, int64_t id, kith_error *err) {
    const kith_index_item item = item_of(s, i);
    s->report->n_moved++;
    return kith_index_move(s->index, id, item.path, item.label, item.bytes, item.mtime_ns, err);
}

/* ---- removed by hand ---- */

/* New files that were removed by hand, by their paths. */
static kith_status leave_out(sync *s, kith_error *err) {
    if (s->options->with_excluded) return KITH_OK;
    KI_TRY(ki_sync_out_init(&s->out, s->index, err));
    for (int64_t i = 0; i < s->n; i++) {
        if (s->file[i].state != KITH_FILE_NEW || !ki_sync_out_meets(&s->out, s->stamp[i].path, i)) continue;
        s->file[i].is_out = true;
        s->report->n_excluded++;
    }
    return KITH_OK;
}

/* An item is not out because its file now has the name of one that was removed by hand. */
static bool take_name(sync *s, int64_t i) {
    file *f = &s->file[i];
    if (!ki_sync_out_gives_way(&s->out, s->stamp[i].path, f->hash)) return false;
    f->is_out = false;
    s->report->n_excluded--;
    return true;
}

/* Is number k of those removed by hand not where it was: gone, or another file has its name? That file is read to know. */
static bool has_left(sync *s, int64_t k) {
    const int64_t i = s->out.by_contents[k], at = s->out.file[i];
    if (s->out.is_followed[i]) return false;
    if (at < 0) return true;
    hash(s, &at, 1);
    const char *found = s->file[at].hash;
    return *found && strcmp(found, s->out.files.record[i].hash) != 0;
}

/* A file with the contents of one that was removed by hand and is not where it was is that one. Whoever took its name may be another
 * removed one, and so on; a file that is none of them is let in. */
static kith_status leave_out_moved_one(sync *s, int64_t i, kith_error *err) {
    while (i >= 0) {
        file *f = &s->file[i];
        int64_t k = ki_sync_out_first(&s->out, f->hash), heir = -1;
        while (ki_sync_out_has(&s->out, k, f->hash) && !has_left(s, k)) k++;
        const bool is_one = ki_sync_out_has(&s->out, k, f->hash);
        s->report->n_excluded += is_one - f->is_out;
        f->is_out = is_one;
        if (is_one) {
            heir = s->out.file[s->out.by_contents[k]];
            KI_TRY(ki_sync_out_follow(&s->out, k, s->index, s->stamp[i].path, err));
        }
        i = heir;
    }
    return KITH_OK;
}

static kith_status leave_out_moved(sync *s, kith_error *err) {
    for (int64_t k = 0; k < s->n_todo && s->out.n_contents > 0; k++) {
        const file *f = &s->file[s->todo[k]];
        if (f->is_touched || f->from >= 0 || f->is_out) continue;
        KI_TRY(leave_out_moved_one(s, s->todo[k], err));
    }
    return KITH_OK;
}

/* What the contents say of files that are not as they were. Without lost items, and files that were removed by hand, the contents of new
 * files can wait until they are embedded. */
static kith_status look_inside(sync *s, kith_error *err) {
    s->n_todo = 0;
    for (int64_t i = 0; i < s->n; i++) {
        if (s->file[i].state == KITH_FILE_CHANGED) s->todo[s->n_todo++] = i;
    }
    const int64_t n_changed = s->n_todo;
    hash(s, s->todo, n_changed);
    for (int64_t k = 0; k < n_changed; k++) KI_TRY(look_at_changed(s, s->todo[k], err));
    KI_TRY(list_gone(s, err));
    ki_sync_lost_order(&s->lost);
    const bool may_move = s->lost.n > 0 || s->out.n_contents > 0;
    for (int64_t i = 0; may_move && i < s->n; i++) {
        if (s->file[i].state == KITH_FILE_NEW && (!s->file[i].is_out || s->lost.n > 0))
            s->todo[s->n_todo++] = i;
    }
    hash(s, s->todo + n_changed, s->n_todo - n_changed);
    for (int64_t k = 0; k < s->n_todo; k++) {
        file *f = &s->file[s->todo[k]];
        ki_lost *found = f->is_touched ? NULL : ki_sync_lost_find(&s->lost, f->hash);
        if (!found || (f->is_out && !take_name(s, s->todo[k]))) continue;
        f->from = found->id;
        found->is_found = true;
        if (found->file >= 0) s->file[found->file].old = -1; /* its item has gone elsewhere */
    }
    return leave_out_moved(s, err);
}

/* Those that were not found, but for items that a file with other contents replaces: with it. */
static kith_status remove_lost(sync *s, kith_error *err) {
    int64_t n = 0, *ids = NULL;
    KI_TRY(ki_alloc_or(&ids, (size_t)s->lost.n, sizeof *ids, "ids", err));
    for (int64_t i = 0; i < s->lost.n; i++) {
        const ki_lost *item = &s->lost.item[i];
        const file *at = item->file < 0 ? NULL : &s->file[item->file];
        if (!item->is_found && (!at || at->from >= 0 || at->is_out)) ids[n++] = item->id;
    }
    kith_index_info info;
    kith_index_info_get(s->index, &info);
    kith_status status = KITH_OK;
    if ((double)n > s->options->most_removed * (double)info.n_items) {
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
static kith_status relabel(sync *s, kith_error *err) {
    kith_status status = KITH_OK;
    ki_arena arena = {0};
    int64_t *ids = NULL, *at = NULL, n = 0;
    const char **labels = NULL;
    if (s->options->only_adds) return KITH_OK;
    KI_CHECK(ki_alloc_or(&ids, (size_t)s->n, sizeof *ids, "ids", err));
    KI_CHECK(ki_alloc_or(&at, (size_t)s->n, sizeof *at, "files", err));
    KI_CHECK(ki_zalloc_or(&labels, (size_t)s->n, sizeof *labels, "labels", err));
    for (int64_t i = 0; i < s->n; i++) {
        const file *f = &s->file[i];
        const bool stays = f->old >= 0 && (f->state == KITH_FILE_SAME || f->is_touched);
        if (!stays || !item_of(s, i).label) continue;
        ids[n] = f->old;
        at[n++] = i;
    }
    KI_CHECK(ki_index_labels(s->index, ids, n, &arena, labels, err));
    for (int64_t k = 0; k < n; k++) {
        const kith_index_item item = item_of(s, at[k]);
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

/* What takes no network; the rest is left in `todo`. */
static kith_status settle(sync *s, kith_error *err) {
    s->n_todo = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const file *f = &s->file[i];
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

/* ---- by the network ---- */

static int show(void *user, int64_t n_done, int64_t n_all) {
    const sync *s = user;
    (void)n_all;
    return s->options->progress ? s->options->progress(s->options->user, s->n_done + n_done, s->n_todo) : 0;
}

static kith_status name_bad(sync *s, const kith_vectors *vectors, kith_error *err) {
    const int64_t before = s->report->n_bad;
    for (int64_t i = 0; kith_vectors_bad(vectors, i); i++)
        KI_TRY(name_one(s, kith_vectors_bad(vectors, i), err));
    s->report->n_bad = before + kith_vectors_n_bad(vectors); /* more than are named */
    return KITH_OK;
}

/* Add what could be read; what these files were before goes, also where one cannot be read any more. */
static kith_status replace(sync *s, const int64_t *part, int64_t n, kith_vectors *vectors, kith_error *err) {
    kith_status status = KITH_OK;
    const int64_t n_read = kith_vectors_count(vectors), *number = kith_vectors_items(vectors);
    kith_index_item *items = NULL;
    kith_array rows;
    KI_TRY(ki_alloc_or(&items, (size_t)n_read, sizeof *items, "items", err));
    for (int64_t k = 0, at = 0; k < n_read; k++, at++) {
        while (s->file[part[at]].item != number[k]) at++; /* those between could not be read */
        items[k] = item_of(s, part[at]);
        s->report->n_changed += s->file[part[at]].old >= 0;
        s->report->n_added += s->file[part[at]].old < 0;
    }
    for (int64_t k = 0; k < n; k++) {
        const int64_t old = s->file[part[k]].old;
        if (old >= 0) KI_CHECK(kith_index_remove(s->index, &old, 1, err));
    }
    if (n_read == 0) goto done;
    KI_CHECK(kith_vectors_array(vectors, &rows, err));
    rows.dim[1] = kith_embedder_dim(s->embedder); /* of any tap's shape */
    rows.n_dims = 2;
    KI_CHECK(kith_index_add(s->index, &rows, items, NULL, err));
done:
    ki_free(items);
    return status;
}

static kith_status embed_part(sync *s, const int64_t *part, int64_t n, kith_error *err) {
    kith_status status;
    int64_t *items = NULL;
    kith_vectors *vectors = NULL;
    KI_CHECK(ki_alloc_or(&items, (size_t)n, sizeof *items, "items", err));
    for (int64_t k = 0; k < n; k++) items[k] = s->file[part[k]].item;
    hash(s, part, n);
    KI_CHECK(kith_embedder_items(s->embedder, s->set, items, n, show, s, &vectors, err));
    KI_CHECK(replace(s, part, n, vectors, err));
    KI_CHECK(name_bad(s, vectors, err));
    s->n_done += n;
done:
    kith_vectors_free(vectors);
    ki_free(items);
    return status;
}

static kith_status embed(sync *s, kith_error *err) {
    s->committed = ki_seconds_now();
    while (s->n_done < s->n_todo) {
        const int64_t left = s->n_todo - s->n_done;
        KI_TRY(embed_part(s, s->todo + s->n_done, left < PART ? left : PART, err));
        if (s->n_done == s->n_todo || ki_seconds_now() - s->committed < COMMIT_EVERY_S) continue;
        KI_TRY(kith_index_commit(s->index, NULL, err));
        s->committed = ki_seconds_now();
    }
    return KITH_OK;
}

static kith_status run(sync *s, kith_error *err) {
    kith_status status;
    KI_CHECK(compare(s, err));
    KI_CHECK(leave_out_names(s, err));
    KI_CHECK(leave_out(s, err));
    KI_CHECK(look_inside(s, err));
    KI_CHECK(remove_lost(s, err));
    KI_CHECK(relabel(s, err));
    KI_CHECK(settle(s, err));
    status = embed(s, err);
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

kith_status kith_index_sync(kith_index *index, kith_embedder *embedder, const kith_dataset *dataset,
                            const kith_sync_options *options, kith_sync_report *ret_report, kith_error *err) {
    KI_NEED(err, index, embedder, dataset, ret_report);
    KI_OPTIONS_TAKE(kith_sync_options, o, options, err);
    KI_NEED_COUNT(err, o.n_items);
    kith_sync_report report = {0};
    sync s = {.index = index, .embedder = embedder, .set = dataset, .options = &o, .report = &report};
    KI_TRY(kith_index_expect(index, kith_embedder_hash(embedder), kith_embedder_preprocess(embedder), err));
    KI_TRY(ki_zalloc_or(&report.bad, KITH_SYNC_NAMED, sizeof *report.bad, "files' names", err));
    const kith_status status = run(&s, err);
    kith_ids_free(s.gone);
    ki_free(s.file);
    ki_free(s.stamp);
    ki_free(s.todo);
    ki_sync_out_release(&s.out);
    ki_sync_lost_release(&s.lost);
    if (status == KITH_OK || status == KITH_ECANCELED)
        *ret_report = report;
    else
        kith_sync_report_release(&report);
    return status;
}

void kith_sync_report_release(kith_sync_report *report) {
    if (!report) return;
    for (int64_t i = 0; i < report->n_named; i++) ki_free(report->bad[i]);
    ki_free(report->bad);
    *report = (kith_sync_report){0};
}
