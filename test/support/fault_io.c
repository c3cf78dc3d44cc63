/* A library to preload (LD_PRELOAD) that makes one file call of a program fail, or be short (docs/adr/0006).
 *
 *   FAULT_ROOT  only calls on files under this folder count; the program runs inside it, so that relative paths do
 *   FAULT_KIND  eio     the n-th call fails with EIO
 *               emfile  the n-th call that opens something fails with EMFILE
 *               enospc  from the n-th call on, all that write or make something fail with ENOSPC
 *               eintr   the n-th read or write fails with EINTR
 *               short   the n-th read or write moves half of its bytes
 *   FAULT_AT    n, from 1; without it nothing fails
 *   FAULT_LOG   a file that gets a line "failed CALL PATH", and at exit "calls N": how many calls there were of those
 *               that this kind can fail
 *
 * Failing close and fclose close nevertheless, as Linux does. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_FDS = 4096 };
/* What a call does, of which a kind fails some. */
enum { OPENS = 1, MAKES = 2, READS = 4, WRITES = 8, OTHER = 16 };

static atomic_bool is_ours[MOST_FDS];
static atomic_long n_calls;
static char root[PATH_MAX];
static size_t root_length;
static bool is_inside; /* the current folder is under root */
static int log_fd = -1;
static long fail_at;
static int kind_mask, kind_errno;
static bool is_short, is_lasting;

__attribute__((constructor)) static void begin(void) {
    static const struct {
        const char *name;
        int mask, why;
        bool is_short, is_lasting;
    } kinds[] = {
        {"eio", OPENS | MAKES | READS | WRITES | OTHER, EIO, false, false},
        {"emfile", OPENS, EMFILE, false, false},
        {"enospc", MAKES | WRITES, ENOSPC, false, true},
        {"eintr", READS | WRITES, EINTR, false, false},
        {"short", READS | WRITES, 0, true, false},
    };
    const char *kind = getenv("FAULT_KIND"), *at = getenv("FAULT_AT"), *log = getenv("FAULT_LOG");
    const char *under = getenv("FAULT_ROOT");
    if (!under || !kind) return;
    char here[PATH_MAX];
    snprintf(root, sizeof root, "%s", under);
    root_length = strlen(root);
    is_inside = getcwd(here, sizeof here) && strncmp(here, root, root_length) == 0;
    fail_at = at ? strtol(at, NULL, 10) : 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, kind) != 0) continue;
        kind_mask = kinds[i].mask;
        kind_errno = kinds[i].why;
        is_short = kinds[i].is_short;
        is_lasting = kinds[i].is_lasting;
    }
    if (log)
        log_fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

static void say(const char *fmt, ...) {
    char line[PATH_MAX + 64];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (log_fd >= 0 && n > 0) syscall(SYS_write, log_fd, line, (size_t)n);
}

__attribute__((destructor)) static void end(void) { say("calls %ld\n", atomic_load(&n_calls)); }

static bool is_under(const char *path) {
    if (!root_length || !path) return false;
    if (path[0] != '/') return is_inside;
    return strncmp(path, root, root_length) == 0 && (path[root_length] == '/' || path[root_length] == '\0');
}

static bool is_tracked(int fd) { return fd >= 0 && fd < MOST_FDS && atomic_load(&is_ours[fd]); }

static void track(int fd, bool yes) {
    if (fd >= 0 && fd < MOST_FDS) atomic_store(&is_ours[fd], yes);
}

/* Is this the call that is to fail? */
static bool is_hit(int what, const char *call, const char *path) {
    if (!(what & kind_mask)) return false;
    const long n = atomic_fetch_add(&n_calls, 1) + 1;
    const bool hit = fail_at > 0 && (n == fail_at || (is_lasting && n > fail_at));
    if (hit && n == fail_at) say("failed %s %s\n", call, path ? path : "");
    return hit;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Fail a call on a path, or on a descriptor, with this value. */
#define FAIL_PATH(what, call, path, value)                         \
    if (is_under(path) && !is_short && is_hit(what, call, path)) { \
        errno = kind_errno;                                        \
        return value;                                              \
    }
#define FAIL_FD(what, call, fd, value)                             \
    if (is_tracked(fd) && !is_short && is_hit(what, call, NULL)) { \
        errno = kind_errno;                                        \
        return value;                                              \
    }

/* ---- opening ---- */

static int open_kind(int flags) { return OPENS | (flags & O_CREAT ? MAKES : 0); }

#define DEFINE_OPEN(name)                                                           \
    int name(const char *path, int flags, ...) {                                    \
        va_list ap;                                                                 \
        va_start(ap, flags);                                                        \
        const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0; \
        va_end(ap);                                                                 \
        FAIL_PATH(open_kind(flags), "open", path, -1)                               \
        const int fd = NEXT(name)(path, flags, mode);                               \
        track(fd, is_under(path));                                                  \
        return fd;                                                                  \
    }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)

int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags) { return open(path, flags); }
int __open64_2(const char *path, int flags);
int __open64_2(const char *path, int flags) { return open64(path, flags); }

#define DEFINE_FOPEN(name)                                                   \
    FILE *name(const char *path, const char *mode) {                         \
        FAIL_PATH(OPENS | (mode[0] == 'r' ? 0 : MAKES), "fopen", path, NULL) \
        FILE *file = NEXT(name)(path, mode);                                 \
        if (file) track(fileno(file), is_under(path));                       \
        return file;                                                         \
    }
DEFINE_FOPEN(fopen)
DEFINE_FOPEN(fopen64)

DIR *opendir(const char *path) {
    FAIL_PATH(OPENS, "opendir", path, NULL)
    DIR *dir = NEXT(opendir)(path);
    if (dir) track(dirfd(dir), is_under(path));
    return dir;
}

/* ---- reading and writing ---- */

/* How many of n bytes to move: half when the call is to be short. */
static size_t shorten(int what, const char *call, int fd, size_t n) {
    return is_short && n > 1 && is_tracked(fd) && is_hit(what, call, NULL) ? n / 2 : n;
}

ssize_t read(int fd, void *buf, size_t n) {
    FAIL_FD(READS, "read", fd, -1)
    return NEXT(read)(fd, buf, shorten(READS, "read", fd, n));
}

ssize_t __read_chk(int fd, void *buf, size_t n, size_t room);
ssize_t __read_chk(int fd, void *buf, size_t n, size_t room) { return n <= room ? read(fd, buf, n) : -1; }

#define DEFINE_PREAD(name)                                              \
    ssize_t name(int fd, void *buf, size_t n, off_t at) {               \
        FAIL_FD(READS, "pread", fd, -1)                                 \
        return NEXT(name)(fd, buf, shorten(READS, "pread", fd, n), at); \
    }
DEFINE_PREAD(pread)
DEFINE_PREAD(pread64)

ssize_t __pread_chk(int fd, void *buf, size_t n, off_t at, size_t room);
ssize_t __pread_chk(int fd, void *buf, size_t n, off_t at, size_t room) {
    return n <= room ? pread(fd, buf, n, at) : -1;
}
ssize_t __pread64_chk(int fd, void *buf, size_t n, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void *buf, size_t n, off_t at, size_t room) {
    return n <= room ? pread64(fd, buf, n, at) : -1;
}

ssize_t write(int fd, const void *buf, size_t n) {
    FAIL_FD(WRITES, "write", fd, -1)
    return NEXT(write)(fd, buf, shorten(WRITES, "write", fd, n));
}

/* A stream's short and interrupted calls are the C library's to mend. */
static bool is_stream_hit(int what, const char *call, FILE *file) {
    return is_tracked(fileno(file)) && !is_short && kind_errno != EINTR && is_hit(what, call, NULL);
}

size_t fread(void *buf, size_t size, size_t n, FILE *file) {
    if (is_stream_hit(READS, "fread", file)) {
        file->_flags |= 0x20; /* what ferror asks for */
        errno = kind_errno;
        return 0;
    }
    return NEXT(fread)(buf, size, n, file);
}

size_t fwrite(const void *buf, size_t size, size_t n, FILE *file) {
    if (is_stream_hit(WRITES, "fwrite", file)) {
        errno = kind_errno;
        return 0;
    }
    return NEXT(fwrite)(buf, size, n, file);
}

char *fgets(char *buf, int n, FILE *file) {
    if (is_stream_hit(READS, "fgets", file)) {
        errno = kind_errno;
        return NULL;
    }
    return NEXT(fgets)(buf, n, file);
}

#define DEFINE_READDIR(name, type)                                           \
    type *name(DIR *dir) {                                                   \
        if (kind_errno != EINTR) FAIL_FD(READS, "readdir", dirfd(dir), NULL) \
        return NEXT(name)(dir);                                              \
    }
DEFINE_READDIR(readdir, struct dirent)
DEFINE_READDIR(readdir64, struct dirent64)

/* ---- ending ---- */

int fsync(int fd) {
    if (kind_errno != EINTR) FAIL_FD(WRITES, "fsync", fd, -1)
    return NEXT(fsync)(fd);
}

int close(int fd) {
    const bool hit = is_tracked(fd) && !is_short && is_hit(OTHER, "close", NULL);
    track(fd, false);
    const int result = NEXT(close)(fd);
    if (hit) errno = kind_errno;
    return hit ? -1 : result;
}

int fclose(FILE *file) {
    const int fd = fileno(file);
    const bool hit = is_tracked(fd) && !is_short && is_hit(OTHER, "fclose", NULL);
    track(fd, false);
    const int result = NEXT(fclose)(file);
    if (hit) errno = kind_errno;
    return hit ? EOF : result;
}

int closedir(DIR *dir) {
    track(dirfd(dir), false);
    return NEXT(closedir)(dir);
}

/* ---- names ---- */

int rename(const char *from, const char *to) {
    FAIL_PATH(MAKES, "rename", to, -1)
    return NEXT(rename)(from, to);
}

int mkdir(const char *path, mode_t mode) {
    FAIL_PATH(MAKES, "mkdir", path, -1)
    return NEXT(mkdir)(path, mode);
}

int unlink(const char *path) {
    FAIL_PATH(OTHER, "unlink", path, -1)
    return NEXT(unlink)(path);
}

int unlinkat(int fd, const char *path, int flags) {
    FAIL_FD(OTHER, "unlink", fd, -1)
    return NEXT(unlinkat)(fd, path, flags);
}

int rmdir(const char *path) {
    FAIL_PATH(OTHER, "unlink", path, -1)
    return NEXT(rmdir)(path);
}

int remove(const char *path) {
    FAIL_PATH(OTHER, "unlink", path, -1)
    return NEXT(remove)(path);
}

/* ---- asking ---- */

#define DEFINE_STAT(name, type)              \
    int name(const char *path, type *info) { \
        FAIL_PATH(OTHER, "stat", path, -1)   \
        return NEXT(name)(path, info);       \
    }
DEFINE_STAT(stat, struct stat)
DEFINE_STAT(stat64, struct stat64)
DEFINE_STAT(lstat, struct stat)
DEFINE_STAT(lstat64, struct stat64)

#define DEFINE_FSTAT(name, type)        \
    int name(int fd, type *info) {      \
        FAIL_FD(OTHER, "fstat", fd, -1) \
        return NEXT(name)(fd, info);    \
    }
DEFINE_FSTAT(fstat, struct stat)
DEFINE_FSTAT(fstat64, struct stat64)

int access(const char *path, int mode) {
    FAIL_PATH(OTHER, "access", path, -1)
    return NEXT(access)(path, mode);
}

#define DEFINE_FTRUNCATE(name)              \
    int name(int fd, off_t n) {             \
        FAIL_FD(OTHER, "ftruncate", fd, -1) \
        return NEXT(name)(fd, n);           \
    }
DEFINE_FTRUNCATE(ftruncate)
DEFINE_FTRUNCATE(ftruncate64)

int flock(int fd, int how) {
    FAIL_FD(OTHER, "flock", fd, -1)
    return NEXT(flock)(fd, how);
}
