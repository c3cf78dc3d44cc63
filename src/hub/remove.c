/* Removing from the cache. Names go before contents: what is half removed is found by nobody, and the next call removes the
 * rest. Links are removed, never followed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/arena.h"
#include "hub/cache.h"
#include "hub/walk.h"

enum { MOST_DEPTH = 12 };

typedef struct removal {
    const char *commit; /* NULL: all */
    ki_path folder;     /* of the repository */
    int depth;
    int64_t bytes;
    /* looking for a link to a blob */
    const char *blob;
    bool is_linked;
} removal;

static kith_status drop(const char *path, kith_error *err) {
    if (remove(path) == 0 || errno == ENOENT) return KITH_OK;
    return ki_fail(err, KITH_EIO, "cannot remove %s: %s", path, strerror(errno));
}

static kith_status drop_tree(removal *r, const char *folder, kith_error *err);

static kith_status visit_drop(void *user, const char *path, const char *name, const struct stat *info,
                              kith_error *err) {
    removal *r = user;
    (void)name;
    if (S_ISDIR(info->st_mode)) return drop_tree(r, path, err);
    KI_TRY(drop(path, err));
    if (S_ISREG(info->st_mode)) r->bytes += info->st_size;
    return KITH_OK;
}

static kith_status drop_tree(removal *r, const char *folder, kith_error *err) {
    if (++r->depth > MOST_DEPTH)
        return ki_fail(err, KITH_EFORMAT, "%s has folders deeper than a hub's cache has", folder);
    KI_TRY(ki_hub_walk(folder, false, visit_drop, r, err));
    r->depth--;
    return drop(folder, err);
}

/* ---- one snapshot ---- */

static kith_status visit_ref(void *user, const char *path, const char *name, const struct stat *info,
                             kith_error *err) {
    removal *r = user;
    char commit[KI_HUB_COMMIT] = "";
    (void)name;
    if (S_ISDIR(info->st_mode)) return ki_hub_walk(path, false, visit_ref, r, err);
    const char *revision = path + strlen(r->folder.s) + strlen("/refs/");
    const bool is_his = ki_hub_ref_read(r->folder.s, revision, commit) && strcmp(commit, r->commit) == 0;
    return is_his ? drop(path, err) : KITH_OK;
}

static kith_status visit_link(void *user, const char *path, const char *name, const struct stat *info,
                              kith_error *err) {
    removal *r = user;
    char to[4096];
    (void)name;
    if (S_ISDIR(info->st_mode)) return ki_hub_walk(path, false, visit_link, r, err);
    const ssize_t n = readlink(path, to, sizeof to - 1);
    if (n <= 0) return KITH_OK;
    to[n] = '\0';
    const char *slash = strrchr(to, '/');
    r->is_linked |= strcmp(slash ? slash + 1 : to, r->blob) == 0;
    return KITH_OK;
}

/* Also parts of downloads, which have no link: they go with any snapshot. */
static kith_status visit_blob(void *user, const char *path, const char *name, const struct stat *info,
                              kith_error *err) {
    removal *r = user;
    ki_path snapshots;
    r->blob = name;
    r->is_linked = false;
    KI_TRY(ki_path_print(&snapshots, err, "%s/snapshots", r->folder.s));
    KI_TRY(ki_hub_walk(snapshots.s, false, visit_link, r, err));
    return r->is_linked ? KITH_OK : visit_drop(r, path, name, info, err);
}

static kith_status remove_snapshot(removal *r, kith_error *err) {
    ki_path path;
    KI_TRY(ki_path_print(&path, err, "%s/refs", r->folder.s));
    KI_TRY(ki_hub_walk(path.s, false, visit_ref, r, err));
    KI_TRY(ki_path_print(&path, err, "%s/snapshots/%s", r->folder.s, r->commit));
    KI_TRY(drop_tree(r, path.s, err));
    KI_TRY(ki_path_print(&path, err, "%s/blobs", r->folder.s));
    return ki_hub_walk(path.s, false, visit_blob, r, err);
}

/* ---- all of it ---- */

static kith_status visit_lock(void *user, const char *path, const char *name, const struct stat *info,
                              kith_error *err) {
    bool *is_held = user;
    (void)name, (void)info, (void)err;
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return KITH_OK;
    *is_held |= flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return KITH_OK;
}

static kith_status check_locks(const char *cache, const removal *r, const char *repo, kith_error *err) {
    ki_path locks;
    bool is_held = false;
    KI_TRY(ki_path_print(&locks, err, "%s/.locks/%s", cache, strrchr(r->folder.s, '/') + 1));
    KI_TRY(ki_hub_walk(locks.s, false, visit_lock, &is_held, err));
    if (!is_held) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "%s is being fetched by another process", repo);
    return ki_hint(err, KITH_EINVAL, "wait until it has ended, or stop it");
}

static kith_status remove_all(removal *r, kith_error *err) {
    ki_path path;
    KI_TRY(ki_path_print(&path, err, "%s/refs", r->folder.s));
    KI_TRY(drop_tree(r, path.s, err));
    r->bytes = 0; /* names are not what anybody counts */
    KI_TRY(ki_path_print(&path, err, "%s/snapshots", r->folder.s));
    KI_TRY(drop_tree(r, path.s, err));
    return drop_tree(r, r->folder.s, err);
}

kith_status ki_hub_remove(const char *given, const ki_hub_name *name, bool has_revision, int64_t *ret_bytes,
                          kith_error *err) {
    removal r = {0};
    ki_path cache;
    char commit[KI_HUB_COMMIT] = "", text[KI_HUB_REPO + KI_HUB_REVISION];
    KI_TRY(ki_hub_cache_folder(given, &cache, err));
    KI_TRY(ki_hub_repo_folder(cache.s, name->repo, &r.folder, err));
    bool is_there = ki_is_folder("%s", r.folder.s);
    if (has_revision)
        is_there = ki_hub_ref_read(r.folder.s, name->revision, commit) &&
                   ki_is_folder("%s/snapshots/%s", r.folder.s, commit);
    if (!is_there)
        return ki_fail(err, KITH_ENOTFOUND, "%s is not in the hub's cache (%.200s)",
                       ki_hub_name_text(name, text, sizeof text), cache.s);
    KI_TRY(check_locks(cache.s, &r, name->repo, err));
    r.commit = has_revision ? commit : NULL;
    KI_TRY(has_revision ? remove_snapshot(&r, err) : remove_all(&r, err));
    *ret_bytes = r.bytes;
    return KITH_OK;
}
