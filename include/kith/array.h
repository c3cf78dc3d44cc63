/* Arrays in host memory, and the files they come from and go to: .npy and safetensors.
 *
 * A kith_array is C order (row-major), in the machine's byte order. Arrays that the library returns own their
 * data: release them with kith_array_release. Arrays that you pass in are borrowed for the call. All readers
 * check every size against the file before they trust it. All writers write to a temporary file, sync it and
 * rename it, so that a reader never sees half a file. */
#ifndef KITH_ARRAY_H
#define KITH_ARRAY_H

#include <stddef.h>
#include <stdint.h>

#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KITH_MAX_DIMS 8

typedef enum kith_dtype {
    KITH_F32,
    KITH_F64,
    KITH_F16,
    KITH_BF16,
    KITH_I32,
    KITH_I64,
    KITH_U8,
} kith_dtype;

/* "float32", "int64" … and bytes per element. */
KITH_API const char *kith_dtype_name(kith_dtype dtype);
KITH_API size_t kith_dtype_bytes(kith_dtype dtype);

typedef struct kith_array {
    kith_dtype dtype;
    int n_dims;
    int64_t dim[KITH_MAX_DIMS];
    void *data;
} kith_array;

/* Number of elements; -1 when an extent is negative or the product overflows. */
KITH_API int64_t kith_array_count(const kith_array *array);

/* Allocate cleared data for a shape. */
KITH_API kith_status kith_array_init(kith_dtype dtype, int n_dims, const int64_t *dim, kith_array *ret_array,
                                     kith_error *err);
/* Free the data and zero the struct; fine on a zeroed struct. */
KITH_API void kith_array_release(kith_array *array);

/* The same values as another type (a new array). To a floating type, values are rounded to the nearest (ties
 * to even), NaN and infinities stay. Numbers beyond the type's range, and to an integer type also NaN and
 * numbers that are not whole, are KITH_ENUMERIC; the error names the place. */
KITH_API kith_status kith_array_convert(const kith_array *array, kith_dtype dtype, kith_array *ret_array,
                                        kith_error *err);

/* .npy, format versions 1 to 3: float32/64/16, every integer type and bool; little- or big-endian, C or Fortran
 * order. bool is read as uint8 of 0 and 1, int8/16 and uint16 as int32, uint32/64 as int64. A pipe can be read,
 * too. KITH_EIO: the file cannot be read or written; KITH_EFORMAT: it is not a valid .npy file; KITH_EUNSUPPORTED:
 * a type that kith does not have, or a uint64 beyond int64. Writes version 1.0, the bytes numpy writes. */
KITH_API kith_status kith_npy_read(const char *path, kith_array *ret_array, kith_error *err);
/* Type and shape alone, without data: reads only the header. Text is KITH_EUNSUPPORTED. */
KITH_API kith_status kith_npy_shape(const char *path, kith_array *ret_array, kith_error *err);
KITH_API kith_status kith_npy_write(const char *path, const kith_array *array, kith_error *err);

/* A safetensors file, read into memory: float32/64/16, bfloat16, int32/64, uint8. Views stay valid until it
 * is freed, whatever happens to the file, and are aligned for their type. If offsets, shape and file size do
 * not agree exactly, the file is refused, and the error names the tensor. Reading from several threads is
 * fine. */
typedef struct kith_tensors kith_tensors;

/* Read a file whole and check it. KITH_EIO; KITH_EFORMAT names the tensor or the byte that is wrong. */
KITH_API kith_status kith_tensors_open(const char *path, kith_tensors **ret_tensors, kith_error *err);
KITH_API void kith_tensors_free(kith_tensors *tensors); /* NULL is fine */
KITH_API int64_t kith_tensors_count(const kith_tensors *tensors);
/* The i-th tensor's name, in order of its place in the file; NULL when there is none. */
KITH_API const char *kith_tensors_name(const kith_tensors *tensors, int64_t i);
/* A view of the tensor (do not release it, do not write to it); KITH_ENOTFOUND suggests the nearest
 * name. */
KITH_API kith_status kith_tensors_get(const kith_tensors *tensors, const char *name, kith_array *ret_view,
                                      kith_error *err);
/* A metadata string, or NULL. */
KITH_API const char *kith_tensors_metadata(const kith_tensors *tensors, const char *key);

/* Collect tensors and metadata, then write them all at once. Arrays' data is borrowed until then;
 * names and metadata are copied. Names are UTF-8 and used once. */
typedef struct kith_tensors_writer kith_tensors_writer;

/* One without tensors. It is used by one thread at a time. */
KITH_API kith_status kith_tensors_writer_new(kith_tensors_writer **ret_writer, kith_error *err);
KITH_API void kith_tensors_writer_free(kith_tensors_writer *writer); /* NULL is fine */
KITH_API kith_status kith_tensors_writer_add(kith_tensors_writer *writer, const char *name,
                                             const kith_array *array, kith_error *err);
KITH_API kith_status kith_tensors_writer_metadata(kith_tensors_writer *writer, const char *key,
                                                  const char *value, kith_error *err);
KITH_API kith_status kith_tensors_writer_save(const kith_tensors_writer *writer, const char *path,
                                              kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
