/* kith_tune_run on drawn glyphs and a small network: what it leaves behind, what it leaves out, stopping and going on, what it refuses. */
#include "kith/tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/testing.h"

static char output[1 << 16];

static const char *in_folder(const char *name) {
    static char path[4][4096];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", testing_folder(), name);
    return p;
}

static void shell(const char *command) {
    const int status = testing_run(output, sizeof output, "cd %s && " TESTING_K " && %s", testing_folder(),
                                   testing_program(), command);
    if (status != 0) fail_msg("%s: %s", command, output);
}

/* A small network that has learnt nothing, and 12 classes of 6 glyphs. */
static void make(void) {
    static bool is_made;
    if (is_made) return;
    is_made = true;
    shell(
        "$K embed --backbone convnet4 --settings width=8 --generate 1 --save start.safetensors -o x.npy && "
        "$K synth photos --classes 12 --images 6 --size 32");
}

typedef struct watch {
    int n_notes, stop_after; /* 0: never */
    char text[8192];
} watch;

static int on_event(void *user, const kith_train_event *e) {
    watch *w = user;
    if (e->kind != KITH_TRAIN_NOTE) return w->stop_after && w->n_notes >= w->stop_after;
    const size_t used = strlen(w->text);
    snprintf(w->text + used, sizeof w->text - used, "%s\n", e->text);
    w->n_notes++;
    return w->stop_after && w->n_notes >= w->stop_after;
}

static kith_status run(const char *photos, const char *out, double minutes, watch *w, kith_tune_result *ret,
                       kith_error *err) {
    KITH_OPTIONS(kith_tune_options, options);
    options.photos = in_folder(photos);
    options.out = in_folder(out);
    options.minutes = minutes;
    options.model = in_folder("start.safetensors");
    options.no_report = true;
    options.notify = on_event;
    options.user = w;
    make();
    return kith_tune_run(&options, ret, err);
}

static int count(const char *text, const char *part) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) n++;
    return n;
}

static int lines_of(const char *file, const char *part) {
    char *text = testing_read(in_folder(file));
    const int n = count(text, part);
    free(text);
    return n;
}

/* A third of the classes tests. The same call again tries nothing anew. */
static void test_what_it_leaves(void **state) {
    (void)state;
    watch w = {0};
    kith_tune_result result, again;
    kith_error err = {0};
    struct stat info;
    assert_ok(run("photos", "run", 0.15, &w, &result, &err), &err);
    assert_int_equal(lines_of("run/photos.csv", ",test\n"), 4 * 6);
    assert_int_equal(lines_of("run/photos.csv", ",train\n"), 8 * 6);
    assert_true(result.n_tried >= 2);
    assert_string_equal(result.run.run, in_folder("run"));
    assert_true(result.run.test.recall_at_1.n == 1 && result.pretrained.recall_at_1.n == 1);
    assert_true(strlen(result.why) > 0 && strlen(result.advice) > 0);
    assert_int_equal(stat(in_folder("run/model.safetensors"), &info), 0);
    assert_int_equal(stat(in_folder("run/recipe.yaml"), &info), 0);
    assert_true(lines_of("run/tune.json", "\"won\": true") == 1);
    assert_int_equal(lines_of("run/result.json", "\"error_rates\""), 1);
    assert_int_equal(lines_of("run/MODEL.md", "Not known"), 0);
    assert_int_equal(lines_of("run/MODEL.md", " held-out classes. A pair matches"), 1);
    assert_int_equal(lines_of("run/MODEL.md", "| the same, by the pretrained model |"), 1);
    assert_int_equal(lines_of("run/MODEL.md", "before training"), 0);
    const int n_lines = lines_of("run/tried.jsonl", "\n");
    assert_ok(run("photos", "run", 0.15, &w, &again, &err), &err);
    assert_int_equal(lines_of("run/tried.jsonl", "\n"), n_lines);
    assert_int_equal(lines_of("run/result.json", "\"error_rates\""), 1);
    assert_string_equal(again.winner, result.winner);
    assert_true(again.run.test.map_at_r.mean == result.run.test.map_at_r.mean);
}

/* The recipe that it leaves gives the same model. */
static void test_its_recipe(void **state) {
    (void)state;
    watch w = {0};
    kith_tune_result result;
    kith_error err = {0};
    assert_ok(run("photos", "run", 0.15, &w, &result, &err), &err);
    shell(
        "$K train run/recipe.yaml --out anew --no-report --quiet && "
        "$K embed run photos -o a.npy && $K embed anew photos -o b.npy && cmp a.npy b.npy");
}

/* Photos that hold no kinds: their folders are drawn by lot, so that nothing can be learnt. The model that comes out when nothing wins is the one
 * that went in. */
static void test_pretrained_stays(void **state) {
    (void)state;
    watch w = {0};
    kith_tune_result result;
    kith_error err = {0};
    make();
    shell(
        "mkdir lots && n=0 && for f in photos/*/*.png; do d=lots/$((n * 7 % 12 % 5)); mkdir -p $d; "
        "cp $f $d/$n.png; n=$((n + 1)); done");
    assert_ok(run("lots", "lots-run", 0.15, &w, &result, &err), &err);
    if (!result.is_pretrained) fail_msg("%s: %s", result.winner, result.why);
    assert_non_null(strstr(result.why, "nothing was better"));
    assert_int_equal(lines_of("lots-run/MODEL.md", "| model | the pretrained model, unchanged |"), 1);
    /* A network without a layer of its own gets one that turns its features: cosines stay. */
    shell(
        "for m in start.safetensors lots-run; do $K eval $m --data photos --split all --resize squash32 "
        "--crop 28 "
        "--metrics recall,map_at_r --bootstrap 0 2> /dev/null | grep -E 'R@|MAP' > $(basename $m).txt; done; "
        "grep -q MAP lots-run.txt && cmp start.safetensors.txt lots-run.txt");
}

static void test_left_out(void **state) {
    (void)state;
    watch w = {0};
    kith_tune_result result;
    kith_error err = {0};
    make();
    shell(
        "cp -r photos faulty && cd faulty && cp glyph00000/00000.png glyph00000/again.png && "
        "cp glyph00001/00000.png glyph00002/also.png && echo page > glyph00003/page.png && : > "
        "glyph00004/empty.jpg");
    assert_ok(run("faulty", "faulty-run", 0.15, &w, &result, &err), &err);
    assert_int_equal(lines_of("faulty-run/photos.csv", ".png"), 12 * 6 - 1);
    assert_int_equal(lines_of("faulty-run/photos.csv", "page.png") +
                         lines_of("faulty-run/photos.csv", "again.png") +
                         lines_of("faulty-run/photos.csv", "also.png"),
                     0);
    static const char *const notes[] = {
        "left out: 2 photos that cannot be read, the first ",
        "left out: 1 photo that is there twice: ", "left out: 2 photos that are in two classes"};
    for (size_t i = 0; i < N_ROWS(notes); i++) {
        if (!strstr(w.text, notes[i])) fail_msg("no '%s' in: %s", notes[i], w.text);
    }
}

/* It can be stopped at any note, and goes on to the end. */
static void test_stop_and_go_on(void **state) {
    (void)state;
    kith_tune_result result;
    for (int stop_after = 1; stop_after < 40; stop_after += 2) {
        watch w = {.stop_after = stop_after};
        kith_error err = {0};
        const kith_status status = run("photos", "stopped", 0.15, &w, &result, &err);
        if (status == KITH_OK) {
            assert_true(lines_of("stopped/tune.json", "\"won\": true") == 1);
            return;
        }
        assert_int_equal(status, KITH_ECANCELED);
    }
    fail_msg("it never came to its end");
}

static void test_refused(void **state) {
    (void)state;
    watch w = {0};
    kith_error err = {0};
    struct stat info;
    make();
    shell(
        "ln -s photos linked && mkdir two && cp -r photos/glyph00000 photos/glyph00001 two && mkdir none && "
        "mkdir -p runs/other && "
        "echo 'data: {root: photos}' > runs/other/recipe.yaml");
    static const struct {
        const char *photos, *out, *message;
        kith_status status;
    } rows[] = {{"two", "two-run", "two has 2 classes of two photos or more; wanted 3", KITH_EINVAL},
                {"none", "none-run", "no data set found", KITH_EINVAL},
                {"photos", "photos", "is inside the photos' folder", KITH_EINVAL},
                {"photos", "photos/../photos/new/run", "is inside the photos' folder", KITH_EINVAL},
                {"linked", "photos/run", "is inside the photos' folder", KITH_EINVAL},
                {"photos", "runs/other", "holds a run of a recipe", KITH_EINVAL}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const kith_status status = run(rows[i].photos, rows[i].out, 0.15, &w, NULL, &err);
        if (!strstr(err.message, rows[i].message)) fail_msg("%s: %s", rows[i].photos, err.message);
        assert_int_not_equal(status, KITH_OK);
        if (i < 2) assert_int_not_equal(stat(in_folder(rows[i].out), &info), 0);
    }
    shell("! find photos -type f ! -name '*.png' | grep . && ! test -e photos/new && ! test -e photos/run");
    assert_ok(run("photos", "seeded", 0.15, &w, NULL, &err), &err);
    assert_ok(run("two/../photos/.", "seeded", 0.15, &w, NULL, &err), &err);
    assert_ok(run("linked", "seeded", 0.15, &w, NULL, &err), &err);
    assert_int_equal(run("two", "seeded", 0.15, &w, NULL, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "was begun with other photos"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_it_leaves),   cmocka_unit_test(test_its_recipe),
        cmocka_unit_test(test_pretrained_stays), cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_stop_and_go_on),   cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
