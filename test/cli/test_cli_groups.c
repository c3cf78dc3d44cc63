/* kith index --groups as a user types it: in words, as JSON and as a page, kept up to date by --sync, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/as_typed.h"
#include "kith/kith.h"

enum { N_CLUSTERS = 12, N_EACH = 10, DIM = 8 };

/* Clusters around the axes and their opposites, whose rows lie in a row, with labels and without. */
static int set_up(void **state) {
    (void)state;
    kith_error err;
    char path[1024], labels[N_CLUSTERS * N_EACH * 8] = "";
    static float rows[N_CLUSTERS * N_EACH * DIM];
    memset(rows, 0, sizeof rows);
    for (int i = 0; i < N_CLUSTERS * N_EACH; i++) {
        const int cluster = i / N_EACH;
        for (int d = 0; d < DIM; d++)
            rows[i * DIM + d] = 0.02F * (float)((i * 37 + d * 101 + i * d * 13) % 17 - 8) / 8;
        rows[i * DIM + cluster % DIM] += cluster < DIM ? 1 : -1;
        snprintf(labels + strlen(labels), 8, "c%d\n", cluster);
    }
    const kith_array array = {KITH_F32, 2, {N_CLUSTERS * N_EACH, DIM}, rows};
    snprintf(path, sizeof path, "%s/e.npy", testing_folder());
    assert_ok(kith_npy_write(path, &array, &err), &err);
    snprintf(path, sizeof path, "%s/y.txt", testing_folder());
    testing_write(path, labels);
    assert_done(
        kith("rm -rf *.kith g.html && $K index e.npy -o i.kith && $K index e.npy -o y.kith --labels y.txt"),
        "y.kith: 120 items");
    return 0;
}

static void test_words(void **state) {
    (void)state;
    assert_done(kith("$K index i.kith --groups --html g.html"),
                "i.kith: 12 groups of 120 photos, 0 alone; of 100 pairs put together about 1 may be wrong "
                "(an estimate: too "
                "few pairs have names to measure it)\n");
    assert_said("     group    photos        id  like\n         1        10         ");
    assert_said("g.html: the groups as pictures\n");
    assert_done(kith("cat g.html"), "Group 12: 10 photos");
    assert_done(kith("$K search i.kith --id 5 --where 'group = 1' -k 100 --json"), "\"id\": 9");
    assert_null(strstr(output, "\"id\": 10,"));
    assert_done(kith("$K index i.kith --info"), "group (integer)");
}

static void test_measured(void **state) {
    (void)state;
    assert_done(kith("$K index y.kith --groups all --error 0.01"),
                "12 groups of 120 photos, 0 alone; of 100 pairs put together about 0 are wrong (measured on "
                "12 names; 100 of 100 "
                "pairs that belong together are)\n");
}

static void test_json(void **state) {
    (void)state;
    assert_done(kith("$K index y.kith --groups all --json"), "\"measured\": true");
    assert_said("\"items\": 120");
    assert_said("\"alone\": 0");
    assert_said("\"names\": 12");
    assert_said("\"precision\": 1,");
    assert_said("\"group\": 1, \"size\": 10, \"medoid\": ");
    assert_done(kith("$K index i.kith --groups --json"), "\"measured\": false");
    assert_said("\"precision\": null");
}

/* Photos: what is added is grouped by the sync, which says so. */
static void test_sync(void **state) {
    (void)state;
    assert_done(kith("rm -rf photos m.safetensors; $K synth --classes 3 --images 10 --size 32 photos && $K "
                     "embed --backbone convnet4 "
                     "--embedding 8 --crop 28 --generate 1 --save m.safetensors -o x.npy && $K index photos "
                     "-o p.kith --model "
                     "m.safetensors && $K index p.kith --groups all --error 0.5"),
                "names");
    assert_done(kith("for i in 1 2 3; do cp photos/glyph00001/00000.png photos/glyph00001/new$i.png; done; "
                     "$K index p.kith --sync"),
                "3 added");
    assert_said("3 grouped");
    assert_done(kith("$K index p.kith --renew-model"), "p.kith: 33 items");
    assert_done(kith("$K index p.kith --info"), "columns     none");
}

static void test_refusals(void **state) {
    (void)state;
    assert_refused(kith("$K index y.kith --groups"), 1, "all 120 items have a label");
    assert_said("--groups all groups what has a label, too");
    assert_refused(kith("$K index y.kith --groups some"), 2,
                   "'some' is one too many; --groups wants the index alone, or all");
    assert_refused(kith("$K index y.kith --groups --sync"), 2, "--sync and --groups are both given");
    assert_refused(kith("$K index y.kith --sync --error 0.1"), 2, "--error is for --groups");
    assert_refused(kith("$K index y.kith --info --html g.html"), 2, "--html is for --groups");
    assert_refused(kith("$K index y.kith --groups --error 0"), 2, "--error");
    assert_refused(kith("$K index none.kith --groups"), 1, "none.kith");
}

int main(void) {
#define EACH(test) cmocka_unit_test_setup(test, set_up)
    const struct CMUnitTest tests[] = {EACH(test_words), EACH(test_measured), EACH(test_json),
                                       EACH(test_sync), EACH(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
