/* safetensors from memory; see kith/array.h for files. */
#ifndef KI_TENSORS_H
#define KI_TENSORS_H

#include "base/buffer.h"
#include "base/error.h"
#include "kith/array.h"

/* The key that holds the metadata instead of a tensor. */
#define KI_TENSORS_METADATA "__metadata__"

typedef struct ki_tensor_type {
    const char *name; /* as safetensors writes it: "F32" */
    kith_dtype dtype;
} ki_tensor_type;

/* All that kith reads and writes; ends with a NULL name. */
extern const ki_tensor_type ki_tensor_types[];

/* Does the file begin as a safetensors file does, with the length of a header and its '{'? */
bool ki_tensors_is(const void *bytes, size_t n);

/* As kith_tensors_open for a file already in memory, which must outlive the result; `name` is what
 * errors call it. */
kith_status ki_tensors_parse(const void *bytes, size_t n, const char *name, kith_tensors **ret_tensors,
                             kith_error *err);

/* The file that kith_tensors_writer_save would write, as bytes. */
kith_status ki_tensors_writer_bytes(const kith_tensors_writer *writer, ki_buffer *ret_bytes, kith_error *err);

/* ---- seals: a checksum of the whole file (base/checksum.h) in its own metadata ---- */

/* Add metadata `key` with the checksum of everything that was added before: names, types, shapes and elements
 * of the tensors, and the other metadata. Add it last. */
kith_status ki_tensors_writer_seal(kith_tensors_writer *writer, const char *key, kith_error *err);

typedef enum ki_seal {
    KI_SEAL_NONE,   /* the file has no metadata `key` */
    KI_SEAL_BROKEN, /* something in the file has changed since it was sealed */
    KI_SEAL_GOOD,
} ki_seal;
/* Reads every element. */
ki_seal ki_tensors_seal(const kith_tensors *tensors, const char *key);

/* What the writer and the reader add up, in any order: the sum of a tensor, and of a metadata entry. */
uint64_t ki_tensors_sum_array(const char *name, const kith_array *array);
uint64_t ki_tensors_sum_metadata(const char *key, const char *value);
/* The sum as text, 16 hexadecimal digits and a NUL. */
void ki_tensors_seal_text(uint64_t sum, char ret_text[17]);

#endif
