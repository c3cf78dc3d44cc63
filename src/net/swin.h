/* The builder of the Swin transformers (swin.c), for networks of any depth and width. */
#ifndef KI_SWIN_H
#define KI_SWIN_H

#include "net/backbone.h"

enum { KI_SWIN_STAGES = 4 };

typedef struct ki_swin {
    int64_t patch, window, width; /* of the first stage; each next one is twice as wide */
    int n_stages;
    int64_t n_blocks[KI_SWIN_STAGES], heads[KI_SWIN_STAGES];
    double mlp_ratio; /* of the hidden layer's width to the tokens' */
    double drop_path; /* of the last block; it grows with the depth */
} ki_swin;

/* From the input to the last map, whose node is returned. */
int ki_swin_add(ki_graph *graph, int input, const ki_swin *net);

#endif
