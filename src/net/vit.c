/* vit: vision transformers. An image is cut into patches, each a token; blocks of
 *
 *     x = x + ls1(attention(norm1(x))),  x = x + ls2(mlp(norm2(x)))
 *
 * mix and change them; a last norm follows. Sources: Dosovitskiy et al., ICLR 2021; DeiT: Touvron et al., ICML 2021; DINO: Caron et al.,
 * ICCV 2021; DINOv2: Oquab et al., TMLR 2024, with registers Darcet et al., ICLR 2024; CLIP: Radford et al., ICML 2021; SigLIP: Zhai et al.,
 * ICCV 2023. Names are timm's; `tokens` holds its cls_token, pos_embed and reg_token.
 *
 * CLIP's last norm is for the class token alone in its libraries. It changes each token by itself, so that here it is for all: the map then has
 * the scale of the class token. */
#include "net/vit.h"

#include <stdio.h>

#include "base/text.h"

typedef struct name {
    char s[48];
} name;

static name name_of(int64_t block, const char *layer) {
    name made;
    ki_snprintf(made.s, sizeof made.s, "blocks.%lld.%s", (long long)block, layer);
    return made;
}

static name below(const char *part, const char *layer) {
    name made;
    ki_snprintf(made.s, sizeof made.s, "%s.%s", part, layer);
    return made;
}

static int add_norm(ki_graph *graph, const char *at, int x, const ki_vit_plan *p) {
    return ki_graph_layer_norm(graph, at, x, (ki_layer_norm_attr){.eps = p->eps});
}

static int add_linear(ki_graph *graph, const char *at, int x, int64_t oc, bool bias) {
    return ki_graph_linear(graph, at, x, (ki_linear_attr){.oc = oc, .bias = bias, .start = KI_START_SMALL});
}

/* part.fc1, part.fc2. */
static int add_mlp(ki_graph *graph, const char *part, int x, const ki_vit_plan *p, bool swiglu) {
    const ki_attr act = {.act = {p->act}};
    x = add_linear(graph, below(part, "fc1").s, x, swiglu ? 2 * p->mlp : p->mlp, true);
    x = swiglu ? ki_graph_op(graph, KI_OP_GLU, below(part, "glu").s, 1, &x, (ki_attr){0})
               : ki_graph_op(graph, KI_OP_ACT, below(part, "act").s, 1, &x, act);
    return add_linear(graph, below(part, "fc2").s, x, p->width, true);
}

/* A branch's end: its layer scale, whether it is left out, and the sum. `which`: "1" or "2". */
static int add_end(ki_graph *graph, int64_t block, const char *which, int x, int branch,
                   const ki_vit_plan *p) {
    char layer[24];
    const double rate = p->depth > 1 ? p->drop_path * (double)block / (double)(p->depth - 1) : p->drop_path;
    ki_snprintf(layer, sizeof layer, "ls%s", which);
    if (p->layer_scale > 0)
        branch = ki_graph_op(graph, KI_OP_LAYER_SCALE, name_of(block, layer).s, 1, &branch,
                             (ki_attr){.layer_scale = {p->layer_scale}});
    ki_snprintf(layer, sizeof layer, "drop_path%s", which);
    if (rate > 0)
        branch = ki_graph_op(graph, KI_OP_DROP_PATH, name_of(block, layer).s, 1, &branch,
                             (ki_attr){.drop_path = {rate}});
    ki_snprintf(layer, sizeof layer, "add%s", which);
    return ki_graph_add(graph, name_of(block, layer).s, x, branch);
}

static int add_block(ki_graph *graph, int64_t i, int x, const ki_vit_plan *p) {
    const ki_attr attention = {.attention = {.heads = p->heads}};
    int y = add_norm(graph, name_of(i, "norm1").s, x, p);
    y = add_linear(graph, name_of(i, "attn.qkv").s, y, 3 * p->width, p->qkv_bias);
    y = ki_graph_op(graph, KI_OP_ATTENTION, name_of(i, "attn").s, 1, &y, attention);
    y = add_linear(graph, name_of(i, "attn.proj").s, y, p->width, true);
    x = add_end(graph, i, "1", x, y, p);
    y = add_norm(graph, name_of(i, "norm2").s, x, p);
    y = add_mlp(graph, name_of(i, "mlp").s, y, p, p->swiglu);
    return add_end(graph, i, "2", x, y, p);
}

/* A learned token attends to all others; the shortcut begins behind the attention. */
static int add_attention_pool(ki_graph *graph, int x, const ki_vit_plan *p) {
    const int probe = ki_graph_op(graph, KI_OP_PROBE, "attn_pool.probe", 1, &x, (ki_attr){.probe = {.n = 1}});
    const int src[2] = {add_linear(graph, "attn_pool.q", probe, p->width, true),
                        add_linear(graph, "attn_pool.kv", x, 2 * p->width, true)};
    int y =
        ki_graph_op(graph, KI_OP_ATTENTION, "attn_pool", 2, src, (ki_attr){.attention = {.heads = p->heads}});
    y = add_linear(graph, "attn_pool.proj", y, p->width, true);
    const int z = add_mlp(graph, "attn_pool.mlp", add_norm(graph, "attn_pool.norm", y, p), p, false);
    y = ki_graph_add(graph, "attn_pool.add", y, z);
    return ki_graph_op(graph, KI_OP_TOKEN, "attn_pool.token", 1, &y, (ki_attr){.token = {0}});
}

void ki_vit_build(ki_graph *graph, int input, const void *settings, ki_body *ret_body) {
    ki_vit_plan p;
    ki_vit_resolve(settings, &p);
    const ki_conv_attr patches = {
        .oc = p.width, .kh = p.patch, .kw = p.patch, .sh = p.patch, .sw = p.patch, .bias = p.patch_bias};
    int x = ki_graph_conv(graph, "patch_embed.proj", input, patches);
    if (x < 0) return; /* the graph keeps the error */
    const ki_shape map = ki_graph_node(graph, x)->shape;
    x = ki_graph_op(graph, KI_OP_TOKENS, "tokens", 1, &x, (ki_attr){.tokens = p.tokens});
    if (p.pre_norm) x = add_norm(graph, "norm_pre", x, &p);
    for (int64_t i = 0; i < p.depth; i++) x = add_block(graph, i, x, &p);
    if (p.final_norm) x = add_norm(graph, "norm", x, &p);
    const ki_grid_attr grid = {
        .skip = p.tokens.has_class + p.tokens.registers, .h = map.dim[2], .w = map.dim[3]};
    ret_body->map = ki_graph_op(graph, KI_OP_GRID, "grid", 1, &x, (ki_attr){.grid = grid});
    ret_body->preprocess = p.preprocess;
    ret_body->tokens = x;
    ret_body->has_class = p.tokens.has_class;
    if (p.attention_pool) ret_body->attention = add_attention_pool(graph, x, &p);
}

extern const ki_naming ki_names_vit_timm;

/* A row for each usual size. */
#define ROW(letter, size_, width_, depth_, heads_)                                                        \
    static const ki_option options_##letter[] = KI_VIT_OPTIONS(width_, depth_, heads_);                   \
    const ki_backbone ki_backbone_vit_##letter = {                                                        \
        .name = "vit_" #letter,                                                                           \
        .summary =                                                                                        \
            "vision transformer, " size_ ": ViT, DeiT, DINO, DINOv2, CLIP, SigLIP; " #width_ " features", \
        .source = "Dosovitskiy et al., ICLR 2021; names of timm",                                         \
        .classifier = "head",                                                                             \
        .channels = 0,                                                                                    \
        .size = 224,                                                                                      \
        .least_size = 16,                                                                                 \
        .least_size_of = ki_vit_least_size,                                                               \
        .options = options_##letter,                                                                      \
        .pool = KI_POOLING_CLASS,                                                                         \
        .small = "depth=2,width=32,heads=2,grid=4",                                                       \
        .build = ki_vit_build,                                                                            \
        .recognise = ki_vit_recognise,                                                                    \
        .torch = &ki_names_vit_timm,                                                                      \
    }

ROW(t, "tiny", 192, 12, 3);
ROW(s, "small", 384, 12, 6);
ROW(b, "base", 768, 12, 12);
ROW(l, "large", 1024, 24, 16);
