/* MATLAB's .mat files of version 5 (what `save -v6` and `save -v7` write), read as far as lists of images need it:
 * struct and cell arrays of text and single numbers, packed or not, of either byte order.
 *
 *     ki_mat *mat = NULL;
 *     ki_mat_array cars, field;
 *     KI_CHECK(ki_mat_parse(bytes, n, path, &mat, err));
 *     KI_CHECK(ki_mat_find(mat, "annotations", &cars, &is_there, err));
 *     for (size_t i = 0; i < cars.n_parts; i++) KI_CHECK(ki_mat_next(&cars, &field, err));
 *
 * An array is a view of the file's bytes (of unpacked bytes if the variable is packed) and takes no memory. Its parts
 * are arrays, too, and come one after another. A part that is not looked into is skipped, so nesting costs
 * nothing. */
#ifndef KI_MAT_H
#define KI_MAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct ki_mat ki_mat;

typedef enum ki_mat_kind {
    KI_MAT_OTHER, /* sparse, objects, functions, 64-bit integers: not looked into */
    KI_MAT_CELL,
    KI_MAT_STRUCT,
    KI_MAT_TEXT,
    KI_MAT_NUMBER,
} ki_mat_kind;

typedef struct ki_mat_array {
    ki_mat_kind kind;
    size_t n_elements; /* product of the extents */
    size_t n_fields;   /* of a struct */
    size_t n_parts;    /* of a cell: n_elements; of a struct: element by element, its n_fields fields */
    /* The rest is mat.c's. */
    const ki_mat *mat;
    const uint8_t *names, *at, *end;
    size_t name_bytes; /* per field name, padded with zeros */
    uint32_t type;     /* the type that the values are stored as */
} ki_mat_array;

/* The bytes and the name (for errors) are borrowed and must outlive *ret. KITH_EFORMAT: not such a file;
 * KITH_EUNSUPPORTED: one of version 7.3 (HDF5). */
kith_status ki_mat_parse(const void *bytes, size_t n, const char *name, ki_mat **ret, kith_error *err);
void ki_mat_free(ki_mat *mat); /* NULL is fine */

/* The first variable of that name. A view lasts until the next call of ki_mat_find. */
kith_status ki_mat_find(ki_mat *mat, const char *variable, ki_mat_array *ret, bool *ret_is_there,
                        kith_error *err);
/* The next part of a cell or struct; never called more than n_parts times. */
kith_status ki_mat_next(ki_mat_array *array, ki_mat_array *ret_part, kith_error *err);
/* Which of a struct's fields has this name; n_fields when none has. */
size_t ki_mat_field(const ki_mat_array *array, const char *name);

/* The first number; false if the array is empty or does not hold real numbers. */
bool ki_mat_number(const ki_mat_array *array, double *ret);
/* Text as UTF-8, up to a NUL; false if it is not text, is empty, does not fit, or has characters beyond
 * U+07FF stored as 16 bits. */
bool ki_mat_text(const ki_mat_array *array, char *buf, size_t buf_bytes);

#endif
