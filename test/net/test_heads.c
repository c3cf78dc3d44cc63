/* Ensembles of heads: what every backbone builds, where the weights come from, and that a head whose mask is 1 everywhere
 * is the plain network. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "hashed.h"
#include "net/ensemble.h"
#include "net/model_file.h"
#include "net/weights.h"
#include "nn/plan.h"
#include "support/testing.h"

/* `names`: a hash of the names and shapes of all tensors, in order, of files that were saved when the network came (the first four:
 * when each build() made its own heads). */
static const struct {
    const char *name, *settings;
    int64_t c, size;
    uint64_t names;
} backbones[] = {{"googlenet", NULL, 3, 64, 0x1cc92845cb2c59b},
                 {"bn_inception", NULL, 3, 95, 0x29bdb736aa434141},
                 {"resnet50", NULL, 3, 64, 0x2eeb608d6f048d77},
                 {"resnet50", "stride=1x1", 3, 64, 0x2eeb608d6f048d77},
                 {"convnet4", "width=24", 1, 28, 0xef10c9d7267acad6},
                 {"resnet18", NULL, 3, 64, 0x2e5f082b2c52a70a},
                 {"resnet34", NULL, 3, 64, 0xb87582be7abffc47},
                 {"resnet101", NULL, 3, 64, 0x4c67c11d5fc99f4f},
                 {"mobilenet_v3_large", "width=0.25", 3, 64, 0x8938bc6c4e4afe26},
                 {"efficientnet_b0", "width=0.25,depth=0.25", 3, 64, 0x1cb943f5df131cd},
                 {"convnext_t", "width=8,depth=2,blocks=1", 3, 64, 0x238fbdb0c18977fa},
                 {"convnext_s", "width=8,depth=2,blocks=1", 3, 64, 0x238fbdb0c18977fa},
                 {"convnext_v2_t", "width=8,depth=2,blocks=1", 3, 64, 0x54739313af850ed1}};

enum { HEADS = 3, EACH = 5, MB = 2 };

typedef struct side {
    ki_net net;
    ki_params *params;
} side;

static void side_open(side *s, ki_backend *backend, const kith_model_options *options) {
    kith_error err = {0};
    *s = (side){0};
    assert_ok(ki_model_file_open(options, backend, &s->net, &s->params, NULL, &err), &err);
}

static void side_close(side *s) {
    ki_params_free(s->params);
    ki_net_release(&s->net);
}

static kith_model_options options_of(size_t i, int64_t heads) {
    return (kith_model_options){.backbone = backbones[i].name,
                                .settings = backbones[i].settings,
                                .channels = backbones[i].c,
                                .height = backbones[i].size,
                                .width = backbones[i].size,
                                .embedding = heads * EACH,
                                .no_embedding_bias = true,
                                .heads = heads,
                                .seed = 3};
}

static ki_shape shape_of(const ki_net *net, const char *tap) {
    kith_error err = {0};
    int node = 0;
    assert_ok(ki_graph_find_tap(net->graph, tap, &node, &err), &err);
    return ki_graph_node(net->graph, node)->shape;
}

static void test_taps_hold_the_heads_side_by_side(void **state) {
    (void)state;
    kith_error err = {0};
    for (int i = 0; ki_backbone_at(i); i++) {
        ki_net plain = {0}, net = {0};
        const ki_net_options one = {.backbone = ki_backbone_at(i)->name, .embedding = 64};
        const ki_net_options eight = {.backbone = one.backbone, .embedding = 512, .heads = 8};
        if (ki_backbone_at(i)->vector > 0) continue; /* features have no map to look at */
        if (!ki_backbone_at(i)->tower.first) continue;
        assert_ok(ki_net_init(&one, &plain, &err), &err);
        assert_ok(ki_net_init(&eight, &net, &err), &err);
        assert_int_equal(plain.heads, 1);
        static const char *const taps[] = {"map", "pooled", "embedding"};
        for (size_t k = 0; k < N_ROWS(taps); k++) {
            ki_shape wanted = shape_of(&plain, taps[k]);
            const ki_shape found = shape_of(&net, taps[k]);
            char a[80], b[80];
            wanted.dim[1] *= 8;
            if (!ki_shape_equal(&found, &wanted))
                fail_msg("%s: %s is %s, wanted %s", one.backbone, taps[k], ki_shape_text(&found, a, sizeof a),
                         ki_shape_text(&wanted, b, sizeof b));
        }
        ki_net_release(&net);
        ki_net_release(&plain);
    }
}

static void test_the_map_can_be_narrowed(void **state) {
    (void)state;
    kith_error err = {0};
    ki_net net = {0};
    const ki_net_options options = {
        .backbone = "googlenet", .embedding = 512, .heads = 8, .map_channels = 1024};
    assert_ok(ki_net_init(&options, &net, &err), &err);
    const ki_shape found = shape_of(&net, "map"), wanted = KI_SHAPE4(1, 1024, 7, 7);
    assert_true(ki_shape_equal(&found, &wanted));
    for (int i = 0; i < ki_graph_count(net.graph); i++) {
        const ki_node *node = ki_graph_node(net.graph, i);
        if (strcmp(node->name, "map") != 0) continue;
        assert_int_equal(node->n_params, 1);
        assert_string_equal(node->param[0].name, "map.weight");
        assert_int_equal(node->param[0].shape.dim[1], 8192);
    }
    ki_net_release(&net);
}

/* Every backbone that can be an ensemble is one of this file's. */
static void test_no_backbone_is_left_out(void **state) {
    (void)state;
    for (int i = 0; ki_backbone_at(i); i++) {
        const ki_backbone *b = ki_backbone_at(i);
        size_t k = 0;
        while (k < N_ROWS(backbones) && strcmp(backbones[k].name, b->name) != 0) k++;
        if (b->tower.first && k == N_ROWS(backbones)) fail_msg("%s has a tower and is not tested", b->name);
    }
}

static void test_tensors_have_the_names_of_earlier_files(void **state) {
    (void)state;
    ki_backend *backend = NULL;
    kith_error err = {0};
    assert_ok(ki_backend_open("cpu", NULL, &backend, &err), &err);
    for (size_t i = 0; i < N_ROWS(backbones); i++) {
        const kith_model_options options = options_of(i, HEADS);
        side s;
        uint64_t sum = 0;
        side_open(&s, backend, &options);
        for (int k = 0; k < ki_params_count(s.params); k++) {
            const ki_param *p = ki_params_at(s.params, k);
            char line[256], shape[80];
            snprintf(line, sizeof line, "%s %s", p->name, ki_shape_text(&p->shape, shape, sizeof shape));
            sum = hashed_word(sum ^ hashed_name(line), k);
        }
        side_close(&s);
        if (sum != backbones[i].names)
            fail_msg("%s: the names and shapes give 0x%llx, wanted 0x%llx", backbones[i].name,
                     (unsigned long long)sum, (unsigned long long)backbones[i].names);
    }
    ki_backend_close(backend);
}

/* A record that names nodes which its build does not add, or not in that order. */
static void test_towers_that_are_not_there(void **state) {
    (void)state;
    static const struct {
        ki_tower tower;
        const char *message;
    } rows[] = {
        {{"b", "none"}, "the tower from b to before none is nodes 3 to -1; wanted nodes between 1 and 5"},
        {{"none", "c"}, "the tower from none to before c is nodes -1 to 5; wanted nodes between 1 and 5"},
        {{"b", "a"}, "the tower from b to before a is nodes 3 to 1; wanted nodes between 1 and 5"},
        {{"input", "b"}, "the tower from input to before b is nodes 0 to 3; wanted nodes between 1 and 5"},
    };
    for (size_t i = 0; i <= N_ROWS(rows); i++) {
        kith_error err = {0};
        ki_graph *plain = NULL, *graph = NULL;
        assert_ok(ki_graph_new(&plain, &err), &err);
        assert_ok(ki_graph_new(&graph, &err), &err);
        int map = ki_conv_relu(plain, "a", ki_graph_input(plain, 3, 8, 8), 4, 3, 1, 1);
        map = ki_graph_pool(plain, "c", ki_conv_relu(plain, "b", map, 4, 3, 2, 1),
                            (ki_pool_attr){.k = 2, .s = 2});
        const ki_ensemble how = {.heads = 2};
        if (i < N_ROWS(rows)) {
            assert_int_equal(ki_ensemble_add(graph, plain, &rows[i].tower, how, &map, &err), KITH_EINTERNAL);
            assert_string_equal(err.message, rows[i].message);
        } else {
            assert_ok(ki_ensemble_add(graph, plain, &(ki_tower){"b", "c"}, how, &map, &err), &err);
            assert_ok(ki_graph_check(graph, &err), &err);
            assert_int_equal(ki_graph_node(graph, map)->shape.dim[0], 2);
            assert_true(ki_graph_find(graph, "attention.b") > 0);
        }
        ki_graph_free(graph);
        ki_graph_free(plain);
    }
}

/* The logits of masks start as other layers do, times a gain, and their biases as asked. */
static void test_masks_start_as_asked(void **state) {
    (void)state;
    ki_backend *backend = NULL;
    kith_error err = {0};
    assert_ok(ki_backend_open("cpu", NULL, &backend, &err), &err);
    kith_model_options options = options_of(4, HEADS);
    side plain, open;
    side_open(&plain, backend, &options);
    options.mask_gain = 0.25;
    options.mask_bias = 2;
    side_open(&open, backend, &options);
    for (int i = 0; i < ki_params_count(plain.params); i++) {
        const ki_param *p = ki_params_at(plain.params, i), *q = ki_params_at(open.params, i);
        ki_real *a = malloc((size_t)p->n * sizeof *a), *b = malloc((size_t)p->n * sizeof *b);
        assert_ok(ki_params_get(plain.params, p, a, &err), &err);
        assert_ok(ki_params_get(open.params, q, b, &err), &err);
        const bool is_weight = strcmp(p->name, KI_TOWER ".heads.weight") == 0;
        const bool is_bias = strcmp(p->name, KI_TOWER ".heads.bias") == 0;
        for (int64_t j = 0; j < p->n; j++) {
            const ki_real wanted = is_bias ? 2 : is_weight ? a[j] / 4 : a[j];
            assert_float_equal(b[j], wanted, 1e-7);
        }
        free(a);
        free(b);
    }
    side_close(&plain);
    side_close(&open);
    ki_backend_close(backend);
}

/* As the paper of the ensemble's regularizer counts: 480 channels, 832 of the tower, 64 numbers a head. */
static void test_googlenet_of_eight_heads(void **state) {
    (void)state;
    ki_backend *backend = NULL;
    kith_error err = {0};
    side s;
    assert_ok(ki_backend_open("cpu", NULL, &backend, &err), &err);
    const kith_model_options options = {
        .backbone = "googlenet", .embedding = 512, .no_embedding_bias = true, .heads = 8};
    side_open(&s, backend, &options);
    const struct {
        const char *name;
        ki_shape shape;
    } rows[] = {{"attention.heads.weight", KI_SHAPE4(3840, 832, 1, 1)},
                {"attention.heads.bias", KI_SHAPE1(3840)},
                {"attention.inception4a.branch1.conv.weight", KI_SHAPE4(192, 480, 1, 1)},
                {"attention.inception4e.branch4.1.conv.bias", KI_SHAPE1(128)},
                {"embedding.weight", KI_SHAPE2(64, 1024)}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const ki_param *p = ki_params_find(s.params, rows[i].name);
        if (!p || !ki_shape_equal(&p->shape, &rows[i].shape))
            fail_msg("%s is not there or misshapen", rows[i].name);
    }
    assert_null(ki_params_find(s.params, "attention.inception5a.branch1.conv.weight"));
    assert_null(ki_params_find(s.params, "embedding.bias"));
    /* Each head's layer starts by its own fan: sqrt(6 / (832 + 480)). */
    const ki_param *p = ki_params_find(s.params, "attention.heads.weight");
    double most = 0;
    for (int64_t i = 0; i < p->n; i++) most = fmax(most, fabs((double)p->value[i]));
    assert_true(most <= sqrt(6.0 / 1312) && most > 0.999 * sqrt(6.0 / 1312));
    side_close(&s);
    ki_backend_close(backend);
}

static void fill(ki_params *params, const char *name, ki_real value) {
    kith_error err = {0};
    const ki_param *p = ki_params_find(params, name);
    assert_non_null(p);
    ki_real *values = ki_alloc((size_t)p->n, sizeof *values);
    for (int64_t i = 0; i < p->n; i++) values[i] = value;
    assert_ok(ki_params_set(params, p, values, &err), &err);
    ki_free(values);
}

static void embed(const side *s, ki_backend *backend, ki_real *ret) {
    kith_error err = {0};
    ki_plan *plan = NULL;
    const ki_plan_options options = {.mb = MB, .mode = KI_INFER, .taps = {"embedding"}};
    const int64_t n = MB * s->net.c * s->net.h * s->net.w;
    ki_real *images = ki_alloc((size_t)n, sizeof *images);
    for (int64_t i = 0; i < n; i++) images[i] = (ki_real)((i * 7919 + i / 31) % 211) / 100 - 1;
    assert_ok(ki_plan_new(s->net.graph, s->params, backend, &options, &plan, &err), &err);
    assert_ok(ki_plan_set_input(plan, images, &err), &err);
    assert_ok(ki_plan_forward(plan, &err), &err);
    assert_ok(ki_plan_read(plan, "embedding", ret, &err), &err);
    ki_plan_free(plan);
    ki_free(images);
}

/* The plain network's weights in a file start the ensemble; the layer that makes the masks is then set to masks of 1, of
 * 0.25 and of 0 for the three heads. */
static void check_masks(size_t i, ki_backend *backend) {
    kith_error err = {0};
    side plain, heads;
    char path[64];
    ki_real one[MB * EACH], all[MB * HEADS * EACH];
    snprintf(path, sizeof path, "/tmp/kith-heads-%d.safetensors", (int)getpid());
    kith_model_options options = options_of(i, 1);
    side_open(&plain, backend, &options);
    assert_ok(ki_weights_save(&plain.net, plain.params, NULL, NULL, path, &err), &err);
    options = options_of(i, HEADS);
    options.weights = path;
    options.seed = 11; /* not the file's */
    side_open(&heads, backend, &options);
    for (int k = 0; k < ki_params_count(heads.params); k++) {
        const ki_param *p = ki_params_at(heads.params, k);
        const char *name = strncmp(p->name, "attention.", 10) == 0 ? p->name + 10 : p->name;
        const ki_param *from = ki_params_find(plain.params, name);
        if (strncmp(p->name, "attention.heads.", 16) == 0) {
            assert_null(from);
            continue;
        }
        if (!from || memcmp(from->value, p->value, (size_t)p->n * sizeof *p->value) != 0)
            fail_msg("%s: %s is not what the file has for %s", backbones[i].name, p->name, name);
    }
    fill(heads.params, "attention.heads.weight", 0);
    const ki_param *bias = ki_params_find(heads.params, "attention.heads.bias");
    ki_real *values = ki_alloc((size_t)bias->n, sizeof *values);
    static const ki_real logit[HEADS] = {60, (ki_real)-1.0986122886681098, -60};
    for (int64_t k = 0; k < bias->n; k++) values[k] = logit[k / (bias->n / HEADS)];
    assert_ok(ki_params_set(heads.params, bias, values, &err), &err);
    ki_free(values);
    embed(&plain, backend, one);
    embed(&heads, backend, all);
    for (int n = 0; n < MB; n++) {
        double norm = 0, dim_norm = 0, apart = 0;
        for (int d = 0; d < EACH; d++) norm += pow((double)one[n * EACH + d], 2);
        for (int d = 0; d < EACH; d++) {
            const double wanted = (double)one[n * EACH + d] / sqrt(norm),
                         found = (double)all[n * HEADS * EACH + d];
            if (!(fabs(found - wanted) <= 2e-5))
                fail_msg("%s: head 0 of image %d has %.7g at %d, the plain network %.7g", backbones[i].name,
                         n, found, d, wanted);
            dim_norm += pow((double)all[n * HEADS * EACH + EACH + d], 2);
            apart += fabs((double)all[n * HEADS * EACH + 2 * EACH + d] - wanted);
        }
        assert_true(fabs(dim_norm - 1) < 1e-5);
        if (!(apart > 1e-3)) fail_msg("%s: a head that sees nothing is the plain network", backbones[i].name);
    }
    side_close(&heads);
    side_close(&plain);
    unlink(path);
}

static void test_a_mask_of_one_is_the_plain_network(void **state) {
    (void)state;
    ki_backend *backend = NULL;
    kith_error err = {0};
    assert_ok(ki_backend_open("cpu", NULL, &backend, &err), &err);
    for (size_t i = 0; i < N_ROWS(backbones); i++) check_masks(i, backend);
    ki_backend_close(backend);
}

static void test_a_file_keeps_the_ensemble(void **state) {
    (void)state;
    ki_backend *backend = NULL;
    kith_error err = {0};
    side a, b;
    char path[64];
    ki_real before[MB * HEADS * EACH], after[MB * HEADS * EACH];
    assert_ok(ki_backend_open("cpu", NULL, &backend, &err), &err);
    snprintf(path, sizeof path, "/tmp/kith-heads-%d.safetensors", (int)getpid());
    kith_model_options options = options_of(4, HEADS);
    options.map_channels = 7;
    side_open(&a, backend, &options);
    assert_ok(ki_weights_save(&a.net, a.params, NULL, NULL, path, &err), &err);
    kith_model_options file = {.weights = path};
    side_open(&b, backend, &file);
    assert_int_equal(b.net.heads, HEADS);
    assert_int_equal(b.net.embedding, HEADS * EACH);
    assert_int_equal(b.net.map_channels, 7);
    assert_true(b.net.no_embedding_bias);
    embed(&a, backend, before);
    embed(&b, backend, after);
    assert_memory_equal(before, after, sizeof before);
    side_close(&b);
    side_close(&a);

    ki_net net = {0};
    ki_params *params = NULL;
    file.heads = 2;
    assert_int_equal(ki_model_file_open(&file, backend, &net, &params, NULL, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "the file holds an ensemble of 3 heads, asked for was 2"));
    unlink(path);
    ki_backend_close(backend);
}

static void test_mistakes(void **state) {
    (void)state;
    static const struct {
        ki_net_options options;
        const char *message;
    } rows[] = {
        {{.backbone = "googlenet", .embedding = 100, .heads = 8},
         "embedding size is 100; wanted a multiple of the 8 heads"},
        {{.backbone = "googlenet", .embedding = 64, .heads = 65}, "number of heads is 65; wanted 1 to 64"},
        {{.backbone = "googlenet", .embedding = 64, .heads = -1}, "number of heads is -1; wanted 1 to 64"},
        {{.backbone = "googlenet", .embedding = 64, .heads = 2, .classes = 10},
         "a classifier of 10 classes behind 2 heads; wanted one head, or none"},
        {{.backbone = "mlp", .embedding = 64, .heads = 2},
         "mlp names no place where heads could begin; wanted 1 head, found 2"},
        {{.backbone = "googlenet", .embedding = 64, .map_channels = -2},
         "number of the map's channels is -2; wanted 0 (none) to 16777216"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        ki_net net = {0};
        assert_int_not_equal(ki_net_init(&rows[i].options, &net, &err), KITH_OK);
        if (strcmp(err.message, rows[i].message) != 0)
            fail_msg("the line is '%s', wanted '%s'", err.message, rows[i].message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taps_hold_the_heads_side_by_side),
        cmocka_unit_test(test_the_map_can_be_narrowed),
        cmocka_unit_test(test_no_backbone_is_left_out),
        cmocka_unit_test(test_tensors_have_the_names_of_earlier_files),
        cmocka_unit_test(test_towers_that_are_not_there),
        cmocka_unit_test(test_masks_start_as_asked),
        cmocka_unit_test(test_googlenet_of_eight_heads),
        cmocka_unit_test(test_a_mask_of_one_is_the_plain_network),
        cmocka_unit_test(test_a_file_keeps_the_ensemble),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests_name("net/heads", tests, NULL, NULL);
}
