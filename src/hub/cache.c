/* Where the cache is, and finding a file in it. */
#include "hub/cache.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/text.h"
#include "io/file.h"
#include "io/user_folder.h"

/* ---- where it is ---- */

bool ki_hub_is_set(const char *name) {
    static const char *const yes[] = {"1", "on", "yes", "true"};
    const char *value = ki_variable(name);
    for (size_t i = 0; value && i < sizeof yes / sizeof yes[0]; i++) {
        if (strcasecmp(value, yes[i]) == 0) return true;
    }
    return false;
}

static kith_status user_home(const char **ret, kith_error *err) {
    *ret = ki_user_home();
    if (*ret) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "the hub's cache has no place: there is no home folder");
    return ki_hint(err, KITH_EINVAL, "set HF_HUB_CACHE to a folder");
}

/* Absolute, and "~" and "~/…" are the user's home. */
static kith_status expand(const char *path, ki_path *ret, kith_error *err) {
    const char *home = NULL;
    char here[PATH_MAX];
    if (path[0] == '~' && (path[1] == '/' || path[1] == '\0')) {
        KI_TRY(user_home(&home, err));
        return ki_path_print(ret, err, "%s%s", home, path + 1);
    }
    if (path[0] == '/') return ki_path_print(ret, err, "%s", path);
    if (!getcwd(here, sizeof here))
        return ki_fail(err, KITH_EIO, "the current folder cannot be read: %s", strerror(errno));
    return ki_path_print(ret, err, "%s/%s", here, path);
}

kith_status ki_hub_home(ki_path *ret, kith_error *err) {
    const char *home = NULL, *given = ki_variable("HF_HOME"), *caches = ki_variable("XDG_CACHE_HOME");
    ki_path path;
    if (given) return expand(given, ret, err);
    if (caches) {
        KI_TRY(ki_path_print(&path, err, "%s/huggingface", caches));
        return expand(path.s, ret, err);
    }
    KI_TRY(user_home(&home, err));
    return ki_path_print(ret, err, "%s/.cache/huggingface", home);
}

static kith_status find_place(const char *given, ki_path *ret, kith_error *err) {
    ki_path home;
    if (!given) given = ki_variable("HF_HUB_CACHE");
    if (!given) given = ki_variable("HUGGINGFACE_HUB_CACHE");
    if (given) return expand(given, ret, err);
    KI_TRY(ki_hub_home(&home, err));
    return ki_path_print(ret, err, "%s/hub", home.s);
}

kith_status ki_hub_cache_folder(const char *given, ki_path *ret, kith_error *err) {
    KI_TRY(find_place(given, ret, err));
    if (access(ret->s, F_OK) != 0 || ki_is_folder("%s", ret->s)) return KITH_OK;
    ki_fail(err, KITH_EIO, "the hub's cache %.300s is not a folder", ret->s);
    return ki_hint(err, KITH_EIO, "set HF_HUB_CACHE or HF_HOME to a folder");
}

kith_status ki_hub_repo_folder(const char *cache, const char *repo, ki_path *ret, kith_error *err) {
    const char *slash = strchr(repo, '/');
    return ki_path_print(ret, err, "%s/models--%.*s--%s", cache, (int)(slash - repo), repo, slash + 1);
}

kith_status ki_hub_make_folders(ki_path *path, kith_error *err) { return ki_folders_make(path, 0777, err); }

/* ---- revisions ---- */

bool ki_hub_ref_read(const char *folder, const char *revision, char ret_commit[KI_HUB_COMMIT]) {
    ki_path path;
    char *text = NULL;
    size_t n = 0;
    if (ki_hub_is_hex(revision, KI_HUB_COMMIT - 1)) {
        memcpy(ret_commit, revision, KI_HUB_COMMIT);
        return true;
    }
    if (ki_path_print(&path, NULL, "%s/refs/%s", folder, revision) != KITH_OK ||
        ki_file_read(path.s, 256, &text, &n, NULL) != KITH_OK)
        return false;
    const bool is_commit = n >= KI_HUB_COMMIT - 1 && strspn(text, "0123456789abcdef") == KI_HUB_COMMIT - 1 &&
                           text[KI_HUB_COMMIT - 1 + strspn(text + KI_HUB_COMMIT - 1, "\r\n")] == '\0';
    if (is_commit) ki_snprintf(ret_commit, KI_HUB_COMMIT, "%.40s", text);
    ki_free(text);
    return is_commit;
}

kith_status ki_hub_ref_write(const char *folder, const char *revision, const char *commit, kith_error *err) {
    ki_path path, parent;
    char now[KI_HUB_COMMIT] = "";
    if (strcmp(revision, commit) == 0) return KITH_OK;
    if (ki_hub_ref_read(folder, revision, now) && strcmp(now, commit) == 0) return KITH_OK;
    KI_TRY(ki_path_print(&path, err, "%s/refs/%s", folder, revision));
    parent = path;
    *strrchr(parent.s, '/') = '\0';
    KI_TRY(ki_hub_make_folders(&parent, err));
    return ki_file_write(path.s, commit, strlen(commit), err);
}

/* ---- finding ---- */

kith_status ki_hub_find(const char *given, const ki_hub_name *name, ki_path *ret_file,
                        char ret_commit[KI_HUB_COMMIT], kith_error *err) {
    ki_path cache, folder, file;
    char commit[KI_HUB_COMMIT] = "", text[KI_HUB_REPO + KI_HUB_REVISION];
    KI_TRY(ki_hub_cache_folder(given, &cache, err));
    KI_TRY(ki_hub_repo_folder(cache.s, name->repo, &folder, err));
    const bool is_known = ki_hub_ref_read(folder.s, name->revision, commit);
    KI_TRY(ki_path_print(&file, err, "%s/snapshots/%s/%s", folder.s, commit, name->file));
    if (is_known && ki_is_file("%s", file.s)) {
        *ret_file = file;
        memcpy(ret_commit, commit, sizeof commit);
        return KITH_OK;
    }
    ki_hub_name_text(name, text, sizeof text);
    ki_fail(err, KITH_ENOTFOUND, "hub:%s is not in the hub's cache (%.200s)", text, cache.s);
    return ki_hint(err, KITH_ENOTFOUND, "fetch it with kith pull %.200s", text);
}

kith_status ki_hub_resolve(const char *text, char *ret_file, size_t bytes, kith_error *err) {
    ki_hub_name name;
    ki_path file;
    char commit[KI_HUB_COMMIT];
    KI_TRY(ki_hub_name_parse(text, &name, err));
    KI_TRY(ki_hub_find(NULL, &name, &file, commit, err));
    const size_t n = strlen(file.s);
    if (n >= bytes)
        return ki_fail(err, KITH_EINVAL, "the model's path is longer than %zu bytes: %.60s…", bytes - 1,
                       file.s);
    memcpy(ret_file, file.s, n + 1);
    return KITH_OK;
}

/* Where the part of a path that ends at `end` begins. */
static const char *part_before(const char *path, const char *end) {
    while (end > path && end[-1] != '/') end--;
    return end;
}

bool ki_hub_repo_of_path(const char *path, char ret_repo[KI_HUB_REPO]) {
    static const char first[] = "models--", middle[] = "snapshots";
    const char *part[4], *end = path + strlen(path);
    for (int i = 0; i < 4; i++) { /* file, commit, snapshots, models--ORG--NAME */
        part[i] = part_before(path, end);
        if (part[i] == path && i < 3) return false;
        end = part[i] - (i < 3);
    }
    const size_t n = (size_t)(part[2] - 1 - part[3]);
    if (strncmp(part[2], middle, sizeof middle - 1) != 0 || part[2][sizeof middle - 1] != '/') return false;
    if (n < sizeof first || n >= KI_HUB_REPO || strncmp(part[3], first, sizeof first - 1) != 0) return false;
    char text[KI_HUB_REPO];
    ki_snprintf(text, sizeof text, "%.*s", (int)(n - (sizeof first - 1)), part[3] + sizeof first - 1);
    char *dashes = strstr(text, "--");
    if (!dashes) return false;
    *dashes = '/';
    memmove(dashes + 1, dashes + 2, strlen(dashes + 2) + 1);
    ki_hub_name name;
    if (ki_hub_name_parse(text, &name, NULL) != KITH_OK) return false;
    memcpy(ret_repo, name.repo, sizeof name.repo);
    return true;
}
