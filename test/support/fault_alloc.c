/* A library to preload (LD_PRELOAD) that makes one allocation of a program fail (docs/adr/0006).
 *
 *   FAULT_KIND  own     the n-th aligned_alloc fails: that is what base/alloc.h calls, and nobody else here
 *               all     from the n-th aligned_alloc on, all fail
 *               others  the n-th malloc, calloc or realloc fails of those that the parsers' and decoders' libraries make
 *   FAULT_AT    n, from 1; without it nothing fails
 *   FAULT_LOG   a file that gets "failed CALL", and at exit "calls N"
 *
 * OpenMP, BLAS and oneDNN are left alone: what they do without memory is not ours to decide. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc's own entry points, so that no allocation is needed to find the next one. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *ptr, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

static atomic_long n_calls;
static long fail_at;
static bool is_others, is_lasting;
static int log_fd = -1;

__attribute__((constructor)) static void begin(void) {
    const char *kind = getenv("FAULT_KIND"), *at = getenv("FAULT_AT"), *log = getenv("FAULT_LOG");
    if (!kind) return;
    is_others = strcmp(kind, "others") == 0;
    is_lasting = strcmp(kind, "all") == 0;
    if (log)
        log_fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    atomic_store(&n_calls, 0);
    fail_at = at ? strtol(at, NULL, 10) : 0;
}

static void say(const char *what, long n) {
    char line[64];
    const int length = snprintf(line, sizeof line, "%s %ld\n", what, n);
    if (log_fd >= 0) syscall(SYS_write, log_fd, line, (size_t)length);
}

__attribute__((destructor)) static void end(void) { say("calls", atomic_load(&n_calls)); }

static bool is_hit(void) {
    const long n = atomic_fetch_add(&n_calls, 1) + 1;
    const bool hit = fail_at > 0 && (n == fail_at || (is_lasting && n > fail_at));
    if (hit && n == fail_at) say("failed", n);
    if (hit) errno = ENOMEM;
    return hit;
}

/* Is the caller in a library that parses or decodes? */
static bool is_parser(const void *caller) {
    static const char *const names[] = {"libyaml", "libpng", "libjpeg", "libwebp", "libz."};
    Dl_info info;
    if (!is_others || !dladdr(caller, &info) || !info.dli_fname) return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strstr(info.dli_fname, names[i])) return true;
    }
    return false;
}

void *aligned_alloc(size_t align, size_t bytes) {
    return !is_others && is_hit() ? NULL : __libc_memalign(align, bytes);
}

void *malloc(size_t bytes) {
    return is_parser(__builtin_return_address(0)) && is_hit() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t size) {
    return is_parser(__builtin_return_address(0)) && is_hit() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *ptr, size_t bytes) {
    return is_parser(__builtin_return_address(0)) && is_hit() ? NULL : __libc_realloc(ptr, bytes);
}
