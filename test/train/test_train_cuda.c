/* A whole run on a device: what it judged there is what the host finds for the embeddings it wrote. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/backend.h"
#include "kith/card.h"
#include "kith/data.h"
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_judged_on_the_device),
                                       cmocka_unit_test(test_the_last_batch_of_an_epoch_is_smaller)};
    return cmocka_run_group_tests_name("train/a run on a device", tests, has_device, testing_tear_down);
}
