/* kith train PHOTOS as a user types it: what it prints, where it writes, going on, and what it refuses in one line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/testing.h"

enum { OUTPUT_BYTES = 65536 };
static char output[OUTPUT_BYTES];

/* In the test's folder, with a small network as the model general. */
static int kith(const char *command) {
    return testing_run(output, sizeof output,
                       "cd %s && export KITH_MODELS=$PWD/models XDG_CACHE_HOME=$PWD/caches && " TESTING_K
                       " && %s",
                       testing_folder(), testing_program(), command);
}

static void assert_said(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

static void assert_done(int status, const char *text) {
    if (status != 0) fail_msg("exit status %d: %s", status, output);
    assert_said(text);
}

static int begin(void **state) {
    (void)state;
    assert_done(kith("rm -rf * && mkdir models && $K synth glyphs --classes 12 --images 5 --size 32 && "
                     "$K embed --backbone convnet4 --embedding 16 --seed 9 --generate 2 --save "
                     "models/general.safetensors"),
                "12 classes of 5 images");
    return 0;
}

/* Without -o the run is named after the folder, and the same command finds it again. */
static void test_a_folder(void **state) {
    (void)state;
    assert_done(kith("$K train glyphs/ --minutes 0.1"), "test classes, judged once, in percent:");
    assert_said("from general");
    assert_said("  R@1 ");
    assert_said("runs/glyphs: ");
    assert_said("kith train runs/glyphs/recipe.yaml");
    assert_done(kith("grep -c 'How the model was found' runs/glyphs/report.html"), "1");
    assert_done(kith("$K train glyphs --minutes 0.1 -q && ls runs"), "runs/glyphs: ");
    assert_said("\nglyphs\n");
    if (strstr(output, "glyphs-2") || strstr(output, "looking for")) fail_msg("%s", output);
    assert_done(kith("cd models && $K train ../glyphs/. --minutes 0.1 -q -o ../runs/glyphs --model general "
                     "--device cpu"),
                "runs/glyphs: ");
    assert_done(kith("$K eval runs/glyphs --data runs/glyphs/photos.csv"), "4 classes");
    assert_done(kith("$K index glyphs -o glyphs.kith --model runs/glyphs"), "60 items of");
    assert_done(kith("$K train runs/glyphs --resume --no-report"), "runs/glyphs");
}

/* A manifest, as the doctor writes it, and a tar file. */
static void test_lists(void **state) {
    (void)state;
    assert_done(kith("$K data glyphs --doctor --no-vectors -o clean.csv && $K train clean.csv --minutes 0.1"),
                "test classes, judged once, in percent:");
    assert_said("runs/clean: ");
    assert_done(kith("tar cf photos.tar -C glyphs . && $K train photos.tar --minutes 0.1 -q -o 'my run'"),
                "my run: ");
    assert_said("kith train 'my run/recipe.yaml'\n");
}

/* Stopped, it says the command that goes on, with all that was given. */
static void test_stopped(void **state) {
    (void)state;
    kith(
        "{ $K train glyphs --minutes 2 --seed 3 --model models/general.safetensors --device cpu -o 'my run' "
        "& while kill -0 $! && ! test -s 'my run/photos.csv'; do sleep 0.05; done; kill -TERM $!; wait $!; "
        "}");
    assert_said(
        "go on with: kith train glyphs -o 'my run' --minutes 2 --model models/general.safetensors "
        "--device cpu --seed 3\n");
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *command, *text;
    } rows[] = {
        {"$K train glyphs --minutes 0", "--minutes is '0'; wanted a number above 0"},
        {"$K train glyphs --minutes inf -o new", "inf minutes; wanted 0 to 1000000"},
        {"$K train glyphs --minutes 1e9 -o new", "1e+09 minutes; wanted 0 to 1000000"},
        {"mkdir -p half && : > half/tried.jsonl && $K train half --resume", "kith train PHOTOS -o half"},
        {"$K train glyphs --minutes soon", "--minutes is 'soon'; wanted a number above 0"},
        {"$K train glyphs --seed 1.5", "--seed is '1.5'; wanted a whole number"},
        {"$K train glyphs --set optim.lr=1", "are for recipes, and glyphs holds photos"},
        {"$K train runs/glyphs/recipe.yaml -o new --minutes 3", "--model and --minutes are for photos"},
        {"$K train runs/glyphs --resume --model general", "--model and --minutes are for photos"},
        {"cd glyphs && $K train . -q", "is inside the photos' folder"},
        {"$K train none.csv -q -o new", "none.csv"},
        {"$K train glyphs --model nothing.safetensors -o new", "nothing.safetensors"},
        {"mkdir -p two && cp -r glyphs/glyph00000 glyphs/glyph00001 two && $K train two -q -o new",
         "two has 2 classes of two photos or more; wanted 3"},
        {"mkdir -p none && $K train none -q -o new", "none"}};
    assert_done(kith("$K train glyphs --minutes 0.1 -q"), "runs/glyphs: ");
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const int status = kith(rows[i].command);
        if (status == 0) fail_msg("%s was done: %s", rows[i].command, output);
        assert_said(rows[i].text);
        assert_one_line_of(output);
        assert_int_not_equal(kith("test -e new"), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_folder, begin), cmocka_unit_test_setup(test_lists, begin),
        cmocka_unit_test_setup(test_stopped, begin), cmocka_unit_test_setup(test_refused, begin)};
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
