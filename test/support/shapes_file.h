/* A file of weights with names and shapes alone: all numbers are zeros, which take no room on the disk. */
#ifndef KITH_SHAPES_FILE_H
#define KITH_SHAPES_FILE_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/testing.h"

typedef struct shapes_file {
    char header[1 << 18];
    size_t used;
    int64_t bytes;
    bool is_small; /* numbers of one byte, for networks that are recognised only */
} shapes_file;

static inline void shapes_file_begin(shapes_file *f, bool is_small) {
    f->is_small = is_small;
    f->used = (size_t)snprintf(f->header, sizeof f->header, "{");
    f->bytes = 0;
}

/* Without dimensions an int64, as the counters of PyTorch's batch norms are. */
static inline void shapes_file_add(shapes_file *f, const char *name, int n_dims, const int64_t *dim) {
    int64_t bytes = n_dims == 0 ? 8 : f->is_small ? 1 : 4;
    char text[120] = "";
    for (int i = 0; i < n_dims; i++) {
        bytes *= dim[i];
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%" PRId64, i ? "," : "", dim[i]);
    }
    f->used += (size_t)snprintf(f->header + f->used, sizeof f->header - f->used,
                                "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%" PRId64
                                ",%" PRId64 "]}",
                                f->bytes ? "," : "", name,
                                n_dims == 0   ? "I64"
                                : f->is_small ? "U8"
                                              : "F32",
                                text, f->bytes, f->bytes + bytes);
    if (f->used + 200 > sizeof f->header) fail_msg("%s: too many names", name);
    f->bytes += bytes;
}

static inline void shapes_file_save(shapes_file *f, const char *path) {
    f->header[f->used++] = '}';
    while (f->used % 8) f->header[f->used++] = ' ';
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)(f->used >> (8 * i));
    assert_int_equal(fwrite(length, 1, sizeof length, file), sizeof length);
    assert_int_equal(fwrite(f->header, 1, f->used, file), f->used);
    assert_int_equal(fflush(file), 0);
    assert_int_equal(ftruncate(fileno(file), (off_t)(8 + f->used) + (off_t)f->bytes), 0);
    assert_int_equal(fclose(file), 0);
}

#endif
