/* How images get in by what lies beside the weights: timm's config.json, and kith's table. */
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
    ki_contract_parse(text, sizeof text - 1, &c);
    assert_true(c.is_there && c.has_pixels);
    assert_int_equal(c.side, 224);
    assert_string_equal(c.resize, "shorter235"); /* floor(224 / 0.95) */
    assert_string_equal(c.filter, "bicubic");
    assert_true(c.mean[2] == 0.406 && c.std[0] == 0.229);
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
        {"{\"pretrained_cfg\": {\"input_size\": [1, 64, 64]}}", NULL, false},
        {"{\"pretrained_cfg\": {\"input_size\": [3, 1e9, 1e9]}}", NULL, false},
        {"{\"pretrained_cfg\": {\"input_size\": [3, 64.5, 64.5]}}", NULL, false},
        {"{\"pretrained_cfg\": {\"input_size\": [3, \"64\", \"64\"]}}", NULL, false},
        {"{\"pretrained_cfg\": 3}", NULL, false},
        {"{\"model_type\": \"dinov2\"}", NULL, false},
        {"[", NULL, false},
        {"", NULL, false},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_contract c;
        ki_contract_parse(rows[i].text, strlen(rows[i].text), &c);
        if (c.is_there != (rows[i].resize != NULL)) fail_msg("%s is %d", rows[i].text, c.is_there);
        if (rows[i].resize) assert_string_equal(c.resize, rows[i].resize);
        assert_int_equal(c.has_pixels, rows[i].has_pixels);
    }
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
        ki_contract_find(path, &c);
        if (!c.is_there || c.side < 1 || strncmp(c.resize, "shorter", 7) != 0)
            fail_msg("%s: %s", row->name, row->input);
        assert_true(strcmp(c.filter, "bilinear") == 0 || strcmp(c.filter, "bicubic") == 0);
        assert_ok(ki_backbone_find(row->backbone, &backbone, &err), &err);
    }
    ki_contract c;
    ki_contract_find("/nowhere/models--o--n/snapshots/" COMMIT "/model.safetensors", &c);
    assert_false(c.is_there);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_of_timm),
        cmocka_unit_test(test_other_configs),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
