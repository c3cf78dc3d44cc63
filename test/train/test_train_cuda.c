/* A whole run on a device: what it judged there is what the host finds for the embeddings it wrote. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/backend.h"
#include "kith/card.h"
#include "kith/data.h"
#include "kith/model.h"
#include "kith/train.h"
#include "support/testing.h"

static int has_device(void **state) {
    (void)state;
    ki_backend *backend = NULL;
    kith_error err;
    if (ki_backend_open("cuda", NULL, &backend, &err) != KITH_OK) exit(77);
    ki_backend_close(backend);
    return 0;
}

static void read_array(const char *name, kith_array *ret) {
    char path[1024];
    kith_error err = {0};
    snprintf(path, sizeof path, "%s/run/test/%s", testing_folder(), name);
    assert_ok(kith_npy_read(path, ret, &err), &err);
}

static void test_judged_on_the_device(void **state) {
    (void)state;
    char data[1024], out[1024], recipe[2048], path[1100];
    kith_error err = {0};
    KITH_OPTIONS(kith_synth_options, synth);
    synth.n_classes = 10, synth.n_images = 6, synth.side = 24;
    snprintf(data, sizeof data, "%s/glyphs", testing_folder());
    snprintf(out, sizeof out, "%s/run", testing_folder());
    assert_ok(kith_synth_write(data, &synth, NULL, NULL, &err), &err);
    snprintf(
        recipe, sizeof recipe,
        "data: {root: %s}\n"
        "input: {resize: squash20, crop: 16, channels: 1}\n"
        "model: {backbone: convnet4, embedding: 8, settings: {width: 8}}\n"
        "batch: {classes: 2, images: 3}\n"
        "objective: {loss: binomial, regularizers: [{name: horde, orders: 2, dimension: 8, embedding: 4}]}\n"
        "optim: {lr: 3e-3, steps: 4}\n"
        "eval: {every: 2, select: last, batch: 7}\n"
        "loader: {workers: 1}\n"
        "device: cuda\n",
        data);
    const kith_train_options options = {
        .size = sizeof(kith_train_options), .recipe_text = recipe, .out = out, .no_report = true};
    assert_ok(kith_train_run(&options, NULL, &err), &err);

    kith_array rows, labels;
    kith_judgement here;
    kith_card *card = NULL;
    double found = NAN;
    read_array("embedding.npy", &rows);
    read_array("labels.npy", &labels);
    const kith_retrieval_input input = {.embedding = &rows, .labels = labels.data, .n_labels = labels.dim[0]};
    KITH_OPTIONS(kith_judge_options, all);
    assert_ok(kith_judge_run(&input, &all, &here, &err), &err);
    snprintf(path, sizeof path, "%s/result.json", out);
    assert_ok(kith_card_read(path, &card, &err), &err);
    assert_true(kith_card_real(card, "test.map_at_r", &found));
    if (found != here.retrieval.mean.map_at_r)
        fail_msg("MAP@R is %.17g on the device, %.17g on the host", found, here.retrieval.mean.map_at_r);
    assert_true(kith_card_real(card, "test.intervals.recall.1.0", &found));
    assert_true(found == here.intervals.recall[0].low);
    assert_true(kith_card_real(card, "test.nmi", &found) && found > 0 && found <= 1);
    assert_true(kith_card_real(card, "all_orders.recall.1", &found) && found >= 0 && found <= 1);
    assert_true(kith_card_real(card, "all_orders_white.queries", &found) && found == 30);
    kith_card_free(card);
    kith_judgement_release(&here);
    kith_array_release(&rows);
    kith_array_release(&labels);
}

/* A small data set with the recipe of README's first run: batches of 8, 8, 8 and 6 images, over two epochs. */
static void test_the_last_batch_of_an_epoch_is_smaller(void **state) {
    (void)state;
    char data[1024], out[1024], recipe[2048];
    kith_error err = {0};
    KITH_OPTIONS(kith_synth_options, synth);
    synth.n_classes = 10, synth.n_images = 6, synth.size = 24;
    snprintf(data, sizeof data, "%s/few", testing_folder());
    snprintf(out, sizeof out, "%s/smaller", testing_folder());
    assert_ok(kith_synth_write(data, &synth, NULL, NULL, &err), &err);
    snprintf(recipe, sizeof recipe,
             "data: {root: %s}\n"
             "input: {resize: squash20, crop: 16, channels: 1}\n"
             "model: {backbone: convnet4, embedding: 8, settings: {width: 8}}\n"
             "batch: {sampler: shuffled, size: 8, partial: true}\n"
             "objective: {loss: amsoftmax}\n"
             "optim: {lr: 3e-3, steps: 8}\n"
             "eval: {select: last}\n"
             "loader: {workers: 1}\n"
             "device: cuda\n",
             data);
    const kith_train_options options = {
        .size = sizeof(kith_train_options), .recipe_text = recipe, .out = out, .no_report = true};
    assert_ok(kith_train_run(&options, NULL, &err), &err);
}

/* recipes/general.yaml on the device: two teachers, three sets, one without labels. Small networks and few images. */
static void test_taught_on_several_sets(void **state) {
    (void)state;
    enum { N_SETS = 17 };
    char set[N_SETS][1200], root[1024], flat[1100], path[1200], image[1200], recipe[1024];
    const char *sets[N_SETS];
    kith_error err = {0};
    const char *const teachers[] = {"one", "two"};
    KITH_OPTIONS(kith_synth_options, synth);
    synth.n_classes = 10, synth.n_images = 4, synth.side = 24;
    for (int t = 0; t < 2; t++) {
        kith_model *model = NULL;
        KITH_OPTIONS(kith_model_options, options);
        options.backbone = "convnet4";
        options.settings = t ? "width=8" : "width=12";
        options.embedding = t ? 8 : KITH_NONE;
        options.classes = KITH_NONE;
        assert_ok(kith_model_open(&options, &model, &err), &err);
        snprintf(path, sizeof path, "%s/%s.safetensors", testing_folder(), teachers[t]);
        assert_ok(kith_model_save(model, path, &err), &err);
        kith_model_free(model);
        snprintf(root, sizeof root, "%s/set%d", testing_folder(), t);
        synth.seed = (uint64_t)t + 5;
        assert_ok(kith_synth_write(root, &synth, NULL, NULL, &err), &err);
    }
    snprintf(flat, sizeof flat, "%s/flat", testing_folder());
    assert_int_equal(mkdir(flat, 0777), 0);
    for (int i = 0; i < 16; i++) {
        snprintf(path, sizeof path, "%s/set0/glyph%05d/%05d.png", testing_folder(), i % 8, i / 8);
        snprintf(image, sizeof image, "%s/%d.png", flat, i);
        assert_int_equal(link(path, image), 0);
    }
    int n = 0;
    for (int t = 0; t < 2; t++) {
        snprintf(set[n++], sizeof set[0], "data.%d.root=%s/set%d", t, testing_folder(), t);
        snprintf(set[n++], sizeof set[0], "teachers.%d={weights: %s/%s.safetensors}", t, testing_folder(),
                 teachers[t]);
    }
    snprintf(set[n++], sizeof set[0], "data.2.root=%s", flat);
    static const char *const plain[] = {
        "device=cuda",     "model={backbone: convnet4, embedding: 8, settings: {width: 8}}",
        "input.crop=16",   "input.resize=squash20",
        "batch.classes=4", "batch.images=2",
        "optim.epochs=0",  "optim.steps=6",
        "eval.every=3",    "loader={workers: 1}",
        "optim.warmup=2",  "checkpoint={every: 3}"};
    for (size_t i = 0; i < N_ROWS(plain); i++) snprintf(set[n++], sizeof set[0], "%s", plain[i]);
    assert_int_equal(n, N_SETS);
    for (int i = 0; i < n; i++) sets[i] = set[i];
    snprintf(root, sizeof root, "%s/taught", testing_folder());
    snprintf(recipe, sizeof recipe, "%s/recipes/general.yaml", KITH_TESTING_SOURCE_DIR);
    const kith_train_options options = {.size = sizeof(kith_train_options),
                                        .recipe = recipe,
                                        .sets = sets,
                                        .n_sets = n,
                                        .out = root,
                                        .no_report = true};
    assert_ok(kith_train_run(&options, NULL, &err), &err);
    kith_card *card = NULL;
    double found = 0;
    snprintf(path, sizeof path, "%s/result.json", root);
    assert_ok(kith_card_read(path, &card, &err), &err);
    assert_true(kith_card_real(card, "test.recall.1", &found) && found > 0);
    kith_card_free(card);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_judged_on_the_device),
                                       cmocka_unit_test(test_taught_on_several_sets),
                                       cmocka_unit_test(test_the_last_batch_of_an_epoch_is_smaller)};
    return cmocka_run_group_tests_name("train/a run on a device", tests, has_device, testing_tear_down);
}
