/* What every backbone builds: parameters as published, taps, the smallest image, errors. */
#include <math.h>
#include <string.h>

#include "net/net.h"
#include "nn/params.h"
#include "support/testing.h"

static int64_t count_params(const ki_net *net) {
    int64_t n = 0;
    for (int i = 0; i < ki_graph_count(net->graph); i++) {
        const ki_node *node = ki_graph_node(net->graph, i);
        for (int k = 0; k < node->n_params; k++) {
            if (node->param[k].trained) n += ki_shape_count(&node->param[k].shape);
        }
    }
    return n;
}

/* Published counts with the 1000-class classifier: the weight file's README for googlenet, Cadene's for bn_inception,
 * timm's for convnext_v2_t, torchvision's for all others. */
static void test_parameter_counts(void **state) {
    (void)state;
    static const struct {
        const char *backbone;
        int64_t n;
    } rows[] = {{"googlenet", 6998552},          {"bn_inception", 11295240},   {"resnet50", 25557032},
                {"resnet18", 11689512},          {"resnet34", 21797672},       {"resnet101", 44549160},
                {"mobilenet_v3_large", 5483032}, {"efficientnet_b0", 5288548}, {"convnext_t", 28589128},
                {"convnext_s", 50223688},        {"convnext_v2_t", 28635496},  {"swin_t", 28288354}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        ki_net net = {0};
        const ki_net_options options = {.backbone = rows[i].backbone, .classes = 1000};
        assert_ok(ki_net_init(&options, &net, &err), &err);
        if (count_params(&net) != rows[i].n)
            fail_msg("%s has %lld parameters, wanted %lld", rows[i].backbone, (long long)count_params(&net),
                     (long long)rows[i].n);
        ki_net_release(&net);
    }
}

static void assert_tap(const ki_net *net, const char *tap, ki_shape want) {
    kith_error err = {0};
    int node = 0;
    assert_ok(ki_graph_find_tap(net->graph, tap, &node, &err), &err);
    const ki_shape *found = &ki_graph_node(net->graph, node)->shape;
    char a[80], b[80];
    if (!ki_shape_equal(found, &want))
        fail_msg("%s: %s is %s, wanted %s", net->backbone->name, tap, ki_shape_text(found, a, sizeof a),
                 ki_shape_text(&want, b, sizeof b));
}

static void test_taps(void **state) {
    (void)state;
    static const struct {
        const char *backbone;
        int64_t c, size, features, map;
    } rows[] = {
        {"googlenet", 3, 224, 1024, 7},       {"googlenet", 3, 227, 1024, 7},
        {"googlenet", 3, 256, 1024, 8},       {"bn_inception", 3, 224, 1024, 7},
        {"bn_inception", 3, 227, 1024, 7},    {"resnet50", 3, 224, 2048, 7},
        {"resnet50", 3, 227, 2048, 8},        {"convnet4", 1, 28, 64, 1},
        {"convnet4", 1, 105, 64, 6},          {"convnet4", 3, 84, 64, 5},
        {"resnet18", 3, 224, 512, 7},         {"resnet101", 3, 224, 2048, 7},
        {"efficientnet_b0", 3, 224, 1280, 7}, {"convnext_t", 3, 224, 768, 7},
        {"convnext_s", 3, 256, 768, 8},       {"convnext_v2_t", 3, 224, 768, 7},
        {"swin_t", 3, 224, 768, 7},           {"swin_t", 3, 256, 768, 8},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        ki_net net = {0};
        const ki_net_options options = {.backbone = rows[i].backbone,
                                        .c = rows[i].c,
                                        .h = rows[i].size,
                                        .w = rows[i].size,
                                        .embedding = 512,
                                        .classes = 10};
        assert_ok(ki_net_init(&options, &net, &err), &err);
        assert_tap(&net, "map", KI_SHAPE4(1, rows[i].features, rows[i].map, rows[i].map));
        assert_tap(&net, "pooled", KI_SHAPE2(1, rows[i].features));
        assert_tap(&net, "embedding", KI_SHAPE2(1, 512));
        assert_tap(&net, "logits", KI_SHAPE2(1, 10));
        ki_net_release(&net);
    }
}

/* MobileNetV3 has a layer behind its pool, unless it is told otherwise. */
static void test_mobilenet_head(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        int64_t pooled;
    } rows[] = {{"head=true", 1280}, {"head=false", 960}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        ki_arena arena = {0};
        ki_net net = {0};
        ki_net_options options = {.backbone = "mobilenet_v3_large"};
        assert_ok(ki_settings_parse(&arena, rows[i].settings, NULL, &options.settings, &err), &err);
        assert_ok(ki_net_init(&options, &net, &err), &err);
        assert_tap(&net, "map", KI_SHAPE4(1, 960, 7, 7));
        assert_tap(&net, "pooled", KI_SHAPE2(1, rows[i].pooled));
        ki_net_release(&net);
        ki_arena_release(&arena);
    }
}

/* A last convolution over the whole map leaves one position, whatever the sides. */
static void test_convnet4_features(void **state) {
    (void)state;
    kith_error err = {0};
    ki_arena arena = {0};
    ki_value *settings = ki_value_new(&arena, KI_VALUE_MAP, NULL);
    ki_value_append(settings, "features", ki_value_new(&arena, KI_VALUE_SCALAR, "96"));
    ki_net net = {0};
    const ki_net_options options = {
        .backbone = "convnet4", .c = 1, .h = 64, .w = 48, .embedding = 32, .settings = settings};
    assert_ok(ki_net_init(&options, &net, &err), &err);
    assert_tap(&net, "map", KI_SHAPE4(1, 96, 1, 1));
    assert_tap(&net, "pooled", KI_SHAPE2(1, 96));
    assert_tap(&net, "embedding", KI_SHAPE2(1, 32));
    ki_net_release(&net);
    ki_arena_release(&arena);
}

/* The record's least size works, one less is refused with both sizes in the line. */
static void test_least_size(void **state) {
    (void)state;
    for (int i = 0; ki_backbone_at(i); i++) {
        const ki_backbone *backbone = ki_backbone_at(i);
        const int64_t least = backbone->least_size;
        kith_error err = {0};
        ki_net net = {0};
        ki_net_options options = {.backbone = backbone->name, .h = least, .w = least};
        assert_ok(ki_net_init(&options, &net, &err), &err);
        ki_net_release(&net);
        if (least == 1) continue;
        options.w = least - 1;
        assert_int_equal(ki_net_init(&options, &net, &err), KITH_ESHAPE);
        if (!strstr(err.message, "found")) fail_msg("%s: %s", backbone->name, err.message);
        /* and it is the network that cannot, not the record that is shy */
        ki_graph *graph = NULL;
        ki_body body = {0};
        _Alignas(16) unsigned char settings[KI_MOST_BACKBONE_SETTINGS];
        ki_options_default(backbone->options, settings);
        assert_ok(ki_graph_new(&graph, &err), &err);
        const int64_t c = backbone->channels ? backbone->channels : 3;
        backbone->build(graph, ki_graph_input(graph, c, least - 1, least - 1), settings, &body);
        if (ki_graph_check(graph, &err) == KITH_OK)
            fail_msg("%s also works for %lld pixels", backbone->name, (long long)least - 1);
        ki_graph_free(graph);
    }
}

static void assert_refused(const ki_net_options *options, kith_status status, const char *part) {
    kith_error err = {0};
    ki_net net = {0};
    assert_int_equal(ki_net_init(options, &net, &err), status);
    if (!strstr(err.message, part) && !strstr(err.hint, part))
        fail_msg("no '%s' in: %s (%s)", part, err.message, err.hint);
}

static void test_refusals(void **state) {
    (void)state;
    kith_error err = {0};
    ki_arena arena = {0};
    const ki_value *map = NULL;
    assert_refused(&(ki_net_options){.backbone = "googelnet"}, KITH_ENOTFOUND, "did you mean 'googlenet'?");
    assert_refused(&(ki_net_options){.backbone = "googlenet", .c = 1}, KITH_ESHAPE, "3 channels, found 1");
    assert_refused(&(ki_net_options){.backbone = "convnet4", .c = 5}, KITH_ESHAPE, "found 5");
    assert_refused(&(ki_net_options){.backbone = "convnet4", .embedding = -3}, KITH_EINVAL, "-3");
    assert_ok(ki_settings_parse(&arena, "stride=2x2", NULL, &map, &err), &err);
    assert_refused(&(ki_net_options){.backbone = "resnet50", .settings = map}, KITH_EINVAL, "3x3|1x1");
    assert_ok(ki_settings_parse(&arena, "strid=1x1", NULL, &map, &err), &err);
    assert_refused(&(ki_net_options){.backbone = "resnet50", .settings = map}, KITH_ENOTFOUND, "stride");
    assert_int_equal(ki_settings_parse(&arena, "stride", NULL, &map, &err), KITH_EINVAL);
    assert_int_equal(ki_settings_parse(&arena, "a=1,a=2", NULL, &map, &err), KITH_EINVAL);
    ki_arena_release(&arena);
}

static void test_settings_text_reads_back(void **state) {
    (void)state;
    kith_error err = {0};
    ki_arena arena = {0};
    const ki_value *map = NULL;
    ki_net net = {0};
    char text[256];
    assert_ok(ki_settings_parse(&arena, "preprocess=caffe,stride=1x1", NULL, &map, &err), &err);
    assert_ok(ki_net_init(&(ki_net_options){.backbone = "resnet50", .settings = map}, &net, &err), &err);
    assert_string_equal(ki_net_settings_text(&net, text, sizeof text), "stride=1x1,preprocess=caffe");
    assert_true(net.preprocess.bgr);
    ki_net_release(&net);
    assert_ok(ki_settings_parse(&arena, "dropout=0.1", NULL, &map, &err), &err);
    assert_ok(ki_net_init(&(ki_net_options){.backbone = "googlenet", .settings = map}, &net, &err), &err);
    assert_string_equal(ki_net_settings_text(&net, text, sizeof text), "dropout=0.1");
    ki_net_release(&net);
    ki_arena_release(&arena);
}

/* 2 * multiply-adds, the usual figures: resnet50 4.1, googlenet 1.6, bn_inception 2.0 GMAC; those of the papers for
 * the others. */
static void test_flops(void **state) {
    (void)state;
    static const struct {
        const char *backbone;
        double least, most;
    } rows[] = {{"googlenet", 3.1e9, 3.3e9},
                {"bn_inception", 4.0e9, 4.2e9},
                {"resnet50", 8.1e9, 8.3e9},
                {"resnet18", 3.6e9, 3.7e9},
                {"mobilenet_v3_large", 0.42e9, 0.45e9},
                {"efficientnet_b0", 0.76e9, 0.80e9},
                {"convnext_t", 8.8e9, 9.0e9},
                {"convnext_v2_t", 8.8e9, 9.0e9},
                {"swin_t", 8.8e9, 9.1e9}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        ki_net net = {0};
        assert_ok(ki_net_init(&(ki_net_options){.backbone = rows[i].backbone}, &net, &err), &err);
        const double flops = ki_graph_flops(net.graph, "pooled");
        if (!(flops > rows[i].least && flops < rows[i].most))
            fail_msg("%s takes %g flops, wanted %g to %g", rows[i].backbone, flops, rows[i].least,
                     rows[i].most);
        ki_net_release(&net);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameter_counts),
        cmocka_unit_test(test_taps),
        cmocka_unit_test(test_mobilenet_head),
        cmocka_unit_test(test_convnet4_features),
        cmocka_unit_test(test_least_size),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_flops),
        cmocka_unit_test(test_settings_text_reads_back),
    };
    return cmocka_run_group_tests_name("net/backbones", tests, NULL, NULL);
}
