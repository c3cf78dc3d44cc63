/* The cache's folder, kept models, and folders as a whole. */
#include "collection/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/text.h"
#include "io/file.h"
#include "io/user_folder.h"
#include "kith/eval.h"

static const char elsewhere[] = "name a folder for the cache: --cache DIR, or XDG_CACHE_HOME";

/* ---- where it is ---- */

static kith_status absolute(const char *path, ki_path *ret, kith_error *err) {
    char here[sizeof ret->s];
    if (path[0] == '/') return ki_path_print(ret, err, "%s", path);
    if (!getcwd(here, sizeof here))
        return ki_fail(err, KITH_EIO, "the current folder cannot be read: %s", strerror(errno));
    return ki_path_print(ret, err, "%s/%s", here, path);
}

kith_status ki_cache_folder(const char *given, ki_path *ret, kith_error *err) {
    const char *caches = ki_variable("XDG_CACHE_HOME"), *home = ki_user_home();
    if (given) return absolute(given, ret, err);
    /* A relative path there is to be ignored, says the specification. */
    if (caches && caches[0] == '/') return ki_path_print(ret, err, "%s/kith", caches);
    if (home && home[0] == '/') return ki_path_print(ret, err, "%s/.cache/kith", home);
    ki_fail(err, KITH_EINVAL, "the cache has no place: there is no home folder");
    return ki_hint(err, KITH_EINVAL, "%s", elsewhere);
}

kith_status ki_cache_make(const char *cache, const char *name, ki_path *ret, kith_error *err) {
    const bool is_new = !ki_is_folder("%s", cache);
    KI_TRY(ki_path_print(ret, err, "%s/%s", cache, name));
    const kith_status status = ki_folders_make(ret, 0700, err);
    if (status != KITH_OK) return ki_hint(err, status, "%s", elsewhere);
    if (is_new) ki_cache_tag(cache); /* a folder that was there may hold what is to be backed up */
    if (access(ret->s, W_OK | X_OK) == 0) return KITH_OK;
    ki_fail(err, KITH_EIO, "%s cannot be written: %s", ret->s, strerror(errno));
    return ki_hint(err, KITH_EIO, "%s", elsewhere);
}

/* ---- models ---- */

static kith_status copy(int from, const char *file, ki_atomic_file *to, char ret_hash[65], kith_error *err) {
    enum { PART = 1 << 16 };
    char part[PART];
    kith_hash hash = {0};
    size_t n = 0;
    do {
        KI_TRY(ki_file_read_some(from, file, part, sizeof part, &n, err));
        kith_hash_add(&hash, part, n);
        KI_TRY(ki_atomic_write(to, part, n, err));
    } while (n > 0);
    kith_hash_finish(&hash, ret_hash);
    return KITH_OK;
}

static kith_status model_path(const char *cache, const char *hash, ki_path *ret, kith_error *err) {
    return ki_path_print(ret, err, "%s/models/%s.safetensors", cache, hash);
}

kith_status ki_cache_keep_model(const char *cache, const char *file, const char *hash, kith_error *err) {
    kith_status status;
    ki_path folder, path;
    ki_atomic_file to = {0};
    char found[65];
    int from = -1;
    long long bytes = 0;
    if (ki_cache_kept_model(cache, hash, &path)) return KITH_OK;
    KI_CHECK(ki_cache_make(cache, "models", &folder, err));
    KI_CHECK(model_path(cache, hash, &path, err));
    KI_CHECK(ki_file_open(file, KI_FILE_ONLY, &from, &bytes, err));
    KI_CHECK(ki_atomic_open(&to, path.s, err));
    KI_CHECK(copy(from, file, &to, found, err));
    if (strcmp(found, hash) != 0) {
        status = ki_fail(err, KITH_EINVAL, "%s has changed since it was opened", file);
        goto done;
    }
    status = ki_atomic_commit(&to, err);
done:
    ki_atomic_discard(&to);
    if (from >= 0) close(from);
    return status;
}

bool ki_cache_kept_model(const char *cache, const char *hash, ki_path *ret) {
    if (strlen(hash) != 64 || strspn(hash, "0123456789abcdef") != 64) return false;
    if (model_path(cache, hash, ret, NULL) != KITH_OK || !ki_is_file("%s", ret->s)) return false;
    utimensat(AT_FDCWD, ret->s, NULL, 0);
    return true;
}

/* ---- folders ---- */

/* Calls fn for every file and, after what is in it, every folder in the open folder, which is closed. */
static void each(int folder, void (*fn)(void *context, int folder, const char *name, const struct stat *info),
                 void *context) {
    DIR *dir = folder >= 0 ? fdopendir(folder) : NULL;
    int why = 0;
    if (!dir && folder >= 0) close(folder);
    for (const char *name; dir && (name = ki_dir_next(dir, &why));) {
        struct stat info;
        if (fstatat(dirfd(dir), name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (S_ISDIR(info.st_mode))
            each(openat(dirfd(dir), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), fn, context);
        fn(context, dirfd(dir), name, &info);
    }
    if (dir) closedir(dir);
}

static int open_folder(const char *folder) {
    return open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void remove_one(void *context, int folder, const char *name, const struct stat *info) {
    (void)context;
    unlinkat(folder, name, S_ISDIR(info->st_mode) ? AT_REMOVEDIR : 0);
}

void ki_cache_remove_folder(const char *folder) {
    each(open_folder(folder), remove_one, NULL);
    rmdir(folder);
}

static void add_bytes(void *context, int folder, const char *name, const struct stat *info) {
    (void)folder, (void)name;
    if (S_ISREG(info->st_mode)) *(int64_t *)context += (int64_t)info->st_blocks * 512;
}

int64_t ki_cache_folder_bytes(const char *folder) {
    int64_t bytes = 0;
    each(open_folder(folder), add_bytes, &bytes);
    return bytes;
}
