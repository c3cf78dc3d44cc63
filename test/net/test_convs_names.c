/* The names and shapes of published networks of convolutions, and of Swin, in each library (test/golden/net/names): a file of theirs is
 * recognised, and every parameter is there in its shape. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "net/model_file.h"
#include "net/recognise.h"
#include "support/shapes_file.h"
#include "support/testing.h"

static shapes_file shapes;

static const char *weights(void) {
    static char path[600];
    snprintf(path, sizeof path, "%s/weights.safetensors", testing_folder());
    return path;
}

/* "64x3x7x7", "scalar". */
static int dims_of(const char *text, int64_t *dim) {
    int n = 0;
    if (strcmp(text, "scalar") == 0) return 0;
    for (char *at = (char *)(uintptr_t)text; *at && n < 4;) {
        dim[n++] = strtoll(at, &at, 10);
        if (*at == 'x') at++;
    }
    return n;
}

static void write_list(const char *list, bool is_small) {
    char path[512], name[200], shape[80];
    snprintf(path, sizeof path, "%s/test/golden/net/names/%s.txt", KITH_SOURCE_DIR, list);
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("%s is not there", path);
    shapes_file_begin(&shapes, is_small);
    while (fscanf(file, "%199s %79s", name, shape) == 2) {
        int64_t dim[4];
        shapes_file_add(&shapes, name, dims_of(shape, dim), dim);
    }
    fclose(file);
    shapes_file_save(&shapes, weights());
}

/* Without axes of 1 at either end. */
static void strip(const int64_t *dim, int n_dims, ki_shape *ret) {
    int from = 0, to = n_dims;
    while (to > from && dim[to - 1] == 1) to--;
    while (from < to && dim[from] == 1) from++;
    *ret = (ki_shape){.n_dims = to - from};
    memcpy(ret->dim, dim + from, (size_t)(to - from) * sizeof *dim);
}

static bool is_head(const ki_backbone *backbone, const char *name) {
    const size_t n = strlen(backbone->classifier);
    return strncmp(name, backbone->classifier, n) == 0 && name[n] == '.';
}

/* Every parameter has a tensor of its shape, and every tensor but the classifier's and counters is a parameter. */
static void check_tensors(const char *list, const ki_named *named, const ki_net *net) {
    int n = 0;
    for (int i = 0; i < ki_graph_count(net->graph); i++) {
        const ki_node *node = ki_graph_node(net->graph, i);
        for (int k = 0; k < node->n_params; k++, n++) {
            const ki_param_decl *param = &node->param[k];
            kith_array view;
            ki_shape found, wanted;
            char a[80], b[80];
            if (!ki_named_get(named, param->name, &view)) fail_msg("%s: no tensor %s", list, param->name);
            strip(view.dim, view.n_dims, &found);
            strip(param->shape.dim, param->shape.n_dims, &wanted);
            if (!ki_shape_equal(&found, &wanted))
                fail_msg("%s: %s is %s, wanted %s", list, param->name, ki_shape_text(&found, a, sizeof a),
                         ki_shape_text(&wanted, b, sizeof b));
        }
    }
    for (int i = 0; i < ki_named_count(named); i++) {
        const char *name = ki_named_name(named, i);
        if (is_head(net->backbone, name)) continue;
        if (strlen(name) > 20 && strcmp(name + strlen(name) - 20, ".num_batches_tracked") == 0) continue;
        n--;
    }
    if (n != 0) fail_msg("%s: %d tensors more than parameters", list, -n);
}

static const struct {
    const char *list, *backbone, *settings;
    int64_t side;
    bool opens; /* its numbers are read, too */
} rows[] = {
    {"torchvision.resnet18", "resnet18", "", 224, false},
    {"torchvision.resnet34", "resnet34", "", 224, false},
    {"torchvision.resnet101", "resnet101", "stride=3x3,preprocess=torchvision", 224, false},
    {"torchvision.mobilenet_v3_large", "mobilenet_v3_large", "width=1,eps=0.001,momentum=0.01,head=true", 224,
     true},
    {"timm.mobilenetv3_large_100", "mobilenet_v3_large", "width=1,eps=1e-05,momentum=0.1,head=true", 224,
     true},
    {"torchvision.efficientnet_b0", "efficientnet_b0",
     "width=1,depth=1,eps=1e-05,momentum=0.1,drop_path=0,dropout=0.2", 224, true},
    {"timm.efficientnet_b0", "efficientnet_b0",
     "width=1,depth=1,eps=1e-05,momentum=0.1,drop_path=0,dropout=0.2", 224, true},
    {"torchvision.convnext_tiny", "convnext_t", "width=96,depth=9,blocks=3,drop_path=0", 224, false},
    {"timm.convnext_tiny", "convnext_t", "width=96,depth=9,blocks=3,drop_path=0", 224, false},
    {"transformers.convnext_tiny", "convnext_t", "width=96,depth=9,blocks=3,drop_path=0", 224, true},
    {"timm.convnextv2_tiny", "convnext_v2_t", "width=96,depth=9,blocks=3,drop_path=0", 224, false},
    {"transformers.convnextv2_tiny", "convnext_v2_t", "width=96,depth=9,blocks=3,drop_path=0", 224, false},
    {"torchvision.swin_t", "swin_t", "width=96,depth=6,window=7,drop_path=0", 224, false},
    {"timm.swin_tiny_patch4_window7_224", "swin_t", "width=96,depth=6,window=7,drop_path=0", 224, true},
    {"transformers.swin_tiny", "swin_t", "width=96,depth=6,window=7,drop_path=0", 224, false},
};

static void open_model(const kith_model_options *options, const char *list, ki_net *ret_net) {
    kith_error err = {0};
    ki_backend *backend = NULL;
    ki_params *params = NULL;
    assert_ok(ki_backend_open("ref", NULL, &backend, &err), &err);
    if (ki_model_file_open(options, backend, ret_net, &params, NULL, &err) != KITH_OK)
        fail_msg("%s: %s (%s)", list, err.message, err.hint);
    ki_params_free(params);
    ki_backend_close(backend);
}

static void make_net(const ki_named *named, ki_net *ret_net) {
    kith_error err = {0};
    ki_arena arena = {0};
    const ki_backbone *backbone = NULL;
    ki_recognised found;
    ki_net_options options = {0};
    assert_ok(ki_backbone_recognise(named, NULL, &backbone, &found, &err), &err);
    options.backbone = backbone->name;
    assert_ok(ki_settings_parse(&arena, found.settings, NULL, &options.settings, &err), &err);
    options.h = options.w = found.side;
    assert_ok(ki_net_init(&options, ret_net, &err), &err);
    ki_arena_release(&arena);
}

static void check(size_t row) {
    const char *list = rows[row].list;
    kith_error err = {0};
    kith_tensors *tensors = NULL;
    ki_named *named = NULL;
    ki_net net = {0};
    char settings[KI_SETTINGS_TEXT];
    write_list(list, !rows[row].opens);
    assert_ok(kith_tensors_open(weights(), &tensors, &err), &err);
    assert_ok(ki_named_new(tensors, "", &named, &err), &err);
    const kith_model_options options = {.weights = weights(), .embedding = KITH_NONE, .classes = KITH_NONE};
    if (rows[row].opens)
        open_model(&options, list, &net);
    else
        make_net(named, &net);
    assert_string_equal(net.backbone->name, rows[row].backbone);
    assert_string_equal(ki_net_settings_text(&net, settings, sizeof settings), rows[row].settings);
    assert_int_equal(net.h, rows[row].side);
    check_tensors(list, named, &net);
    ki_net_release(&net);
    ki_named_free(named);
    kith_tensors_free(tensors);
}

static void test_published_names(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(rows); i++) check(i);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_names),
    };
    return cmocka_run_group_tests_name("net/convs_names", tests, NULL, testing_tear_down);
}
