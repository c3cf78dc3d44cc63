/* kith train, embed, eval, index and data on features made elsewhere, as a user types them. */
#include <stdlib.h>
#include <sys/stat.h>

#include "data/features_file.h"
#include "kith/train.h"
#include "train/tiny.h"

enum { CLASSES = 12, EACH = 10, DIM = 24 };

static char output[TINY_OUTPUT];

#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

static void assert_holds(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

/* One line with that text, and exit status 1. */
static void assert_refused(int status, const char *text) {
    if (status != 1) fail_msg("exit status %d, wanted 1: %s", status, output);
    assert_holds(text);
    assert_one_line_of(output);
}

static const char *make_recipe(void) {
    static bool is_made;
    const char *recipe = features_path("features.yaml");
    char text[1024];
    if (is_made) return recipe;
    features_write("x.npy", KITH_F32, CLASSES, EACH, DIM);
    features_write("half.npy", KITH_F16, CLASSES, EACH, DIM);
    features_write_labels("y.npy", CLASSES, EACH, 0);
    features_write_labels("x.labels.npy", CLASSES, EACH, 0);
    snprintf(text, sizeof text,
             "data: {features: %s, labels: %s}\n"
             "model: {backbone: mlp, embedding: 8, settings: {width: 16, depth: 2, dropout: 0.2, residual: "
             "true}}\n"
             "batch: {classes: 3, images: 4}\n"
             "objective: {loss: raw, miner: vthm}\n"
             "optim: {lr: 3e-3, steps: 30}\n"
             "eval: {every: 10}\n"
             "checkpoint: {every: 7}\n"
             "threads: 1\n"
             "log_every: 5\n",
             features_path("x.npy"), features_path("y.npy"));
    testing_write(recipe, text);
    is_made = true;
    return recipe;
}

static int train(const char *out, const char *arguments) {
    return run("%s train %s --out %s/%s --no-report %s", testing_program(), make_recipe(), testing_folder(),
               out, arguments);
}

static void must_train(const char *out, const char *arguments) {
    if (train(out, arguments) != 0) fail_msg("%s: %s", arguments, output);
}

/* Every backbone and norm trains, and its model says what it is. */
static void test_backbones(void **state) {
    (void)state;
    static const struct {
        const char *out, *set;
    } rows[] = {{"batch", "--set model.settings.norm=batch"},
                {"layer", "--set model.settings.norm=layer"},
                {"plain", "--set model.settings.norm=none"},
                {"none", "--set model.backbone=none --set 'model.settings={}'"},
                {"half", "--set model.backbone=none --set 'model.settings={}' --set data.features=half.npy"}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char set[512];
        snprintf(set, sizeof set, "%s", rows[i].set);
        char *half = strstr(set, "half.npy");
        if (half) snprintf(half, sizeof set - (size_t)(half - set), "%s", features_path("half.npy"));
        must_train(rows[i].out, set);
        char *card = tiny_read(rows[i].out, "result.json");
        if (!strstr(card, "\"dataset\":\"features\"") && !strstr(card, "\"dataset\": \"features\""))
            fail_msg("%s: the card does not say features: %.400s", rows[i].out, card);
        if (!strstr(card, "features of 24 numbers")) fail_msg("no preprocessing in %.400s", card);
        if (strstr(card, "\"crop\"") || strstr(card, "\"pool\"")) fail_msg("of images: %.400s", card);
        free(card);
    }
    char *model = tiny_read("layer", "recipe.yaml");
    if (strstr(model, "resize")) fail_msg("an input section for features: %s", model);
    free(model);
}

static int stop_at(void *user, const kith_train_event *event) {
    return event->step >= *(const int64_t *)user;
}

static kith_status train_until(const char *out, bool resume, int64_t step, kith_error *err) {
    const kith_train_options options = {.size = sizeof(kith_train_options),
                                        .recipe = make_recipe(),
                                        .out = features_path(out),
                                        .resume = resume,
                                        .no_report = true,
                                        .notify = stop_at,
                                        .user = &step};
    return kith_train_run(&options, NULL, err);
}

/* Stopped at several steps and resumed: the same bits, dropout and batch norm included. */
static void test_resume(void **state) {
    (void)state;
    static const int64_t stops[] = {0, 3, 7, 19};
    kith_error err;
    assert_ok(train_until("whole", false, INT64_MAX, &err), &err);
    for (size_t i = 0; i < N_ROWS(stops); i++) {
        char out[32];
        snprintf(out, sizeof out, "stopped-%d", (int)stops[i]);
        assert_int_equal(train_until(out, false, stops[i], &err), KITH_ECANCELED);
        assert_ok(train_until(out, true, INT64_MAX, &err), &err);
        tiny_assert_same("whole", out, "model.safetensors");
        tiny_assert_same("whole", out, "test/embedding.npy");
    }
}

static double number_after(const char *text, const char *key) {
    const char *at = text ? strstr(text, key) : NULL;
    if (!at) fail_msg("no %s in the card", key);
    return strtod(at + strlen(key) + strspn(at + strlen(key), ": ["), NULL);
}

/* A trained head tells clusters apart better than the features do. */
static void test_it_learns(void **state) {
    (void)state;
    must_train("long",
               "--set optim.steps=200 --set optim.lr=1e-2 --set model.backbone=none --set "
               "'model.settings={}'");
    char *card = tiny_read("long", "result.json");
    const double trained = number_after(strstr(card, "\"test\""), "\"1\"");
    const double untrained = number_after(strstr(card, "\"untrained\""), "\"1\"");
    free(card);
    if (!(trained > untrained + 0.05)) fail_msg("R@1 is %g, untrained %g", trained, untrained);
}

static void test_the_other_commands(void **state) {
    (void)state;
    const char *program = testing_program();
    must_train("used", "");
    const char *x = features_path("x.npy"), *y = features_path("y.npy");
    char model[512], e[512], index[512];
    snprintf(model, sizeof model, "%s/used", testing_folder());
    snprintf(e, sizeof e, "%s/e.npy", testing_folder());
    snprintf(index, sizeof index, "%s/i.kith", testing_folder());
    assert_int_equal(run("%s embed %s %s -o %s", program, model, x, e), 0);
    assert_holds("float32 [120, 8]");
    assert_holds("e.labels.txt: the images' classes");
    if (strstr(output, "paths")) fail_msg("paths of rows: %s", output);
    assert_int_equal(run("%s eval %s --data %s --split all --json > %s.a", program, model, x, e), 0);
    assert_int_equal(
        run("%s eval %s --data %s --labels %s --split all --metrics retrieval", program, model, x, y), 0);
    assert_holds("mlp, embedding of 8 values, on features");
    assert_holds("R@1");
    assert_int_equal(run("%s eval --embedding %s --labels %s --metrics retrieval", program, e, y), 0);
    assert_int_equal(run("%s index %s -o %s --model %s", program, x, index, model), 0);
    assert_holds("120 items of 8 values; 120 added");
    assert_int_equal(run("%s search %s %s -k 1", program, index, e), 0);
    assert_int_equal(run("%s index %s --sync", program, index), 0);
    assert_int_equal(run("%s data %s", program, x), 0);
    assert_holds("features, 120 rows, 12 classes");
    assert_holds("numbers     24 in a row");
    assert_int_equal(run("%s data %s --labels %s --check --json", program, x, y), 0);
    assert_holds("\"numbers\": 24");
    assert_int_equal(run("%s data %s", program, make_recipe()), 0);
    assert_int_equal(run("%s report %s -o %s/r.html", program, model, testing_folder()), 0);
}

/* Somebody shortens the features meanwhile: one line says so. */
static void test_features_that_shrink(void **state) {
    (void)state;
    make_recipe();
    if (run("cp %s %s", features_path("x.npy"), features_path("shrinks.npy")) != 0) fail_msg("%s", output);
    const int status = run(
        "{ sleep 1; truncate -s 3000 %s; } & %s train %s --out %s/shrinks --no-report --set data.features=%s "
        "--set optim.steps=100000000 --set eval.every=0 --set checkpoint.every=100000000 --quiet",
        features_path("shrinks.npy"), testing_program(), make_recipe(), testing_folder(),
        features_path("shrinks.npy"));
    if (status != 1) fail_msg("exit status %d, wanted 1: %s", status, output);
    int n_lines = 0;
    for (const char *at = output; (at = strstr(at, "shrinks.npy: it became shorter while it was read")); at++)
        n_lines++;
    if (n_lines != 1) fail_msg("%d lines, wanted 1: %s", n_lines, output);
}

static void test_wrong_input(void **state) {
    (void)state;
    const char *program = testing_program();
    must_train("right", "");
    features_write("wide.npy", KITH_F32, CLASSES, EACH, DIM + 1);
    features_write_labels("wide.labels.npy", CLASSES, EACH, 0);
    static const struct {
        const char *set, *text;
    } rows[] = {
        {"--set model.backbone=googlenet --set 'model.settings={}'",
         "model: googlenet takes images, and the data is features"},
        {"--set data.features= --set data.labels= --set data.root=photos",
         "model: mlp takes features, and the data is images"},
        {"--set data.root=photos", "data: both root and features are given; wanted one of them"},
        {"--set data.features=", "data: labels without features"},
        {"--set data.dataset=cub", "data: dataset is cub, and features are given"},
        {"--set data.features=absent.npy", "absent.npy"},
        {"--set input.crop=64", "input: is for images, and the data is features; leave it out"},
        {"--set model.pool=max", "pooling of mlp, which takes features and has no map"},
        {"--set model.map_channels=4", "map channels of mlp, which takes features and has no map"},
        {"--set model.heads=2", "mlp names no place where heads could begin"},
        {"--set model.settings.norm=group", "norm"},
        {"--set 'objective.regularizers=[{name: horde}]'",
         "horde reads the feature map, which a network that takes features does not have"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) assert_refused(train("wrong", rows[i].set), rows[i].text);
    char model[512];
    snprintf(model, sizeof model, "%s/right", testing_folder());
    assert_refused(
        run("%s embed %s %s -o %s", program, model, features_path("wide.npy"), features_path("o.npy")),
        "the model takes features of 24 numbers; ");
    assert_refused(run("%s embed %s %s/test/golden/index-0.2/photos -o %s", program, model, testing_source(),
                       features_path("o.npy")),
                   "the model takes features of 24 numbers; ");
    assert_refused(
        run("%s embed --backbone convnet4 %s -o %s", program, features_path("x.npy"), features_path("o.npy")),
        "convnet4 takes images of 1 to 4 channels, found 24");
    assert_refused(run("%s embed --backbone mlp --generate 4", program), "patterns are images");
    assert_refused(run("%s eval %s --data %s --labels %s", program, model, features_path("x.npy"),
                       features_path("wide.npy")),
                   "wide.npy");
    assert_refused(run("%s data %s --speed", program, features_path("x.npy")), "holds features");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backbones),   cmocka_unit_test(test_resume),
        cmocka_unit_test(test_it_learns),   cmocka_unit_test(test_the_other_commands),
        cmocka_unit_test(test_wrong_input), cmocka_unit_test(test_features_that_shrink),
    };
    return cmocka_run_group_tests_name("train/features", tests, NULL, testing_tear_down);
}
