/* convnet4: four times 3x3 convolution, batch norm, ReLU and 2x2 max pool; the small network of the
 * few-shot papers (Vinyals et al., "Matching networks for one shot learning", NeurIPS 2016) for
 * images of 28 to 105 pixels, grey or colour. */
#include <stdio.h>

#include "base/text.h"
#include "net/backbone.h"

typedef struct settings {
    int64_t width, features;
} settings;

static const ki_option options[] = {
    KI_OPTION_INT(settings, width, 64, 1, 4096, "channels of every layer",
                  "Vinyals et al. 2016, section 4.1"),
    KI_OPTION_INT(settings, features, 0, 0, 65536,
                  "outputs of a last convolution over the whole map, for images whose places matter; 0: none",
                  "ours; few-shot papers flatten the map"),
    KI_OPTION_END};

/* One output position, with its own weights for every place of the map. */
static int add_features(ki_graph *graph, int map, int64_t features) {
    if (map < 0) return map; /* the graph keeps the error */
    const ki_shape *shape = &ki_graph_node(graph, map)->shape;
    const ki_conv_attr conv = {.oc = features, .kh = shape->dim[2], .kw = shape->dim[3], .sh = 1, .sw = 1};
    const int x = ki_graph_conv(graph, "conv5", map, conv);
    return ki_graph_relu(graph,
                         ki_graph_batch_norm(graph, "bn5", x, (ki_bn_attr){.eps = 1e-5, .momentum = 0.1}));
}

/* Convolution i with its batch norm and ReLU. */
static int add_conv(ki_graph *graph, int i, int src, int64_t width) {
    char conv[32], bn[32];
    ki_snprintf(conv, sizeof conv, "conv%d", i);
    ki_snprintf(bn, sizeof bn, "bn%d", i);
    return ki_conv_bn_add(graph, conv, bn, src,
                          (ki_conv_bn){.oc = width, .k = 3, .s = 1, .p = 1, .relu = true});
}

static void build(ki_graph *graph, int input, const void *settings_, ki_body *ret_body) {
    const settings *set = settings_;
    int x = input;
    for (int i = 1; i <= 4; i++) {
        char pool[16];
        ki_snprintf(pool, sizeof pool, "pool%d", i);
        x = add_conv(graph, i, x, set->width);
        x = ki_graph_pool(graph, pool, x, (ki_pool_attr){.k = 2, .s = 2});
    }
    ret_body->map = set->features > 0 ? add_features(graph, x, set->features) : x;
    ret_body->dropout = 0;
    ret_body->preprocess =
        (kith_preprocess){.scale = 1.0 / 255, .mean = {0.5, 0.5, 0.5, 0.5}, .std = {0.5, 0.5, 0.5, 0.5}};
}

const ki_backbone ki_backbone_convnet4 = {
    .name = "convnet4",
    .summary = "four small convolutions for images of 28 to 105 pixels, grey or colour, 64 features",
    .source = "Vinyals et al., NeurIPS 2016",
    .classifier = "fc",
    .channels = 0,
    .size = 28,
    .least_size = 16,
    .options = options,
    .tower = {"conv3", "pool3"},
    .build = build,
};
