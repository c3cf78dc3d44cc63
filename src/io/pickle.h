/* The pickles of tensor state dicts, as torch.save writes them, read without executing anything.
 *
 * A pickle is a program for a small machine that can call any function. This reader knows the opcodes that state dicts
 * consist of, and of functions only OrderedDict and the two that rebuild tensors, which it takes as descriptions. It
 * refuses everything else, by name. */
#ifndef KI_PICKLE_H
#define KI_PICKLE_H

#include "base/arena.h"
#include "base/error.h"
#include "kith/array.h"

/* A tensor as the pickle describes it: a part of a storage, whose numbers are elsewhere. */
typedef struct ki_pickle_tensor {
    const char *name;    /* the path through the dicts, with dots between */
    const char *storage; /* its key */
    kith_dtype dtype;
    int64_t numbers; /* of the whole storage */
    int64_t offset;
    int n_dims;
    int64_t dim[KITH_MAX_DIMS], stride[KITH_MAX_DIMS];
} ki_pickle_tensor;

typedef struct ki_pickle {
    ki_pickle_tensor *tensor; /* in the arena */
    size_t n, capacity;
} ki_pickle;

/* Strings and tensors are made in the arena; `name` is what errors call the file. */
kith_status ki_pickle_parse(const void *bytes, size_t n, const char *name, ki_arena *arena,
                            ki_pickle *ret_pickle, kith_error *err);

#endif
