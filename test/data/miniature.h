/* Small copies of data set layouts, made in the test's folder. */
#ifndef MINIATURE_H
#define MINIATURE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/testing.h"

/* Make every folder on the way to path. */
static inline void make_folders(const char *path) {
    char copy[4096];
    snprintf(copy, sizeof copy, "%s", path);
    for (char *s = copy + 1; *s; s++) {
        if (*s != '/') continue;
        *s = '\0';
        if (mkdir(copy, 0777) != 0 && errno != EEXIST) fail_msg("cannot make %s", copy);
        *s = '/';
    }
}

static inline void put_bytes(const char *path, const void *bytes, size_t n) {
    make_folders(path);
    FILE *file = fopen(path, "wb");
    if (!file) fail_msg("cannot write %s", path);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static inline void put_text(const char *path, const char *text) { put_bytes(path, text, strlen(text)); }

/* A real image of the corpus under another name. */
static inline void put_image(const char *path, const char *name) {
    static char bytes[65536];
    char from[4096];
    snprintf(from, sizeof from, "%s/test/corpus/image/%s", KITH_SOURCE_DIR, name);
    FILE *file = fopen(from, "rb");
    if (!file) fail_msg("cannot read %s", from);
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    put_bytes(path, bytes, n);
}

/* "FOLDER/fmt" in a buffer of its own per call site of up to 4 at a time. */
static inline const char *in_folder(const char *fmt, ...) {
    static char buffers[4][4096];
    static int next;
    char *path = buffers[next++ % 4];
    const int n = snprintf(path, 4096, "%s/", testing_folder());
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(path + n, 4096 - (size_t)n, fmt, ap);
    va_end(ap);
    return path;
}

#endif
