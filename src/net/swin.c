/* Swin: Liu et al., "Swin transformer: hierarchical vision transformer using shifted windows", ICCV 2021. The names are timm's.
 *
 * Tokens attend to those of their own window; every second block moves the windows by half a side. Where the grid of tokens is no
 * multiple of the window it is padded with zeros, whose keys and values are the biases, as in the paper's code. A stage that
 * has one window only does not shift. A grid smaller than the window is padded, too (torchvision); other libraries
 * make the window smaller, but its table of biases then is another parameter. */
#include "net/swin.h"

#include <stdio.h>

#include "base/text.h"

static const double eps = 1e-5;

/* Tokens of a grid of h x w. */
typedef struct grid {
    int64_t h, w, width;
} grid;

typedef struct block {
    const char *name;
    int64_t heads, window, shift, hidden;
    double drop_path;
} block;

static int64_t windows_along(int64_t extent, int64_t window) { return (extent + window - 1) / window; }

static int add_norm(ki_graph *graph, const char *name, int src) {
    return ki_graph_layer_norm(graph, name, src, (ki_layer_norm_attr){.eps = eps});
}

static int add_linear(ki_graph *graph, const char *name, int src, int64_t oc, bool bias) {
    return ki_graph_linear(graph, name, src,
                           (ki_linear_attr){.oc = oc, .bias = bias, .start = KI_START_SMALL});
}

static int add_attention(ki_graph *graph, const block *b, int src, const grid *g) {
    char name[64];
#define NAME(part) (ki_snprintf(name, sizeof name, "%s." part, b->name), name)
    ki_windows_attr cut = {.side = b->window, .shift = b->shift, .h = g->h, .w = g->w};
    const ki_attention_attr attention = {.heads = b->heads,
                                         .window = b->window,
                                         .shift = b->shift,
                                         .h = windows_along(g->h, b->window),
                                         .w = windows_along(g->w, b->window)};
    int x = add_norm(graph, NAME("norm1"), src);
    x = ki_graph_op(graph, KI_OP_WINDOWS, NULL, 1, &x, (ki_attr){.windows = cut});
    x = add_linear(graph, NAME("attn.qkv"), x, 3 * g->width, true);
    x = ki_graph_op(graph, KI_OP_ATTENTION, NAME("attn"), 1, &x, (ki_attr){.attention = attention});
    x = add_linear(graph, NAME("attn.proj"), x, g->width, true);
    cut.back = true;
    x = ki_graph_op(graph, KI_OP_WINDOWS, NULL, 1, &x, (ki_attr){.windows = cut});
    return ki_graph_add(graph, NAME("add1"), src, ki_drop_path_add(graph, x, b->drop_path));
}

static int add_mlp(ki_graph *graph, const block *b, int src, const grid *g) {
    char name[64];
    int x = add_norm(graph, NAME("norm2"), src);
    x = add_linear(graph, NAME("mlp.fc1"), x, b->hidden, true);
    x = ki_act_add(graph, x, KI_ACT_GELU);
    x = add_linear(graph, NAME("mlp.fc2"), x, g->width, true);
    return ki_graph_add(graph, NAME("add2"), src, ki_drop_path_add(graph, x, b->drop_path));
#undef NAME
}

/* Half the grid's sides, twice the width. */
static int add_merge(ki_graph *graph, int stage, int src, grid *g) {
    char name[64];
    const ki_merge_attr merge = {g->h, g->w};
    *g = (grid){(g->h + 1) / 2, (g->w + 1) / 2, 2 * g->width};
    int x = ki_graph_op(graph, KI_OP_MERGE, NULL, 1, &src, (ki_attr){.merge = merge});
    ki_snprintf(name, sizeof name, "layers.%d.downsample.norm", stage);
    x = add_norm(graph, name, x);
    ki_snprintf(name, sizeof name, "layers.%d.downsample.reduction", stage);
    return add_linear(graph, name, x, g->width, false);
}

/* The blocks of a stage; `at` counts those of the whole network, of which there are n. */
static int add_stage(ki_graph *graph, int stage, int src, const ki_swin *net, const grid *g, int64_t *at,
                     int64_t n) {
    const bool is_one_window = (g->h < g->w ? g->h : g->w) <= net->window;
    for (int i = 0; i < net->n_blocks[stage]; i++, ++*at) {
        char name[48];
        ki_snprintf(name, sizeof name, "layers.%d.blocks.%d", stage, i);
        const block b = {.name = name,
                         .heads = net->heads[stage],
                         .window = net->window,
                         .shift = i % 2 == 0 || is_one_window ? 0 : net->window / 2,
                         .hidden = (int64_t)(net->mlp_ratio * (double)g->width),
                         .drop_path = n > 1 ? net->drop_path * (double)*at / (double)(n - 1) : 0};
        src = add_mlp(graph, &b, add_attention(graph, &b, src, g), g);
    }
    return src;
}

int ki_swin_add(ki_graph *graph, int input, const ki_swin *net) {
    int64_t n = 0, at = 0;
    for (int stage = 0; stage < net->n_stages; stage++) n += net->n_blocks[stage];
    const ki_conv_attr patches = {.oc = net->width,
                                  .kh = net->patch,
                                  .kw = net->patch,
                                  .sh = net->patch,
                                  .sw = net->patch,
                                  .bias = true};
    int x = ki_graph_conv(graph, "patch_embed.proj", input, patches);
    if (x < 0) return x; /* the graph keeps the error */
    const ki_shape *shape = &ki_graph_node(graph, x)->shape;
    grid g = {shape->dim[2], shape->dim[3], net->width};
    x = ki_graph_op(graph, KI_OP_TOKENS, NULL, 1, &x, (ki_attr){0});
    x = add_norm(graph, "patch_embed.norm", x);
    for (int stage = 0; stage < net->n_stages; stage++) {
        if (stage > 0) x = add_merge(graph, stage, x, &g);
        x = add_stage(graph, stage, x, net, &g, &at, n);
    }
    x = add_norm(graph, "norm", x);
    return ki_graph_op(graph, KI_OP_GRID, NULL, 1, &x, (ki_attr){.grid = {0, g.h, g.w}});
}

/* ---- the record ---- */

typedef struct settings {
    int64_t width, depth, window;
    double drop_path;
} settings;

static const ki_option options[] = {
    KI_OPTION_INT(
        settings, width, 96, 32, 4096,
        "numbers of a token of the first stage, a multiple of 32; each next stage has twice as many",
        "Liu et al. 2021, section 3.3; base 128, large 192"),
    KI_OPTION_INT(settings, depth, 6, 1, 256, "blocks of the third stage; the others have 2",
                  "Liu et al. 2021, section 3.3; small, base and large 18"),
    KI_OPTION_INT(settings, window, 7, 1, 64, "side of a window, in tokens", "Liu et al. 2021, section 3.3"),
    KI_OPTION_REAL(settings, drop_path, 0, 0, 0.99,
                   "how often training leaves out the last block; the ones before it less often",
                   "Liu et al. 2021, section 4.1, train with 0.2"),
    KI_OPTION_END};

static void build(ki_graph *graph, int input, const void *settings_, ki_body *ret_body) {
    const settings *set = settings_;
    const int64_t head_width = 32, heads = set->width / head_width;
    const ki_swin net = {.patch = 4,
                         .window = set->window,
                         .width = heads * head_width,
                         .n_stages = 4,
                         .n_blocks = {2, 2, set->depth, 2},
                         .heads = {heads, 2 * heads, 4 * heads, 8 * heads},
                         .mlp_ratio = 4,
                         .drop_path = set->drop_path};
    ret_body->map = ki_swin_add(graph, input, &net);
    ret_body->preprocess = ki_preprocess_imagenet();
}

/* The side of the window from the rows of a table of biases, (2 * side - 1)^2; 0: there is none. */
static int64_t window_of(int64_t n_rows) {
    int64_t side = 1;
    while ((2 * side - 1) * (2 * side - 1) < n_rows) side++;
    return (2 * side - 1) * (2 * side - 1) == n_rows ? side : 0;
}

/* Any size of the family. Its images were of 32 pixels for each side of a window, so that the last stage is one. */
static bool recognise(const ki_backbone *self, const ki_named *t, const ki_contract *config,
                      ki_recognised *ret) {
    (void)self;
    const int64_t width = ki_named_extent(t, "patch_embed.norm.weight", 0);
    const int64_t depth = ki_named_depth(t, "layers.2.blocks.#.norm1.weight");
    const int64_t window = window_of(ki_named_extent(t, "layers.0.blocks.0.attn.bias_table", 0));
    if (width < 1 || depth < 1 || window < 2 || ki_named_extent(t, "norm.weight", 0) != 8 * width)
        return false;
    ki_snprintf(ret->settings, sizeof ret->settings, "width=%d,depth=%d,window=%d", (int)width, (int)depth,
                (int)window);
    ki_config_check_number(config, "embed_dim", width, ret->fault, sizeof ret->fault);
    ki_config_check_number(config, "window_size", window, ret->fault, sizeof ret->fault);
    ki_config_check_word(config, "hidden_act", "gelu", ret->fault, sizeof ret->fault);
    ret->side = 32 * window;
    ret->sureness = 1;
    return true;
}

extern const ki_naming ki_names_swin_timm;

const ki_backbone ki_backbone_swin_t = {
    .name = "swin_t",
    .summary = "transformer of shifted windows, 12 blocks, 768 features",
    .source = "Liu et al., ICCV 2021; names of timm",
    .classifier = "head.fc",
    .channels = 3,
    .size = 224,
    .least_size = 4,
    .options = options,
    .small = "width=32,depth=1,window=2",
    .recognise = recognise,
    .torch = &ki_names_swin_timm,
    .build = build,
};
