/* The vision transformer of OpenAI's CLIP, by itself or in the whole file, whose tower of text is left out. */
#include "net/names/names.h"

static const ki_names_rule rules[] = {{"class_embedding", "tokens.class"},
                                      {"positional_embedding", "tokens.positions"},
                                      {"conv1.*", "patch_embed.proj.*"},
                                      {"ln_pre.*", "norm_pre.*"},
                                      {"ln_post.*", "norm.*"},
                                      {"transformer.resblocks.#.attn.in_proj_*", "blocks.#.attn.qkv.*"},
                                      {"transformer.resblocks.#.attn.out_proj.*", "blocks.#.attn.proj.*"},
                                      {"transformer.resblocks.#.ln_#.*", "blocks.#.norm#.*"},
                                      {"transformer.resblocks.#.mlp.c_fc.*", "blocks.#.mlp.fc1.*"},
                                      {"transformer.resblocks.#.mlp.c_proj.*", "blocks.#.mlp.fc2.*"},
                                      {"proj", NULL}, /* into the space that images share with texts */
                                      {NULL}};

const ki_names ki_names_vit_openai = {.library = "OpenAI's CLIP",
                                      .signs = {"class_embedding", "conv1.weight", "ln_pre.weight",
                                                "transformer.resblocks.0.attn.in_proj_weight"},
                                      .rules = rules};
