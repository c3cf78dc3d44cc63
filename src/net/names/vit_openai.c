/* The vision transformer of OpenAI's CLIP, by itself or in the whole file, whose tower of text is left out. */
#include "net/names/names.h"

static const ki_names_rule rules[] = {
    KI_NAME("class_embedding", "tokens.class"),
    KI_NAME("positional_embedding", "tokens.positions"),
    KI_NAME("conv1.*", "patch_embed.proj.*"),
    KI_NAME("ln_pre.*", "norm_pre.*"),
    KI_NAME("ln_post.*", "norm.*"),
    KI_NAME("transformer.resblocks.#.attn.in_proj_*", "blocks.#.attn.qkv.*"),
    KI_NAME("transformer.resblocks.#.attn.out_proj.*", "blocks.#.attn.proj.*"),
    KI_NAME("transformer.resblocks.#.ln_#.*", "blocks.#.norm#.*"),
    KI_NAME("transformer.resblocks.#.mlp.c_fc.*", "blocks.#.mlp.fc1.*"),
    KI_NAME("transformer.resblocks.#.mlp.c_proj.*", "blocks.#.mlp.fc2.*"),
    KI_NAME_UNWANTED("proj"), /* into the space that images share with texts */
    KI_NAME_END};

const ki_naming ki_names_vit_openai = {.library = "OpenAI's CLIP",
                                       .signs = {"class_embedding", "conv1.weight", "ln_pre.weight",
                                                 "transformer.resblocks.0.attn.in_proj_weight"},
                                       .rules = rules};
