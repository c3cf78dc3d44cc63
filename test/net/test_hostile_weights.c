/* Files of weights that are made to do harm: a few bytes that claim a huge network, or extents that no number of theirs has. Each is
 * refused in one line, at once, and before memory of the claimed size is asked for. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kith/model.h"
#include "net/recognise.h"
#include "support/testing.h"

static char path[600];

static void write_file(const char *header, size_t data_bytes) {
    static const char zeros[1 << 16];
    unsigned char length[8] = {0};
    snprintf(path, sizeof path, "%s/model.safetensors", testing_folder());
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (int i = 0; i < 4; i++) length[i] = (unsigned char)(strlen(header) >> 8 * i);
    assert_int_equal(fwrite(length, 1, 8, file), 8);
    assert_int_equal(fwrite(header, 1, strlen(header), file), strlen(header));
    assert_in_range(data_bytes, 0, sizeof zeros);
    assert_int_equal(fwrite(zeros, 1, data_bytes, file), data_bytes);
    assert_int_equal(fclose(file), 0);
}

static kith_status open_model(kith_error *err) {
    kith_model *model = NULL;
    KITH_OPTIONS(kith_model_options, options);
    options.weights = path;
    const kith_status status = kith_model_open(&options, &model, err);
    kith_model_free(model);
    return status;
}

#define EMPTY(name, shape) "\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[0,0]}"

/* An extent may be anything beside one of 0. The sanitizers see what overflows, the alarm what is counted up to. */
static void test_extents_of_nothing(void **state) {
    (void)state;
    static const char *const headers[] = {
        "{" EMPTY("patch_embed.norm.weight", "[96,0]") "," EMPTY(
            "layers.2.blocks.5.norm1.weight", "[0]") "," EMPTY("layers.0.blocks.0.attn.bias_table",
                                                               "[9223372036854775807,0]") "}",
        "{" EMPTY("patch_embed.norm.weight", "[2305843009213693952,0]") "," EMPTY(
            "layers.2.blocks.5.norm1.weight", "[0]") "," EMPTY("layers.0.blocks.0.attn.bias_table",
                                                               "[169,0]") "}",
        "{" EMPTY("stem.0.weight", "[2305843009213693952,0]") "," EMPTY(
            "stages.2.blocks.8.norm.weight",
            "[0]") "," EMPTY("stages.0.blocks.0.norm.weight",
                             "[0]") "," EMPTY("stages.0.blocks.0.gamma",
                                              "[1,0]") "," EMPTY("head.norm.weight", "[8,0]") "}",
        "{" EMPTY("blocks.6.0.conv_pwl.weight", "[4611686018427387904,0]") "," EMPTY("conv_head.weight",
                                                                                     "[1280,0]") "}",
        "{" EMPTY("blocks.0.norm1.weight", "[0,8]") "," EMPTY(
            "patch_embed.proj.weight", "[0,3,16,16]") "," EMPTY("tokens.positions",
                                                                "[9223372036854775807,0]") "}",
        "{" EMPTY("blocks.0.norm1.weight", "[0,8]") "," EMPTY(
            "patch_embed.proj.weight", "[0,2305843009213693952]") "," EMPTY("tokens.positions", "[16,0]") "}",
        "{" EMPTY("blocks.0.norm1.weight", "[0,8]") "," EMPTY(
            "patch_embed.proj.weight",
            "[0,3,16,16]") "," EMPTY("tokens.positions",
                                     "[16,0]") "," EMPTY("blocks.0.mlp.fc2.weight",
                                                         "[0,9223372036854775807]") "," EMPTY("blocks.0."
                                                                                              "mlp.fc1."
                                                                                              "weight",
                                                                                              "[922337203"
                                                                                              "6854775807"
                                                                                              ",0]") "}",
        /* no positions, and less than those of the class token */
        "{" EMPTY("blocks.0.norm1.weight", "[0,8]") "," EMPTY(
            "patch_embed.proj.weight", "[0,3,16,16]") "," EMPTY("tokens.class", "[0,8]") "}",
    };
    for (size_t i = 0; i < N_ROWS(headers); i++) {
        kith_error err = {0};
        write_file(headers[i], 0);
        alarm(20);
        const kith_status status = open_model(&err);
        alarm(0);
        if (status != KITH_EINVAL && status != KITH_ESHAPE) fail_msg("%zu: %d, %s", i, status, err.message);
    }
}

/* A network of 700 GB, by its metadata or by its shapes: what the file lacks is said, not that memory is short. */
static void test_a_claim_takes_no_memory(void **state) {
    (void)state;
    static const char *const headers[] = {
        "{\"__metadata__\":{\"kith.format\":\"1\",\"kith.backbone\":\"vit_l\",\"kith.settings\":"
        "\"width=8192,depth=128,mlp=65536\"},\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
        "{\"blocks.0.norm1.weight\":{\"dtype\":\"F32\",\"shape\":[8192],\"data_offsets\":[0,32768]},"
        "\"blocks.127.norm1.weight\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[32768,32772]}," EMPTY(
            "patch_embed.proj.weight",
            "[0,3,16,16]") "," EMPTY("tokens.positions", "[1024,0]") "," EMPTY("blocks.0.mlp.fc2.weight",
                                                                               "[0,65536]") "}",
    };
    static const size_t bytes[] = {4, 32772};
    for (size_t i = 0; i < N_ROWS(headers); i++) {
        kith_error err = {0};
        write_file(headers[i], bytes[i]);
        const kith_status status = open_model(&err);
        if (status != KITH_ESHAPE || !strstr(err.message, "tensors do not fit vit_l: "))
            fail_msg("%zu: %d, %s", i, status, err.message);
    }
}

#define SIGNS(before)                                                                         \
    EMPTY(before "embeddings.position_embeddings", "[1,5,0]")                                 \
    "," EMPTY(before "embeddings.patch_embeddings.projection.weight", "[0,3,8,8]") "," EMPTY( \
        before "encoder.layer.0.layernorm_before.weight",                                     \
        "[0]") "," EMPTY(before "encoder.layer.0.attention.attention.query.weight", "[0,0]")

/* A student and its teacher: neither is taken in silence. */
static void test_two_networks(void **state) {
    (void)state;
    static const char wanted[] = "two networks of transformers' ViT, 'student.*' and 'teacher.*'; wanted one";
    kith_error err = {0};
    write_file("{" SIGNS("student.") "," SIGNS("teacher.") "}", 0);
    assert_int_equal(open_model(&err), KITH_EINVAL);
    if (!strstr(err.message, wanted)) fail_msg("no '%s' in: %s", wanted, err.message);
    /* one and a half are one */
    write_file("{" SIGNS("student.") "," EMPTY("teacher.embeddings.position_embeddings", "[1,5,0]") "}", 0);
    assert_int_not_equal(open_model(&err), KITH_OK);
    assert_null(strstr(err.message, "two networks"));
}

/* Of a network of other sizes, or damaged: with its heads the same tensors would compute something else. */
static void test_configs(void **state) {
    (void)state;
    static const char vit[] = "{" EMPTY("blocks.0.norm1.weight", "[0,8]") "," EMPTY(
        "patch_embed.proj.weight", "[0,3,16,16]") "," EMPTY("tokens.positions",
                                                            "[16,0]") "," EMPTY("blocks.0.mlp.fc2.weight",
                                                                                "[0,32]") "}";
    static const char swin[] = "{" EMPTY("patch_embed.norm.weight", "[32,0]") "," EMPTY(
        "layers.2.blocks.5.norm1.weight", "[0]") "," EMPTY("layers.0.blocks.0.attn.bias_table",
                                                           "[169,0]") "," EMPTY("norm.weight", "[256,0]") "}";
    static const char convnext[] =
        "{" EMPTY("stem.0.weight", "[8,0]") "," EMPTY("stages.2.blocks.8.norm.weight", "[0]") "," EMPTY(
            "stages.0.blocks.0.norm.weight",
            "[0]") "," EMPTY("stages.0.blocks.0.gamma", "[8,0]") "," EMPTY("head.norm.weight", "[64,0]") "}";
    static const struct {
        const char *header, *config, *line;
    } rows[] = {
        {vit, "{\"hidden_size\": 768}", "config.json says hidden_size is 768, but that of the tensors is 8"},
        {vit, "{\"num_hidden_layers\": 12}", "num_hidden_layers is 12, but that of the tensors is 1"},
        {vit, "{\"patch_size\": 14}", "patch_size is 14, but that of the tensors is 16"},
        {vit, "{\"intermediate_size\": 3072}", "intermediate_size is 3072, but"},
        {vit, "{\"num_features\": 768}", "num_features is 768, but"},
        {vit, "{\"vision_config\": {\"hidden_size\": 9}}", "hidden_size is 9, but"},
        {vit, "{\"num_attention_heads\": 3}", "num_attention_heads is 3; wanted a divisor of the width, 8"},
        {vit, "{\"num_attention_heads\": 0}", "num_attention_heads is 0; wanted a divisor"},
        {vit, "{\"num_attention_heads\": 1e300}", "num_attention_heads is 1e300; wanted a divisor"},
        {vit, "{\"num_attention_heads\": \"4\"}", "num_attention_heads is 4; wanted a divisor"},
        {vit, "{\"num_attention_heads\": [4]}", "num_attention_heads is a list; wanted a divisor"},
        {vit, "{\"model_args\": {\"num_heads\": 2.5}}", "num_heads is 2.5; wanted a divisor"},
        {vit, "{\"layer_norm_eps\": 5}", "layer_norm_eps is 5; wanted a number above 0 and below 1"},
        {vit, "{\"layer_norm_eps\": 0}", "layer_norm_eps is 0; wanted"},
        {vit, "{\"hidden_act\": \"relu\"}", "hidden_act is relu; wanted gelu"},
        {vit, "{\"hidden_act\": 7}", "hidden_act is 7; wanted gelu"},
        {vit, "{\"num_attention_heads\": 4,", "config.json:1: not JSON"},
        {vit, "{\"num_attention_heads\": null, \"hidden_size\": 8, \"patch_size\": [16, 16]}",
         "tensors do not fit vit_t: "},
        {swin, "{\"embed_dim\": 96}", "config.json says embed_dim is 96, but that of the tensors is 32"},
        {swin, "{\"window_size\": 12}", "window_size is 12, but that of the tensors is 7"},
        {swin, "{\"hidden_act\": \"relu\"}", "config.json says hidden_act is relu; this network has gelu"},
        {swin, "{\"embed_dim\": 32, \"window_size\": 7}", "tensors do not fit swin_t: "},
        {convnext, "{\"hidden_act\": \"relu\"}",
         "config.json says hidden_act is relu; this network has gelu"},
        {convnext, "{\"hidden_act\": \"gelu\"}", "tensors do not fit convnext_t: "},
    };
    char config[600];
    snprintf(config, sizeof config, "%s/config.json", testing_folder());
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        write_file(rows[i].header, 0);
        testing_write(config, rows[i].config);
        if (open_model(&err) == KITH_OK || !strstr(err.message, rows[i].line))
            fail_msg("%s: no '%s' in: %s", rows[i].config, rows[i].line, err.message);
    }
    unlink(config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extents_of_nothing),
        cmocka_unit_test(test_a_claim_takes_no_memory),
        cmocka_unit_test(test_two_networks),
        cmocka_unit_test(test_configs),
    };
    return cmocka_run_group_tests_name("net/hostile_weights", tests, NULL, testing_tear_down);
}
