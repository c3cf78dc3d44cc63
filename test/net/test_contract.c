/* How images get in by what lies beside the weights: timm's config.json, and kith's table. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hub/name.h"
#include "net/backbone.h"
#include "net/contract.h"
#include "support/testing.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"

static void test_config_of_timm(void **state) {
    (void)state;
    /* Of timm/resnet50.a1_in1k, without what is not read. */
    static const char text[] =
        "{\"architecture\": \"resnet50\", \"num_classes\": 1000, \"pretrained_cfg\": {\"tag\": \"a1_in1k\", "
        "\"input_size\": [3, 224, 224], \"test_input_size\": [3, 288, 288], \"fixed_input_size\": false, "
        "\"interpolation\": \"bicubic\", \"crop_pct\": 0.95, \"test_crop_pct\": 1.0, \"crop_mode\": "
        "\"center\", "
        "\"mean\": [0.485, 0.456, 0.406], \"std\": [0.229, 0.224, 0.225]}}";
    ki_contract c;
    kith_error err = {0};
    assert_ok(ki_contract_parse(text, sizeof text - 1, &c, &err), &err);
    assert_true(c.is_there && c.has_pixels);
    assert_int_equal(c.side, 224);
    assert_string_equal(c.resize, "shorter235"); /* floor(224 / 0.95) */
    assert_string_equal(c.filter, "bicubic");
    assert_true(c.mean[2] == 0.406 && c.std[0] == 0.229);
    ki_contract_release(&c);
}

static void test_other_configs(void **state) {
    (void)state;
    static const struct {
        const char *text, *resize; /* NULL: nothing is there */
        bool has_pixels;
    } rows[] = {
        {"{\"pretrained_cfg\": {\"input_size\": [3, 224, 224]}}", "shorter256", false},
        {"{\"pretrained_cfg\": {\"input_size\": [3, 64, 64], \"crop_mode\": \"squash\", \"crop_pct\": 1.0}}",
         "squash64", false},
        {"{\"pretrained_cfg\": {\"input_size\": [3, 64, 64], \"crop_mode\": \"border\"}}", "", false},
        {"{\"pretrained_cfg\": {\"input_size\": [3, 64, 64], \"crop_pct\": 0}}", "", false},
        {"{\"pretrained_cfg\": {\"input_size\": [3, 64, 64], \"mean\": [0, 0, 0], \"std\": [1, 1, 0]}}",
         "shorter73", false},
        {"{\"pretrained_cfg\": {\"input_size\": [3, 64, 64], \"mean\": [0, 0, 0], \"std\": [1, 1, 1]}}",
         "shorter73", true},
        {"{\"pretrained_cfg\": {\"input_size\": [3, 64, 65]}}", NULL, false},
        {"{\"pretrained_cfg\": {\"input_size\": [3, -5, -5]}}", NULL, false},
        {"{\"pretrained_cfg\": {\"input_size\": [3, 1e300, 1e300]}}", NULL, false},
        /* it would be resized to 40,960 pixels */
        {"{\"pretrained_cfg\": {\"input_size\": [3, 4096, 4096], \"crop_pct\": 0.1}}", "", false},
        {"{\"pretrained_cfg\": {\"input_size\": [3, 64, 64], \"crop_pct\": {\"a\": 1}, \"mean\": 7, \"std\": "
         "[0, \"x\", null], \"interpolation\": [], \"crop_mode\": {}}}",
         "", false},
        {"{\"pretrained_cfg\": {\"input_size\": [1, 64, 64]}}", NULL, false},
        {"{\"pretrained_cfg\": {\"input_size\": [3, 1e9, 1e9]}}", NULL, false},
        {"{\"pretrained_cfg\": {\"input_size\": [3, 64.5, 64.5]}}", NULL, false},
        {"{\"pretrained_cfg\": {\"input_size\": [3, \"64\", \"64\"]}}", NULL, false},
        {"{\"pretrained_cfg\": 3}", NULL, false},
        {"{\"model_type\": \"dinov2\"}", NULL, false},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_contract c;
        kith_error err = {0};
        assert_ok(ki_contract_parse(rows[i].text, strlen(rows[i].text), &c, &err), &err);
        if (c.is_there != (rows[i].resize != NULL)) fail_msg("%s is %d", rows[i].text, c.is_there);
        if (rows[i].resize) assert_string_equal(c.resize, rows[i].resize);
        assert_int_equal(c.has_pixels, rows[i].has_pixels);
        ki_contract_release(&c);
    }
}

/* transformers says it in preprocessor_config.json, older and newer files in two ways. */
static void test_processors(void **state) {
    (void)state;
    static const struct {
        const char *text, *resize, *filter; /* resize NULL: nothing is there */
        int side;
    } rows[] = {
        {"{\"size\": 224, \"resample\": 2, \"do_resize\": true}", "squash224", "bilinear", 224},
        {"{\"size\": {\"height\": 384, \"width\": 384}, \"resample\": 3}", "squash384", "bicubic", 384},
        {"{\"size\": {\"shortest_edge\": 256}, \"crop_size\": {\"height\": 224, \"width\": 224}, "
         "\"do_center_crop\": true, \"resample\": 3}",
         "shorter256", "bicubic", 224},
        {"{\"size\": 224, \"crop_size\": 224, \"do_center_crop\": true, \"resample\": 3}", "shorter224",
         "bicubic", 224},
        {"{\"size\": {\"shortest_edge\": 256}, \"crop_size\": 224, \"do_center_crop\": false}", "shorter256",
         "", 256},
        {"{\"size\": {\"shortest_edge\": 224}, \"image_processor_type\": \"ConvNextImageProcessor\", "
         "\"crop_pct\": "
         "0.875}",
         "shorter256", "", 224},
        {"{\"size\": {\"shortest_edge\": 384}, \"feature_extractor_type\": \"ConvNextFeatureExtractor\"}",
         "squash384", "", 384},
        {"{\"size\": {\"height\": 224, \"width\": 225}}", NULL, "", 0},
        {"{\"size\": 1e9}", NULL, "", 0},
        {"{\"size\": 224, \"do_resize\": false}", NULL, "", 0},
        {"[]", NULL, "", 0},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_contract c = {0};
        kith_error err = {0};
        assert_ok(ki_contract_add_processor(rows[i].text, strlen(rows[i].text), &c, &err), &err);
        if (c.is_there != (rows[i].resize != NULL)) fail_msg("%s is %d", rows[i].text, c.is_there);
        if (!rows[i].resize) continue;
        if (strcmp(c.resize, rows[i].resize) != 0)
            fail_msg("%s gives %s, wanted %s", rows[i].text, c.resize, rows[i].resize);
        assert_string_equal(c.filter, rows[i].filter);
        assert_int_equal(c.side, rows[i].side);
        assert_false(c.has_pixels);
        ki_contract_release(&c);
    }
}

/* Nobody knows what a damaged file would have said. */
static void test_what_is_not_json(void **state) {
    (void)state;
    static const char *const texts[] = {"", "[", "{", "{\"num_attention_heads\": 4,", "{\"a\": NaN}"};
    for (size_t i = 0; i < N_ROWS(texts); i++) {
        ki_contract c = {0};
        kith_error err = {0};
        assert_int_equal(ki_contract_parse(texts[i], strlen(texts[i]), &c, &err), KITH_EFORMAT);
        assert_non_null(strstr(err.message, "config.json:1: not JSON"));
        assert_int_equal(ki_contract_add_processor(texts[i], strlen(texts[i]), &c, &err), KITH_EFORMAT);
        assert_non_null(strstr(err.message, "preprocessor_config.json:1: not JSON"));
        assert_false(c.is_there);
        ki_contract_release(&c);
    }
}

/* What becomes of pixels, as mean and std of pixels from 0 to 1. */
static void test_normalisation(void **state) {
    (void)state;
#define SIZE "{\"size\": 224, "
    static const struct {
        const char *text;
        double mean, std; /* std 0: nothing is known */
    } rows[] = {
        {SIZE "\"image_mean\": [0.5, 0.5, 0.5], \"image_std\": [0.25, 0.25, 0.25]}", 0.5, 0.25},
        {SIZE "\"do_normalize\": false, \"image_mean\": [0.5, 0.5, 0.5], \"image_std\": [0.25, 0.25, 0.25]}",
         0, 1},
        /* pixels from 0 to 2, and from 0 to 255 */
        {SIZE "\"rescale_factor\": 0.00784313725490196, \"image_mean\": [1, 1, 1], \"image_std\": [1, 1, 1]}",
         0.5, 0.5},
        {SIZE "\"do_rescale\": false, \"image_mean\": [127.5, 127.5, 127.5], \"image_std\": [255, 255, 255]}",
         0.5, 1},
        {SIZE "\"do_rescale\": false, \"do_normalize\": false}", 0, 1.0 / 255},
        {SIZE "\"rescale_factor\": 0, \"image_mean\": [1, 1, 1], \"image_std\": [1, 1, 1]}", 0, 0},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_contract c = {0};
        kith_error err = {0};
        assert_ok(ki_contract_add_processor(rows[i].text, strlen(rows[i].text), &c, &err), &err);
        assert_int_equal(c.has_pixels, rows[i].std > 0);
        for (int k = 0; k < 3 && c.has_pixels; k++) {
            if (fabs(c.mean[k] - rows[i].mean) > 1e-9 || fabs(c.std[k] - rows[i].std) > 1e-9)
                fail_msg("%s: %g and %g, wanted %g and %g", rows[i].text, c.mean[k], c.std[k], rows[i].mean,
                         rows[i].std);
        }
        ki_contract_release(&c);
    }
}

/* What is there and cannot be followed is named. */
static void test_notes(void **state) {
    (void)state;
#define TIMM "{\"pretrained_cfg\": {\"input_size\": [3, 64, 64], "
    static const struct {
        const char *timm, *processor, *note;
    } rows[] = {
        {TIMM "\"crop_pct\": 0.9, \"mean\": null, \"interpolation\": \"bicubic\"}}", NULL, ""},
        {TIMM "\"crop_pct\": 0}}", NULL, "crop_pct is 0"},
        {TIMM "\"crop_pct\": 1e9}}", NULL, "crop_pct is 1e9"},
        {TIMM "\"crop_pct\": \"0.9\"}}", NULL, "crop_pct is 0.9"},
        {TIMM "\"crop_mode\": \"border\"}}", NULL, "crop_mode is border"},
        {TIMM "\"interpolation\": \"nearest\"}}", NULL, "interpolation is nearest"},
        {TIMM "\"mean\": [0, 0], \"std\": [1, 1]}}", NULL, "mean is a list"},
        {TIMM "\"mean\": [0, 0, 0], \"std\": [1, 1, 0]}}", NULL, "std is a list"},
        {TIMM "\"mean\": [0, 0, 0]}}", NULL, "std is missing"},
        {"{\"pretrained_cfg\": {\"input_size\": [3, 64, 65]}}", NULL, "input_size is a list"},
        {"{\"pretrained_cfg\": {}}", NULL, "input_size is missing"},
        {NULL, SIZE "\"resample\": 0}", "resample is 0"},
        {NULL, SIZE "\"image_mean\": [0, 0, 0], \"image_std\": 1}", "std is 1"},
        {NULL, SIZE "\"rescale_factor\": -1}", "rescale_factor is -1"},
        {NULL, SIZE "\"do_resize\": false}", "do_resize is false"},
        {NULL, "{\"size\": -3}", "size is -3"},
        {NULL, "{\"size\": {\"height\": 2, \"width\": 3}}", "size is a map"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_contract c = {0};
        kith_error err = {0};
        const char *text = rows[i].timm ? rows[i].timm : rows[i].processor;
        if (rows[i].timm)
            assert_ok(ki_contract_parse(text, strlen(text), &c, &err), &err);
        else
            assert_ok(ki_contract_add_processor(text, strlen(text), &c, &err), &err);
        char wanted[200] = "";
        if (*rows[i].note)
            snprintf(wanted, sizeof wanted, "%s: %s",
                     rows[i].timm ? "config.json" : "preprocessor_config.json", rows[i].note);
        if (strcmp(c.note, wanted) != 0) fail_msg("%s: '%s', wanted '%s'", text, c.note, wanted);
        ki_contract_release(&c);
    }
}

/* The tower of images may be a part of the file's network. */
static void test_keys(void **state) {
    (void)state;
    static const char text[] =
        "{\"model_type\": \"clip\", \"heads\": 3, \"vision_config\": {\"heads\": 4, \"act\": \"gelu\"}}";
    ki_contract c;
    double n = 0;
    kith_error err = {0};
    assert_ok(ki_contract_parse(text, sizeof text - 1, &c, &err), &err);
    assert_true(ki_config_number(&c, "heads", &n));
    assert_true(n == 4);
    assert_string_equal(ki_config_word(&c, "act"), "gelu");
    assert_string_equal(ki_config_word(&c, "model_type"), "clip");
    assert_null(ki_config_word(&c, "heads"));
    assert_false(ki_config_number(&c, "act", &n));
    ki_contract_release(&c);
    /* the root of such a file is of the tower of texts as well */
    static const char root[] = "{\"hidden_size\": 4096, \"vision_config\": {\"heads\": 4}}";
    assert_ok(ki_contract_parse(root, sizeof root - 1, &c, &err), &err);
    assert_false(ki_config_number(&c, "hidden_size", &n));
    ki_contract_release(&c);
}

/* Python may have fetched the weights alone. Every row says what its network takes. */
static void test_table(void **state) {
    (void)state;
    const ki_hub_row *row = NULL;
    for (size_t i = 0; (row = ki_hub_row_at(i)); i++) {
        char path[600];
        const ki_backbone *backbone = NULL;
        ki_contract c;
        kith_error err = {0};
        const char *slash = strchr(row->repo, '/');
        snprintf(path, sizeof path, "/nowhere/models--%.*s--%s/snapshots/" COMMIT "/model.safetensors",
                 (int)(slash - row->repo), row->repo, slash + 1);
        assert_ok(ki_contract_find(path, &c, &err), &err);
        const bool is_known = strncmp(c.resize, "shorter", 7) == 0 || strncmp(c.resize, "squash", 6) == 0;
        char whole[64];
        snprintf(whole, sizeof whole, "%lld %s %s", (long long)c.side, c.resize, c.filter);
        if (!c.is_there || c.side < 1 || !is_known || strcmp(whole, row->input) != 0)
            fail_msg("%s: read as '%s', wanted '%s'", row->name, whole, row->input);
        assert_true(strcmp(c.filter, "bilinear") == 0 || strcmp(c.filter, "bicubic") == 0);
        assert_ok(ki_backbone_find(row->backbone, &backbone, &err), &err);
        ki_contract_release(&c);
    }
    ki_contract c;
    kith_error err = {0};
    assert_ok(ki_contract_find("/nowhere/models--o--n/snapshots/" COMMIT "/model.safetensors", &c, &err),
              &err);
    assert_false(c.is_there);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_of_timm), cmocka_unit_test(test_other_configs),
        cmocka_unit_test(test_processors),     cmocka_unit_test(test_keys),
        cmocka_unit_test(test_table),          cmocka_unit_test(test_what_is_not_json),
        cmocka_unit_test(test_normalisation),  cmocka_unit_test(test_notes),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
