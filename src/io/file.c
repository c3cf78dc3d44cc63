/* Reading files whole. */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "io/tar_file.h"
#include "kith/eval.h"

/* Linux moves at most about 2 GiB per call. */
enum { CHUNK_BYTES = 1 << 30, FIRST_BYTES = 1 << 16 };

/* What it is, if it is not what the caller wants; else NULL. */
static const char *unwanted(mode_t mode, ki_file_wanted wanted) {
    if (S_ISREG(mode)) return NULL;
    if (S_ISDIR(mode)) return "a folder";
    if (S_ISFIFO(mode) || S_ISSOCK(mode)) return wanted == KI_FILE_OR_PIPE ? NULL : "a pipe";
    return "a device";
}

kith_status ki_file_open(const char *path, ki_file_wanted wanted, int *ret_fd, long long *ret_bytes,
                         kith_error *err) {
    /* Opening a pipe would wait for a writer; the flag has no effect on files. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | (wanted == KI_FILE_ONLY ? O_NONBLOCK : 0));
    if (fd < 0) return ki_fail(err, KITH_EIO, "cannot open %s: %s", path, strerror(errno));
    struct stat info;
    if (fstat(fd, &info) != 0) {
        const int why = errno;
        close(fd);
        return ki_fail(err, KITH_EIO, "cannot examine %s: %s", path, strerror(why));
    }
    const char *what = unwanted(info.st_mode, wanted);
    if (what) {
        close(fd);
        return ki_fail(err, KITH_EIO, "cannot read %s: it is %s, wanted a file", path, what);
    }
    *ret_fd = fd;
    *ret_bytes = S_ISREG(info.st_mode) ? (long long)info.st_size : -1;
    return KITH_OK;
}

kith_status ki_file_read_at(int fd, const char *path, void *dst, size_t n, long long offset,
                            kith_error *err) {
    for (size_t done = 0; done < n;) {
        const size_t wanted = n - done < CHUNK_BYTES ? n - done : CHUNK_BYTES;
        const ssize_t got = pread(fd, (char *)dst + done, wanted, (off_t)(offset + (long long)done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return ki_fail(err, KITH_EIO, "cannot read %s: %s", path, strerror(errno));
        if (got == 0)
            return ki_fail(err, KITH_EIO, "cannot read %s: it became shorter while it was read", path);
        done += (size_t)got;
    }
    return KITH_OK;
}

kith_status ki_file_read_some(int fd, const char *path, void *dst, size_t n, size_t *ret_n, kith_error *err) {
    ssize_t got = 0;
    do got = read(fd, dst, n < CHUNK_BYTES ? n : CHUNK_BYTES);
    while (got < 0 && errno == EINTR);
    if (got < 0) return ki_fail(err, KITH_EIO, "cannot read %s: %s", path, strerror(errno));
    *ret_n = (size_t)got;
    return KITH_OK;
}

static kith_status fail_limit(kith_error *err, const char *path, size_t limit) {
    return ki_fail(err, KITH_EFORMAT, "%s has more than %zu bytes, the most that is read", path, limit);
}

kith_status ki_file_read_rest(int fd, long long file_bytes, const char *path, size_t limit, char **ret_bytes,
                              size_t *ret_n, kith_error *err) {
    kith_status status = KITH_OK;
    char *bytes = NULL;
    size_t capacity = 0, n = 0;
    if (file_bytes >= 0 && (unsigned long long)file_bytes > limit) {
        status = fail_limit(err, path, limit);
        goto done;
    }
    /* As much as the file has, not twice that: with room for the NUL, and for a byte that shows that the file
     * has grown. */
    capacity = file_bytes >= 0 ? (size_t)file_bytes + 2 : FIRST_BYTES;
    KI_CHECK(ki_alloc_or(&bytes, capacity, 1, path, err));
    for (;;) {
        size_t got = 0;
        KI_CHECK(ki_file_read_some(fd, path, bytes + n, capacity - n - 1, &got, err));
        if (got == 0) break;
        n += got;
        if (n > limit) {
            status = fail_limit(err, path, limit);
            goto done;
        }
        KI_CHECK(ki_grow(&bytes, &capacity, n + 2, 1, path, err));
    }
    bytes[n] = '\0';
    *ret_bytes = bytes;
    *ret_n = n;
    bytes = NULL;
done:
    ki_free(bytes);
    return status;
}

kith_status ki_file_read(const char *path, size_t limit, char **ret_bytes, size_t *ret_n, kith_error *err) {
    int fd = -1;
    long long file_bytes = 0;
    KI_TRY(ki_file_open(path, KI_FILE_OR_PIPE, &fd, &file_bytes, err));
    const kith_status status = ki_file_read_rest(fd, file_bytes, path, limit, ret_bytes, ret_n, err);
    close(fd);
    return status;
}

const char *ki_dir_next(DIR *dir, int *ret_why) {
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        *ret_why = entry ? 0 : errno;
        if (!entry) return NULL;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) return entry->d_name;
    }
}

kith_status kith_file_hash(const char *path, char ret_hex[65], kith_error *err) {
    KI_NEED(err, path, ret_hex);
    enum { PIECE_BYTES = 1 << 20 };
    kith_status status = KITH_OK;
    ki_member part;
    void *piece = NULL;
    kith_hash hash = {0};
    int64_t at = 0;
    KI_TRY(ki_member_open(path, &part, err));
    KI_CHECK(ki_alloc_or(&piece, PIECE_BYTES, 1, "a piece of a file", err));
    for (size_t n = 1; n > 0; at += (int64_t)n) {
        KI_CHECK(ki_member_read(&part, path, piece, PIECE_BYTES, at, &n, err));
        kith_hash_add(&hash, piece, n);
    }
    kith_hash_finish(&hash, ret_hex);
done:
    ki_free(piece);
    ki_member_close(&part);
    return status;
}
