/* Tar files where commands take a data set: read in place, from the list of photos to the index and its searches. */
#include <stdio.h>
#include <string.h>

#include "support/testing.h"

static char output[65536];

#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

static void assert_says(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

static void make_shards(void) {
    const int status =
        run("cd %s && %s synth glyphs --classes 6 --images 4 >/dev/null && mkdir shards && cd glyphs && "
            "tar cf ../shards/part-00.tar glyph0000[0-2] && tar cf ../shards/part-01.tar glyph0000[3-5]",
            testing_folder(), testing_program());
    if (status != 0) fail_msg("%s", output);
}

static void test_data(void **state) {
    (void)state;
    make_shards();
    assert_int_equal(run("cd %s && %s data shards --check", testing_folder(), testing_program()), 0);
    assert_says("shards: tar, 24 images, 6 classes");
    assert_says("unreadable  0 files\n");
    assert_int_equal(
        run("cd %s && %s data 'shards/part-{00..01}.tar' --json", testing_folder(), testing_program()), 0);
    assert_says("\"images\": 24");
    /* A cut file is named, and the rest is read. */
    assert_int_equal(
        run("cd %s && mkdir cut && cp shards/*.tar cut && truncate -s 6000 cut/part-01.tar && %s data cut",
            testing_folder(), testing_program()),
        0);
    assert_says("not read    1 damaged or missing tar file\n");
    assert_says("  cut/part-01.tar: damaged at byte ");
    assert_says("unreadable  1 files");
    assert_int_equal(run("cd %s && %s data cut --check", testing_folder(), testing_program()), 1);
    assert_says("unreadable  1 files\n  cut/part-01.tar: damaged at byte ");
    assert_int_equal(run("cd %s && %s data 'shards/part-{00..02}.tar' --check --json 2>/dev/null",
                         testing_folder(), testing_program()),
                     1);
    assert_says("\"unreadable\": 1, \"unreadable_files\": [\"shards/part-02.tar\"]");
    assert_int_equal(run("cd %s && gzip -k shards/part-00.tar && %s data shards/part-00.tar.gz; "
                         "status=$?; rm shards/part-00.tar.gz; exit $status",
                         testing_folder(), testing_program()),
                     1);
    assert_says("is packed (gzip)");
    assert_one_line_of(output);
}

/* The list that the doctor writes names members, and trains as well. */
static void test_doctor(void **state) {
    (void)state;
    assert_int_equal(run("cd %s && %s data shards --doctor --no-vectors -o clean.csv && %s data clean.csv",
                         testing_folder(), testing_program(), testing_program()),
                     0);
    assert_says("clean.csv: csv, 24 images, 6 classes");
    assert_int_equal(
        run("cd %s && grep -c '^\"shards/part-01.tar/glyph0000[3-5]/' clean.csv", testing_folder()), 0);
    assert_says("12\n");
    assert_int_equal(run("cd %s && %s data cut --doctor --no-vectors", testing_folder(), testing_program()),
                     1);
    assert_says("error    files that cannot be read: 1\n  cut/part-01.tar: damaged at byte ");
    assert_int_equal(run("cd %s && %s data 'shards/part-{00..02}.tar' --doctor --no-vectors",
                         testing_folder(), testing_program()),
                     1);
    assert_says("  shards/part-02.tar: there is no such file\n");
}

static void test_index(void **state) {
    (void)state;
    const char *program = testing_program(), *folder = testing_folder();
    assert_int_equal(run("cd %s && %s index -o i.kith 'shards/part-{00..01}.tar' --views 2", folder, program),
                     0);
    assert_says("24 items of 256 values; 24 added");
    assert_int_equal(run("cd %s && %s search i.kith glyphs/glyph00004/00002.png -k 1", folder, program), 0);
    assert_says("1.0000");
    assert_says("shards/part-01.tar/glyph00004/00002.png");
    /* Members are searched for by their names, too. */
    assert_int_equal(
        run("cd %s && %s search i.kith shards/part-00.tar/glyph00001/00003.png -k 1", folder, program), 0);
    assert_says("shards/part-00.tar/glyph00001/00003.png");
    assert_int_equal(run("cd %s && touch shards/part-00.tar && %s index i.kith --sync", folder, program), 0);
    assert_says("12 touched, 12 as before");
    assert_int_equal(run("cd %s && cd glyphs && tar cf ../shards/part-01.tar glyph0000[35] && cd .. && %s "
                         "index i.kith --sync",
                         folder, program),
                     0);
    assert_says("20 items");
    assert_int_equal(run("cd %s && %s index i.kith --info", folder, program), 0);
    assert_says("mean of 2 views");
}

static void test_embed(void **state) {
    (void)state;
    assert_int_equal(run("cd %s && %s embed general shards/*.tar -o e.npy && grep -c "
                         "'^shards/part-01.tar/glyph0000[35]/' e.paths.txt",
                         testing_folder(), testing_program()),
                     0);
    assert_says("e.npy: float32 [20, 256]");
    assert_says("\n8\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_doctor),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_embed),
    };
    return cmocka_run_group_tests_name("cli/tar", tests, NULL, testing_tear_down);
}
