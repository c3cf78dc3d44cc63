/* The table of backbones, and blocks that several of them use. */
#include "net/backbone.h"

#include <string.h>

#define X(name) extern const ki_backbone ki_backbone_##name;
#include "net/table.def"
#undef X

static const ki_backbone *const backbones[] = {
#define X(name) &ki_backbone_##name,
#include "net/table.def"
#undef X
};
enum { N_BACKBONES = sizeof backbones / sizeof backbones[0] };

const ki_backbone *ki_backbone_at(int i) { return i >= 0 && i < N_BACKBONES ? backbones[i] : NULL; }

kith_status ki_backbone_find(const char *name, const ki_backbone **ret_backbone, kith_error *err) {
    const char *names[N_BACKBONES];
    for (int i = 0; i < N_BACKBONES; i++) {
        names[i] = backbones[i]->name;
        if (strcmp(names[i], name) != 0) continue;
        *ret_backbone = backbones[i];
        return KITH_OK;
    }
    return ki_fail_unknown(err, "backbone", name, names, N_BACKBONES);
}

int ki_conv_relu(ki_graph *graph, const char *name, int src, int64_t oc, int64_t k, int64_t s, int64_t p) {
    const ki_conv_attr attr = {.oc = oc, .kh = k, .kw = k, .sh = s, .sw = s, .ph = p, .pw = p, .bias = true};
    return ki_graph_relu(graph, ki_graph_conv(graph, name, src, attr));
}

int ki_conv_bn_add(ki_graph *graph, const char *conv, const char *bn, int src, ki_conv_bn attr) {
    const ki_conv_attr conv_attr = {.oc = attr.oc,
                                    .kh = attr.k,
                                    .kw = attr.k,
                                    .sh = attr.s,
                                    .sw = attr.s,
                                    .ph = attr.p,
                                    .pw = attr.p,
                                    .bias = attr.bias};
    const ki_bn_attr bn_attr = {.eps = 1e-5, .momentum = 0.1};
    const int node = ki_graph_batch_norm(graph, bn, ki_graph_conv(graph, conv, src, conv_attr), bn_attr);
    return attr.relu ? ki_graph_relu(graph, node) : node;
}

int ki_max_pool_3x3_s2(ki_graph *graph, const char *name, int src) {
    return ki_graph_pool(graph, name, src, (ki_pool_attr){.k = 3, .s = 2, .ceil_mode = true});
}

int ki_act_add(ki_graph *graph, int src, ki_act how) {
    return ki_graph_op(graph, KI_OP_ACT, NULL, 1, &src, (ki_attr){.act = {how}});
}

int ki_drop_path_add(ki_graph *graph, int src, double p) {
    return p > 0 ? ki_graph_op(graph, KI_OP_DROP_PATH, NULL, 1, &src, (ki_attr){.drop_path = {p}}) : src;
}

kith_preprocess ki_preprocess_imagenet(void) {
    return (kith_preprocess){.scale = 1.0 / 255, .mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}};
}
