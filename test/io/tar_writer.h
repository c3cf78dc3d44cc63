/* Tar files in memory, as programs write them and as nobody should. */
#ifndef TAR_WRITER_H
#define TAR_WRITER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/testing.h"

typedef struct tar_writer {
    unsigned char *bytes;
    size_t n, capacity;
} tar_writer;

static inline void tar_add_bytes(tar_writer *t, const void *bytes, size_t n) {
    if (t->n + n > t->capacity) {
        t->capacity = 2 * (t->n + n);
        t->bytes = realloc(t->bytes, t->capacity);
        assert_non_null(t->bytes);
    }
    if (n) memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
}

/* Make the checksum of the header at `at` right. */
static inline void tar_sum(tar_writer *t, size_t at) {
    unsigned sum = 0;
    char text[16];
    memset(t->bytes + at + 148, ' ', 8);
    for (int i = 0; i < 512; i++) sum += t->bytes[at + (size_t)i];
    snprintf(text, sizeof text, "%06o", sum);
    memcpy(t->bytes + at + 148, text, 7);
}

/* A header; `size` is the text of its 12 bytes, NULL: n in octal digits. Returns where it is. */
static inline size_t tar_header(tar_writer *t, const char *name, char type, size_t n, const char *size) {
    static const unsigned char zeros[512];
    const size_t at = t->n, length = strlen(name) < 100 ? strlen(name) : 100;
    char text[32];
    tar_add_bytes(t, zeros, 512);
    memcpy(t->bytes + at, name, length);
    snprintf(text, sizeof text, "%011zo", n);
    memcpy(t->bytes + at + 124, size ? size : text, 12);
    memcpy(t->bytes + at + 257,
           "ustar\0"
           "00",
           8);
    t->bytes[at + 156] = (unsigned char)type;
    tar_sum(t, at);
    return at;
}

static inline void tar_add(tar_writer *t, const char *name, char type, const void *bytes, size_t n) {
    static const unsigned char zeros[512];
    tar_header(t, name, type, n, NULL);
    tar_add_bytes(t, bytes, n);
    tar_add_bytes(t, zeros, (512 - n % 512) % 512);
}

static inline void tar_add_text(tar_writer *t, const char *name, const char *text) {
    tar_add(t, name, '0', text, strlen(text));
}

/* A pax header with one record. */
static inline void tar_add_pax(tar_writer *t, const char *key, const char *value) {
    char text[9000];
    size_t n = strlen(key) + strlen(value) + 3, digits = 1;
    while (snprintf(text, sizeof text, "%zu", n + digits) != (int)digits) digits++;
    snprintf(text, sizeof text, "%zu %s=%s\n", n + digits, key, value);
    tar_add(t, "PaxHeaders/x", 'x', text, strlen(text));
}

static inline void tar_end(tar_writer *t) {
    static const unsigned char zeros[1024];
    tar_add_bytes(t, zeros, sizeof zeros);
}

static inline void tar_release(tar_writer *t) {
    free(t->bytes);
    *t = (tar_writer){0};
}

#endif
