/* LoRA and frozen layers: what learns, its gradient, the merged file, mistakes. */
#include "net/adapting.h"

#include "base/alloc.h"

static const char *const devices[] = {"ref", "cpu"};

static void test_gradient(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(devices); i++) check_gradient(devices[i]);
}

static void test_trained(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(devices); i++) check_trained(devices[i]);
}

static void test_no_dropout(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(devices); i++) check_no_dropout(devices[i]);
}

static void test_merged(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(devices); i++) check_merged(devices[i]);
}

/* How many parameters of the backbone learn with model.freeze. */
static void test_freeze(void **state) {
    (void)state;
    static const struct {
        const char *backbone, *freeze;
        const char *last, *next; /* the last parameter that is frozen, and the first that is not */
    } rows[] = {
        {"resnet50", "conv1", "conv1.weight", "bn1.weight"},
        {"resnet50", "layer1", "layer1.2.bn3.bias", "layer2.0.conv1.weight"},
        {"resnet50", "layer3.2", "layer3.2.bn3.bias", "layer3.3.conv1.weight"},
        {"resnet50", "backbone", "layer4.2.bn3.bias", "embedding.weight"},
        {"bn_inception", "inception_3a", "inception_3a_pool_proj_bn.bias", "inception_3b_1x1.weight"},
        {"googlenet", "inception4c", "inception4c.branch4.1.conv.bias", "inception4d.branch1.conv.weight"},
        {"convnet4", "pool2", "bn2.bias", "conv3.weight"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err;
        ki_net net = {0};
        const ki_net_options options = {
            .backbone = rows[i].backbone, .embedding = 8, .adapt = {.freeze = rows[i].freeze}};
        assert_ok(ki_net_init(&options, &net, &err), &err);
        bool is_behind = false;
        const char *last = "", *next = "";
        for (int n = 0; n < ki_graph_count(net.graph); n++) {
            const ki_node *node = ki_graph_node(net.graph, n);
            for (int p = 0; p < node->n_params; p++) {
                const bool is_statistic = node->param[p].slot == KI_MEAN || node->param[p].slot == KI_VAR;
                if (is_statistic) continue;
                if (node->param[p].trained && !is_behind) next = node->param[p].name;
                is_behind |= node->param[p].trained;
                if (!node->param[p].trained) last = node->param[p].name;
            }
        }
        if (strcmp(last, rows[i].last) != 0 || strcmp(next, rows[i].next) != 0)
            fail_msg("%s, freeze %s: %s is the last that is frozen, and %s learns; wanted %s and %s",
                     rows[i].backbone, rows[i].freeze, last, next, rows[i].last, rows[i].next);
        ki_net_release(&net);
    }
}

static void test_mistakes(void **state) {
    (void)state;
    static const char *const qkv[] = {"qkv"};
    static const struct {
        const char *backbone;
        ki_adaptation adapt;
        const char *message, *hint;
    } rows[] = {
        {"resnet50", {.freeze = "layer5"}, "freeze: unknown layer 'layer5'", "did you mean 'layer"},
        {"vit_t",
         {.freeze = "embedding"},
         "freeze: unknown layer 'embedding'",
         "known: backbone, patch_embed, tokens, blocks, norm, patch_embed.proj, blocks.0, blocks.1, "
         "blocks.2"},
        {"resnet50", {.rank = 8, .alpha = 8}, "LoRA is for linear layers, and resnet50 has none", ""},
        {"mlp",
         {.rank = 8, .alpha = 8, .freeze = "backbone"},
         "LoRA is for linear layers, and mlp has none that is not frozen",
         ""},
        {"mlp",
         {.rank = 8, .alpha = 8, .n_layers = 1, .layers = qkv},
         "LoRA: no linear layer of mlp that learns is called 'qkv'",
         "one is block1.linear; * stands for anything"},
        {"mlp", {.rank = 1025, .alpha = 8}, "LoRA of rank 1025 and alpha 8; wanted 1 to 1024", ""},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        ki_net net = {0};
        const ki_net_options options = {.backbone = rows[i].backbone, .embedding = 8, .adapt = rows[i].adapt};
        assert_int_not_equal(ki_net_init(&options, &net, &err), KITH_OK);
        if (!strstr(err.message, rows[i].message) || !strstr(err.hint, rows[i].hint))
            fail_msg("%s (%s); wanted %s (%s)", err.message, err.hint, rows[i].message, rows[i].hint);
    }
}

static void test_no_memory(void **state) {
    (void)state;
    const ki_adaptation how = {.rank = 3, .alpha = 6, .freeze = "block1"};
    side s = side_make("cpu", &(ki_adaptation){0});
    ki_plan_free(s.plan);
    s.plan = NULL;
    for (int64_t n = 0;; n++) {
        kith_error err = {0};
        ki_alloc_fail_after(n);
        const kith_status status = ki_adapt(&how, 1, s.backend, &s.net, &s.params, &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (!has_failed) {
            assert_ok(status, &err);
            break;
        }
        if (status != KITH_ENOMEM) fail_msg("without allocation %lld: %s", (long long)n, err.message);
        assert_int_equal(s.net.adapt.rank, 0);
    }
    assert_non_null(ki_params_find(s.params, "block2.linear.lora_a.weight"));
    assert_null(ki_params_find(s.params, "block1.linear.lora_a.weight"));
    side_release(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient),  cmocka_unit_test(test_trained), cmocka_unit_test(test_no_dropout),
        cmocka_unit_test(test_merged),    cmocka_unit_test(test_freeze),  cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
