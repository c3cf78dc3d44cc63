/* safetensors from memory; see kith/array.h for files. */
#ifndef KI_TENSORS_H
#define KI_TENSORS_H

#include "core/error.h"
#include "kith/array.h"

/* The key that holds the metadata instead of a tensor. */
#define KI_TENSORS_METADATA "__metadata__"

typedef struct ki_tensor_type {
    const char *name; /* as safetensors writes it: "F32" */
    kith_dtype dtype;
} ki_tensor_type;

/* All that kith reads and writes; ends with a NULL name. */
extern const ki_tensor_type ki_tensor_types[];

/* As kith_tensors_open for a file already in memory, which must outlive the result; `name` is what
 * errors call it. */
kith_status ki_tensors_parse(const void *bytes, size_t n, const char *name, kith_tensors **ret_tensors,
                             kith_error *err);

#endif
