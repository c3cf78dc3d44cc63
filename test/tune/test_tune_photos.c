/* What kith_tune_run leaves out of the photos and what it only says, going on after kill -9, and which half of a network it trains. */
#include "kith/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "data/image/image.h"
#include "data/miniature.h"
#include "net/net.h"
#include "tune/tune.h"

static char output[1 << 16];

static void shell(const char *command) {
    const int status = testing_run(output, sizeof output, "cd %s && " TESTING_K " && %s", testing_folder(),
                                   testing_program(), command);
    if (status != 0) fail_msg("%s: %s", command, output);
}

static void make_model(void) {
    static bool is_made;
    if (is_made) return;
    is_made = true;
    shell("$K embed --backbone convnet4 --settings width=8 --generate 1 --save start.safetensors -o x.npy");
}

/* A colour with noise: photos of one colour are alike for any network, and no two are the same picture. scale: every pixel so often. */
static void put_patch(const char *path, int colour, uint64_t seed, int scale) {
    enum { SIDE = 40 };
    ki_image image = {0};
    ki_bytes file = {0};
    kith_error err = {0};
    assert_ok(ki_image_shape(&image, SIDE * scale, SIDE * scale, 3, &err), &err);
    for (int y = 0; y < SIDE * scale; y++) {
        for (int x = 0; x < SIDE * scale; x++) {
            ki_rng rng = ki_rng_at(seed, KI_RNG_AUGMENT, (uint32_t)(y / scale * SIDE + x / scale), 0);
            for (int c = 0; c < 3; c++)
                image.data[(y * SIDE * scale + x) * 3 + c] =
                    (uint8_t)((colour >> c & 1 ? 160 : 0) + (ki_rng_u32(&rng) >> 24) * 90 / 255);
        }
    }
    assert_ok(ki_png_encode(&image, &file, &err), &err);
    put_bytes(path, file.data, file.n);
    ki_image_release(&image);
    ki_bytes_release(&file);
}

/* Two thirds of the noise of one picture and a little of another: it looks like the first, and is not it. */
static void put_alike(const char *path, int colour, uint64_t seed, uint64_t other) {
    enum { SIDE = 40 };
    ki_image image = {0};
    ki_bytes file = {0};
    kith_error err = {0};
    assert_ok(ki_image_shape(&image, SIDE, SIDE, 3, &err), &err);
    for (int i = 0; i < SIDE * SIDE; i++) {
        ki_rng rng = ki_rng_at(seed, KI_RNG_AUGMENT, (uint32_t)i, 0),
               more = ki_rng_at(other, KI_RNG_AUGMENT, (uint32_t)i, 0);
        for (int c = 0; c < 3; c++)
            image.data[3 * i + c] =
                (uint8_t)((colour >> c & 1 ? 150 : 0) + (ki_rng_u32(&rng) >> 24) * 90 / 255 +
                          (ki_rng_u32(&more) >> 24) * 12 / 255);
    }
    assert_ok(ki_png_encode(&image, &file, &err), &err);
    put_bytes(path, file.data, file.n);
    ki_image_release(&image);
    ki_bytes_release(&file);
}

enum { N_IMAGES = 12 };

static void put_class(const char *folder, int colour) {
    for (int i = 0; i < N_IMAGES; i++)
        put_patch(in_folder("%s/%d.png", folder, i), colour, 100 * (uint64_t)colour + (uint64_t)i, 1);
}

/* Six colours train, two test. */
static void make_photos(const char *name) {
    make_model();
    for (int c = 0; c < 8; c++) {
        char folder[64];
        snprintf(folder, sizeof folder, "%s/%s/colour%d", name, c < 6 ? "train" : "test", c);
        put_class(folder, c);
    }
}

typedef struct watch {
    char text[1 << 14];
} watch;

static int on_event(void *user, const kith_train_event *e) {
    watch *w = user;
    const size_t used = strlen(w->text);
    if (e->kind == KITH_TRAIN_NOTE) snprintf(w->text + used, sizeof w->text - used, "%s\n", e->text);
    return 0;
}

static void run_for(double minutes, const char *photos, const char *out, watch *w) {
    kith_error err = {0};
    KITH_OPTIONS(kith_tune_options, options);
    options.photos = in_folder("%s", photos);
    options.out = in_folder("%s", out);
    options.minutes = minutes;
    options.model = in_folder("start.safetensors");
    options.no_report = true;
    options.notify = on_event;
    options.user = w;
    assert_ok(kith_tune_run(&options, NULL, &err), &err);
}

static void run(const char *photos, const char *out, watch *w) { run_for(0.1, photos, out, w); }

static void assert_said(const watch *w, const char *text) {
    if (!strstr(w->text, text)) fail_msg("no '%s' in: %s", text, w->text);
}

static bool has(const char *file, const char *text) {
    char *all = testing_read(in_folder("%s", file));
    const bool is_there = strstr(all, text) != NULL;
    free(all);
    return is_there;
}

/* The same picture in another size. */
static void test_copies(void **state) {
    (void)state;
    watch w = {0};
    make_photos("copies");
    put_patch(in_folder("copies/train/colour1/larger.png"), 1, 103, 2);
    put_patch(in_folder("copies/train/colour2/larger.png"), 7, 705, 2);
    put_patch(in_folder("copies/train/colour3/other.png"), 4, 404, 3);
    shell(
        "head -c 900 copies/train/colour0/0.png > copies/train/colour0/cut.png && cp "
        "copies/test/colour6/1.png "
        "copies/test/colour6/twice.png");
    run("copies", "copies-run", &w);
    static const char *const out[] = {"colour1/larger.png", "colour2/larger.png", "colour3/other.png",
                                      "colour4/4.png", "colour0/cut.png"};
    static const char *const stays[] = {"colour1/3.png", "colour7/5.png"};
    for (size_t i = 0; i < N_ROWS(out); i++) {
        if (has("copies-run/photos.csv", out[i])) fail_msg("%s was not left out: %s", out[i], w.text);
    }
    for (size_t i = 0; i < N_ROWS(stays); i++) {
        if (!has("copies-run/photos.csv", stays[i])) fail_msg("%s was left out: %s", stays[i], w.text);
    }
    assert_said(&w, "left out: 1 photo that cannot be read: ");
    assert_said(&w, "left out: 2 photos that are there twice; the first: ");
    assert_said(&w, "left out: 3 photos that are in two classes, one of which is wrong; the first: ");
    assert_true(has("copies-run/tune.json", "\"n_of_two_classes\": 3"));
    assert_true(has("copies-run/tune.json", "\"kind\": \"duplicate\""));
}

/* One that looks like another is left out; where more than a tenth does, that is how the photos are, and only equal ones are the same. */
static void test_alike_by_nature(void **state) {
    (void)state;
    watch w = {0}, many = {0};
    make_photos("alike");
    put_alike(in_folder("alike/train/colour1/alike.png"), 1, 103, 7001);
    run("alike", "alike-run", &w);
    assert_false(has("alike-run/photos.csv", "alike.png"));
    for (int i = 0; i < N_IMAGES; i++)
        put_alike(in_folder("alike/train/colour2/alike%d.png", i), 2, 200 + (uint64_t)i, 7100 + (uint64_t)i);
    put_patch(in_folder("alike/train/colour3/again.png"), 3, 304, 1);
    run("alike", "many-run", &many);
    assert_said(&many, "look like another: only those that are equal are taken for the same");
    assert_said(&many, "left out: 1 photo that is there twice: ");
    assert_true(has("many-run/photos.csv", "colour2/alike3.png"));
    assert_true(has("many-run/photos.csv", "colour1/alike.png"));
}

/* A photo in the wrong folder is left out where it would train, and stays where it tests. The features without it are those that a run
 * without it makes. */
static void test_wrong_labels(void **state) {
    (void)state;
    watch w = {0}, again = {0};
    make_photos("sick");
    put_patch(in_folder("sick/train/colour1/wrong.png"), 4, 5001, 1);
    put_patch(in_folder("sick/test/colour6/wrong.png"), 7, 5002, 1);
    run("sick", "sick-run", &w);
    assert_said(&w, "left out: 1 photo that is labelled wrongly, by what it looks like: ");
    assert_said(&w, "only noted: a label that looks wrong");
    assert_false(has("sick-run/photos.csv", "train/colour1/wrong.png"));
    assert_true(has("sick-run/photos.csv", "test/colour6/wrong.png"));
    assert_true(has("sick-run/tune.json", "\"n_mislabelled\": 1"));
    assert_true(has("sick-run/tune.json", "train/colour1/wrong.png\"]"));
    shell(
        "test $(ls sick-run/features | wc -l) = 1 && $K train sick-run/recipe.yaml --out sick-anew "
        "--no-report -q && "
        "for f in view-0 view-1 test; do cmp sick-run/features/*/$f.npy sick-anew/features/*/$f.npy || exit "
        "1; done && "
        "$K embed sick-run sick/test -o a.npy && $K embed sick-anew sick/test -o b.npy && cmp a.npy b.npy");
    shell("wc -l < sick-run/tried.jsonl > before");
    run("sick", "sick-run", &again);
    assert_said(&again, "left out: 1 photo that is labelled wrongly");
    shell("wc -l < sick-run/tried.jsonl | cmp - before");
}

/* Killed between what was found out and the list without it: the next call does it. */
static void test_killed_before_the_list(void **state) {
    (void)state;
    watch w = {0};
    make_photos("half-done");
    put_patch(in_folder("half-done/train/colour1/wrong.png"), 4, 5001, 1);
    run("half-done", "half-run", &w);
    assert_false(has("half-run/photos.csv", "wrong.png"));
    shell(
        "cp half-run/photos.csv list && line=$(grep colour1/0.png list | head -1) && "
        "sed \"s#^\\(.*colour1/\\)11.png\\(.*\\)#&\\n\\1wrong.png\\2#\" list > half-run/photos.csv && "
        "grep -q wrong.png half-run/photos.csv");
    run("half-done", "half-run", &w);
    shell("cmp list half-run/photos.csv");
}

/* kill -9 at many moments, each a little later; in the end it ends. */
static void test_killed(void **state) {
    (void)state;
    make_photos("doomed");
    shell(
        "go() { exec $K train doomed -o doomed-run --minutes 0.15 --model start.safetensors -q --no-report; "
        "}; "
        "n=0; for t in 0.1 0.2 0.3 0.45 0.6 0.8 1 1.3 1.6 2 2.5 3; do "
        "  go > /dev/null 2>&1 & sleep $t; if kill -9 $! 2> /dev/null; then n=$((n + 1)); else break; fi; "
        "wait; "
        "done; wait; test $n -ge 3 && (go) && test ! -e doomed-run/photos.csv.shorter && "
        "grep -c '\"won\": true' doomed-run/tune.json && $K embed doomed-run doomed/test -o y.npy && "
        "$K train doomed-run/recipe.yaml --out doomed-anew -q --no-report && "
        "$K embed doomed-anew doomed/test -o z.npy && cmp y.npy z.npy");
}

/* With time for several ways to train the network one fold chooses, and two others decide: as if a plan for three had been made. */
static void test_ways_to_train_the_network(void **state) {
    (void)state;
    watch w = {0};
    make_photos("fine");
    make_folders(in_folder("fine-run/x"));
    put_text(in_folder("fine-run/tried.jsonl"),
             "{\"decision\": \"seconds of a step\", \"value\": 0.0001}\n"
             "{\"decision\": \"steps to train all\", \"value\": 6}\n"
             "{\"decision\": \"ways to train all\", \"value\": 3}\n");
    run_for(0.6, "fine", "fine-run", &w);
    assert_said(&w, "of 3 ways to train the network the best is ");
    shell(
        "test $(grep -c 'partition 0, fold 0, share 1\", \"mark\": 6,' fine-run/tried.jsonl) = 3 && "
        "test $(grep -c 'partition 1, fold ., share 1\", \"mark\": 6,' fine-run/tried.jsonl) -ge 1 && "
        "grep -q 'last stages from.*partition 0' fine-run/tried.jsonl && "
        "test $(ls -d fine-run/tried/*-choice-0 | wc -l) = 3 && "
        "test $(cat fine-run/tried/*-choice-0/recipe.yaml | grep -c 'freeze: *bn2') = 1");
}

/* Half of a network, by name, can be frozen. */
static void test_half(void **state) {
    (void)state;
    static const struct {
        const char *backbone, *half;
        bool takes_lora;
    } rows[] = {{"resnet50", "layer2", false},
                {"mobilenet_v3_large", "blocks.3", false},
                {"vit_t", "blocks.5", true}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_tune t = {0};
        ki_net frozen = {0};
        kith_error err = {0};
        const ki_net_options options = {.backbone = rows[i].backbone, .embedding = 16};
        assert_ok(ki_net_init(&options, &t.net, &err), &err);
        ki_tune_find_parts(&t);
        assert_string_equal(t.half, rows[i].half);
        assert_int_equal(t.takes_lora, rows[i].takes_lora);
        assert_ok(ki_net_adapted(&t.net, &(ki_adaptation){.freeze = t.half}, &frozen, &err), &err);
        ki_net_release(&frozen);
        ki_net_release(&t.net);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),       cmocka_unit_test(test_alike_by_nature),
        cmocka_unit_test(test_wrong_labels), cmocka_unit_test(test_killed_before_the_list),
        cmocka_unit_test(test_killed),       cmocka_unit_test(test_ways_to_train_the_network),
        cmocka_unit_test(test_half)};
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
