/* kith embed, kith list and kith bench as a user types them. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kith/array.h"
#include "support/testing.h"

enum { OUTPUT_BYTES = 65536 };
static char output[OUTPUT_BYTES];

#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

static void assert_holds(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

/* One line, that text in it, that exit status. */
static void assert_refused(int found, int wanted, const char *text) {
    if (found != wanted) fail_msg("exit status %d, wanted %d: %s", found, wanted, output);
    assert_holds(text);
    assert_one_line_of(output);
}

static const char *in_folder(const char *name) {
    static char path[16][256];
    static int turn;
    turn = (turn + 1) % 16;
    snprintf(path[turn], sizeof path[turn], "%s/%s", testing_folder(), name);
    return path[turn];
}

static void write_npy(const char *name, kith_dtype dtype, int n_dims, const int64_t *dim, int64_t nan_at) {
    kith_error err = {0};
    kith_array array;
    assert_ok(kith_array_init(dtype, n_dims, dim, &array, &err), &err);
    if (dtype == KITH_F32) {
        for (int64_t i = 0; i < kith_array_count(&array); i++)
            ((float *)array.data)[i] = (float)(i % 17) / 17;
        if (nan_at >= 0) ((float *)array.data)[nan_at] = NAN;
    }
    assert_ok(kith_npy_write(in_folder(name), &array, &err), &err);
    kith_array_release(&array);
}

static void test_a_file(void **state) {
    (void)state;
    kith_error err = {0};
    const int64_t dim[] = {3, 1, 28, 28};
    write_npy("x.npy", KITH_F32, 4, dim, -1);
    const char *out = in_folder("y.npy");
    assert_int_equal(
        run("%s embed --backbone convnet4 %s --tap pooled -o %s", testing_program(), in_folder("x.npy"), out),
        0);
    assert_holds("float32 [3, 64]");
    kith_array found;
    assert_ok(kith_npy_read(out, &found, &err), &err);
    assert_int_equal(found.n_dims, 2);
    assert_int_equal(found.dim[0], 3);
    assert_int_equal(found.dim[1], 64);
    kith_array_release(&found);
}

/* --save writes a model that needs no further word, and gives the same values. */
static void test_a_saved_model(void **state) {
    (void)state;
    const int64_t dim[] = {2, 3, 32, 32};
    write_npy("x.npy", KITH_F32, 4, dim, -1);
    const char *x = in_folder("x.npy"), *model = in_folder("m.safetensors");
    assert_int_equal(run("%s embed --backbone convnet4 --embedding 16 --seed 9 --save %s %s -o %s",
                         testing_program(), model, x, in_folder("a.npy")),
                     0);
    assert_int_equal(run("%s embed %s %s -o %s", testing_program(), model, x, in_folder("b.npy")), 0);
    assert_holds("float32 [2, 16]");
    assert_int_equal(run("cmp %s %s", in_folder("a.npy"), in_folder("b.npy")), 0);
}

static void test_generated_images(void **state) {
    (void)state;
    assert_int_equal(run("%s embed --backbone convnet4 --generate 8", testing_program()), 0);
    assert_holds("values: float32 [8, 64]");
    assert_holds("image 0 (pattern 0): nearest is image 4 (pattern 0)");
}

static void test_bad_batches(void **state) {
    (void)state;
    const int64_t flat[] = {2, 3}, four[] = {2, 3, 28, 28}, grey[] = {2, 1, 64, 64}, tiny[] = {2, 3, 8, 8};
    const char *program = testing_program();
    char command[1024], x[256], out[256];
    snprintf(x, sizeof x, "%s", in_folder("bad.npy"));
    snprintf(out, sizeof out, "%s", in_folder("out.npy"));
    snprintf(command, sizeof command, "%s embed --backbone googlenet %s -o %s", program, x, out);
    write_npy("bad.npy", KITH_F32, 2, flat, -1);
    assert_refused(run("%s", command), 1, "the model takes images; ");
    assert_holds("bad.npy holds features of 3 numbers");
    write_npy("bad.npy", KITH_I64, 4, four, -1);
    assert_refused(run("%s", command), 1, "holds int64 with 4 axes; wanted float32");
    write_npy("bad.npy", KITH_F32, 4, grey, -1);
    assert_refused(run("%s", command), 1, "googlenet takes images of 3 channels, found 1");
    write_npy("bad.npy", KITH_F32, 4, tiny, -1);
    assert_refused(run("%s", command), 1, "found 8x8");
    snprintf(command, sizeof command, "%s embed --backbone convnet4 %s -o %s", program, x, out);
    write_npy("bad.npy", KITH_F32, 4, four, 3 * 28 * 28 + 5);
    assert_refused(run("%s", command), 1, "input of image 1 holds nan at 5");
    assert_int_not_equal(access(out, F_OK), 0); /* nothing half-written */
    assert_refused(run("%s --tap logits", command), 1, "logits");
    assert_refused(run("%s embed --backbone convnet4 %s -o %s", program, in_folder("none.npy"), out), 1,
                   "none.npy");
    assert_refused(run("head -c 100 /dev/zero > %s; %s", x, command), 1, "bad.npy");
    assert_int_not_equal(access(out, F_OK), 0);
}

static void test_wrong_usage(void **state) {
    (void)state;
    const char *program = testing_program();
    assert_refused(run("%s embed x.npy -o y.npy", program), 2, "wants a model");
    assert_refused(run("%s embed --backbone convnet4 -o y.npy", program), 2,
                   "wants images, a folder, BATCH.npy or --generate N");
    assert_refused(run("%s embed --backbone convnet4 x.npy", program), 2, "wants --out FILE");
    assert_refused(run("%s embed --backbone convnet5 --generate 1", program), 1, "did you mean 'convnet4'?");
    assert_refused(run("%s embed --backbone convnet4 --settings widht=3 --generate 1", program), 1,
                   "did you mean 'width'?");
    assert_refused(run("%s bench trian", program), 2, "did you mean 'train'?");
    assert_refused(run("%s bench train", program), 2, "wants --backbone");
    assert_refused(run("%s bench train --backbone convnet4 --device gpu", program), 1, "gpu");
    assert_refused(run("%s list backbone", program), 2, "did you mean 'backbones'?");
}

static void test_bench(void **state) {
    (void)state;
    assert_int_equal(run("%s bench train --backbone convnet4 --batch 4 --steps 3 --json", testing_program()),
                     0);
    static const char *const keys[] = {"\"images_per_second\": ", "\"peak_rss_bytes\": ", "\"gflops\": ",
                                       "\"steps\": 3", "\"allocations_per_step\": 0,"};
    for (size_t i = 0; i < N_ROWS(keys); i++) assert_holds(keys[i]);
    assert_int_equal(
        run("%s bench embed --backbone convnet4 --batch 4 --steps 3 --threads 1", testing_program()), 0);
    assert_holds("1 threads");
    assert_holds("images/s");
    /* The step of a run, with an objective; the same from a recipe, whose data need not be there. */
    assert_int_equal(run("%s bench train --backbone convnet4 --batch 8 --steps 2 --profile --json "
                         "--objective '{loss: raw, miner: vthm}'",
                         testing_program()),
                     0);
    assert_non_null(strstr(output, "\"loss\""));
    assert_non_null(strstr(output, "\"conv2d backward\""));
    assert_non_null(strstr(output, "\"objective\""));
    assert_int_equal(run("%s bench train --recipe %s/recipes/demo.yaml --batch 8 --steps 2",
                         testing_program(), testing_source()),
                     0);
    assert_non_null(strstr(output, "train convnet4 on cpu, float32: batch 8 of "));
    assert_non_null(strstr(output, "loss "));
    assert_refused(run("%s bench train --backbone convnet4 --objective '{loss: rwa}'", testing_program()), 1,
                   "raw");
    assert_refused(run("%s bench train --backbone convnet4 --precision bf16", testing_program()), 1,
                   "float32 only");
    assert_refused(run("%s bench train --backbone convnet4 --precision bf17", testing_program()), 1, "bf16");
    assert_int_equal(run("%s bench train --help", testing_program()), 0);
    assert_holds("--frozen-bn");
}

static void test_list(void **state) {
    (void)state;
    assert_int_equal(run("%s list", testing_program()), 0);
    assert_holds("backbones");
    assert_int_equal(run("%s list backbones", testing_program()), 0);
    static const char *const names[] = {"googlenet", "bn_inception", "resnet50", "convnet4",
                                        "stride = 3x3 (3x3|1x1)"};
    for (size_t i = 0; i < N_ROWS(names); i++) assert_holds(names[i]);
    assert_int_equal(run("%s list backbones --json", testing_program()), 0);
    assert_holds("{\"name\": \"stride\", \"default\": \"3x3\"");
}

/* A folder of images, one of them broken: embeddings and paths line up, the broken one is named. */
static void test_images(void **state) {
    (void)state;
    kith_error err = {0};
    const char *set = in_folder("set"), *out = in_folder("images.npy");
    assert_int_equal(run("%s synth %s --classes 3 --images 4", testing_program(), set), 0);
    assert_int_equal(run("echo no image > %s/broken.png", set), 0);
    assert_int_equal(run("%s embed --backbone convnet4 --resize squash28 --tap pooled %s -o %s",
                         testing_program(), set, out),
                     0);
    assert_holds("float32 [12, 64]");
    assert_holds("kith: 1 image could not be read and is left out; the first: ");
    assert_holds("broken.png");
    /* What goes nowhere has no list beside it. */
    assert_int_equal(run("ln -s /dev/null %s; %s embed --backbone convnet4 --tap pooled %s -o %s",
                         in_folder("nowhere.npy"), testing_program(), set, in_folder("nowhere.npy")),
                     0);
    if (strstr(output, ".paths.txt")) fail_msg("%s", output);
    assert_int_not_equal(access(in_folder("nowhere.paths.txt"), F_OK), 0);
    kith_array values;
    assert_ok(kith_npy_read(out, &values, &err), &err);
    assert_int_equal(values.dim[0], 12);
    kith_array_release(&values);
    assert_int_equal(
        run("wc -l < %s; grep -c broken %s", in_folder("images.paths.txt"), in_folder("images.paths.txt")),
        1);
    assert_string_equal(output, "12\n0\n");
    /* The classes are the folders' names, in the order of the paths, and kith eval takes them as they are. */
    assert_int_equal(run("sed 's|/[^/]*$||; s|.*/||' %s | diff - %s", in_folder("images.paths.txt"),
                         in_folder("images.labels.txt")),
                     0);
    assert_int_equal(run("%s eval -e %s -y %s --metrics recall", testing_program(), in_folder("images.npy"),
                         in_folder("images.labels.txt")),
                     0);
    assert_holds("12 queries, 12 in the gallery, 3 classes");
    assert_refused(run("%s embed --backbone convnet4 %s -o %s 2>&1 | tail -1; exit 1", testing_program(),
                       in_folder("set/broken.png"), in_folder("none.npy")),
                   1, "no image of 1 could be read");
    assert_int_not_equal(access(in_folder("none.npy"), F_OK), 0);
    assert_refused(run("%s embed --backbone convnet4 %s -o %s", testing_program(), in_folder("absent"),
                       in_folder("images.npy")),
                   1, "there is no such file or folder");
}

/* Images in no class's folder have no class; in train/ and test/ it is the folder below; a manifest says it itself. */
static void test_classes_of_images(void **state) {
    (void)state;
    const char *model = "--backbone convnet4 --resize squash28 --tap pooled";
    assert_int_equal(run("%s synth %s --classes 2 --images 2", testing_program(), in_folder("two")), 0);
    assert_int_equal(
        run("cd %s && set -- */ && mkdir -p ../parts/train ../parts/test ../flat && cp $1* ../flat && "
            "cp -r $1 ../parts/train/rook && cp -r $2 ../parts/test/wren && rm -r ../parts/*/*/*1.png && "
            "printf 'path,label,split\\n' > m.csv && for f in */*0.png; do "
            "printf '%%s,\"a, %%s\",train\\n' $f ${f%%%%/*}; done >> m.csv",
            in_folder("two")),
        0);
    assert_int_equal(
        run("%s embed %s %s -o %s", testing_program(), model, in_folder("parts"), in_folder("p.npy")), 0);
    assert_int_equal(run("cat %s", in_folder("p.labels.txt")), 0);
    assert_string_equal(output, "wren\nrook\n");
    assert_int_equal(
        run("%s embed %s %s -o %s", testing_program(), model, in_folder("two/m.csv"), in_folder("m.npy")), 0);
    assert_int_equal(run("grep -c '^a, ' %s", in_folder("m.labels.txt")), 0);
    assert_string_equal(output, "2\n");
    assert_int_equal(
        run("%s embed %s %s -o %s", testing_program(), model, in_folder("flat"), in_folder("f.npy")), 0);
    assert_int_equal(access(in_folder("f.paths.txt"), F_OK), 0);
    assert_int_not_equal(access(in_folder("f.labels.txt"), F_OK), 0);
}

/* --split all judges every item, and the card says so. */
static void test_every_split(void **state) {
    (void)state;
    assert_int_equal(run("%s synth %s --classes 4 --images 3", testing_program(), in_folder("four")), 0);
    assert_int_equal(
        run("%s eval --backbone convnet4 --resize squash28 --data %s --split all --metrics recall --json",
            testing_program(), in_folder("four")),
        0);
    assert_holds("\"split\": \"all\"");
    assert_holds("\"queries\": 12");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes_of_images),
        cmocka_unit_test(test_every_split),
        cmocka_unit_test(test_a_file),
        cmocka_unit_test(test_a_saved_model),
        cmocka_unit_test(test_generated_images),
        cmocka_unit_test(test_images),
        cmocka_unit_test(test_bad_batches),
        cmocka_unit_test(test_wrong_usage),
        cmocka_unit_test(test_bench),
        cmocka_unit_test(test_list),
    };
    return cmocka_run_group_tests_name("cli/embed", tests, NULL, NULL);
}
