/* BN-Inception: Ioffe and Szegedy, "Batch normalization: accelerating deep network training by
 * reducing internal covariate shift", ICML 2015, in the form of the Caffe model people use for
 * metric learning. Every convolution has a bias and a batch norm, then ReLU; pools are in ceil mode
 * and average pools count the padding. Names are those of Cadene's PyTorch port.
 *
 * A block joins four branches: 1x1; 1x1 then 3x3; 1x1 then two 3x3; pool then 1x1. A stride-2 block has no
 * 1x1 branch, strides on the last 3x3 of the others and passes its max pool on as it is. There the pool has
 * no padding but the convolutions have, and their outputs must have the same size: this holds for image sizes
 * from 32 k - 1 to 32 k + 6 (223 to 230, for instance). */
#include <stdio.h>

#include "base/text.h"
#include "net/backbone.h"

typedef struct settings {
    double dropout;
} settings;

static const ki_option options[] = {
    KI_OPTION_REAL(settings, dropout, 0, 0, 0.95, "share of pooled features dropped before the classifier",
                   "Ioffe and Szegedy 2015, section 4.2.1: batch norm makes it needless"),
    KI_OPTION_END};

typedef struct block {
    const char *name;
    int64_t one; /* 0: a stride-2 block */
    int64_t three_reduce, three, double_reduce, double_mid, double_out;
    int64_t pool;
    bool max_pool;
} block;

static const block blocks[] = {
    {"inception_3a", 64, 64, 64, 64, 96, 96, 32, false},
    {"inception_3b", 64, 64, 96, 64, 96, 96, 64, false},
    {"inception_3c", 0, 128, 160, 64, 96, 96, 0, true},
    {"inception_4a", 224, 64, 96, 96, 128, 128, 128, false},
    {"inception_4b", 192, 96, 128, 96, 128, 128, 128, false},
    {"inception_4c", 160, 128, 160, 128, 160, 160, 128, false},
    {"inception_4d", 96, 128, 192, 160, 192, 192, 128, false},
    {"inception_4e", 0, 128, 192, 192, 256, 256, 0, true},
    {"inception_5a", 352, 192, 320, 160, 224, 224, 128, false},
    {"inception_5b", 352, 192, 320, 192, 224, 224, 128, true},
};

/* NAME_SUFFIX with the batch norm NAME_SUFFIX_bn, then ReLU. */
static int conv(ki_graph *graph, const char *prefix, const char *suffix, int src, int64_t oc, int64_t k,
                int64_t s) {
    char name[80], bn[88];
    ki_snprintf(name, sizeof name, "%s%s", prefix, suffix);
    ki_snprintf(bn, sizeof bn, "%s_bn", name);
    return ki_conv_bn_add(graph, name, bn, src,
                          (ki_conv_bn){.oc = oc, .k = k, .s = s, .p = k / 2, .bias = true, .relu = true});
}

static int add_block(ki_graph *graph, const block *b, int src) {
    const int64_t stride = b->one > 0 ? 1 : 2;
    int branch[4], n = 0, x;
    if (b->one > 0) branch[n++] = conv(graph, b->name, "_1x1", src, b->one, 1, 1);
    x = conv(graph, b->name, "_3x3_reduce", src, b->three_reduce, 1, 1);
    branch[n++] = conv(graph, b->name, "_3x3", x, b->three, 3, stride);
    x = conv(graph, b->name, "_double_3x3_reduce", src, b->double_reduce, 1, 1);
    x = conv(graph, b->name, "_double_3x3_1", x, b->double_mid, 3, 1);
    branch[n++] = conv(graph, b->name, "_double_3x3_2", x, b->double_out, 3, stride);
    char name[72];
    ki_snprintf(name, sizeof name, "%s_pool", b->name);
    const ki_pool_attr pool = {.average = !b->max_pool,
                               .k = 3,
                               .s = stride,
                               .p = stride == 1 ? 1 : 0,
                               .ceil_mode = true,
                               .count_pad = true};
    x = ki_graph_pool(graph, name, src, pool);
    branch[n++] = b->pool > 0 ? conv(graph, b->name, "_pool_proj", x, b->pool, 1, 1) : x;
    ki_snprintf(name, sizeof name, "%s_output", b->name);
    return ki_graph_concat(graph, name, n, branch);
}

static void build(ki_graph *graph, int input, const void *settings_, ki_body *ret_body) {
    const settings *set = settings_;
    int x = conv(graph, "conv1_7x7_s2", "", input, 64, 7, 2);
    x = ki_max_pool_3x3_s2(graph, "pool1_3x3_s2", x);
    x = conv(graph, "conv2_3x3_reduce", "", x, 64, 1, 1);
    x = conv(graph, "conv2_3x3", "", x, 192, 3, 1);
    x = ki_max_pool_3x3_s2(graph, "pool2_3x3_s2", x);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) x = add_block(graph, &blocks[i], x);
    ret_body->map = x;
    ret_body->dropout = set->dropout;
    ret_body->preprocess =
        (kith_preprocess){.bgr = true, .scale = 1, .mean = {104, 117, 128}, .std = {1, 1, 1}};
}

static const char *const layers[] = {"conv1",
                                     "conv2",
                                     "inception_3a",
                                     "inception_3b",
                                     "inception_3c",
                                     "inception_4a",
                                     "inception_4b",
                                     "inception_4c",
                                     "inception_4d",
                                     "inception_4e",
                                     "inception_5a",
                                     "inception_5b",
                                     NULL};

const ki_backbone ki_backbone_bn_inception = {
    .name = "bn_inception",
    .summary = "Inception with batch norm (v2), 1024 features",
    .source = "Ioffe and Szegedy, ICML 2015; names of Cadene's PyTorch port",
    .classifier = "last_linear",
    .channels = 3,
    .size = 224,
    .least_size = 63,
    .options = options,
    .pool = KI_POOLING_BOTH,
    .tower = {"inception_4a_1x1", "inception_4e_3x3_reduce"},
    .layers = layers,
    .build = build,
};
