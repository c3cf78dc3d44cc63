/* .npy from memory; see kith/array.h for files. */
#ifndef KI_NPY_H
#define KI_NPY_H

#include "base/error.h"
#include "kith/array.h"

/* As kith_npy_read for a file already in memory; `name` is what errors call it. */
kith_status ki_npy_parse(const void *bytes, size_t n, const char *name, kith_array *ret_array,
                         kith_error *err);

#endif
