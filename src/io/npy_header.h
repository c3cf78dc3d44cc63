/* The header of a .npy file, for the readers of numbers (npy.c) and of text (npy_text.c). */
#ifndef KI_NPY_HEADER_H
#define KI_NPY_HEADER_H

#include <stdbool.h>

#include "base/error.h"
#include "kith/array.h"

/* The first bytes of a file, this many or all of a shorter file, are enough for the header. */
enum { KI_NPY_HEAD_BYTES = 65536 + 12 };

typedef struct ki_npy_header {
    kith_array array; /* shape, and the type the elements have in memory; no data. Text has no such type */
    char kind;        /* numpy's letter: f, i, u, b; U and S are text */
    size_t width;     /* bytes of an element in the file */
    size_t offset;    /* of the elements */
    size_t bytes;     /* of all elements, in the file; exactly this many follow the header */
    bool is_swapped;  /* not in this machine's byte order */
    bool is_fortran;  /* the first index runs fastest */
} ki_npy_header;

/* `bytes` is the file's beginning, `file_bytes` the whole file's size. */
kith_status ki_npy_header_parse(const void *bytes, size_t n, uint64_t file_bytes, const char *name,
                                ki_npy_header *ret_header, kith_error *err);

/* The same from the start of a file that is open and has file_bytes bytes. */
kith_status ki_npy_header_read(int fd, long long file_bytes, const char *path, ki_npy_header *ret_header,
                               kith_error *err);

static inline bool ki_npy_is_text(const ki_npy_header *header) {
    return header->kind == 'U' || header->kind == 'S';
}

#endif
