/* What is behind a kith_embedder; for the files of this folder. */
#ifndef KI_API_EMBEDDER_HANDLE_H
#define KI_API_EMBEDDER_HANDLE_H

#include "core/arena.h"
#include "data/image/image.h"
#include "embed/embedder.h"
#include "kith/embedder.h"

enum { KI_N_GROUPS = 3 };

struct kith_embedder {
    kith_model *model;
    ki_arena arena;                /* strings of the options */
    kith_embedder_options options; /* `model` is an absolute path */
    char hash[65];
    char preprocess[512];
    int64_t dim;
    ki_embedder *group[KI_N_GROUPS]; /* for so many pictures at a time (pixels.c); NULL: not asked for yet */
};

/* Its tap and its resizing; any number of images may be unreadable. */
kith_embed_options ki_embedder_handle_options(const kith_embedder *embedder);

/* What it makes of an image before the network sees it. */
kith_status ki_embedder_transform(const kith_embedder *embedder, kith_transform *ret, kith_error *err);
/* How an image is decoded for it: the background under transparent pixels, and how small a JPEG may come out when no part of it
 * is cut out. */
kith_status ki_embedder_decoding(const kith_embedder *embedder, ki_decode *ret, kith_error *err);

/* Free the embedders of groups. */
void ki_embedder_drop_groups(kith_embedder *embedder);

#endif
