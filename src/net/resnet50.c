/* ResNet-50: He, Zhang, Ren and Sun, "Deep residual learning for image recognition", CVPR 2016, with
 * torchvision's names. Bottlenecks of 1x1, 3x3 and 1x1 convolutions, each with a batch norm after it, and a
 * shortcut around them; stages of 3, 4, 6 and 3.
 *
 * The paper and its Caffe and Keras weights stride on the first 1x1 of a stage, torchvision's on the 3x3.
 * Both have the same parameters, so only the option `stride` tells them apart. A model file contains it. */
#include <stdio.h>

#include "base/text.h"
#include "net/backbone.h"

enum { STRIDE_3X3, STRIDE_1X1 };
enum { PREPROCESS_TORCHVISION, PREPROCESS_CAFFE };

typedef struct settings {
    int stride, preprocess;
} settings;

static const char *const strides[] = {"3x3", "1x1", NULL};
static const char *const preprocesses[] = {"torchvision", "caffe", NULL};

static const ki_option options[] = {
    KI_OPTION_CHOICE(settings, stride, STRIDE_3X3, strides,
                     "which convolution of a stage's first block strides",
                     "torchvision 3x3; He et al. 2016, Caffe and Keras 1x1"),
    KI_OPTION_CHOICE(settings, preprocess, PREPROCESS_TORCHVISION, preprocesses,
                     "RGB 0 to 1 by mean and std, or BGR 0 to 255 minus the mean",
                     "as the weights were trained"),
    KI_OPTION_END};

static int add_bottleneck(ki_graph *graph, const char *name, int src, int64_t width, int64_t stride,
                          bool project, int which) {
    char conv[64], bn[64];
#define NAMES(c, b) (ki_snprintf(conv, sizeof conv, "%s." c, name), ki_snprintf(bn, sizeof bn, "%s." b, name))
    const int64_t first = which == STRIDE_1X1 ? stride : 1, second = which == STRIDE_1X1 ? 1 : stride;
    NAMES("conv1", "bn1");
    int x = ki_conv_bn_add(graph, conv, bn, src, (ki_conv_bn){.oc = width, .k = 1, .s = first, .relu = true});
    NAMES("conv2", "bn2");
    x = ki_conv_bn_add(graph, conv, bn, x,
                       (ki_conv_bn){.oc = width, .k = 3, .s = second, .p = 1, .relu = true});
    NAMES("conv3", "bn3");
    x = ki_conv_bn_add(graph, conv, bn, x, (ki_conv_bn){.oc = 4 * width, .k = 1, .s = 1});
    if (project) {
        NAMES("downsample.0", "downsample.1");
        src = ki_conv_bn_add(graph, conv, bn, src, (ki_conv_bn){.oc = 4 * width, .k = 1, .s = stride});
    }
#undef NAMES
    ki_snprintf(conv, sizeof conv, "%s.add", name);
    return ki_graph_relu(graph, ki_graph_add(graph, conv, x, src));
}

static const int n_blocks[] = {3, 4, 6, 3};

/* Stage `stage`, counted from 0; stride: of its first block. */
static int add_stage(ki_graph *graph, int src, int stage, int64_t stride, int which) {
    for (int i = 0; i < n_blocks[stage]; i++) {
        char name[48];
        ki_snprintf(name, sizeof name, "layer%d.%d", stage + 1, i);
        src = add_bottleneck(graph, name, src, (int64_t)64 << stage, i == 0 ? stride : 1, i == 0, which);
    }
    return src;
}

static void build(ki_graph *graph, int input, const void *settings_, ki_body *ret_body) {
    const settings *set = settings_;
    int x = ki_conv_bn_add(graph, "conv1", "bn1", input,
                           (ki_conv_bn){.oc = 64, .k = 7, .s = 2, .p = 3, .relu = true});
    x = ki_graph_pool(graph, "maxpool", x, (ki_pool_attr){.k = 3, .s = 2, .p = 1});
    for (int stage = 0; stage < 4; stage++) x = add_stage(graph, x, stage, stage > 0 ? 2 : 1, set->stride);
    ret_body->map = x;
    ret_body->dropout = 0;
    ret_body->preprocess =
        set->preprocess == PREPROCESS_CAFFE
            ? (kith_preprocess){.bgr = true, .scale = 1, .mean = {103.939, 116.779, 123.68}, .std = {1, 1, 1}}
            : (kith_preprocess){
                  .scale = 1.0 / 255, .mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}};
}

const ki_backbone ki_backbone_resnet50 = {
    .name = "resnet50",
    .summary = "residual network of 50 layers, 2048 features",
    .source = "He et al., CVPR 2016; names of torchvision",
    .classifier = "fc",
    .channels = 3,
    .size = 224,
    .least_size = 1,
    .options = options,
    .pool = KI_POOLING_BOTH,
    .tower = {"layer3.0.conv1", "layer4.0.conv1"},
    .build = build,
};
