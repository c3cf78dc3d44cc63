/* The rows of a .npy file [n, dim] of float32 or float16, read when they are asked for: a file may be larger than the
 * memory, and may shrink meanwhile (io/gather.h). */
#ifndef KI_NPY_ROWS_H
#define KI_NPY_ROWS_H

#include <stdbool.h>

#include "base/error.h"
#include "kith/array.h"

typedef struct ki_npy_rows ki_npy_rows;

/* Open the file and check its header. Other types, more or fewer axes, Fortran order and foreign byte order are refused,
 * each with a line that says what to save instead. */
kith_status ki_npy_rows_open(const char *path, ki_npy_rows **ret_rows, kith_error *err);
void ki_npy_rows_free(ki_npy_rows *rows); /* NULL is fine */

int64_t ki_npy_rows_count(const ki_npy_rows *rows);
int64_t ki_npy_rows_dim(const ki_npy_rows *rows);
kith_dtype ki_npy_rows_dtype(const ki_npy_rows *rows);

/* One row as float [dim]. KITH_EIO if the file has become shorter since it was opened. Several threads may read at
 * once. */
kith_status ki_npy_rows_read(const ki_npy_rows *rows, int64_t row, float *ret_values, kith_error *err);

/* n rows as float [n, dim] in ordinary memory, faster than one by one. False when they cannot be had this way, or one of them
 * cannot: then read them one by one. */
bool ki_npy_rows_gather(const ki_npy_rows *rows, const int64_t *row, int64_t n, float *ret_values);

#endif
