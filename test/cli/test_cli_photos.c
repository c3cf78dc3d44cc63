/* The model general, --size, photos without an index and kith cache, as a user types them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/testing.h"

enum { OUTPUT_BYTES = 65536 };
static char output[OUTPUT_BYTES];

#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

/* In the test's folder, with general in models/ and the cache in caches/. */
static int kith(const char *fmt, ...) KITH_PRINTF(1, 2);
static int kith(const char *fmt, ...) {
    char command[4096];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    return run("cd %s && export KITH_MODELS=$PWD/models XDG_CACHE_HOME=$PWD/caches && " TESTING_K " && %s",
               testing_folder(), testing_program(), command);
}

static void assert_said(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

static void assert_not_said(const char *text) {
    if (strstr(output, text)) fail_msg("'%s' in: %s", text, output);
}

static void assert_done(int status, const char *text) {
    if (status != 0) fail_msg("exit status %d: %s", status, output);
    assert_said(text);
}

static void assert_refused(int found, int wanted, const char *text) {
    if (found != wanted) fail_msg("exit status %d, wanted %d: %s", found, wanted, output);
    assert_said(text);
    assert_one_line_of(output);
}

static int begin(void **state) {
    (void)state;
    assert_done(kith("rm -rf * && mkdir models && $K synth photos --classes 8 --images 5 --size 32 && "
                     "$K embed --backbone convnet4 --embedding 16 --seed 9 --generate 2 --save "
                     "models/general.safetensors"),
                "8 classes of 5 images");
    return 0;
}

/* Wherever no model is named, a line says which one it is. */
static void test_general(void **state) {
    (void)state;
    static const char title[] = "kith: model: general (convnet4, 28 px, ";
    static const char purpose[] =
        "\nkith: general finds the same object, scene or picture again; for fine kinds, such as species, "
        "kith pull dinov2-s brings a stronger model\n";
    assert_done(kith("$K embed photos -o e.npy"), title);
    assert_said(purpose);
    assert_said("e.npy: float32 [40, 16]");
    assert_done(kith("$K embed general photos -o f.npy && cmp e.npy f.npy"), title);
    assert_not_said("general finds"); /* who names it knows it */
    assert_done(kith("$K eval --data photos --metrics recall"), title);
    assert_said(purpose);
    assert_done(kith("$K eval --data photos --metrics recall --json 2>&1"), title);
    assert_said("models/general.safetensors");
    assert_not_said("general finds");
    assert_done(kith("$K index photos -o p.kith"), title);
    assert_said(purpose);
    assert_done(kith("$K search p.kith photos/glyph00001/00001.png -k 1"), "1.0000");
    /* A model that is named needs no such line. */
    assert_done(kith("$K embed models/general.safetensors photos -o e.npy"), "e.npy");
    assert_not_said("kith: model:");
    /* It starts a training. */
    assert_done(kith("$K train %s/recipes/quickstart.yaml --out run --set data.root=photos --set "
                     "model.weights=general "
                     "--set model.embedding=16 --set input.resize=squash32 --set input.crop=28 --set "
                     "optim.steps=1 --set "
                     "batch.classes=2 --set batch.images=2 --set data.validation=0.5",
                     testing_source()),
                "run: model of step");
    assert_done(kith("cat run/run.json"), "models/general.safetensors");
}

static void test_it_is_not_installed(void **state) {
    (void)state;
    static const char *const words[] = {"embed photos -o e.npy", "eval --data photos",
                                        "index photos -o p.kith", "search photos photos/glyph00001/00001.png",
                                        "serve photos"};
    for (size_t i = 0; i < N_ROWS(words); i++) {
        assert_refused(kith("KITH_MODELS=none $K %s", words[i]), 1,
                       "kith: the model general is not installed");
        assert_said("kith pull");
        assert_said("--model");
    }
    assert_int_not_equal(kith("ls e.npy p.kith caches"), 0); /* nothing half-written */
    /* What is prepared for a certain model names it. */
    assert_refused(kith("$K embed x.npy -o y.npy"), 2, "wants a model");
}

static void test_the_size(void **state) {
    (void)state;
    assert_done(kith("$K embed photos -o small.npy --size 56"), "model: general (convnet4, 56 px, ");
    assert_done(kith("$K embed photos -o same.npy --crop 56 --resize squash512 && cmp small.npy same.npy"),
                "");
    assert_done(kith("$K eval --data photos --size 56 --metrics recall"), "convnet4, 56 px");
    /* An index remembers it. */
    assert_done(kith("$K index photos -o p.kith --size 56"), "convnet4, 56 px");
    assert_done(kith("$K index p.kith --info"), "squash512, 56 x 56");
    assert_done(kith("$K search p.kith photos/glyph00001/00001.png -k 1"), "1.0000");
    assert_done(kith("$K search photos photos/glyph00001/00001.png -k 1 --size 56"), "convnet4, 56 px");
    assert_refused(kith("$K search p.kith photos/glyph00001/00001.png --size 64"), 2,
                   "--size is for a folder of photos");
    assert_refused(kith("$K serve p.kith --size 64"), 2, "--size is for a folder of photos");
    assert_refused(kith("$K index photos -o q.kith --size 64 --crop 64"), 2,
                   "--size and --crop are both given");
    assert_refused(kith("$K embed photos -o e.npy --size 64 --crop 64"), 2,
                   "--size and --crop are both given");
    assert_refused(kith("$K eval --data photos --size 64 --crop 64"), 2, "--size and --crop are both given");
    assert_refused(kith("$K index photos -o q.kith --size 3"), 1, "convnet4");
}

/* The curve of the model in the box was measured at 192 pixels; at another side a line says so. */
static void test_rates_at_another_size(void **state) {
    (void)state;
    static const char said[] =
        "kith: false-match rates are those of the model at 192 pixels, not at this side",
                      one[] = "photos/glyph00001/00001.png";
    if (kith("cp %s/models/general.safetensors models/", testing_source()) != 0) {
        print_message("skipped: there is no models/general.safetensors\n");
        skip();
    }
    assert_done(
        kith("mkdir flat && cp photos/glyph00001/00001.png flat/a.png && cp photos/glyph00002/00001.png "
             "flat/b.png && $K search flat %s --same 0.01 --size 64",
             one),
        said);
    assert_said("flat/a.png");
    assert_said("false-match rate");
    assert_done(kith("$K index flat -o f.kith --size 64"), said);
    assert_done(kith("$K index f.kith --info"), "--same works, measured on: validation, at 192 px");
    assert_done(kith("$K search f.kith %s --same 0.01", one), said);
    /* Measured here, and at its own side, there is nothing to say. */
    assert_done(
        kith("$K index f.kith --calibrate photos --split all >/dev/null; $K search f.kith %s --same 0.5",
             one),
        "flat/a.png");
    assert_not_said("192");
    assert_done(kith("$K search flat %s --same 0.01", one), "192 px"); /* the model's title */
    assert_not_said("192 pixels");
    for (const char *const *c =
             (const char *const[]){"search flat photos/glyph00001/00001.png", "index flat -o g.kith",
                                   "eval --data photos", "embed flat -o e.npy", "serve flat", NULL};
         *c; c++)
        assert_refused(kith("$K %s --size 31", *c), 1,
                       "side is 31, which is too small for mobilenet_v3_large; wanted at least 32");
    assert_int_not_equal(kith("ls g.kith e.npy"), 0);
}

static void test_searching_photos(void **state) {
    (void)state;
    assert_done(kith("$K search photos photos/glyph00001/00001.png -k 2 --csv 2>said"), "00001.png");
    assert_done(kith("cat said"), "kith: model: general (convnet4, 28 px, ");
    assert_not_said("general finds");
    /* What it is good for is said when photos are first indexed, not with every search. */
    assert_done(kith("$K search photos photos/glyph00001/00001.png -k 2 --cache first 2>&1"),
                "\nkith: general finds the same object");
    assert_done(kith("$K search photos photos/glyph00001/00001.png -k 2 --cache first 2>&1"), "00001.png");
    assert_not_said("general finds");
    assert_done(kith("$K search photos photos/glyph00001/00001.png -k 1 --json 2>/dev/null"),
                "\"n_allowed\": 40");
    /* Views of every photo make another index; flips is of the query. */
    for (const char *const *how = (const char *const[]){"one", "flips", "2", NULL}; *how; how++)
        assert_done(
            kith("$K search photos photos/glyph00001/00001.png -k 1 --views %s --cache views --csv 2>&1",
                 *how),
            "00001.png");
    assert_done(kith("ls views/photos | wc -l"), "2\n");
    /* What is new is found the next time. */
    assert_done(kith("cp photos/glyph00001/00001.png photos/new.png && rm photos/glyph00002/00002.png && "
                     "$K search photos photos/glyph00001/00001.png -k 2 --json 2>/dev/null"),
                "photos/new.png\"");
    assert_said("\"n_allowed\": 40");
    assert_done(kith("$K search photos --duplicates 2>/dev/null"), "new.png");
    assert_done(kith("$K search photos photos/new.png --html hits.html 2>/dev/null && grep -o 'Found in "
                     "[^<]*' hits.html | head -1"),
                "Found in photos");
    assert_done(kith("$K search photos photos/new.png --where 'label = glyph00003' -k 1 2>/dev/null"),
                "glyph00003");
    assert_refused(kith("$K search photos nowhere.png 2>&1 | tail -1; false"), 1, "nowhere.png");
    assert_refused(kith("mkdir none; $K search none photos/new.png 2>&1 | grep -v model:; false"), 1,
                   "none holds no photos");
    for (int i = 0; i < 2; i++) /* also when nothing is new */
        assert_refused(kith("mkdir -p bad/a && echo x > bad/a/1.jpg && echo y > bad/a/2.jpg; $K search bad "
                            "photos/new.png 2>&1 | "
                            "grep -v model: | grep -v warning:; false"),
                       1, "/bad can be read; the first: ");
    assert_said("kith: no photo of 2 in ");
    assert_int_equal(kith("$K search bad photos/new.png"), 1);
    assert_done(kith("timeout 3 $K serve none --port 0; true"), "warning: ");
    assert_said("/none holds no photos; those that come can be searched");
    assert_refused(kith("$K search photos photos/new.png --cache models/general.safetensors 2>&1 | grep -v "
                        "model:; false"),
                   1, "--cache DIR");
    assert_refused(kith("$K search photos photos/new.png --model none.safetensors"), 1, "none.safetensors");
    assert_done(
        kith(
            "$K search photos photos/glyph00001/00001.png -k 1 --cache other 2>/dev/null && ls other/photos"),
        "photos-");
}

static void test_the_cache(void **state) {
    (void)state;
    assert_done(kith("$K cache"), "caches/kith: empty");
    assert_done(kith("cp -r photos more && $K search photos photos/glyph00001/00001.png -k 1 2>/dev/null && "
                     "$K search more photos/glyph00001/00001.png -k 1 2>/dev/null && $K cache"),
                "40 photos, model general (convnet4, 28 px, ");
    assert_said("2 entries of ");
    assert_done(kith("rm -r more; $K cache"), "the folder is gone");
    assert_done(kith("$K cache --json"), "\"is_there\": false");
    assert_refused(kith("$K cache --remove nothing"), 1, "holds nothing of nothing");
    assert_done(kith("$K cache --remove photos"), "1 entry removed, ");
    assert_done(kith("$K cache --limit 1G"), "0 entries removed");
    assert_done(kith("$K cache --limit 1k"), "1 entry removed");
    assert_done(kith("$K cache --clear && $K cache"), "empty");
    static const char *const bad[] = {"", "G", "20X", "1.2.3G", "-1", "20 G B", "9999999T", "20", "1.5", "0"};
    for (size_t i = 0; i < N_ROWS(bad); i++)
        assert_refused(kith("$K cache --limit '%s'", bad[i]), 2, "wanted a size such as 20G");
    assert_refused(kith("$K cache --clear --limit 1G"), 2, "wants one of --remove, --clear and --limit");
    assert_refused(kith("env -u XDG_CACHE_HOME HOME=/proc/none $K search photos photos/glyph00001/00001.png "
                        "2>&1 | grep -v "
                        "model:; false"),
                   1, "XDG_CACHE_HOME");
}

/* A damaged index is no loss: what to type is in the line, and works. */
static void test_a_damaged_index(void **state) {
    (void)state;
    static const char ask[] = "$K search photos photos/glyph00001/00001.png -k 1",
                      damage[] =
                          "cd %s/photos/photos-*/index && printf x | dd of=$(ls *.segment | head -1) bs=1 "
                          "seek=9000 conv=notrunc 2>/dev/null";
    char script[512];
    assert_done(kith("%s", ask), "1.0000");
    snprintf(script, sizeof script, damage, "caches/kith");
    assert_done(kith("%s", script), "");
    assert_refused(kith("%s 2>&1 | grep -v model:; false", ask), 1, "is damaged: bytes 8192 to 9");
    assert_said("(remove it, and it is made anew: kith cache --remove photos-");
    assert_refused(kith("$K serve photos --port 0 2>&1 | grep -v model:; false"), 1,
                   "kith cache --remove photos-");
    assert_done(kith("%s 2>&1 | sed 's/.*: kith \\(cache[^)]*\\))/$K \\1/' | tail -1 > mend; . ./mend", ask),
                "1 entry removed");
    assert_done(kith("%s", ask), "1.0000");
    /* Elsewhere. */
    assert_done(kith("%s --cache 'my cache'", ask), "1.0000");
    assert_done(kith("for f in 'my cache'/photos/photos-*/index/manifest.json; do echo { > \"$f\"; done"),
                "");
    assert_refused(kith("%s --cache 'my cache' 2>&1 | grep -v model:; false", ask), 1, "--remove photos-");
    assert_said("kith cache --cache ");
}

/* Another model of the same name: the index goes on with its own, and says so; renewed, it has the new one. */
static void test_another_general(void **state) {
    (void)state;
    assert_done(
        kith("$K index photos -o p.kith && $K embed --backbone convnet4 --embedding 16 --seed 8 --generate 2 "
             "--save models/general.safetensors"),
        "40 added");
    assert_done(kith("$K search p.kith photos/glyph00001/00001.png -k 1"),
                "the one kept in the cache is used");
    assert_said("1.0000");
    assert_done(kith("$K cache"), "a model that indexes were made with");
    assert_done(kith("rm -r caches"), "");
    assert_refused(kith("$K index p.kith --sync"), 1, "--renew-model");
    assert_refused(kith("$K search p.kith photos/glyph00001/00001.png"), 1, "--renew-model");
    assert_done(kith("$K index p.kith --renew-model"), "p.kith: 40 items of 16 values; 40 added");
    assert_done(kith("$K search p.kith photos/glyph00001/00001.png -k 1"), "1.0000");
    assert_not_said("kept in the cache");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_general, begin),
        cmocka_unit_test_setup(test_it_is_not_installed, begin),
        cmocka_unit_test_setup(test_the_size, begin),
        cmocka_unit_test_setup(test_rates_at_another_size, begin),
        cmocka_unit_test_setup(test_searching_photos, begin),
        cmocka_unit_test_setup(test_the_cache, begin),
        cmocka_unit_test_setup(test_a_damaged_index, begin),
        cmocka_unit_test_setup(test_another_general, begin),
    };
    return cmocka_run_group_tests_name("cli_photos", tests, NULL, testing_tear_down);
}
