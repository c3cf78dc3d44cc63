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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extents_of_nothing),
        cmocka_unit_test(test_a_claim_takes_no_memory),
        cmocka_unit_test(test_two_networks),
    };
    return cmocka_run_group_tests_name("net/hostile_weights", tests, NULL, testing_tear_down);
}
