/* Vision transformers: what the files vit*.c share. The settings, which a kind of network gives together, and their options. */
#ifndef KI_VIT_H
#define KI_VIT_H

#include "net/backbone.h"

typedef enum ki_vit_kind {
    KI_VIT_PLAIN,
    KI_VIT_DEIT,
    KI_VIT_DINO,
    KI_VIT_DINOV2,
    KI_VIT_CLIP,
    KI_VIT_SIGLIP,
    KI_N_VIT_KINDS
} ki_vit_kind;

/* As they are in a recipe. 0 is the kind's own, if nothing else is said. */
typedef struct ki_vit_settings {
    int kind;
    int64_t width, depth, heads;
    int64_t patch, mlp, registers, grid;
    int class_token, class_position, pre_norm, patch_bias, attention_pool; /* auto, no, yes */
    int act, positions, pixels;
    bool final_norm, qkv_bias, swiglu;
    double layer_scale, eps, drop_path;
} ki_vit_settings;

/* With the kind's own filled in. */
typedef struct ki_vit_plan {
    int64_t width, depth, heads, patch, mlp;
    ki_tokens_attr tokens;
    bool pre_norm, patch_bias, final_norm, qkv_bias, swiglu, attention_pool;
    ki_act act;
    double layer_scale, eps, drop_path; /* layer_scale 0: none */
    kith_preprocess preprocess;
} ki_vit_plan;

enum { KI_VIT_AUTO, KI_VIT_NO, KI_VIT_YES };

extern const char *const ki_vit_kinds[],
    *const ki_vit_switches[], *const ki_vit_acts[], *const ki_vit_positions[], *const ki_vit_pixels[];

void ki_vit_resolve(const ki_vit_settings *settings, ki_vit_plan *ret_plan);
int64_t ki_vit_least_size(const void *settings);

/* The graph (ki_backbone.build), and a file's settings (ki_backbone.recognise). */
void ki_vit_build(ki_graph *graph, int input, const void *settings, ki_body *ret_body);
bool ki_vit_recognise(const ki_backbone *self, const ki_named *tensors, const ki_contract *config,
                      ki_recognised *ret);

/* The options of a row, with its own width, depth and heads. */
#define KI_VIT_OPTIONS(width_, depth_, heads_)                                                              \
    {                                                                                                       \
        KI_OPTION_CHOICE(ki_vit_settings, kind, KI_VIT_PLAIN, ki_vit_kinds,                                 \
                         "whose network: what all options below that are 0 or auto stand for",              \
                         "their papers and files"),                                                         \
            KI_OPTION_INT(ki_vit_settings, width, width_, 1, 8192, "numbers of a token",                    \
                          "Dosovitskiy et al. 2021; Touvron et al. 2021"),                                  \
            KI_OPTION_INT(ki_vit_settings, depth, depth_, 1, 128, "blocks", "as width"),                    \
            KI_OPTION_INT(ki_vit_settings, heads, heads_, 1, 128, "heads of attention, a divisor of width", \
                          "as width"),                                                                      \
            KI_OPTION_INT(ki_vit_settings, patch, 0, 0, 64, "side of a patch in pixels; 0: 16, dinov2 14",  \
                          "as width"),                                                                      \
            KI_OPTION_INT(                                                                                  \
                ki_vit_settings, mlp, 0, 0, 65536,                                                          \
                "numbers between the layers of a block; 0: 4 * width, two thirds of it with swiglu",        \
                "as width"),                                                                                \
            KI_OPTION_INT(ki_vit_settings, registers, 0, 0, 64, "learned tokens that stand for no patch",   \
                          "Darcet et al. 2024"),                                                            \
            KI_OPTION_INT(ki_vit_settings, grid, 0, 0, 1024,                                                \
                          "side of the grid of positions, in patches; 0: of 224 pixels, dinov2 518",        \
                          "as width"),                                                                      \
            KI_OPTION_CHOICE(ki_vit_settings, class_token, KI_VIT_AUTO, ki_vit_switches,                    \
                             "a token for the whole image; siglip has none", "as width"),                   \
            KI_OPTION_CHOICE(ki_vit_settings, class_position, KI_VIT_AUTO, ki_vit_switches,                 \
                             "it has a position, too", "as width"),                                         \
            KI_OPTION_CHOICE(ki_vit_settings, pre_norm, KI_VIT_AUTO, ki_vit_switches,                       \
                             "a norm before the blocks, as clip has", "Radford et al. 2021"),               \
            KI_OPTION_CHOICE(ki_vit_settings, patch_bias, KI_VIT_AUTO, ki_vit_switches,                     \
                             "the patches' layer has a bias; clip's has none", "Radford et al. 2021"),      \
            KI_OPTION_CHOICE(ki_vit_settings, attention_pool, KI_VIT_AUTO, ki_vit_switches,                 \
                             "a learned token that attends to all others, as siglip has",                   \
                             "Zhai et al. 2023; Lee et al. 2019"),                                          \
            KI_OPTION_CHOICE(ki_vit_settings, act, 0, ki_vit_acts, "between the layers of a block",         \
                             "clip quick_gelu, siglip gelu_tanh, others gelu"),                             \
            KI_OPTION_CHOICE(ki_vit_settings, positions, 0, ki_vit_positions,                               \
                             "how positions are resampled for other sizes of images",                       \
                             "vit and deit antialias, dino and dinov2 offset, others bicubic"),             \
            KI_OPTION_CHOICE(ki_vit_settings, pixels, 0, ki_vit_pixels, "mean and std of the input",        \
                             "vit and siglip half, clip its own, others ImageNet's"),                       \
            KI_OPTION_BOOL(ki_vit_settings, final_norm, 1, "a norm behind the last block", "as width"),     \
            KI_OPTION_BOOL(ki_vit_settings, qkv_bias, 1, "queries, keys and values have a bias",            \
                           "as width"),                                                                     \
            KI_OPTION_BOOL(ki_vit_settings, swiglu, 0,                                                      \
                           "a gate between the layers of a block instead of act",                           \
                           "Shazeer 2020; Oquab et al. 2024"),                                              \
            KI_OPTION_REAL(                                                                                 \
                ki_vit_settings, layer_scale, -1, -1, 1,                                                    \
                "start of a factor for each channel of a block; 0: none, -1: dinov2 1e-5, others none",     \
                "Touvron et al., ICCV 2021"),                                                               \
            KI_OPTION_REAL(ki_vit_settings, eps, 0, 0, 1, "of the norms; 0: 1e-6, clip 1e-5", "as width"),  \
            KI_OPTION_REAL(ki_vit_settings, drop_path, 0, 0, 0.95,                                          \
                           "how often the last block is left out in training; those before grow to it",     \
                           "Huang et al. 2016"),                                                            \
            KI_OPTION_END                                                                                   \
    }

#endif
