/* A mapped file that only the kernel reads (gather.h). */
#include "io/gather.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cores.h"

enum { AT_ONCE = 256 }; /* pieces of one call; the system takes 1024 */
enum { LINE_APART = 2048 };

void ki_gather_init(ki_gather *gather, int fd, size_t file_bytes) {
    *gather = (ki_gather){0};
    if (file_bytes == 0 || file_bytes > (size_t)ki_memory_allowed() / 2) return;
    void *map = mmap(NULL, file_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) *gather = (ki_gather){.map = map, .bytes = file_bytes, .fd = fd};
}

void ki_gather_release(ki_gather *gather) {
    if (gather->map) (void)munmap(gather->map, gather->bytes);
    *gather = (ki_gather){0};
}

/* Where a piece lies. Its first lines are asked for: pieces lie far apart, and memory is faster when several are on their way. A
 * prefetch of a page that is not there does nothing. */
static struct iovec piece(const ki_gather *gather, size_t begin, size_t bytes) {
    char *at = (char *)gather->map + begin;
    for (size_t i = 0; i < bytes; i += LINE_APART) __builtin_prefetch(at + i);
    return (struct iovec){.iov_base = at, .iov_len = bytes};
}

bool ki_gather_copy(const ki_gather *gather, const size_t *begin, size_t n, size_t bytes, void *dst) {
    struct iovec from[AT_ONCE];
    if (!gather->map || bytes == 0 || bytes > gather->bytes) return false;
    for (size_t i = 0; i < n; i += AT_ONCE) {
        const size_t n_now = n - i < AT_ONCE ? n - i : AT_ONCE;
        struct iovec to = {.iov_base = (char *)dst + i * bytes, .iov_len = n_now * bytes};
        for (size_t k = 0; k < n_now; k++) {
            if (begin[i + k] > gather->bytes - bytes) return false;
            from[k] = piece(gather, begin[i + k], bytes);
        }
        if (process_vm_writev(getpid(), from, n_now, &to, 1, 0) != (ssize_t)to.iov_len) return false;
    }
    struct stat now;
    return fstat(gather->fd, &now) == 0 && now.st_size >= (off_t)gather->bytes;
}
