/* Paths in fixed buffers, and what kind of file a path names. */
#include "base/path.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"

kith_status ki_path_print(ki_path *ret_path, kith_error *err, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const int n = ki_vsnprintf(ret_path->s, sizeof ret_path->s, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof ret_path->s) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "a path is longer than %zu bytes: %.200s", sizeof ret_path->s - 1,
                   ret_path->s);
}

static bool has_mode(mode_t mode, const char *fmt, va_list ap) {
    ki_path path;
    struct stat info;
    const int n = ki_vsnprintf(path.s, sizeof path.s, fmt, ap);
    return n > 0 && (size_t)n < sizeof path.s && stat(path.s, &info) == 0 && (info.st_mode & S_IFMT) == mode;
}

bool ki_is_file(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const bool yes = has_mode(S_IFREG, fmt, ap);
    va_end(ap);
    return yes;
}

bool ki_is_folder(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const bool yes = has_mode(S_IFDIR, fmt, ap);
    va_end(ap);
    return yes;
}

bool ki_path_is_below(const char *path, const char *folder) {
    const size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}
