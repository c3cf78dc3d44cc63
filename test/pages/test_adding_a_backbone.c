/* The backbone of docs/adding-a-backbone.md, linked in as the page says: plain, and as an ensemble. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kith/experimental/list.h"
#include "kith/model.h"
#include "net/net.h"
#include "support/testing.h"

enum { SIDE = 28, N = 2, E = 12, HEADS = 3 };

static kith_model *open_model(int64_t heads, const char *weights) {
    KITH_OPTIONS(kith_model_options, options);
    kith_error err = {0};
    kith_model *model = NULL;
    options.weights = weights;
    if (!weights) {
        options.backbone = "lenet";
        options.settings = "width=8";
        options.channels = 1;
        options.embedding = E;
        options.heads = heads;
        options.seed = 5;
    }
    assert_ok(kith_model_open(&options, &model, &err), &err);
    return model;
}

static void embed(kith_model *model, float *ret) {
    static float images[N * SIDE * SIDE];
    kith_error err = {0};
    for (int i = 0; i < N * SIDE * SIDE; i++) images[i] = (float)sin(0.37 * i + 0.001 * i * (i % 7));
    assert_ok(kith_model_embed_floats(model, images, N, "embedding", ret, &err), &err);
}

static void test_it_is_there_with_its_option(void **state) {
    (void)state;
    kith_list_entry entry;
    kith_list_option option;
    int i = 0;
    while (kith_list_entry_at("backbones", i, &entry) && strcmp(entry.name, "lenet") != 0) i++;
    assert_string_equal(entry.name, "lenet");
    assert_true(kith_list_option_at("backbones", i, 0, &option));
    assert_string_equal(option.name, "width");
}

static void test_taps(void **state) {
    (void)state;
    kith_error err = {0};
    int n_dims = 0;
    int64_t dim[KITH_MAX_DIMS];
    kith_model *model = open_model(1, NULL);
    assert_ok(kith_model_tap_shape(model, "map", &n_dims, dim, &err), &err);
    assert_int_equal(n_dims, 3);
    assert_int_equal(dim[0], 32);
    assert_int_equal(dim[1], 7);
    kith_model_free(model);
}

/* What test_backbones.c asks of every row. */
static void test_least_size(void **state) {
    (void)state;
    for (int64_t side = 3; side <= 4; side++) {
        kith_error err = {0};
        ki_net net = {0};
        const ki_net_options options = {
            .backbone = "lenet", .h = side, .w = side, .embedding = 4, .heads = 2};
        assert_int_equal(ki_net_init(&options, &net, &err), side < 4 ? KITH_ESHAPE : KITH_OK);
        ki_net_release(&net);
    }
    kith_error err = {0};
    ki_graph *graph = NULL;
    ki_body body = {0};
    assert_ok(ki_graph_new(&graph, &err), &err);
    const ki_backbone *lenet = NULL;
    assert_ok(ki_backbone_find("lenet", &lenet, &err), &err);
    lenet->build(graph, ki_graph_input(graph, 1, 3, 3), &(int64_t){4}, &body);
    assert_int_not_equal(ki_graph_check(graph, &err), KITH_OK);
    ki_graph_free(graph);
}

/* Its nodes, the copied tower, and unit vectors side by side; a file keeps all of it. */
static void test_ensemble(void **state) {
    (void)state;
    kith_error err = {0};
    float before[N * E], after[N * E];
    char path[256];
    ki_net net = {0};
    const ki_net_options options = {.backbone = "lenet", .c = 1, .embedding = E, .heads = HEADS};
    assert_ok(ki_net_init(&options, &net, &err), &err);
    assert_true(ki_graph_find(net.graph, "attention.conv2") > 0);
    assert_int_equal(ki_graph_find(net.graph, "attention.conv1"), -1);
    const int conv3 = ki_graph_find(net.graph, "conv3");
    assert_int_equal(ki_graph_node(net.graph, conv3)->shape.dim[0], HEADS);
    ki_net_release(&net);

    kith_model *model = open_model(HEADS, NULL);
    embed(model, before);
    for (int i = 0; i < N * HEADS; i++) {
        double sum = 0;
        for (int k = 0; k < E / HEADS; k++) sum += pow((double)before[i * (E / HEADS) + k], 2);
        if (!(fabs(sum - 1) < 1e-5)) fail_msg("vector %d has the square %g", i, sum);
    }
    snprintf(path, sizeof path, "%s/lenet.safetensors", testing_folder());
    assert_ok(kith_model_save(model, path, &err), &err);
    kith_model_free(model);
    model = open_model(0, path);
    embed(model, after);
    assert_memory_equal(before, after, sizeof before);
    kith_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_there_with_its_option),
        cmocka_unit_test(test_taps),
        cmocka_unit_test(test_least_size),
        cmocka_unit_test(test_ensemble),
    };
    return cmocka_run_group_tests_name("docs/adding-a-backbone", tests, NULL, testing_tear_down);
}
