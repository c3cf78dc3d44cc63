/* Facts of photos, tables and facets as a user types them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/as_typed.h"
#include "data/made_exif.h"

static int begin(void **state) {
    (void)state;
    assert_done(
        kith("rm -rf * && $K synth photos --classes 3 --images 2 --size 32 && "
             "$K embed --backbone convnet4 --embedding 16 --seed 9 --generate 2 --save m.safetensors"),
        "3 classes of 2 images");
    made_exif x;
    uint8_t block[MADE_EXIF_BYTES];
    char from[4096], to[1024];
    made_all(&x, false);
    snprintf(from, sizeof from, "%s/test/corpus/image/ok_exif_1.jpg", KITH_SOURCE_DIR);
    snprintf(to, sizeof to, "%s/photos/glyph00001/a.jpg", testing_folder());
    assert_true(made_jpeg(from, block, made_block(&x, block), to));
    return 0;
}

static void test_facts(void **state) {
    (void)state;
    assert_done(kith("$K index photos -o p.kith --model m.safetensors"),
                "p.kith: 7 items of 16 values; 7 added");
    assert_done(kith("$K index p.kith --facets camera,latitude,taken"),
                "camera: 1 item, 6 without\n       1  Canon EOS R6\nlatitude: 1 item, 6 without\n       1  "
                "-33.85875\n"
                "taken: 1 item, 6 without\n       1  2021-05-03\n");
    assert_done(kith("$K index p.kith --facets label --where 'not camera like %%Canon%%' --most 2"),
                "label: 6 items, 0 without\n       2  glyph00000\n       2  glyph00001\n          1 more\n");
    assert_done(kith("$K index p.kith --facets altitude --json"),
                "{\"facets\": [{\"column\": \"altitude\", \"type\": \"real\", \"items\": 1, \"without\": 6, "
                "\"different\": 1, "
                "\"values\": [{\"number\": 58.5, \"items\": 1}]}]}\n");
    assert_done(kith("$K search p.kith --id 0 --where 'taken >= 2021-05 and taken < 2021-06' --json"),
                "\"taken\": \"2021-05-03T14:07:22+02:00\"");
    assert_done(kith("$K index p.kith --sync --no-exif"),
                "7 items of 16 values; 1 with other values, 7 as before");
    assert_done(kith("$K index p.kith --sync"), "7 items of 16 values; 7 as before");
    assert_done(kith("$K index p.kith --facets camera"), "camera: 0 items, 7 without");
    assert_done(kith("$K index p.kith --compact && ! grep -q 'Canon EOS' p.kith/*"), "7 items");
    assert_done(kith("$K index p.kith --sync --exif --json"), "\"with_other_values\": 1,");
    assert_done(kith("$K index p.kith --facets camera"), "1  Canon EOS R6");
    assert_done(
        kith("$K index photos -o n.kith --model m.safetensors --no-exif && $K index n.kith --info --json"),
        "\"columns\": {}");
}

static void test_tables(void **state) {
    (void)state;
    assert_done(
        kith("printf "
             "'path,year,camera\\nglyph00001/a.jpg,1999,box\\nglyph00002/00000.png,2001,\\nx.jpg,1,\\n' > "
             "t.csv; "
             "$K index photos -o p.kith --model m.safetensors --meta t.csv"),
        "t.csv is of no photo here: x.jpg\nkith: camera: from the table, not from the photos' files\n");
    assert_said("p.kith: 7 items of 16 values; 7 added\n");
    assert_done(kith("$K index p.kith --facets year,camera"),
                "year: 2 items, 5 without\n       1  1999\n       1  2001\n");
    assert_said("1  box\n");
    assert_done(kith("printf 'path,year\\nglyph00001/a.jpg,2000\\n' > t.csv; $K index p.kith --sync"),
                "; 2 with other values, 7 as before\n");
    assert_done(kith("$K index p.kith --facets year"), "year: 1 item, 6 without\n       1  2000\n");
    assert_refused(kith("rm t.csv; $K index p.kith --sync"), 1, "t.csv");
    assert_said("--meta");
    assert_done(kith("$K index p.kith --sync --meta ''"), "; 1 with other values, 7 as before\n");
    assert_done(kith("$K index p.kith --sync"), "; 7 as before\n");
}

static void test_usage(void **state) {
    (void)state;
    assert_done(kith("$K index photos -o p.kith --model m.safetensors"), "7 added");
    assert_refused(kith("$K index p.kith --sync --exif --no-exif"), 2, "--exif and --no-exif are both given");
    assert_refused(kith("$K index p.kith --info --exif"), 2, "--exif is for a new index, --sync and --add");
    assert_refused(kith("$K index p.kith --compact --meta x.csv"), 2, "--meta is for a new index");
    assert_refused(kith("$K index p.kith --info --where 'id = 1'"), 2, "--where is for --facets");
    assert_refused(kith("$K index p.kith --facets colour"), 1, "the index has no column 'colour'");
    assert_refused(kith("$K index p.kith --facets taken --where 'x ='"), 1, "where: character 1");
    assert_refused(kith("$K index p.kith --facets taken --sync"), 2, "wanted one");
    assert_refused(kith("$K index photos -o q.kith --model m.safetensors --meta none.csv && ls q.kith"), 1,
                   "none.csv");
    assert_refused(kith("ls q.kith"), 2, "q.kith");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_facts, begin),
                                       cmocka_unit_test_setup(test_tables, begin),
                                       cmocka_unit_test_setup(test_usage, begin)};
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
