/* A small ensemble of heads with its whole objective: the network, the loss over heads, their divergence and HORDE on
 * the heads' maps. In float and in double. Included by one test program each. */
#ifndef KITH_TEST_ENSEMBLE_H
#define KITH_TEST_ENSEMBLE_H

#include <string.h>

#include "nn/plan.h"
#include "objective/cases.h"
#include "support/testing.h"

enum {
    ENSEMBLE_C = 3,
    ENSEMBLE_H = 13,
    ENSEMBLE_W = 12,
    ENSEMBLE_MB = 9,
    ENSEMBLE_HEADS = 3,
    ENSEMBLE_EACH = 4,
    ENSEMBLE_DIM = ENSEMBLE_HEADS * ENSEMBLE_EACH,
    ENSEMBLE_MAP = 6,
    ENSEMBLE_WIDTH = 10,
    ENSEMBLE_INPUT = ENSEMBLE_MB * ENSEMBLE_C * ENSEMBLE_H * ENSEMBLE_W,
};

static const int32_t ensemble_labels[ENSEMBLE_MB] = {0, 0, 0, 1, 1, 1, 2, 2, 2};
static const char *const ensemble_recipe =
    "loss: {name: contrastive, form: horde}\n"
    "regularizers:\n"
    "  - {name: head_divergence, weight: 0.5}\n"
    "  - {name: horde, orders: 3, dimension: 7, embedding: 5, weight: 0.25}";
static const char *const ensemble_taps[] = {"map", "embedding"};
static const ki_tap ensemble_tap[] = {KI_TAP_MAP, KI_TAP_EMBEDDING};
enum { ENSEMBLE_TAPS = 2 };

typedef struct ensemble {
    ki_backend *backend;
    ki_graph *graph;
    ki_params *params;
    ki_plan *plan;
    made made;
    ki_real *input; /* [ENSEMBLE_INPUT] */
    ki_real *tap[ENSEMBLE_TAPS];
    ki_shape shape[ENSEMBLE_TAPS];
} ensemble;

/* A 3x3 convolution, its batch norm and a ReLU. */
static inline int ensemble_conv(ki_graph *g, const char *prefix, int src) {
    char conv[32], bn[32];
    snprintf(conv, sizeof conv, "%sconv2", prefix);
    snprintf(bn, sizeof bn, "%sbn2", prefix);
    const int x = ki_graph_conv(
        g, conv, src,
        (ki_conv_attr){.oc = ENSEMBLE_WIDTH, .kh = 3, .kw = 3, .sh = 1, .sw = 1, .ph = 1, .pw = 1});
    return ki_graph_relu(g, ki_graph_batch_norm(g, bn, x, (ki_bn_attr){.eps = 1e-5, .momentum = 0.1}));
}

static inline void ensemble_build(ki_graph *g) {
    int x = ki_graph_input(g, ENSEMBLE_C, ENSEMBLE_H, ENSEMBLE_W);
    x = ki_graph_relu(
        g, ki_graph_conv(
               g, "conv1", x,
               (ki_conv_attr){.oc = 16, .kh = 3, .kw = 3, .sh = 1, .sw = 1, .ph = 1, .pw = 1, .bias = true}));
    x = ki_graph_pool(g, "pool1", x, (ki_pool_attr){.k = 3, .s = 2, .ceil_mode = true});
    const ki_conv_attr heads = {.oc = ENSEMBLE_HEADS * 16, .kh = 1, .kw = 1, .sh = 1, .sw = 1, .bias = true};
    x = ki_graph_attend(g, "attention", x,
                        ki_graph_conv(g, "attention.heads", ensemble_conv(g, "attention.", x), heads));
    x = ensemble_conv(g, "", x);
    x = ki_graph_pool(g, "pool2", x, (ki_pool_attr){.k = 2, .s = 2});
    const ki_conv_attr map = {.oc = ENSEMBLE_MAP, .kh = 1, .kw = 1, .sh = 1, .sw = 1};
    ki_graph_tap(g, ki_graph_conv(g, "map", ki_graph_unfold(g, "map.heads", x), map), "map");
    x = ki_graph_global_pool(g, "pool", x, (ki_global_pool_attr){KI_GLOBAL_AVG});
    x = ki_graph_linear(g, "embedding", x, (ki_linear_attr){.oc = ENSEMBLE_EACH});
    x = ki_graph_l2_norm(g, "embedding.norm", x, (ki_l2_norm_attr){1e-12});
    ki_graph_tap(g, ki_graph_unfold(g, "embedding.heads", x), "embedding");
}

/* Takes over the backend. */
static inline void ensemble_init(ensemble *e, ki_backend *backend) {
    kith_error err = {0};
    *e = (ensemble){.backend = backend};
    assert_ok(ki_graph_new(&e->graph, &err), &err);
    ensemble_build(e->graph);
    assert_ok(ki_params_new(e->graph, backend, &e->params, &err), &err);
    ki_plan_options options = {.mb = ENSEMBLE_MB, .mode = KI_TRAIN, .input_grad = true};
    for (int i = 0; i < ENSEMBLE_TAPS; i++) options.grad_taps[i] = ensemble_taps[i];
    assert_ok(ki_plan_new(e->graph, e->params, backend, &options, &e->plan, &err), &err);
    const ki_sizes sizes = {
        .n_classes = 3, .embedding = ENSEMBLE_DIM, .map = ENSEMBLE_MAP, .heads = ENSEMBLE_HEADS};
    e->made = made_of(ensemble_recipe, &sizes);
    e->input = ki_zalloc(ENSEMBLE_INPUT, sizeof *e->input);
    for (int i = 0; i < ENSEMBLE_TAPS; i++) {
        assert_ok(ki_plan_tap_shape(e->plan, ensemble_taps[i], &e->shape[i], &err), &err);
        e->tap[i] = ki_zalloc((size_t)ki_shape_count(&e->shape[i]), sizeof *e->tap[i]);
    }
}

static inline void ensemble_release(ensemble *e) {
    for (int i = 0; i < ENSEMBLE_TAPS; i++) ki_free(e->tap[i]);
    ki_free(e->input);
    made_free(&e->made);
    ki_plan_free(e->plan);
    ki_params_free(e->params);
    ki_graph_free(e->graph);
    ki_backend_close(e->backend);
}

/* The objective's value; its gradients at the taps are lent by the objective until it is asked again. */
static inline double ensemble_forward(ensemble *e, ki_result *result) {
    kith_error err = {0};
    ki_batch batch = {.m = ENSEMBLE_MB, .label = ensemble_labels};
    assert_ok(ki_plan_set_input(e->plan, e->input, &err), &err);
    assert_ok(ki_plan_forward(e->plan, &err), &err);
    for (int i = 0; i < ENSEMBLE_TAPS; i++) {
        const ki_shape *s = &e->shape[i];
        ki_tap_data *to = &batch.tap[ensemble_tap[i]];
        assert_ok(ki_plan_read(e->plan, ensemble_taps[i], e->tap[i], &err), &err);
        *to = (ki_tap_data){.data = e->tap[i], .rows = s->dim[0], .cols = s->dim[1]};
        if (s->n_dims == 4) to->c = s->dim[1], to->hw = s->dim[2] * s->dim[3], to->cols = to->c * to->hw;
    }
    ki_objective_clear_diffs(e->made.objective);
    assert_ok(ki_objective_evaluate(e->made.objective, &batch, result, &err), &err);
    return result->total;
}

/* After a forward: gradients of all parameters, and of the input [ENSEMBLE_INPUT]. */
static inline void ensemble_backward(ensemble *e, const ki_result *result, ki_real *input_diff) {
    kith_error err = {0};
    assert_ok(ki_params_zero_diffs(e->params, &err), &err);
    for (int i = 0; i < ENSEMBLE_TAPS; i++)
        assert_ok(ki_plan_set_grad(e->plan, ensemble_taps[i], result->diff[ensemble_tap[i]], &err), &err);
    assert_ok(ki_plan_backward(e->plan, &err), &err);
    assert_ok(ki_plan_read_input_grad(e->plan, input_diff, &err), &err);
}

#endif
