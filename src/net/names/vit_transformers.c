/* Vision transformers of Hugging Face transformers: ViT and DeiT, DINOv2 with and without registers, the towers of CLIP and SigLIP. */
#include "net/names/names.h"

/* What several of them have. */
#define JOIN_QKV(there, q, k, v)                                         \
    {there q ".*", "blocks.#.attn.qkv.*", KI_NAMES_JOIN, 0, 3, 0},       \
        {there k ".*", "blocks.#.attn.qkv.*", KI_NAMES_JOIN, 1, 3, 0}, { \
        there v ".*", "blocks.#.attn.qkv.*", KI_NAMES_JOIN, 2, 3, 0      \
    }
#define EMBEDDINGS                                                             \
    {"embeddings.cls_token", "tokens.class"}, {"embeddings.mask_token", NULL}, \
        {"embeddings.position_embeddings", "tokens.positions"}, {              \
        "embeddings.patch_embeddings.projection.*", "patch_embed.proj.*"       \
    }

static const ki_names_rule vit[] = {
    EMBEDDINGS,
    JOIN_QKV("encoder.layer.#.attention.attention.", "query", "key", "value"),
    {"encoder.layer.#.attention.output.dense.*", "blocks.#.attn.proj.*"},
    {"encoder.layer.#.intermediate.dense.*", "blocks.#.mlp.fc1.*"},
    {"encoder.layer.#.output.dense.*", "blocks.#.mlp.fc2.*"},
    {"encoder.layer.#.layernorm_before.*", "blocks.#.norm1.*"},
    {"encoder.layer.#.layernorm_after.*", "blocks.#.norm2.*"},
    {"layernorm.*", "norm.*"},
    {"pooler.*", NULL}, /* tanh of a linear of the class token, which few use */
    {"/classifier.*", "head.*"},
    {NULL}};

const ki_names ki_names_vit_transformers = {
    .library = "transformers' ViT",
    .signs = {"embeddings.position_embeddings", "embeddings.patch_embeddings.projection.weight",
              "encoder.layer.0.layernorm_before.weight", "encoder.layer.0.attention.attention.query.weight"},
    .rules = vit};

/* Its classifier reads the class token and the mean side by side, and is not a classifier of one of them. */
static const ki_names_rule dinov2[] = {
    EMBEDDINGS,
    {"embeddings.register_tokens", "tokens.registers"},
    JOIN_QKV("encoder.layer.#.attention.attention.", "query", "key", "value"),
    {"encoder.layer.#.attention.output.dense.*", "blocks.#.attn.proj.*"},
    {"encoder.layer.#.norm#.*", "blocks.#.norm#.*"},
    {"encoder.layer.#.layer_scale#.lambda1", "blocks.#.ls#.gamma"},
    {"encoder.layer.#.mlp.weights_in.*", "blocks.#.mlp.fc1.*"},
    {"encoder.layer.#.mlp.weights_out.*", "blocks.#.mlp.fc2.*"},
    {"encoder.layer.#.mlp.*", "blocks.#.mlp.*"},
    {"layernorm.*", "norm.*"},
    {NULL}};

const ki_names ki_names_vit_dinov2 = {
    .library = "transformers' DINOv2",
    .signs = {"embeddings.position_embeddings", "embeddings.patch_embeddings.projection.weight",
              "encoder.layer.0.norm1.weight", "encoder.layer.0.attention.attention.query.weight"},
    .rules = dinov2};

#define TOWER                                                                                            \
    {"embeddings.patch_embedding.*", "patch_embed.proj.*"},                                              \
        {"embeddings.position_embedding.weight", "tokens.positions"}, {"embeddings.position_ids", NULL}, \
        JOIN_QKV("encoder.layers.#.self_attn.", "q_proj", "k_proj", "v_proj"),                           \
        {"encoder.layers.#.self_attn.out_proj.*", "blocks.#.attn.proj.*"},                               \
        {"encoder.layers.#.layer_norm#.*", "blocks.#.norm#.*"},                                          \
        {"encoder.layers.#.mlp.*", "blocks.#.mlp.*"}, {                                                  \
        "post_layernorm.*", "norm.*"                                                                     \
    }

static const ki_names_rule clip[] = {
    TOWER, {"embeddings.class_embedding", "tokens.class"}, {"pre_layrnorm.*", "norm_pre.*"}, {NULL}};

const ki_names ki_names_vit_clip = {
    .library = "transformers' CLIP",
    .signs = {"embeddings.class_embedding", "embeddings.patch_embedding.weight",
              "encoder.layers.0.self_attn.q_proj.weight", "pre_layrnorm.weight"},
    .rules = clip};

static const ki_names_rule siglip[] = {
    TOWER,
    {"head.probe", "attn_pool.probe.weight"},
    {"head.attention.in_proj_weight", "attn_pool.q.weight", KI_NAMES_CUT, 0, 3, 1},
    {"head.attention.in_proj_weight", "attn_pool.kv.weight", KI_NAMES_CUT, 1, 3, 2},
    {"head.attention.in_proj_bias", "attn_pool.q.bias", KI_NAMES_CUT, 0, 3, 1},
    {"head.attention.in_proj_bias", "attn_pool.kv.bias", KI_NAMES_CUT, 1, 3, 2},
    {"head.attention.out_proj.*", "attn_pool.proj.*"},
    {"head.layernorm.*", "attn_pool.norm.*"},
    {"head.mlp.*", "attn_pool.mlp.*"},
    {"/classifier.*", "head.*"},
    {NULL}};

const ki_names ki_names_vit_siglip = {
    .library = "transformers' SigLIP",
    .signs = {"head.probe", "embeddings.patch_embedding.weight", "encoder.layers.0.self_attn.q_proj.weight",
              "!embeddings.class_embedding"},
    .rules = siglip};
