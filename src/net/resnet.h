/* The builder of the ResNets (resnet.c), for networks of any depth and width. */
#ifndef KI_RESNET_H
#define KI_RESNET_H

#include "net/backbone.h"

/* Which convolution of a stage's first bottleneck strides. */
typedef enum ki_resnet_stride { KI_RESNET_STRIDE_3X3, KI_RESNET_STRIDE_1X1 } ki_resnet_stride;

enum { KI_RESNET_STAGES = 4 };

typedef struct ki_resnet {
    bool is_basic; /* blocks of two 3x3 convolutions instead of bottlenecks */
    int n_blocks[KI_RESNET_STAGES];
    int64_t
        width[KI_RESNET_STAGES]; /* of the 3x3 convolutions; bottlenecks have four times as many outputs */
} ki_resnet;

/* From the input to the last map, whose node is returned. */
int ki_resnet_add(ki_graph *graph, int input, const ki_resnet *net, ki_resnet_stride stride);

#endif
