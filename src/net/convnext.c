/* ConvNeXts: Liu, Mao, Wu, Feichtenhofer, Darrell and Xie, "A ConvNet for the 2020s", CVPR 2022; version 2: Woo, Debnath, Hu,
 * Chen, Liu, Kweon and Xie, "ConvNeXt V2", CVPR 2023. The names are timm's.
 *
 * A block is a depthwise 7x7 convolution, a layer norm over the channels of each pixel, and two layers pixel by pixel with
 * a GELU between them (and in version 2 a response normalisation). The libraries have linear layers for these; here they are
 * 1x1 convolutions, which compute the same and leave the map where it is. The last norm is behind the pool. */
#include "net/convnext.h"

#include <math.h>
#include <stdio.h>

#include "base/text.h"

enum { EXPANSION = 4 };
static const double eps = 1e-6;
static const double first_scale = 1e-6; /* of layer scale: Liu et al., appendix A.1 */

static int add_norm(ki_graph *graph, const char *name, int src) {
    return ki_graph_layer_norm(graph, name, src, (ki_layer_norm_attr){.eps = eps});
}

/* Square, with a bias, and weights that start as those of a transformer. */
static int add_conv(ki_graph *graph, const char *name, int src, ki_conv_attr attr) {
    attr.kw = attr.kh, attr.sw = attr.sh, attr.pw = attr.ph;
    attr.bias = true;
    attr.start = KI_START_SMALL;
    return ki_graph_conv(graph, name, src, attr);
}

typedef struct block {
    const char *name;
    int64_t width;
    bool has_grn;
    double drop_path;
} block;

static int add_block(ki_graph *graph, const block *b, int src) {
    char name[64];
#define NAME(part) (ki_snprintf(name, sizeof name, "%s." part, b->name), name)
    int x = add_conv(graph, NAME("conv_dw"), src,
                     (ki_conv_attr){.oc = b->width, .kh = 7, .sh = 1, .ph = 3, .groups = b->width});
    x = add_norm(graph, NAME("norm"), x);
    x = add_conv(graph, NAME("mlp.fc1"), x, (ki_conv_attr){.oc = EXPANSION * b->width, .kh = 1, .sh = 1});
    x = ki_act_add(graph, x, KI_ACT_GELU);
    if (b->has_grn) x = ki_graph_op(graph, KI_OP_GRN, NAME("mlp.grn"), 1, &x, (ki_attr){.grn = {eps}});
    x = add_conv(graph, NAME("mlp.fc2"), x, (ki_conv_attr){.oc = b->width, .kh = 1, .sh = 1});
    if (!b->has_grn)
        x = ki_graph_op(graph, KI_OP_LAYER_SCALE, b->name, 1, &x, (ki_attr){.layer_scale = {first_scale}});
    return ki_graph_add(graph, NAME("add"), src, ki_drop_path_add(graph, x, b->drop_path));
#undef NAME
}

/* Half the map's sides, from the second stage on. */
static int add_downsample(ki_graph *graph, int stage, int src, int64_t width) {
    char name[64];
    ki_snprintf(name, sizeof name, "stages.%d.downsample.0", stage);
    src = add_norm(graph, name, src);
    ki_snprintf(name, sizeof name, "stages.%d.downsample.1", stage);
    return add_conv(graph, name, src, (ki_conv_attr){.oc = width, .kh = 2, .sh = 2});
}

int ki_convnext_add(ki_graph *graph, int input, const ki_convnext *net) {
    int64_t n = 0, at = 0;
    for (int stage = 0; stage < KI_CONVNEXT_STAGES; stage++) n += net->n_blocks[stage];
    int x = add_conv(graph, "stem.0", input, (ki_conv_attr){.oc = net->width[0], .kh = 4, .sh = 4});
    x = add_norm(graph, "stem.1", x);
    for (int stage = 0; stage < KI_CONVNEXT_STAGES; stage++) {
        if (stage > 0) x = add_downsample(graph, stage, x, net->width[stage]);
        for (int i = 0; i < net->n_blocks[stage]; i++, at++) {
            char name[48];
            ki_snprintf(name, sizeof name, "stages.%d.blocks.%d", stage, i);
            const block b = {.name = name,
                             .width = net->width[stage],
                             .has_grn = net->has_grn,
                             .drop_path = n > 1 ? net->drop_path * (double)at / (double)(n - 1) : 0};
            x = add_block(graph, &b, x);
        }
    }
    return x;
}

int ki_convnext_neck(ki_graph *graph, int pooled, const void *settings) {
    (void)settings;
    return add_norm(graph, "head.norm", pooled);
}

/* ---- the records ---- */

typedef struct settings {
    int64_t width, depth, blocks;
    double drop_path;
} settings;

/* Which of the published networks it is says the depth of its third stage. */
#define OPTIONS(depth_, source_, drop_path_source_)                                                       \
    {                                                                                                     \
        KI_OPTION_INT(settings, width, 96, 1, 4096,                                                       \
                      "channels of the first stage; each next stage has twice as many", source_),         \
            KI_OPTION_INT(settings, depth, depth_, 1, 256, "blocks of the third stage", source_),         \
            KI_OPTION_INT(settings, blocks, 3, 1, 256, "blocks of each of the other stages", source_),    \
            KI_OPTION_REAL(settings, drop_path, 0, 0, 0.99,                                               \
                           "how often training leaves out the last block; the ones before it less often", \
                           drop_path_source_),                                                            \
            KI_OPTION_END                                                                                 \
    }

static const ki_option options_t[] =
    OPTIONS(9, "Liu et al. 2022", "Liu et al. 2022, table 5, train with 0.1");
static const ki_option options_s[] =
    OPTIONS(27, "Liu et al. 2022", "Liu et al. 2022, table 5, train with 0.4");
static const ki_option options_v2_t[] = OPTIONS(9, "Woo et al. 2023", "Woo et al. 2023 train with 0.2");

static void build(ki_graph *graph, int input, const settings *set, bool has_grn, ki_body *ret_body) {
    const int64_t w = set->width, n = set->blocks;
    const ki_convnext net = {.n_blocks = {n, n, set->depth, n},
                             .width = {w, 2 * w, 4 * w, 8 * w},
                             .has_grn = has_grn,
                             .drop_path = set->drop_path};
    ret_body->map = ki_convnext_add(graph, input, &net);
    ret_body->preprocess = ki_preprocess_imagenet();
}

static void build_v1(ki_graph *graph, int input, const void *set, ki_body *ret_body) {
    build(graph, input, set, false, ret_body);
}

static void build_v2(ki_graph *graph, int input, const void *set, ki_body *ret_body) {
    build(graph, input, set, true, ret_body);
}

/* Any size of the family, as most like this row as its depth is. */
static bool recognise(const ki_backbone *self, const ki_named *t, const ki_contract *config,
                      ki_recognised *ret) {
    settings own;
    const int64_t width = ki_named_extent(t, "stem.0.weight", 0);
    const int64_t depth = ki_named_depth(t, "stages.2.blocks.#.norm.weight");
    const int64_t blocks = ki_named_depth(t, "stages.0.blocks.#.norm.weight");
    if (width < 1 || depth < 1 || blocks < 1 || ki_named_extent(t, "head.norm.weight", 0) != 8 * width)
        return false;
    ki_config_check_word(config, "hidden_act", "gelu", ret->fault, sizeof ret->fault);
    ki_options_default(self->options, &own);
    ki_snprintf(ret->settings, sizeof ret->settings, "width=%d,depth=%d,blocks=%d", (int)width, (int)depth,
                (int)blocks);
    ret->sureness = 1 / (1 + fabs(log((double)depth / (double)own.depth)));
    return true;
}

static bool recognise_v1(const ki_backbone *self, const ki_named *t, const ki_contract *config,
                         ki_recognised *ret) {
    return ki_named_extent(t, "stages.0.blocks.0.gamma", 0) > 0 && recognise(self, t, config, ret);
}

static bool recognise_v2(const ki_backbone *self, const ki_named *t, const ki_contract *config,
                         ki_recognised *ret) {
    return ki_named_extent(t, "stages.0.blocks.0.mlp.grn.weight", 0) > 0 && recognise(self, t, config, ret);
}

extern const ki_naming ki_names_convnext_timm;

/* What all of them have in common. A tower begins behind a downsampling: 2x2 windows that move by one pixel would leave the
 * map smaller. */
#define RECORD                                                                                            \
    .classifier = "head.fc", .channels = 3, .size = 224, .least_size = 32,                                \
    .small = "width=8,depth=2,blocks=1", .tower = {"stages.2.blocks.0.conv_dw", "stages.3.downsample.0"}, \
    .neck = ki_convnext_neck, .torch = &ki_names_convnext_timm

const ki_backbone ki_backbone_convnext_t = {RECORD,
                                            .name = "convnext_t",
                                            .summary = "ConvNeXt of 18 blocks, 768 features",
                                            .source = "Liu et al., CVPR 2022; names of timm",
                                            .options = options_t,
                                            .recognise = recognise_v1,
                                            .build = build_v1};

const ki_backbone ki_backbone_convnext_s = {
    RECORD,
    .name = "convnext_s",
    .summary = "ConvNeXt of 36 blocks, 768 features; base is width 128",
    .source = "Liu et al., CVPR 2022; names of timm",
    .options = options_s,
    .recognise = recognise_v1,
    .build = build_v1};

const ki_backbone ki_backbone_convnext_v2_t = {RECORD,
                                               .name = "convnext_v2_t",
                                               .summary = "ConvNeXt V2 of 18 blocks, 768 features",
                                               .source = "Woo et al., CVPR 2023; names of timm",
                                               .options = options_v2_t,
                                               .recognise = recognise_v2,
                                               .build = build_v2};
