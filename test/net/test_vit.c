/* Vision transformers as models: from another library's file to one of kith's and back, the poolings that need a token, sizes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/explain.h"
#include "kith/model.h"
#include "net/net.h"
#include "support/testing.h"

static char folder[500], weights[600], saved[600];

/* A file of the golden ones as it lies on the hub: with its config.json. */
static void put_files(const char *name) {
    char output[200];
    snprintf(folder, sizeof folder, "%s", testing_folder());
    snprintf(weights, sizeof weights, "%s/model.safetensors", folder);
    snprintf(saved, sizeof saved, "%s/saved/model.safetensors", folder);
    const int status = testing_run(output, sizeof output,
                                   "mkdir -p '%s/saved' && cp %s/test/golden/net/%s.safetensors '%s' && cp "
                                   "%s/test/golden/net/%s.config.json "
                                   "'%s/config.json'",
                                   folder, testing_source(), name, weights, testing_source(), name, folder);
    if (status != 0) fail_msg("%s", output);
}

static kith_model *open_model(const char *path, const char *pool) {
    kith_model *model = NULL;
    kith_error err = {0};
    kith_model_options o;
    kith_model_options_init(&o, sizeof o);
    o.device = "cpu";
    o.weights = path;
    o.pool = pool;
    o.height = o.width = 16;
    o.classes = KITH_NONE;
    assert_ok(kith_model_open(&o, &model, &err), &err);
    return model;
}

/* Settings, pixels and values are all in the file that is saved: without config.json the vectors are the same. */
static void test_saved_model_says_everything(void **state) {
    (void)state;
    static const char *const files[] = {"transformers/clip", "transformers/siglip", "timm/vit_reg4_dinov2",
                                        "original/dinov2", "transformers/dinov2_swiglu"};
    for (size_t i = 0; i < N_ROWS(files); i++) {
        kith_error err = {0};
        kith_model_info a, b;
        put_files(files[i]);
        kith_model *first = open_model(weights, NULL);
        assert_ok(kith_model_save(first, saved, &err), &err);
        kith_model *second = open_model(saved, NULL);
        kith_model_info_get(first, &a);
        kith_model_info_get(second, &b);
        assert_string_equal(a.backbone, b.backbone);
        assert_string_equal(a.pool, b.pool);
        assert_true(a.preprocess.mean[0] == b.preprocess.mean[0]);
        const int64_t dim = kith_model_dim(first);
        assert_int_equal(dim, kith_model_dim(second));
        float x[3 * 16 * 16], u[64], v[64];
        for (size_t k = 0; k < N_ROWS(x); k++) x[k] = (float)(k % 23) / 11 - 1;
        assert_in_range(dim, 1, N_ROWS(u));
        assert_ok(kith_model_embed_floats(first, x, 1, "pooled", u, &err), &err);
        assert_ok(kith_model_embed_floats(second, x, 1, "pooled", v, &err), &err);
        assert_memory_equal(u, v, (size_t)dim * sizeof *u);
        kith_model_free(first);
        kith_model_free(second);
    }
}

static kith_status try_net(const char *backbone, const char *settings, ki_pooling pool, int64_t side,
                           kith_error *err) {
    ki_arena arena = {0};
    ki_net net = {0};
    ki_net_options o = {.backbone = backbone, .pool = pool, .h = side, .w = side};
    kith_error first = {0};
    assert_ok(ki_settings_parse(&arena, settings, NULL, &o.settings, &first), &first);
    const kith_status status = ki_net_init(&o, &net, err);
    ki_net_release(&net);
    ki_arena_release(&arena);
    return status;
}

static void test_poolings(void **state) {
    (void)state;
    static const struct {
        const char *backbone, *settings;
        ki_pooling pool;
        const char *line; /* NULL: it works */
    } rows[] = {
        {"vit_t", "", KI_POOLING_CLASS, NULL},
        {"vit_t", "registers=4", KI_POOLING_CLASS_AVG, NULL},
        {"vit_t", "", KI_POOLING_GEM, NULL},
        {"vit_t", "kind=siglip", KI_POOLING_ATTENTION, NULL},
        {"vit_t", "", KI_POOLING_ATTENTION,
         "pool is attention, but vit_t with these settings has no pooling by attention"},
        {"vit_t", "kind=siglip", KI_POOLING_CLASS,
         "pool is class, but vit_t with these settings has no class token"},
        {"vit_t", "class_token=no", KI_POOLING_CLASS_AVG, "no class token"},
        {"resnet50", "", KI_POOLING_CLASS,
         "pool is class, but resnet50 with these settings has no class token"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        const kith_status status = try_net(rows[i].backbone, rows[i].settings, rows[i].pool, 32, &err);
        if ((status == KITH_OK) != !rows[i].line) fail_msg("%zu: %s", i, err.message);
        if (rows[i].line && !strstr(err.message, rows[i].line))
            fail_msg("no '%s' in: %s", rows[i].line, err.message);
    }
}

/* One patch is the least; what is no whole patch is left out. */
static void test_sizes(void **state) {
    (void)state;
    kith_error err = {0};
    assert_ok(try_net("vit_t", "patch=4", KI_POOLING_AVG, 4, &err), &err);
    assert_ok(try_net("vit_t", "patch=4", KI_POOLING_AVG, 7, &err), &err);
    assert_int_equal(try_net("vit_t", "patch=4", KI_POOLING_AVG, 3, &err), KITH_ESHAPE);
    assert_non_null(strstr(err.message, "4x4"));
    assert_int_equal(try_net("vit_t", "kind=dinov2", KI_POOLING_AVG, 13, &err), KITH_ESHAPE);
    assert_non_null(strstr(err.message, "14x14"));
    assert_int_equal(try_net("vit_t", "heads=5", KI_POOLING_AVG, 32, &err), KITH_ESHAPE);
}

/* What a class token takes from a place is no part of a sum. */
static void test_shares_of_tokens(void **state) {
    (void)state;
    kith_error err = {0};
    kith_explanation why = {0};
    uint8_t pixels[16 * 16 * 3] = {0};
    put_files("timm/vit");
    kith_model *model = open_model(weights, NULL);
    const kith_pixels picture = {.data = pixels, .width = 16, .height = 16, .channels = 3};
    const kith_query_image image = {.pixels = &picture, .weight = 1};
    assert_ok(kith_model_explain(model, &image, 1, &image, NULL, &why, &err), &err);
    if (!*why.estimate) fail_msg("shares of a class token are called exact");
    kith_explanation_release(&why);
    kith_model_free(model);
    model = open_model(weights, "avg");
    assert_ok(kith_model_explain(model, &image, 1, &image, NULL, &why, &err), &err);
    if (*why.estimate) fail_msg("shares of a mean are called an estimate: %s", why.estimate);
    double sum = why.hit.rest;
    for (int64_t i = 0; i < why.rows * why.columns; i++) sum += why.hit.share[i];
    if (!(sum > why.score - 1e-9 && sum < why.score + 1e-9))
        fail_msg("shares sum to %g, the score is %g", sum, why.score);
    kith_explanation_release(&why);
    kith_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_saved_model_says_everything),
        cmocka_unit_test(test_poolings),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_shares_of_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
