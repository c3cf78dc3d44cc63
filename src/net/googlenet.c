/* GoogLeNet, also called Inception v1: Szegedy et al., "Going deeper with convolutions", CVPR 2015,
 * in the form of the BVLC Caffe model: local response normalisation, no batch norm, pools in ceil
 * mode, a true 5x5 in the third branch. The two auxiliary classifiers serve training from scratch
 * only and are left out.
 *
 * A block joins four branches: 1x1; 1x1 then 3x3; 1x1 then 5x5; 3x3 max pool then 1x1. */
#include <stdio.h>

#include "base/text.h"
#include "net/backbone.h"

typedef struct settings {
    double dropout;
} settings;

static const ki_option options[] = {
    KI_OPTION_REAL(settings, dropout, 0.4, 0, 0.95, "share of pooled features dropped before the classifier",
                   "Szegedy et al. 2015, table 1"),
    KI_OPTION_END};

typedef struct block {
    const char *name;
    int64_t one, three_reduce, three, five_reduce, five, pool;
    bool is_last; /* a stride-2 pool follows */
} block;

static const block blocks[] = {
    {"inception3a", 64, 96, 128, 16, 32, 32, false},     {"inception3b", 128, 128, 192, 32, 96, 64, true},
    {"inception4a", 192, 96, 208, 16, 48, 64, false},    {"inception4b", 160, 112, 224, 24, 64, 64, false},
    {"inception4c", 128, 128, 256, 24, 64, 64, false},   {"inception4d", 112, 144, 288, 32, 64, 64, false},
    {"inception4e", 256, 160, 320, 32, 128, 128, true},  {"inception5a", 256, 160, 320, 32, 128, 128, false},
    {"inception5b", 384, 192, 384, 48, 128, 128, false},
};

static const char *join(char *buf, size_t buf_bytes, const char *a, const char *b) {
    ki_snprintf(buf, buf_bytes, "%s%s", a, b);
    return buf;
}

static int add_block(ki_graph *graph, const block *b, int src) {
    char name[64];
#define NAME(suffix) join(name, sizeof name, b->name, suffix)
    int branch[4];
    branch[0] = ki_conv_relu(graph, NAME(".branch1.conv"), src, b->one, 1, 1, 0);
    branch[1] = ki_conv_relu(graph, NAME(".branch2.0.conv"), src, b->three_reduce, 1, 1, 0);
    branch[1] = ki_conv_relu(graph, NAME(".branch2.1.conv"), branch[1], b->three, 3, 1, 1);
    branch[2] = ki_conv_relu(graph, NAME(".branch3.0.conv"), src, b->five_reduce, 1, 1, 0);
    branch[2] = ki_conv_relu(graph, NAME(".branch3.1.conv"), branch[2], b->five, 5, 1, 2);
    branch[3] = ki_graph_pool(graph, NAME(".branch4.0"), src,
                              (ki_pool_attr){.k = 3, .s = 1, .p = 1, .ceil_mode = true});
    branch[3] = ki_conv_relu(graph, NAME(".branch4.1.conv"), branch[3], b->pool, 1, 1, 0);
    return ki_graph_concat(graph, NAME(""), 4, branch);
#undef NAME
}

static void build(ki_graph *graph, int input, const void *settings_, ki_body *ret_body) {
    const settings *set = settings_;
    const ki_lrn_attr lrn = {.size = 5, .alpha = 1e-4, .beta = 0.75, .k = 1};
    int x = ki_conv_relu(graph, "conv1.conv", input, 64, 7, 2, 3);
    x = ki_max_pool_3x3_s2(graph, "maxpool1", x);
    x = ki_graph_lrn(graph, "lrn1", x, lrn);
    x = ki_conv_relu(graph, "conv2.conv", x, 64, 1, 1, 0);
    x = ki_conv_relu(graph, "conv3.conv", x, 192, 3, 1, 1);
    x = ki_graph_lrn(graph, "lrn2", x, lrn);
    x = ki_max_pool_3x3_s2(graph, "maxpool2", x);
    int n_pools = 2;
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        x = add_block(graph, &blocks[i], x);
        if (!blocks[i].is_last) continue;
        char name[32];
        ki_snprintf(name, sizeof name, "maxpool%d", ++n_pools);
        x = ki_max_pool_3x3_s2(graph, name, x);
    }
    ret_body->map = x;
    ret_body->dropout = set->dropout;
    ret_body->preprocess =
        (kith_preprocess){.bgr = true, .scale = 1, .mean = {104, 117, 123}, .std = {1, 1, 1}};
}

const ki_backbone ki_backbone_googlenet = {
    .name = "googlenet",
    .summary = "Inception v1 as BVLC trained it: LRN, no batch norm, 1024 features",
    .source = "Szegedy et al., CVPR 2015; BVLC Caffe model zoo",
    .classifier = "fc",
    .channels = 3,
    .size = 224,
    .least_size = 47,
    .options = options,
    .pool = KI_POOLING_BOTH,
    .tower = {"inception4a.branch1.conv", "maxpool4"},
    .build = build,
};
