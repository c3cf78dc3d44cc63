/* What is behind a kith_embedder; for the files of this folder. */
#ifndef KI_API_EMBEDDER_HANDLE_H
#define KI_API_EMBEDDER_HANDLE_H

#include "core/arena.h"
#include "kith/embedder.h"

struct kith_embedder {
    kith_model *model;
    ki_arena arena;                /* strings of the options */
    kith_embedder_options options; /* `model` is an absolute path */
    char hash[65];
    char preprocess[512];
    int64_t dim;
};

/* Its tap and its resizing; any number of images may be unreadable. */
kith_embed_options ki_embedder_handle_options(const kith_embedder *embedder);

#endif
