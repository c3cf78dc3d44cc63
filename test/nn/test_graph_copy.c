/* Copies of a span of a graph: names, sources, shapes and what is refused. */
#include <string.h>

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

static void assert_shape(const ki_graph *graph, int i, ki_shape wanted) {
    char a[80], b[80];
    const ki_shape found = ki_graph_node(graph, i)->shape;
    if (!ki_shape_equal(&found, &wanted))
        fail_msg("node %d is %s, wanted %s", i, ki_shape_text(&found, a, sizeof a),
                 ki_shape_text(&wanted, b, sizeof b));
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
        cmocka_unit_test(test_behind_another_node),
        cmocka_unit_test(test_strides_and_shapes_are_new),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests_name("nn/graph_copy", tests, NULL, NULL);
}
