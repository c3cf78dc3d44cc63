/* Files on their way into the cache. */
#include "hub/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/log.h"
#include "base/text.h"
#include "hub/cache.h"
#include "hub/git_hash.h"
#include "io/file.h"
#include "kith/eval.h"

enum { CHUNK = 1 << 20 };

static kith_status fail_write(kith_error *err, const char *path, int why) {
    return ki_fail(err, KITH_EIO, "cannot write %s: %s", path, strerror(why));
}

/* ---- the lock, as Python's filelock takes it ---- */

/* A lock's file may be removed by whoever had it; then the lock is on nothing. */
static bool is_at(int fd, const char *path) {
    struct stat mine, there;
    return fstat(fd, &mine) == 0 && stat(path, &there) == 0 && mine.st_dev == there.st_dev &&
           mine.st_ino == there.st_ino;
}

static kith_status try_lock(ki_hub_blob *b, const char *path, kith_error *err) {
    b->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0664);
    if (b->lock < 0) return fail_write(err, path, errno);
    if (flock(b->lock, LOCK_EX | LOCK_NB) == 0 && is_at(b->lock, path)) {
        b->is_locked = true;
        return KITH_OK;
    }
    const int why = errno;
    close(b->lock);
    /* Without locks, two pulls at once cost bandwidth, and the hash still decides. */
    if (why == ENOSYS || why == ENOTSUP || why == ENOLCK) return KITH_OK;
    if (why != EWOULDBLOCK && why != EINTR && why != 0)
        return ki_fail(err, KITH_EIO, "cannot lock %s: %s", path, strerror(why));
    return KITH_ECANCELED; /* somebody has it */
}

static kith_status take_lock(ki_hub_blob *b, const char *path, ki_hub_wait_fn *wait, void *user,
                             kith_error *err) {
    for (int i = 0;; i++) {
        errno = 0;
        const kith_status status = try_lock(b, path, err);
        if (status != KITH_ECANCELED) return status;
        if (i == 5) ki_log(KITH_LOG_INFO, "%s is being fetched by another process; waiting for it", b->file);
        KI_TRY(wait(user, err));
        const struct timespec nap = {.tv_nsec = 100 * 1000 * 1000};
        nanosleep(&nap, NULL);
    }
}

/* ---- the part ---- */

static kith_status make_paths(ki_hub_blob *b, const char *cache, const char *repo, ki_path *ret_lock,
                              kith_error *err) {
    ki_path folder, made;
    const ki_hub_facts *f = b->facts;
    KI_TRY(ki_hub_repo_folder(cache, repo, &folder, err));
    KI_TRY(ki_path_print(&made, err, "%s/blobs", folder.s));
    KI_TRY(ki_hub_make_folders(&made, err));
    KI_TRY(ki_path_print(&b->blob, err, "%s/blobs/%s", folder.s, f->etag));
    KI_TRY(ki_path_print(&b->part, err, "%s/blobs/%s.incomplete", folder.s, f->etag));
    KI_TRY(ki_path_print(&b->pointer, err, "%s/snapshots/%s/%s", folder.s, f->commit, b->file));
    KI_TRY(ki_path_print(&made, err, "%s/.locks/%s", cache, strrchr(folder.s, '/') + 1));
    KI_TRY(ki_hub_make_folders(&made, err));
    return ki_path_print(ret_lock, err, "%s/%s.lock", made.s, f->etag);
}

static bool has_size(const char *path, int64_t bytes) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == bytes;
}

/* Before minutes are spent: does it fit? */
static kith_status check_room(const ki_hub_blob *b, kith_error *err) {
    struct statvfs disk;
    if (statvfs(b->part.s, &disk) != 0 || disk.f_frsize == 0) return KITH_OK;
    const double left = (double)disk.f_bavail * (double)disk.f_frsize;
    const double wanted = (double)(b->facts->bytes - b->n_bytes);
    if (left >= wanted) return KITH_OK;
    ki_fail(err, KITH_EIO, "%s has %.1f MB to go, and the disk of %s has %.1f MB left", b->file, wanted / 1e6,
            b->blob.s, left / 1e6);
    return ki_hint(err, KITH_EIO, "free some space, or set HF_HUB_CACHE to a folder on another disk");
}

static kith_status open_part(ki_hub_blob *b, kith_error *err) {
    struct stat info;
    b->fd = open(b->part.s, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (b->fd < 0) return fail_write(err, b->part.s, errno);
    b->is_open = true;
    if (fstat(b->fd, &info) != 0 || lseek(b->fd, 0, SEEK_END) < 0) return fail_write(err, b->part.s, errno);
    b->n_bytes = info.st_size;
    if (b->n_bytes > b->facts->bytes || b->facts->check == KI_HUB_NO_HASH)
        KI_TRY(ki_hub_blob_restart(b, err));
    return KITH_OK;
}

kith_status ki_hub_blob_open(ki_hub_blob *b, const char *cache, const char *repo, const char *file,
                             const ki_hub_facts *facts, ki_hub_wait_fn *wait, void *user, bool *ret_is_there,
                             kith_error *err) {
    ki_path lock;
    b->facts = facts;
    b->file = file;
    KI_TRY(make_paths(b, cache, repo, &lock, err));
    KI_TRY(take_lock(b, lock.s, wait, user, err));
    *ret_is_there = has_size(b->pointer.s, facts->bytes) || has_size(b->blob.s, facts->bytes);
    if (*ret_is_there) return KITH_OK;
    KI_TRY(open_part(b, err));
    const kith_status status = check_room(b, err);
    if (status != KITH_OK && b->n_bytes == 0) unlink(b->part.s);
    return status;
}

kith_status ki_hub_blob_restart(ki_hub_blob *b, kith_error *err) {
    if (ftruncate(b->fd, 0) != 0 || lseek(b->fd, 0, SEEK_SET) != 0) return fail_write(err, b->part.s, errno);
    b->n_bytes = 0;
    return KITH_OK;
}

kith_status ki_hub_blob_add(ki_hub_blob *b, const void *bytes, size_t n, kith_error *err) {
    const char *from = bytes;
    if (n > (uint64_t)(b->facts->bytes - b->n_bytes))
        return ki_fail(err, KITH_EFORMAT, "the server sends more than the %lld bytes that it promised of %s",
                       (long long)b->facts->bytes, b->file);
    while (n > 0) {
        const ssize_t got = write(b->fd, from, n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            const int why = errno;
            /* What fills the disk helps nobody. */
            if (why == ENOSPC || why == EDQUOT || why == EFBIG) unlink(b->part.s);
            fail_write(err, b->blob.s, why);
            return ki_hint(err, KITH_EIO, "free some space, or set HF_HUB_CACHE to a folder on another disk");
        }
        from += got, n -= (size_t)got, b->n_bytes += got;
    }
    return KITH_OK;
}

/* ---- checking it ---- */

/* Of what is on the disk, not of what was sent: on some network file systems a lock keeps nobody out. */
static kith_status hash_part(const ki_hub_blob *b, char ret_hex[65], kith_error *err) {
    kith_hash sha256 = {0};
    ki_git_hash git;
    char *chunk = NULL;
    kith_status status;
    KI_TRY(ki_alloc_or(&chunk, CHUNK, 1, "a file's bytes", err));
    ki_git_hash_begin(&git, b->facts->bytes);
    for (int64_t at = 0; at < b->facts->bytes; at += CHUNK) {
        const int64_t left = b->facts->bytes - at;
        const size_t n = left < CHUNK ? (size_t)left : CHUNK;
        KI_CHECK(ki_file_read_at(b->fd, b->part.s, chunk, n, at, err));
        if (b->facts->check == KI_HUB_GIT)
            ki_git_hash_add(&git, chunk, n);
        else
            kith_hash_add(&sha256, chunk, n);
    }
    if (b->facts->check == KI_HUB_GIT)
        ki_git_hash_finish(&git, ret_hex);
    else
        kith_hash_finish(&sha256, ret_hex);
    status = KITH_OK;
done:
    ki_free(chunk);
    return status;
}

static kith_status check_hash(const ki_hub_blob *b, kith_error *err) {
    char hex[65];
    if (b->facts->check == KI_HUB_NO_HASH) return KITH_OK;
    KI_TRY(hash_part(b, hex, err));
    if (strcmp(hex, b->facts->etag) == 0) return KITH_OK;
    unlink(b->part.s);
    ki_fail(err, KITH_EFORMAT, "%s is damaged: its %s is %.16s…, wanted %.16s…", b->file,
            b->facts->check == KI_HUB_GIT ? "git hash" : "SHA-256", hex, b->facts->etag);
    return ki_hint(err, KITH_EFORMAT, "nothing was kept; try again, and check the proxy if it stays so");
}

kith_status ki_hub_blob_finish(ki_hub_blob *b, kith_error *err) {
    KI_TRY(check_hash(b, err));
    if (fsync(b->fd) != 0) return fail_write(err, b->part.s, errno);
    b->is_open = false;
    if (close(b->fd) != 0) return fail_write(err, b->part.s, errno);
    if (rename(b->part.s, b->blob.s) != 0) return fail_write(err, b->blob.s, errno);
    return ki_parent_sync(b->blob.s, err);
}

/* ---- the link ---- */

/* Where links cannot be made, the contents move into the snapshot, as huggingface_hub does it. */
kith_status ki_hub_blob_link(ki_hub_blob *b, kith_error *err) {
    ki_path folder = b->pointer, to;
    if (has_size(b->pointer.s, b->facts->bytes)) return KITH_OK;
    *strrchr(folder.s, '/') = '\0';
    KI_TRY(ki_hub_make_folders(&folder, err));
    KI_TRY(ki_path_print(&to, err, "../../blobs/%s", b->facts->etag));
    unlink(b->pointer.s); /* a link to what is not there */
    const bool is_linked = !ki_hub_is_set("HF_HUB_DISABLE_SYMLINKS") && symlink(to.s, b->pointer.s) == 0;
    if (!is_linked && rename(b->blob.s, b->pointer.s) != 0) return fail_write(err, b->pointer.s, errno);
    return ki_parent_sync(b->pointer.s, err);
}

void ki_hub_blob_release(ki_hub_blob *b) {
    if (b->is_open) close(b->fd);
    if (b->is_locked) close(b->lock); /* which lets the next one in */
    b->is_open = b->is_locked = false;
}
