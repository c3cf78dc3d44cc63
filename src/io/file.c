#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"

/* Linux moves at most about 2 GiB per call. */
enum { CHUNK_BYTES = 1 << 30, FIRST_BYTES = 1 << 16 };

kith_status ki_file_open(const char *path, int *ret_fd, long long *ret_bytes, kith_error *err) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ki_fail(err, KITH_EIO, "cannot open %s: %s", path, strerror(errno));
    struct stat info;
    if (fstat(fd, &info) != 0) {
        const int why = errno;
        close(fd);
        return ki_fail(err, KITH_EIO, "cannot examine %s: %s", path, strerror(why));
    }
    if (S_ISDIR(info.st_mode)) {
        close(fd);
        return ki_fail(err, KITH_EIO, "cannot read %s: it is a folder, wanted a file", path);
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
    KI_CHECK(
        ki_grow(&bytes, &capacity, file_bytes >= 0 ? (size_t)file_bytes + 2 : FIRST_BYTES, 1, path, err));
    for (;;) {
        const size_t room = capacity - n - 1;
        const ssize_t got = read(fd, bytes + n, room < CHUNK_BYTES ? room : CHUNK_BYTES);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            status = ki_fail(err, KITH_EIO, "cannot read %s: %s", path, strerror(errno));
            goto done;
        }
        if (got == 0) break;
        n += (size_t)got;
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
    KI_TRY(ki_file_open(path, &fd, &file_bytes, err));
    const kith_status status = ki_file_read_rest(fd, file_bytes, path, limit, ret_bytes, ret_n, err);
    close(fd);
    return status;
}

kith_status ki_map_open(const char *path, ki_map *ret_map, kith_error *err) {
    int fd = -1;
    long long file_bytes = 0;
    KI_TRY(ki_file_open(path, &fd, &file_bytes, err));
    if (file_bytes <= 0) { /* not mappable */
        char *bytes = NULL;
        size_t n = 0;
        const kith_status status = ki_file_read_rest(fd, file_bytes, path, SIZE_MAX - 2, &bytes, &n, err);
        close(fd);
        if (status == KITH_OK) *ret_map = (ki_map){.bytes = (unsigned char *)bytes, .n = n};
        return status;
    }
    void *start = mmap(NULL, (size_t)file_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    const int why = errno;
    close(fd);
    if (start == MAP_FAILED) return ki_fail(err, KITH_EIO, "cannot map %s: %s", path, strerror(why));
    *ret_map = (ki_map){.bytes = start, .n = (size_t)file_bytes, .is_mapped = true};
    return KITH_OK;
}

void ki_map_release(ki_map *map) {
    if (map->is_mapped)
        munmap((void *)(uintptr_t)map->bytes, map->n);
    else
        ki_free((void *)(uintptr_t)map->bytes);
    *map = (ki_map){0};
}
