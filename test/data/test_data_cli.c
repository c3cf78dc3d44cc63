/* kith data and kith synth as a user types them. */
#include <stdio.h>
#include <unistd.h>

#include "base/rng.h"
#include "data/image/image.h"
#include "data/miniature.h"

static char output[65536];

#define kith(...) testing_run(output, sizeof output, __VA_ARGS__)

static void assert_says(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

static void assert_lines(int n) {
    int found = 0;
    for (const char *s = output; *s; s++) found += *s == '\n';
    if (found != n) fail_msg("%d lines, wanted %d: %s", found, n, output);
}

static void make_photos(void) {
    put_image(in_folder("photos/anna/1.jpg"), "ok_rgb.jpg");
    put_image(in_folder("photos/anna/2.jpg"), "ok_exif_6.jpg");
    put_image(in_folder("photos/bert/1.png"), "ok_rgb_16.png");
    put_image(in_folder("photos/carl/1.webp"), "ok_lossy.webp");
    put_image(in_folder("photos/dora/1.jpg"), "ok_cmyk_adobe.jpg");
}

static void test_summary(void **state) {
    (void)state;
    make_photos();
    assert_int_equal(kith("%s data %s", testing_program(), in_folder("photos")), 0);
    assert_says("photos: folder, 5 images, 4 classes");
    assert_says("train               3        2                         1      1     2        1");
    assert_says("test                2        2                         1      1     1        2");
    assert_says("width       18 … 27 … 27 pixels");
    assert_says("missing     0 files");
    assert_says("unreadable  0 files (headers only; --check decodes everything)");
}

static void test_super_classes(void **state) {
    (void)state;
    put_image(in_folder("super/1.jpg"), "ok_rgb.jpg");
    put_text(in_folder("super/one.csv"), "path,label,superclass\n1.jpg,oak,tree\n1.jpg,elm,tree\n");
    put_text(in_folder("super/two.csv"), "path,label,superclass\n1.jpg,oak,tree\n1.jpg,rook,bird\n");
    assert_int_equal(kith("%s data %s", testing_program(), in_folder("super/one.csv")), 0);
    assert_says("above them  1 super-class\n");
    assert_int_equal(kith("%s data %s", testing_program(), in_folder("super/two.csv")), 0);
    assert_says("above them  2 super-classes\n");
}

/* GIF, BMP and TIFF are no items, but somebody put them there; a bomb is refused as training would refuse it. */
static void test_pictures_that_are_not_read(void **state) {
    (void)state;
    put_image(in_folder("mixed/a/1.jpg"), "ok_rgb.jpg");
    put_image(in_folder("mixed/a/anim.GIF"), "bad_gif.png");
    put_image(in_folder("mixed/b/scan.tiff"), "bad_gif.png");
    put_image(in_folder("mixed/b/notes.txt"), "bad_text.jpg");
    put_image(in_folder("mixed/b/2.jpg"), "ok_rgb.jpg");
    put_image(in_folder("mixed/b/bomb.jpg"), "bad_bomb.jpg");
    assert_int_equal(kith("%s data '%s' 2>/dev/null", testing_program(), in_folder("mixed")), 0);
    assert_says("mixed: folder, 3 images, 2 classes");
    assert_says("not read    1 GIF, 1 TIFF\n");
    assert_says("mixed/a/anim.GIF: a GIF\n");
    assert_says("mixed/b/scan.tiff: a TIFF\n");
    assert_says("unreadable  1 files");
    assert_says("bomb.jpg: JPEG: the image is 65000 x 65000 pixels");
    assert_int_equal(kith("%s data '%s' 2>&1 >/dev/null", testing_program(), in_folder("mixed")), 0);
    assert_says("warning: ");
    assert_says("not read: 1 GIF, 1 TIFF; the first is ");
    assert_lines(1);
    assert_int_equal(kith("%s data '%s' --json 2>/dev/null", testing_program(), in_folder("mixed")), 0);
    assert_says("\"not_read\": 2");
    put_image(in_folder("gifs/a/1.gif"), "bad_gif.png");
    assert_int_equal(kith("%s data '%s'", testing_program(), in_folder("gifs")), 1);
    assert_says("gifs/a/1.gif: a GIF; read are JPEG, PNG, WebP");
    assert_lines(1);
}

/* What people have in their photo folders, and what systems put there. */
static void test_what_is_not_read(void **state) {
    (void)state;
    put_image(in_folder("library/2023/oak/1.jpg"), "ok_rgb.jpg");
    put_image(in_folder("library/2023/elm/1.jpg"), "ok_rgb.jpg");
    put_image(in_folder("library/2024/1.jpg"), "ok_rgb.jpg");
    put_image(in_folder("library/loose.jpg"), "ok_rgb.jpg");
    put_image(in_folder("library/2024/film.MOV"), "bad_text.jpg");
    put_image(in_folder("library/2024/a.cr3"), "bad_text.jpg");
    put_image(in_folder("library/2024/b.nef"), "bad_text.jpg");
    put_image(in_folder("library/@eaDir/2024/thumb.jpg"), "ok_rgb.jpg");
    put_image(in_folder("library/2024/@eaDir/thumb.jpg"), "ok_rgb.jpg");
    put_image(in_folder("library/__MACOSX/1.jpg"), "ok_rgb.jpg");
    assert_int_equal(
        kith("cd '%s' && printf x >'2024/a\nb.jpg' && mkdir '2024/c\td' && ln -s .. 2023/oak/up && "
             "ln -s two 2024/one && ln -s one 2024/two && ln -s ../2023 2024/same && "
             "ln -s nowhere.jpg 2024/lost.jpg && ln -s nowhere 2024/lost",
             in_folder("library")),
        0);
    assert_int_equal(kith("%s data '%s' 2>/dev/null", testing_program(), in_folder("library")), 0);
    assert_says(
        "library: folder, 5 images, 2 classes\n"); /* a link to a folder is one, and 2023 is no circle there */
    assert_says("\nclasses     2023, 2024\n");
    assert_says("nested      4 folders inside class folders: images there are of the outer folder's class\n");
    assert_says("library/2023/elm\n");
    assert_says(
        "not read    2 raw files, 1 video, 1 image in no class folder, 2 names that cannot be kept, 5 links "
        "in "
        "a circle or to nowhere\n");
    assert_says("library/loose.jpg: in no class folder\n");
    assert_says("library/2024/a\\x0ab.jpg: its name has a control character");
    assert_says("library/2024/c\\x09d: its name has a control character");
    assert_says("library/2023/oak/up: a link in a circle or to nowhere\n");
    assert_says("library/2024/lost.jpg: a link in a circle or to nowhere\n");
    assert_says("library/2024/film.MOV: a video\n");
    assert_says("library/2024/b.nef: a camera's raw file\n");
    if (strstr(output, "thumb") || strstr(output, "MACOSX")) fail_msg("litter was looked at: %s", output);
    assert_int_equal(kith("%s data '%s' --json 2>/dev/null", testing_program(), in_folder("library")), 0);
    assert_says("\"first_classes\": [\"2023\", \"2024\"]");
    assert_says("\"not_read\": 11, \"not_read_files\": [\"");
    assert_says("\"nested_folders\": [\"");
    /* Training says it, too, in one line. */
    kith(
        "cd '%s' && printf 'data: {root: .}\\ninput: {resize: squash28, crop: 28}\\nmodel: {backbone: "
        "convnet4, "
        "embedding: 8}\\nbatch: {classes: 2, images: 2}\\nobjective: {loss: triplet}\\noptim: {steps: 1}\\n' "
        ">r.yaml && "
        "%s train r.yaml -o run 2>&1 | grep 'not read'",
        in_folder("library"), testing_program());
    assert_says(
        "warning: not read: 2 raw files, 1 video, 1 image in no class folder, 2 names that cannot be kept, 5 "
        "links");
    assert_lines(1);
}

/* Nothing that can be read is nothing to train on. */
static void test_no_image_can_be_read(void **state) {
    (void)state;
    put_image(in_folder("unread/a/1.jpg"), "bad_text.jpg");
    put_image(in_folder("unread/b/2.jpg"), "bad_text.jpg");
    assert_int_equal(kith("%s data '%s' 2>&1 >/dev/null", testing_program(), in_folder("unread")), 1);
    assert_says("no image of 2 in ");
    assert_says("unread can be read; the first: ");
    assert_lines(1);
    put_image(in_folder("unread/b/3.jpg"), "ok_rgb.jpg");
    assert_int_equal(kith("%s data '%s' 2>&1 >/dev/null", testing_program(), in_folder("unread")), 0);
    assert_lines(0);
}

/* Parts, and what lies beside them. */
static void test_beside_the_parts(void **state) {
    (void)state;
    put_image(in_folder("parts/train/a/1.jpg"), "ok_rgb.jpg");
    put_image(in_folder("parts/test/b/1.jpg"), "ok_rgb.jpg");
    put_image(in_folder("parts/unsorted/1.jpg"), "ok_rgb.jpg");
    put_image(in_folder("parts/1.jpg"), "ok_rgb.jpg");
    put_image(in_folder("parts/train/1.jpg"), "ok_rgb.jpg");
    assert_int_equal(kith("%s data '%s' 2>/dev/null", testing_program(), in_folder("parts")), 0);
    assert_says("parts: folder, 2 images, 2 classes\n");
    assert_says("not read    2 images in no class folder, 1 folder beside train and test\n");
    assert_says("parts/unsorted: a folder beside train and test\n");
}

/* No class folders: of use, though not for training. */
static void test_a_flat_folder(void **state) {
    (void)state;
    put_image(in_folder("flat/1.jpg"), "ok_rgb.jpg");
    put_image(in_folder("flat/2.jpg"), "ok_rgb.jpg");
    put_image(in_folder("flat/@eaDir/1.jpg"), "ok_rgb.jpg");
    assert_int_equal(kith("%s data '%s'", testing_program(), in_folder("flat")), 1);
    assert_says("flat: 2 images and no class folders (to train, put each class into a folder of its own; ");
    assert_says("`kith data --duplicates`");
    assert_lines(1);
    assert_int_equal(kith("%s data '%s' --duplicates", testing_program(), in_folder("flat")), 0);
    assert_says("flat: 1 groups of 2 pictures that are the same, of 2 looked at\n");
    assert_int_equal(kith("%s data '%s' --duplicates --json", testing_program(), in_folder("flat")), 0);
    assert_says("\"class\": null");
    assert_int_equal(kith("%s data '%s' --duplicates --model m", testing_program(), in_folder("flat")), 1);
    assert_says("flat has no class folders, so that no label can look wrong");
    assert_lines(1);
}

static void test_check(void **state) {
    (void)state;
    make_photos();
    assert_int_equal(kith("%s data %s --check", testing_program(), in_folder("photos")), 0);
    assert_says("unreadable  0 files\n");
    put_image(in_folder("photos/bert/cut.jpg"), "bad_cut.jpg");
    assert_int_equal(kith("%s data %s --check", testing_program(), in_folder("photos")), 1);
    assert_says("unreadable  1 files\n");
    assert_says("photos/bert/cut.jpg: JPEG: the file ends before the image does");
    unlink(in_folder("photos/bert/cut.jpg"));
}

static void test_json(void **state) {
    (void)state;
    make_photos();
    assert_int_equal(kith("%s data %s --json", testing_program(), in_folder("photos")), 0);
    assert_lines(1);
    assert_says("\"dataset\": \"folder\"");
    assert_says("\"train\": {\"images\": 3, \"classes\": 2");
    assert_says("\"unreadable\": 0");
}

static void test_recipe(void **state) {
    (void)state;
    make_photos();
    char recipe[4096];
    snprintf(recipe, sizeof recipe, "%s", in_folder("recipe.yaml"));
    FILE *file = fopen(recipe, "w");
    assert_non_null(file);
    fprintf(file, "data: {dataset: folder, root: %s, validation: 0.5}\nmodel: {backbone: convnet4}\n",
            in_folder("photos"));
    fclose(file);
    assert_int_equal(kith("%s data %s", testing_program(), recipe), 0);
    assert_says("validation ");
    put_text(recipe, "data: {dataset: cup, root: /nowhere}\n");
    assert_int_equal(kith("%s data %s", testing_program(), recipe), 1);
    assert_lines(1);
    assert_says("unknown data set 'cup' (did you mean 'cub'?)");
    put_text(recipe, "data: {rot: /nowhere}\n");
    assert_int_equal(kith("%s data %s", testing_program(), recipe), 1);
    assert_says("did you mean 'root'?");
    put_text(recipe, "model: {}\n");
    assert_int_equal(kith("%s data %s", testing_program(), recipe), 1);
    assert_says("there is no data: section");
}

static void test_splits(void **state) {
    (void)state;
    make_photos();
    char split[4096];
    snprintf(split, sizeof split, "%s", in_folder("split.csv"));
    assert_int_equal(kith("%s data %s --train-classes 4 --folds 2 --fold 1 --seed 3 -o %s", testing_program(),
                          in_folder("photos"), split),
                     0);
    assert_says("validation");
    assert_int_equal(kith("sort %s", split), 0);
    assert_lines(5);
    assert_says("class,split");
    char first[sizeof output];
    assert_int_equal(kith("%s data %s --train-classes 4 --folds 2 --fold 1 --seed 3 --json",
                          testing_program(), in_folder("photos")),
                     0);
    memcpy(first, output, sizeof first);
    assert_int_equal(
        kith("%s data %s --train-classes 4 --split %s --json", testing_program(), in_folder("photos"), split),
        0);
    assert_string_equal(output, first);
    assert_int_equal(kith("%s data %s --folds 2 --validation 0.5", testing_program(), in_folder("photos")),
                     2);
}

static void test_failures(void **state) {
    (void)state;
    assert_int_equal(kith("%s data /nowhere", testing_program()), 1);
    assert_lines(1);
    assert_says("kith: /nowhere: there is no such folder or file");
    assert_int_equal(kith("%s data", testing_program()), 2);
    make_photos();
    assert_int_equal(kith("%s data %s --dataset cub", testing_program(), in_folder("photos")), 1);
    assert_lines(1);
}

static void test_speed(void **state) {
    (void)state;
    make_photos();
    assert_int_equal(kith("%s data %s --speed --json --workers 2", testing_program(), in_folder("photos")),
                     0);
    assert_says("\"decoded_per_second\": ");
    assert_says("\"cached_per_second\": ");
    char recipe[4096], text[8192];
    snprintf(recipe, sizeof recipe, "%s", in_folder("speed.yaml"));
    snprintf(text, sizeof text, "data: {root: %s}\ninput: {crop: 32, effects: [randaugment, erase]}\n",
             in_folder("photos"));
    put_text(recipe, text);
    assert_int_equal(kith("%s data %s --speed --workers 2", testing_program(), recipe), 0);
    assert_says("(32 px, 2 workers");
}

static void test_synth(void **state) {
    (void)state;
    assert_int_equal(kith("%s synth %s --classes 6 --images 4 --size 32 --colour --background",
                          testing_program(), in_folder("glyphs")),
                     0);
    assert_says("glyphs: 6 classes of 4 images, 32 x 32 pixels");
    assert_int_equal(kith("%s data %s --check --json", testing_program(), in_folder("glyphs")), 0);
    assert_says("\"images\": 24, \"classes\": 6");
    assert_says("\"width\": [32, 32, 32]");
    assert_int_equal(kith("%s synth %s", testing_program(), in_folder("glyphs")), 1);
    assert_lines(1);
    assert_says("is not empty");
    assert_int_equal(kith("%s synth %s --size 4", testing_program(), in_folder("other")), 2);
    assert_int_equal(kith("%s synth --help", testing_program()), 0);
    assert_says("--classes N");
}

/* A folder that cannot be read to its end, and one that cannot be looked at, is an error and no smaller folder: each
 * call on the files fails in turn. */
static void test_folder_read_half(void **state) {
    (void)state;
    char log[4096], root[4096];
    put_image(in_folder("half/a/1.jpg"), "ok_rgb.jpg");
    put_image(in_folder("half/b/1.jpg"), "ok_rgb.jpg");
    snprintf(log, sizeof log, "%s", in_folder("half.log"));
    snprintf(root, sizeof root, "%s", in_folder("half"));
    const char *shim = testing_fault_io();
    int n_failed = 0;
    for (int n = 1; n < 200; n++) {
        unlink(log);
        const int status = kith(
            "LD_PRELOAD=%s FAULT_ROOT=%s FAULT_KIND=eio FAULT_AT=%d "
            "FAULT_LOG=%s %s data --dataset folder %s",
            shim, root, n, log, testing_program(), root);
        if (strstr(output, "ASan runtime does not come first")) skip();
        char *text = testing_read(log);
        const bool is_readdir = strstr(text, "failed readdir") != NULL, is_over = !strstr(text, "failed");
        const bool is_said = strstr(output, "error") || strstr(output, "unreadable  1 files") ||
                             strstr(output, "missing     1 files");
        if (!is_over && status == 0 && !is_said && !strstr(output, "2 images, 2 classes"))
            fail_msg("call %d, %s: '%s'", n, text, output);
        free(text);
        if (is_over) break;
        if (is_readdir) {
            n_failed++;
            if (status != 1) fail_msg("call %d: exit status %d; wanted 1: %s", n, status, output);
            assert_says("Input/output error");
        }
    }
    assert_true(n_failed >= 5); /* of the folder and of both in it: names, and the end */
}

static int count(const char *text) {
    int n = 0;
    for (const char *at = output; (at = strstr(at, text)); at++) n++;
    return n;
}

/* Two bad files among those that train and those that are judged, several epochs and evaluations: one line each. */
static void test_a_bad_file_is_told_of_once(void **state) {
    (void)state;
    char set[512], run[512];
    snprintf(set, sizeof set, "%s", in_folder("some bad"));
    snprintf(run, sizeof run, "%s", in_folder("run"));
    assert_int_equal(kith("%s synth '%s' --classes 8 --images 4", testing_program(), set), 0);
    assert_int_equal(kith("cd '%s' && for f in */00001.png; do echo no image > $f; done", set), 0);
    assert_int_equal(
        kith("OMP_WAIT_POLICY=passive %s train '%s/recipes/quickstart.yaml' --out '%s' --set 'data.root=%s' "
             "--set input.resize=squash32 --set input.crop=28 --set input.mirror=false --set optim.steps=12 "
             "--set "
             "batch.classes=2 --set batch.images=2 --set eval.every=4 --set data.validation=0.25",
             testing_program(), KITH_SOURCE_DIR, run, set),
        0);
    if (count("left out: ") != 8) fail_msg("%d lines of 8 bad files: %s", count("left out: "), output);
}

/* On a terminal a warning takes the place of the bar that may stand on its line. */
static void test_a_warning_is_not_glued_to_the_bar(void **state) {
    (void)state;
    if (kith("script -qec true /dev/null") != 0) skip(); /* no script, or no pseudo-terminal */
    char set[512];
    snprintf(set, sizeof set, "%s", in_folder("one bad"));
    put_image(in_folder("one bad/a/1.jpg"), "ok_rgb.jpg");
    put_image(in_folder("one bad/a/2.jpg"), "bad_cut.jpg");
    assert_int_equal(
        kith("cd '%s' && OMP_WAIT_POLICY=passive script -qec \"%s embed --backbone convnet4 --resize "
             "squash28 --tap pooled a -o x.npy\" /dev/null",
             set, testing_program()),
        0);
    assert_says("\r\033[Kkith: warning: left out: a/2.jpg");
}

/* Noise that is mostly of one colour channel. */
static void put_noise(const char *path, int channel, uint64_t seed) {
    enum { SIDE = 32 };
    ki_image image = {0};
    ki_bytes file = {0};
    kith_error err = {0};
    ki_rng rng = ki_rng_at(seed, KI_RNG_AUGMENT, 0, 0);
    assert_ok(ki_image_shape(&image, SIDE, SIDE, 3, &err), &err);
    for (int i = 0; i < SIDE * SIDE * 3; i++)
        image.data[i] = (uint8_t)((ki_rng_u32(&rng) >> 26) + (i % 3 == channel ? 180 : 20));
    assert_ok(ki_png_encode(&image, &file, &err), &err);
    put_bytes(path, file.data, file.n);
    ki_image_release(&image);
    ki_bytes_release(&file);
}

/* Two blue images under `red`: they come first, and the others are no suspects. */
static void test_labels_that_look_wrong(void **state) {
    (void)state;
    for (int i = 0; i < 24; i++)
        put_noise(in_folder("colours/%s/%d.png", i % 2 ? "blue" : "red", i), i % 2 ? 2 : 0, (uint64_t)i);
    put_noise(in_folder("colours/red/wrong1.png"), 2, 30);
    put_noise(in_folder("colours/red/wrong2.png"), 2, 31);
    assert_int_equal(
        kith("cd '%s' && %s embed --backbone convnet4 --seed 3 --generate 2 --save m.safetensors",
             testing_folder(), testing_program()),
        0);
    assert_int_equal(kith("cd '%s' && %s data colours --duplicates --model m.safetensors 2>/dev/null",
                          testing_folder(), testing_program()),
                     0);
    assert_says(
        "labels that look wrong, and what the neighbours are instead\n"
        "   10 % red,  90 % blue  colours/red/wrong1.png\n"
        "   10 % red,  90 % blue  colours/red/wrong2.png\n"
        "colours: 2 of 26 images have more neighbours of another class than of their own\n");
    assert_int_equal(
        kith("cd '%s' && %s data colours --duplicates --model m.safetensors --suspects 1 --json 2>/dev/null",
             testing_folder(), testing_program()),
        0);
    assert_says("\"judged\": 26, \"disagreeing\": 2, \"suspects\": [{\"path\": \"colours/red/wrong");
    assert_says("\"class\": \"red\", \"agreement\": ");
    assert_says("\"other_class\": \"blue\", \"other_agreement\": ");
    assert_int_equal(kith("cd '%s' && %s data colours --duplicates --json 2>/dev/null", testing_folder(),
                          testing_program()),
                     0);
    if (strstr(output, "suspects")) fail_msg("suspects without a model: %s", output);
    assert_int_equal(
        kith("cd '%s' && %s data colours --model m.safetensors", testing_folder(), testing_program()), 2);
    assert_says("--model is for --duplicates");
}

/* The pictures of the test before this one, one of them in both classes. */
static void test_doctor(void **state) {
    (void)state;
    put_noise(in_folder("colours/blue/twin.png"), 2, 50);
    put_noise(in_folder("colours/red/twin.png"), 2, 50);
    assert_int_equal(
        kith("cd '%s' && %s data colours --doctor --model m.safetensors --suspects 1 2>/dev/null",
             testing_folder(), testing_program()),
        1);
    assert_says(
        "error    the same picture in test and in training: 1\n"
        "  blue/twin.png (train) and red/twin.png (test): the same file in test and in training\n"
        "error    the same picture in several classes: 1\n"
        "  blue/twin.png (train) and red/twin.png (test): the same file in several classes\n"
        "warning  labels that look wrong: 3\n  red/");
    assert_says(" % of its neighbours are blue, ");
    assert_says("… and 2 more\n");
    assert_says("colours: 28 images, 2 errors, ");
    assert_says("1 images to leave out (-o FILE.csv writes a list without them)\n");
    assert_int_equal(kith("cd '%s' && %s data colours --doctor --no-vectors -o kept.csv 2>/dev/null && %s "
                          "data kept.csv --doctor "
                          "--no-vectors --json 2>/dev/null",
                          testing_folder(), testing_program(), testing_program()),
                     0);
    assert_says("kept.csv: 27 images (kith train reads it as data.root)\n");
    assert_says("{\"images\": 27, \"leave_out\": 0, \"errors\": 0, \"warnings\": 0, \"notes\": ");
    assert_int_equal(
        kith("cd '%s' && %s data colours --doctor --duplicates", testing_folder(), testing_program()), 2);
    assert_says("give --duplicates or --doctor, not both");
    assert_int_equal(kith("cd '%s' && %s data colours --no-vectors", testing_folder(), testing_program()), 2);
    assert_says("--no-vectors is for --doctor");
    assert_int_equal(kith("cd '%s' && %s data colours --html x.html", testing_folder(), testing_program()),
                     2);
    assert_says("--html is for --doctor");
    assert_int_equal(kith("cd '%s' && %s data colours --no-shortcut", testing_folder(), testing_program()),
                     2);
    assert_says("--no-shortcut is for --doctor");
}

/* The same frames in all pictures of a class, and noise in the middle: the borders give the classes away. */
static void test_doctor_page(void **state) {
    (void)state;
    for (int i = 0; i < 60; i++)
        put_noise(in_folder("frames/%s/%d.png", i % 2 ? "blue" : "red", i), i % 2 ? 2 : 0,
                  (uint64_t)(300 + i));
    assert_int_equal(
        kith("cd '%s' && %s data frames --doctor --model m.safetensors --html page.html 2>/dev/null",
             testing_folder(), testing_program()),
        0);
    assert_says(
        "warning  the surroundings give the classes away: 1\n  the borders of the pictures alone tell the "
        "class of ");
    assert_says("page.html: the findings with pictures\n");
    char *text = testing_read(in_folder("page.html"));
    assert_non_null(strstr(text, "<section class=\"kind warning\" id=\"shortcut\""));
    assert_non_null(strstr(text, "<ol class=\"faults wide border\">"));
    free(text);
    kith("cd '%s' && %s data frames --doctor --model m.safetensors --no-shortcut --json 2>/dev/null",
         testing_folder(), testing_program());
    if (strstr(output, "shortcut")) fail_msg("a shortcut that was not to be looked for: %s", output);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_summary),
        cmocka_unit_test(test_super_classes),
        cmocka_unit_test(test_pictures_that_are_not_read),
        cmocka_unit_test(test_what_is_not_read),
        cmocka_unit_test(test_no_image_can_be_read),
        cmocka_unit_test(test_beside_the_parts),
        cmocka_unit_test(test_a_flat_folder),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_recipe),
        cmocka_unit_test(test_splits),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_speed),
        cmocka_unit_test(test_synth),
        cmocka_unit_test(test_folder_read_half),
        cmocka_unit_test(test_a_bad_file_is_told_of_once),
        cmocka_unit_test(test_a_warning_is_not_glued_to_the_bar),
        cmocka_unit_test(test_labels_that_look_wrong),
        cmocka_unit_test(test_doctor),
        cmocka_unit_test(test_doctor_page),
    };
    return cmocka_run_group_tests_name("data/cli", tests, NULL, NULL);
}
