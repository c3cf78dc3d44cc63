/* Weights as others publish them: a file with the names and shapes of the ResNet-50 state dict of torchvision,
 * which timm shares, is read as it is. torchvision's GoogLeNet is another network than BVLC's, and is refused. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "net/weights.h"
#include "support/testing.h"

/* A ResNet-50 has 53 convolutions, 53 batch norms of five tensors each and a classifier of two. */
enum { N_TENSORS = 53 + 53 * 5 + 2, MOST_VALUES = 512 * 512 * 9 };

typedef struct entry {
    char name[96];
    kith_array array;
} entry;

typedef struct state_dict {
    entry entry[N_TENSORS];
    int n;
    float *ramp;     /* tensor i holds i, i + 1, …: all tensors lie in one block */
    int64_t batches; /* the counter that PyTorch's batch norms keep */
} state_dict;

static void add(state_dict *dict, const char *prefix, const char *suffix, kith_array array) {
    assert_in_range(dict->n, 0, N_TENSORS - 1);
    entry *e = &dict->entry[dict->n];
    snprintf(e->name, sizeof e->name, "%s%s", prefix, suffix);
    e->array = array;
    if (!array.data) e->array.data = dict->ramp + dict->n;
    dict->n++;
}

static void add_conv(state_dict *dict, const char *name, int64_t oc, int64_t ic, int64_t k) {
    add(dict, name, ".weight", (kith_array){.dtype = KITH_F32, .n_dims = 4, .dim = {oc, ic, k, k}});
}

static void add_batch_norm(state_dict *dict, const char *name, int64_t channels) {
    static const char *const parts[] = {".weight", ".bias", ".running_mean", ".running_var"};
    for (size_t i = 0; i < N_ROWS(parts); i++)
        add(dict, name, parts[i], (kith_array){.dtype = KITH_F32, .n_dims = 1, .dim = {channels}});
    add(dict, name, ".num_batches_tracked", (kith_array){.dtype = KITH_I64, .data = &dict->batches});
}

static void add_block(state_dict *dict, const char *block, int64_t ic, int64_t width, bool has_downsample) {
    const struct {
        const char *conv, *bn;
        int64_t oc, ic, k;
    } rows[] = {
        {"conv1", "bn1", width, ic, 1},
        {"conv2", "bn2", width, width, 3},
        {"conv3", "bn3", 4 * width, width, 1},
        {"downsample.0", "downsample.1", 4 * width, ic, 1},
    };
    for (size_t i = 0; i < (has_downsample ? 4 : 3); i++) {
        char name[48];
        snprintf(name, sizeof name, "%s.%s", block, rows[i].conv);
        add_conv(dict, name, rows[i].oc, rows[i].ic, rows[i].k);
        snprintf(name, sizeof name, "%s.%s", block, rows[i].bn);
        add_batch_norm(dict, name, rows[i].oc);
    }
}

static void make_state_dict(state_dict *dict) {
    memset(dict, 0, sizeof *dict);
    dict->batches = 1;
    dict->ramp = ki_alloc(MOST_VALUES + N_TENSORS, sizeof *dict->ramp);
    assert_non_null(dict->ramp);
    for (int i = 0; i < MOST_VALUES + N_TENSORS; i++) dict->ramp[i] = (float)i;
    add_conv(dict, "conv1", 64, 3, 7);
    add_batch_norm(dict, "bn1", 64);
    static const int n_blocks[] = {3, 4, 6, 3};
    int64_t ic = 64;
    for (int stage = 0; stage < 4; stage++) {
        const int64_t width = (int64_t)64 << stage;
        for (int i = 0; i < n_blocks[stage]; i++, ic = 4 * width) {
            char block[32];
            snprintf(block, sizeof block, "layer%d.%d", stage + 1, i);
            add_block(dict, block, ic, width, i == 0);
        }
    }
    add(dict, "fc", ".weight", (kith_array){.dtype = KITH_F32, .n_dims = 2, .dim = {1000, 2048}});
    add(dict, "fc", ".bias", (kith_array){.dtype = KITH_F32, .n_dims = 1, .dim = {1000}});
    assert_int_equal(dict->n, N_TENSORS);
}

static const char *write_file(const state_dict *dict) {
    static char path[512];
    kith_error err = {0};
    kith_tensors_writer *writer = NULL;
    assert_ok(kith_tensors_writer_new(&writer, &err), &err);
    assert_ok(kith_tensors_writer_metadata(writer, "format", "pt", &err),
              &err); /* as safetensors writes it */
    for (int i = 0; i < dict->n; i++)
        assert_ok(kith_tensors_writer_add(writer, dict->entry[i].name, &dict->entry[i].array, &err), &err);
    snprintf(path, sizeof path, "%s/model.safetensors", testing_folder());
    assert_ok(kith_tensors_writer_save(writer, path, &err), &err);
    kith_tensors_writer_free(writer);
    return path;
}

static kith_status import(const char *backbone, const char *path, int64_t classes, ki_params **ret_params,
                          ki_backend **ret_backend, ki_net *ret_net, kith_error *err) {
    const ki_net_options options = {.backbone = backbone, .embedding = 512, .classes = classes};
    kith_tensors *tensors = NULL;
    assert_ok(ki_net_init(&options, ret_net, err), err);
    assert_ok(ki_backend_open("ref", NULL, ret_backend, err), err);
    assert_ok(ki_params_new(ret_net->graph, *ret_backend, ret_params, err), err);
    assert_ok(kith_tensors_open(path, &tensors, err), err);
    const kith_status status = ki_weights_import(tensors, ret_net, *ret_params, err);
    kith_tensors_free(tensors);
    return status;
}

static void release(ki_params *params, ki_backend *backend, ki_net *net) {
    ki_params_free(params);
    ki_net_release(net);
    ki_backend_close(backend);
}

/* Every tensor reaches the parameter of its name; the classifier is wanted or not. */
static void check_resnet50(int64_t classes) {
    state_dict dict;
    make_state_dict(&dict);
    kith_error err = {0};
    ki_params *params = NULL;
    ki_backend *backend = NULL;
    ki_net net = {0};
    assert_ok(import("resnet50", write_file(&dict), classes, &params, &backend, &net, &err), &err);
    float *values = ki_alloc(MOST_VALUES, sizeof *values);
    assert_non_null(values);
    int n_found = 0;
    for (int i = 0; i < dict.n; i++) {
        const ki_param *param = ki_params_find(params, dict.entry[i].name);
        if (!param) continue;
        n_found++;
        assert_ok(ki_params_get(params, param, values, &err), &err);
        if (values[0] != (float)i || values[param->n - 1] != (float)(i + param->n - 1))
            fail_msg("%s holds %g … %g, wanted %d …", param->name, (double)values[0],
                     (double)values[param->n - 1], i);
    }
    assert_int_equal(n_found, N_TENSORS - 53 - (classes ? 0 : 2)); /* all but the counters */
    ki_free(values);
    ki_free(dict.ramp);
    release(params, backend, &net);
}

static void test_resnet50_of_torchvision_and_timm(void **state) {
    (void)state;
    check_resnet50(0);
    check_resnet50(1000);
}

/* Its convolutions have batch norms and no biases, and its third branch ends in a 3x3. */
static void test_googlenet_of_torchvision_is_refused(void **state) {
    (void)state;
    state_dict dict = {.batches = 1};
    dict.ramp = ki_alloc(64 * 3 * 49 + N_TENSORS, sizeof *dict.ramp);
    assert_non_null(dict.ramp);
    memset(dict.ramp, 0, (64 * 3 * 49 + N_TENSORS) * sizeof *dict.ramp);
    add_conv(&dict, "conv1.conv", 64, 3, 7);
    add_batch_norm(&dict, "conv1.bn", 64);
    add_conv(&dict, "inception3a.branch3.1.conv", 32, 16, 3);
    kith_error err = {0};
    ki_params *params = NULL;
    ki_backend *backend = NULL;
    ki_net net = {0};
    assert_int_equal(import("googlenet", write_file(&dict), 0, &params, &backend, &net, &err), KITH_ESHAPE);
    static const char *const parts[] = {"conv1.conv.bias", "conv1.bn.weight",
                                        "inception3a.branch3.1.conv.weight is float32 [32, 16, 3, 3]"};
    for (size_t i = 0; i < N_ROWS(parts); i++) {
        if (!strstr(err.message, parts[i])) fail_msg("no '%s' in: %s", parts[i], err.message);
    }
    ki_free(dict.ramp);
    release(params, backend, &net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resnet50_of_torchvision_and_timm),
        cmocka_unit_test(test_googlenet_of_torchvision_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
