/* Vision transformers of Hugging Face transformers: ViT and DeiT, DINOv2 with and without registers, the towers of CLIP and SigLIP. */
#include "net/names/names.h"

/* What several of them have. */
#define JOIN_QKV(there, q, k, v)                                 \
    KI_NAME_JOIN(there q ".*", "blocks.#.attn.qkv.*", 0, 3),     \
        KI_NAME_JOIN(there k ".*", "blocks.#.attn.qkv.*", 1, 3), \
        KI_NAME_JOIN(there v ".*", "blocks.#.attn.qkv.*", 2, 3)
#define EMBEDDINGS                                                                              \
    KI_NAME("embeddings.cls_token", "tokens.class"), KI_NAME_UNWANTED("embeddings.mask_token"), \
        KI_NAME("embeddings.position_embeddings", "tokens.positions"),                          \
        KI_NAME("embeddings.patch_embeddings.projection.*", "patch_embed.proj.*")

static const ki_names_rule vit[] = {
    EMBEDDINGS,
    JOIN_QKV("encoder.layer.#.attention.attention.", "query", "key", "value"),
    KI_NAME("encoder.layer.#.attention.output.dense.*", "blocks.#.attn.proj.*"),
    KI_NAME("encoder.layer.#.intermediate.dense.*", "blocks.#.mlp.fc1.*"),
    KI_NAME("encoder.layer.#.output.dense.*", "blocks.#.mlp.fc2.*"),
    KI_NAME("encoder.layer.#.layernorm_before.*", "blocks.#.norm1.*"),
    KI_NAME("encoder.layer.#.layernorm_after.*", "blocks.#.norm2.*"),
    KI_NAME("layernorm.*", "norm.*"),
    KI_NAME_UNWANTED("pooler.*"), /* tanh of a linear of the class token, which few use */
    KI_NAME("/classifier.*", "head.*"),
    KI_NAME_END};

const ki_naming ki_names_vit_transformers = {
    .library = "transformers' ViT",
    .signs = {"embeddings.position_embeddings", "embeddings.patch_embeddings.projection.weight",
              "encoder.layer.0.layernorm_before.weight", "encoder.layer.0.attention.attention.query.weight"},
    .rules = vit};

/* Its classifier reads the class token and the mean side by side, and is not a classifier of one of them. */
static const ki_names_rule dinov2[] = {
    EMBEDDINGS,
    KI_NAME("embeddings.register_tokens", "tokens.registers"),
    JOIN_QKV("encoder.layer.#.attention.attention.", "query", "key", "value"),
    KI_NAME("encoder.layer.#.attention.output.dense.*", "blocks.#.attn.proj.*"),
    KI_NAME("encoder.layer.#.norm#.*", "blocks.#.norm#.*"),
    KI_NAME("encoder.layer.#.layer_scale#.lambda1", "blocks.#.ls#.gamma"),
    KI_NAME("encoder.layer.#.mlp.weights_in.*", "blocks.#.mlp.fc1.*"),
    KI_NAME("encoder.layer.#.mlp.weights_out.*", "blocks.#.mlp.fc2.*"),
    KI_NAME("encoder.layer.#.mlp.*", "blocks.#.mlp.*"),
    KI_NAME("layernorm.*", "norm.*"),
    KI_NAME_END};

const ki_naming ki_names_vit_dinov2 = {
    .library = "transformers' DINOv2",
    .signs = {"embeddings.position_embeddings", "embeddings.patch_embeddings.projection.weight",
              "encoder.layer.0.norm1.weight", "encoder.layer.0.attention.attention.query.weight"},
    .rules = dinov2};

#define TOWER                                                                     \
    KI_NAME("embeddings.patch_embedding.*", "patch_embed.proj.*"),                \
        KI_NAME("embeddings.position_embedding.weight", "tokens.positions"),      \
        KI_NAME_UNWANTED("embeddings.position_ids"),                              \
        JOIN_QKV("encoder.layers.#.self_attn.", "q_proj", "k_proj", "v_proj"),    \
        KI_NAME("encoder.layers.#.self_attn.out_proj.*", "blocks.#.attn.proj.*"), \
        KI_NAME("encoder.layers.#.layer_norm#.*", "blocks.#.norm#.*"),            \
        KI_NAME("encoder.layers.#.mlp.*", "blocks.#.mlp.*"), KI_NAME("post_layernorm.*", "norm.*")

static const ki_names_rule clip[] = {TOWER, KI_NAME("embeddings.class_embedding", "tokens.class"),
                                     KI_NAME("pre_layrnorm.*", "norm_pre.*"), KI_NAME_END};

const ki_naming ki_names_vit_clip = {
    .library = "transformers' CLIP",
    .signs = {"embeddings.class_embedding", "embeddings.patch_embedding.weight",
              "encoder.layers.0.self_attn.q_proj.weight", "pre_layrnorm.weight"},
    .rules = clip};

static const ki_names_rule siglip[] = {
    TOWER,
    KI_NAME("head.probe", "attn_pool.probe.weight"),
    KI_NAME_CUT("head.attention.in_proj_weight", "attn_pool.q.weight", 0, 3, 1),
    KI_NAME_CUT("head.attention.in_proj_weight", "attn_pool.kv.weight", 1, 3, 2),
    KI_NAME_CUT("head.attention.in_proj_bias", "attn_pool.q.bias", 0, 3, 1),
    KI_NAME_CUT("head.attention.in_proj_bias", "attn_pool.kv.bias", 1, 3, 2),
    KI_NAME("head.attention.out_proj.*", "attn_pool.proj.*"),
    KI_NAME("head.layernorm.*", "attn_pool.norm.*"),
    KI_NAME("head.mlp.*", "attn_pool.mlp.*"),
    KI_NAME("/classifier.*", "head.*"),
    KI_NAME_END};

const ki_naming ki_names_vit_siglip = {
    .library = "transformers' SigLIP",
    .signs = {"head.probe", "embeddings.patch_embedding.weight", "encoder.layers.0.self_attn.q_proj.weight",
              "!embeddings.class_embedding"},
    .rules = siglip};
