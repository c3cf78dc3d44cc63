/* Changes: kith_collection_sync, add, add_rows and remove.
 *
 * Each of them first finds out what is meant, which changes nothing, and then writes notes and items and commits. What fails after the
 * first note is dropped as a whole. */
#include <fnmatch.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/path.h"
#include "base/text.h"
#include "collection/collection.h"
#include "collection/group.h"
#include "collection/measure.h"
#include "collection/source.h"
#include "collection/sync.h"
#include "search/notes.h"

/* A change by images, under way. */
typedef struct change {
    kith_collection *collection;
    kith_model *model;
    ki_source source; /* what the collection remembers after it */
    bool is_renewed;  /* which is not what it remembers now */
    kith_dataset *set;
    ki_sync_task task;
    bool is_begun; /* something is written that is not committed */
    kith_sync_report report;
} change;

static kith_status begin(change *ch, kith_error *err) {
    KI_TRY(ki_collection_begin(ch->collection, err));
    return kith_collection_model(ch->collection, &ch->model, err);
}

/* Paths of a recipe's data may begin in the folder that the user is in. */
static kith_status remember_here(const kith_dataset *set, kith_index *index, kith_error *err) {
    char here[4096];
    const char *first = kith_dataset_item(set, 0).path;
    if (!first || first[0] == '/' || !getcwd(here, sizeof here)) return KITH_OK;
    return ki_index_note_set(index, KI_NOTE_FOLDER, here, err);
}

/* The order of notes is part of the bytes of an index. */
static kith_status remember(change *ch, kith_error *err) {
    kith_index *index = ch->collection->index;
    ch->is_begun = true;
    KI_TRY(ki_collection_remember_file(ch->collection, err));
    if (!ch->is_renewed) return KITH_OK;
    KI_TRY(ki_source_remember(&ch->source, index, err));
    return remember_here(ch->set, index, err);
}

static kith_status fail_unread(change *ch, kith_error *err) {
    const kith_sync_report *r = &ch->report;
    const kith_status status = ki_fail(err, KITH_EFORMAT, "no image of %lld could be read; the first: %.300s",
                                       (long long)r->n_bad, r->n_named > 0 ? r->bad[0] : "");
    kith_sync_report_release(&ch->report);
    ch->report.reason = KITH_SYNC_NOTHING_READ;
    return status;
}

/* A failure to measure is no failure of the change. */
static void measure(kith_collection *c, const kith_model *model, kith_sync_report *report) {
    report->measured = ki_measure(c->index, model, &report->measured_error);
    if (report->measured != KITH_OK) ki_collection_drop(c);
}

/* Nor is one to group what is new. */
static void follow(kith_collection *c, kith_sync_report *report) {
    report->grouped = ki_collection_ready(c, &report->grouped_error);
    if (report->grouped == KITH_OK)
        report->grouped = ki_groups_follow(c, &report->n_grouped, &report->grouped_error);
    if (report->grouped != KITH_OK) ki_collection_drop(c);
}

static kith_status run(change *ch, kith_error *err) {
    kith_collection *c = ch->collection;
    KI_TRY(remember(ch, err));
    ch->task.set = ch->set;
    const kith_status status = ki_sync_run(c->index, ch->model, &ch->task, &ch->report, err);
    if (status == KITH_OK && c->is_new && ch->report.n_added == 0) return fail_unread(ch, err);
    if (status != KITH_OK && status != KITH_ECANCELED) return status;
    ki_collection_committed(c);
    if (status == KITH_OK) measure(c, ch->model, &ch->report);
    if (status == KITH_OK) follow(c, &ch->report);
    return status;
}

/* Hand the report over. A new collection that got nothing goes when it is freed, unless it gets something before. */
static kith_status end(change *ch, kith_status status, kith_sync_report *ret_report) {
    kith_collection *c = ch->collection;
    const bool is_done = status == KITH_OK || status == KITH_ECANCELED;
    if (!is_done && ch->is_begun) ki_collection_drop(c);
    if (!is_done) c->is_failed = c->is_new;
    kith_dataset_free(ch->set);
    ki_source_release(&ch->source);
    if (ret_report)
        *ret_report = ch->report;
    else
        kith_sync_report_release(&ch->report);
    return status;
}

/* ---- sync ---- */

static kith_status find_sources(change *ch, const kith_sources *given, kith_error *err) {
    if (given) {
        ch->is_renewed = true;
        KI_TRY(ki_source_take(&ch->source, given, err));
        return ki_source_open(&ch->source, &ch->set, err);
    }
    KI_TRY(ki_source_recall(&ch->source, ch->collection->index, err));
    if (ch->source.n == 0) {
        ch->report.reason = KITH_SYNC_NO_SOURCES;
        ki_fail(err, KITH_EINVAL, "the index does not say where its images are");
        return ki_hint(err, KITH_EINVAL, "name the folders");
    }
    const kith_status status = ki_source_open(&ch->source, &ch->set, err);
    if (status != KITH_EIO) return status;
    ch->report.reason = KITH_SYNC_SOURCE_MISSING;
    return ki_hint(err, status, "mount the disk, or name the folders that it shall hold from now on");
}

kith_status kith_collection_sync(kith_collection *collection, const kith_sources *sources,
                                 const kith_sync_options *options, kith_sync_report *ret_report,
                                 kith_error *err) {
    KI_NEED(err, collection);
    KI_OPTIONS_TAKE(kith_sync_options, o, options, err);
    change ch = {.collection = collection, .task = {.options = &o}};
    kith_status status = begin(&ch, err);
    if (status == KITH_OK) status = find_sources(&ch, sources, err);
    ch.task.split = ch.source.split;
    if (status == KITH_OK) status = run(&ch, err);
    return end(&ch, status, ret_report);
}

/* ---- add ---- */

/* What is named lies below a source that is known, whose name decides the class; or is one of its own from now on. */
static kith_status find_bases(const ki_source *named, ki_source *known, ki_source *bases, kith_error *err) {
    for (int64_t i = 0; i < named->n; i++) {
        const char *base = named->path[i];
        for (int64_t k = 0; k < known->n; k++) {
            if (ki_path_is_below(named->path[i], known->path[k])) base = known->path[k];
        }
        bool is_there = false;
        for (int64_t k = 0; k < bases->n; k++) is_there |= strcmp(bases->path[k], base) == 0;
        if (!is_there) KI_TRY(ki_source_add(bases, base, err));
        if (base == named->path[i]) KI_TRY(ki_source_add(known, base, err));
    }
    return KITH_OK;
}

/* The items of the set that were named, or lie below a folder that was. */
static int64_t select_named(const kith_dataset *set, const ki_source *named, int64_t *items) {
    int64_t n = 0;
    for (int64_t i = 0; i < kith_dataset_count(set); i++) {
        const char *path = kith_dataset_item(set, i).path;
        bool is_named = false;
        for (int64_t k = 0; k < named->n && !is_named; k++) is_named = ki_path_is_below(path, named->path[k]);
        if (is_named) items[n++] = i;
    }
    return n;
}

static kith_status find_named(change *ch, const kith_sources *given, int64_t **ret_items, kith_error *err) {
    kith_status status;
    ki_source named = {0}, bases = {0};
    KI_CHECK(ki_source_take(&named, given, err));
    KI_CHECK(ki_source_recall(&ch->source, ch->collection->index, err));
    if (ki_source_dataset(&ch->source)) {
        ki_fail(err, KITH_EINVAL, "the index holds a data set (%.300s); wanted one of files and folders",
                ki_source_dataset(&ch->source));
        status = ki_hint(err, KITH_EINVAL, "change the data set, then sync the index with it");
        goto done;
    }
    KI_CHECK(find_bases(&named, &ch->source, &bases, err));
    KI_CHECK(kith_dataset_open_files(bases.path, bases.n, &ch->set, err));
    KI_CHECK(ki_alloc_or(ret_items, (size_t)kith_dataset_count(ch->set), sizeof **ret_items, "items", err));
    ch->source.split = KITH_SPLIT_ALL;
    ch->is_renewed = true;
    ch->task.items = *ret_items;
    ch->task.n_items = select_named(ch->set, &named, *ret_items);
    ch->task.only_adds = true;
done:
    ki_source_release(&named);
    ki_source_release(&bases);
    return status;
}

kith_status kith_collection_add(kith_collection *collection, const char *const *paths, int64_t n,
                                const kith_sync_options *options, kith_sync_report *ret_report,
                                kith_error *err) {
    KI_NEED(err, collection, paths);
    KI_NEED_COUNT(err, n);
    KI_OPTIONS_TAKE(kith_sync_options, o, options, err);
    int64_t *items = NULL;
    const kith_sources given = {.paths = paths, .n = n, .split = KITH_SPLIT_ALL};
    change ch = {.collection = collection, .task = {.options = &o}};
    o.with_excluded = true;
    kith_status status = begin(&ch, err);
    if (status == KITH_OK) status = find_named(&ch, &given, &items, err);
    if (status == KITH_OK) status = run(&ch, err);
    ki_free(items);
    return end(&ch, status, ret_report);
}

/* ---- vectors ---- */

static kith_status add_rows(kith_collection *c, const kith_array *rows, const kith_index_item *items,
                            const kith_work_options *work, kith_error *err) {
    if (rows->n_dims != 2 || rows->dim[0] > 0) KI_TRY(kith_index_add(c->index, rows, items, NULL, err));
    return kith_index_commit(c->index, work, err);
}

kith_status kith_collection_add_rows(kith_collection *collection, const kith_array *rows,
                                     const kith_index_item *items, const kith_work_options *work,
                                     kith_sync_report *ret_report, kith_error *err) {
    KI_NEED(err, collection, rows);
    kith_collection *c = collection;
    kith_sync_report report = {0};
    kith_model *model = NULL;
    KI_TRY(ki_collection_begin(c, err));
    const kith_status status = add_rows(c, rows, items, work, err);
    if (status == KITH_OK) {
        ki_collection_committed(c);
        report.n_added = rows->dim[0];
        report.measured = ki_collection_model_if_any(c, &model, &report.measured_error);
        if (report.measured == KITH_OK) measure(c, model, &report);
        follow(c, &report);
    } else {
        ki_collection_drop(c);
    }
    if (ret_report) *ret_report = report;
    return status;
}

/* ---- remove ---- */

/* Is the path what a shell's pattern means, or does it lie in a folder that is? */
static bool matches(const char *path, const char *pattern) {
    ki_path below;
    const size_t length = strlen(pattern);
    const char *slash = length > 0 && pattern[length - 1] == '/' ? "" : "/";
    return fnmatch(pattern, path, 0) == 0 ||
           (ki_path_print(&below, NULL, "%s%s*", pattern, slash) == KITH_OK &&
            fnmatch(below.s, path, 0) == 0);
}

/* A pattern is for the whole path, or for its end behind a slash. */
static bool is_meant(const char *path, const char *const *patterns, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        ki_path anywhere;
        if (matches(path, patterns[i])) return true;
        if (ki_path_print(&anywhere, NULL, "*/%s", patterns[i]) == KITH_OK && matches(path, anywhere.s))
            return true;
    }
    return false;
}

/* Keep of the ids those that are meant. */
static kith_status select_meant(const kith_index *index, const char *const *patterns, int64_t n_patterns,
                                int64_t *ids, int64_t *n, kith_error *err) {
    int64_t n_kept = 0;
    for (int64_t i = 0; i < *n; i++) {
        kith_index_item item;
        KI_TRY(kith_index_item_get(index, ids[i], &item, err));
        if (item.path && is_meant(item.path, patterns, n_patterns)) ids[n_kept++] = ids[i];
        kith_index_item_release(&item);
    }
    *n = n_kept;
    if (n_kept > 0) return KITH_OK;
    return ki_fail(err, KITH_ENOTFOUND, "no item's path is like '%.200s'", patterns[0]);
}

kith_status kith_collection_remove(kith_collection *collection, const char *const *patterns, int64_t n,
                                   int64_t *ret_n_removed, kith_error *err) {
    KI_NEED(err, collection, patterns, ret_n_removed);
    KI_TRY(ki_need_strings(patterns, n, "patterns", err));
    if (n == 0) return ki_fail(err, KITH_EINVAL, "no pattern is given; wanted at least one");
    kith_status status;
    int64_t *ids = NULL, n_ids = 0;
    bool is_begun = false;
    KI_CHECK(ki_collection_begin(collection, err));
    KI_CHECK(kith_index_ids(collection->index, NULL, &ids, &n_ids, err));
    KI_CHECK(select_meant(collection->index, patterns, n, ids, &n_ids, err));
    is_begun = true;
    KI_CHECK(kith_index_exclude(collection->index, ids, n_ids, err));
    KI_CHECK(kith_index_commit(collection->index, NULL, err));
    ki_collection_committed(collection);
    *ret_n_removed = n_ids;
done:
    if (status != KITH_OK && is_begun) ki_collection_drop(collection);
    kith_ids_free(ids);
    return status;
}
