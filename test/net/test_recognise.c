/* Networks recognised by the names of their tensors: files without metadata, as they are downloaded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/log.h"
#include "kith/model.h"
#include "net/net.h"
#include "net/recognise.h"
#include "support/shapes_file.h"
#include "support/testing.h"

static char path[600];

static shapes_file shapes;

/* A file with the network's names and shapes but the first `n_left_out`, with these words before each. */
static void write_sized(const char *backbone, const char *settings, const char *before, int n_left_out) {
    kith_error err = {0};
    ki_net net = {0};
    ki_arena arena = {0};
    ki_net_options options = {.backbone = backbone, .classes = 10};
    assert_ok(ki_settings_parse(&arena, settings, NULL, &options.settings, &err), &err);
    assert_ok(ki_net_init(&options, &net, &err), &err);
    shapes_file_begin(&shapes, true);
    for (int i = 0; i < ki_graph_count(net.graph); i++) {
        const ki_node *node = ki_graph_node(net.graph, i);
        for (int k = 0; k < node->n_params; k++) {
            char name[200];
            if (n_left_out-- > 0) continue;
            snprintf(name, sizeof name, "%s%s", before, node->param[k].name);
            shapes_file_add(&shapes, name, node->param[k].shape.n_dims, node->param[k].shape.dim);
        }
    }
    snprintf(path, sizeof path, "%s/weights.safetensors", testing_folder());
    shapes_file_save(&shapes, path);
    ki_net_release(&net);
    ki_arena_release(&arena);
}

static void write_names(const char *backbone, const char *before, int n_left_out) {
    write_sized(backbone, NULL, before, n_left_out);
}

static kith_status recognise(const char *prefix, const ki_backbone **ret, kith_error *err) {
    kith_error first = {0};
    kith_tensors *tensors = NULL;
    ki_named *named = NULL;
    ki_recognised recognised;
    assert_ok(kith_tensors_open(path, &tensors, &first), &first);
    assert_ok(ki_named_new(tensors, prefix, &named, &first), &first);
    const kith_status status = ki_backbone_recognise(named, NULL, ret, &recognised, err);
    ki_named_free(named);
    kith_tensors_free(tensors);
    return status;
}

/* With their classifiers, which a net without one does not have. */
static void test_every_network_of_images(void **state) {
    (void)state;
    const ki_backbone *b = NULL;
    for (int i = 0; (b = ki_backbone_at(i)); i++) {
        const ki_backbone *found = NULL;
        kith_error err = {0};
        if (b->vector > 0) continue;
        const char *before = i % 2 == 0 ? "" : "model.";
        write_names(b->name, before, 0);
        assert_ok(recognise(before, &found, &err), &err);
        assert_string_equal(found->name, b->name);
    }
}

static void assert_hint(const kith_error *err, const char *text) {
    if (!strstr(err->hint, text)) fail_msg("no '%s' in: %s (%s)", text, err->message, err->hint);
}

/* One tensor less, and it is no such network: the hint names the most similar one and what it lacks. */
static void test_what_is_not_known(void **state) {
    (void)state;
    const ki_backbone *found = NULL;
    kith_error err = {0};
    write_names("resnet50", "", 1);
    assert_int_equal(recognise("", &found, &err), KITH_EINVAL);
    assert_hint(&err, "of resnet50, the most similar, 1 of");
    assert_hint(&err, "(conv1.weight)");
    assert_hint(&err, "kith list backbones");
    write_names("resnet50", "encoder.", 0);
    assert_int_equal(recognise("", &found, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "(encoder."));
    assert_hint(&err, "docs/model-files.md");
    /* all names, and a size that nobody published */
    write_sized("mobilenet_v3_large", "width=0.25", "", 0);
    assert_int_equal(recognise("", &found, &err), KITH_EINVAL);
    assert_hint(&err, "their names are those of mobilenet_v3_large, their shapes of no size that kith knows");
}

static char said[2000], backbone[64], pool[16];
static void hear(void *user, kith_log_level level, const char *line) {
    (void)user;
    if (level == KITH_LOG_INFO) snprintf(said, sizeof said, "%s", line);
}

static kith_status open_model(const kith_model_options *options, kith_error *err) {
    kith_model *model = NULL;
    kith_model_info info = {0};
    said[0] = '\0';
    kith_log_set(hear, NULL, KITH_LOG_INFO);
    const kith_status status = kith_model_open(options, &model, err);
    kith_log_set(NULL, NULL, KITH_LOG_INFO);
    if (status == KITH_OK) {
        kith_model_info_get(model, &info);
        snprintf(backbone, sizeof backbone, "%s", info.backbone);
        snprintf(pool, sizeof pool, "%s", info.pool);
    }
    kith_model_free(model);
    return status;
}

/* As downloaded, without a word about it: what it is, and how it is pooled unless one says otherwise. */
static void test_published_weights(void **state) {
    (void)state;
    const char *weights = testing_shared("weights/googlenet_bvlc.safetensors");
    kith_error err = {0};
    KITH_OPTIONS(kith_model_options, options);
    if (!weights) skip();
    options.weights = weights;
    assert_ok(open_model(&options, &err), &err);
    assert_string_equal(backbone, "googlenet");
    assert_string_equal(pool, "both");
    assert_non_null(
        strstr(said, "googlenet_bvlc.safetensors: these are the tensors of googlenet, pooled by both"));
    options.pool = "max";
    assert_ok(open_model(&options, &err), &err);
    assert_string_equal(pool, "max");
    options.pool = NULL;
    options.backbone = "googlenet"; /* as before: nothing is recognised, nothing chosen */
    assert_ok(open_model(&options, &err), &err);
    assert_string_equal(pool, "avg");
    assert_string_equal(said, "");
}

static void test_the_wrong_network_is_named(void **state) {
    (void)state;
    kith_error err = {0};
    KITH_OPTIONS(kith_model_options, options);
    write_names("resnet50", "", 0);
    options.weights = path;
    options.backbone = "googlenet";
    assert_int_equal(open_model(&options, &err), KITH_ESHAPE);
    assert_hint(&err, "these are the tensors of resnet50: name that network, or none");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_network_of_images),
        cmocka_unit_test(test_what_is_not_known),
        cmocka_unit_test(test_published_weights),
        cmocka_unit_test(test_the_wrong_network_is_named),
    };
    return cmocka_run_group_tests_name("net/recognise", tests, NULL, testing_tear_down);
}
