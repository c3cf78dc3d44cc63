/* The builder of the ConvNeXts (convnext.c), for networks of any depth and width. */
#ifndef KI_CONVNEXT_H
#define KI_CONVNEXT_H

#include "net/backbone.h"

enum { KI_CONVNEXT_STAGES = 4 };

typedef struct ki_convnext {
    int64_t n_blocks[KI_CONVNEXT_STAGES], width[KI_CONVNEXT_STAGES];
    bool has_grn;     /* version 2: response normalisation instead of layer scale */
    double drop_path; /* of the last block; it grows with the depth */
} ki_convnext;

/* From the input to the last map, whose node is returned. */
int ki_convnext_add(ki_graph *graph, int input, const ki_convnext *net);
/* The norm behind the pool. */
int ki_convnext_neck(ki_graph *graph, int pooled, const void *settings);

#endif
