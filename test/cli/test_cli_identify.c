/* kith identify and kith same as they are typed: text, JSON, CSV and pages; photos that cannot be read, empty folders, senseless rates. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/testing.h"

static char output[1 << 20];

/* Standard output and error together, or one of them, by `redirect`. */
static int run(const char *command) {
    return testing_run(output, sizeof output,
                       "cd %s && " TESTING_K " && export XDG_CACHE_HOME=$PWD/cache && %s", testing_folder(),
                       testing_program(), command);
}

static void assert_run(const char *command, int wanted, const char *words) {
    const int status = run(command);
    if (status != wanted || !strstr(output, words))
        fail_msg("%s: exit status %d, wanted %d with '%s': %.2000s", command, status, wanted, words, output);
}

static void assert_says(const char *words) {
    if (!strstr(output, words)) fail_msg("no '%s' in: %.2000s", words, output);
}

static int set_up(void **state) {
    (void)state;
    if (run("$K synth photos --classes 24 --images 12 --size 32 && mkdir empty new && cp "
            "photos/glyph00003/00001.png new/ && "
            "cp photos/glyph00005/00002.png new/ && "
            "$K embed --backbone convnet4 --embedding 16 --seed 9 --generate 2 --save m.safetensors && "
            "$K index photos -o p.kith --model m.safetensors && "
            "mkdir flat && cp new/*.png flat/ && $K index flat -o flat.kith --model m.safetensors") != 0)
        fail_msg("%s", output);
    return 0;
}

static void test_text(void **state) {
    (void)state;
    assert_run("$K identify p.kith new --error 0.4 -k 2", 0,
               "of 2 named; of all asked about, at most 40 % get a false name");
    assert_says("measured on 288 photos of 24 names");
    assert_says("new/00001.png\n");
    assert_says("  1.0000  glyph00003  photos/glyph00003/00001.png");
    assert_run("$K identify photos photos/glyph00003/00001.png --error 0.4 --model m.safetensors --cache c",
               0, "glyph00003");
    assert_run("$K identify p.kith new/00001.png photos/glyph00003/00004.png --together --error 0.4", 0,
               "of 1 named");
}

static void test_json_and_csv(void **state) {
    (void)state;
    assert_run("$K identify p.kith new --error 0.4 --json", 0, "{\"error\": 0.4, ");
    assert_says("\"things\": [{\"photos\": [\"new/00001.png\"], \"name\": ");
    assert_says("\"false_name_high\": ");
    assert_says("\"candidates\": [{\"id\": 37, \"score\": 1");
    assert_run(
        "$K identify p.kith new --error 0.4 --csv", 0,
        "photo,name,false_name_rate,false_name_high,evidence,best_name,best_score,nearest_id,nearest_path\n");
    assert_says("\"new/00001.png\",");
    assert_says(",\"glyph00003\",1,37,\"");
    assert_run("$K identify p.kith new --error 0.4 --html names.html", 0,
               "names.html: photos, names and why");
    assert_run("grep -c glyph00003 names.html", 0, "");
}

static void test_what_cannot_be_read(void **state) {
    (void)state;
    assert_run("printf nonsense > bad.png && $K identify p.kith bad.png new/00001.png --error 0.4", 0,
               "kith: 1 image could not be read and is left out; the first: ");
    assert_says("of 1 named");
    assert_run("$K identify p.kith bad.png --error 0.4", 1, "kith: ");
    assert_run("$K identify p.kith empty", 1, "kith: ");
    assert_run("$K identify p.kith missing.png", 1, "missing.png");
    assert_run("$K identify empty new", 1, "holds no photos");
    assert_run("$K identify flat.kith new", 1, "0 labels of two items or more");
    assert_run("$K identify missing.kith new", 1, "missing.kith");
    assert_run("$K identify p.kith new --error 1e-5", 1, "cannot be promised");
}

static void test_usage(void **state) {
    (void)state;
    assert_run("$K identify p.kith new --error 0", 2, "--error");
    assert_run("$K identify p.kith new --error 2", 2, "--error");
    assert_run("$K identify p.kith new --error nan", 2, "--error");
    assert_run("$K identify p.kith", 2, "kith: identify");
    assert_run("$K identify p.kith new --json --csv", 2, "both given");
    assert_run("$K identify p.kith new --cache c", 2, "for a folder of photos");
    assert_run("$K same new/00001.png", 2, "kith: same");
    assert_run("$K same new/00001.png new/00002.png --error 0", 2, "--error");
    assert_run("$K same new/00001.png new/00002.png new/00001.png --explain x.png", 2,
               "--explain is for two photos");
}

static void test_same(void **state) {
    (void)state;
    assert_run("$K same new/00001.png new/00001.png --index p.kith", 0,
               "the same thing (score 1.0000): of pairs of different things ");
    assert_says(" this alike; of pairs of the same thing ");
    assert_run("$K same new/00001.png new/00002.png new/00001.png --index p.kith", 0, "verdict     photos\n");
    assert_says("  1.0000  ");
    assert_run("$K same new/00001.png new/00001.png --index p.kith --json", 0, "\"verdict\": \"same\"");
    assert_run("$K same new/00001.png new/00002.png --model m.safetensors", 0,
               "there is no curve of false-match rates");
    assert_run("$K same new/00001.png new/00002.png --index p.kith --html s.html --explain s.png", 0,
               "s.png: why they look alike");
    assert_run("test -s s.html && test -s s.png", 0, "");
    assert_run("printf nonsense > bad.png && $K same new/00001.png bad.png --index p.kith", 1, "bad.png");
    assert_run("$K same new/00001.png missing.png --index p.kith", 1, "missing.png");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_json_and_csv),
        cmocka_unit_test(test_what_cannot_be_read),
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_same),
    };
    return cmocka_run_group_tests(tests, set_up, testing_tear_down);
}
