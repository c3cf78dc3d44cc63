/* ConvNeXts of transformers, torchvision and of the papers' own code. Ours are timm's names. */
#include "net/names/names.h"

static const ki_names_rule transformers[] = {
    KI_NAME("embeddings.patch_embeddings.*", "stem.0.*"),
    KI_NAME("embeddings.layernorm.*", "stem.1.*"),
    KI_NAME("encoder.stages.#.downsampling_layer.#.*", "stages.#.downsample.#.*"),
    KI_NAME_AGAIN("encoder.stages.#.layers.#.*", "stages.#.blocks.#.*"),
    KI_NAME("stages.#.blocks.#.dwconv.*", "stages.#.blocks.#.conv_dw.*"),
    KI_NAME("stages.#.blocks.#.layernorm.*", "stages.#.blocks.#.norm.*"),
    KI_NAME("stages.#.blocks.#.pwconv#.*", "stages.#.blocks.#.mlp.fc#.*"),
    KI_NAME("stages.#.blocks.#.grn.*", "stages.#.blocks.#.mlp.grn.*"),
    KI_NAME("stages.#.blocks.#.layer_scale_parameter", "stages.#.blocks.#.gamma"),
    KI_NAME("layernorm.*", "head.norm.*"),
    KI_NAME("/classifier.*", "head.fc.*"),
    KI_NAME_END};

const ki_naming ki_names_convnext_transformers = {
    .library = "transformers",
    .signs = {"embeddings.patch_embeddings.weight", "encoder.stages.0.layers.0.dwconv.weight"},
    .rules = transformers};

static const ki_names_rule torchvision[] = {
    KI_NAME("features.0.*", "stem.*"),
    KI_NAME_AGAIN("features.1.*", "stages.0.blocks.*"),
    KI_NAME("features.2.*", "stages.1.downsample.*"),
    KI_NAME_AGAIN("features.3.*", "stages.1.blocks.*"),
    KI_NAME("features.4.*", "stages.2.downsample.*"),
    KI_NAME_AGAIN("features.5.*", "stages.2.blocks.*"),
    KI_NAME("features.6.*", "stages.3.downsample.*"),
    KI_NAME_AGAIN("features.7.*", "stages.3.blocks.*"),
    KI_NAME("stages.#.blocks.#.block.0.*", "stages.#.blocks.#.conv_dw.*"),
    KI_NAME("stages.#.blocks.#.block.2.*", "stages.#.blocks.#.norm.*"),
    KI_NAME("stages.#.blocks.#.block.3.*", "stages.#.blocks.#.mlp.fc1.*"),
    KI_NAME("stages.#.blocks.#.block.5.*", "stages.#.blocks.#.mlp.fc2.*"),
    KI_NAME("stages.#.blocks.#.layer_scale", "stages.#.blocks.#.gamma"),
    KI_NAME("classifier.0.*", "head.norm.*"),
    KI_NAME("classifier.2.*", "head.fc.*"),
    KI_NAME_END};

const ki_naming ki_names_convnext_torchvision = {.library = "torchvision",
                                                 .signs = {"features.0.0.weight", "features.1.0.layer_scale"},
                                                 .rules = torchvision};

static const ki_names_rule original[] = {KI_NAME("downsample_layers.0.*", "stem.*"),
                                         KI_NAME("downsample_layers.#.*", "stages.#.downsample.*"),
                                         KI_NAME("stages.#.#.dwconv.*", "stages.#.blocks.#.conv_dw.*"),
                                         KI_NAME("stages.#.#.norm.*", "stages.#.blocks.#.norm.*"),
                                         KI_NAME("stages.#.#.pwconv#.*", "stages.#.blocks.#.mlp.fc#.*"),
                                         KI_NAME("stages.#.#.grn.gamma", "stages.#.blocks.#.mlp.grn.weight"),
                                         KI_NAME("stages.#.#.grn.beta", "stages.#.blocks.#.mlp.grn.bias"),
                                         KI_NAME("stages.#.#.gamma", "stages.#.blocks.#.gamma"),
                                         KI_NAME("norm.*", "head.norm.*"),
                                         KI_NAME("head.*", "head.fc.*"),
                                         KI_NAME_END};

const ki_naming ki_names_convnext_original = {
    .library = "the paper's code",
    .signs = {"downsample_layers.0.0.weight", "stages.0.0.dwconv.weight"},
    .rules = original};

/* timm's names are ours; its 1x1 convolutions are linear layers. */
static const ki_names_rule timm[] = {
    KI_NAME_AXES("stages.#.blocks.#.mlp.fc#.weight", "stages.#.blocks.#.mlp.fc#.weight", 2), KI_NAME_END};

const ki_naming ki_names_convnext_timm = {.library = "timm", .rules = timm};
