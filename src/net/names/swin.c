/* Swins of transformers, torchvision, timm and of the paper's own code (which timm had before 0.9). Ours are timm's names, but
 * for the table of biases. What libraries compute from the window alone is not wanted: indices and masks. */
#include "net/names/names.h"

#define BUFFERS KI_NAME_UNWANTED("*.relative_position_index"), KI_NAME_UNWANTED("*.attn_mask")
#define TABLE \
    KI_NAME("layers.#.blocks.#.attn.relative_position_bias_table", "layers.#.blocks.#.attn.bias_table")

static const ki_names_rule transformers[] = {
    BUFFERS,
    KI_NAME("embeddings.patch_embeddings.projection.*", "patch_embed.proj.*"),
    KI_NAME("embeddings.norm.*", "patch_embed.norm.*"),
    KI_NAME("encoder.layers.#.downsample.*", "layers.#+1.downsample.*"),
    KI_NAME_AGAIN("encoder.layers.#.blocks.#.*", "layers.#.blocks.#.*"),
    KI_NAME("layers.#.blocks.#.layernorm_before.*", "layers.#.blocks.#.norm1.*"),
    KI_NAME("layers.#.blocks.#.layernorm_after.*", "layers.#.blocks.#.norm2.*"),
    KI_NAME_JOIN("layers.#.blocks.#.attention.self.query.*", "layers.#.blocks.#.attn.qkv.*", 0, 3),
    KI_NAME_JOIN("layers.#.blocks.#.attention.self.key.*", "layers.#.blocks.#.attn.qkv.*", 1, 3),
    KI_NAME_JOIN("layers.#.blocks.#.attention.self.value.*", "layers.#.blocks.#.attn.qkv.*", 2, 3),
    KI_NAME("layers.#.blocks.#.attention.self.relative_position_bias_table",
            "layers.#.blocks.#.attn.bias_table"),
    KI_NAME("layers.#.blocks.#.attention.output.dense.*", "layers.#.blocks.#.attn.proj.*"),
    KI_NAME("layers.#.blocks.#.intermediate.dense.*", "layers.#.blocks.#.mlp.fc1.*"),
    KI_NAME("layers.#.blocks.#.output.dense.*", "layers.#.blocks.#.mlp.fc2.*"),
    KI_NAME("layernorm.*", "norm.*"),
    KI_NAME("/classifier.*", "head.fc.*"),
    KI_NAME_END};

const ki_naming ki_names_swin_transformers = {
    .library = "transformers",
    .signs = {"embeddings.patch_embeddings.projection.weight",
              "encoder.layers.0.blocks.0.attention.self.relative_position_bias_table"},
    .rules = transformers};

static const ki_names_rule torchvision[] = {
    BUFFERS,
    KI_NAME("features.0.0.*", "patch_embed.proj.*"),
    KI_NAME("features.0.2.*", "patch_embed.norm.*"),
    KI_NAME_AGAIN("features.1.*", "layers.0.blocks.*"),
    KI_NAME("features.2.*", "layers.1.downsample.*"),
    KI_NAME_AGAIN("features.3.*", "layers.1.blocks.*"),
    KI_NAME("features.4.*", "layers.2.downsample.*"),
    KI_NAME_AGAIN("features.5.*", "layers.2.blocks.*"),
    KI_NAME("features.6.*", "layers.3.downsample.*"),
    KI_NAME_AGAIN("features.7.*", "layers.3.blocks.*"),
    TABLE,
    KI_NAME("layers.#.blocks.#.mlp.0.*", "layers.#.blocks.#.mlp.fc1.*"),
    KI_NAME("layers.#.blocks.#.mlp.3.*", "layers.#.blocks.#.mlp.fc2.*"),
    KI_NAME("head.*", "head.fc.*"),
    KI_NAME_END};

/* The second version has a small network instead of the table. */
const ki_naming ki_names_swin_torchvision = {
    .library = "torchvision",
    .signs = {"features.0.0.weight", "features.1.0.attn.relative_position_bias_table"},
    .rules = torchvision};

static const ki_names_rule original[] = {BUFFERS, KI_NAME("layers.#.downsample.*", "layers.#+1.downsample.*"),
                                         TABLE, KI_NAME("head.*", "head.fc.*"), KI_NAME_END};

/* A stage ends with the merging of patches; in timm the next one begins with it. */
const ki_naming ki_names_swin_original = {
    .library = "the paper's code",
    .signs = {"layers.0.blocks.0.attn.relative_position_bias_table", "layers.0.downsample.norm.weight"},
    .rules = original};

static const ki_names_rule timm[] = {BUFFERS, TABLE, KI_NAME_END};

const ki_naming ki_names_swin_timm = {
    .library = "timm", .signs = {"layers.0.blocks.0.attn.relative_position_bias_table"}, .rules = timm};
