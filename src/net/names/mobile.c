/* MobileNetV3 and EfficientNet of torchvision. Ours are timm's names, which differ between blocks that expand and blocks that do not. */
#include "net/names/names.h"

/* A convolution and its norm. */
#define CONV_BN(theirs, conv, bn) KI_NAME(theirs ".0.*", conv ".*"), KI_NAME(theirs ".1.*", bn ".*")
/* The places of squeeze and excitation and of what is behind it, in a block that expands. */
#define EXPANDING                                                               \
    CONV_BN("blocks.#.#.block.0", "blocks.#.#.conv_pw", "blocks.#.#.bn1"),      \
        CONV_BN("blocks.#.#.block.1", "blocks.#.#.conv_dw", "blocks.#.#.bn2"),  \
        KI_NAME("blocks.#.#.block.2.fc1.*", "blocks.#.#.se.conv_reduce.*"),     \
        KI_NAME("blocks.#.#.block.2.fc2.*", "blocks.#.#.se.conv_expand.*"),     \
        CONV_BN("blocks.#.#.block.2", "blocks.#.#.conv_pwl", "blocks.#.#.bn3"), \
        CONV_BN("blocks.#.#.block.3", "blocks.#.#.conv_pwl", "blocks.#.#.bn3")

/* torchvision counts blocks, timm counts them by stages. */
#define BLOCK(theirs, ours) KI_NAME_AGAIN("features." theirs ".block.*", "blocks." ours ".block.*")

static const ki_names_rule mobilenet_v3[] = {
    CONV_BN("features.0", "conv_stem", "bn1"),
    BLOCK("1", "0.0"),
    BLOCK("2", "1.0"),
    BLOCK("3", "1.1"),
    BLOCK("4", "2.0"),
    BLOCK("5", "2.1"),
    BLOCK("6", "2.2"),
    BLOCK("7", "3.0"),
    BLOCK("8", "3.1"),
    BLOCK("9", "3.2"),
    BLOCK("10", "3.3"),
    BLOCK("11", "4.0"),
    BLOCK("12", "4.1"),
    BLOCK("13", "5.0"),
    BLOCK("14", "5.1"),
    BLOCK("15", "5.2"),
    CONV_BN("blocks.0.0.block.0", "blocks.0.0.conv_dw", "blocks.0.0.bn1"),
    CONV_BN("blocks.0.0.block.1", "blocks.0.0.conv_pw", "blocks.0.0.bn2"),
    EXPANDING,
    CONV_BN("features.#", "blocks.6.0.conv", "blocks.6.0.bn1"),
    KI_NAME("classifier.0.*", "conv_head.*"),
    KI_NAME("classifier.3.*", "classifier.*"),
    KI_NAME_END};

const ki_naming ki_names_mobilenet_v3_torchvision = {
    .library = "torchvision",
    .signs = {"features.0.0.weight", "features.1.block.0.0.weight"},
    .rules = mobilenet_v3};

static const ki_names_rule efficientnet[] = {
    CONV_BN("features.0", "conv_stem", "bn1"),
    KI_NAME_AGAIN("features.#.#.block.*", "blocks.#-1.#.block.*"),
    CONV_BN("blocks.0.#.block.0", "blocks.0.#.conv_dw", "blocks.0.#.bn1"),
    KI_NAME("blocks.0.#.block.1.fc1.*", "blocks.0.#.se.conv_reduce.*"),
    KI_NAME("blocks.0.#.block.1.fc2.*", "blocks.0.#.se.conv_expand.*"),
    CONV_BN("blocks.0.#.block.2", "blocks.0.#.conv_pw", "blocks.0.#.bn2"),
    EXPANDING,
    CONV_BN("features.#", "conv_head", "bn2"),
    KI_NAME("classifier.1.*", "classifier.*"),
    KI_NAME_END};

const ki_naming ki_names_efficientnet_torchvision = {
    .library = "torchvision",
    .signs = {"features.0.0.weight", "features.1.0.block.0.0.weight", "features.1.0.block.1.fc1.weight"},
    .rules = efficientnet};

/* timm's names are ours; its linear layers are 1x1 convolutions. */
static const ki_names_rule timm[] = {
    KI_NAME_AXES("blocks.#.#.se.conv_reduce.weight", "blocks.#.#.se.conv_reduce.weight", 4),
    KI_NAME_AXES("blocks.#.#.se.conv_expand.weight", "blocks.#.#.se.conv_expand.weight", 4),
    KI_NAME_AXES("conv_head.weight", "conv_head.weight", 4), KI_NAME_END};

const ki_naming ki_names_mobile_timm = {.library = "timm", .rules = timm};
