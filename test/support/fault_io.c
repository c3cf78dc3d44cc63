/* A library to preload (LD_PRELOAD) that makes one file call of a program fail, or be short (docs/adr/0006).
 *
 *   FAULT_ROOT  only calls on files under this folder count; the program runs inside it, so that relative paths do
 *   FAULT_KIND  eio     the n-th call fails with EIO
 *               emfile  the n-th call that opens something fails with EMFILE
 *               enospc  from the n-th call on, all that write or make something fail with ENOSPC
 *               eintr   the n-th read or write fails with EINTR
 *               short   the n-th read or write moves half of its bytes
 *               kill    the process is killed before the n-th call that writes, makes or removes something; a write has
 *                       moved half of its bytes by then
 *   FAULT_AT    n, from 1; without it nothing fails
 *   FAULT_LOG   a file that gets a line "failed CALL PATH", and at exit a line "calls KIND N" per kind: how many calls
 *               there were that it can fail
 *
 * A close or fclose that fails still closes the file, as on Linux. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
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
/* What a call does; a kind of fault fails some of these. */
enum { OPENS = 1, MAKES = 2, WRITES = 4, MOVES_BYTES = 8, OTHER = 16, REMOVES = 32 };

static const struct {
    const char *name;
    int mask, why;
    bool is_short, is_lasting, is_deadly;
} kinds[] = {
    {"eio", OPENS | MAKES | WRITES | REMOVES | MOVES_BYTES | OTHER, EIO, false, false, false},
    {"emfile", OPENS, EMFILE, false, false, false},
    {"enospc", MAKES | WRITES, ENOSPC, false, true, false},
    {"eintr", MOVES_BYTES, EINTR, false, false, false},
    {"short", MOVES_BYTES, 0, true, false, false},
    {"kill", MAKES | WRITES | REMOVES, 0, true, false, true},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static atomic_bool is_ours[MOST_FDS];
static atomic_long n_calls[N_KINDS];
static char root[PATH_MAX];
static size_t root_length;
static bool is_inside; /* the current folder is under root */
static int log_fd = -1, active = -1;
static long fail_at;

__attribute__((constructor)) static void begin(void) {
    const char *kind = getenv("FAULT_KIND"), *at = getenv("FAULT_AT"), *log = getenv("FAULT_LOG");
    const char *under = getenv("FAULT_ROOT");
    if (!under) return;
    char here[PATH_MAX];
    snprintf(root, sizeof root, "%s", under);
    root_length = strlen(root);
    is_inside = getcwd(here, sizeof here) && strncmp(here, root, root_length) == 0;
    fail_at = at ? strtol(at, NULL, 10) : 0;
    for (int i = 0; kind && i < N_KINDS; i++) {
        if (strcmp(kinds[i].name, kind) == 0) active = i;
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

__attribute__((destructor)) static void end(void) {
    for (int i = 0; i < N_KINDS; i++) say("calls %s %ld\n", kinds[i].name, atomic_load(&n_calls[i]));
}

static bool is_under(const char *path) {
    if (!root_length || !path) return false;
    if (path[0] != '/') return is_inside;
    return strncmp(path, root, root_length) == 0 && (path[root_length] == '/' || path[root_length] == '\0');
}

static bool is_tracked(int fd) { return fd >= 0 && fd < MOST_FDS && atomic_load(&is_ours[fd]); }

static void track(int fd, bool yes) {
    if (fd >= 0 && fd < MOST_FDS) atomic_store(&is_ours[fd], yes);
}

typedef enum verdict { FINE, FAILS, IS_SHORT } verdict;

/* Count a call on our files, and say whether it is the one that fails. */
static verdict judge(int what, const char *call, const char *path) {
    verdict found = FINE;
    for (int i = 0; i < N_KINDS; i++) {
        if (!(what & kinds[i].mask)) continue;
        const long n = atomic_fetch_add(&n_calls[i], 1) + 1;
        if (i != active || fail_at <= 0 || n < fail_at || (n > fail_at && !kinds[i].is_lasting)) continue;
        if (n == fail_at) say("failed %s %s\n", call, path ? path : "");
        if (kinds[i].is_deadly && !(what & MOVES_BYTES)) kill(getpid(), SIGKILL);
        found = kinds[i].is_short ? IS_SHORT : FAILS;
        if (found == FAILS) errno = kinds[i].why;
    }
    return found;
}

static bool fails_path(int what, const char *call, const char *path) {
    return is_under(path) && judge(what, call, path) == FAILS;
}

static bool fails_fd(int what, const char *call, int fd) {
    return is_tracked(fd) && judge(what, call, NULL) == FAILS;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* ---- opening ---- */

static int open_kind(int flags) { return OPENS | (flags & O_CREAT ? MAKES : 0); }

#define DEFINE_OPEN(name)                                                           \
    int name(const char *path, int flags, ...) {                                    \
        va_list ap;                                                                 \
        va_start(ap, flags);                                                        \
        const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0; \
        va_end(ap);                                                                 \
        if (fails_path(open_kind(flags), "open", path)) return -1;                  \
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

#define DEFINE_FOPEN(name)                                                                \
    FILE *name(const char *path, const char *mode) {                                      \
        if (fails_path(OPENS | (mode[0] == 'r' ? 0 : MAKES), "fopen", path)) return NULL; \
        FILE *file = NEXT(name)(path, mode);                                              \
        if (file) track(fileno(file), is_under(path));                                    \
        return file;                                                                      \
    }
DEFINE_FOPEN(fopen)
DEFINE_FOPEN(fopen64)

DIR *opendir(const char *path) {
    if (fails_path(OPENS, "opendir", path)) return NULL;
    DIR *dir = NEXT(opendir)(path);
    if (dir) track(dirfd(dir), is_under(path));
    return dir;
}

/* ---- reading and writing ---- */

/* How many of *n bytes to move; false: none, the call fails. */
static bool may_move(int what, const char *call, int fd, size_t *n) {
    const verdict v = is_tracked(fd) ? judge(what, call, NULL) : FINE;
    if (v == IS_SHORT && *n > 1) *n /= 2;
    return v != FAILS;
}

ssize_t read(int fd, void *buf, size_t n) {
    return may_move(MOVES_BYTES, "read", fd, &n) ? NEXT(read)(fd, buf, n) : -1;
}

ssize_t __read_chk(int fd, void *buf, size_t n, size_t room);
ssize_t __read_chk(int fd, void *buf, size_t n, size_t room) { return n <= room ? read(fd, buf, n) : -1; }

#define DEFINE_PREAD(name)                                                               \
    ssize_t name(int fd, void *buf, size_t n, off_t at) {                                \
        return may_move(MOVES_BYTES, "pread", fd, &n) ? NEXT(name)(fd, buf, n, at) : -1; \
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
    const size_t all = n;
    if (!may_move(MOVES_BYTES | WRITES, "write", fd, &n)) return -1;
    const ssize_t moved = NEXT(write)(fd, buf, n);
    if (n < all && kinds[active].is_deadly) kill(getpid(), SIGKILL);
    return moved;
}

/* The C library itself repairs short and interrupted calls of a stream. */
size_t fread(void *buf, size_t size, size_t n, FILE *file) {
    if (!fails_fd(OTHER, "fread", fileno(file))) return NEXT(fread)(buf, size, n, file);
    file->_flags |= 0x20; /* what ferror asks for */
    return 0;
}

size_t fwrite(const void *buf, size_t size, size_t n, FILE *file) {
    return fails_fd(WRITES, "fwrite", fileno(file)) ? 0 : NEXT(fwrite)(buf, size, n, file);
}

char *fgets(char *buf, int n, FILE *file) {
    return fails_fd(OTHER, "fgets", fileno(file)) ? NULL : NEXT(fgets)(buf, n, file);
}

#define DEFINE_READDIR(name, type) \
    type *name(DIR *dir) { return fails_fd(OTHER, "readdir", dirfd(dir)) ? NULL : NEXT(name)(dir); }
DEFINE_READDIR(readdir, struct dirent)
DEFINE_READDIR(readdir64, struct dirent64)

/* ---- ending ---- */

int fsync(int fd) {
    if (fails_fd(WRITES, "fsync", fd)) return -1;
    return NEXT(fsync)(fd);
}

int close(int fd) {
    const bool fails = fails_fd(OTHER, "close", fd);
    const int why = errno;
    track(fd, false);
    const int result = NEXT(close)(fd);
    if (fails) errno = why;
    return fails ? -1 : result;
}

int fclose(FILE *file) {
    const bool fails = fails_fd(OTHER, "fclose", fileno(file));
    const int why = errno;
    track(fileno(file), false);
    const int result = NEXT(fclose)(file);
    if (fails) errno = why;
    return fails ? EOF : result;
}

int closedir(DIR *dir) {
    track(dirfd(dir), false);
    return NEXT(closedir)(dir);
}

/* ---- names ---- */

int rename(const char *from, const char *to) {
    if (fails_path(MAKES, "rename", to)) return -1;
    return NEXT(rename)(from, to);
}

int symlink(const char *to, const char *path) {
    if (fails_path(MAKES, "symlink", path)) return -1;
    return NEXT(symlink)(to, path);
}

int mkdir(const char *path, mode_t mode) {
    if (fails_path(MAKES, "mkdir", path)) return -1;
    return NEXT(mkdir)(path, mode);
}

int unlink(const char *path) {
    if (fails_path(REMOVES, "unlink", path)) return -1;
    return NEXT(unlink)(path);
}

int unlinkat(int fd, const char *path, int flags) {
    if (fails_fd(REMOVES, "unlink", fd)) return -1;
    return NEXT(unlinkat)(fd, path, flags);
}

int rmdir(const char *path) {
    if (fails_path(REMOVES, "unlink", path)) return -1;
    return NEXT(rmdir)(path);
}

int remove(const char *path) {
    if (fails_path(REMOVES, "unlink", path)) return -1;
    return NEXT(remove)(path);
}

/* ---- asking ---- */

#define DEFINE_STAT(name, type)                         \
    int name(const char *path, type *info) {            \
        if (fails_path(OTHER, "stat", path)) return -1; \
        return NEXT(name)(path, info);                  \
    }
DEFINE_STAT(stat, struct stat)
DEFINE_STAT(stat64, struct stat64)
DEFINE_STAT(lstat, struct stat)
DEFINE_STAT(lstat64, struct stat64)

#define DEFINE_FSTAT(name, type)                     \
    int name(int fd, type *info) {                   \
        if (fails_fd(OTHER, "fstat", fd)) return -1; \
        return NEXT(name)(fd, info);                 \
    }
DEFINE_FSTAT(fstat, struct stat)
DEFINE_FSTAT(fstat64, struct stat64)

int access(const char *path, int mode) {
    if (fails_path(OTHER, "access", path)) return -1;
    return NEXT(access)(path, mode);
}

#define DEFINE_FTRUNCATE(name)                           \
    int name(int fd, off_t n) {                          \
        if (fails_fd(OTHER, "ftruncate", fd)) return -1; \
        return NEXT(name)(fd, n);                        \
    }
DEFINE_FTRUNCATE(ftruncate)
DEFINE_FTRUNCATE(ftruncate64)

int flock(int fd, int how) {
    if (fails_fd(OTHER, "flock", fd)) return -1;
    return NEXT(flock)(fd, how);
}
