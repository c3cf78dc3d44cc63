/* The small network's graph. */
#include "support/small_net.h"

#include "base/rng.h"
#include "support/testing.h"

static const ki_bn_attr bn = {.eps = 1e-5, .momentum = 0.1};

static int conv(ki_graph *g, const char *name, int src, int64_t oc, int64_t k, int64_t s, bool bias) {
    return ki_graph_conv(
        g, name, src,
        (ki_conv_attr){.oc = oc, .kh = k, .kw = k, .sh = s, .sw = s, .ph = k / 2, .pw = k / 2, .bias = bias});
}

static int inception(ki_graph *g, int src) {
    const int a = ki_graph_relu(g, conv(g, "mix.a", src, 4, 1, 1, true));
    const int b0 = ki_graph_relu(g, conv(g, "mix.b_reduce", src, 3, 1, 1, true));
    const int b = ki_graph_relu(g, conv(g, "mix.b", b0, 6, 3, 1, true));
    const int c0 = ki_graph_pool(g, "mix.pool", src, (ki_pool_attr){.k = 3, .s = 1, .p = 1});
    const int c = ki_graph_relu(g, conv(g, "mix.c", c0, 2, 1, 1, true));
    const int sources[] = {a, b, c};
    return ki_graph_concat(g, "mix", 3, sources);
}

static int residual(ki_graph *g, int src) {
    const int a =
        ki_graph_relu(g, ki_graph_batch_norm(g, "res.bn1", conv(g, "res.conv1", src, 5, 3, 2, false), bn));
    const int b = ki_graph_batch_norm(g, "res.bn2", conv(g, "res.conv2", a, 8, 1, 1, false), bn);
    const int project = ki_graph_batch_norm(g, "res.bn0", conv(g, "res.conv0", src, 8, 1, 2, false), bn);
    const int first = ki_graph_relu(g, ki_graph_add(g, "res", b, project));
    /* A second one whose shortcut is the tensor itself: its gradient has two parts. */
    const int c = ki_graph_batch_norm(g, "res2.bn", conv(g, "res2.conv", first, 8, 3, 1, false), bn);
    return ki_graph_relu(g, ki_graph_add(g, "res2", c, first));
}

void small_net_build(ki_graph *g, bool dropout) {
    int x = ki_graph_input(g, SMALL_NET_C, SMALL_NET_H, SMALL_NET_W);
    x = ki_graph_relu(g, ki_graph_batch_norm(g, "bn1", conv(g, "conv1", x, 6, 3, 1, false), bn));
    x = ki_graph_pool(g, "pool1", x, (ki_pool_attr){.k = 3, .s = 2, .ceil_mode = true});
    x = ki_graph_lrn(g, "lrn1", x, (ki_lrn_attr){.size = 5, .alpha = 0.5, .beta = 0.75, .k = 1});
    x = inception(g, x);
    x = ki_graph_pool(g, "pool2", x, (ki_pool_attr){.average = true, .k = 2, .s = 1, .count_pad = true});
    x = residual(g, x);
    ki_graph_tap(g, x, "map");
    x = ki_graph_global_pool(g, "pool3", x, (ki_global_pool_attr){KI_GLOBAL_BOTH});
    ki_graph_tap(g, x, "pooled");
    const int pooled = x;
    if (dropout) x = ki_graph_dropout(g, "drop", x, (ki_dropout_attr){0.3});
    x = ki_graph_linear(g, "embedding", x, (ki_linear_attr){.oc = 7, .bias = true});
    x = ki_graph_l2_norm(g, "norm", x, (ki_l2_norm_attr){1e-12});
    ki_graph_tap(g, x, "embedding");
    x = ki_graph_linear(g, "logits", pooled, (ki_linear_attr){.oc = SMALL_NET_CLASSES, .bias = true});
    ki_graph_tap(g, x, "logits");
}

ki_graph *small_net_graph(bool dropout) {
    ki_graph *graph = NULL;
    kith_error err;
    assert_ok(ki_graph_new(&graph, &err), &err);
    small_net_build(graph, dropout);
    return graph;
}

void small_net_shake(ki_params *params, double span, ki_real *buffer) {
    kith_error err;
    for (int i = 0; i < ki_params_count(params); i++) {
        const ki_param *p = ki_params_at(params, i);
        uint32_t stream = 0;
        for (const char *c = p->name; *c; c++) stream = stream * 31 + (unsigned char)*c;
        ki_rng rng = ki_rng_at(9, KI_RNG_TEST, stream, 0);
        assert_ok(ki_params_get(params, p, buffer, &err), &err);
        for (int64_t j = 0; j < p->n; j++) buffer[j] += (ki_real)(span * (ki_rng_double(&rng) - 0.5));
        assert_ok(ki_params_set(params, p, buffer, &err), &err);
    }
}
