/* ResNets: He, Zhang, Ren and Sun, "Deep residual learning for image recognition", CVPR 2016, with
 * torchvision's names, which timm shares. Two 3x3 convolutions (18 and 34 layers), or bottlenecks of 1x1, 3x3 and 1x1
 * convolutions (50 and 101), each with a batch norm after it, and a shortcut around them.
 *
 * The paper and its Caffe and Keras weights stride on the first 1x1 of a stage, torchvision's on the 3x3.
 * Both have the same parameters, so only the option `stride` tells them apart. A model file contains it. */
#include "net/resnet.h"

#include <stdio.h>

#include "base/text.h"

enum { PREPROCESS_TORCHVISION, PREPROCESS_CAFFE };

typedef struct settings {
    int stride, preprocess;
} settings;

static const char *const strides[] = {"3x3", "1x1", NULL};
static const char *const preprocesses[] = {"torchvision", "caffe", NULL};

static const ki_option options[] = {
    KI_OPTION_CHOICE(settings, stride, KI_RESNET_STRIDE_3X3, strides,
                     "which convolution of a stage's first block strides",
                     "torchvision 3x3; He et al. 2016, Caffe and Keras 1x1"),
    KI_OPTION_CHOICE(settings, preprocess, PREPROCESS_TORCHVISION, preprocesses,
                     "RGB 0 to 1 by mean and std, or BGR 0 to 255 minus the mean",
                     "as the weights were trained"),
    KI_OPTION_END};

/* No others have published weights of the small ones than torchvision and timm. */
static const ki_option no_options[] = {KI_OPTION_END};

/* One block: its name, width, the stride of its first pixels and whether its shortcut is a convolution. */
typedef struct block {
    const char *name;
    int64_t width, stride;
    bool project;
} block;

static int add_conv(ki_graph *graph, const block *b, const char *conv, const char *bn, int src,
                    ki_conv_bn attr) {
    char conv_name[64], bn_name[64];
    ki_snprintf(conv_name, sizeof conv_name, "%s.%s", b->name, conv);
    ki_snprintf(bn_name, sizeof bn_name, "%s.%s", b->name, bn);
    return ki_conv_bn_add(graph, conv_name, bn_name, src, attr);
}

static int add_shortcut(ki_graph *graph, const block *b, int x, int src, int64_t oc) {
    char name[64];
    if (b->project)
        src = add_conv(graph, b, "downsample.0", "downsample.1", src,
                       (ki_conv_bn){.oc = oc, .k = 1, .s = b->stride});
    ki_snprintf(name, sizeof name, "%s.add", b->name);
    return ki_graph_relu(graph, ki_graph_add(graph, name, x, src));
}

static int add_basic(ki_graph *graph, const block *b, int src) {
    const ki_conv_bn first = {.oc = b->width, .k = 3, .s = b->stride, .p = 1, .relu = true};
    const ki_conv_bn second = {.oc = b->width, .k = 3, .s = 1, .p = 1};
    const int x = add_conv(graph, b, "conv1", "bn1", src, first);
    return add_shortcut(graph, b, add_conv(graph, b, "conv2", "bn2", x, second), src, b->width);
}

static int add_bottleneck(ki_graph *graph, const block *b, int src, ki_resnet_stride which) {
    const bool on_1x1 = which == KI_RESNET_STRIDE_1X1;
    const int64_t oc = 4 * b->width;
    int x = add_conv(graph, b, "conv1", "bn1", src,
                     (ki_conv_bn){.oc = b->width, .k = 1, .s = on_1x1 ? b->stride : 1, .relu = true});
    x = add_conv(graph, b, "conv2", "bn2", x,
                 (ki_conv_bn){.oc = b->width, .k = 3, .s = on_1x1 ? 1 : b->stride, .p = 1, .relu = true});
    x = add_conv(graph, b, "conv3", "bn3", x, (ki_conv_bn){.oc = oc, .k = 1, .s = 1});
    return add_shortcut(graph, b, x, src, oc);
}

/* Stage `stage`, counted from 0. The first keeps the size of its map; basic blocks also its channels there. */
static int add_stage(ki_graph *graph, int src, int stage, const ki_resnet *net, ki_resnet_stride which) {
    for (int i = 0; i < net->n_blocks[stage]; i++) {
        char name[48];
        ki_snprintf(name, sizeof name, "layer%d.%d", stage + 1, i);
        const block b = {.name = name,
                         .width = net->width[stage],
                         .stride = i == 0 && stage > 0 ? 2 : 1,
                         .project = i == 0 && (stage > 0 || !net->is_basic)};
        src = net->is_basic ? add_basic(graph, &b, src) : add_bottleneck(graph, &b, src, which);
    }
    return src;
}

int ki_resnet_add(ki_graph *graph, int input, const ki_resnet *net, ki_resnet_stride stride) {
    int x = ki_conv_bn_add(graph, "conv1", "bn1", input,
                           (ki_conv_bn){.oc = net->width[0], .k = 7, .s = 2, .p = 3, .relu = true});
    x = ki_graph_pool(graph, "maxpool", x, (ki_pool_attr){.k = 3, .s = 2, .p = 1});
    for (int stage = 0; stage < KI_RESNET_STAGES; stage++) x = add_stage(graph, x, stage, net, stride);
    return x;
}

static const ki_resnet resnet18 = {true, {2, 2, 2, 2}, {64, 128, 256, 512}};
static const ki_resnet resnet34 = {true, {3, 4, 6, 3}, {64, 128, 256, 512}};
static const ki_resnet resnet50 = {false, {3, 4, 6, 3}, {64, 128, 256, 512}};
static const ki_resnet resnet101 = {false, {3, 4, 23, 3}, {64, 128, 256, 512}};

static void build_basic(ki_graph *graph, int input, const ki_resnet *net, ki_body *ret_body) {
    ret_body->map = ki_resnet_add(graph, input, net, KI_RESNET_STRIDE_3X3);
    ret_body->preprocess = ki_preprocess_imagenet();
}

static void build_bottlenecks(ki_graph *graph, int input, const ki_resnet *net, const settings *set,
                              ki_body *ret_body) {
    ret_body->map = ki_resnet_add(graph, input, net, (ki_resnet_stride)set->stride);
    ret_body->preprocess =
        set->preprocess == PREPROCESS_CAFFE
            ? (kith_preprocess){.bgr = true, .scale = 1, .mean = {103.939, 116.779, 123.68}, .std = {1, 1, 1}}
            : ki_preprocess_imagenet();
}

static void build18(ki_graph *graph, int input, const void *set, ki_body *ret_body) {
    (void)set;
    build_basic(graph, input, &resnet18, ret_body);
}

static void build34(ki_graph *graph, int input, const void *set, ki_body *ret_body) {
    (void)set;
    build_basic(graph, input, &resnet34, ret_body);
}

static void build50(ki_graph *graph, int input, const void *set, ki_body *ret_body) {
    build_bottlenecks(graph, input, &resnet50, set, ret_body);
}

static void build101(ki_graph *graph, int input, const void *set, ki_body *ret_body) {
    build_bottlenecks(graph, input, &resnet101, set, ret_body);
}

/* What all of them have in common. */
#define RECORD                                                                                              \
    .source = "He et al., CVPR 2016; names of torchvision", .classifier = "fc", .channels = 3, .size = 224, \
    .least_size = 1, .pool = KI_POOLING_BOTH, .tower = {"layer3.0.conv1", "layer4.0.conv1"}

const ki_backbone ki_backbone_resnet18 = {RECORD, .name = "resnet18",
                                          .summary = "residual network of 18 layers, 512 features",
                                          .options = no_options, .build = build18};

const ki_backbone ki_backbone_resnet34 = {RECORD, .name = "resnet34",
                                          .summary = "residual network of 34 layers, 512 features",
                                          .options = no_options, .build = build34};

const ki_backbone ki_backbone_resnet50 = {RECORD, .name = "resnet50",
                                          .summary = "residual network of 50 layers, 2048 features",
                                          .options = options, .build = build50};

const ki_backbone ki_backbone_resnet101 = {RECORD, .name = "resnet101",
                                           .summary = "residual network of 101 layers, 2048 features",
                                           .options = options, .build = build101};
