/* The run folder: opening it, its lock, the files in it. */
#include "train/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/text.h"
#include "io/file.h"
#include "io/lock.h"

kith_status ki_folder_at(const ki_folder *folder, ki_path *ret_path, kith_error *err, const char *fmt, ...) {
    char name[1024];
    va_list ap;
    va_start(ap, fmt);
    const int n = ki_vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof name) return ki_fail(err, KITH_EINVAL, "a file name is too long");
    return ki_path_print(ret_path, err, "%s/%s", folder->path, name);
}

bool ki_folder_has(const ki_folder *folder, const char *name) {
    return ki_is_file("%s/%s", folder->path, name);
}

static kith_status make_folder(const char *path, kith_error *err) {
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return KITH_OK;
    return ki_fail(err, KITH_EIO, "cannot make folder %s: %s", path, strerror(errno));
}

kith_status ki_make_folders(const char *path, kith_error *err) {
    ki_path p;
    KI_TRY(ki_path_print(&p, err, "%s", path));
    for (char *c = p.s + 1; *c; c++) {
        if (*c != '/') continue;
        *c = '\0';
        KI_TRY(make_folder(p.s, err));
        *c = '/';
    }
    KI_TRY(make_folder(p.s, err));
    if (!ki_is_folder("%s", path)) return ki_fail(err, KITH_EIO, "%s is a file; wanted a folder", path);
    return KITH_OK;
}

static kith_status take_lock(ki_folder *folder, kith_error *err) {
    ki_path path;
    bool is_mine = false;
    char text[32] = "";
    KI_TRY(ki_folder_at(folder, &path, err, "lock"));
    KI_TRY(ki_lock_try(path.s, &folder->lock, &is_mine, err));
    if (is_mine) {
        /* Only for people. */
        const int n = ki_snprintf(text, sizeof text, "%ld\n", (long)getpid());
        if (ftruncate(folder->lock, 0) != 0 || write(folder->lock, text, (size_t)n) != n) errno = 0;
        return KITH_OK;
    }
    const ssize_t n = read(folder->lock, text, sizeof text - 1);
    const long pid = n > 0 ? strtol(text, NULL, 10) : 0;
    ki_fail(err, KITH_EIO, "%s is in use by another kith train (process %ld)", folder->path, pid);
    return ki_hint(err, KITH_EIO, "wait for it, stop it, or name another folder with --out");
}

/* The process that made them no longer works here. */
static kith_status clear_half_written(const ki_folder *folder, kith_error *err) {
    static const char *const subs[] = {".", "checkpoints", "test"};
    for (size_t i = 0; i < sizeof subs / sizeof subs[0]; i++) {
        ki_path path;
        KI_TRY(ki_folder_at(folder, &path, err, "%s", subs[i]));
        ki_atomic_clear(path.s, "", 0);
    }
    return KITH_OK;
}

kith_status ki_folder_open(const char *path, ki_folder *ret_folder, kith_error *err) {
    ki_folder folder = {.lock = -1};
    ki_path sub;
    kith_status status;
    folder.is_new = !ki_is_folder("%s", path);
    KI_CHECK(ki_make_folders(path, err));
    folder.path = ki_strdup(path);
    if (!folder.path) {
        status = ki_fail_memory(err, strlen(path), "a path");
        goto done;
    }
    KI_CHECK(take_lock(&folder, err));
    KI_CHECK(ki_folder_at(&folder, &sub, err, "checkpoints"));
    KI_CHECK(make_folder(sub.s, err));
    KI_CHECK(clear_half_written(&folder, err));
    *ret_folder = folder;
    folder = (ki_folder){.lock = -1};
done:
    ki_folder_release(&folder);
    return status;
}

kith_status ki_folder_watch(const char *path, ki_folder *ret_folder, kith_error *err) {
    char *copy = ki_strdup(path);
    if (!copy) return ki_fail_memory(err, strlen(path) + 1, "a path");
    *ret_folder = (ki_folder){.path = copy, .lock = -1};
    return KITH_OK;
}

void ki_folder_undo(const ki_folder *folder) {
    ki_path path;
    if (!folder->is_new || !folder->path) return;
    if (ki_folder_at(folder, &path, NULL, "checkpoints") == KITH_OK && rmdir(path.s) == 0 &&
        ki_folder_at(folder, &path, NULL, "lock") == KITH_OK) {
        unlink(path.s);
        rmdir(folder->path);
    }
}

void ki_folder_release(ki_folder *folder) {
    if (folder->lock >= 0) close(folder->lock);
    ki_free(folder->path);
    *folder = (ki_folder){.lock = -1};
}

/* ---- checkpoints ---- */

/* "step-00000500.safetensors" is 500; -1 for any other name. */
static int64_t step_of(const char *name) {
    long long step = -1;
    int end = 0;
    if (sscanf(name, "step-%lld.safetensors%n", &step, &end) != 1 || end == 0 || name[end]) return -1;
    return step;
}

kith_status ki_folder_checkpoint_before(const ki_folder *folder, int64_t before, int64_t *ret_step,
                                        kith_error *err) {
    ki_path path;
    KI_TRY(ki_folder_at(folder, &path, err, "checkpoints"));
    DIR *dir = opendir(path.s);
    if (!dir) return ki_fail(err, KITH_EIO, "cannot read %s: %s", path.s, strerror(errno));
    int64_t last = -1;
    int why = 0;
    for (const char *name; (name = ki_dir_next(dir, &why));) {
        const int64_t step = step_of(name);
        if (step > last && step < before) last = step;
    }
    closedir(dir);
    if (why) return ki_fail(err, KITH_EIO, "cannot read %s: %s", path.s, strerror(why));
    *ret_step = last;
    return KITH_OK;
}

void ki_folder_drop_checkpoints(const ki_folder *folder, int64_t keep) {
    int64_t step = INT64_MAX;
    for (int64_t i = 0;; i++) {
        ki_path file;
        if (ki_folder_checkpoint_before(folder, step, &step, NULL) != KITH_OK || step < 0) return;
        if (i >= keep && ki_folder_at(folder, &file, NULL, KI_CHECKPOINT_NAME, (long long)step) == KITH_OK)
            unlink(file.s);
    }
}
