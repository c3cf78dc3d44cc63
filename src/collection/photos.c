/* A folder of photos as an entry of the cache: found or made, and kept in line with the folder. */
#include "kith/photos.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/text.h"
#include "collection/cache.h"
#include "collection/collection.h"
#include "collection/entry.h"
#include "collection/remember.h"
#include "data/dataset/dataset.h"
#include "io/lock.h"
#include "search/files/manifest.h"
#include "search/notes.h"
#include "search/store_type.h"

KI_OPTIONS_INIT(kith_photos_options, 0)
KI_OPTIONS_INIT(kith_photos_sync_options, 0)

struct kith_photos {
    ki_path folder, entry, index;
    kith_model *model;
    int used;             /* -1: not held */
    bool has_other_cache; /* than the user's: --cache */
};

bool kith_photos_are(const char *path) {
    return path && !ki_store_type_for(path)->is_far && ki_is_folder("%s", path) &&
           !ki_is_file("%s/" KI_MANIFEST_NAME, path);
}

const char *kith_photos_folder(const kith_photos *photos) { return photos ? photos->folder.s : NULL; }
const char *kith_photos_index(const kith_photos *photos) { return photos ? photos->index.s : NULL; }
kith_model *kith_photos_model(const kith_photos *photos) { return photos ? photos->model : NULL; }

/* ---- finding the entry ---- */

static kith_status find_folder(kith_photos *p, const char *folder, kith_error *err) {
    char whole[PATH_MAX];
    if (!realpath(folder, whole)) return ki_fail(err, KITH_EIO, "%s: %s", folder, strerror(errno));
    if (!ki_is_folder("%s", whole))
        return ki_fail(err, KITH_EIO, "%s is not a folder; wanted one of photos", folder);
    if (access(whole, R_OK | X_OK) != 0)
        return ki_fail(err, KITH_EIO, "%s cannot be read: %s", folder, strerror(errno));
    return ki_path_print(&p->folder, err, "%s", whole);
}

static bool is_made(const kith_photos *p) { return ki_is_file("%s/" KI_MANIFEST_NAME, p->index.s); }

/* Another process may do so at the same time: then there is one, whoever was first. */
static kith_status create_index(const kith_photos *p, kith_error *err) {
    kith_index *index = NULL;
    kith_model_identity who;
    KITH_OPTIONS(kith_index_options, o);
    if (is_made(p)) return KITH_OK;
    KI_TRY(kith_model_identify(p->model, &who, err));
    o.dim = who.dim;
    o.model = who.hash;
    o.preprocess = who.preprocess;
    const kith_status status = kith_index_create(p->index.s, &o, &index, err);
    kith_index_free(index);
    return status == KITH_EINVAL && is_made(p) ? KITH_OK : status;
}

/* The command that removes the entry. Its name has no sign that a shell minds. */
static const char *removal(const kith_photos *p, char *buf, size_t bytes) {
    const char *slash = strrchr(p->entry.s, '/');
    if (!slash) return "kith cache --remove FOLDER";
    const int n_cache = (int)(slash - p->entry.s) - (int)strlen("/photos");
    if (p->has_other_cache && n_cache > 0)
        ki_snprintf(buf, bytes, "kith cache --cache '%.*s' --remove %s", n_cache, p->entry.s, slash + 1);
    else
        ki_snprintf(buf, bytes, "kith cache --remove %s", slash + 1);
    return buf;
}

/* What lies in the cache can be made anew: that is what to do about an entry that cannot be read. */
static kith_status advise(const kith_photos *p, kith_status status, kith_error *err) {
    char command[sizeof err->hint];
    if ((status != KITH_EFORMAT && status != KITH_EUNSUPPORTED) || !err || !*p->entry.s ||
        !strstr(err->message, p->entry.s))
        return status;
    return ki_hint(err, status, "remove it, and it is made anew: %s", removal(p, command, sizeof command));
}

/* How the model is opened again, unless the index says it already: a process may have been killed before it did. */
static kith_status note_model(const kith_photos *p, kith_error *err) {
    kith_index *index = NULL;
    KI_TRY(kith_index_open(p->index.s, KITH_INDEX_READ, &index, err));
    const bool is_noted = ki_index_note(index, KI_NOTE_MODEL);
    kith_index_free(index);
    index = NULL;
    if (is_noted) return KITH_OK;
    kith_status status = kith_index_open(p->index.s, KITH_INDEX_WRITE, &index, err);
    if (status == KITH_EINVAL) return KITH_OK; /* another process is about to */
    if (status == KITH_OK) status = ki_remember_model(index, p->model, err);
    if (status == KITH_OK) status = kith_index_commit(index, NULL, err);
    kith_index_free(index);
    return status;
}

/* With `--cache .` the folder PHOTOS/ of the user's would hold entries. */
static kith_status check_place(const kith_photos *p, const char *cache, kith_error *err) {
    char whole[PATH_MAX];
    ki_path place;
    KI_TRY(ki_path_print(&place, err, "%s/photos", cache));
    if (!realpath(place.s, whole) || strcmp(whole, p->folder.s) != 0) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "the cache would lie among the photos, in %s", whole);
    return ki_hint(err, KITH_EINVAL, "name another folder for the cache: --cache DIR, or XDG_CACHE_HOME");
}

static kith_status open_entry(kith_photos *p, const char *cache_given, kith_error *err) {
    ki_path cache;
    char title[512];
    kith_model_identity who;
    KI_TRY(ki_cache_folder(cache_given, &cache, err));
    KI_TRY(check_place(p, cache.s, err));
    KI_TRY(kith_model_identify(p->model, &who, err));
    const ki_entry_record record = {.folder = p->folder.s,
                                    .model = kith_model_title(p->model, title, sizeof title),
                                    .hash = who.hash,
                                    .words = who.preprocess};
    KI_TRY(ki_entry_open(cache.s, &record, &p->entry, &p->used, err));
    KI_TRY(ki_path_print(&p->index, err, "%s/index", p->entry.s));
    KI_TRY(create_index(p, err));
    return note_model(p, err);
}

kith_status kith_photos_open(const char *folder, const kith_photos_options *options, kith_photos **ret_photos,
                             kith_error *err) {
    KI_NEED(err, folder, ret_photos);
    KI_OPTIONS_TAKE(kith_photos_options, o, options, err);
    kith_status status;
    kith_photos *p = NULL;
    KI_CHECK(ki_zalloc_or(&p, 1, sizeof *p, "photos", err));
    p->used = -1;
    KI_CHECK(find_folder(p, folder, err));
    KI_CHECK(kith_model_open(o.model, &p->model, err));
    p->has_other_cache = o.cache != NULL;
    KI_CHECK(advise(p, open_entry(p, o.cache, err), err));
    *ret_photos = p;
    p = NULL;
done:
    kith_photos_free(p);
    return status;
}

void kith_photos_free(kith_photos *p) {
    if (!p) return;
    kith_model_free(p->model);
    if (p->used >= 0) close(p->used);
    ki_free(p);
}

/* ---- keeping it in line ---- */

/* One sync. */
typedef struct sync_run {
    const kith_photos_sync_options *options;
    kith_collection *collection;
} sync_run;

static int show(void *user, int64_t n_done, int64_t n_all) {
    const sync_run *run = user;
    kith_index_info info = {0};
    if (!run->options->progress) return 0;
    kith_index_info_get(run->collection->index, &info);
    const kith_photos_progress progress = {.n_photos = n_all, .n_done = n_done, .n_ready = info.n_items};
    return run->options->progress(run->options->user, &progress);
}

static const ki_dataset_kind any_kind = {.name = "photos", .summary = "the photos of a folder"};

static kith_status stop_at_first(void *context, const char *path, kith_error *err) {
    (void)path, (void)err;
    *(bool *)context = true;
    return KITH_ECANCELED;
}

/* Can the folder be read to its bottom, and is there no photo in it? */
static bool is_empty(const kith_photos *p) {
    kith_dataset *set = NULL;
    bool has_one = false;
    const bool is_read = ki_dataset_new(&any_kind, p->folder.s, &set, NULL) == KITH_OK &&
                         ki_walk_images(p->folder.s, set, stop_at_first, &has_one, NULL) == KITH_OK;
    kith_dataset_free(set);
    return is_read && !has_one;
}

/* A folder that has become empty is more likely one whose disk is missing than one whose photos are all gone. */
static kith_status settle_empty(const sync_run *run, const kith_photos *p, kith_status status,
                                kith_sync_report *report, kith_error *err) {
    kith_index_info info = {0};
    char command[sizeof err->hint];
    if (report->reason != KITH_SYNC_SOURCE_MISSING && status != KITH_EIO) return status;
    if (!is_empty(p)) return status;
    kith_index_info_get(run->collection->index, &info);
    kith_sync_report_release(report);
    if (info.n_items == 0) return KITH_OK;
    report->reason = KITH_SYNC_MOST_REMOVED;
    ki_fail(err, KITH_EINVAL, "%s holds no photos any more; its index of %lld stays as it is", p->folder.s,
            (long long)info.n_items);
    return ki_hint(err, KITH_EINVAL, "mount the disk, or remove the index: %s",
                   removal(p, command, sizeof command));
}

static kith_status sync_open(const kith_photos *p, const sync_run *run, kith_sync_report *report,
                             kith_error *err) {
    kith_collection_info info;
    const char *folder = p->folder.s;
    const kith_sources sources = {.paths = &folder, .n = 1, .split = KITH_SPLIT_ALL};
    KITH_OPTIONS(kith_sync_options, how);
    how.eager = how.counts_all = true;
    how.progress = show;
    how.user = (void *)run;
    KI_TRY(kith_collection_info_get(run->collection, &info, err));
    const kith_status status =
        kith_collection_sync(run->collection, info.n_sources == 0 ? &sources : NULL, &how, report, err);
    return settle_empty(run, p, status, report, err);
}

/* The only writer of the entry is who has the lock. */
static kith_status take_lock(const kith_photos *p, int *ret_lock, kith_sync_report *report, kith_error *err) {
    ki_path path;
    bool is_mine = false;
    KI_TRY(ki_path_print(&path, err, "%s/writer", p->entry.s));
    KI_TRY(ki_lock_try(path.s, ret_lock, &is_mine, err));
    if (is_mine) return KITH_OK;
    close(*ret_lock);
    *ret_lock = -1;
    report->reason = KITH_SYNC_BUSY;
    ki_fail(err, KITH_EINVAL, "another process brings the index of %s up to date", p->folder.s);
    return ki_hint(err, KITH_EINVAL, "what is ready can be searched meanwhile");
}

kith_status kith_photos_sync(kith_photos *photos, const kith_photos_sync_options *options,
                             kith_sync_report *ret_report, kith_error *err) {
    KI_NEED(err, photos);
    KI_OPTIONS_TAKE(kith_photos_sync_options, o, options, err);
    kith_status status;
    int lock = -1;
    kith_sync_report report = {0};
    sync_run run = {.options = &o};
    KITH_OPTIONS(kith_collection_open_options, how);
    how.mode = KITH_INDEX_WRITE;
    how.shared = photos->model;
    futimens(photos->used, NULL);
    KI_CHECK(take_lock(photos, &lock, &report, err));
    KI_CHECK(kith_collection_open(photos->index.s, &how, &run.collection, err));
    status = sync_open(photos, &run, &report, err);
done:
    advise(photos, status, err);
    kith_collection_free(run.collection);
    if (lock >= 0) close(lock);
    if (ret_report)
        *ret_report = report;
    else
        kith_sync_report_release(&report);
    return status;
}
