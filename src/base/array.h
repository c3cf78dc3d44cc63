/* What the file formats share about arrays. */
#ifndef KI_ARRAY_H
#define KI_ARRAY_H

#include "base/error.h"
#include "kith/array.h"

/* Check that a writer can take this array: a known type, 0 … KITH_MAX_DIMS extents, none negative, data if there are
 * elements, and a size that fits. KITH_EINVAL says what is wrong; *ret_bytes is the size. */
kith_status ki_array_check(const kith_array *array, size_t *ret_bytes, kith_error *err);

/* kith_array_init without clearing: for readers that fill every byte. */
kith_status ki_array_alloc(kith_dtype dtype, int n_dims, const int64_t *dim, kith_array *ret_array,
                           kith_error *err);

#endif
