/* `kith train` as users type it. */
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kith/card.h"
#include "kith/model.h"
#include "train/tiny.h"

static char output[TINY_OUTPUT];

static double number(const char *out, const char *path) {
    char file[4096];
    kith_error err;
    kith_card *result = NULL;
    double value = NAN;
    snprintf(file, sizeof file, "%s/%s/result.json", testing_folder(), out);
    assert_ok(kith_card_read(file, &result, &err), &err);
    if (!kith_card_real(result, path, &value)) fail_msg("%s has no %s", file, path);
    kith_card_free(result);
    return value;
}

static const char *word(const char *out, const char *path) {
    static char text[256];
    char file[4096];
    kith_error err;
    kith_card *result = NULL;
    snprintf(file, sizeof file, "%s/%s/result.json", testing_folder(), out);
    assert_ok(kith_card_read(file, &result, &err), &err);
    snprintf(text, sizeof text, "%s", kith_card_text(result, path) ? kith_card_text(result, path) : "");
    kith_card_free(result);
    return text;
}

/* A real, if small, learning task: R@1 on classes the network never saw. */
static void test_training_helps_on_unseen_classes(void **state) {
    (void)state;
    char command[1024];
    tiny_make();
    assert_int_equal(
        0, testing_run(output, sizeof output, "%s synth %s/glyphs --classes 60 --images 10 --size 32",
                       testing_program(), testing_folder()));
    snprintf(
        command, sizeof command,
        "-s data.root=%s/glyphs -s batch.classes=12 -s batch.images=4 -s optim.steps=120 -s optim.lr=1e-2 "
        "-s eval.every=60 -s model.embedding=32 -s model.settings.width=32 -s input.resize=squash28 "
        "-s input.crop=28 -s input.mirror=false -s threads=2",
        testing_folder());
    if (tiny_train(output, "learns", command) != 0) fail_msg("%s", output);
    const double before = number("learns", "untrained.recall.1"), after = number("learns", "test.recall.1");
    if (!(after > before + 0.2)) fail_msg("R@1 of unseen classes went from %g to %g", before, after);
    const double seen = number("learns", "seen.recall.1");
    if (!(seen > after)) fail_msg("R@1 of seen classes %g, of unseen ones %g", seen, after);
    assert_string_equal(word("learns", "selection"), "validation");
    assert_int_equal(strlen(word("learns", "data_sha256")), 64);
}

static void test_what_a_run_leaves(void **state) {
    (void)state;
    static const char *const files[] = {"recipe.yaml",
                                        "run.json",
                                        "log.jsonl",
                                        "log.csv",
                                        "MODEL.md",
                                        "best.safetensors",
                                        "model.safetensors",
                                        "split.csv",
                                        "result.json",
                                        "pairs.json",
                                        "test/embedding.npy",
                                        "test/labels.npy",
                                        "test/paths.txt",
                                        "lock",
                                        "checkpoints/step-00000030.safetensors",
                                        "checkpoints/step-00000028.safetensors"};
    if (tiny_train(output, "leaves", "") != 0) fail_msg("%s", output);
    for (size_t i = 0; i < N_ROWS(files); i++) {
        if (!tiny_exists("leaves", files[i])) fail_msg("there is no %s", files[i]);
    }
    if (tiny_exists("leaves", "checkpoints/step-00000024.safetensors"))
        fail_msg("an old checkpoint was kept");
    /* Plain lines in a pipe: no control characters. */
    assert_null(strchr(output, '\r'));
    assert_null(strchr(output, '\033'));
    assert_non_null(strstr(output, "step 0: validation R@1"));
    assert_non_null(strstr(output, "unseen classes (test), in percent:"));
    char *log = tiny_read("leaves", "log.jsonl");
    assert_non_null(log);
    assert_non_null(strstr(log, "\"kind\": \"step\""));
    assert_non_null(strstr(log, "\"grad_norm\": {\"backbone\": "));
    assert_non_null(strstr(log, "\"split\": \"seen\""));
    free(log);
    /* The model is one that kith eval reads, and it finds the same score. */
    const double trained = number("leaves", "test.recall.1");
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\"recall\": {\"1\": %.10g", trained);
    assert_int_equal(0, testing_run(output, sizeof output,
                                    "%s eval %s/leaves/model.safetensors --data %s/tiny --resize squash20 "
                                    "--metrics retrieval --json",
                                    testing_program(), testing_folder(), testing_folder()));
    if (!strstr(output, wanted)) fail_msg("kith eval: %s; wanted %s", output, wanted);
}

/* The model says what its scores mean for the validation classes: what judging them finds. */
static void test_the_model_is_calibrated(void **state) {
    (void)state;
    if (!tiny_exists("leaves", "model.safetensors")) test_what_a_run_leaves(NULL);
    char path[4096], recipe[4096];
    kith_error err;
    kith_model *model = NULL;
    kith_dataset *set = NULL;
    kith_vectors *vectors = NULL;
    kith_calibration curve;
    kith_judgement found;
    snprintf(path, sizeof path, "%s/leaves/model.safetensors", testing_folder());
    snprintf(recipe, sizeof recipe, "%s/leaves/recipe.yaml", testing_folder());
    KITH_OPTIONS(kith_model_options, options);
    options.weights = path;
    assert_ok(kith_model_open(&options, &model, &err), &err);
    assert_ok(kith_model_calibration(model, &curve, &err), &err);
    assert_string_equal(curve.source, "validation");
    assert_int_equal(curve.n_classes, 2);
    assert_int_equal(curve.n_same, 2 * 8 * 7 / 2);
    assert_int_equal(curve.n_different, 8 * 8);
    assert_ok(kith_dataset_open_recipe(recipe, &set, &err), &err);
    assert_ok(kith_model_embed_dataset(model, set, KITH_SPLIT_VALIDATION, NULL, &vectors, &err), &err);
    const kith_judge_options judge = {.size = sizeof judge, .has_verification = true};
    assert_ok(kith_vectors_judge(vectors, &judge, &found, &err), &err);
    assert_int_equal(found.verification.curve.n, curve.n);
    for (int64_t i = 0; i < curve.n; i++) {
        /* kith train computes with one thread here, and oneDNN may round otherwise with more. */
        assert_true(fabs(found.verification.curve.threshold[i] - curve.threshold[i]) < 1e-5);
        assert_true(found.verification.curve.fmr[i] == curve.fmr[i]);
        assert_true(found.verification.curve.tmr[i] == curve.tmr[i]);
    }
    kith_vectors_free(vectors);
    kith_dataset_free(set);
    kith_model_free(model);
}

static void test_the_printed_recipe_makes_the_same_model(void **state) {
    (void)state;
    char recipe[4096];
    if (!tiny_exists("leaves", "model.safetensors")) test_what_a_run_leaves(NULL);
    snprintf(recipe, sizeof recipe, "%s/printed.yaml", testing_folder());
    assert_int_equal(0, testing_run(output, sizeof output, "%s train %s --print-recipe > %s",
                                    testing_program(), tiny_make(), recipe));
    assert_int_equal(0, testing_run(output, sizeof output, "%s train %s --out %s/printed --no-report -q",
                                    testing_program(), recipe, testing_folder()));
    tiny_assert_same("leaves", "printed", "model.safetensors");
    tiny_assert_same("leaves", "printed", "recipe.yaml");
}

/* Nothing of what reads images shows in what is learnt: the state after the last step is the same. */
static void test_the_loader_changes_no_bit(void **state) {
    (void)state;
    if (!tiny_exists("leaves", "model.safetensors")) test_what_a_run_leaves(NULL);
    if (tiny_train(output, "loader",
                   "-s loader.workers=3 -s loader.cache=0 -s loader.ahead=1 -s log_every=7") != 0)
        fail_msg("%s", output);
    const char *const outs[] = {"leaves", "loader"};
    kith_tensors *file[2];
    kith_error err;
    for (int i = 0; i < 2; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s/checkpoints/step-00000030.safetensors", testing_folder(), outs[i]);
        assert_ok(kith_tensors_open(path, &file[i], &err), &err);
    }
    for (int64_t i = 0; i < kith_tensors_count(file[0]); i++) {
        const char *name = kith_tensors_name(file[0], i);
        kith_array a, b;
        if (strncmp(name, "run/", 4) == 0) continue;
        assert_ok(kith_tensors_get(file[0], name, &a, &err), &err);
        assert_ok(kith_tensors_get(file[1], name, &b, &err), &err);
        if (memcmp(a.data, b.data, (size_t)kith_array_count(&a) * kith_dtype_bytes(a.dtype)) != 0)
            fail_msg("tensor %s differs", name);
    }
    kith_tensors_free(file[0]);
    kith_tensors_free(file[1]);
}

static void check_refused(int wanted_status, const char *wanted, int status) {
    if (status != wanted_status || !strstr(output, wanted))
        fail_msg("status %d: %s; wanted %d and '%s'", status, output, wanted_status, wanted);
    if (tiny_count_lines(output) != 1) fail_msg("%d lines; wanted one: %s", tiny_count_lines(output), output);
}

static void test_refusals_take_one_line(void **state) {
    (void)state;
    if (!tiny_exists("leaves", "model.safetensors")) test_what_a_run_leaves(NULL);
    check_refused(1, "already holds a run", tiny_train(output, "leaves", ""));
    check_refused(1, "optim.lr is '3e-3' there and '1' here",
                  tiny_train(output, "leaves", "--resume -s optim.lr=1"));
    check_refused(1, "did you mean 'steps'", tiny_train(output, "typo", "-s optim.stesp=3"));
    if (tiny_exists("typo", "")) fail_msg("a folder was made for a recipe that is wrong");
    check_refused(1, "eval.select: test", tiny_train(output, "on-test", "-s eval.select=test"));
    check_refused(1, "no such", tiny_train(output, "nowhere", "-s data.root=/nowhere/at/all"));
    if (tiny_exists("nowhere", "")) fail_msg("a folder is left of a run that could not begin");
    check_refused(2, "--sett", tiny_train(output, "usage", "--sett a=b"));
    check_refused(1, "batch (balanced)", tiny_train(output, "too-many", "-s batch.classes=50"));
}

static void test_a_folder_in_use(void **state) {
    (void)state;
    char path[4096];
    snprintf(path, sizeof path, "%s/used", testing_folder());
    mkdir(path, 0777);
    /* flock(1) stands for another process in the folder. */
    const int status = testing_run(output, sizeof output, "flock %s/lock %s train %s --out %s --no-report -q",
                                   path, testing_program(), tiny_make(), path);
    check_refused(1, "is in use by another kith train", status);
}

static void test_not_a_number(void **state) {
    (void)state;
    const int status =
        tiny_train(output, "nan", "-q -s optim.name=sgd -s optim.lr=1e6 -s optim.weight_decay=1e5");
    check_refused(1, "glyph0", status);
    char *log = tiny_read("nan", "log.jsonl");
    assert_non_null(strstr(log, "\"images\": ["));
    free(log);
}

static void test_collapse_is_said_once(void **state) {
    (void)state;
    if (tiny_train(output, "collapse",
                   "-q -s optim.name=sgd -s optim.lr=1 -s objective.loss=triplet -s objective.miner=hard "
                   "-s optim.steps=200 -s eval.every=0") != 0)
        fail_msg("%s", output);
    const char *alike = strstr(output, "all embeddings are alike"), *margin = strstr(output, "at its margin");
    if (!alike || !margin) fail_msg("no word of the collapse: %s", output);
    assert_null(strstr(alike + 1, "all embeddings are alike"));
    assert_null(strstr(margin + 1, "at its margin"));
}

static void test_a_drowned_loss_is_said_once(void **state) {
    (void)state;
    const char *settings =
        "-q -s optim.steps=12 -s log_every=1 -s eval.every=0 "
        "-s 'objective.regularizers=[{name: entropy, weight: %s}]'";
    char text[256];
    snprintf(text, sizeof text, settings, "1e7");
    if (tiny_train(output, "drowned", text) != 0) fail_msg("%s", output);
    const char *said = strstr(output, "entropy is far larger than the loss");
    if (!said) fail_msg("no word of it: %s", output);
    assert_null(strstr(said + 1, "entropy is far larger than the loss"));
    snprintf(text, sizeof text, settings, "1");
    if (tiny_train(output, "dry", text) != 0) fail_msg("%s", output);
    assert_null(strstr(output, "far larger"));
}

static void test_early_stopping(void **state) {
    (void)state;
    if (tiny_train(output, "patience",
                   "-q -s eval.every=2 -s eval.patience=2 -s optim.lr=0 -s model.bn=frozen") != 0)
        fail_msg("%s", output);
    assert_true(number("patience", "steps") == 4);
    /* Nothing changes, so all score the same: the last of them is taken. */
    assert_true(number("patience", "step") == 4);
    assert_string_equal(word("patience", "stopped_early"), "true");
}

static void test_one_class_for_validation_is_warned_of(void **state) {
    (void)state;
    if (tiny_train(output, "lonely", "-q -s data.validation=0.1 -s optim.steps=2") != 0)
        fail_msg("%s", output);
    if (!strstr(output, "warning: only one class is held out")) fail_msg("%s", output);
}

static void test_selection_on_test_is_recorded(void **state) {
    (void)state;
    if (tiny_train(output, "habit", "-q --allow-test-selection -s optim.steps=4 -s eval.every=2") != 0)
        fail_msg("%s", output);
    assert_string_equal(word("habit", "selection"), "test");
    assert_non_null(strstr(output, "chosen on these same classes"));
    if (tiny_train(output, "last", "-q -s data.validation=0 -s optim.steps=4") != 0) fail_msg("%s", output);
    assert_string_equal(word("last", "selection"), "last");
    assert_true(number("last", "step") == 4);
}

/* The best R@1 of the log's lines about the test classes, and how many there are. */
static double best_of_log(const char *out, int *ret_n) {
    double best = -1;
    char *text = tiny_read(out, "log.jsonl");
    assert_non_null(text);
    *ret_n = 0;
    for (const char *at = text; (at = strstr(at, "\"split\": \"test\", \"recall\": {\"1\": "));
         at++, ++*ret_n) {
        const double value = strtod(strstr(at, "\"1\": ") + 5, NULL);
        if (value > best) best = value;
    }
    free(text);
    return best;
}

/* The curve on test classes is for the record: the run is the same to the bit without it. */
static void test_watching_test_changes_nothing(void **state) {
    (void)state;
    int n = 0;
    if (tiny_train(output, "blind", "-q -s optim.steps=12 -s eval.every=3") != 0) fail_msg("%s", output);
    if (tiny_train(output, "watched", "-q -s optim.steps=12 -s eval.every=3 -s eval.watch_test=true") != 0)
        fail_msg("%s", output);
    tiny_assert_same("blind", "watched", "model.safetensors");
    assert_string_equal(word("watched", "selection"), "validation");
    assert_true(number("blind", "test.recall.1") == number("watched", "test.recall.1"));
    assert_true(number("blind", "step") == number("watched", "step"));
    assert_string_equal(word("blind", "best_on_test.step"), "");
    const double best = best_of_log("watched", &n);
    assert_int_equal(n, 5);
    const double found = number("watched", "best_on_test.recall.1");
    if (found != best) fail_msg("best_on_test is %g, the best of the log %g", found, best);
    assert_non_null(strstr(word("watched", "best_on_test.note"), "on the test classes themselves"));
}

/* All 100 % of the training classes, the last step: nothing is held out, and both curves are there. */
static void test_watching_without_validation(void **state) {
    (void)state;
    int n = 0;
    if (tiny_train(output, "open",
                   "-q -s optim.steps=4 -s eval.every=2 -s eval.select=last -s eval.watch_test=true") != 0)
        fail_msg("%s", output);
    assert_string_equal(word("open", "selection"), "last");
    assert_true(number("open", "n_validation_images") == 0);
    assert_true(number("open", "n_train_classes") == 9);
    best_of_log("open", &n);
    assert_int_equal(n, 3);
    char *log = tiny_read("open", "log.jsonl");
    assert_non_null(strstr(log, "\"split\": \"seen\""));
    assert_null(strstr(log, "\"split\": \"validation\""));
    free(log);
}

/* The card's clustering is what `kith eval` finds in the embeddings beside it. */
static void test_clustering_is_eval_s(void **state) {
    (void)state;
    static const char *const names[] = {"nmi", "ami", "f1"};
    char file[4096];
    kith_error err;
    kith_card *result = NULL;
    if (tiny_train(output, "clusters", "-q -s optim.steps=2") != 0) fail_msg("%s", output);
    snprintf(file, sizeof file, "%s/clusters/eval.json", testing_folder());
    if (testing_run(
            output, sizeof output,
            "cd %s/clusters/test && %s eval --embedding embedding.npy --labels labels.npy --json > %s",
            testing_folder(), testing_program(), file) != 0)
        fail_msg("%s", output);
    assert_ok(kith_card_read(file, &result, &err), &err);
    for (size_t i = 0; i < N_ROWS(names); i++) {
        double wanted = NAN;
        char path[32];
        snprintf(path, sizeof path, "test.%s", names[i]);
        assert_true(kith_card_real(result, names[i], &wanted));
        if (number("clusters", path) != wanted)
            fail_msg("%s is %.17g, kith eval says %.17g", names[i], number("clusters", path), wanted);
    }
    kith_card_free(result);
    assert_true(number("clusters", "test.kmeans.clusters") == 9);
    assert_true(number("clusters", "wall_seconds") >= number("clusters", "seconds"));
    if (tiny_train(output, "unclustered", "-q -s optim.steps=2 -s eval.clustering=false") != 0)
        fail_msg("%s", output);
    assert_string_equal(word("unclustered", "test.nmi"), "");
}

/* HORDE's orders at test time: of the last step's model only, and only when asked for. */
static void test_all_orders(void **state) {
    (void)state;
    static const char horde[] =
        "-q -s optim.steps=6 -s eval.every=3 -s eval.select=last "
        "-s 'objective.regularizers=[{name: horde, orders: 3, dimension: 32, embedding: 8}]'";
    char text[512];
    if (tiny_train(output, "orders", horde) != 0) fail_msg("%s", output);
    assert_true(number("orders", "all_orders.recall.1") > 0);
    assert_true(number("orders", "all_orders.queries") == number("orders", "test.queries"));
    assert_string_equal(word("orders", "variants.0.name"), "all_orders");
    assert_true(number("orders", "variants.0.dim.0") == 24 && number("orders", "variants.0.dim.1") == 8);
    assert_string_equal(word("orders", "transductive_white.transform"), "pca_white");
    assert_string_equal(word("orders", "transductive_white.fitted_on"), "test");
    assert_true(number("orders", "all_orders.nmi") >= 0);
    assert_non_null(
        strstr(word("orders", "all_orders.note"), "24 numbers, after a PCA to 8 fitted on training images"));
    assert_true(number("orders", "all_orders.order_recall_at_1.1") == number("orders", "test.recall.1"));
    assert_true(number("orders", "all_orders.order_recall_at_1.3") > 0);
    assert_string_equal(word("orders", "all_orders.order_recall_at_1.4"), "");
    assert_true(number("orders", "all_orders.side_by_side_recall_at_1") > 0);
    assert_true(number("orders", "all_orders_white.recall.1") > 0);
    assert_true(number("orders", "all_orders_white.queries") == number("orders", "test.queries"));
    assert_true(number("orders", "all_orders_each_white.recall.1") > 0);
    assert_true(number("orders", "all_orders_each_white.queries") == number("orders", "test.queries"));
    assert_true(number("orders", "embedding_white.step") == number("orders", "test.step"));
    assert_true(number("orders", "transductive.recall.1") > 0 &&
                number("orders", "transductive_white.recall.1") > 0);
    assert_non_null(
        strstr(word("orders", "transductive.note"), "fitted on the test images themselves; not comparable"));
    snprintf(text, sizeof text, "%s -s eval.all_orders=false", horde);
    if (tiny_train(output, "no-orders", text) != 0) fail_msg("%s", output);
    assert_string_equal(word("no-orders", "all_orders.recall.1"), "");
    assert_string_equal(word("no-orders", "transductive.recall.1"), "");
    /* The figures of the run itself are the same with and without. */
    tiny_assert_same("orders", "no-orders", "model.safetensors");
    assert_true(number("orders", "test.recall.1") == number("no-orders", "test.recall.1"));
}

/* The numbers of a log line about an evaluation, from its `recall` on, without the seconds. */
static char *scores_of(const char *out, int step, const char *split) {
    char begin[128];
    char *log = tiny_read(out, "log.jsonl");
    snprintf(begin, sizeof begin, "{\"kind\": \"eval\", \"step\": %d, \"split\": \"%s\", ", step, split);
    char *line = strstr(log, begin);
    if (!line) fail_msg("%s has no evaluation of %s at step %d:\n%s", out, split, step, log);
    line += strlen(begin);
    line[strcspn(line, "\n")] = '\0';
    *strstr(line, ", \"seconds\"") = '\0';
    memmove(log, line, strlen(line) + 1);
    return log;
}

/* Every order alone, at every evaluation of every split, in the log and in the card; a stop in between changes nothing. */
static void test_orders_over_the_steps(void **state) {
    (void)state;
    static const char horde[] =
        "-q -s optim.steps=6 -s eval.every=2 -s eval.watch_test=true -s checkpoint.every=3 "
        "-s 'objective.regularizers=[{name: horde, orders: 3, dimension: 32, embedding: 8}]'";
    static const char *const splits[] = {"seen", "validation", "test"};
    char text[512];
    if (tiny_train(output, "each", horde) != 0) fail_msg("%s", output);
    snprintf(text, sizeof text, "%s -s eval.all_orders=false", horde);
    if (tiny_train(output, "each-off", text) != 0) fail_msg("%s", output);
    tiny_assert_same("each", "each-off", "model.safetensors");
    for (size_t s = 0; s < N_ROWS(splits); s++) {
        for (int step = 0; step <= 6; step += 2) {
            char *with = scores_of("each", step, splits[s]),
                 *without = scores_of("each-off", step, splits[s]);
            char *orders = strstr(with, ", \"variant_recall_at_1\": {\"order_2\": ");
            if (!orders) fail_msg("no orders of %s at step %d: %s", splits[s], step, with);
            assert_non_null(strstr(orders, "\"order_3\": "));
            assert_null(strstr(orders, "\"order_4\": "));
            assert_null(strstr(without, "variant_recall_at_1"));
            /* The embedding is scored as if it were alone. */
            *orders = '\0';
            assert_string_equal(with, without);
            free(with);
            free(without);
        }
    }
    /* Cut the run back to the checkpoint of step 3 and go on: the log has the whole curve. */
    if (testing_run(output, sizeof output,
                    "cd %s && cp -r each each-on && rm each-on/result.json "
                    "each-on/checkpoints/step-00000006.safetensors",
                    testing_folder()) != 0)
        fail_msg("%s", output);
    if (testing_run(output, sizeof output, "%s train %s/each-on --resume -q --no-report", testing_program(),
                    testing_folder()) != 0)
        fail_msg("%s", output);
    for (int step = 0; step <= 6; step += 2) {
        char *whole = scores_of("each", step, "test"), *parts = scores_of("each-on", step, "test");
        assert_string_equal(whole, parts);
        free(whole);
        free(parts);
    }
}

/* eval.variants: what every network has is scored where it is asked for, and is the same whoever makes the rows. */
static void test_variants_by_choice(void **state) {
    (void)state;
#define SHORT "-q -s optim.steps=6 -s eval.every=3 "
#define HORDE "-s 'objective.regularizers=[{name: horde, orders: 3, dimension: 32, embedding: 8}]' "
    static const struct {
        const char *out, *arguments, *first, *second; /* names of variants; "": none */
    } rows[] = {
        {"plain", SHORT "-s eval.select=last", "", ""},
        {"asked", SHORT "-s eval.select=last -s eval.variants=true", "embedding_white", ""},
        {"named", SHORT "-s eval.select=last -s 'eval.variants=[embedding_white]'", "embedding_white", ""},
        {"heads", SHORT "-s model.heads=2 -s 'eval.variants=[embedding_white]'", "embedding_white", ""},
        {"horde", SHORT "-s eval.select=last " HORDE, "all_orders", "all_orders_white"},
        {"off", SHORT "-s eval.select=last -s eval.variants=false " HORDE, "", ""},
        {"one",
         SHORT "-s eval.select=last -s eval.all_orders=false -s 'eval.variants=[embedding_white]' " HORDE,
         "embedding_white", ""},
        {"some", SHORT "-s eval.select=last -s 'eval.variants=[order_3, all_orders]' " HORDE, "all_orders",
         "order_3"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        if (tiny_train(output, rows[i].out, rows[i].arguments) != 0) fail_msg("%s", output);
        if (strcmp(word(rows[i].out, "variants.0.name"), rows[i].first) != 0)
            fail_msg("%s: %s", rows[i].out, word(rows[i].out, "variants.0.name"));
        assert_string_equal(word(rows[i].out, "variants.1.name"), rows[i].second);
    }
    tiny_assert_same("plain", "asked", "model.safetensors");
    assert_true(number("asked", "embedding_white.recall.1") == number("named", "embedding_white.recall.1"));
    assert_true(number("asked", "embedding_white.dim.1") == 8);
    /* From embeddings, and from rows that the regularizer makes. */
    static const char *const scores[] = {"embedding_white.recall.1", "embedding_white.map_at_r"};
    for (size_t k = 0; k < N_ROWS(scores); k++)
        assert_true(number("one", scores[k]) == number("horde", scores[k]));
    char *log = tiny_read("some", "log.jsonl");
    assert_non_null(strstr(log, "\"order_3\""));
    assert_null(strstr(log, "\"order_2\""));
    free(log);
}

/* A model that is chosen earlier has no descriptors; the embedding can be whitened all the same. */
static void test_variants_of_an_earlier_model(void **state) {
    (void)state;
    static const char chosen[] =
        "-q -s optim.steps=4 -s eval.every=2 -s optim.lr=1 -s eval.metric=r_at_1 " HORDE;
    char text[512];
    if (tiny_train(output, "earlier", chosen) != 0) fail_msg("%s", output);
    if (number("earlier", "step") == 4) skip();
    assert_string_equal(word("earlier", "variants.0.name"), "");
    snprintf(text, sizeof text, "%s -s eval.variants=true", chosen);
    if (tiny_train(output, "earlier-asked", text) != 0) fail_msg("%s", output);
    assert_string_equal(word("earlier-asked", "variants.0.name"), "embedding_white");
    assert_string_equal(word("earlier-asked", "variants.1.name"), "");
    assert_true(number("earlier-asked", "embedding_white.step") == number("earlier", "step"));
    char *log = tiny_read("earlier-asked", "log.jsonl");
    if (!strstr(log, "variant all_orders is not scored: its term is that of the last step, 4"))
        fail_msg("%s", log);
    free(log);
}

static void test_unknown_variants(void **state) {
    (void)state;
    static const struct {
        const char *arguments, *wanted;
    } rows[] = {
        {"-s 'eval.variants=[all_orders]'", "eval.variants: unknown variant 'all_orders'"},
        {"-s 'eval.variants=[embeding_white]'", "did you mean 'embedding_white'?"},
        {"-s eval.variants=some", "eval: variants is 'some'; wanted true, false or a list of names"},
        {"-s 'eval.variants=[[a]]'", "eval: variants has "},
        {"-s 'eval.variants=[order_4]' " HORDE, "unknown variant 'order_4'"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        assert_int_not_equal(tiny_train(output, "unknown", rows[i].arguments), 0);
        if (!strstr(output, rows[i].wanted)) fail_msg("wanted '%s', found: %s", rows[i].wanted, output);
        assert_false(tiny_exists("unknown", "run.json"));
    }
}

static void test_test_classes_left_alone(void **state) {
    (void)state;
    if (tiny_train(output, "alone", "-q -s optim.steps=4 -s eval.every=2 -s eval.test=false") != 0)
        fail_msg("%s", output);
    assert_non_null(strstr(output, "validation classes, which the model was chosen on"));
    assert_string_equal(word("alone", "test.recall.1"), "");
    assert_string_equal(word("alone", "untrained.recall.1"), "");
    assert_true(number("alone", "validation.recall.1") >= 0);
    assert_false(tiny_exists("alone", "test"));
}

/* A run whose folders were counted from 1 resumes in them. */
static void test_seeds_in_older_folders(void **state) {
    (void)state;
    static const struct {
        const char *out, *seed, *first, *second;
    } rows[] = {{"older0", "-q -s seeds=2 -s optim.steps=4 -s eval.every=0", "seed-0", "seed-1"},
                {"older2", "-q -s seeds=2 -s seed=2 -s optim.steps=4 -s eval.every=0", "seed-2", "seed-3"}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char words[256];
        if (tiny_train(output, rows[i].out, rows[i].seed) != 0) fail_msg("%s", output);
        assert_true(tiny_exists(rows[i].out, rows[i].first) && tiny_exists(rows[i].out, rows[i].second));
        if (testing_run(output, sizeof output,
                        "cd %s/%s && rm result.json && mv %s second && mv %s seed-1 && mv second seed-2 && "
                        "rm -f seed-2/result.json seed-2/checkpoints/*4.safetensors",
                        testing_folder(), rows[i].out, rows[i].second, rows[i].first) != 0)
            fail_msg("%s", output);
        snprintf(words, sizeof words, "--resume %s", rows[i].seed);
        if (tiny_train(output, rows[i].out, words) != 0) fail_msg("%s", output);
        assert_true(tiny_exists(rows[i].out, "result.json") &&
                    tiny_exists(rows[i].out, "seed-2/result.json"));
        if (testing_run(output, sizeof output, "cd %s/%s && ls -d seed-*", testing_folder(), rows[i].out) !=
            0)
            fail_msg("%s", output);
        assert_string_equal(output, "seed-1\nseed-2\n");
    }
}

static void test_folds_and_seeds(void **state) {
    (void)state;
    if (tiny_train(output, "several", "-q -s folds=2 -s seeds=2 -s optim.steps=4 -s eval.every=0") != 0)
        fail_msg("%s", output);
    static const char *const subs[] = {"fold-1/seed-0", "fold-1/seed-1", "fold-2/seed-0", "fold-2/seed-1"};
    double sum = 0;
    for (size_t i = 0; i < N_ROWS(subs); i++) {
        char name[64];
        snprintf(name, sizeof name, "several/%s", subs[i]);
        sum += number(name, "test.recall.1");
    }
    const double mean = number("several", "test.recall.1.mean");
    if (!(fabs(mean - sum / 4) < 1e-12)) fail_msg("the mean is %g; wanted %g", mean, sum / 4);
    assert_true(number("several", "test.recall.1.low") <= mean);
    assert_true(number("several", "n_runs") == 4);
    /* The folds hold out different classes. */
    char *a = tiny_read("several/fold-1/seed-0", "split.csv"),
         *b = tiny_read("several/fold-2/seed-0", "split.csv");
    assert_string_not_equal(a, b);
    free(a);
    free(b);
    /* What is done is not done again. */
    if (tiny_train(output, "several", "--resume -q -s folds=2 -s seeds=2 -s optim.steps=4 -s eval.every=0") !=
        0)
        fail_msg("%s", output);
}

/* A card of several runs has the facts of one, so that it can be compared with others, kith eval's too. */
static void test_several_runs_can_be_compared(void **state) {
    (void)state;
    static const char few[] = "-q -s optim.steps=4 -s eval.every=0";
    static const struct {
        const char *out, *set;
    } rows[] = {{"by-fold", "-s folds=2"}, {"by-seed", "-s seeds=2"}};
    static const char *const same[] = {"backbone",
                                       "embedding_size",
                                       "pool",
                                       "tap",
                                       "crop",
                                       "resize",
                                       "preprocessing",
                                       "test.data_sha256",
                                       "test.queries",
                                       "test.classes",
                                       "test.metric",
                                       "test.kmeans.restarts",
                                       "test.kmeans.iterations"};
    if (tiny_train(output, "alike", few) != 0) fail_msg("%s", output);
    assert_int_equal(
        0, testing_run(output, sizeof output, "cd %s && %s eval alike --data tiny --json > alike.json",
                       testing_folder(), testing_program()));
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char arguments[200];
        snprintf(arguments, sizeof arguments, "%s %s", few, rows[i].set);
        if (tiny_train(output, rows[i].out, arguments) != 0) fail_msg("%s", output);
        for (size_t k = 0; k < N_ROWS(same); k++) {
            char wanted[256];
            snprintf(wanted, sizeof wanted, "%s", word("alike", same[k]));
            if (!*wanted) fail_msg("a run says nothing of %s", same[k]);
            assert_string_equal(word(rows[i].out, same[k]), wanted);
        }
        static const char *const others[] = {"alike/result.json", "alike.json"};
        for (size_t k = 0; k < N_ROWS(others); k++) {
            const int status =
                testing_run(output, sizeof output, "cd %s && %s eval --compare %s/result.json %s",
                            testing_folder(), testing_program(), rows[i].out, others[k]);
            if (status != 0 || !strstr(output, "Yes: network, input"))
                fail_msg("%s beside %s: %s", rows[i].out, others[k], output);
        }
        assert_string_equal(word(rows[i].out, "recipe_sha256"), ""); /* each run has its own */
    }
}

static void test_epochs_and_small_batches(void **state) {
    (void)state;
    /* 56 images in shuffled batches of 16, the incomplete one too: 4 batches to an epoch. */
    if (tiny_train(
            output, "epochs",
            "-q -s optim.steps=0 -s optim.epochs=2 -s 'batch={sampler: shuffled, size: 16, partial: true}' "
            "-s objective.loss=normsoftmax") != 0)
        fail_msg("%s", output);
    assert_true(number("epochs", "steps") == 8);
}

static void test_density_measures_its_classes(void **state) {
    (void)state;
    if (tiny_train(output, "density", "-q -s 'objective.regularizers=[density]' -s optim.steps=4") != 0)
        fail_msg("%s", output);
    char path[4096];
    kith_error err;
    kith_tensors *tensors = NULL;
    kith_array d0;
    snprintf(path, sizeof path, "%s/density/checkpoints/step-00000004.safetensors", testing_folder());
    assert_ok(kith_tensors_open(path, &tensors, &err), &err);
    assert_ok(kith_tensors_get(tensors, "objective/density.d0", &d0, &err), &err);
    assert_int_equal(d0.dim[0], 7);
    for (int i = 0; i < 7; i++) assert_true(((const float *)d0.data)[i] > 0);
    kith_tensors_free(tensors);
}

/* The last lines have the intervals and the NMI of the result card. */
static void test_the_summary(void **state) {
    (void)state;
    char wanted[3][160], last[TINY_OUTPUT];
    if (tiny_train(output, "summary", "-q") != 0) fail_msg("%s", output);
    static const char *const names[] = {"R@1", "MAP@R"}, *const keys[] = {"recall.1", "map_at_r"};
    for (int i = 0; i < 2; i++) {
        char key[4][64];
        snprintf(key[0], sizeof key[0], "test.%s", keys[i]);
        snprintf(key[1], sizeof key[1], "test.intervals.%s.0", keys[i]);
        snprintf(key[2], sizeof key[2], "test.intervals.%s.1", keys[i]);
        snprintf(key[3], sizeof key[3], "untrained.%s", keys[i]);
        snprintf(wanted[i], sizeof wanted[i],
                 "  %-6s %6.2f  (95 %% interval: %.2f to %.2f)  untrained %.2f\n", names[i],
                 100 * number("summary", key[0]), 100 * number("summary", key[1]),
                 100 * number("summary", key[2]), 100 * number("summary", key[3]));
    }
    snprintf(wanted[2], sizeof wanted[2], "  %-6s %6.2f\n", "NMI", 100 * number("summary", "test.nmi"));
    snprintf(last, sizeof last, "%s", output);
    /* Of the run, and of its result read back. */
    if (tiny_train(output, "summary", "-q --resume") != 0) fail_msg("%s", output);
    for (int i = 0; i < 3; i++) {
        if (!strstr(last, wanted[i])) fail_msg("no '%s' in: %s", wanted[i], last);
        if (!strstr(output, wanted[i])) fail_msg("no '%s' in: %s", wanted[i], output);
    }
}

/* Classes of one image each have no pairs, whatever the batch asks for. */
static void test_classes_of_one_image(void **state) {
    (void)state;
    tiny_make();
    if (testing_run(output, sizeof output, "cd %s && cp -r tiny lone && rm lone/*/0000[1-9].*",
                    testing_folder()) != 0)
        fail_msg("%s", output);
    char more[4200];
    snprintf(more, sizeof more, "-q -s data.root=%s/lone", testing_folder());
    assert_int_equal(tiny_train(output, "lone-run", more), 1);
    if (!strstr(output, "training classes of 1 image each; a pair loss wants a class with 2"))
        fail_msg("%s", output);
    if (tiny_exists("lone-run", "recipe.yaml")) fail_msg("the run folder is there");
    /* Views of an image are pairs. */
    if (testing_run(output, sizeof output, "cd %s && cp -r tiny/glyph00009 tiny/glyph0001* lone",
                    testing_folder()) != 0)
        fail_msg("%s", output);
    snprintf(more, sizeof more,
             "-q -s data.root=%s/lone -s data.validation=0 -s batch.images=1 -s batch.views=2 -s "
             "optim.steps=4 -s eval.every=4 -s log_every=1",
             testing_folder());
    if (tiny_train(output, "lone-views", more) != 0) fail_msg("%s", output);
    char *log = tiny_read("lone-views", "log.jsonl");
    if (!strstr(log, "\"n_pos\": 6, ")) fail_msg("not the pairs of three images: %s", log);
    free(log);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training_helps_on_unseen_classes),
        cmocka_unit_test(test_what_a_run_leaves),
        cmocka_unit_test(test_the_model_is_calibrated),
        cmocka_unit_test(test_the_printed_recipe_makes_the_same_model),
        cmocka_unit_test(test_the_loader_changes_no_bit),
        cmocka_unit_test(test_refusals_take_one_line),
        cmocka_unit_test(test_a_folder_in_use),
        cmocka_unit_test(test_not_a_number),
        cmocka_unit_test(test_collapse_is_said_once),
        cmocka_unit_test(test_a_drowned_loss_is_said_once),
        cmocka_unit_test(test_early_stopping),
        cmocka_unit_test(test_one_class_for_validation_is_warned_of),
        cmocka_unit_test(test_selection_on_test_is_recorded),
        cmocka_unit_test(test_watching_test_changes_nothing),
        cmocka_unit_test(test_watching_without_validation),
        cmocka_unit_test(test_clustering_is_eval_s),
        cmocka_unit_test(test_all_orders),
        cmocka_unit_test(test_variants_by_choice),
        cmocka_unit_test(test_variants_of_an_earlier_model),
        cmocka_unit_test(test_unknown_variants),
        cmocka_unit_test(test_orders_over_the_steps),
        cmocka_unit_test(test_test_classes_left_alone),
        cmocka_unit_test(test_folds_and_seeds),
        cmocka_unit_test(test_seeds_in_older_folders),
        cmocka_unit_test(test_several_runs_can_be_compared),
        cmocka_unit_test(test_epochs_and_small_batches),
        cmocka_unit_test(test_the_summary),
        cmocka_unit_test(test_classes_of_one_image),
        cmocka_unit_test(test_density_measures_its_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
