/* What the kinds of vision transformers have of their own. */
#include <string.h>

#include "net/vit.h"

const char *const ki_vit_kinds[] = {"vit", "deit", "dino", "dinov2", "clip", "siglip", NULL};
const char *const ki_vit_switches[] = {"auto", "no", "yes", NULL};
const char *const ki_vit_acts[] = {"auto", "gelu", "gelu_tanh", "quick_gelu", NULL};
const char *const ki_vit_positions[] = {"auto", "bicubic", "antialias", "bilinear", "offset", NULL};
const char *const ki_vit_pixels[] = {"auto", "imagenet", "half", "clip", NULL};

enum { ACT_AUTO, ACT_GELU, ACT_GELU_TANH, ACT_QUICK_GELU };
enum { POSITIONS_AUTO, POSITIONS_BICUBIC, POSITIONS_ANTIALIAS, POSITIONS_BILINEAR, POSITIONS_OFFSET };
enum { PIXELS_AUTO, PIXELS_IMAGENET, PIXELS_HALF, PIXELS_CLIP };

typedef struct kind {
    int64_t patch, side; /* of the images that positions are for */
    bool class_token, pre_norm, patch_bias, attention_pool;
    int act, positions, pixels;
    double layer_scale, eps;
} kind;

static const kind kinds[KI_N_VIT_KINDS] = {
    {16, 224, true, false, true, false, ACT_GELU, POSITIONS_ANTIALIAS, PIXELS_HALF, 0, 1e-6},
    {16, 224, true, false, true, false, ACT_GELU, POSITIONS_ANTIALIAS, PIXELS_IMAGENET, 0, 1e-6},
    {16, 224, true, false, true, false, ACT_GELU, POSITIONS_OFFSET, PIXELS_IMAGENET, 0, 1e-6},
    {14, 518, true, false, true, false, ACT_GELU, POSITIONS_OFFSET, PIXELS_IMAGENET, 1e-5, 1e-6},
    {16, 224, true, true, false, false, ACT_QUICK_GELU, POSITIONS_BICUBIC, PIXELS_CLIP, 0, 1e-5},
    {16, 224, false, false, true, true, ACT_GELU_TANH, POSITIONS_BICUBIC, PIXELS_HALF, 0, 1e-6}};

static bool is_on(int wanted, bool own) { return wanted == KI_VIT_AUTO ? own : wanted == KI_VIT_YES; }

static int64_t patch_of(const ki_vit_settings *s) { return s->patch ? s->patch : kinds[s->kind].patch; }

int64_t ki_vit_least_size(const void *settings) { return patch_of(settings); }

/* DINOv2's: two thirds, in multiples of 8. */
static int64_t mlp_of(const ki_vit_settings *s) {
    if (s->mlp) return s->mlp;
    return s->swiglu ? (4 * s->width * 2 / 3 + 7) / 8 * 8 : 4 * s->width;
}

static ki_tokens_attr tokens_of(const ki_vit_settings *s) {
    static const ki_positions_filter filters[] = {
        [POSITIONS_BICUBIC] = KI_POSITIONS_BICUBIC,
        [POSITIONS_ANTIALIAS] = KI_POSITIONS_BICUBIC_ANTIALIAS,
        [POSITIONS_BILINEAR] = KI_POSITIONS_BILINEAR,
        [POSITIONS_OFFSET] = KI_POSITIONS_BICUBIC,
    };
    const kind *k = &kinds[s->kind];
    const int positions = s->positions ? s->positions : k->positions;
    const int64_t side = k->side / patch_of(s), grid = s->grid ? s->grid : side > 0 ? side : 1;
    const bool has_class = is_on(s->class_token, k->class_token);
    return (ki_tokens_attr){.has_class = has_class,
                            .has_class_position = has_class && is_on(s->class_position, true),
                            .registers = s->registers,
                            .grid_h = grid,
                            .grid_w = grid,
                            .how = filters[positions],
                            .offset = positions == POSITIONS_OFFSET ? 0.1 : 0};
}

static kith_preprocess preprocess_of(int pixels) {
    static const double mean[][3] = {[PIXELS_IMAGENET] = {0.485, 0.456, 0.406},
                                     [PIXELS_HALF] = {0.5, 0.5, 0.5},
                                     [PIXELS_CLIP] = {0.48145466, 0.4578275, 0.40821073}};
    static const double std[][3] = {[PIXELS_IMAGENET] = {0.229, 0.224, 0.225},
                                    [PIXELS_HALF] = {0.5, 0.5, 0.5},
                                    [PIXELS_CLIP] = {0.26862954, 0.26130258, 0.27577711}};
    kith_preprocess p = {.scale = 1.0 / 255};
    for (int c = 0; c < KITH_MOST_CHANNELS; c++) {
        p.mean[c] = mean[pixels][c < 3 ? c : 2];
        p.std[c] = std[pixels][c < 3 ? c : 2];
    }
    return p;
}

void ki_vit_resolve(const ki_vit_settings *s, ki_vit_plan *ret) {
    static const ki_act acts[] = {
        [ACT_GELU] = KI_ACT_GELU, [ACT_GELU_TANH] = KI_ACT_GELU_TANH, [ACT_QUICK_GELU] = KI_ACT_QUICK_GELU};
    const kind *k = &kinds[s->kind];
    *ret = (ki_vit_plan){.width = s->width,
                         .depth = s->depth,
                         .heads = s->heads,
                         .patch = patch_of(s),
                         .mlp = mlp_of(s),
                         .tokens = tokens_of(s),
                         .pre_norm = is_on(s->pre_norm, k->pre_norm),
                         .patch_bias = is_on(s->patch_bias, k->patch_bias),
                         .attention_pool = is_on(s->attention_pool, k->attention_pool),
                         .final_norm = s->final_norm,
                         .qkv_bias = s->qkv_bias,
                         .swiglu = s->swiglu,
                         .act = acts[s->act ? s->act : k->act],
                         .layer_scale = s->layer_scale < 0 ? k->layer_scale : s->layer_scale,
                         .eps = s->eps > 0 ? s->eps : k->eps,
                         .drop_path = s->drop_path,
                         .preprocess = preprocess_of(s->pixels ? s->pixels : k->pixels)};
}
