/* Inverted residuals with squeeze and excitation (mobile.c): the blocks that MobileNetV3 and EfficientNet are made of. */
#ifndef KI_MOBILE_H
#define KI_MOBILE_H

#include "net/backbone.h"

typedef enum ki_mobile_act { KI_MOBILE_RELU, KI_MOBILE_HARD_SWISH, KI_MOBILE_SILU } ki_mobile_act;

/* What all blocks of a network have in common. */
typedef struct ki_mobile_style {
    ki_bn_attr bn;
    ki_mobile_act squeeze_act; /* inside squeeze and excitation … */
    ki_act gate;               /* … and at its end */
} ki_mobile_style;

/* As many outputs as expanded channels mean no expansion if they are the source's, too: then the block begins with
 * its depthwise convolution. */
typedef struct ki_mobile_block {
    int64_t k, stride, expanded, oc;
    int64_t squeeze; /* channels inside squeeze and excitation; 0: none */
    ki_mobile_act act;
    double drop_path;
} ki_mobile_block;

int ki_mobile_block_add(ki_graph *graph, const char *name, int src, const ki_mobile_style *style,
                        const ki_mobile_block *block);

/* A convolution with padding k / 2, its norm and function. */
int ki_mobile_conv_add(ki_graph *graph, const char *conv, const char *bn, int src, int64_t oc, int64_t k,
                       int64_t stride, const ki_bn_attr *attr, ki_mobile_act act);
int ki_mobile_act_add(ki_graph *graph, int src, ki_mobile_act act);

/* The multiple of 8 next to x, and the one above it where that is more than a tenth below x: how these papers round channels. */
int64_t ki_mobile_channels(double x);

/* ---- whole networks, for tests of small ones ---- */

/* A row of MobileNetV3's table: block `at` of stage `stage` by its name. */
typedef struct ki_mobilenet_row {
    int stage, at;
    int64_t k, expanded, oc;
    bool has_squeeze;
    ki_mobile_act act;
    int64_t stride;
} ki_mobilenet_row;

typedef struct ki_mobilenet {
    int64_t stem; /* channels of the first convolution */
    int n_rows;
    const ki_mobilenet_row *rows;
    int last_stage; /* the name of the last convolution's, which has six times as many channels as the last row */
    ki_bn_attr bn;
} ki_mobilenet;

/* From the input to the last map, whose node is returned. */
int ki_mobilenet_add(ki_graph *graph, int input, const ki_mobilenet *net);

/* A stage of EfficientNet. */
typedef struct ki_efficientnet_stage {
    int64_t expansion, k, stride, oc, n_blocks;
} ki_efficientnet_stage;

/* Up to the last map, of four times as many channels as the last stage has. */
int ki_efficientnet_add(ki_graph *graph, int input, int64_t stem, int n_stages,
                        const ki_efficientnet_stage *stages, ki_bn_attr bn, double drop_path);

#endif
