/* ONNX files: what ONNX's own checker and ONNX Runtime make of them, in the tier `make test-onnx`, which installs both; and the
 * command. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "kith/export.h"
#include "support/testing.h"

enum { N_IMAGES = 3 };

static char output[65536];

static const char *in_folder(const char *name) {
    static char path[16][512];
    static int turn;
    turn = (turn + 1) % 16;
    snprintf(path[turn], sizeof path[turn], "%s/%s", testing_folder(), name);
    return path[turn];
}

/* The settings of the records' `small`, but for kinds. Positions are stored for 4 x 4 patches, and resampled for the other sizes below. */
#define SMALL_VIT "depth=2,width=32,heads=2,grid=4"
#define SMALL_CONVNEXT "width=8,depth=2,blocks=1"
#define SMALL_SWIN "width=32,depth=2,window=2"
#define SMALL_EFFICIENTNET "width=0.25,depth=0.25"

/* Every backbone, and every op and way of pooling that they have. */
static const struct {
    const char *name;
    kith_model_options model;
    const char *tap;
    bool normalize;
    const char *shared; /* weights beside the checkout, or models/ of the tree; NULL: random ones */
} rows[] = {
    {"googlenet", {.backbone = "googlenet", .height = 64, .width = 64, .embedding = 16}, NULL, false, NULL},
    {"googlenet-odd", {.backbone = "googlenet", .height = 75, .width = 75}, "map", false, NULL},
    {"googlenet-classes",
     {.backbone = "googlenet", .height = 64, .width = 64, .classes = 5},
     "logits",
     false,
     NULL},
    {"googlenet-heads",
     {.backbone = "googlenet", .height = 64, .width = 64, .embedding = 16, .heads = 4},
     NULL,
     false,
     NULL},
    {"bn_inception",
     {.backbone = "bn_inception", .height = 96, .width = 96, .embedding = 16},
     NULL,
     false,
     NULL},
    {"bn_inception-224", {.backbone = "bn_inception", .height = 224, .width = 224}, "pooled", false, NULL},
    {"resnet50", {.backbone = "resnet50", .height = 64, .width = 64, .embedding = 16}, NULL, true, NULL},
    {"resnet50-caffe",
     {.backbone = "resnet50", .height = 70, .width = 70, .settings = "stride=1x1,preprocess=caffe"},
     NULL,
     false,
     NULL},
    {"convnet4", {.backbone = "convnet4", .channels = 1, .embedding = 16, .pool = "both"}, NULL, false, NULL},
    {"convnet4-gem", {.backbone = "convnet4", .embedding = 16, .pool = "gem"}, NULL, false, NULL},
    {"convnet4-max", {.backbone = "convnet4", .height = 33, .width = 33, .pool = "max"}, NULL, true, NULL},
    {"convnet4-heads",
     {.backbone = "convnet4", .embedding = 16, .heads = 2, .map_channels = 6},
     "map",
     false,
     NULL},
    {"none", {.backbone = "none", .channels = 24, .embedding = 8}, NULL, true, NULL},
    {"mlp",
     {.backbone = "mlp", .channels = 24, .embedding = 8, .settings = "width=32,residual=true,dropout=0.2"},
     NULL,
     false,
     NULL},
    {"mlp-layer",
     {.backbone = "mlp", .channels = 32, .settings = "width=32,depth=3,norm=layer,residual=true"},
     NULL,
     false,
     NULL},
    {"mlp-plain",
     {.backbone = "mlp", .channels = 24, .classes = 3, .settings = "norm=none"},
     "logits",
     false,
     NULL},
    {"bvlc", {.backbone = "googlenet"}, NULL, false, "weights/googlenet_bvlc.safetensors"},
    {"resnet18", {.backbone = "resnet18", .height = 64, .width = 64, .pool = "both"}, NULL, false, NULL},
    {"resnet34", {.backbone = "resnet34", .height = 64, .width = 96, .embedding = 16}, NULL, true, NULL},
    {"resnet101", {.backbone = "resnet101", .height = 64, .width = 64}, NULL, false, NULL},
    {"mobilenet",
     {.backbone = "mobilenet_v3_large", .height = 64, .width = 64, .embedding = 16, .settings = "width=0.25"},
     NULL,
     true,
     NULL},
    {"mobilenet-logits",
     {.backbone = "mobilenet_v3_large",
      .height = 75,
      .width = 75,
      .classes = 5,
      .settings = "width=0.25,head=false"},
     "logits",
     false,
     NULL},
    {"efficientnet",
     {.backbone = "efficientnet_b0",
      .height = 64,
      .width = 64,
      .pool = "gem",
      .settings = SMALL_EFFICIENTNET},
     NULL,
     false,
     NULL},
    {"efficientnet-map",
     {.backbone = "efficientnet_b0", .height = 96, .width = 65, .settings = SMALL_EFFICIENTNET},
     "map",
     false,
     NULL},
    {"convnext",
     {.backbone = "convnext_t", .height = 64, .width = 64, .embedding = 16, .settings = SMALL_CONVNEXT},
     NULL,
     true,
     NULL},
    {"convnext-heads",
     {.backbone = "convnext_s",
      .height = 96,
      .width = 96,
      .embedding = 16,
      .heads = 2,
      .settings = SMALL_CONVNEXT},
     NULL,
     false,
     NULL},
    {"convnext-v2",
     {.backbone = "convnext_v2_t", .height = 75, .width = 64, .classes = 5, .settings = SMALL_CONVNEXT},
     "logits",
     false,
     NULL},
    {"swin",
     {.backbone = "swin_t", .height = 64, .width = 64, .embedding = 16, .settings = SMALL_SWIN},
     NULL,
     true,
     NULL},
    {"swin-padded",
     {.backbone = "swin_t",
      .height = 72,
      .width = 100,
      .settings = "width=32,depth=2,window=7,drop_path=0.1"},
     "map",
     false,
     NULL},
    {"vit",
     {.backbone = "vit_t", .height = 64, .width = 64, .pool = "class", .settings = SMALL_VIT},
     NULL,
     false,
     NULL},
    {"vit-96",
     {.backbone = "vit_t", .height = 96, .width = 80, .pool = "class", .settings = SMALL_VIT},
     NULL,
     true,
     NULL},
    {"vit-map", {.backbone = "vit_t", .height = 96, .width = 64, .settings = SMALL_VIT}, "map", false, NULL},
    {"vit-logits",
     {.backbone = "vit_t", .height = 64, .width = 64, .pool = "class", .classes = 5, .settings = SMALL_VIT},
     "logits",
     false,
     NULL},
    {"vit-deit-average",
     {.backbone = "vit_s",
      .height = 64,
      .width = 64,
      .pool = "class_avg",
      .settings = "kind=deit," SMALL_VIT},
     NULL,
     false,
     NULL},
    {"vit-dino",
     {.backbone = "vit_s",
      .height = 80,
      .width = 80,
      .pool = "gem",
      .embedding = 16,
      .settings = "kind=dino," SMALL_VIT},
     NULL,
     true,
     NULL},
    {"vit-dinov2",
     {.backbone = "vit_s", .height = 56, .width = 56, .pool = "class", .settings = "kind=dinov2," SMALL_VIT},
     NULL,
     false,
     NULL},
    {"vit-registers",
     {.backbone = "vit_s",
      .height = 84,
      .width = 84,
      .pool = "class_avg",
      .embedding = 16,
      .settings = "kind=dinov2,registers=4,class_position=no,positions=antialias," SMALL_VIT},
     NULL,
     false,
     NULL},
    {"vit-registers-map",
     {.backbone = "vit_s",
      .height = 84,
      .width = 70,
      .map_channels = 6,
      .settings = "kind=dinov2,registers=4,swiglu=true," SMALL_VIT},
     "map",
     false,
     NULL},
    {"vit-swiglu",
     {.backbone = "vit_l",
      .height = 56,
      .width = 56,
      .pool = "class",
      .settings = "kind=dinov2,swiglu=true,drop_path=0.2," SMALL_VIT},
     NULL,
     true,
     NULL},
    {"vit-clip",
     {.backbone = "vit_b", .height = 64, .width = 64, .pool = "class", .settings = "kind=clip," SMALL_VIT},
     NULL,
     true,
     NULL},
    {"vit-clip-96",
     {.backbone = "vit_b", .height = 96, .width = 96, .pool = "max", .settings = "kind=clip," SMALL_VIT},
     NULL,
     false,
     NULL},
    {"vit-siglip",
     {.backbone = "vit_b",
      .height = 64,
      .width = 64,
      .pool = "attention",
      .settings = "kind=siglip," SMALL_VIT},
     NULL,
     true,
     NULL},
    {"vit-siglip-96",
     {.backbone = "vit_b",
      .height = 96,
      .width = 96,
      .pool = "attention",
      .embedding = 16,
      .settings = "kind=siglip," SMALL_VIT},
     NULL,
     false,
     NULL},
    {"general", {.height = 0}, NULL, true, "models/general.safetensors"},
};
enum { N_MODELS = N_ROWS(rows) };

/* What kith makes of a model's input. */
static struct {
    bool is_there;
    kith_model_info info;
    float *wanted;
    int64_t n_wanted; /* of all images */
} made[N_MODELS];

/* Parameters that start as ones, or so small that nobody would see if they were left out. */
static bool is_shaken(const kith_model_param *p) {
    return p->n_dims == 1 || strstr(p->name, ".positions") || strstr(p->name, ".registers") ||
           strstr(p->name, ".bias_table") || strstr(p->name, ".probe");
}

/* Running statistics and gains that are not those of a new network, so that a batch norm left out would be seen. */
static void shake(kith_model *model) {
    kith_model_param p;
    kith_error err;
    for (int64_t i = 0; kith_model_param_at(model, i, &p); i++) {
        float *x = malloc((size_t)p.n * sizeof *x);
        assert_non_null(x);
        assert_ok(kith_model_param_get(model, i, x, &err), &err);
        ki_rng rng = ki_rng_at(5, KI_RNG_TEST, (uint32_t)i, 0);
        for (int64_t k = 0; is_shaken(&p) && k < p.n; k++) x[k] += (float)(0.2 * ki_rng_double(&rng));
        assert_ok(kith_model_param_set(model, i, x, &err), &err);
        free(x);
    }
}

static void write_floats(const char *path, const float *x, size_t n) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(x, sizeof *x, n, file), n);
    fclose(file);
}

static void normalise(float *x, int64_t n, int64_t dim) {
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t k = 0; k < dim; k++) sum += (double)x[i * dim + k] * (double)x[i * dim + k];
        for (int64_t k = 0; k < dim; k++)
            x[i * dim + k] = (float)((double)x[i * dim + k] / fmax(sqrt(sum), 1e-12));
    }
}

/* Pixels to a file, and what kith makes of them. */
static void embed(int m, kith_model *model, const char *tap) {
    kith_error err;
    const kith_model_info *info = &made[m].info;
    const kith_preprocess *p = &info->preprocess;
    const int64_t hw = info->height * info->width, n_each = info->channels * hw, n = N_IMAGES * n_each;
    float *pixels = malloc((size_t)n * sizeof *pixels), *input = malloc((size_t)n * sizeof *input);
    char path[512];
    assert_non_null(pixels);
    assert_non_null(input);
    const bool is_features = kith_model_takes_features(model);
    ki_rng rng = ki_rng_at(7, KI_RNG_TEST, (uint32_t)m, 0);
    for (int64_t i = 0; i < n; i++)
        pixels[i] = is_features ? (float)ki_rng_normal(&rng) : (float)ki_rng_below(&rng, 256);
    for (int64_t i = 0; i < n; i++) {
        const int64_t image = i / n_each, c = i / hw % info->channels;
        const int64_t from = p->bgr && info->channels == 3 ? info->channels - 1 - c : c;
        input[i] =
            is_features
                ? pixels[i]
                : (float)(((double)pixels[image * n_each + from * hw + i % hw] * p->scale - p->mean[c]) /
                          p->std[c]);
    }
    snprintf(path, sizeof path, "%s.in", in_folder(rows[m].name));
    write_floats(path, pixels, (size_t)n);
    int n_dims = 0;
    int64_t dim[KITH_MAX_DIMS], count = 1;
    assert_ok(kith_model_tap_shape(model, tap, &n_dims, dim, &err), &err);
    for (int i = 0; i < n_dims; i++) count *= dim[i];
    made[m].n_wanted = N_IMAGES * count;
    made[m].wanted = malloc((size_t)made[m].n_wanted * sizeof(float));
    assert_non_null(made[m].wanted);
    assert_ok(kith_model_embed_floats(model, input, N_IMAGES, tap, made[m].wanted, &err), &err);
    if (rows[m].normalize) normalise(made[m].wanted, N_IMAGES, count);
    free(pixels);
    free(input);
}

static const char *weights_of(int m) {
    static char path[4096];
    if (strncmp(rows[m].shared, "models/", 7) != 0) return testing_shared(rows[m].shared);
    snprintf(path, sizeof path, "%s/%s", KITH_TESTING_SOURCE_DIR, rows[m].shared);
    return access(path, R_OK) == 0 ? path : NULL;
}

static void make_model(int m) {
    kith_error err;
    kith_model *model = NULL;
    kith_model_options options = rows[m].model;
    char path[512];
    options.size = sizeof options;
    options.seed = 3;
    if (rows[m].shared) options.weights = weights_of(m);
    if (rows[m].shared && !options.weights) return;
    assert_ok(kith_model_open(&options, &model, &err), &err);
    if (!rows[m].shared) shake(model);
    KITH_OPTIONS(kith_export_options, how);
    KITH_OPTIONS(kith_embed_options, embed_options);
    how.tap = embed_options.tap = rows[m].tap;
    how.normalize = rows[m].normalize;
    snprintf(path, sizeof path, "%s.onnx", in_folder(rows[m].name));
    assert_ok(kith_model_export_onnx(model, path, &how, &err), &err);
    kith_model_info_get(model, &made[m].info);
    embed(m, model, kith_model_tap(model, &embed_options));
    made[m].is_there = true;
    kith_model_free(model);
}

static void make_models(void) {
    static bool is_done;
    for (int m = 0; m < N_MODELS && !is_done; m++) make_model(m);
    is_done = true;
}

static bool has_row(const char *backbone) {
    for (int m = 0; m < N_MODELS; m++) {
        if (rows[m].model.backbone && strcmp(rows[m].model.backbone, backbone) == 0) return true;
    }
    return false;
}

static void test_every_backbone_has_a_row(void **state) {
    (void)state;
#define X(name) \
    if (!has_row(#name)) fail_msg("no row for %s", #name);
#include "net/table.def"
#undef X
}

/* The line is read by scripts/count-tests.awk. */
static void skip_outside_the_tier(void) {
    const char *tier = getenv("KITH_TIER");
    if (tier && strcmp(tier, "onnx") == 0) return;
    print_message("skipped: make test-onnx runs these\n");
    skip();
}

static void test_checker(void **state) {
    (void)state;
    skip_outside_the_tier();
    make_models();
    const int status =
        testing_run(output, sizeof output,
                    "/usr/bin/python3 -c 'import glob, onnx\n"
                    "for f in glob.glob(\"%s/*.onnx\"): onnx.checker.check_model(f, full_check=True)'",
                    testing_folder());
    if (status != 0) fail_msg("onnx.checker: %s", output);
}

static void compare(int m) {
    char path[512];
    snprintf(path, sizeof path, "%s.out", in_folder(rows[m].name));
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s: no output", rows[m].name);
    float *x = malloc((size_t)(made[m].n_wanted + 1) * sizeof *x);
    assert_non_null(x);
    const size_t n = fread(x, sizeof *x, (size_t)made[m].n_wanted + 1, file);
    fclose(file);
    if ((int64_t)n != made[m].n_wanted)
        fail_msg("%s: %zu numbers, wanted %lld", rows[m].name, n, (long long)made[m].n_wanted);
    double most = 0, largest = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)x[i] - (double)made[m].wanted[i]));
        largest = fmax(largest, fabs((double)made[m].wanted[i]));
    }
    free(x);
    print_message("%s: off by %.2g of the largest value\n", rows[m].name, most / largest);
    if (!(largest > 0) || !(most <= 1e-5 * largest))
        fail_msg("%s: off by %g, the largest value is %g", rows[m].name, most, largest);
}

static void test_runtime(void **state) {
    (void)state;
    char text[16384];
    size_t used = 0;
    skip_outside_the_tier();
    make_models();
    for (int m = 0; m < N_MODELS; m++) {
        const kith_model_info *i = &made[m].info;
        const char *at = in_folder(rows[m].name);
        if (!made[m].is_there) continue;
        const bool is_features = i->height == 1 && i->width == 1;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s.onnx %s.in %s.out %d %lld", at, at, at,
                                 N_IMAGES, (long long)i->channels);
        if (!is_features)
            used += (size_t)snprintf(text + used, sizeof text - used, " %lld %lld", (long long)i->height,
                                     (long long)i->width);
        used += (size_t)snprintf(text + used, sizeof text - used, "\n");
        assert_true(used < sizeof text);
    }
    testing_write(in_folder("list"), text);
    if (testing_run(output, sizeof output,
                    "S=%s && NODE_PATH=\"$S/test/onnx/node_modules\" node \"$S/test/net/onnx_run.js\" %s",
                    testing_source(), in_folder("list")) != 0)
        fail_msg("ONNX Runtime: %s", output);
    for (int m = 0; m < N_MODELS; m++) {
        if (made[m].is_there) compare(m);
    }
}

/* As a user types it; and what is refused, in one line. */
static void test_command(void **state) {
    (void)state;
    const char *program = testing_program();
    const char *model = in_folder("m.safetensors"), *a = in_folder("a.onnx"), *b = in_folder("b.onnx");
    assert_int_equal(
        testing_run(output, sizeof output,
                    "%s embed --backbone convnet4 --embedding 16 --save %s --generate 2", program, model),
        0);
    assert_int_equal(testing_run(output, sizeof output, "%s export %s -o %s", program, model, a), 0);
    assert_non_null(
        strstr(output, "convnet4 from pixels, float [batch, 3, 28, 28], RGB 0 to 255, to embedding"));
    assert_int_equal(testing_run(output, sizeof output, "%s export %s -o %s", program, model, b), 0);
    assert_int_equal(testing_run(output, sizeof output, "cmp %s %s", a, b),
                     0); /* the same bytes every time */
    assert_int_equal(testing_run(output, sizeof output, "grep -c kith.resize %s", a), 0);
    static const struct {
        const char *arguments;
        int status;
        const char *text;
    } wrong[] = {
        {"-o x.onnx --tap nowhere", 1, "unknown tap 'nowhere'"},
        {"-o x.onnx --tap map --normalize", 1, "map is a map; vectors alone can be normalised"},
        {"", 2, "wants --out FILE"},
        {"--torch --tap pooled -o x.safetensors", 2, "--tap and --normalize are for ONNX"},
        {"--torch --pool max -o x.safetensors", 1,
         "other pooling than averages, which models of torchvision do not have"},
        {"-o /nowhere/x.onnx", 1, "/nowhere"},
    };
    for (size_t i = 0; i < N_ROWS(wrong); i++) {
        const int status = testing_run(output, sizeof output, "cd %s && %s export %s %s", testing_folder(),
                                       program, model, wrong[i].arguments);
        const char *end = strchr(output, '\n');
        if (status != wrong[i].status || !strstr(output, wrong[i].text) || !end || end[1])
            fail_msg("'%s': status %d, wanted %d and one line with '%s': %s", wrong[i].arguments, status,
                     wrong[i].status, wrong[i].text, output);
    }
}

static int tear_down(void **state) {
    for (int m = 0; m < N_MODELS; m++) free(made[m].wanted);
    return testing_tear_down(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_backbone_has_a_row),
        cmocka_unit_test(test_checker),
        cmocka_unit_test(test_runtime),
        cmocka_unit_test(test_command),
    };
    return cmocka_run_group_tests_name("net/onnx", tests, NULL, tear_down);
}
