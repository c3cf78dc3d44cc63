/* A run goes on with the data and the weights it began with, or not at all. */
#include <unistd.h>

#include "train/whole.h"

static char output[TINY_OUTPUT];

static void shell(const char *fmt, ...) KITH_PRINTF(1, 2);
static void shell(const char *fmt, ...) {
    char command[8192];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    if (testing_run(output, sizeof output, "%s", command) != 0) fail_msg("%s: %s", command, output);
}

/* `kith train` of the tiny recipe with its data in FOLDER/DATA. */
static int run(const char *out, const char *data, const char *more) {
    return testing_run(output, sizeof output, "%s train %s --out %s -s data.root=%s -q --no-report %s",
                       testing_program(), tiny_make(), path_of(out), path_of(data), more);
}

static int stop_at_nine(void *user, const kith_train_event *event) {
    (void)user;
    return event->step >= 9;
}

/* A run that stopped at step 9, of several settings. */
static void stop(const char *out, const char *const *sets, size_t n_sets) {
    const kith_train_options options = {.size = sizeof(kith_train_options),
                                        .recipe = tiny_make(),
                                        .sets = sets,
                                        .n_sets = (int64_t)n_sets,
                                        .out = path_of(out),
                                        .no_report = true,
                                        .notify = stop_at_nine};
    kith_error err;
    assert_int_equal(kith_train_run(&options, NULL, &err), KITH_ECANCELED);
}

/* A copy of the data in FOLDER/OUT-data, and a stopped run of it in FOLDER/OUT. */
static const char *make_stopped(const char *out) {
    static char data[64];
    char root[4200];
    tiny_make();
    snprintf(data, sizeof data, "%s-data", out);
    shell("cp -r %s %s", path_of("tiny"), path_of(data));
    snprintf(root, sizeof root, "data.root=%s", path_of(data));
    const char *const sets[] = {root};
    stop(out, sets, 1);
    return data;
}

/* One line that holds all of the words, which end with NULL. */
static void check_refused(const char *what, int status, const char *const *words) {
    if (status != 1) fail_msg("%s: status %d: %s", what, status, output);
    if (tiny_count_lines(output) != 1) fail_msg("%s: more than a line: %s", what, output);
    for (; *words; words++) {
        if (!strstr(output, *words)) fail_msg("%s: no '%s' in: %s", what, *words, output);
    }
}

static const char hint[] = "begin a new run in another folder with --out";

static void test_changed_data_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *change, *undo, *words[6];
    } rows[] = {
        {"mv glyph00017 ..", "mv ../glyph00017 .", {"1 class removed (glyph00017)", hint}},
        {"cp -r glyph00000 zebra", "rm -r zebra", {"1 class added (zebra)", hint}},
        {"mv glyph00001/00003.png ..",
         "mv ../00003.png glyph00001",
         {"1 image removed (glyph00001/00003.png)"}},
        {"cp glyph00001/00003.png glyph00002/z.png",
         "rm glyph00002/z.png",
         {"1 image added (glyph00002/z.png)"}},
        {"mv glyph00003 glyph00003b",
         "mv glyph00003b glyph00003",
         {"1 class removed (glyph00003)", "1 class added (glyph00003b)"}},
        {"mv glyph00004/0000[0-4].png ..",
         "mv ../0000[0-4].png glyph00004",
         {"5 images removed (glyph00004/00000.png, glyph00004/00001.png, glyph00004/00002.png and 2 more)"}},
        /* Others are held out then. */
        {"mv glyph00000 ..; mv glyph00001 ..",
         "mv ../glyph00000 ../glyph00001 .",
         {"2 classes removed (glyph00000", "5 classes moved (glyph00004 from train to validation"}},
    };
    make_whole();
    const char *data = make_stopped("changed");
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        shell("cd %s; %s", path_of(data), rows[i].change);
        check_refused(rows[i].change, run("changed", data, "--resume"), rows[i].words);
        shell("cd %s; %s", path_of(data), rows[i].undo);
    }
    /* Nothing has happened to the run. */
    if (run("changed", data, "--resume") != 0) fail_msg("%s", output);
    assert_same_end("whole", "changed");
}

/* … even where nothing is lost yet but the word of run.json. */
static void test_changed_data_before_the_first_checkpoint(void **state) {
    (void)state;
    const char *data = make_stopped("early");
    shell("rm %s/checkpoints/*; rm -r %s/glyph00017", path_of("early"), path_of(data));
    static const char *const words[] = {"1 class removed (glyph00017)", NULL};
    check_refused("early", run("early", data, "--resume"), words);
}

/* Finished runs are only read. */
static void test_a_finished_run_needs_no_data(void **state) {
    (void)state;
    const char *data = make_stopped("done");
    assert_int_equal(0, run("done", data, "--resume"));
    shell("rm -r %s/glyph00017", path_of(data));
    if (run("done", data, "--resume") != 0) fail_msg("%s", output);
}

/* Which classes are held out is part of the data: a split file that changed. */
static void test_a_changed_split_is_refused(void **state) {
    (void)state;
    char split[4200];
    tiny_make();
    make_whole();
    shell("cp %s/split.csv %s", path_of("whole"), path_of("split.csv"));
    snprintf(split, sizeof split, "data.split=%s", path_of("split.csv"));
    const char *const sets[] = {"data.validation=0", split};
    stop("split", sets, 2);
    shell("sed -i '2s/train/validation/;2t;2s/validation/train/' %s", path_of("split.csv"));
    static const char *const words[] = {"1 class moved (glyph00000 from ", hint, NULL};
    check_refused("split",
                  testing_run(output, sizeof output, "%s train %s --resume -q --no-report", testing_program(),
                              path_of("split")),
                  words);
}

/* The data may have been moved: it is the same when it holds the same. */
static void test_moved_data(void **state) {
    (void)state;
    make_whole();
    const char *data = make_stopped("moved");
    shell("mv %s %s", path_of(data), path_of("elsewhere"));
    if (run("moved", "elsewhere", "--resume") != 0) fail_msg("%s", output);
    assert_same_end("whole", "moved");
}

/* A run folder without its list of images. */
static void test_runs_without_a_list(void **state) {
    (void)state;
    make_whole();
    const char *data = make_stopped("old");
    shell("rm %s/data.csv; mv %s/glyph00002 %s", path_of("old"), path_of(data), testing_folder());
    static const char *const words[] = {"test images instead of 72", "1 class removed (glyph00002)", hint,
                                        NULL};
    check_refused("old", run("old", data, "--resume"), words);
    shell("mv %s/glyph00002 %s", testing_folder(), path_of(data));
    if (run("old", data, "--resume") != 0) fail_msg("%s", output);
    assert_same_end("whole", "old");
}

/* … or one that no longer can be read. */
static void test_a_broken_list(void **state) {
    (void)state;
    const char *data = make_stopped("broken");
    shell("echo nonsense > %s/data.csv; rm -r %s/glyph00002", path_of("broken"), path_of(data));
    static const char *const words[] = {"test images instead of 72", "1 class removed (glyph00002)", hint,
                                        NULL};
    check_refused("broken", run("broken", data, "--resume"), words);
}

/* ---- several runs ---- */

/* The first run is done; the second, which has not begun, must not see other data. */
static void test_seeds_and_folds_share_their_data(void **state) {
    (void)state;
    static const struct {
        const char *out, *set, *first, *second;
    } rows[] = {{"seeds", "-s seeds=2", "seed-0", "seed-1"},
                {"folds", "-s folds=2 -s data.validation=0", "fold-1", "fold-2"}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char data[64], first[64], more[128];
        snprintf(data, sizeof data, "%s-data", rows[i].out);
        snprintf(first, sizeof first, "%s/%s/result.json", rows[i].out, rows[i].first);
        snprintf(more, sizeof more, "%s --resume", rows[i].set);
        shell("cp -r %s %s", (tiny_make(), path_of("tiny")), path_of(data));
        assert_int_equal(0, run(rows[i].out, data, rows[i].set));
        assert_true(access(path_of(first), F_OK) == 0);
        shell("rm -r %s/%s %s/result.json; mv %s/glyph00005 %s", path_of(rows[i].out), rows[i].second,
              path_of(rows[i].out), path_of(data), testing_folder());
        static const char *const words[] = {"1 class removed (glyph00005)", hint, NULL};
        check_refused(rows[i].out, run(rows[i].out, data, more), words);
        shell("mv %s/glyph00005 %s", testing_folder(), path_of(data));
        if (run(rows[i].out, data, more) != 0) fail_msg("%s", output);
    }
}

/* ---- weights ---- */

/* A weights file whose images are made ready in a way that only the file knows: a mean, and no bias. */
static void make_weights(const char *name, const char *from) {
    kith_tensors *tensors = NULL;
    kith_tensors_writer *writer = NULL;
    kith_error err;
    char path[4200];
    snprintf(path, sizeof path, "%s/model.safetensors", path_of(from));
    assert_ok(kith_tensors_open(path, &tensors, &err), &err);
    assert_ok(kith_tensors_writer_new(&writer, &err), &err);
    for (int64_t i = 0; i < kith_tensors_count(tensors); i++) {
        kith_array view;
        assert_ok(kith_tensors_get(tensors, kith_tensors_name(tensors, i), &view, &err), &err);
        if (strcmp(kith_tensors_name(tensors, i), "embedding.bias") != 0)
            assert_ok(kith_tensors_writer_add(writer, kith_tensors_name(tensors, i), &view, &err), &err);
    }
    assert_ok(kith_tensors_writer_metadata(writer, "kith.preprocess.mean", "0.34567890123456789", &err),
              &err);
    assert_ok(kith_tensors_writer_metadata(writer, "kith.preprocess.std", "0.2", &err), &err);
    assert_ok(kith_tensors_writer_save(writer, path_of(name), &err), &err);
    kith_tensors_writer_free(writer);
    kith_tensors_free(tensors);
}

static int run_from(const char *out, const char *more) {
    return testing_run(output, sizeof output, "%s train %s --out %s -s model.weights=%s -q --no-report %s",
                       testing_program(), tiny_make(), path_of(out), path_of("start.safetensors"), more);
}

static void stop_from(const char *out) {
    char weights[4200];
    snprintf(weights, sizeof weights, "model.weights=%s", path_of("start.safetensors"));
    const char *const sets[] = {weights};
    stop(out, sets, 1);
}

static void test_weights(void **state) {
    (void)state;
    make_whole();
    make_weights("start.safetensors", "whole");
    assert_int_equal(0, run_from("from", ""));
    stop_from("gone");
    stop_from("swapped");
    shell("mv %s %s", path_of("start.safetensors"), path_of("kept.safetensors"));
    /* Gone: the checkpoint has all of it, the way images are made ready too. */
    if (run_from("gone", "--resume") != 0) fail_msg("%s", output);
    assert_same_end("from", "gone");
    shell(
        "cd %s; for f in from gone; do grep -o '\"weights_sha256\": \"[^\"]*' $f/result.json; done | uniq | "
        "wc -l | grep -x 1",
        testing_folder());
    /* Without a checkpoint they are needed. */
    shell("cp -r %s %s; rm %s/checkpoints/*", path_of("swapped"), path_of("none"), path_of("none"));
    static const char *const needed[] = {"start.safetensors", "No such file", NULL};
    check_refused("none", run_from("none", "--resume"), needed);
    /* Others. */
    shell("cp %s/model.safetensors %s", path_of("whole"), path_of("start.safetensors"));
    static const char *const words[] = {"are not the weights that", "wanted ", hint, NULL};
    check_refused("swapped", run_from("swapped", "--resume"), words);
    shell("mv %s %s", path_of("kept.safetensors"), path_of("start.safetensors"));
    if (run_from("swapped", "--resume") != 0) fail_msg("%s", output);
    assert_same_end("from", "swapped");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changed_data_is_refused),
        cmocka_unit_test(test_changed_data_before_the_first_checkpoint),
        cmocka_unit_test(test_a_finished_run_needs_no_data),
        cmocka_unit_test(test_a_changed_split_is_refused),
        cmocka_unit_test(test_moved_data),
        cmocka_unit_test(test_runs_without_a_list),
        cmocka_unit_test(test_a_broken_list),
        cmocka_unit_test(test_seeds_and_folds_share_their_data),
        cmocka_unit_test(test_weights),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
