/* Vision transformers of torchvision. */
#include "net/names/names.h"

static const ki_names_rule rules[] = {
    {"class_token", "tokens.class"},
    {"encoder.pos_embedding", "tokens.positions"},
    {"conv_proj.*", "patch_embed.proj.*"},
    {"encoder.layers.encoder_layer_#.self_attention.in_proj_*", "blocks.#.attn.qkv.*"},
    {"encoder.layers.encoder_layer_#.self_attention.out_proj.*", "blocks.#.attn.proj.*"},
    {"encoder.layers.encoder_layer_#.ln_#.*", "blocks.#.norm#.*"},
    /* files of torchvision before 0.12 have linear_1 and linear_2 */
    {"encoder.layers.encoder_layer_#.mlp.linear_#.*", "blocks.#.mlp.fc#.*"},
    {"encoder.layers.encoder_layer_#.mlp.0.*", "blocks.#.mlp.fc1.*"},
    {"encoder.layers.encoder_layer_#.mlp.3.*", "blocks.#.mlp.fc2.*"},
    {"encoder.ln.*", "norm.*"},
    {"heads.head.*", "head.*"},
    {NULL}};

const ki_names ki_names_vit_torchvision = {
    .library = "torchvision",
    .signs = {"encoder.pos_embedding", "conv_proj.weight",
              "encoder.layers.encoder_layer_0.self_attention.in_proj_weight"},
    .rules = rules};
