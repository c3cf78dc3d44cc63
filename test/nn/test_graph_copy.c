/* Copies of a span of a graph: every op, names, sources, shapes, what is refused, and memory that runs out. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "nn/graph.h"
#include "support/testing.h"

static const ki_conv_attr conv = {.oc = 4, .kh = 3, .kw = 3, .sh = 2, .sw = 2, .ph = 1, .pw = 1};

/* input 0, a 1, relu 2, b 3, relu 4, sum 5 */
static ki_graph *make(void) {
    kith_error err = {0};
    ki_graph *graph = NULL;
    assert_ok(ki_graph_new(&graph, &err), &err);
    const int a = ki_graph_relu(graph, ki_graph_conv(graph, "a", ki_graph_input(graph, 4, 8, 8), conv));
    ki_conv_attr same = conv;
    same.sh = same.sw = 1;
    ki_graph_add(graph, "sum", ki_graph_relu(graph, ki_graph_conv(graph, "b", a, same)), a);
    assert_ok(ki_graph_check(graph, &err), &err);
    return graph;
}

static int add1(ki_graph *g, ki_op_kind kind, int src, ki_attr attr) {
    char name[32];
    snprintf(name, sizeof name, "the_%s", ki_op_name(kind));
    return ki_graph_op(g, kind, name, 1, &src, attr);
}

/* The ops of tokens, from a map of 4 channels and 4x4 pixels to another. */
static int add_tokens(ki_graph *g, int map) {
    const int pooled = ki_graph_global_pool(g, "squeezed", map, (ki_global_pool_attr){KI_GLOBAL_GEM});
    map = ki_graph_op(g, KI_OP_GATE, "the_gate", 2, (int[]){map, pooled}, (ki_attr){0});
    map = add1(g, KI_OP_GRN, map, (ki_attr){.grn = {1e-5}});
    const ki_tokens_attr tokens = {
        .has_class = true, .registers = 2, .grid_h = 3, .grid_w = 2, .offset = 0.1};
    int x = add1(g, KI_OP_TOKENS, map, (ki_attr){.tokens = tokens});
    const int probe = add1(g, KI_OP_PROBE, x, (ki_attr){.probe = {2}});
    ki_graph_op(g, KI_OP_ATTENTION, "looking", 2,
                (int[]){probe, ki_graph_linear(g, "kv", x, (ki_linear_attr){.oc = 8})},
                (ki_attr){.attention = {.heads = 2}});
    add1(g, KI_OP_TOKEN, x, (ki_attr){.token = {1}});
    x = ki_graph_op(g, KI_OP_GRID, "first_grid", 1, &x, (ki_attr){.grid = {.skip = 3, .h = 4, .w = 4}});
    x = ki_graph_op(g, KI_OP_TOKENS, "plain", 1, &x, (ki_attr){0});
    x = add1(g, KI_OP_WINDOWS, x, (ki_attr){.windows = {.side = 3, .shift = 1, .h = 4, .w = 4}});
    x = ki_graph_linear(g, "qkv", x, (ki_linear_attr){.oc = 12});
    const ki_attention_attr attention = {.heads = 2, .window = 3, .shift = 1, .h = 2, .w = 2};
    x = add1(g, KI_OP_ATTENTION, x, (ki_attr){.attention = attention});
    x = ki_graph_op(g, KI_OP_WINDOWS, "back", 1, &x,
                    (ki_attr){.windows = {.side = 3, .shift = 1, .h = 4, .w = 4, .back = true}});
    x = add1(g, KI_OP_LAYER_SCALE, x, (ki_attr){.layer_scale = {0.5}});
    x = add1(g, KI_OP_DROP_PATH, add1(g, KI_OP_GLU, x, (ki_attr){0}), (ki_attr){.drop_path = {0.25}});
    x = add1(g, KI_OP_ACT, add1(g, KI_OP_MERGE, x, (ki_attr){.merge = {4, 4}}),
             (ki_attr){.act = {KI_ACT_SILU}});
    x = ki_graph_linear(g, "narrow", x, (ki_linear_attr){.oc = 4});
    return add1(g, KI_OP_GRID, x, (ki_attr){.grid = {.h = 2, .w = 2}});
}

/* Every op once, with attributes that differ from their defaults: a new op must join. The last node is the sum. */
static ki_graph *make_of_all(void) {
    kith_error err = {0};
    ki_graph *g = NULL;
    assert_ok(ki_graph_new(&g, &err), &err);
    ki_conv_attr wide = {
        .oc = 12, .kh = 1, .kw = 1, .sh = 1, .sw = 1, .bias = true, .start = KI_START_GLOROT};
    wide.gain = 0.5, wide.fill = 2, wide.layers = 3;
    int x = ki_graph_conv(g, "conv", ki_graph_input(g, 4, 8, 8), conv);
    x = add_tokens(g, x);
    x = ki_graph_relu(g, ki_graph_batch_norm(g, "bn", x, (ki_bn_attr){.eps = 1e-3, .momentum = 0.2}));
    x = ki_graph_pool(g, "pool", x,
                      (ki_pool_attr){.average = true, .k = 3, .s = 1, .p = 1, .count_pad = true});
    x = ki_graph_lrn(g, "lrn", x, (ki_lrn_attr){.size = 3, .alpha = 1e-3, .beta = 0.5, .k = 2});
    x = ki_graph_attend(g, "attend", x, ki_graph_conv(g, "logits", x, wide));
    x = ki_graph_unfold(g, "unfold", ki_graph_concat(g, "concat", 2, (int[]){x, x}));
    x = ki_graph_global_pool(g, "pooled", x, (ki_global_pool_attr){KI_GLOBAL_BOTH});
    x = ki_graph_dropout(g, "dropout", x, (ki_dropout_attr){0.25});
    x = ki_graph_linear(g, "linear", x, (ki_linear_attr){.oc = 7, .bias = true, .start = KI_START_GLOROT});
    const int unit = ki_graph_l2_norm(g, "unit", x, (ki_l2_norm_attr){1e-6});
    ki_graph_add(g, "sum", unit, ki_graph_layer_norm(g, "ln", x, (ki_layer_norm_attr){.eps = 1e-4}));
    ki_graph_tap(g, unit, "embedding");
    assert_ok(ki_graph_check(g, &err), &err);
    bool seen[KI_N_OPS] = {0};
    for (int i = 0; i < ki_graph_count(g); i++) seen[ki_graph_node(g, i)->kind] = true;
    for (int i = 0; i < KI_N_OPS; i++) {
        if (!seen[i]) fail_msg("no node is %s", ki_op_name((ki_op_kind)i));
    }
    return g;
}

static void assert_name(const char *found, const char *prefix, const char *name) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%s%s", prefix, name);
    assert_string_equal(found, wanted);
}

static void assert_same_param(const ki_param_decl *a, const ki_param_decl *b, const char *prefix) {
    assert_name(a->name, prefix, b->name);
    assert_true(ki_shape_equal(&a->shape, &b->shape));
    assert_int_equal(a->slot, b->slot);
    assert_int_equal(a->trained, b->trained);
    assert_true(a->fill == b->fill && a->gain == b->gain);
    assert_int_equal(a->fan_in, b->fan_in);
    assert_int_equal(a->fan_out, b->fan_out);
    assert_int_equal(a->start, b->start);
}

static void assert_shape(const ki_graph *graph, int i, ki_shape wanted) {
    char a[80], b[80];
    const ki_shape found = ki_graph_node(graph, i)->shape;
    if (!ki_shape_equal(&found, &wanted))
        fail_msg("node %d is %s, wanted %s", i, ki_shape_text(&found, a, sizeof a),
                 ki_shape_text(&wanted, b, sizeof b));
}

/* Copied whole into an empty graph, and once more, with a prefix, behind the input that is there. */
static void test_every_op(void **state) {
    (void)state;
    kith_error err = {0};
    ki_graph *graph = make_of_all(), *other = NULL;
    const int n = ki_graph_count(graph);
    assert_ok(ki_graph_new(&other, &err), &err);
    assert_int_equal(ki_graph_copy(other, -1, (ki_graph_span){.from = graph, .last = n - 1}), n - 1);
    const ki_graph_span again = {.from = graph, .first = 1, .last = n - 1, .prefix = "again."};
    assert_int_equal(ki_graph_copy(other, 0, again), 2 * n - 2);
    assert_ok(ki_graph_check(other, &err), &err);
    for (int i = 0; i < 2 * n - 1; i++) {
        const int shift = i < n ? 0 : n - 1;
        const ki_node *a = ki_graph_node(other, i), *b = ki_graph_node(graph, i - shift);
        const char *prefix = i < n ? "" : "again.";
        assert_int_equal(a->kind, b->kind);
        if (!b->is_numbered) assert_name(a->name, prefix, b->name);
        assert_memory_equal(&a->attr, &b->attr, sizeof a->attr);
        assert_int_equal(a->n_src, b->n_src);
        for (int k = 0; k < a->n_src; k++) assert_int_equal(a->src[k], b->src[k] > 0 ? b->src[k] + shift : 0);
        assert_shape(other, i, b->shape);
        assert_int_equal(a->n_params, b->n_params);
        for (int k = 0; k < a->n_params; k++) assert_same_param(&a->param[k], &b->param[k], prefix);
        assert_null(a->tap);
    }
    assert_true(ki_graph_flops(other, NULL) == 2 * ki_graph_flops(graph, NULL));
    ki_graph_free(other);
    ki_graph_free(graph);
}

/* Wherever memory runs out, the error is kept, and everything is given back (ASan). */
static void test_no_memory(void **state) {
    (void)state;
    ki_graph *graph = make_of_all();
    kith_status status = KITH_ENOMEM;
    int n_failed = 0;
    for (; status != KITH_OK && n_failed < 1000; n_failed++) {
        kith_error err = {0};
        ki_graph *other = NULL;
        assert_ok(ki_graph_new(&other, &err), &err);
        ki_alloc_fail_after(n_failed);
        const int copy = ki_graph_copy(
            other, -1, (ki_graph_span){.from = graph, .last = ki_graph_count(graph) - 1, .prefix = "copy."});
        ki_alloc_fail_after(-1);
        status = ki_graph_check(other, &err);
        assert_int_equal(copy < 0, status != KITH_OK);
        if (status != KITH_OK) assert_int_equal(status, KITH_ENOMEM);
        ki_graph_free(other);
    }
    assert_true(n_failed > 3 && n_failed < 1000);
    ki_graph_free(graph);
}

/* The error of the graph that is copied becomes that of the copy's. */
static void test_of_a_graph_that_failed(void **state) {
    (void)state;
    kith_error err = {0};
    ki_graph *graph = make(), *other = NULL;
    assert_ok(ki_graph_new(&other, &err), &err);
    ki_graph_add(graph, "wrong", 0, 1);
    assert_int_equal(ki_graph_copy(other, -1, (ki_graph_span){.from = graph, .last = 2}), -1);
    assert_int_equal(ki_graph_check(other, &err), KITH_ESHAPE);
    assert_non_null(strstr(err.message, "node wrong (add)"));
    ki_graph_free(other);
    ki_graph_free(graph);
}

static void test_behind_another_node(void **state) {
    (void)state;
    ki_graph *graph = make();
    const ki_graph_span span = {.from = graph, .first = 3, .last = 5, .prefix = "copy."};
    assert_int_equal(ki_graph_copy(graph, 5, span), 8);
    const ki_node *b = ki_graph_node(graph, 6), *sum = ki_graph_node(graph, 8);
    assert_string_equal(b->name, "copy.b");
    assert_string_equal(b->param[0].name, "copy.b.weight");
    assert_int_equal(b->src[0], 5);
    assert_string_equal(ki_graph_node(graph, 7)->name, "relu#7");
    assert_int_equal(sum->src[0], 7);
    assert_int_equal(sum->src[1], 5);
    ki_graph_free(graph);
}

static void test_strides_and_shapes_are_new(void **state) {
    (void)state;
    kith_error err = {0};
    ki_graph *graph = make(), *other = NULL;
    assert_ok(ki_graph_new(&other, &err), &err);
    const int input = ki_graph_input(other, 4, 6, 6);
    assert_shape(graph, 5, KI_SHAPE4(1, 4, 4, 4));
    ki_graph_copy(other, input, (ki_graph_span){.from = graph, .first = 1, .last = 5});
    assert_shape(other, 5, KI_SHAPE4(1, 4, 3, 3));
    const ki_graph_span dense = {
        .from = graph, .first = 1, .last = 5, .prefix = "dense.", .no_strides = true};
    assert_shape(other, ki_graph_copy(other, input, dense), KI_SHAPE4(1, 4, 6, 6));
    ki_graph_free(other);
    ki_graph_free(graph);
}

static void test_mistakes(void **state) {
    (void)state;
    static const struct {
        int first, last;
        const char *prefix, *message;
    } rows[] = {
        {5, 5, "copy.", "copy of node sum: it reads relu#2; wanted relu#4 alone"},
        {3, 6, "copy.", "copy of nodes 3 to 6; the graph has 6"},
        {-1, 2, "copy.", "copy of nodes -1 to 2; the graph has 6"},
        {4, 3, "copy.", "copy of nodes 4 to 3; the graph has 6"},
        {3, 5, NULL, "node b: the name is taken"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        ki_graph *graph = make();
        const ki_graph_span span = {graph, rows[i].first, rows[i].last, rows[i].prefix, false};
        assert_int_equal(ki_graph_copy(graph, 5, span), -1);
        assert_int_equal(ki_graph_check(graph, &err), KITH_EINVAL);
        assert_string_equal(err.message, rows[i].message);
        ki_graph_free(graph);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_op),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_of_a_graph_that_failed),
        cmocka_unit_test(test_behind_another_node),
        cmocka_unit_test(test_strides_and_shapes_are_new),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests_name("nn/graph_copy", tests, NULL, NULL);
}
