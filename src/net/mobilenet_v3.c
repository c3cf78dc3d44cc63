/* mobilenet_v3_large: Howard et al., "Searching for MobileNetV3", ICCV 2019, table 1. Inverted residuals with hard swish and, in
 * some, squeeze and excitation. Behind the pool the published networks have a layer more before the classifier, which computes the
 * vector that the libraries give out as features.
 *
 * Names are timm's. torchvision's weights were trained with other constants of the batch norms than timm's. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "net/mobile.h"

typedef struct settings {
    double width, eps, momentum;
    bool head;
} settings;

static const ki_option options[] = {
    KI_OPTION_REAL(settings, width, 1, 0.01, 16, "all channels are so many times as many",
                   "Howard et al. 2019, section 6.1"),
    KI_OPTION_REAL(settings, eps, 1e-3, 1e-12, 1, "added to the variances of batch norms",
                   "torchvision 0.001; timm 0.00001"),
    KI_OPTION_REAL(settings, momentum, 0.01, 0, 1, "how much a batch counts in the running statistics",
                   "torchvision 0.01; timm 0.1"),
    KI_OPTION_BOOL(settings, head, true, "the layer of 1280 numbers behind the pool", "-"), KI_OPTION_END};

enum { STEM = 16, HEAD = 1280 };
#define R KI_MOBILE_RELU
#define H KI_MOBILE_HARD_SWISH

static const ki_mobilenet_row rows[] = {
    {0, 0, 3, 16, 16, false, R, 1},  {1, 0, 3, 64, 24, false, R, 2},  {1, 1, 3, 72, 24, false, R, 1},
    {2, 0, 5, 72, 40, true, R, 2},   {2, 1, 5, 120, 40, true, R, 1},  {2, 2, 5, 120, 40, true, R, 1},
    {3, 0, 3, 240, 80, false, H, 2}, {3, 1, 3, 200, 80, false, H, 1}, {3, 2, 3, 184, 80, false, H, 1},
    {3, 3, 3, 184, 80, false, H, 1}, {4, 0, 3, 480, 112, true, H, 1}, {4, 1, 3, 672, 112, true, H, 1},
    {5, 0, 5, 672, 160, true, H, 2}, {5, 1, 5, 960, 160, true, H, 1}, {5, 2, 5, 960, 160, true, H, 1},
};
#undef R
#undef H
enum { N_ROWS = sizeof rows / sizeof rows[0] };

int ki_mobilenet_add(ki_graph *graph, int input, const ki_mobilenet *net) {
    const ki_mobile_style style = {net->bn, KI_MOBILE_RELU, KI_ACT_HARD_SIGMOID};
    char name[48], bn[48];
    int x =
        ki_mobile_conv_add(graph, "conv_stem", "bn1", input, net->stem, 3, 2, &net->bn, KI_MOBILE_HARD_SWISH);
    for (int i = 0; i < net->n_rows; i++) {
        const ki_mobilenet_row *r = &net->rows[i];
        ki_snprintf(name, sizeof name, "blocks.%d.%d", r->stage, r->at);
        const int64_t squeeze = r->has_squeeze ? ki_mobile_channels((double)r->expanded / 4) : 0;
        const ki_mobile_block b = {r->k, r->stride, r->expanded, r->oc, squeeze, r->act, 0};
        x = ki_mobile_block_add(graph, name, x, &style, &b);
    }
    ki_snprintf(name, sizeof name, "blocks.%d.0.conv", net->last_stage);
    ki_snprintf(bn, sizeof bn, "blocks.%d.0.bn1", net->last_stage);
    return ki_mobile_conv_add(graph, name, bn, x, 6 * net->rows[net->n_rows - 1].oc, 1, 1, &net->bn,
                              KI_MOBILE_HARD_SWISH);
}

static void build(ki_graph *graph, int input, const void *settings_, ki_body *ret_body) {
    const settings *set = settings_;
    ki_mobilenet_row wide[N_ROWS];
    for (int i = 0; i < N_ROWS; i++) {
        wide[i] = rows[i];
        wide[i].expanded = ki_mobile_channels((double)rows[i].expanded * set->width);
        wide[i].oc = ki_mobile_channels((double)rows[i].oc * set->width);
    }
    const ki_mobilenet net = {.stem = ki_mobile_channels(STEM * set->width),
                              .n_rows = N_ROWS,
                              .rows = wide,
                              .last_stage = 6,
                              .bn = {set->eps, set->momentum}};
    ret_body->map = ki_mobilenet_add(graph, input, &net);
    ret_body->dropout = 0.2;
    ret_body->preprocess = ki_preprocess_imagenet();
}

static int neck(ki_graph *graph, int pooled, const void *settings_) {
    const settings *set = settings_;
    if (!set->head) return pooled;
    const int64_t oc = ki_mobile_channels(HEAD * set->width);
    const int x = ki_graph_linear(graph, "conv_head", pooled, (ki_linear_attr){.oc = oc, .bias = true});
    return ki_act_add(graph, x, KI_ACT_HARD_SWISH);
}

extern const ki_naming ki_names_mobilenet_v3_torchvision, ki_names_mobile_timm;

/* Weights of torchvision and of timm differ in the constants of the norms. TensorFlow's, which timm has as tf_…, also in their padding. */
static bool recognise(const ki_backbone *self, const ki_named *t, const ki_contract *config,
                      ki_recognised *ret) {
    (void)self;
    const bool is_torchvision = ki_named_table(t) == &ki_names_mobilenet_v3_torchvision;
    const char *architecture = ki_config_word(config, "architecture");
    if (architecture && strncmp(architecture, "tf_", strlen("tf_")) == 0) return false;
    if (ki_named_extent(t, "blocks.5.2.conv_pwl.weight", 0) != 160 ||
        ki_named_extent(t, "blocks.6.0.conv.weight", 0) != 960)
        return false;
    ki_snprintf(ret->settings, sizeof ret->settings, "%s%s",
                is_torchvision ? "eps=0.001,momentum=0.01" : "eps=1e-05,momentum=0.1",
                ki_named_extent(t, "conv_head.weight", 0) > 0 ? "" : ",head=false");
    ret->sureness = 1;
    return true;
}

const ki_backbone ki_backbone_mobilenet_v3_large = {
    .name = "mobilenet_v3_large",
    .summary = "small network for phones, 1280 features (960 with head=false)",
    .source = "Howard et al., ICCV 2019; names of timm",
    .classifier = "classifier",
    .channels = 3,
    .size = 224,
    .least_size = 1,
    .options = options,
    .tower = {"blocks.3.0.conv_pw", "blocks.4.0.conv_pw"},
    .small = "width=0.25",
    .recognise = recognise,
    .torch = &ki_names_mobile_timm,
    .build = build,
    .neck = neck,
};
