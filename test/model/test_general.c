/* The model named `general`: where it is looked for, when it is meant, and another side of its input. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kith/eval.h"
#include "kith/model.h"
#include "support/testing.h"

enum { DIM = 8 };

static const char *path_of(const char *name) {
    static char path[4][PATH_MAX];
    static int at;
    at = (at + 1) % 4;
    snprintf(path[at], sizeof path[at], "%s/%s", testing_folder(), name);
    return path[at];
}

static void save(const char *name, uint64_t seed) {
    kith_error err;
    kith_model *model = NULL;
    KITH_OPTIONS(kith_model_options, o);
    o.backbone = "convnet4";
    o.height = o.width = 32;
    o.embedding = DIM;
    o.seed = seed;
    assert_ok(kith_model_open(&o, &model, &err), &err);
    assert_ok(kith_model_save(model, path_of(name), &err), &err);
    kith_model_free(model);
}

static kith_model *open_with(const char *weights, int64_t side) {
    kith_error err;
    kith_model *model = NULL;
    KITH_OPTIONS(kith_model_options, o);
    o.weights = weights;
    o.side = side;
    assert_ok(kith_model_open(&o, &model, &err), &err);
    return model;
}

static const char *hash_of(kith_model *model) {
    static char hash[65];
    kith_error err;
    kith_model_identity who;
    assert_ok(kith_model_identify(model, &who, &err), &err);
    snprintf(hash, sizeof hash, "%s", who.hash);
    kith_model_free(model);
    return hash;
}

static int set_up(void **state) {
    (void)state;
    mkdir(path_of("models"), 0777);
    mkdir(path_of("here"), 0777);
    save("models/general.safetensors", 1);
    save("here/general", 2);
    return setenv("KITH_MODELS", path_of("models"), 1);
}

static void test_it_is_the_model_where_none_is_named(void **state) {
    (void)state;
    char hash[65], found[PATH_MAX];
    kith_error err;
    assert_ok(kith_file_hash(path_of("models/general.safetensors"), hash, &err), &err);
    assert_string_equal(hash_of(open_with(NULL, 0)), hash);
    assert_string_equal(hash_of(open_with("general", 0)), hash);
    assert_ok(kith_model_find(NULL, found, sizeof found, &err), &err);
    assert_true(found[0] == '/' && strstr(found, "/models/general.safetensors"));
    assert_int_equal(kith_model_find(NULL, found, 10, &err), KITH_EINVAL);
}

/* A backbone alone is random weights, as ever. */
static void test_a_backbone_is_not_general(void **state) {
    (void)state;
    kith_error err;
    kith_model *model = NULL;
    kith_model_identity who;
    char title[256];
    KITH_OPTIONS(kith_model_options, o);
    o.backbone = "convnet4";
    o.embedding = 4;
    assert_ok(kith_model_open(&o, &model, &err), &err);
    assert_int_equal(kith_model_identify(model, &who, &err), KITH_EINVAL);
    assert_string_equal(kith_model_title(model, title, sizeof title), "random weights (convnet4, 28 px)");
    kith_model_free(model);
}

/* Who has a file of that name means it; who names nothing never does. */
static void test_a_file_of_that_name_is_itself(void **state) {
    (void)state;
    char hash[65], before[PATH_MAX], found[PATH_MAX], title[256];
    kith_error err;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(path_of("here")), 0);
    assert_ok(kith_file_hash("general", hash, &err), &err);
    assert_ok(kith_model_find("general", found, sizeof found, &err), &err);
    assert_string_equal(found, "general");
    kith_model *model = open_with("general", 0);
    kith_model_title(model, title, sizeof title);
    if (strncmp(title, "here/general (convnet4, 32 px, ", 31) != 0) fail_msg("%s", title);
    assert_string_equal(hash_of(model), hash);
    assert_string_not_equal(hash_of(open_with(NULL, 0)), hash);
    assert_int_equal(chdir(before), 0);
}

static void test_the_title(void **state) {
    (void)state;
    char hash[65], title[256], wanted[256];
    kith_error err;
    assert_ok(kith_file_hash(path_of("models/general.safetensors"), hash, &err), &err);
    kith_model *model = open_with(NULL, 0);
    snprintf(wanted, sizeof wanted, "general (convnet4, 32 px, %.8s)", hash);
    assert_string_equal(kith_model_title(model, title, sizeof title), wanted);
    kith_model_free(model);
    model = open_with(NULL, 48);
    snprintf(wanted, sizeof wanted, "general (convnet4, 48 px, %.8s)", hash);
    assert_string_equal(kith_model_title(model, title, sizeof title), wanted);
    kith_model_free(model);
    assert_string_equal(kith_model_title(NULL, title, sizeof title), "");
}

static void test_it_is_not_installed(void **state) {
    (void)state;
    kith_error err = {0};
    kith_model *model = NULL;
    char found[PATH_MAX];
    setenv("KITH_MODELS", path_of("none"), 1);
    assert_int_equal(kith_model_open(NULL, &model, &err), KITH_ENOTFOUND);
    assert_null(model);
    assert_non_null(strstr(err.message, "the model general is not installed"));
    assert_non_null(strstr(err.message, "none/general.safetensors"));
    assert_non_null(strstr(err.hint, "kith pull"));
    assert_non_null(strstr(err.hint, "--model"));
    assert_int_equal(kith_model_find("general", found, sizeof found, &err), KITH_ENOTFOUND);
    setenv("KITH_MODELS", path_of("models"), 1);
}

/* The resizing keeps its proportion, so that as much of the picture is seen. */
static void test_another_side(void **state) {
    (void)state;
    kith_error err;
    KITH_OPTIONS(kith_model_options, kept);
    kith_model *model = open_with(NULL, 64);
    kith_model_identity who;
    kith_model_info info;
    kith_model_info_get(model, &info);
    assert_int_equal(info.height, 64);
    assert_int_equal(info.width, 64);
    assert_ok(kith_model_identify(model, &who, &err), &err);
    assert_non_null(strstr(who.preprocess, "squash512, 64 x 64"));
    /* What opens it again. */
    kith_model_options_get(model, &kept);
    assert_int_equal(kept.side, 0);
    assert_int_equal(kept.height, 64);
    assert_string_equal(kept.resize, "squash512");
    kith_model_free(model);
    /* Its own side is no other model. */
    model = open_with(NULL, 32);
    assert_ok(kith_model_identify(model, &who, &err), &err);
    assert_non_null(strstr(who.preprocess, "squash256, 32 x 32"));
    kith_model_options_get(model, &kept);
    assert_null(kept.resize);
    kith_model_free(model);
}

static void test_sides_that_are_refused(void **state) {
    (void)state;
    kith_error err = {0};
    kith_model *model = NULL;
    KITH_OPTIONS(kith_model_options, o);
    o.side = -1;
    assert_int_equal(kith_model_open(&o, &model, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "side is -1"));
    o.side = 64;
    o.height = o.width = 32;
    assert_int_equal(kith_model_open(&o, &model, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "both given"));
    o.height = o.width = 0;
    o.side = 3; /* too small for the network */
    assert_int_not_equal(kith_model_open(&o, &model, &err), KITH_OK);
    o.side = 64;
    o.resize = "shorter80"; /* said is said */
    assert_ok(kith_model_open(&o, &model, &err), &err);
    kith_model_identity who;
    assert_ok(kith_model_identify(model, &who, &err), &err);
    assert_non_null(strstr(who.preprocess, "shorter80, 64 x 64"));
    kith_model_free(model);
}

/* Below them a network's map is padding; what it was trained on is not refused. */
static void test_the_least_side(void **state) {
    (void)state;
    static const struct {
        const char *backbone, *settings;
        int64_t own, least;
    } rows[] = {{"mobilenet_v3_large", "width=0.25", 64, 32},
                {"mobilenet_v3_large", "width=0.25", 24, 24},
                {"efficientnet_b0", "width=0.25,depth=0.25", 64, 32},
                {"resnet18", NULL, 64, 32},
                {"swin_t", "width=32,depth=1,window=2", 64, 32},
                {"convnext_t", "width=8,depth=2,blocks=1", 64, 32},
                {"vit_t", "depth=2,width=32,heads=2,grid=4", 64, 16},
                {"googlenet", NULL, 64, 47},
                {"convnet4", NULL, 32, 16}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_error err = {0};
        kith_model *model = NULL;
        char wanted[128];
        KITH_OPTIONS(kith_model_options, o);
        o.backbone = rows[i].backbone;
        o.settings = rows[i].settings;
        o.height = o.width = rows[i].own;
        assert_ok(kith_model_open(&o, &model, &err), &err);
        assert_ok(kith_model_save(model, path_of("sides.safetensors"), &err), &err);
        kith_model_free(model);
        kith_model_free(open_with(path_of("sides.safetensors"), rows[i].least));
        KITH_OPTIONS(kith_model_options, less);
        less.weights = path_of("sides.safetensors");
        less.side = rows[i].least - 1;
        model = NULL;
        if (kith_model_open(&less, &model, &err) != KITH_ESHAPE)
            fail_msg("%s of %d takes a side of %d", o.backbone, (int)rows[i].own, (int)less.side);
        assert_null(model);
        snprintf(wanted, sizeof wanted, "side is %d, which is too small for %s; wanted at least %d",
                 (int)less.side, o.backbone, (int)rows[i].least);
        assert_string_equal(err.message, wanted);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_the_model_where_none_is_named),
        cmocka_unit_test(test_a_backbone_is_not_general),
        cmocka_unit_test(test_a_file_of_that_name_is_itself),
        cmocka_unit_test(test_the_title),
        cmocka_unit_test(test_it_is_not_installed),
        cmocka_unit_test(test_another_side),
        cmocka_unit_test(test_sides_that_are_refused),
        cmocka_unit_test(test_the_least_side),
    };
    return cmocka_run_group_tests_name("general", tests, set_up, testing_tear_down);
}
