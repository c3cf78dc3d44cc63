/* .npy from memory; see kith/array.h for files. */
#ifndef KI_NPY_H
#define KI_NPY_H

#include "base/atomic.h"
#include "kith/array.h"

/* As kith_npy_read for a file already in memory; `name` is what errors call it. */
kith_status ki_npy_parse(const void *bytes, size_t n, const char *name, kith_array *ret_array,
                         kith_error *err);

/* The header of a file whose elements follow, written by the caller: float32 or another type that .npy has. */
kith_status ki_npy_begin(ki_atomic_file *file, const kith_array *shape, kith_error *err);

#endif
