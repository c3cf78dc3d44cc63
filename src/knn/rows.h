/* A borrowed matrix [n, dim] of float32, float64, float16 or bfloat16, read a row at a time. */
#ifndef KI_ROWS_H
#define KI_ROWS_H

#include <stdint.h>

#include "base/error.h"
#include "kith/array.h"

typedef struct ki_rows {
    kith_dtype dtype;
    int64_t n, dim;
    const void *data;
    const float *there; /* float32: the same rows in a device's memory, for work on the device; else NULL */
} ki_rows;

/* Check shape (two dimensions, dim >= 1, n below 2^31), type and that every value is finite and no
 * larger than 1e18 in magnitude; `what` names the matrix in errors. n may be 0. */
kith_status ki_rows_init(const kith_array *array, const char *what, ki_rows *ret_rows, kith_error *err);

/* Row i as doubles, exactly. */
void ki_rows_get(const ki_rows *rows, int64_t i, double *ret_row);

/* sum x_k y_k and sum (x_k - y_k)^2 in float64, in one fixed order. The result is symmetric in the two rows
 * and the same for equal rows at any place. */
double ki_rows_dot(const ki_rows *a, int64_t i, const ki_rows *b, int64_t j);
double ki_rows_sqdist(const ki_rows *a, int64_t i, const ki_rows *b, int64_t j);

#endif
