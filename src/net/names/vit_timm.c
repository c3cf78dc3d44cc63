/* Vision transformers of timm, and of the originals that have the same names: DeiT, DINO, DINOv2 (facebookresearch). kith export --torch
 * writes timm's. */
#include "net/names/names.h"

static const ki_names_rule rules[] = {KI_NAME_BEHIND("cls_token", "tokens.class", 2),
                                      KI_NAME_BEHIND("pos_embed", "tokens.positions", 1),
                                      KI_NAME_BEHIND("reg_token", "tokens.registers", 1),
                                      KI_NAME_READ("register_tokens", "tokens.registers"),
                                      KI_NAME_BEHIND("attn_pool.latent", "attn_pool.probe.weight", 1),
                                      KI_NAME_UNWANTED("mask_token"),
                                      KI_NAME_READ("blocks.#.mlp.w12.*", "blocks.#.mlp.fc1.*"),
                                      KI_NAME_READ("blocks.#.mlp.w3.*", "blocks.#.mlp.fc2.*"),
                                      KI_NAME_END};

const ki_naming ki_names_vit_timm = {
    .library = "timm",
    .signs = {"pos_embed", "patch_embed.proj.weight", "blocks.0.norm1.weight", "blocks.0.attn.qkv.weight"},
    .rules = rules};

/* The same with what only the original of DINOv2 has; it resamples positions in another way than timm. */
const ki_naming ki_names_vit_dinov2_original = {
    .library = "the original DINOv2",
    .signs = {"mask_token", "pos_embed", "patch_embed.proj.weight", "blocks.0.attn.qkv.weight"},
    .rules = rules};
