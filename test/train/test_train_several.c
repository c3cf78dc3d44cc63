/* Training on several data sets, some without labels, from two teachers, as a user does: what is logged and written, the same bits after a
 * stop, what a run refuses to go on with, and mistakes. */
#include "train/whole.h"

static char output[TINY_OUTPUT];
static char sets[8][1024];
static const char *pointers[8];
enum { N_SETS = 5 };

#define OBJECTIVE                                                                                       \
    "objective={loss: {name: binomial}, regularizers: [{name: relational, form: softmax, temperature: " \
    "0.1}, "                                                                                            \
    "{name: match, teacher: 1, weight: 0.5}, {name: density, weight: 0.1}, "                            \
    "{name: relational, teacher: 1, weight: 0.3}]}"

static void run(const char *fmt, ...) KITH_PRINTF(1, 2);
static void run(const char *fmt, ...) {
    char command[4096];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    if (testing_run(output, sizeof output, "cd %s && %s", testing_folder(), command) != 0)
        fail_msg("%s\n%s", command, output);
}

/* Another small set of classes, a folder without any, and two teachers: runs of other sizes and seeds. */
static void make_world(void) {
    static bool is_made;
    const char *program = testing_program();
    if (is_made) return;
    tiny_make();
    run("%s synth more --classes 6 --images 5 --size 24 --seed 3", program);
    run("mkdir -p flat/inner && n=0 && for f in tiny/*/0000[0-2].png; do n=$((n+1)); cp $f "
        "flat/inner/$n.png; done && "
        "mv flat/inner/1.png flat/0.png");
    run("%s train tiny.yaml --out first --set optim.steps=6 --set seed=4 --no-report", program);
    run("%s train tiny.yaml --out second --set optim.steps=6 --set model.embedding=12 --no-report", program);
    snprintf(
        sets[0], sizeof sets[0],
        "data=[{root: %s, validation: 0.3, weight: 2}, {root: %s, test: false, validation: 0, weight: 1}, "
        "{root: %s, labels: false, weight: 1}]",
        path_of("tiny"), path_of("more"), path_of("flat"));
    snprintf(sets[1], sizeof sets[1], "teachers=[{weights: %s}, {weights: %s/model.safetensors}]",
             path_of("first"), path_of("second"));
    snprintf(sets[2], sizeof sets[2], "%s", OBJECTIVE);
    snprintf(sets[3], sizeof sets[3], "batch={classes: 8, images: 2}");
    snprintf(sets[4], sizeof sets[4], "optim.ema=0.9");
    for (int i = 0; i < 8; i++) pointers[i] = sets[i];
    is_made = true;
}

/* With one setting more (NULL: none). */
static kith_status train_several(const char *out, bool resume, stopper stop, const char *more,
                                 kith_error *err) {
    make_world();
    if (more) snprintf(sets[N_SETS], sizeof sets[N_SETS], "%s", more);
    const kith_train_options options = {.size = sizeof(kith_train_options),
                                        .recipe = tiny_make(),
                                        .sets = pointers,
                                        .n_sets = N_SETS + (more != NULL),
                                        .out = path_of(out),
                                        .resume = resume,
                                        .no_report = true,
                                        .notify = on_event,
                                        .user = &stop};
    return kith_train_run(&options, NULL, err);
}

static void assert_in(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("no '%s' in: %.2000s", part, text);
}

static void test_a_run(void **state) {
    (void)state;
    kith_error err;
    assert_ok(train_several("all", false, never, NULL, &err), &err);
    char *log = tiny_read("all", "log.jsonl"), *card = tiny_read("all", "run.json"),
         *list = tiny_read("all", "data.csv"), *recipe = tiny_read("all", "recipe.yaml");
    static const char *const terms[] = {"\"binomial\"",     "\"relational\"", "\"match\"", "\"density\"",
                                        "\"relational_2\"", "\"validation\"", "\"test\""};
    for (size_t i = 0; i < N_ROWS(terms); i++) assert_in(log, terms[i]);
    /* 9 training classes of the first set, 3 of them held out; all 6 of the second. 48 + 30 + 54 images. */
    assert_in(card, "\"n_train_classes\": 12");
    assert_in(card, "\"n_train_images\": 132");
    assert_in(card, "\"n_validation_images\": 24");
    assert_in(card, "\"n_test_images\": 72");
    assert_in(card, "\"teachers_sha256\": \"");
    assert_in(card, "\"dataset\": \"several\"");
    assert_in(list, "\"1/glyph00002/00001.png\",\"1/glyph00002\",train");
    assert_in(list, "\"2/inner/12.png\",\"2/no class\",train");
    assert_in(recipe, "labels: false");
    free(log), free(card), free(list), free(recipe);
    /* The map is not in the model, but in the checkpoint. */
    kith_tensors *tensors = NULL;
    kith_array view;
    char path[4200];
    snprintf(path, sizeof path, "%s/model.safetensors", path_of("all"));
    assert_ok(kith_tensors_open(path, &tensors, &err), &err);
    for (int64_t i = 0; i < kith_tensors_count(tensors); i++)
        assert_null(strstr(kith_tensors_name(tensors, i), "match"));
    kith_tensors_free(tensors);
    snprintf(path, sizeof path, "%s/checkpoints/step-00000030.safetensors", path_of("all"));
    assert_ok(kith_tensors_open(path, &tensors, &err), &err);
    assert_ok(kith_tensors_get(tensors, "objective/match.1.weight", &view, &err), &err);
    assert_int_equal(view.dim[0], 12);
    assert_int_equal(view.dim[1], 8);
    kith_tensors_free(tensors);
    run("%s eval all --data tiny --metrics retrieval", testing_program());
}

static void test_a_stopped_run_ends_in_the_same_bits(void **state) {
    (void)state;
    kith_error err;
    static const int64_t stops[] = {1, 10, 19};
    for (size_t i = 0; i < N_ROWS(stops); i++) {
        char out[32];
        snprintf(out, sizeof out, "stopped-%d", (int)stops[i]);
        assert_int_equal(train_several(out, false, (stopper){.stop_at = stops[i]}, NULL, &err),
                         KITH_ECANCELED);
        assert_ok(train_several(out, true, never, NULL, &err), &err);
        assert_same_end("all", out);
        assert_same_log("all", out);
    }
}

/* From its own recipe, from another folder. */
static void test_resumed_from_elsewhere(void **state) {
    (void)state;
    kith_error err;
    assert_int_equal(train_several("elsewhere", false, (stopper){.stop_at = 9}, NULL, &err), KITH_ECANCELED);
    run("mkdir -p other && cd other && %s train ../elsewhere --resume --no-report", testing_program());
    assert_same_end("all", "elsewhere");
}

static void refuses_to_resume(const char *line) {
    kith_error err = {0};
    assert_int_not_equal(train_several("changed", true, never, NULL, &err), KITH_OK);
    if (!strstr(err.message, line)) fail_msg("found: %s\nwanted: %s", err.message, line);
}

static void test_what_changed_is_refused(void **state) {
    (void)state;
    kith_error err;
    assert_int_equal(train_several("changed", false, (stopper){.stop_at = 9}, NULL, &err), KITH_ECANCELED);
    run("cp flat/0.png flat/new.png");
    refuses_to_resume("1 image added (2/new.png)");
    run("rm flat/new.png && mv second/model.safetensors kept && cp second/best.safetensors "
        "second/model.safetensors && "
        "cp first/model.safetensors second/model.safetensors");
    refuses_to_resume("teachers.1: ");
    refuses_to_resume("model.safetensors is not the teacher that");
    run("rm second/model.safetensors");
    refuses_to_resume("teachers.1: cannot open");
    run("mv kept second/model.safetensors");
    assert_ok(train_several("changed", true, never, NULL, &err), &err);
    assert_same_end("all", "changed");
}

/* Teachers alone need no class at all. */
static void test_without_any_class(void **state) {
    (void)state;
    make_world();
    run("%s train tiny.yaml --out alone --no-report --set data='{root: flat, labels: false}' --set "
        "teachers='[{weights: first}]' --set objective='{loss: none, regularizers: [relational, match]}' "
        "--set batch='{classes: 4, images: 4}' --set eval.select=last --set optim.epochs=4 --set "
        "optim.steps=0",
        testing_program());
    assert_in(output, "0 images of 0 classes and 54 without, batches of 16");
    char *card = tiny_read("alone", "result.json");
    assert_in(card, "\"steps\": 12"); /* 3 batches of 16 to an epoch */
    assert_in(card, "\"n_train_classes\": 0");
    free(card);
}

/* A term with descriptors at test time beside a teacher. */
static void test_descriptors_beside_a_teacher(void **state) {
    (void)state;
    make_world();
    run("%s train tiny.yaml --out described --no-report --set teachers='[{weights: first}]' --set "
        "optim.steps=4 --set "
        "objective='{loss: binomial, regularizers: [{name: horde, orders: 2, dimension: 8, embedding: 4}, "
        "match]}'",
        testing_program());
    char *card = tiny_read("described", "result.json");
    assert_in(card, "\"all_orders\"");
    free(card);
}

static void test_mistakes(void **state) {
    (void)state;
    make_world();
    static const struct {
        const char *sets, *line;
    } rows[] = {
        {"--set teachers='[{weights: nowhere.safetensors}]' --set objective='{loss: none, regularizers: "
         "[match]}'",
         "teachers.0: cannot open nowhere.safetensors: No such file or directory"},
        {"--set teachers='[{weights: first}, {weights: second}]' --set objective='{loss: none, regularizers: "
         "[{name: match, teacher: 3}]}'",
         "match: teacher is 3; there are 2, numbered from 0 (wanted teacher: 0 to 1)"},
        {"--set teachers='[{weights: first}, {weights: second}]' --set objective='{loss: none, regularizers: "
         "[match]}'",
         "teachers.1: no term of the objective learns from it"},
        {"--set objective='{loss: none, regularizers: [relational]}'",
         "relational learns from a teacher, and there is none"},
        {"--set teachers='[{weights: first}]' --set input.channels=3 --set objective='{loss: none, "
         "regularizers: [match]}'",
         "teachers.0: first/model.safetensors"},
        {"--set teachers='[{weights: first, backbone: resnet50}]' --set objective='{loss: none, "
         "regularizers: [match]}'",
         "teachers.0: first/model.safetensors: the file holds convnet4, asked for was resnet50"},
        {"--set data='{root: flat, labels: false}'",
         "flat has no classes to train on, and binomial counts only images that have one"},
        {"--set data='{root: flat, labels: false}' --set teachers='[{weights: first}]' --set "
         "objective='{loss: none, regularizers: [match, entropy]}'",
         "flat has no classes to train on, and entropy counts only images that have one"},
        {"--set data='[{root: tiny, weight: -1}, {root: flat, labels: false}]'", "data.0: weight is '-1'"},
        {"--set data='[{root: tiny, weight: 1}, {root: flat, labels: false}]'",
         "data: 1 of 2 sets have a weight"},
        {"--set data='[{root: tiny}, {root: nowhere, labels: false}]'", "nowhere: there is no such folder"},
        {"--set data='[{root: tiny}, {root: more}]' --set batch='{classes: 20, images: 2}'",
         "classes per batch asked of"},
        {"--set data='[{root: tiny}, {root: flat, labels: false}]' --set objective='{loss: binomial, "
         "regularizers: "
         "[{name: horde, orders: 2, dimension: 8, embedding: 4}]}'",
         "horde reads the map of items with classes alone"},
        {"--set data='[{root: tiny}, {root: flat, labels: false}]' --set batch.sampler=whole_classes",
         "this sampler takes one data set with classes"},
        {"--set data='[{root: tiny}, {root: more}]' --set folds=3", "folds is 3, and data is a list"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const int status =
            testing_run(output, sizeof output, "cd %s && %s train tiny.yaml --out wrong --no-report %s",
                        testing_folder(), testing_program(), rows[i].sets);
        if (status == 0) fail_msg("%s was taken", rows[i].sets);
        if (!strstr(output, rows[i].line))
            fail_msg("%s\nfound: %s\nwanted: %s", rows[i].sets, output, rows[i].line);
        if (strchr(strstr(output, "kith: "), '\n') != output + strlen(output) - 1)
            fail_msg("%s\nmore than one line: %s", rows[i].sets, output);
        assert_false(tiny_exists("wrong", "recipe.yaml"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_run),
                                       cmocka_unit_test(test_a_stopped_run_ends_in_the_same_bits),
                                       cmocka_unit_test(test_resumed_from_elsewhere),
                                       cmocka_unit_test(test_what_changed_is_refused),
                                       cmocka_unit_test(test_without_any_class),
                                       cmocka_unit_test(test_descriptors_beside_a_teacher),
                                       cmocka_unit_test(test_mistakes)};
    return cmocka_run_group_tests_name("train/several data sets and teachers", tests, NULL,
                                       testing_tear_down);
}
