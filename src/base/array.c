/* Arrays: their checks and their memory. */
#include "base/array.h"

#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/shape.h"

int64_t kith_array_count(const kith_array *array) {
    if (!array) return -1;
    int64_t n = 1;
    bool is_empty = false;
    for (int i = 0; i < array->n_dims; i++) {
        if (array->dim[i] < 0) return -1;
        if (array->dim[i] == 0)
            is_empty = true;
        else if (n >= 0 && __builtin_mul_overflow(n, array->dim[i], &n))
            n = -1;
    }
    /* [0, 2^62, 2^62] has no elements, but no real file has that shape: the product of the other extents must
     * still fit. */
    return n < 0 ? -1 : is_empty ? 0 : n;
}

static kith_status check_shape(const kith_array *array, size_t *ret_bytes, kith_error *err) {
    if ((int)array->dtype < KITH_F32 || array->dtype > KITH_U8)
        return ki_fail(err, KITH_EINVAL, "the array's type is %d, which is none of kith_dtype",
                       (int)array->dtype);
    if (array->n_dims < 0 || array->n_dims > KITH_MAX_DIMS)
        return ki_fail(err, KITH_EINVAL, "the array has %d extents; wanted 0 to %d", array->n_dims,
                       KITH_MAX_DIMS);
    const int64_t n = kith_array_count(array);
    size_t bytes = 0;
    if (n < 0 || !ki_mul_size((size_t)n, kith_dtype_bytes(array->dtype), &bytes) || bytes > INT64_MAX) {
        ki_shape shape = {.n_dims = array->n_dims};
        memcpy(shape.dim, array->dim, sizeof shape.dim);
        char text[200];
        return ki_fail(err, KITH_EINVAL, "the array's shape %s is negative or too large",
                       ki_shape_text(&shape, text, sizeof text));
    }
    *ret_bytes = bytes;
    return KITH_OK;
}

kith_status ki_array_check(const kith_array *array, size_t *ret_bytes, kith_error *err) {
    size_t bytes = 0;
    KI_TRY(check_shape(array, &bytes, err));
    if (bytes > 0 && !array->data) return ki_fail(err, KITH_EINVAL, "the array has elements but no data");
    *ret_bytes = bytes;
    return KITH_OK;
}

kith_status ki_array_alloc(kith_dtype dtype, int n_dims, const int64_t *dim, kith_array *ret_array,
                           kith_error *err) {
    kith_array array = {.dtype = dtype, .n_dims = n_dims};
    if (n_dims > 0 && n_dims <= KITH_MAX_DIMS) memcpy(array.dim, dim, (size_t)n_dims * sizeof *dim);
    size_t bytes = 0;
    KI_TRY(check_shape(&array, &bytes, err));
    KI_TRY(ki_alloc_or(&array.data, bytes, 1, "an array", err));
    *ret_array = array;
    return KITH_OK;
}

kith_status kith_array_init(kith_dtype dtype, int n_dims, const int64_t *dim, kith_array *ret_array,
                            kith_error *err) {
    KI_NEED(err, dim, ret_array);
    KI_TRY(ki_array_alloc(dtype, n_dims, dim, ret_array, err));
    memset(ret_array->data, 0, (size_t)kith_array_count(ret_array) * kith_dtype_bytes(dtype));
    return KITH_OK;
}

void kith_array_release(kith_array *array) {
    if (!array) return;
    ki_free(array->data);
    *array = (kith_array){0};
}
