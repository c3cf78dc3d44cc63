/* The members of a tar file, one after the other: old, ustar, GNU (long names, large sizes) and pax headers. Contents are not read,
 * only where they lie. Sparse files, and archives that are packed as a whole, are not read. */
#ifndef KI_TAR_H
#define KI_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { KI_TAR_BLOCK = 512, KI_TAR_MOST_NAME = 4000, KI_TAR_WINDOW = 16384 };

/* Where the bytes are: a file that is open, or memory. Borrowed. */
typedef struct ki_tar_source {
    int fd;                     /* -1: memory */
    const unsigned char *bytes; /* [n_bytes]; NULL: a file */
    int64_t n_bytes;
    const char *name; /* for errors */
} ki_tar_source;

typedef struct ki_tar_entry {
    const char *name; /* without "./" before it; too long a one lacks its middle; valid until the next call */
    int64_t at, bytes; /* its contents in the archive, which lie within it */
    bool is_file;      /* a plain file; else a folder, a link, a device, a sparse file */
    bool is_odd; /* its name is empty, too long, absolute, goes through "..", or has a control character */
} ki_tar_entry;

/* Begin as {.source = …}. */
typedef struct ki_tar_walk {
    ki_tar_source source;
    int64_t at; /* of the next header */
    char name[KI_TAR_MOST_NAME + 1];
    bool has_name, has_bytes, is_sparse,
        is_cut; /* what a long name or a pax header says of the next member */
    int64_t bytes;
    unsigned char window[KI_TAR_WINDOW]; /* of a file */
    int64_t window_at;
    size_t window_bytes;
} ki_tar_walk;

/* The next member; *ret_more is false at the end of the archive. KITH_EFORMAT "damaged at byte N: why", without the archive's name: it
 * is cut off, or is none; the members before are fine, and there are no more. KITH_EIO when it cannot be read. */
kith_status ki_tar_next(ki_tar_walk *walk, ki_tar_entry *ret_entry, bool *ret_more, kith_error *err);
/* n bytes of the archive from `at`, which lie within it. */
kith_status ki_tar_read(ki_tar_walk *walk, void *dst, size_t n, int64_t at, kith_error *err);
/* "gzip", "zstd" and so on when the bytes begin so; NULL: not packed. 6 bytes are enough. */
const char *ki_packed_by(const unsigned char *bytes, size_t n);

#endif
