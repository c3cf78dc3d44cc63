/* State dicts as kith export --torch writes them, against the lists of names and shapes of timm's and torchvision's own models
 * (test/golden/net/names): every tensor is there in its shape, and nothing else. Widths of large networks are divided, so that no file is
 * large. And out and in again: the same vectors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/export.h"
#include "net/model_file.h"
#include "net/torch_names.h"
#include "net/weights.h"
#include "support/testing.h"

typedef struct row {
    const char *list;
    ki_net_options net;
    const char *settings;
    int64_t width, divisor; /* extents that are multiples of `width` are divided */
} row;

static const row rows[] = {
    {"timm.vit_small_patch16_224",
     {.backbone = "vit_s", .pool = KI_POOLING_CLASS, .classes = 1000},
     "width=12,heads=2",
     384,
     32},
    {"timm.vit_small_patch14_dinov2",
     {.backbone = "vit_s", .pool = KI_POOLING_CLASS},
     "kind=dinov2,width=12,heads=2",
     384,
     32},
    {"timm.vit_small_patch14_reg4_dinov2",
     {.backbone = "vit_s", .pool = KI_POOLING_AVG},
     "kind=dinov2,width=12,heads=2,registers=4,class_position=no",
     384,
     32},
    {"timm.convnext_tiny", {.backbone = "convnext_t", .classes = 1000}, "width=12", 96, 8},
    {"timm.convnextv2_tiny", {.backbone = "convnext_v2_t", .classes = 1000}, "width=12", 96, 8},
    {"timm.swin_tiny_patch4_window7_224", {.backbone = "swin_t", .classes = 1000}, "width=32", 96, 3},
    {"timm.mobilenetv3_large_100", {.backbone = "mobilenet_v3_large", .classes = 1000}, "", 1, 1},
    /* the embedding layer goes by the classifier's name */
    {"timm.efficientnet_b0", {.backbone = "efficientnet_b0", .embedding = 1000}, "", 1, 1},
    {"torchvision.resnet18", {.backbone = "resnet18", .embedding = 1000}, "", 1, 1},
};

static const char *file(const char *name) {
    static char path[2][600];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", testing_folder(), name);
    return path[turn];
}

static void save(const row *r) {
    kith_error err = {0};
    ki_arena arena = {0};
    ki_backend *backend = NULL;
    ki_params *params = NULL;
    ki_net net = {0};
    ki_net_options options = r->net;
    assert_ok(ki_settings_parse(&arena, r->settings, NULL, &options.settings, &err), &err);
    assert_ok(ki_net_init(&options, &net, &err), &err);
    assert_ok(ki_backend_open("ref", NULL, &backend, &err), &err);
    assert_ok(ki_params_new(net.graph, backend, &params, &err), &err);
    assert_ok(ki_torch_save(&net, params, file("t.safetensors"), &err), &err);
    ki_params_free(params);
    ki_net_release(&net);
    ki_backend_close(backend);
    ki_arena_release(&arena);
}

/* "64x3x7x7"; "scalar". A table of biases has a column for each head, which Swin has as many of as its width says. */
static kith_array wanted_shape(const row *r, const char *name, const char *text) {
    kith_array shape = {.n_dims = 0};
    const bool is_table = strstr(name, "bias_table");
    for (char *at = (char *)(uintptr_t)text; *at && *at != 's';) {
        const int64_t n = strtoll(at, &at, 10);
        const bool is_divided = n % r->width == 0 || (is_table && shape.n_dims == 1);
        shape.dim[shape.n_dims++] = is_divided ? n / r->divisor : n;
        at += *at == 'x';
    }
    return shape;
}

static const char *text_of(const kith_array *a, char *buf, size_t bytes) {
    size_t used = 0;
    buf[0] = '\0';
    for (int i = 0; i < a->n_dims; i++)
        used += (size_t)snprintf(buf + used, bytes - used, "%s%lld", i ? "x" : "", (long long)a->dim[i]);
    return buf;
}

static void test_lists(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char path[600], name[200], shape[80], a[100], b[100];
        int64_t n = 0;
        kith_error err = {0};
        kith_tensors *tensors = NULL;
        save(&rows[i]);
        assert_ok(kith_tensors_open(file("t.safetensors"), &tensors, &err), &err);
        snprintf(path, sizeof path, "%s/test/golden/net/names/%s.txt", KITH_SOURCE_DIR, rows[i].list);
        FILE *list = fopen(path, "r");
        if (!list) fail_msg("%s is not there", path);
        for (; fscanf(list, "%199s %79s", name, shape) == 2; n++) {
            kith_array found;
            const kith_array wanted = wanted_shape(&rows[i], name, shape);
            if (kith_tensors_get(tensors, name, &found, &err) != KITH_OK)
                fail_msg("%s: %s", rows[i].list, err.message);
            if (strcmp(text_of(&found, a, sizeof a), text_of(&wanted, b, sizeof b)) != 0)
                fail_msg("%s: %s is %s, wanted %s", rows[i].list, name, a, b);
        }
        fclose(list);
        if (kith_tensors_count(tensors) != n)
            fail_msg("%s: %lld tensors, wanted %lld", rows[i].list, (long long)kith_tensors_count(tensors),
                     (long long)n);
        kith_tensors_free(tensors);
    }
}

/* ---- out and in again ---- */

enum { N_IMAGES = 2, SIDE = 64 };

static void embed(const kith_model_options *options, float **ret, int64_t *ret_n) {
    kith_error err = {0};
    kith_model *model = NULL;
    int n_dims = 0;
    int64_t dim[KITH_MAX_DIMS];
    assert_ok(kith_model_open(options, &model, &err), &err);
    assert_ok(kith_model_tap_shape(model, "pooled", &n_dims, dim, &err), &err);
    float *input = malloc(sizeof *input * N_IMAGES * 3 * SIDE * SIDE);
    *ret_n = N_IMAGES * dim[0];
    *ret = malloc((size_t)*ret_n * sizeof **ret);
    assert_non_null(input);
    assert_non_null(*ret);
    for (int i = 0; i < N_IMAGES * 3 * SIDE * SIDE; i++) input[i] = (float)(i * 37 % 101) / 50 - 1;
    assert_ok(kith_model_embed_floats(model, input, N_IMAGES, "pooled", *ret, &err), &err);
    free(input);
    if (!options->weights) {
        assert_ok(kith_model_export_torch(model, file("t.safetensors"), &err), &err);
        assert_ok(kith_model_save(model, file("own.safetensors"), &err), &err);
    }
    kith_model_free(model);
}

static const struct {
    const char *backbone, *settings, *pool;
} nets[] = {
    {"vit_t", "depth=2,width=32,heads=2,grid=4", "class"},
    {"vit_t", "kind=dinov2,patch=16,depth=2,width=32,heads=2,grid=4,registers=4,swiglu=true", "class"},
    {"vit_t", "kind=clip,act=quick_gelu,depth=2,width=32,heads=2,grid=4", "class"},
    {"vit_t", "kind=siglip,act=gelu_tanh,depth=2,width=32,heads=2,grid=4", "attention"},
    {"convnext_v2_t", "width=8,depth=2,blocks=1", "avg"},
    {"swin_t", "width=32,depth=1,window=2", "avg"},
    {"mobilenet_v3_large", "width=0.25", "avg"},
    {"efficientnet_b0", "width=0.25,depth=0.25", "avg"},
};

/* Vectors of nets[i], which are freed. */
static void assert_same(size_t i, float *wanted, int64_t n, float *found, int64_t m) {
    assert_int_equal(n, m);
    for (int64_t k = 0; k < n; k++) {
        if (wanted[k] != found[k])
            fail_msg("%s %s: number %lld is %g, wanted %g", nets[i].backbone, nets[i].settings, (long long)k,
                     (double)found[k], (double)wanted[k]);
    }
    free(wanted);
    free(found);
}

/* A network of less than its usual width has to be named. Which function is between two layers a state dict does not say. */
static void test_round_trip(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(nets); i++) {
        kith_error err = {0};
        KITH_OPTIONS(kith_model_options, options);
        float *first, *again;
        int64_t n, m;
        options.backbone = nets[i].backbone;
        options.settings = nets[i].settings;
        options.pool = nets[i].pool;
        options.height = options.width = SIDE;
        options.embedding = 8;
        options.seed = 9;
        embed(&options, &first, &n);
        options.embedding = KITH_NONE;
        options.seed = 10;
        char from[600], to[600];
        snprintf(from, sizeof from, "%s", file("t.safetensors"));
        snprintf(to, sizeof to, "%s", file("again.safetensors"));
        if (kith_model_import(from, &options, to, &err) != KITH_OK)
            fail_msg("%s: %s (%s)", nets[i].settings, err.message, err.hint);
        KITH_OPTIONS(kith_model_options, plain);
        plain.weights = to;
        embed(&plain, &again, &m);
        assert_same(i, first, n, again, m);
    }
}

/* Of what the tensors do not say, kith finds in the file what it wrote there: heads, functions, eps, pooling. */
static void test_settings_come_back(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(nets); i++) {
        KITH_OPTIONS(kith_model_options, options);
        float *first, *again;
        int64_t n, m;
        options.backbone = nets[i].backbone;
        options.settings = nets[i].settings;
        options.pool = nets[i].pool;
        options.height = options.width = SIDE;
        options.seed = 9;
        embed(&options, &first, &n);
        KITH_OPTIONS(kith_model_options, named);
        named.backbone = nets[i].backbone;
        named.weights = file("t.safetensors");
        embed(&named, &again, &m);
        assert_same(i, first, n, again, m);
    }
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *pool, *line;
    } poolings[] = {
        {"class_avg", "the model has other pooling than averages, which models of timm do not have"},
        {"gem", "the model has other pooling than averages, which models of timm do not have"}};
    for (size_t i = 0; i < N_ROWS(poolings); i++) {
        kith_error err = {0};
        kith_model *model = NULL;
        KITH_OPTIONS(kith_model_options, options);
        options.backbone = "vit_t";
        options.settings = nets[0].settings;
        options.pool = poolings[i].pool;
        options.height = options.width = SIDE;
        assert_ok(kith_model_open(&options, &model, &err), &err);
        const kith_status status = kith_model_export_torch(model, file("t.safetensors"), &err);
        if (status != KITH_EUNSUPPORTED || strcmp(err.message, poolings[i].line) != 0)
            fail_msg("%s, wanted '%s'", err.message, poolings[i].line);
        kith_model_free(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_settings_come_back),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("net/torch_names", tests, NULL, testing_tear_down);
}
