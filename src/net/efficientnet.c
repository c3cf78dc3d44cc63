/* efficientnet_b0: Tan and Le, "EfficientNet: rethinking model scaling for convolutional neural networks", ICML 2019, table 1.
 * Inverted residuals with squeeze and excitation and SiLU. B1 to B7 are the same with more channels and blocks (`width`, `depth`).
 * Names are timm's. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "net/mobile.h"

typedef struct settings {
    double width, depth, eps, momentum, drop_path, dropout;
} settings;

static const ki_option options[] = {
    KI_OPTION_REAL(settings, width, 1, 0.01, 16, "all channels are so many times as many",
                   "B1 1.0, B2 1.1, B3 1.2, B4 1.4, B5 1.6, B6 1.8, B7 2.0"),
    KI_OPTION_REAL(settings, depth, 1, 0.01, 16, "each stage has so many times as many blocks",
                   "B1 1.1, B2 1.2, B3 1.4, B4 1.8, B5 2.2, B6 2.6, B7 3.1"),
    KI_OPTION_REAL(settings, eps, 1e-5, 1e-12, 1, "added to the variances of batch norms",
                   "torchvision, of B5 to B7 0.001; timm"),
    KI_OPTION_REAL(settings, momentum, 0.1, 0, 1, "how much a batch counts in the running statistics",
                   "torchvision, of B5 to B7 0.01; timm"),
    KI_OPTION_REAL(settings, drop_path, 0, 0, 0.99,
                   "how often training leaves out the last block; the ones before it less often",
                   "Tan and Le 2019, section 5.2, train with 0.2"),
    KI_OPTION_REAL(settings, dropout, 0.2, 0, 0.99, "before the classifier", "Tan and Le 2019, section 5.2"),
    KI_OPTION_END};

enum { STEM = 32 };

static const ki_efficientnet_stage stages[] = {{1, 3, 1, 16, 1}, {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2},
                                               {6, 3, 2, 80, 3}, {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4},
                                               {6, 3, 1, 320, 1}};
enum { N_STAGES = sizeof stages / sizeof stages[0] };

int ki_efficientnet_add(ki_graph *graph, int input, int64_t stem, int n_stages,
                        const ki_efficientnet_stage *table, ki_bn_attr bn, double drop_path) {
    const ki_mobile_style style = {bn, KI_MOBILE_SILU, KI_ACT_SIGMOID};
    int64_t n = 0, at = 0, ic = stem;
    for (int s = 0; s < n_stages; s++) n += table[s].n_blocks;
    int x = ki_mobile_conv_add(graph, "conv_stem", "bn1", input, stem, 3, 2, &bn, KI_MOBILE_SILU);
    for (int s = 0; s < n_stages; s++) {
        for (int64_t i = 0; i < table[s].n_blocks; i++, at++) {
            char name[48];
            ki_snprintf(name, sizeof name, "blocks.%d.%d", s, (int)i);
            const ki_mobile_block b = {.k = table[s].k,
                                       .stride = i == 0 ? table[s].stride : 1,
                                       .expanded = ki_mobile_channels((double)(ic * table[s].expansion)),
                                       .oc = table[s].oc,
                                       .squeeze = ic / 4 > 0 ? ic / 4 : 1,
                                       .act = KI_MOBILE_SILU,
                                       .drop_path = drop_path * (double)at / (double)n};
            x = ki_mobile_block_add(graph, name, x, &style, &b);
            ic = b.oc;
        }
    }
    return ki_mobile_conv_add(graph, "conv_head", "bn2", x, 4 * ic, 1, 1, &bn, KI_MOBILE_SILU);
}

static void build(ki_graph *graph, int input, const void *settings_, ki_body *ret_body) {
    const settings *set = settings_;
    ki_efficientnet_stage scaled[N_STAGES];
    for (int s = 0; s < N_STAGES; s++) {
        scaled[s] = stages[s];
        scaled[s].oc = ki_mobile_channels((double)stages[s].oc * set->width);
        scaled[s].n_blocks = (int64_t)ceil((double)stages[s].n_blocks * set->depth);
    }
    ret_body->map = ki_efficientnet_add(graph, input, ki_mobile_channels(STEM * set->width), N_STAGES, scaled,
                                        (ki_bn_attr){set->eps, set->momentum}, set->drop_path);
    ret_body->dropout = set->dropout;
    ret_body->preprocess = ki_preprocess_imagenet();
}

/* B0 to B7, the sides of their images, and dropout. */
static const struct {
    double width, depth, dropout;
    int64_t side;
} sizes[] = {{1.0, 1.0, 0.2, 224}, {1.0, 1.1, 0.2, 240}, {1.1, 1.2, 0.3, 260}, {1.2, 1.4, 0.3, 300},
             {1.4, 1.8, 0.4, 380}, {1.6, 2.2, 0.4, 456}, {1.8, 2.6, 0.5, 528}, {2.0, 3.1, 0.5, 600}};

extern const ki_naming ki_names_efficientnet_torchvision, ki_names_mobile_timm;

/* The channels and the depth of the longest stage tell the sizes apart. timm's TensorFlow weights, tf_…, have another padding. */
static bool recognise(const ki_backbone *self, const ki_named *t, const ki_contract *config,
                      ki_recognised *ret) {
    (void)self;
    const char *architecture = ki_config_word(config, "architecture");
    const int64_t oc = ki_named_extent(t, "blocks.5.0.conv_pwl.weight", 0);
    const int64_t depth = ki_named_depth(t, "blocks.5.#.conv_pwl.weight");
    const int64_t last = ki_named_extent(t, "blocks.6.0.conv_pwl.weight", 0);
    if (architecture && strncmp(architecture, "tf_", strlen("tf_")) == 0) return false;
    if (last < 1 || ki_named_extent(t, "conv_head.weight", 0) != 4 * last) return false;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (ki_mobile_channels((double)stages[5].oc * sizes[i].width) != oc ||
            (int64_t)ceil((double)stages[5].n_blocks * sizes[i].depth) != depth)
            continue;
        const bool is_large = i >= 5 && ki_named_table(t) == &ki_names_efficientnet_torchvision;
        ki_snprintf(ret->settings, sizeof ret->settings, "width=%.1f,depth=%.1f,dropout=%.1f%s",
                    sizes[i].width, sizes[i].depth, sizes[i].dropout,
                    is_large ? ",eps=0.001,momentum=0.01" : "");
        ret->side = sizes[i].side;
        ret->sureness = 1;
        return true;
    }
    return false;
}

const ki_backbone ki_backbone_efficientnet_b0 = {
    .name = "efficientnet_b0",
    .summary = "small network with squeeze and excitation, 1280 features",
    .source = "Tan and Le, ICML 2019; names of timm",
    .classifier = "classifier",
    .channels = 3,
    .size = 224,
    .least_size = 1,
    .options = options,
    .tower = {"blocks.3.0.conv_pw", "blocks.4.0.conv_pw"},
    .small = "width=0.25,depth=0.25",
    .recognise = recognise,
    .torch = &ki_names_mobile_timm,
    .build = build,
};
