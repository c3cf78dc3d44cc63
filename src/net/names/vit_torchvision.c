/* Vision transformers of torchvision. */
#include "net/names/names.h"

static const ki_names_rule rules[] = {
    KI_NAME("class_token", "tokens.class"), KI_NAME("encoder.pos_embedding", "tokens.positions"),
    KI_NAME("conv_proj.*", "patch_embed.proj.*"),
    KI_NAME("encoder.layers.encoder_layer_#.self_attention.in_proj_*", "blocks.#.attn.qkv.*"),
    KI_NAME("encoder.layers.encoder_layer_#.self_attention.out_proj.*", "blocks.#.attn.proj.*"),
    KI_NAME("encoder.layers.encoder_layer_#.ln_#.*", "blocks.#.norm#.*"),
    /* files of torchvision before 0.12 have linear_1 and linear_2 */
    KI_NAME("encoder.layers.encoder_layer_#.mlp.linear_#.*", "blocks.#.mlp.fc#.*"),
    KI_NAME("encoder.layers.encoder_layer_#.mlp.0.*", "blocks.#.mlp.fc1.*"),
    KI_NAME("encoder.layers.encoder_layer_#.mlp.3.*", "blocks.#.mlp.fc2.*"),
    KI_NAME("encoder.ln.*", "norm.*"), KI_NAME("heads.head.*", "head.*"), KI_NAME_END};

const ki_naming ki_names_vit_torchvision = {
    .library = "torchvision",
    .signs = {"encoder.pos_embedding", "conv_proj.weight",
              "encoder.layers.encoder_layer_0.self_attention.in_proj_weight"},
    .rules = rules};
