/* Checkpoints that were damaged: the run goes on from the one before, to the same bits, and says so. */
#include <unistd.h>

#include "io/tensors.h"
#include "train/whole.h"

static char output[TINY_OUTPUT];

static const char last[] = "checkpoints/step-00000011.safetensors",
                  before[] = "checkpoints/step-00000008.safetensors";

static int resume(const char *out, const char *more) {
    return testing_run(output, sizeof output, "%s train %s --out %s --resume -q --no-report %s",
                       testing_program(), tiny_make(), path_of(out), more);
}

static void shell(const char *out, const char *command) {
    if (testing_run(output, sizeof output, "cd %s; last=%s; before=%s; %s", path_of(out), last, before,
                    command) != 0)
        fail_msg("%s: %s", command, output);
}

/* A run that stopped at step 11 and has checkpoints of steps 8 and 11. */
static void make_stopped(const char *out) {
    kith_error err;
    make_whole();
    assert_int_equal(train(out, false, (stopper){.stop_at = 11}, NULL, &err), KITH_ECANCELED);
    assert_true(tiny_exists(out, last));
    assert_true(tiny_exists(out, before));
}

static const char *const damages[] = {
    "truncate -s -100 $last",
    "truncate -s 0 $last",
    "truncate -s 5 $last",
    "cp best.safetensors $last",
    "head -c 20000 /dev/zero > $last",
    "cp ../other/checkpoints/step-00000004.safetensors $last",
    "cat $before >> $last",
};

static void test_the_one_before_is_used(void **state) {
    (void)state;
    kith_error err;
    assert_int_equal(train("other", false, (stopper){.stop_at = 4}, "seed=1", &err), KITH_ECANCELED);
    for (size_t i = 0; i < N_ROWS(damages); i++) {
        char out[32];
        snprintf(out, sizeof out, "damaged-%zu", i);
        make_stopped(out);
        shell(out, damages[i]);
        const int status = resume(out, "");
        if (status != 0) fail_msg("%s: status %d: %s", damages[i], status, output);
        if (!strstr(output, "warning: ") || !strstr(output, last) ||
            !strstr(output, "the run resumes from step 8"))
            fail_msg("%s: %s", damages[i], output);
        assert_same_end("whole", out);
        assert_same_log("whole", out);
        assert_true(tiny_exists(out, "checkpoints/step-00000011.safetensors.damaged"));
        assert_false(tiny_exists(out, last));
    }
}

/* One line of warning, and one result. */
static void test_the_warning_is_one_line(void **state) {
    (void)state;
    make_stopped("line");
    shell("line", "truncate -s 0 $last");
    assert_int_equal(0, resume("line", "> /dev/null"));
    assert_int_equal(tiny_count_lines(output), 1);
}

static void flip(const char *out, const char *name, long at) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", path_of(out), name);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(0, fseek(file, at, at < 0 ? SEEK_END : SEEK_SET));
    const int byte = fgetc(file);
    assert_int_equal(0, fseek(file, at, at < 0 ? SEEK_END : SEEK_SET));
    fputc(byte ^ 1, file);
    assert_int_equal(0, fclose(file));
}

static long bytes_of(const char *out, const char *name) {
    char path[4096];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", path_of(out), name);
    assert_int_equal(0, stat(path, &info));
    return (long)info.st_size;
}

/* Where the header ends in the file. */
static long header_bytes(const char *out, const char *name) {
    char path[4096];
    uint64_t n = 0;
    snprintf(path, sizeof path, "%s/%s", path_of(out), name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(1, fread(&n, sizeof n, 1, file));
    fclose(file);
    return (long)n + 8;
}

/* The run has one checkpoint left, so that a damaged one is an error and nothing is trained. */
static void assert_noticed(const char *out, long at) {
    flip(out, last, at);
    const int status = resume(out, "");
    if (status != 1 || !strstr(output, last)) fail_msg("byte %ld: status %d: %s", at, status, output);
    flip(out, last, at);
}

static void test_a_changed_byte_is_noticed(void **state) {
    (void)state;
    make_stopped("flipped");
    shell("flipped", "rm $before");
    const long n = bytes_of("flipped", last), header = header_bytes("flipped", last);
    for (long at = header; at < n; at += (n - header) / 20) assert_noticed("flipped", at);
    assert_noticed("flipped", n - 1);
    /* Names, shapes, and metadata: the format, the recipe, the step, the checksum itself. */
    for (long at = 8; at < header; at += 97) assert_noticed("flipped", at);
    assert_int_equal(0, resume("flipped", ""));
    assert_same_end("whole", "flipped");
}

static void test_no_sound_one_is_an_error(void **state) {
    (void)state;
    make_stopped("none");
    flip("none", last, -1);
    shell("none", "truncate -s 0 $before");
    if (resume("none", "") != 1 || !strstr(output, "none of the 2 checkpoints is sound") ||
        !strstr(output, last))
        fail_msg("%s", output);
    assert_int_equal(tiny_count_lines(output), 1);
    /* Nothing was touched. */
    assert_true(tiny_exists("none", last));
    assert_true(tiny_exists("none", before));
    flip("none", last, -1);
    assert_int_equal(0, resume("none", ""));
    assert_same_end("whole", "none");
}

/* The best model so far is needed at the end; that it is gone is said before the training, not after. */
static void test_the_best_model_must_be_there(void **state) {
    (void)state;
    static const char *const lost[] = {"rm best.safetensors", "truncate -s 0 best.safetensors",
                                       "truncate -s -9 best.safetensors"};
    make_stopped("best");
    shell("best", "cp best.safetensors ../best.copy");
    for (size_t i = 0; i < N_ROWS(lost); i++) {
        shell("best", lost[i]);
        const int status = resume("best", "");
        if (status != 1 || !strstr(output, "best.safetensors") || !strstr(output, "put a copy back"))
            fail_msg("%s: status %d: %s", lost[i], status, output);
        assert_int_equal(tiny_count_lines(output), 1);
        assert_true(tiny_exists("best", last));
    }
    shell("best", "cp ../best.copy best.safetensors");
    assert_int_equal(0, resume("best", ""));
    assert_same_end("whole", "best");
}

/* What a checkpoint says the best model is, to be freed. */
static char *best_hash(const char *out, const char *name) {
    kith_tensors *tensors = NULL;
    kith_error err;
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", path_of(out), name);
    assert_ok(kith_tensors_open(path, &tensors, &err), &err);
    char *hash = strdup(kith_tensors_metadata(tensors, "kith.best_sha256"));
    kith_tensors_free(tensors);
    return hash;
}

/* A model of the same shape from another run: nothing else would notice. */
static void test_another_best_model_is_refused(void **state) {
    (void)state;
    kith_error err;
    make_stopped("best-other");
    assert_int_equal(train("best-of-other", false, (stopper){.stop_at = 11}, "seed=2", &err), KITH_ECANCELED);
    shell("best-other", "cp best.safetensors ../best.own; cp ../best-of-other/best.safetensors .");
    if (resume("best-other", "") != 1 || !strstr(output, "is not the model that was the best at step") ||
        !strstr(output, "put a copy back"))
        fail_msg("%s", output);
    assert_int_equal(tiny_count_lines(output), 1);
    shell("best-other", "cp ../best.own best.safetensors");
    assert_int_equal(0, resume("best-other", ""));
    assert_same_end("whole", "best-other");
}

/* A process that was killed between an evaluation and the next checkpoint leaves a model that no checkpoint knows. */
static void test_a_best_model_ahead_of_the_checkpoint(void **state) {
    (void)state;
    char *best[2];
    kith_error err;
    assert_int_equal(train("ahead", false, (stopper){.stop_at = 9}, NULL, &err), KITH_ECANCELED);
    best[0] = best_hash("ahead", "checkpoints/step-00000009.safetensors");
    shell("ahead", "rm checkpoints/step-00000009.safetensors; cp -r checkpoints ../ahead.copy");
    assert_int_equal(train("ahead", true, (stopper){.stop_at = 11}, NULL, &err), KITH_ECANCELED);
    best[1] = best_hash("ahead", last);
    assert_string_not_equal(best[0], best[1]); /* the evaluation of step 10 found a better one */
    shell("ahead", "rm -r checkpoints; mv ../ahead.copy checkpoints");
    if (resume("ahead", "") != 0) fail_msg("%s", output);
    assert_same_end("whole", "ahead");
    free(best[0]);
    free(best[1]);
}

/* Puts another file in the place of best.safetensors when the last checkpoint is written. */
typedef struct swapper {
    const char *from, *to;
} swapper;

static int swap_at_the_end(void *user, const kith_train_event *event) {
    const swapper *s = user;
    if (event->kind != KITH_TRAIN_SAVED || event->step < 30) return 0;
    assert_int_equal(0, testing_run(output, sizeof output, "cp %s %s", s->from, s->to));
    return 0;
}

static kith_status train_and_swap(const char *out, const char *from, kith_error *err) {
    char to[4200];
    snprintf(to, sizeof to, "%s/best.safetensors", path_of(out));
    swapper s = {from, to};
    const kith_train_options options = {.size = sizeof(kith_train_options),
                                        .recipe = tiny_make(),
                                        .out = path_of(out),
                                        .resume = true,
                                        .no_report = true,
                                        .notify = swap_at_the_end,
                                        .user = &s};
    return kith_train_run(&options, NULL, err);
}

static void test_another_best_model_at_the_end(void **state) {
    (void)state;
    kith_error err;
    char from[4200];
    make_whole();
    assert_int_equal(train("end-other", false, (stopper){.stop_at = 11}, "seed=2", &err), KITH_ECANCELED);
    snprintf(from, sizeof from, "%s/best.safetensors", path_of("end-other"));
    assert_int_equal(train_and_swap("end", from, &err), KITH_EFORMAT);
    if (!strstr(err.message, "is not the model that was the best at step")) fail_msg("%s", err.message);
    assert_false(tiny_exists("end", "result.json"));
    shell("end", "cp ../whole/best.safetensors .");
    assert_int_equal(0, resume("end", ""));
    assert_same_end("whole", "end");
}

/* The run's own, of a later step than the one that was chosen: an evaluation was made twice, with different bits. */
static void test_a_best_model_that_was_overtaken(void **state) {
    (void)state;
    kith_error err;
    char from[4200];
    make_whole();
    copy_tensors(path_of("whole/best.safetensors"), path_of("later.safetensors"), "31", "kith.note", "late");
    snprintf(from, sizeof from, "%s", path_of("later.safetensors"));
    assert_ok(train_and_swap("overtaken", from, &err), &err);
    shell("overtaken",
          "grep -o '\"selection\": \"last\"' result.json && "
          "grep -c 'best.safetensors is of step 31' log.jsonl");
    /* The model is that of the last step. */
    kith_tensors *model = NULL, *checkpoint = NULL;
    kith_array a, b;
    assert_ok(kith_tensors_open(path_of("overtaken/model.safetensors"), &model, &err), &err);
    assert_ok(
        kith_tensors_open(path_of("overtaken/checkpoints/step-00000030.safetensors"), &checkpoint, &err),
        &err);
    assert_ok(kith_tensors_get(model, "embedding.weight", &a, &err), &err);
    assert_ok(kith_tensors_get(checkpoint, "model/embedding.weight", &b, &err), &err);
    assert_memory_equal(a.data, b.data, (size_t)kith_array_count(&a) * sizeof(float));
    kith_tensors_free(model);
    kith_tensors_free(checkpoint);
}

/* A damaged file must not count as one of those to keep. */
static void test_good_ones_are_kept(void **state) {
    (void)state;
    kith_error err;
    make_stopped("kept");
    flip("kept", last, -1);
    assert_int_equal(train("kept", true, (stopper){.stop_at = 9}, NULL, &err), KITH_ECANCELED);
    assert_int_equal(kith_train_last_checkpoint(path_of("kept")), 9);
    assert_true(tiny_exists("kept", before));
    assert_ok(train("kept", true, never, NULL, &err), &err);
    assert_same_end("whole", "kept");
}

static void test_a_newer_format_is_refused(void **state) {
    (void)state;
    kith_tensors_writer *writer = NULL;
    kith_error err;
    char path[4096];
    make_stopped("newer");
    snprintf(path, sizeof path, "%s/%s", path_of("newer"), last);
    assert_ok(kith_tensors_writer_new(&writer, &err), &err);
    assert_ok(kith_tensors_writer_metadata(writer, "kith.checkpoint", "99", &err), &err);
    assert_ok(kith_tensors_writer_metadata(writer, "kith.recipe_sha256", "x", &err), &err);
    assert_ok(kith_tensors_writer_save(writer, path, &err), &err);
    kith_tensors_writer_free(writer);
    if (resume("newer", "") != 1 || !strstr(output, "format 99")) fail_msg("%s", output);
    assert_true(tiny_exists("newer", last));
}

static void test_checkpoints_without_a_checksum(void **state) {
    (void)state;
    make_stopped("unsealed");
    make_unsealed("unsealed", last);
    if (resume("unsealed", "") != 0 || !strstr(output, "its checksum is missing") ||
        !strstr(output, "the run resumes from step 8"))
        fail_msg("%s", output);
    assert_same_end("whole", "unsealed");
}

/* The numbers of a list in the opposite order, with a field that no program has, and without one of today's. */
static void turn_list(kith_tensors_writer *writer, const kith_tensors *tensors, const char *name,
                      const char *key, const char *without) {
    static char names[1 << 14];
    static int64_t buffers[2][1 << 10]; /* the writer borrows its arrays */
    static int which;
    int64_t *turned = buffers[which = !which];
    kith_array from;
    kith_error err;
    char word[64];
    assert_ok(kith_tensors_get(tensors, name, &from, &err), &err);
    const char *said = kith_tensors_metadata(tensors, key);
    assert_non_null(said);
    int64_t n = 1, used = 0;
    const int64_t n_from = kith_array_count(&from);
    char *end = names + snprintf(names, sizeof names, "field_of_tomorrow");
    turned[0] = 77;
    for (int64_t i = n_from - 1; i >= 0; i--) {
        const char *at = said;
        for (int64_t k = 0; k < i; k++) at = strchr(at, ' ') + 1;
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, " "), at);
        if (strcmp(word, without) == 0) {
            used++;
            continue;
        }
        end += snprintf(end, 70, " %s", word);
        memcpy(&turned[n++], (const char *)from.data + 8 * i, 8);
    }
    assert_int_equal(used, 1);
    const kith_array array = {from.dtype, 1, {n}, turned};
    assert_ok(kith_tensors_writer_add(writer, name, &array, &err), &err);
    assert_ok(kith_tensors_writer_metadata(writer, key, names, &err), &err);
}

static void turn_standing(const char *out, const char *file) {
    kith_tensors *tensors = NULL;
    kith_tensors_writer *writer = NULL;
    kith_error err;
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", path_of(out), file);
    assert_ok(kith_tensors_open(path, &tensors, &err), &err);
    assert_ok(kith_tensors_writer_new(&writer, &err), &err);
    for (int64_t i = 0; i < kith_tensors_count(tensors); i++) {
        const char *name = kith_tensors_name(tensors, i);
        kith_array view;
        if (strncmp(name, "run/", 4) == 0) continue;
        assert_ok(kith_tensors_get(tensors, name, &view, &err), &err);
        assert_ok(kith_tensors_writer_add(writer, name, &view, &err), &err);
    }
    turn_list(writer, tensors, "run/counts", "kith.counts", "n_drowned");
    turn_list(writer, tensors, "run/reals", "kith.reals", "untrained.alike");
    static const char *const words[] = {"kith.recipe_sha256", "kith.step", "kith.best_sha256"};
    for (size_t i = 0; i < N_ROWS(words); i++)
        assert_ok(
            kith_tensors_writer_metadata(writer, words[i], kith_tensors_metadata(tensors, words[i]), &err),
            &err);
    assert_ok(kith_tensors_writer_metadata(writer, "kith.checkpoint", "5", &err), &err);
    assert_ok(ki_tensors_writer_seal(writer, "kith.checksum", &err), &err);
    assert_ok(kith_tensors_writer_save(writer, path, &err), &err);
    kith_tensors_writer_free(writer);
    kith_tensors_free(tensors);
}

/* The standing goes by name: a program with other fields reads it, and the run ends in the same bits. */
static void test_fields_go_by_name(void **state) {
    (void)state;
    make_stopped("named");
    turn_standing("named", last);
    turn_standing("named", before);
    if (resume("named", "") != 0 || strstr(output, "warning")) fail_msg("%s", output);
    assert_same_end("whole", "named");
    assert_same_log("whole", "named");
}

static void test_a_checkpoint_under_another_name(void **state) {
    (void)state;
    make_stopped("renamed");
    shell("renamed", "cp $before $last");
    if (resume("renamed", "") != 0 || !strstr(output, "it is the checkpoint of step 8") ||
        !strstr(output, "the run resumes from step 8"))
        fail_msg("%s", output);
    assert_same_end("whole", "renamed");
    assert_same_log("whole", "renamed");
    assert_true(tiny_exists("renamed", "checkpoints/step-00000011.safetensors.damaged"));
}

static void test_checkpoints_that_are_gone(void **state) {
    (void)state;
    static const char *const lost[] = {"rm checkpoints/*", "rm -r checkpoints"};
    make_stopped("gone");
    shell("gone", "cp -r checkpoints ../gone.copy");
    for (size_t i = 0; i < N_ROWS(lost); i++) {
        shell("gone", lost[i]);
        if (resume("gone", "") != 1 || !strstr(output, "checkpoints holds no checkpoint") ||
            !strstr(output, "has steps up to 10") || !strstr(output, "put the checkpoints back"))
            fail_msg("%s: %s", lost[i], output);
        assert_int_equal(tiny_count_lines(output), 1);
    }
    shell("gone", "cp ../gone.copy/* checkpoints");
    assert_int_equal(0, resume("gone", ""));
    assert_same_end("whole", "gone");
    assert_same_log("whole", "gone");
    /* Or from the beginning, when that is what is wanted. */
    make_stopped("again");
    shell("again", "rm checkpoints/* log.jsonl");
    assert_int_equal(0, resume("again", ""));
    assert_same_end("whole", "again");
}

/* A run that was killed before its first checkpoint has none to lose. */
static void test_killed_before_the_first_checkpoint(void **state) {
    (void)state;
    kith_error err;
    make_whole();
    assert_int_equal(train("first", false, (stopper){.stop_at = 11}, "checkpoint.every=20", &err),
                     KITH_ECANCELED);
    shell("first", "rm checkpoints/*");
    if (testing_run(output, sizeof output, "%s train %s --resume --no-report", testing_program(),
                    path_of("first")) != 0 ||
        !strstr(output, "before its first checkpoint: it begins again"))
        fail_msg("%s", output);
    assert_same_end("whole", "first");
    assert_same_log("whole", "first");
}

/* ---- "… is still good" is said of a checkpoint that was looked at ---- */

typedef struct spoiler {
    int64_t from; /* checkpoints of this step and later lose a byte as soon as they are written; -1: none */
} spoiler;

static int spoil(void *user, const kith_train_event *event) {
    const spoiler *s = user;
    struct stat info;
    if (event->kind != KITH_TRAIN_SAVED || s->from < 0 || event->step < s->from) return 0;
    assert_int_equal(0, stat(event->text, &info));
    assert_int_equal(0, truncate(event->text, info.st_size - 1));
    return 0;
}

/* A run whose loss is soon no number: the step of the checkpoint it calls good, -1: none. */
static int64_t train_to_nan(const char *out, spoiler s) {
    static const char *const sets[] = {"optim.name=sgd", "optim.lr=1e3", "optim.weight_decay=1e2",
                                       "checkpoint.every=1"};
    const kith_train_options options = {.size = sizeof(kith_train_options),
                                        .recipe = tiny_make(),
                                        .sets = sets,
                                        .n_sets = N_ROWS(sets),
                                        .out = path_of(out),
                                        .no_report = true,
                                        .notify = spoil,
                                        .user = &s};
    kith_error err;
    long long step = -1;
    assert_int_equal(kith_train_run(&options, NULL, &err), KITH_ENUMERIC);
    const char *good = strstr(err.hint, "the checkpoint of step ");
    if (!good) return -1;
    assert_int_equal(1, sscanf(good, "the checkpoint of step %lld is still good", &step));
    return step;
}

static void test_what_is_called_good_is_good(void **state) {
    (void)state;
    const int64_t newest = train_to_nan("nan-none", (spoiler){.from = -1});
    assert_true(newest >= 2);
    assert_int_equal(newest, kith_train_last_checkpoint(path_of("nan-none")));
    assert_int_equal(newest - 1, train_to_nan("nan-newest", (spoiler){.from = newest}));
    assert_int_equal(-1, train_to_nan("nan-all", (spoiler){.from = 0}));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_one_before_is_used),
        cmocka_unit_test(test_the_warning_is_one_line),
        cmocka_unit_test(test_a_changed_byte_is_noticed),
        cmocka_unit_test(test_no_sound_one_is_an_error),
        cmocka_unit_test(test_the_best_model_must_be_there),
        cmocka_unit_test(test_another_best_model_is_refused),
        cmocka_unit_test(test_a_best_model_ahead_of_the_checkpoint),
        cmocka_unit_test(test_another_best_model_at_the_end),
        cmocka_unit_test(test_a_best_model_that_was_overtaken),
        cmocka_unit_test(test_good_ones_are_kept),
        cmocka_unit_test(test_a_newer_format_is_refused),
        cmocka_unit_test(test_checkpoints_without_a_checksum),
        cmocka_unit_test(test_fields_go_by_name),
        cmocka_unit_test(test_a_checkpoint_under_another_name),
        cmocka_unit_test(test_checkpoints_that_are_gone),
        cmocka_unit_test(test_killed_before_the_first_checkpoint),
        cmocka_unit_test(test_what_is_called_good_is_good),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
