/* What is behind kith_vectors. */
#ifndef KI_MODEL_VECTORS_H
#define KI_MODEL_VECTORS_H

#include "data/dataset/dataset.h"
#include "embed/embedder.h"
#include "kith/model.h"

struct kith_vectors {
    ki_vectors core;
    int n_dims; /* of one row */
    int64_t dim[KITH_MAX_DIMS];
    int64_t n_bad;
    char *bad[KI_MOST_BAD_NAMED];
    /* For cards. */
    const kith_dataset *set;
    kith_split split;
    const char *backbone, *pool;
    char tap[32], resize[32], preprocessing[160], data_hash[65];
    int64_t crop;
    double seconds; /* from files to vectors */
};

#endif
