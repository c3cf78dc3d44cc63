/* What lies in the cache, and what goes from it. */
#include <dirent.h>
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
#include "collection/entry.h"
#include "collection/own.h"
#include "io/file.h"
#include "kith/index.h"
#include "kith/photos.h"

/* What is known of an entry besides what is shown. */
typedef struct listed {
    kith_cache_entry shown;
    bool is_model, is_gone; /* gone: removed by this handle */
} listed;

struct kith_cache {
    ki_arena arena; /* texts of the entries */
    ki_path folder;
    listed *entry;
    int64_t n;
    size_t capacity;
};

kith_status kith_cache_folder(const char *given, char *ret_folder, size_t bytes, kith_error *err) {
    KI_NEED(err, ret_folder);
    ki_path folder;
    KI_TRY(ki_cache_folder(given, &folder, err));
    const size_t n = strlen(folder.s);
    if (n >= bytes)
        return ki_fail(err, KITH_EINVAL, "the cache's path does not fit into %zu bytes: %.60s…", bytes,
                       folder.s);
    memcpy(ret_folder, folder.s, n + 1);
    return KITH_OK;
}

/* ---- what is there ---- */

static int64_t seconds_of(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 ? (int64_t)info.st_mtim.tv_sec : 0;
}

static int64_t count_photos(const char *entry) {
    ki_path path;
    kith_index *index = NULL;
    kith_index_info info = {.n_items = -1};
    if (ki_path_print(&path, NULL, "%s/index", entry) == KITH_OK &&
        kith_index_open(path.s, KITH_INDEX_READ, &index, NULL) == KITH_OK)
        kith_index_info_get(index, &info);
    kith_index_free(index);
    return info.n_items;
}

/* An entry without the record that belongs to it is listed by its name: it can be removed. */
static void read_photos(kith_cache *c, const char *path, kith_cache_entry *e) {
    ki_entry_record record = {0};
    ki_path used;
    if (ki_entry_read(path, &c->arena, &record, NULL) == KITH_OK && ki_entry_fits(path, &record)) {
        e->folder = record.folder;
        e->model = record.model;
        e->is_there = ki_is_folder("%s", record.folder);
    }
    e->n_photos = count_photos(path);
    e->bytes = ki_cache_folder_bytes(path);
    e->is_used = ki_entry_is_used(path);
    e->used = ki_path_print(&used, NULL, "%s/used", path) == KITH_OK ? seconds_of(used.s) : 0;
}

static void read_model(const char *path, kith_cache_entry *e) {
    struct stat info;
    if (stat(path, &info) != 0) return;
    e->bytes = (int64_t)info.st_blocks * 512;
    e->used = (int64_t)info.st_mtim.tv_sec;
}

static kith_status add_entry(kith_cache *c, const char *folder, const char *name, bool is_model,
                             kith_error *err) {
    ki_path path;
    listed e = {.shown = {.n_photos = -1}, .is_model = is_model};
    KI_TRY(ki_path_print(&path, err, "%s/%s", folder, name));
    e.shown.name = ki_arena_strdup(&c->arena, name);
    if (!e.shown.name) return ki_fail_memory(err, strlen(name), "a name");
    if (is_model)
        read_model(path.s, &e.shown);
    else
        read_photos(c, path.s, &e.shown);
    KI_TRY(ki_grow(&c->entry, &c->capacity, (size_t)c->n + 1, sizeof *c->entry, "entries", err));
    c->entry[c->n++] = e;
    return KITH_OK;
}

static kith_status list(kith_cache *c, const char *what, bool are_models, kith_error *err) {
    kith_status status = KITH_OK;
    ki_path folder;
    int why = 0;
    KI_TRY(ki_path_print(&folder, err, "%s/%s", c->folder.s, what));
    DIR *dir = opendir(folder.s);
    if (!dir && errno == ENOENT) return KITH_OK;
    if (!dir) return ki_fail(err, KITH_EIO, "%s cannot be read: %s", folder.s, strerror(errno));
    for (const char *name; (name = ki_dir_next(dir, &why));) {
        if (are_models ? ki_own_model(folder.s, name) : ki_own_entry(folder.s, name))
            KI_CHECK(add_entry(c, folder.s, name, are_models, err));
    }
    if (why) status = ki_fail(err, KITH_EIO, "%s cannot be read: %s", folder.s, strerror(why));
done:
    closedir(dir);
    return status;
}

static int by_last_use(const void *a, const void *b) {
    const kith_cache_entry *x = &((const listed *)a)->shown, *y = &((const listed *)b)->shown;
    return x->used != y->used ? (x->used < y->used ? 1 : -1) : strcmp(x->name, y->name);
}

kith_status kith_cache_open(const char *folder, kith_cache **ret_cache, kith_error *err) {
    KI_NEED(err, ret_cache);
    kith_status status;
    kith_cache *c = NULL;
    KI_CHECK(ki_zalloc_or(&c, 1, sizeof *c, "a cache", err));
    KI_CHECK(ki_cache_folder(folder, &c->folder, err));
    KI_CHECK(list(c, "photos", false, err));
    KI_CHECK(list(c, "models", true, err));
    if (c->n > 0) qsort(c->entry, (size_t)c->n, sizeof *c->entry, by_last_use);
    *ret_cache = c;
    c = NULL;
done:
    kith_cache_free(c);
    return status;
}

void kith_cache_free(kith_cache *c) {
    if (!c) return;
    ki_arena_release(&c->arena);
    ki_free(c->entry);
    ki_free(c);
}

int64_t kith_cache_count(const kith_cache *cache) { return cache ? cache->n : 0; }

bool kith_cache_at(const kith_cache *cache, int64_t i, kith_cache_entry *ret_entry) {
    if (!cache || !ret_entry || i < 0 || i >= cache->n) return false;
    *ret_entry = cache->entry[i].shown;
    return true;
}

/* ---- what goes ---- */

static kith_status remove_one(kith_cache *c, listed *e, kith_cache_removed *removed, kith_error *err) {
    ki_path path;
    KI_TRY(
        ki_path_print(&path, err, "%s/%s/%s", c->folder.s, e->is_model ? "models" : "photos", e->shown.name));
    if (!e->is_model && !ki_entry_remove(path.s)) {
        removed->n_used++;
        return KITH_OK;
    }
    if (e->is_model) unlink(path.s);
    if (access(path.s, F_OK) == 0)
        return ki_fail(err, KITH_EIO, "%s cannot be removed: is it another user's?", path.s);
    e->is_gone = true;
    removed->n++;
    removed->bytes += e->shown.bytes;
    return KITH_OK;
}

/* What processes that were killed meanwhile have left. */
static void sweep(const kith_cache *c) {
    ki_path folder, path;
    int why = 0;
    DIR *dir = ki_path_print(&folder, NULL, "%s/photos", c->folder.s) == KITH_OK ? opendir(folder.s) : NULL;
    for (const char *name; dir && (name = ki_dir_next(dir, &why));) {
        if (ki_own_leftover(folder.s, name) && ki_path_print(&path, NULL, "%s/%s", folder.s, name) == KITH_OK)
            ki_cache_remove_folder(path.s);
    }
    if (dir) closedir(dir);
}

/* A folder of photos that is not there any more has the path that the entry says. */
static bool is_meant(const kith_cache_entry *e, const char *which) {
    char whole[PATH_MAX];
    if (!which || strcmp(e->name, which) == 0) return true;
    return e->folder &&
           (strcmp(e->folder, which) == 0 || (realpath(which, whole) && strcmp(e->folder, whole) == 0));
}

kith_status kith_cache_remove(kith_cache *cache, const char *which, kith_cache_removed *ret_removed,
                              kith_error *err) {
    KI_NEED(err, cache, ret_removed);
    *ret_removed = (kith_cache_removed){0};
    bool is_found = !which;
    for (int64_t i = 0; i < cache->n; i++) {
        listed *e = &cache->entry[i];
        if (e->is_gone || !is_meant(&e->shown, which)) continue;
        is_found = true;
        KI_TRY(remove_one(cache, e, ret_removed, err));
    }
    sweep(cache);
    if (is_found) return KITH_OK;
    return ki_fail(err, KITH_ENOTFOUND, "the cache (%.300s) holds nothing of %.300s", cache->folder.s, which);
}

kith_status kith_cache_limit(kith_cache *cache, int64_t most_bytes, kith_cache_removed *ret_removed,
                             kith_error *err) {
    KI_NEED(err, cache, ret_removed);
    KI_NEED_COUNT(err, most_bytes);
    *ret_removed = (kith_cache_removed){0};
    int64_t bytes = 0;
    sweep(cache);
    for (int64_t i = 0; i < cache->n; i++) bytes += cache->entry[i].is_gone ? 0 : cache->entry[i].shown.bytes;
    for (int64_t i = cache->n - 1; i >= 0 && bytes > most_bytes; i--) {
        listed *e = &cache->entry[i];
        if (e->is_gone) continue;
        KI_TRY(remove_one(cache, e, ret_removed, err));
        if (e->is_gone) bytes -= e->shown.bytes;
    }
    return KITH_OK;
}
