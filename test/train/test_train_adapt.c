/* Runs that train a part of the network, or average it: resumed to the same bits, and the files they leave. */
#include <math.h>

#include "data/features_file.h"
#include "kith/card.h"
#include "train/tiny.h"

static char output[TINY_OUTPUT];

#define SHORT "-q -s optim.steps=9 -s eval.every=3 -s checkpoint.keep=9 "

static const char *path_of(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", testing_folder(), name);
    return path;
}

static void trained(const char *out, const char *arguments) {
    if (tiny_train(output, out, arguments) != 0) fail_msg("%s", output);
}

/* An mlp on features, which has linear layers. */
static void trained_mlp(const char *out, const char *arguments) {
    static bool is_made;
    char text[1024];
    if (!is_made) {
        features_write("x.npy", KITH_F32, 12, 10, 24);
        features_write_labels("y.npy", 12, 10, 0);
        snprintf(text, sizeof text,
                 "data: {features: %s/x.npy, labels: %s/y.npy}\n"
                 "model: {backbone: mlp, embedding: 8, settings: {width: 16, depth: 3, dropout: 0.2}}\n"
                 "batch: {classes: 3, images: 4}\n"
                 "objective: {loss: raw, miner: vthm}\n"
                 "optim: {lr: 1e-2, steps: 9}\n"
                 "eval: {every: 3}\n"
                 "checkpoint: {every: 4, keep: 9}\n"
                 "threads: 1\n",
                 testing_folder(), testing_folder());
        testing_write(path_of("mlp.yaml"), text);
        is_made = true;
    }
    char recipe[4096];
    snprintf(recipe, sizeof recipe, "%s", path_of("mlp.yaml"));
    if (testing_run(output, sizeof output, "%s train %s --out %s --no-report -q %s", testing_program(),
                    recipe, path_of(out), arguments) != 0)
        fail_msg("%s", output);
}

/* Cut back to step 4 and resumed, the copy of a run ends in the same bytes. */
static void check_resumed(const char *out) {
    if (testing_run(output, sizeof output,
                    "cd %s && rm -rf part && cp -r %s part && cd part && rm -f result.json model.safetensors "
                    "checkpoints/step-0000000[5-9].safetensors && %s train . --resume --no-report -q",
                    testing_folder(), out, testing_program()) != 0)
        fail_msg("%s: %s", out, output);
    tiny_assert_same(out, "part", "model.safetensors");
    tiny_assert_same(out, "part", "test/embedding.npy");
}

static void test_resumed(void **state) {
    (void)state;
    static const struct {
        const char *out, *arguments;
    } rows[] = {{"ema", SHORT "-s eval.select=last -s optim.ema=0.8"},
                {"frozen", SHORT "-s eval.select=last -s model.freeze=pool2"},
                {"decay", SHORT "-s eval.select=last -s optim.layer_decay=0.5 -s optim.name=adamw"}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        trained(rows[i].out, rows[i].arguments);
        check_resumed(rows[i].out);
    }
    trained_mlp("lora", "-s 'model.lora={rank: 2}' -s optim.ema=0.8 -s eval.select=last");
    check_resumed("lora");
    /* The best model is chosen, and read back at the end. */
    trained_mlp("best", "-s 'model.lora={rank: 2}' -s optim.ema=0.8 -s model.freeze=block1");
    check_resumed("best");
}

static kith_tensors *model_of(const char *out, const char *file) {
    kith_error err;
    kith_tensors *model = NULL;
    char name[256];
    snprintf(name, sizeof name, "%s/%s", out, file);
    assert_ok(kith_tensors_open(path_of(name), &model, &err), &err);
    return model;
}

static void check_tensor(const char *a, const char *b, const char *name, bool is_same) {
    kith_error err;
    kith_array x, y;
    kith_tensors *one = model_of(a, "model.safetensors"), *other = model_of(b, "model.safetensors");
    assert_ok(kith_tensors_get(one, name, &x, &err), &err);
    assert_ok(kith_tensors_get(other, name, &y, &err), &err);
    const bool found = memcmp(x.data, y.data, (size_t)kith_array_count(&x) * sizeof(float)) == 0;
    if (found != is_same)
        fail_msg("%s of %s and %s: %s; wanted %s", name, a, b, found ? "the same" : "different",
                 is_same ? "the same" : "different");
    kith_tensors_free(one);
    kith_tensors_free(other);
}

/* However long a run is, what is frozen is what it began with. */
static void test_frozen_weights_stay(void **state) {
    (void)state;
    trained("short", SHORT "-s eval.select=last -s model.freeze=pool2 -s optim.steps=1");
    trained("long", SHORT "-s eval.select=last -s model.freeze=pool2");
    check_tensor("short", "long", "conv1.weight", true);
    check_tensor("short", "long", "bn2.running_mean", true);
    check_tensor("short", "long", "conv3.weight", false);
    check_tensor("short", "long", "embedding.weight", false);
}

static double recall_of(const char *card) {
    kith_error err;
    kith_card *result = NULL;
    double value = NAN;
    assert_ok(kith_card_read(path_of(card), &result, &err), &err);
    if (!kith_card_real(result, "test.recall.1", &value) && !kith_card_real(result, "recall.1", &value))
        fail_msg("%s has no R@1", card);
    kith_card_free(result);
    return value;
}

/* The file that is left has the result's figure when others read it. */
static void check_figure(const char *out, const char *data) {
    char card[64], folder[4096];
    snprintf(card, sizeof card, "%s/result.json", out);
    snprintf(folder, sizeof folder, "%s", path_of(out));
    if (testing_run(output, sizeof output, "%s eval %s --data %s/%s --json > %s/eval.json", testing_program(),
                    folder, testing_folder(), data, testing_folder()) != 0)
        fail_msg("%s", output);
    const double wanted = recall_of(card), found = recall_of("eval.json");
    if (found != wanted) fail_msg("%s: R@1 is %.17g by kith eval, %.17g in the result", out, found, wanted);
}

/* The model of the result is the average: that of the checkpoint's tensors. */
static void test_the_model_is_the_average(void **state) {
    (void)state;
    kith_error err;
    kith_array x, average, last;
    trained("average", SHORT "-s eval.select=last -s optim.ema=0.8");
    trained("plain", SHORT "-s eval.select=last");
    kith_tensors *model = model_of("average", "model.safetensors"),
                 *checkpoint = model_of("average", "checkpoints/step-00000009.safetensors");
    static const char *const names[] = {"conv1.weight", "bn4.running_var", "embedding.bias"};
    for (size_t i = 0; i < N_ROWS(names); i++) {
        char name[64];
        assert_ok(kith_tensors_get(model, names[i], &x, &err), &err);
        const size_t bytes = (size_t)kith_array_count(&x) * sizeof(float);
        snprintf(name, sizeof name, "average/%s", names[i]);
        assert_ok(kith_tensors_get(checkpoint, name, &average, &err), &err);
        snprintf(name, sizeof name, "model/%s", names[i]);
        assert_ok(kith_tensors_get(checkpoint, name, &last, &err), &err);
        if (memcmp(x.data, average.data, bytes) != 0) fail_msg("%s is not the average", names[i]);
        if (memcmp(x.data, last.data, bytes) == 0) fail_msg("the average of %s is the last value", names[i]);
    }
    kith_tensors_free(model);
    kith_tensors_free(checkpoint);
    check_figure("average", "tiny");
    /* Averaging changes nothing of the training itself. */
    kith_tensors *plain = model_of("plain", "checkpoints/step-00000009.safetensors");
    checkpoint = model_of("average", "checkpoints/step-00000009.safetensors");
    assert_ok(kith_tensors_get(plain, "model/conv1.weight", &x, &err), &err);
    assert_ok(kith_tensors_get(checkpoint, "model/conv1.weight", &last, &err), &err);
    if (memcmp(x.data, last.data, (size_t)kith_array_count(&x) * sizeof(float)) != 0)
        fail_msg("conv1.weight is another with averages");
    kith_tensors_free(plain);
    kith_tensors_free(checkpoint);
}

/* So is the best model, which was chosen by the scores of the average. */
static void test_the_best_model_is_an_average(void **state) {
    (void)state;
    kith_error err;
    kith_array x, average;
    char name[128];
    trained("best-average",
            "-q -s checkpoint.every=10 -s checkpoint.keep=9 -s optim.ema=0.5 -s data.validation=0.4");
    kith_tensors *best = model_of("best-average", "best.safetensors");
    const char *step = kith_tensors_metadata(best, "kith.step");
    if (!step || atoi(step) == 0)
        fail_msg("the best model is that of step %s; wanted 10, 20 or 30", step ? step : "?");
    snprintf(name, sizeof name, "checkpoints/step-%08d.safetensors", atoi(step));
    kith_tensors *checkpoint = model_of("best-average", name);
    assert_ok(kith_tensors_get(best, "conv1.weight", &x, &err), &err);
    assert_ok(kith_tensors_get(checkpoint, "average/conv1.weight", &average, &err), &err);
    if (memcmp(x.data, average.data, (size_t)kith_array_count(&x) * sizeof(float)) != 0)
        fail_msg("conv1.weight of the best model, of step %s, is not the average", step);
    kith_tensors_free(best);
    kith_tensors_free(checkpoint);
}

static void assert_no_lora(const char *out, const char *file) {
    kith_tensors *model = model_of(out, file);
    for (int64_t i = 0; i < kith_tensors_count(model); i++) {
        if (strstr(kith_tensors_name(model, i), "lora"))
            fail_msg("%s has %s", file, kith_tensors_name(model, i));
    }
    kith_tensors_free(model);
}

/* The best model, too, is a plain one, which is read back for the end. */
static void test_lora_leaves_a_plain_model(void **state) {
    (void)state;
    trained_mlp("chosen", "-s 'model.lora={rank: 2}'");
    assert_no_lora("chosen", "model.safetensors");
    assert_no_lora("chosen", "best.safetensors");
    kith_tensors *checkpoint = model_of("chosen", "checkpoints/step-00000009.safetensors");
    kith_array x;
    kith_error err;
    assert_ok(kith_tensors_get(checkpoint, "model/block2.linear.lora_b.weight", &x, &err), &err);
    assert_ok(kith_tensors_get(checkpoint, "optim/block2.linear.lora_b.weight.m", &x, &err), &err);
    assert_int_not_equal(kith_tensors_get(checkpoint, "optim/block2.linear.weight.m", &x, &err), KITH_OK);
    kith_tensors_free(checkpoint);
    /* A run may begin with it. */
    char weights[4400];
    snprintf(weights, sizeof weights, "-s model.weights=%s -s 'model.lora={rank: 4, layers: [\"block3.*\"]}'",
             path_of("chosen"));
    trained_mlp("second", weights);
    check_tensor("chosen", "second", "block2.linear.weight", true);
    check_tensor("chosen", "second", "block3.linear.weight", false);
}

static void test_the_recipe_says_all(void **state) {
    (void)state;
    char recipe[4096];
    trained_mlp("said", "-s 'model.lora={rank: 2}' -s optim.steps=1");
    char *text = tiny_read("said", "recipe.yaml");
    if (!strstr(text, "alpha: 16")) fail_msg("no alpha: %s", text);
    free(text);
    static const struct {
        const char *set, *message;
    } rows[] = {
        {"model.lora=8", "model: lora is '8' (write a map, as in lora: {rank: 8})"},
        {"model.lora={rnk: 8}", "model.lora: unknown option 'rnk'"},
        {"model.lora={layers: qkv}", "model.lora: layers is 'qkv'; wanted a list of 1 to 32 names"},
        {"model.lora={layers: [qkv]}", "no linear layer of mlp that learns is called 'qkv'"},
        {"model.freeze=blok1", "freeze: unknown layer 'blok1' (did you mean 'block1'?)"},
        {"optim.ema=1", "ema"},
        {"optim.layer_decay=2", "layer_decay"},
    };
    snprintf(recipe, sizeof recipe, "%s", path_of("mlp.yaml"));
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const int status = testing_run(output, sizeof output, "%s train %s --print-recipe -s '%s'",
                                       testing_program(), recipe, rows[i].set);
        if (status == 0 || !strstr(output, rows[i].message))
            fail_msg("%s; wanted %s", output, rows[i].message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_frozen_weights_stay),
        cmocka_unit_test(test_the_model_is_the_average),
        cmocka_unit_test(test_the_best_model_is_an_average),
        cmocka_unit_test(test_lora_leaves_a_plain_model),
        cmocka_unit_test(test_the_recipe_says_all),
    };
    return cmocka_run_group_tests_name("train/adapt", tests, NULL, NULL);
}
