/* MATLAB files of version 5 as MATLAB writes them, of either byte order, packed or not. */
#ifndef MAT_FILE_H
#define MAT_FILE_H

#include <string.h>

#include <zlib.h>

#include "data/miniature.h"

enum { MAT_INT8 = 1, MAT_UINT8 = 2, MAT_UINT16 = 4, MAT_INT32 = 5, MAT_UINT32 = 6, MAT_DOUBLE = 9 };
enum { MAT_MATRIX = 14, MAT_COMPRESSED = 15 };
enum {
    MAT_CELL_CLASS = 1,
    MAT_STRUCT_CLASS = 2,
    MAT_CHAR_CLASS = 4,
    MAT_DOUBLE_CLASS = 6,
    MAT_UINT8_CLASS = 9
};

typedef struct mat_file {
    uint8_t bytes[1 << 16];
    size_t n;
    bool is_big;
} mat_file;

static inline void mat_put(mat_file *f, const void *value, size_t n) {
    const uint8_t *p = value;
    assert_true(f->n + n <= sizeof f->bytes);
    for (size_t i = 0; i < n; i++) f->bytes[f->n++] = p[f->is_big ? n - 1 - i : i];
}

static inline void mat_put32(mat_file *f, uint32_t value) { mat_put(f, &value, 4); }

/* n values of `size` bytes, in the short form when they fit. */
static inline void mat_element(mat_file *f, uint32_t type, const void *values, size_t n, size_t size) {
    const bool is_short = n * size <= 4 && n > 0;
    if (is_short) {
        mat_put32(f, (uint32_t)(n * size) << 16 | type);
    } else {
        mat_put32(f, type);
        mat_put32(f, (uint32_t)(n * size));
    }
    const size_t begin = f->n, wanted = is_short ? 4 : (n * size + 7) / 8 * 8;
    for (size_t i = 0; i < n; i++) mat_put(f, (const uint8_t *)values + i * size, size);
    while (f->n < begin + wanted) f->bytes[f->n++] = 0;
}

/* Tag, flags, extents and name of a matrix; mat_close fills the length in. */
static inline size_t mat_open(mat_file *f, uint32_t class_, uint32_t n_elements, const char *name) {
    const size_t at = f->n;
    mat_put32(f, MAT_MATRIX);
    mat_put32(f, 0);
    mat_element(f, MAT_UINT32, (uint32_t[]){class_, 0}, 2, 4);
    mat_element(f, MAT_INT32, (int32_t[]){1, (int32_t)n_elements}, 2, 4);
    mat_element(f, MAT_INT8, name, strlen(name), 1);
    return at;
}

static inline void mat_close(mat_file *f, size_t at) {
    const size_t end = f->n;
    f->n = at + 4;
    mat_put32(f, (uint32_t)(end - at - 8));
    f->n = end;
}

static inline void mat_number(mat_file *f, double value, uint32_t class_) {
    const size_t at = mat_open(f, class_, 1, "");
    const uint8_t byte = (uint8_t)value;
    if (class_ == MAT_UINT8_CLASS)
        mat_element(f, MAT_UINT8, &byte, 1, 1);
    else
        mat_element(f, MAT_DOUBLE, &value, 1, 8);
    mat_close(f, at);
}

static inline void mat_nothing(mat_file *f) {
    const size_t at = mat_open(f, MAT_DOUBLE_CLASS, 0, "");
    mat_element(f, MAT_DOUBLE, NULL, 0, 8);
    mat_close(f, at);
}

/* As MATLAB does, one 16-bit unit per character. */
static inline void mat_text(mat_file *f, const char *text) {
    uint16_t wide[256];
    const size_t n = strlen(text), at = mat_open(f, MAT_CHAR_CLASS, (uint32_t)n, "");
    for (size_t i = 0; i < n; i++) wide[i] = (uint8_t)text[i];
    mat_element(f, MAT_UINT16, wide, n, 2);
    mat_close(f, at);
}

typedef struct car {
    const char *path;
    int class_; /* 0: none */
} car;

static inline void mat_annotations(mat_file *f, const char *path_field, const car *cars, size_t n) {
    enum { NAME_BYTES = 32 };
    const char *const fields[] = {path_field, "bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "test"};
    char names[N_ROWS(fields)][NAME_BYTES] = {{0}};
    const size_t at = mat_open(f, MAT_STRUCT_CLASS, (uint32_t)n, "annotations");
    mat_element(f, MAT_INT32, (int32_t[]){NAME_BYTES}, 1, 4);
    for (size_t i = 0; i < N_ROWS(fields); i++) snprintf(names[i], NAME_BYTES, "%s", fields[i]);
    mat_element(f, MAT_INT8, names, sizeof names, 1);
    for (size_t i = 0; i < n; i++) {
        mat_text(f, cars[i].path);
        mat_number(f, 11, MAT_UINT8_CLASS);
        mat_number(f, 1, MAT_DOUBLE_CLASS);
        mat_number(f, 20, MAT_UINT8_CLASS);
        mat_number(f, 5, MAT_UINT8_CLASS);
        if (cars[i].class_ > 0)
            mat_number(f, cars[i].class_, MAT_UINT8_CLASS);
        else
            mat_nothing(f);
        mat_number(f, 0, MAT_UINT8_CLASS);
    }
    mat_close(f, at);
}

static inline void mat_names(mat_file *f, int n) {
    const size_t at = mat_open(f, MAT_CELL_CLASS, (uint32_t)n, "class_names");
    for (int i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof name, "Car %d", i + 1);
        mat_text(f, name);
    }
    mat_close(f, at);
}

/* Replace the variable that begins at `at` by its packed form. */
static inline void mat_pack(mat_file *f, size_t at) {
    uint8_t packed[1 << 16];
    uLongf n = sizeof packed;
    assert_int_equal(compress(packed, &n, f->bytes + at, f->n - at), Z_OK);
    f->n = at;
    mat_put32(f, MAT_COMPRESSED);
    mat_put32(f, (uint32_t)n);
    memcpy(f->bytes + f->n, packed, n);
    f->n += n;
}

static inline void mat_begin(mat_file *f) {
    memset(f->bytes, ' ', 116);
    memcpy(f->bytes, "MATLAB 5.0 MAT-file", 19);
    memset(f->bytes + 116, 0, 8);
    f->n = 124;
    mat_put(f, &(uint16_t){0x0100}, 2);
    mat_put(f, &(uint16_t){0x4d49}, 2); /* "MI" as a number */
}

/* A file of annotations (when there are cars) and class names (when n_names is not 0). */
static inline void put_mat(const char *path, const char *path_field, const car *cars, size_t n_cars,
                           int n_names, bool is_big, bool is_packed) {
    static mat_file f;
    f.is_big = is_big;
    mat_begin(&f);
    size_t at = f.n;
    if (n_cars) mat_annotations(&f, path_field, cars, n_cars);
    if (n_cars && is_packed) mat_pack(&f, at);
    at = f.n;
    if (n_names) mat_names(&f, n_names);
    if (n_names && is_packed) mat_pack(&f, at);
    put_bytes(path, f.bytes, f.n);
}

#endif
