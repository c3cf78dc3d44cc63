/* kith index --names and its like: names in a table, as sidecars and as folders that kith train takes, also names that no folder may have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kith/kith.h"
#include "support/testing.h"

enum { OUTPUT_BYTES = 65536 };
static char output[OUTPUT_BYTES];

/* In the test's folder, with $K the program. */
static int kith(const char *command) {
    return testing_run(output, sizeof output, "cd %s && " TESTING_K " && %s", testing_folder(),
                       testing_program(), command);
}

static void assert_holds(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

static void assert_done(const char *command, const char *text) {
    const int status = kith(command);
    if (status != 0) fail_msg("%s: exit status %d: %s", command, status, output);
    assert_holds(text);
}

static void assert_refused(const char *command, int status, const char *text) {
    const int found = kith(command);
    if (found != status) fail_msg("%s: exit status %d, wanted %d: %s", command, found, status, output);
    assert_holds(text);
}

static const char *const hostile[] = {"../../up", "..",   ".hidden",    "a/b\\c:d*e?",
                                      "Otto",     "otto", "trailing. ", "<b>&\"quotes\", commas"};
enum { N_HOSTILE = sizeof hostile / sizeof hostile[0] };

/* Twelve photos of three classes; the first eight get hostile names. */
static int set_up(void **state) {
    (void)state;
    assert_done(
        "rm -rf * && $K synth photos --classes 3 --images 4 && "
        "$K embed --backbone convnet4 --embedding 16 --seed 9 --generate 2 --save m.safetensors && "
        "$K index photos -o p.kith --model m.safetensors",
        "12 added\n");
    kith_error err;
    char path[1024];
    kith_collection *c = NULL;
    KITH_OPTIONS(kith_collection_open_options, how);
    how.mode = KITH_INDEX_WRITE;
    snprintf(path, sizeof path, "%s/p.kith", testing_folder());
    assert_ok(kith_collection_open(path, &how, &c, &err), &err);
    for (int64_t i = 0; i < N_HOSTILE; i++) {
        kith_name_result result;
        KITH_OPTIONS(kith_name_request, o);
        o.who = "anna";
        o.ids = &i;
        o.n_ids = 1;
        o.name = hostile[i];
        assert_ok(kith_collection_name(c, &o, &result, &err), &err);
    }
    kith_collection_free(c);
    return 0;
}

static void test_table(void **state) {
    (void)state;
    assert_done("$K index p.kith --names n.csv && cat n.csv", "12 rows in n.csv\n");
    assert_holds("id,path,label,named_by,named_kind\n0,glyph00000/00000.png,../../up,anna,person\n");
    assert_holds("7,glyph00001/00003.png,\"<b>&\"\"quotes\"\", commas\",anna,person\n");
    assert_holds("11,glyph00002/00003.png,glyph00002,,\n");
    assert_done("$K index p.kith --names n.csv --json", "\"written\": 12, \"folders\": 0, \"missing\": 0, ");
    assert_refused("$K index p.kith --names no/n.csv", 1, "no: there is no such folder");
    assert_refused("$K index p.kith --names n.txt", 2, ".csv");
    assert_refused("$K index p.kith --names n.csv --sync", 2, "wanted one");
}

static void test_sidecars(void **state) {
    (void)state;
    assert_done("echo mine > photos/glyph00002/00000.png.xmp; $K index p.kith --names-xmp",
                "11 sidecars beside their photos\n");
    assert_holds("1 sidecars of other programs stay as they are\n");
    assert_done("cat photos/glyph00002/00000.png.xmp", "mine\n");
    assert_done("cat photos/glyph00001/00003.png.xmp",
                "<dc:subject><rdf:Bag><rdf:li>&lt;b&gt;&amp;&quot;quotes&quot;, "
                "commas</rdf:li></rdf:Bag></dc:subject>");
    /* Its own ones are written again. */
    assert_done("$K index p.kith --names-xmp", "11 sidecars beside their photos\n");
    assert_done("$K index p.kith --names-xmp --xmp x/ && find x -name '*.xmp' | sort | head -1",
                "x/glyph00000/00000.png.xmp\n");
    assert_done("rm photos/glyph00002/00001.png && $K index p.kith --names-xmp --xmp y",
                "1 photos with a name are not there, and were left out\n");
    assert_refused("$K index p.kith --names n.csv --xmp x", 2, "--xmp is for --names-xmp");
}

static void test_folders(void **state) {
    (void)state;
    assert_done("$K index p.kith --names-folders f", "12 photos of 9 names in f\n");
    assert_holds("7 names cannot be folders as they are: ../../up -> ___.._up\n");
    /* All of them are in the folder, each a link to its photo. */
    assert_done(
        "ls -A f | tr '\\n' '|'; ls -A | tr '\\n' '|'; find f -type l | wc -l; find f -xtype l | wc -l",
        "f|m.safetensors|p.kith|photos|12\n0\n");
    assert_holds("_hidden|");
    assert_holds("a_b_c_d_e_|");
    assert_holds("Otto|");
    assert_holds("otto (2)|");
    assert_refused("$K index p.kith --names-folders f", 1, "f is not empty");
    assert_done("$K index p.kith --names-folders g --copy && find g -type f | wc -l", "\n12\n");
    assert_done("cmp g/glyph00002/00001.png photos/glyph00002/00001.png && echo equal", "equal\n");
    assert_refused("$K index p.kith --names n.csv --copy", 2, "--copy is for --names-folders");
    /* Two photos of one name and one file name. */
    assert_done("$K index p.kith --sync >/dev/null && $K data f", "9");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_table, set_up),
        cmocka_unit_test_setup(test_sidecars, set_up),
        cmocka_unit_test_setup(test_folders, set_up),
    };
    return cmocka_run_group_tests_name("cli_names", tests, NULL, testing_tear_down);
}
