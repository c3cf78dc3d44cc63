/* Inverted residuals: Sandler et al., "MobileNetV2", CVPR 2018; with squeeze and excitation: Tan et al., "MnasNet", CVPR 2019.
 * A 1x1 convolution to many channels, a depthwise one, and a 1x1 one back to few, each with a batch norm; the shortcut is between the
 * few. Names are timm's, which calls a block without expansion by other names: its last convolution is conv_pw there. */
#include "net/mobile.h"

#include <stdio.h>

#include "base/text.h"

int64_t ki_mobile_channels(double x) {
    const int64_t n = (int64_t)(x + 4) / 8 * 8, least = n < 8 ? 8 : n;
    return (double)least < 0.9 * x ? least + 8 : least;
}

int ki_mobile_act_add(ki_graph *graph, int src, ki_mobile_act act) {
    if (act == KI_MOBILE_RELU) return ki_graph_relu(graph, src);
    return ki_act_add(graph, src, act == KI_MOBILE_SILU ? KI_ACT_SILU : KI_ACT_HARD_SWISH);
}

/* A convolution that keeps the size of its map but for its stride, with its norm. */
static int add_conv_bn(ki_graph *graph, const char *conv, const char *bn, int src, ki_conv_attr attr,
                       const ki_bn_attr *norm) {
    attr.kw = attr.kh, attr.sw = attr.sh;
    attr.ph = attr.pw = attr.kh / 2;
    return ki_graph_batch_norm(graph, bn, ki_graph_conv(graph, conv, src, attr), *norm);
}

int ki_mobile_conv_add(ki_graph *graph, const char *conv, const char *bn, int src, int64_t oc, int64_t k,
                       int64_t stride, const ki_bn_attr *attr, ki_mobile_act act) {
    const ki_conv_attr a = {.oc = oc, .kh = k, .sh = stride};
    return ki_mobile_act_add(graph, add_conv_bn(graph, conv, bn, src, a, attr), act);
}

/* Squeeze and excitation: Hu, Shen and Sun, CVPR 2018. Its two layers see one pixel, so they are linear. */
static int add_squeeze(ki_graph *graph, const char *name, int src, const ki_mobile_style *style,
                       const ki_mobile_block *b) {
    char layer[64];
    int x = ki_graph_global_pool(graph, NULL, src, (ki_global_pool_attr){KI_GLOBAL_AVG});
    ki_snprintf(layer, sizeof layer, "%s.se.conv_reduce", name);
    x = ki_graph_linear(graph, layer, x, (ki_linear_attr){.oc = b->squeeze, .bias = true});
    x = ki_mobile_act_add(graph, x, style->squeeze_act);
    ki_snprintf(layer, sizeof layer, "%s.se.conv_expand", name);
    x = ki_graph_linear(graph, layer, x, (ki_linear_attr){.oc = b->expanded, .bias = true});
    x = ki_act_add(graph, x, style->gate);
    return ki_graph_op(graph, KI_OP_GATE, NULL, 2, (int[]){src, x}, (ki_attr){0});
}

int ki_mobile_block_add(ki_graph *graph, const char *name, int src, const ki_mobile_style *style,
                        const ki_mobile_block *b) {
    char conv[64], bn[64];
#define NAMES(c, n) \
    (ki_snprintf(conv, sizeof conv, "%s." c, name), ki_snprintf(bn, sizeof bn, "%s.bn%d", name, n))
    if (src < 0) return src; /* the graph keeps the error */
    const int64_t ic = ki_graph_node(graph, src)->shape.dim[1];
    const bool expands = b->expanded != ic;
    int x = src;
    if (expands) {
        NAMES("conv_pw", 1);
        x = ki_mobile_conv_add(graph, conv, bn, x, b->expanded, 1, 1, &style->bn, b->act);
    }
    NAMES("conv_dw", expands ? 2 : 1);
    const ki_conv_attr deep = {.oc = b->expanded, .kh = b->k, .sh = b->stride, .groups = b->expanded};
    x = ki_mobile_act_add(graph, add_conv_bn(graph, conv, bn, x, deep, &style->bn), b->act);
    if (b->squeeze > 0) x = add_squeeze(graph, name, x, style, b);
    if (expands)
        NAMES("conv_pwl", 3);
    else
        NAMES("conv_pw", 2);
    x = add_conv_bn(graph, conv, bn, x, (ki_conv_attr){.oc = b->oc, .kh = 1, .sh = 1}, &style->bn);
#undef NAMES
    if (b->stride > 1 || b->oc != ic) return x;
    ki_snprintf(conv, sizeof conv, "%s.add", name);
    return ki_graph_add(graph, conv, ki_drop_path_add(graph, x, b->drop_path), src);
}
