/* model.frozen: the embedding layer alone, on features that are made once; and layers that start from principal axes. */
#include <dirent.h>
#include <math.h>

#include "kith/card.h"
#include "kith/train.h"
#include "train/tiny.h"

static char output[TINY_OUTPUT];

#define FROZEN "-q -s model.frozen=true -s model.views=3 -s optim.steps=12 -s eval.every=4 "

static const char *path_of(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", testing_folder(), name);
    return path;
}

static void trained(const char *out, const char *arguments) {
    if (tiny_train(output, out, arguments) != 0) fail_msg("%s", output);
}

static double score_of(const char *file, const char *key, const char *other) {
    kith_error err;
    kith_card *card = NULL;
    double value = NAN;
    assert_ok(kith_card_read(path_of(file), &card, &err), &err);
    if (!kith_card_real(card, key, &value) && !kith_card_real(card, other, &value))
        fail_msg("%s has no %s", file, key);
    kith_card_free(card);
    return value;
}

static void evaluated(const char *model, const char *card) {
    if (testing_run(output, sizeof output, "%s eval %s --data %s/tiny %s --json > %s/%s", testing_program(),
                    model, testing_folder(), "--metrics retrieval", testing_folder(), card) != 0)
        fail_msg("%s", output);
}

/* The file is the whole network, so what embeds images has the score of the features. */
static void test_the_model_is_whole(void **state) {
    (void)state;
    trained("frozen", FROZEN);
    evaluated(path_of("frozen"), "eval.json");
    const double wanted = score_of("frozen/result.json", "test.map_at_r", "map_at_r"),
                 found = score_of("eval.json", "test.map_at_r", "map_at_r");
    if (fabs(found - wanted) > 1e-6) fail_msg("MAP@R is %g by kith eval, %g in the result", found, wanted);
    if (testing_run(output, sizeof output, "grep -q convnet4 %s", path_of("frozen/result.json")) != 0)
        fail_msg("the card does not name the network");
}

/* Only the embedding layer has changed, and it has. */
static void test_what_learns(void **state) {
    (void)state;
    kith_error err;
    kith_tensors *model[2] = {0};
    kith_array a, b;
    static const char *const runs[] = {"start/model.safetensors", "learnt/model.safetensors"};
    trained("start", FROZEN "-s optim.lr=0 -s eval.select=last");
    trained("learnt", FROZEN "-s eval.select=last");
    for (int i = 0; i < 2; i++) assert_ok(kith_tensors_open(path_of(runs[i]), &model[i], &err), &err);
    for (int64_t i = 0; i < kith_tensors_count(model[0]); i++) {
        const char *name = kith_tensors_name(model[0], i);
        assert_ok(kith_tensors_get(model[0], name, &a, &err), &err);
        assert_ok(kith_tensors_get(model[1], name, &b, &err), &err);
        const bool same = memcmp(a.data, b.data, (size_t)kith_array_count(&a) * sizeof(float)) == 0;
        if (same == (strncmp(name, "embedding.", 10) == 0))
            fail_msg("%s is %s", name, same ? "same" : "other");
    }
    kith_tensors_free(model[0]);
    kith_tensors_free(model[1]);
}

/* Without the key the same recipe starts from the same model. */
static void test_one_key_is_fine_tuning(void **state) {
    (void)state;
    trained("one", FROZEN);
    trained("all", FROZEN "-s model.frozen=false");
    const double frozen = score_of("one/result.json", "untrained.map_at_r", ""),
                 whole = score_of("all/result.json", "untrained.map_at_r", "");
    if (fabs(frozen - whole) > 1e-6) fail_msg("MAP@R before the first step is %g and %g", frozen, whole);
    if (tiny_exists("all", "features")) fail_msg("fine-tuning made features");
}

static void test_resumed(void **state) {
    (void)state;
    trained("unbroken", FROZEN);
    trained("parts", FROZEN);
    if (testing_run(output, sizeof output,
                    "cd %s/parts && rm -f result.json model.safetensors best.safetensors.tmp "
                    "checkpoints/step-00000012.safetensors && %s train . --resume --no-report -q",
                    testing_folder(), testing_program()) != 0)
        fail_msg("%s", output);
    tiny_assert_same("unbroken", "parts", "model.safetensors");
}

typedef struct stop {
    int64_t at;
    bool has_stopped;
} stop;

static int on_event(void *user, const kith_train_event *e) {
    stop *s = user;
    if (e->kind != KITH_TRAIN_BUSY || !strstr(e->text, "view 2")) return 0;
    s->has_stopped = true;
    return 1;
}

/* Stopped while features are made, the run has begun, and goes on with what there is. */
static void test_stopped_among_features(void **state) {
    (void)state;
    stop s = {0};
    kith_error err;
    char out[4096];
    snprintf(out, sizeof out, "%s", path_of("early"));
    const char *sets[] = {"model.frozen=true", "model.views=3", "optim.steps=12", "eval.every=4"};
    kith_train_options options = {.size = sizeof options,
                                  .recipe = tiny_make(),
                                  .sets = sets,
                                  .n_sets = 4,
                                  .out = out,
                                  .no_report = true,
                                  .notify = on_event,
                                  .user = &s};
    assert_int_equal(kith_train_run(&options, NULL, &err), KITH_ECANCELED);
    assert_true(s.has_stopped);
    if (!strstr(err.message, "the features that were made are kept in")) fail_msg("%s", err.message);
    assert_true(tiny_exists("early", "recipe.yaml"));
    options = (kith_train_options){.size = sizeof options, .recipe = out, .resume = true, .no_report = true};
    assert_ok(kith_train_run(&options, NULL, &err), &err);
    trained("never", FROZEN);
    tiny_assert_same("early", "never", "model.safetensors");
}

/* Another head finds the features of the first; a changed photo has others. */
static void test_kept_for_other_heads(void **state) {
    (void)state;
    char keep[4200], arguments[8192];
    snprintf(keep, sizeof keep, "%s", path_of("keep"));
    snprintf(arguments, sizeof arguments, FROZEN "-s loader.features=%s", keep);
    trained("first", arguments);
    snprintf(arguments, sizeof arguments, FROZEN "-s loader.features=%s -s objective.loss=contrastive", keep);
    trained("second", arguments);
    if (tiny_exists("second", "features")) fail_msg("the second run has features of its own");
    testing_run(output, sizeof output, "ls %s | wc -l", keep);
    if (strtol(output, NULL, 10) != 1) fail_msg("%s sets of features; wanted 1", output);
    if (testing_run(output, sizeof output,
                    "touch -d 2001-01-01 %s/tiny/*/00000.png && %s train %s --out %s/third %s",
                    testing_folder(), testing_program(), tiny_make(), testing_folder(), arguments) != 0)
        fail_msg("%s", output);
    testing_run(output, sizeof output, "ls %s | wc -l", keep);
    if (strtol(output, NULL, 10) != 2) fail_msg("%s sets of features; wanted 2", output);
}

/* Files that are cut off or overwritten since are set aside and made again, to the same model. */
static void test_damaged_features(void **state) {
    (void)state;
    static const char *const damage[] = {
        "truncate -s 1000 view-1.npy",
        "printf %0999d | tr 0 '\\377' | dd of=view-1.npy bs=1 seek=200 conv=notrunc",
        "printf 0123456789abcdef >view-1.npy.sum"};
    char arguments[8192];
    snprintf(arguments, sizeof arguments, FROZEN "-s loader.features=%s", path_of("store"));
    trained("sound", arguments);
    for (size_t i = 0; i < N_ROWS(damage); i++) {
        if (testing_run(output, sizeof output, "cd %s/store/* && %s", testing_folder(), damage[i]) != 0)
            fail_msg("%s", output);
        if (testing_run(output, sizeof output,
                        "cd %s && rm -rf mended && %s train tiny.yaml --out mended --no-report %s",
                        testing_folder(), testing_program(), arguments) != 0)
            fail_msg("%s", output);
        if (!strstr(output, "view-1.npy is damaged: it is ") || strstr(output, "view-0.npy"))
            fail_msg("%s: %s", damage[i], output);
        tiny_assert_same("sound", "mended", "model.safetensors");
        if (testing_run(output, sizeof output, "rm %s/store/*/view-1.npy.damaged", testing_folder()) != 0)
            fail_msg("%s", output);
    }
    /* One without a checksum is as a killed process leaves it. */
    if (testing_run(output, sizeof output,
                    "cd %s && rm -rf mended store/*/view-1.npy.sum && %s train tiny.yaml --out mended "
                    "--no-report %s && test -e store/*/view-1.npy.sum",
                    testing_folder(), testing_program(), arguments) != 0 ||
        strstr(output, "damaged"))
        fail_msg("%s", output);
}

/* An image that cannot be read is left out, and named. */
static void test_unreadable(void **state) {
    (void)state;
    if (testing_run(
            output, sizeof output,
            "cp -r %s/tiny %s/torn && cd %s/torn && first=$(ls | head -1) && echo no > $first/00001.png && "
            "%s train %s --out %s/torn-run --no-report -s model.frozen=true -s optim.steps=12 "
            "-s data.root=%s/torn 2>&1",
            testing_folder(), testing_folder(), testing_folder(), testing_program(), tiny_make(),
            testing_folder(), testing_folder()) != 0)
        fail_msg("%s", output);
    if (!strstr(output, "00001.png")) fail_msg("%s", output);
}

/* A layer of all principal axes leaves the cosines of the features alone. */
static void test_axes(void **state) {
    (void)state;
    trained("axes", FROZEN "-s model.embedding_init=pca -s model.embedding=16");
    if (testing_run(
            output, sizeof output,
            "cd %s && %s eval --embedding axes/features/*/test.npy --labels axes/test/labels.npy --metrics "
            "retrieval --json > pooled.json",
            testing_folder(), testing_program()) != 0)
        fail_msg("%s", output);
    const double wanted = score_of("pooled.json", "map_at_r", "test.map_at_r"),
                 found = score_of("axes/result.json", "untrained.map_at_r", "");
    if (fabs(found - wanted) > 1e-6) fail_msg("MAP@R is %g on the axes and %g without", found, wanted);
    trained("white", FROZEN "-s model.embedding_init=white -s model.embedding=16");
    if (score_of("white/result.json", "untrained.map_at_r", "") == found)
        fail_msg("whitening changes nothing");
}

static void assert_refused(const char *set, const char *wanted) {
    char arguments[512];
    snprintf(arguments, sizeof arguments, FROZEN "-s '%s'", set);
    if (tiny_train(output, "refused", arguments) == 0) fail_msg("%s was taken", set);
    if (!strstr(output, wanted)) fail_msg("%s: %s", set, output);
    if (tiny_count_lines(output) != 1) fail_msg("more than a line: %s", output);
    if (tiny_exists("refused", "recipe.yaml")) fail_msg("%s left a run", set);
}

static void test_refused(void **state) {
    (void)state;
    assert_refused("model.lora={rank: 4}", "frozen does not go with model.lora");
    assert_refused("model.freeze=block2", "frozen does not go with model.freeze");
    assert_refused("model.heads=2", "frozen does not go with model.heads");
    assert_refused("model.map_channels=4", "frozen does not go with model.map_channels");
    assert_refused("objective.regularizers=[{name: horde}]", "horde reads the feature map");
    assert_refused("model.views=0", "views is '0'");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_model_is_whole),
        cmocka_unit_test(test_what_learns),
        cmocka_unit_test(test_one_key_is_fine_tuning),
        cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_stopped_among_features),
        cmocka_unit_test(test_kept_for_other_heads),
        cmocka_unit_test(test_damaged_features),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_axes),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("train/frozen", tests, NULL, NULL);
}
