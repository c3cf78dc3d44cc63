/* Files written aside, synced and renamed into place. */
#include "base/atomic.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"

enum { CHUNK_BYTES = 1 << 30, MOST_TRIES = 1000, SUFFIX_BYTES = 40 };

static kith_status fail_write(kith_error *err, const char *path, int why) {
    return ki_fail(err, KITH_EIO, "cannot write %s: %s", path, strerror(why));
}

/* O_EXCL and a plain mode instead of mkstemp: the umask then decides who may read the file. */
static kith_status open_temporary(ki_atomic_file *file, kith_error *err) {
    const size_t bytes = strlen(file->target) + SUFFIX_BYTES;
    KI_TRY(ki_alloc_or(&file->temporary, bytes, 1, "a file name", err));
    for (int i = 0; i < MOST_TRIES; i++) {
        ki_snprintf(file->temporary, bytes, "%s.tmp-%ld-%d", file->target, (long)getpid(), i);
        file->fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->fd >= 0) {
            file->is_open = true;
            return KITH_OK;
        }
        if (errno != EEXIST) break;
    }
    const int why = errno;
    ki_free(file->temporary);
    file->temporary = NULL;
    return fail_write(err, file->path, why);
}

kith_status ki_atomic_open(ki_atomic_file *file, const char *path, kith_error *err) {
    *file = (ki_atomic_file){.fd = -1};
    struct stat info = {0};
    const bool exists = stat(path, &info) == 0;
    if (!exists && errno != ENOENT) return fail_write(err, path, errno);
    const bool is_file = exists && S_ISREG(info.st_mode);
    /* Use stat, not realpath, to see what is there: /dev/stdout may be a link to "pipe:[123]". */
    char resolved[PATH_MAX];
    if (is_file && !realpath(path, resolved)) return fail_write(err, path, errno);
    if (exists && S_ISDIR(info.st_mode))
        return ki_fail(err, KITH_EIO, "cannot write %s: it is a folder, wanted a file name", path);
    file->path = ki_strdup(path);
    file->target = ki_strdup(is_file ? resolved : path);
    if (!file->path || !file->target) return ki_fail_memory(err, strlen(path), "a file name");
    if (exists && !is_file) {
        file->fd = open(path, O_WRONLY | O_CLOEXEC);
        if (file->fd < 0) return fail_write(err, path, errno);
        file->is_open = true;
        return KITH_OK;
    }
    KI_TRY(open_temporary(file, err));
    /* If the old permissions cannot be copied, keep the new contents all the same. */
    if (is_file && fchmod(file->fd, info.st_mode & 07777) != 0) errno = 0;
    return KITH_OK;
}

kith_status ki_atomic_write(ki_atomic_file *file, const void *bytes, size_t n, kith_error *err) {
    for (size_t done = 0; done < n;) {
        const size_t left = n - done;
        const ssize_t got =
            write(file->fd, (const char *)bytes + done, left < CHUNK_BYTES ? left : CHUNK_BYTES);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_write(err, file->path, errno);
        done += (size_t)got;
    }
    return KITH_OK;
}

/* A rename is on the disk only after its folder has been synced. Some file systems cannot sync a folder
 * (EINVAL). */
static int sync_parent(const char *path) {
    char folder[PATH_MAX] = ".";
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--; /* a folder may be named with its slash */
    while (n > 0 && path[n - 1] != '/') n--;
    while (n > 1 && path[n - 1] == '/') n--;
    if (n >= sizeof folder) return ENAMETOOLONG;
    if (n > 0) ki_snprintf(folder, sizeof folder, "%.*s", (int)n, path);
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno;
    const int why = fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
    close(fd);
    return why;
}

kith_status ki_parent_sync(const char *path, kith_error *err) {
    const int why = sync_parent(path);
    return why ? fail_write(err, path, why) : KITH_OK;
}

kith_status ki_atomic_commit(ki_atomic_file *file, kith_error *err) {
    if (fsync(file->fd) != 0 && file->temporary) return fail_write(err, file->path, errno);
    file->is_open = false;
    if (close(file->fd) != 0) return fail_write(err, file->path, errno);
    if (!file->temporary) return KITH_OK;
    if (rename(file->temporary, file->target) != 0) return fail_write(err, file->path, errno);
    ki_free(file->temporary);
    file->temporary = NULL;
    const int why = sync_parent(file->target);
    return why ? fail_write(err, file->path, why) : KITH_OK;
}

void ki_atomic_discard(ki_atomic_file *file) {
    if (file->is_open) close(file->fd);
    if (file->temporary) unlink(file->temporary);
    ki_free(file->temporary);
    ki_free(file->target);
    ki_free(file->path);
    *file = (ki_atomic_file){.fd = -1};
}

kith_status ki_file_write(const char *path, const void *bytes, size_t n, kith_error *err) {
    kith_status status = KITH_OK;
    ki_atomic_file file = {0};
    KI_CHECK(ki_atomic_open(&file, path, err));
    KI_CHECK(ki_atomic_write(&file, bytes, n, err));
    KI_CHECK(ki_atomic_commit(&file, err));
done:
    ki_atomic_discard(&file);
    return status;
}

void ki_atomic_clear(const char *folder, const char *beginning, int64_t idle_s) {
    DIR *dir = opendir(folder);
    if (!dir) return;
    const time_t now = time(NULL);
    struct stat info;
    for (const struct dirent *e; (e = readdir(dir));) {
        if (strncmp(e->d_name, beginning, strlen(beginning)) != 0 || !strstr(e->d_name, ".tmp-")) continue;
        if (idle_s > 0 &&
            (fstatat(dirfd(dir), e->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 || now - info.st_mtime < idle_s))
            continue;
        unlinkat(dirfd(dir), e->d_name, 0);
    }
    closedir(dir);
}
