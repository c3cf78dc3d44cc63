/* Depths of layers, as BEiT counts them: the stem 0, blocks from 1, the rest n + 1. */
#include "net/depth.h"

#include <math.h>
#include <string.h>

#include "support/testing.h"

typedef struct row {
    const char *node;
    int depth;
} row;

static void check(const ki_net *net, const char *what, int n, const row *rows) {
    ki_depths depths;
    kith_error err;
    assert_ok(ki_depths_find(net, &depths, &err), &err);
    if (depths.n != n) fail_msg("%s has %d blocks; wanted %d", what, depths.n, n);
    for (; rows->node; rows++) {
        const int node = ki_graph_find(net->graph, rows->node);
        if (node < 0) fail_msg("%s has no node %s", what, rows->node);
        if (depths.depth[node] != rows->depth)
            fail_msg("%s: %s has depth %d; wanted %d", what, rows->node, depths.depth[node], rows->depth);
    }
    ki_depths_release(&depths);
}

static void test_backbones(void **state) {
    (void)state;
    static const struct {
        ki_net_options options;
        int n;
        row rows[12];
    } nets[] = {
        {{.backbone = "resnet50"},
         16,
         {{"conv1", 0},
          {"bn1", 0},
          {"layer1.0.conv1", 1},
          {"layer1.0.downsample.0", 1},
          {"layer1.2.bn3", 3},
          {"layer2.0.conv2", 4},
          {"layer3.5.conv1", 13},
          {"layer4.0.downsample.1", 14},
          {"layer4.2.bn3", 16},
          {"embedding", 17}}},
        {{.backbone = "googlenet"},
         11,
         {{"conv1.conv", 0},
          {"conv2.conv", 1},
          {"conv3.conv", 2},
          {"inception3a.branch2.0.conv", 3},
          {"inception3a.branch4.1.conv", 3},
          {"inception5b.branch1.conv", 11},
          {"embedding", 12}}},
        {{.backbone = "bn_inception"},
         11,
         {{"conv1_7x7_s2", 0},
          {"conv1_7x7_s2_bn", 0},
          {"conv2_3x3_reduce", 1},
          {"conv2_3x3_bn", 1},
          {"inception_3a_1x1", 2},
          {"inception_5b_pool_proj_bn", 11},
          {"embedding", 12}}},
        {{.backbone = "convnet4"}, 3, {{"conv1", 0}, {"bn1", 0}, {"conv2", 1}, {"bn4", 3}, {"embedding", 4}}},
        {{.backbone = "convnet4", .heads = 2, .map_channels = 8},
         3,
         {{"conv2", 1}, {"attention.conv3", 2}, {"conv3", 2}, {"bn4", 3}, {"map", 4}, {"embedding", 4}}},
        {{.backbone = "mlp"},
         1,
         {{"block1.linear", 0}, {"block1.norm", 0}, {"block2.norm", 1}, {"embedding", 2}}},
    };
    for (size_t i = 0; i < N_ROWS(nets); i++) {
        ki_net net = {0};
        kith_error err;
        ki_net_options options = nets[i].options;
        options.embedding = 8;
        assert_ok(ki_net_init(&options, &net, &err), &err);
        check(&net, options.backbone, nets[i].n, nets[i].rows);
        ki_net_release(&net);
    }
}

/* Names of networks to come, on a chain of layers: those of ViT, ConvNeXt and Swin in timm. */
static void check_names(const char *what, int n, const row *rows) {
    static const ki_backbone backbone = {.name = "chain", .vector = 4};
    ki_net net = {.backbone = &backbone};
    kith_error err;
    assert_ok(ki_graph_new(&net.graph, &err), &err);
    int x = ki_graph_input_vectors(net.graph, 4);
    for (const row *r = rows; r->node; r++) {
        x = ki_graph_linear(net.graph, r->node, x, (ki_linear_attr){.oc = 4});
        if (r[1].node && strcmp(r[1].node, "embedding") == 0) ki_graph_tap(net.graph, x, "pooled");
    }
    assert_ok(ki_graph_check(net.graph, &err), &err);
    check(&net, what, n, rows);
    ki_net_release(&net);
}

static void test_names(void **state) {
    (void)state;
    check_names("ViT", 2,
                (row[]){{"patch_embed.proj", 0},
                        {"blocks.0.norm1", 1},
                        {"blocks.0.attn.qkv", 1},
                        {"blocks.1.mlp.fc2", 2},
                        {"norm", 3},
                        {"embedding", 3},
                        {NULL, 0}});
    /* A downsampling belongs to the block behind it; `stem.0` is no block. */
    check_names("ConvNeXt", 3,
                (row[]){{"stem.0", 0},
                        {"stem.1", 0},
                        {"stages.0.blocks.0.conv_dw", 1},
                        {"stages.0.blocks.1.mlp.fc1", 2},
                        {"stages.1.downsample.0", 3},
                        {"stages.1.downsample.1", 3},
                        {"stages.1.blocks.0.mlp.fc2", 3},
                        {"head.norm", 4},
                        {"embedding", 4},
                        {NULL, 0}});
    check_names("Swin", 3,
                (row[]){{"patch_embed.proj", 0},
                        {"layers.0.blocks.0.attn.qkv", 1},
                        {"layers.1.downsample.reduction", 2},
                        {"layers.1.blocks.0.mlp.fc1", 2},
                        {"layers.1.blocks.1.mlp.fc1", 3},
                        {"norm", 4},
                        {"embedding", 4},
                        {NULL, 0}});
}

static void test_rates(void **state) {
    (void)state;
    ki_depths depths = {.n = 12, .depth = (int[]){0, 1, 12, 13}};
    const double wanted[] = {0.023757264018058777, 0.03167635202407837, 0.75, 1}; /* 0.75^13, ^12, ^1, ^0 */
    for (int i = 0; i < 4; i++) {
        const double found = ki_depths_rate(&depths, i, 0.75);
        if (!(fabs(found - wanted[i]) < 1e-12))
            fail_msg("depth %d: %g, wanted %g", depths.depth[i], found, wanted[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backbones),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
