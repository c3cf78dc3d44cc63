/* kith index as a user types it: made from photos and from vectors, brought up to date, looked after. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/testing.h"

enum { OUTPUT_BYTES = 65536 };
static char output[OUTPUT_BYTES];

#define run(...) testing_run(output, sizeof output, __VA_ARGS__)
/* In the test's folder, with $K the program. */
#define kith(...) run_here(__VA_ARGS__)

static int run_here(const char *fmt, ...) KITH_PRINTF(1, 2);
static int run_here(const char *fmt, ...) {
    char command[4096];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    return run("cd %s && " TESTING_K " && %s", testing_folder(), testing_program(), command);
}

static void assert_holds(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

/* A float32 vector of length 1 has this cosine with itself, but for the last bit. */
static const double last_bit = 1.2e-7;

/* Behind `text` the score of a hit is written, and the hit has the query's own vector. */
static void assert_own_vector(const char *text, double tolerance) {
    assert_holds(text);
    const double score = strtod(strstr(output, text) + strlen(text), NULL);
    if (fabs(score - 1) > tolerance)
        fail_msg("the score behind '%s' is %.9g, not 1: %s", text, score, output);
}

/* The best hit of --json is this item, and has the query's own vector, to 1e-6. */
static void assert_same_photo(int id) {
    char text[64];
    snprintf(text, sizeof text, "\"hits\": [{\"id\": %d, \"score\": ", id);
    assert_own_vector(text, 1e-6);
}

static void assert_done(int status, const char *text) {
    if (status != 0) fail_msg("exit status %d: %s", status, output);
    assert_holds(text);
}

/* One line, that text in it, that exit status. */
static void assert_refused(int found, int wanted, const char *text) {
    if (found != wanted) fail_msg("exit status %d, wanted %d: %s", found, wanted, output);
    assert_holds(text);
    assert_one_line_of(output);
}

/* Twelve photos of three classes, a model and an index of them. */
static int set_up(void **state) {
    (void)state;
    assert_done(
        kith("rm -rf * && $K synth photos --classes 3 --images 4 && "
             "$K embed --backbone convnet4 --embedding 16 --seed 9 --generate 2 --save m.safetensors && "
             "$K index photos -o p.kith --model m.safetensors"),
        "p.kith: 12 items of 16 values; 12 added\n");
    return 0;
}

/* Made once more: the way to bring it up to date is named. */
static void test_made_again(void **state) {
    (void)state;
    assert_refused(
        kith("$K index photos -o p.kith --model m.safetensors"), 1,
        "kith: p.kith is an index already (bring it up to date with: kith index p.kith --sync; or give "
        "another name)\n");
    assert_done(kith("$K index p.kith --sync"), "12 as before\n");
    assert_refused(kith("mkdir other && touch other/x && $K index photos -o other --model m.safetensors"), 1,
                   "other");
}

static void test_info(void **state) {
    (void)state;
    assert_done(kith("$K index p.kith --info"), "items       12\n");
    assert_holds("vectors     16 values, cosine\n");
    assert_holds("/m.safetensors\n");
    assert_holds("embedding of convnet4 (pool avg), squash256");
    assert_holds("/photos\n");
    assert_done(kith("$K index p.kith --info --json"), "\"items\": 12, ");
    assert_holds("\"tier\": \"exact\"");
    assert_done(kith("$K index p.kith --check"), "all sound\n");
}

/* Candidates by the first values: an index remembers how many. */
static void test_first_values(void **state) {
    (void)state;
    assert_done(kith("$K index photos -o first.kith --first 8 --model m.safetensors --json"),
                "\"first\": 8, ");
    assert_done(kith("$K index first.kith --info --json"), "\"first\": 8, ");
    assert_done(kith("$K index p.kith --info --json"), "\"first\": 0, ");
    assert_done(kith("$K search first.kith photos/glyph00000/00000.png -k 1 --json"), "\"id\": 0,");
    assert_refused(kith("$K index photos -o more.kith --first 17 --model m.safetensors"), 1,
                   "first is 17 values of 16; wanted 1 to 16");
    assert_done(kith("test ! -e more.kith && echo none"), "none");
    assert_refused(kith("$K index first.kith --sync --first 4"), 2, "--first is for a new index");
}

static void test_sync(void **state) {
    (void)state;
    assert_done(kith("$K index p.kith --sync"), "p.kith: 12 items of 16 values; 12 as before\n");
    /* Touched: the same contents. Moved into another class: not embedded again, and found there. */
    assert_done(
        kith("touch -d 2001-01-01 photos/glyph00000/00000.png && "
             "mv photos/glyph00000/00001.png photos/glyph00001/moved.png && "
             "cp photos/glyph00002/00000.png photos/glyph00000/00002.png && "
             "rm photos/glyph00002/00001.png && cp photos/glyph00002/00003.png photos/glyph00001/new.png && "
             "$K index p.kith --sync"),
        "p.kith: 12 items of 16 values; 1 added, 1 changed, 1 moved, 1 touched, 1 removed, 8 as before\n");
    assert_done(kith("$K search p.kith photos/glyph00001/moved.png -k 1 --json"),
                "/photos/glyph00001/moved.png");
    assert_holds("\"label\": \"glyph00001\"");
    assert_done(kith("$K index p.kith --sync"), "12 as before\n");
    /* A size that changes while the date does not. */
    assert_done(kith("touch -r photos/glyph00002/00002.png t && cp photos/glyph00001/00003.png "
                     "photos/glyph00002/00002.png && touch -r t photos/glyph00002/00002.png && "
                     "$K index p.kith --sync --json"),
                "\"changed\": 1, ");
    assert_holds("\"same\": 11, ");
}

/* A link that was sent keeps its meaning: an item is known by its id, whatever its file is called. */
static void test_an_id_is_for_ever(void **state) {
    (void)state;
    assert_done(
        kith("$K search p.kith photos/glyph00000/00001.png -k 1 --json >before && "
             "mv photos/glyph00000/00001.png photos/glyph00001/moved.png && $K index p.kith --sync && "
             "$K search p.kith photos/glyph00001/moved.png -k 1 --json >after && "
             "grep -o '\"id\": [0-9]*' before after"),
        "12 items of 16 values; 1 moved, 11 as before\n");
    assert_holds("before:\"id\": 1\nafter:\"id\": 1\n");
    assert_done(
        kith("$K search p.kith photos/glyph00001/moved.png -k 12 --where 'label = glyph00001' --csv | "
             "grep -c ,"),
        "6\n"); /* five and the heading */
    /* All of them, to another folder. */
    assert_done(kith("mv photos elsewhere && $K index p.kith --sync elsewhere --json"), "\"moved\": 12, ");
    assert_done(kith("$K search p.kith elsewhere/glyph00001/moved.png -k 1 --json"), "\"id\": 1,");
    assert_done(kith("$K index p.kith --compact && $K index p.kith --check && "
                     "$K search p.kith elsewhere/glyph00001/moved.png -k 1 --json"),
                "\"id\": 1,");
    assert_done(kith("$K index p.kith --sync"), "; 12 as before\n");
}

/* Names that other photos had before: two swapped, and a camera's numbers that move up by one. */
static void test_names_that_are_taken_over(void **state) {
    (void)state;
    assert_done(kith("cd photos/glyph00000 && mv 00000.png t && mv 00001.png 00000.png && mv t 00001.png && "
                     "cd ../glyph00001 && mv 00003.png 00004.png && mv 00002.png 00003.png && mv 00001.png "
                     "00002.png && "
                     "touch -d 2001-01-01 ../*/* && cd ../.. && $K index p.kith --sync"),
                "p.kith: 12 items of 16 values; 5 moved, 7 touched\n");
    for (int i = 0; i < 12; i++) {
        static const int was[] = {1, 0, 2, 3,  4,  -1, 5,
                                  6, 8, 9, 10, 11, 7}; /* by place: class, then number */
        char file[64], wanted[32];
        const int at = i < 5 ? i : i + 1,
                  last = at == 12; /* 00001 of the second class is gone, it has a 00004 */
        snprintf(file, sizeof file, "photos/glyph%05d/%05d.png", last ? 1 : at / 4, last ? 4 : at % 4);
        snprintf(wanted, sizeof wanted, "\"id\": %d,", was[at]);
        assert_done(kith("$K search p.kith %s -k 1 --json", file), wanted);
        assert_holds(file);
    }
    /* One gives its name to another, and is gone. */
    assert_done(kith("mv photos/glyph00002/00000.png photos/glyph00002/00001.png && $K index p.kith --sync"),
                "p.kith: 11 items of 16 values; 1 moved, 1 removed, 10 as before\n");
    assert_done(kith("$K search p.kith photos/glyph00002/00001.png -k 1 --json"), "\"id\": 8,");
    /* Its name is given to a new photo. */
    assert_done(kith("mv photos/glyph00002/00001.png photos/glyph00002/00009.png && "
                     "$K synth others --classes 1 --images 1 --seed 77 >/dev/null && "
                     "cp others/*/00000.png photos/glyph00002/00001.png && $K index p.kith --sync"),
                "p.kith: 12 items of 16 values; 1 added, 1 moved, 10 as before\n");
    assert_done(kith("$K search p.kith photos/glyph00002/00009.png -k 1 --json"), "\"id\": 8,");
    assert_done(kith("$K index p.kith --check && $K index p.kith --sync"), "; 12 as before\n");
}

/* A list gives a photo another label. */
static void test_labels_of_a_list(void **state) {
    (void)state;
    assert_done(
        kith("printf 'path,label\\nphotos/glyph00000/00000.png,oak\\nphotos/glyph00000/00001.png,elm\\n"
             "photos/glyph00001/00000.png,oak\\n' > list.csv && "
             "$K index list.csv -o l.kith --model m.safetensors"),
        "l.kith: 3 items of 16 values; 3 added\n");
    assert_done(kith("sed -i s/elm/ash/ list.csv && $K index l.kith --sync"),
                "l.kith: 3 items of 16 values; 1 relabelled, 2 as before\n");
    assert_done(kith("$K search l.kith photos/glyph00000/00001.png -k 3 --where 'label = ash' --json"),
                "\"id\": 1,");
    assert_done(kith("$K index l.kith --sync --json"), "\"relabelled\": 0, ");
    assert_holds("\"same\": 3, ");
}

/* What was removed by hand stays out, also under another name, until it is added by hand. */
static void test_removed_by_hand(void **state) {
    (void)state;
    assert_done(kith("$K index p.kith --remove 'glyph00002' && $K index p.kith --sync"),
                "p.kith: 8 items of 16 values; 8 as before, 4 left out (removed by hand)\n");
    assert_done(kith("$K index p.kith --info"),
                "left out    4 removed by hand: --sync leaves them out, --add takes them back\n");
    assert_done(kith("$K index p.kith --info --json"), "\"removed_by_hand\": 4, ");
    assert_done(kith("mv photos/glyph00002/00001.png photos/glyph00000/other.png && "
                     "rm photos/glyph00002/00003.png && $K index p.kith --sync --json"),
                "\"left_out\": 3, ");
    assert_holds("\"items\": 8, ");
    assert_done(kith("$K index p.kith --compact && $K index p.kith --sync"),
                "3 left out (removed by hand)\n");
    assert_done(kith("$K index p.kith --add photos/glyph00000/other.png photos/glyph00002/00000.png"),
                "p.kith: 10 items of 16 values; 2 added\n");
    assert_done(kith("$K index p.kith --sync"), "; 10 as before, 1 left out (removed by hand)\n");
    /* Also in another place, and what moves there. */
    assert_done(kith("mkdir there && mv photos p.kith m.safetensors there && cd there && "
                     "mv photos/glyph00002/00002.png photos/hidden.png && "
                     "mv photos/glyph00000/00000.png photos/shown.png && $K index p.kith --sync"),
                "; 1 moved, 9 as before, 1 left out (removed by hand)\n");
    assert_done(kith("cd there && $K index p.kith --sync"), "; 10 as before, 1 left out (removed by hand)\n");
    assert_done(kith("mv there/* . && $K index p.kith --sync"),
                "; 10 as before, 1 left out (removed by hand)\n");
    assert_done(kith("$K search p.kith photos/shown.png -k 1 --json"), "/photos/shown.png\"");
    assert_done(kith("$K index p.kith --info --json"), "\"removed_by_hand\": 2, ");
    assert_done(kith("$K index p.kith --add photos && $K index p.kith --sync"), "; 11 as before\n");
}

/* A photo that is in the index stays there under the name of one that was removed, and that one stays out under any name. */
static void test_a_removed_photos_name(void **state) {
    (void)state;
    assert_done(kith("$K index p.kith --remove glyph00000/00000.png && cd photos/glyph00000 && "
                     "mv 00000.png t && mv 00001.png 00000.png && mv t 00001.png && cd ../.. && "
                     "$K index p.kith --sync && $K index p.kith --sync"),
                "p.kith: 11 items of 16 values; 1 moved, 10 as before, 1 left out (removed by hand)\n");
    assert_holds("; 11 as before, 1 left out (removed by hand)\n");
    assert_done(kith("$K search p.kith photos/glyph00000/00000.png -k 1 --json"), "\"hits\"");
    assert_same_photo(1);
    assert_done(
        kith("rm photos/glyph00000/00001.png && "
             "mv photos/glyph00000/00002.png photos/glyph00000/00001.png && $K index p.kith --sync && "
             "$K search p.kith photos/glyph00000/00001.png -k 1 --json"),
        "p.kith: 11 items of 16 values; 1 moved, 10 as before\n");
    assert_same_photo(2);
    /* Over another one, which is lost. */
    assert_done(kith("$K index p.kith --remove glyph00002/00000.png && "
                     "mv photos/glyph00002/00000.png photos/glyph00002/00001.png && $K index p.kith --sync"),
                "p.kith: 9 items of 16 values; 1 removed, 9 as before, 1 left out (removed by hand)\n");
    /* Other contents under its name are the same photo, edited. */
    assert_done(kith("$K index p.kith --remove glyph00001/00000.png && echo >>photos/glyph00001/00000.png && "
                     "rm photos/glyph00001/00001.png && $K index p.kith --sync"),
                "; 1 removed, 7 as before, 2 left out (removed by hand)\n");
}

/* Where a new file takes the name of a removed photo, that photo stays out under its own new name; so do several in a chain. */
static void test_a_removed_photo_elsewhere(void **state) {
    (void)state;
    assert_done(
        kith("cd photos/glyph00000 && $K index ../../p.kith --remove glyph00000/00000.png && "
             "mv 00000.png moved.png && cp 00001.png 00000.png && printf x >>00000.png && cd ../.. && "
             "$K index p.kith --sync && $K index p.kith --sync"),
        "p.kith: 12 items of 16 values; 1 added, 11 as before, 1 left out (removed by hand)\n");
    assert_holds("; 12 as before, 1 left out (removed by hand)\n");
    assert_done(kith("$K search p.kith photos/glyph00000/00000.png -k 20 --json --where \"path like "
                     "'%%moved.png'\""),
                "\"hits\": []");
    assert_done(kith("cd photos/glyph00001 && $K index ../../p.kith --remove 'glyph00001/0000[01].png' && "
                     "mv 00000.png moved.png && mv 00001.png 00000.png && cp 00002.png 00001.png && "
                     "printf x >>00001.png && cd ../.. && $K index p.kith --sync && $K index p.kith --sync"),
                "p.kith: 11 items of 16 values; 1 added, 10 as before, 3 left out (removed by hand)\n");
    assert_holds("; 11 as before, 3 left out (removed by hand)\n");
    assert_done(kith("$K search p.kith photos/glyph00001/00001.png -k 20 --json --where \"path like "
                     "'%%moved.png' or path like '%%glyph00001/00000.png'\""),
                "\"hits\": []");
    /* A copy beside it is a photo of its own. */
    assert_done(kith("cp photos/glyph00001/moved.png photos/glyph00001/copy.png && $K index p.kith --sync"),
                "p.kith: 12 items of 16 values; 1 added, 11 as before, 3 left out (removed by hand)\n");
}

/* One odd name is no reason to stop: it is left out and named. A file no image is as large as is not read to hash it. */
static void test_odd_files(void **state) {
    (void)state;
    assert_done(
        kith("cp photos/glyph00000/00000.png photos/glyph00001/new.png && "
             "printf x >\"$(printf 'photos/glyph00000/a\\nb.png')\" && ln -s .. photos/glyph00000/up && "
             "ln -s self.png photos/glyph00000/self.png && touch photos/glyph00000/a.mp4 && "
             "truncate -s 1T photos/glyph00002/sparse.jpg && rm photos/glyph00002/00000.png && "
             "timeout 20 $K index p.kith --sync"),
        "p.kith: 12 items of 16 values; 1 added, 1 removed, 11 as before\n");
    assert_holds(
        "warning: not read: 1 video, 1 name that cannot be kept, 2 links in a circle or to nowhere; the "
        "first is ");
    assert_holds("photos/glyph00000/a\\x0ab.png: its name has a control character");
    assert_holds("1 image could not be read and is left out; the first: ");
    assert_holds("sparse.jpg has 1099511627776 bytes; the limit is 1073741824\n");
    /* Among those that must be told apart by their contents. */
    assert_done(
        kith("truncate -s 1T photos/glyph00001/00000.png && mv photos/glyph00001/00001.png photos/1.png && "
             "timeout 20 $K index p.kith --sync"),
        "p.kith: 11 items of 16 values; 1 moved, 10 as before\n");
}

/* An index that kith 0.2 had made before ids outlived moves: it opens, answers, and is brought up to date. */
static void test_an_older_index(void **state) {
    (void)state;
    assert_done(kith("cp -r %s/test/golden/index-0.2 old && chmod -R u+w old && cd old && "
                     "$K index old.kith --check && $K index old.kith --info --json",
                     testing_source()),
                "\"items\": 8, \"removed\": 1, \"removed_by_hand\": 0, ");
    assert_holds("\"format\": 1, ");
    assert_done(
        kith("cd old && $K search old.kith photos/glyph00002/00001.png --model model.safetensors -k 1 "
             "--json"),
        "\"hits\"");
    assert_same_photo(7);
    assert_done(kith("cd old && $K index old.kith --sync photos --model model.safetensors"),
                "old.kith: 9 items of 4 values; 1 added, 8 moved\n");
    assert_done(kith("cd old && $K search old.kith photos/glyph00002/00001.png -k 1 --json"), "\"hits\"");
    assert_same_photo(7);
    assert_holds("old/photos/glyph00002/00001.png\"");
    assert_done(kith("cd old && $K index old.kith --sync && $K index old.kith --check"), "; 9 as before\n");
}

/* What cannot be read is named and left out; it goes when it was there before. */
static void test_unreadable_files(void **state) {
    (void)state;
    assert_done(kith("echo no > photos/glyph00000/00000.png && $K index p.kith --sync"),
                "1 image could not be read and is left out; the first: ");
    assert_holds("/photos/glyph00000/00000.png: the file begins with byte 0x6e");
    assert_holds("p.kith: 11 items of 16 values; 11 as before\n");
    assert_done(kith("$K index p.kith --sync --json 2>/dev/null"),
                "\"unreadable\": 1, \"unreadable_files\": [\"");
    assert_refused(
        kith(
            "mkdir bad && echo no > bad/a.png && $K index bad -o b.kith --model m.safetensors 2>&1 | grep -v "
            "warning; test ! -e b.kith || echo there"),
        0, "no image of 1 could be read; the first: ");
}

static void test_add_and_remove(void **state) {
    (void)state;
    assert_done(kith("mkdir more more/owl && cp photos/glyph00000/00000.png more/owl/1.png && "
                     "cp photos/glyph00000/00001.png photos/glyph00001/9.png && "
                     "cp photos/glyph00000/00001.png photos/glyph00001/8.png && "
                     "$K index p.kith --add more photos/glyph00001/9.png"),
                "p.kith: 14 items of 16 values; 2 added\n");
    assert_done(kith("$K search p.kith more/owl/1.png -k 20 --csv"), "\"owl\"");
    assert_holds("\"glyph00001\",\"");
    assert_holds("/glyph00001/9.png"); /* its class is its folder's, though it was named alone */
    if (strstr(output, "8.png")) fail_msg("8.png was not named: %s", output);
    assert_done(kith("$K index p.kith --sync"), "p.kith: 15 items of 16 values; 1 added, 14 as before\n");
    assert_done(kith("$K index p.kith --remove 'owl' --remove '*/000?3.png'"), "; 4 removed\n");
    assert_refused(kith("$K index p.kith --remove nothing"), 1, "no item's path is like 'nothing'");
    assert_done(kith("$K index p.kith --compact && $K index p.kith --check"),
                "p.kith: 11 items of 16 values\n");
}

/* A folder that is not there, or most of it gone, is no reason to empty an index. */
static void test_missing_folders(void **state) {
    (void)state;
    assert_refused(kith("mv photos elsewhere && $K index p.kith --sync"), 1,
                   "there is no such file or folder");
    assert_holds("mount the disk, or name the folders");
    assert_refused(
        kith("mkdir photos && cp -r elsewhere/glyph00000 photos && touch -d 2001-01-01 photos/*/* && "
             "$K index p.kith --sync"),
        1, "8 of the 12 items of the index are not in the folders any more (mount the disk, or give --force");
    assert_done(kith("$K index p.kith --sync elsewhere"), "p.kith: 12 items of 16 values; 12 moved\n");
    assert_done(kith("$K index p.kith --info"), "/elsewhere\n");
    assert_done(kith("$K index p.kith --sync photos --force"),
                "p.kith: 4 items of 16 values; 4 moved, 8 removed\n");
}

/* A data set of a named layout, a recipe; and folders that take its place. */
static void test_data_sets(void **state) {
    (void)state;
    assert_done(kith("$K index photos -o d.kith --dataset folder --split test --model m.safetensors"),
                "d.kith: 4 items of 16 values; 4 added\n");
    assert_done(kith("$K index d.kith --sync"), "; 4 as before\n");
    assert_done(kith("cp -r photos/glyph00000 flat && $K index d.kith --sync flat --force"),
                "; 4 added, 4 removed\n");
    assert_done(kith("$K index d.kith --sync"), "; 4 as before\n"); /* not as a folder per class */
    assert_done(kith("printf 'data: {root: photos}\\n' > r.yaml && $K index r.yaml -o r.kith --split train "
                     "--model m.safetensors"),
                "r.kith: 8 items of 16 values; 8 added\n");
    assert_done(kith("$K index r.kith --sync"), "; 8 as before\n");
    /* Paths of this recipe begin in the working folder; pictures are found from elsewhere too. */
    assert_done(
        run("cd / && %s search %s/r.kith %s/photos/glyph00000/00000.png -k 2 --html %s/r.html && grep -c 'no "
            "picture' "
            "%s/r.html",
            testing_program(), testing_folder(), testing_folder(), testing_folder(), testing_folder()) == 1
            ? 0
            : 1,
        "r.html: the hits as pictures");
    assert_refused(kith("$K index r.yaml photos -o x.kith --model m.safetensors"), 1, "wanted one data set");
}

static void test_another_model(void **state) {
    (void)state;
    assert_refused(kith("$K embed --backbone convnet4 --embedding 16 --seed 8 --generate 2 --save "
                        "n.safetensors >/dev/null && "
                        "$K index p.kith --sync --model n.safetensors"),
                   1, "model");
    assert_refused(kith("$K search p.kith photos/glyph00000/00000.png --model n.safetensors"), 1, "model");
    assert_refused(kith("mv m.safetensors moved.safetensors && $K search p.kith photos/glyph00000/00000.png"),
                   1, "m.safetensors");
    assert_done(kith("$K search p.kith photos/glyph00000/00000.png --model moved.safetensors -k 1"),
                "1.0000");
}

/* False-match rates, from classes of a data set; what was not measured is not promised. */
static void test_calibration(void **state) {
    (void)state;
    assert_refused(kith("$K index p.kith --calibrate nowhere"), 1,
                   "nowhere: there is no such file or folder");
    assert_done(
        kith("$K index p.kith --calibrate photos --split all"),
        "p.kith: false-match rates from 18 pairs of the same and 48 pairs of different things, of 3 classes; "
        "so few tell rates from 0.0209 on\n");
    assert_done(kith("$K index p.kith --info"), "false-match rates known: --same works, measured on: data\n");
    assert_done(kith("$K search p.kith photos/glyph00000/00000.png -k 12 --same 0.0209 --csv"),
                ",1,0,1,0.0208333333,\"glyph00000\"");
    /* The threshold of a rate finds hits up to that rate. */
    assert_int_equal(
        kith("$K search p.kith photos -k 12 --same 0.25 --csv | awk -F, 'NR > 1 && $5 > 0.2501 { n++ } "
             "END { exit n > 0 }'"),
        0);
    assert_int_equal(kith("$K search p.kith photos -k 12 --same 0.25 --csv | awk -F, 'NR > 1 && $5 > 0.1 { "
                          "n++ } END { exit !n }'"),
                     0);
    assert_refused(kith("$K search p.kith photos --same 0.001"), 1,
                   "same is 0.001; the pairs that were measured tell rates from 0.0209 on");
    assert_done(kith("$K index p.kith --sync && $K index p.kith --info --json"), "\"calibrated\": true");
}

static long commits(const char *index) {
    assert_done(kith("$K index %s --info --json", index), "\"commit\": ");
    return strtol(strstr(output, "\"commit\": ") + strlen("\"commit\": "), NULL, 10);
}

/* An index with labels measures its own false-match rates, again when a tenth of it has changed, and never those of the user anew. */
static void test_own_false_match_rates(void **state) {
    (void)state;
    assert_done(
        kith("$K synth more --classes 12 --images 14 && $K index more -o o.kith --model m.safetensors"),
        "o.kith: 168 items of 16 values; 168 added\n");
    assert_done(kith("$K index o.kith --info"),
                "false-match rates known: --same works, measured on: index\n");
    assert_done(kith("$K index o.kith --info --json"),
                "\"calibrated\": true, \"calibration_source\": \"index\"");
    assert_done(kith("$K search o.kith more/glyph00003/00001.png --same 0.01 --csv"), "query,rank,id,score");
    assert_own_vector(",1,43,", last_bit);
    assert_refused(kith("$K search o.kith more/glyph00003/00001.png --same 1e-5"), 1,
                   "tell rates from 7.74e-05 on");
    /* 16 of 168 items are less than a tenth: one commit. The 17th makes another one with the new curve. */
    long before = commits("o.kith");
    assert_done(kith("for i in $(seq 0 15); do cp more/glyph00000/00000.png more/glyph00001/n$i.png; done; "
                     "$K index o.kith --sync"),
                "16 added");
    assert_int_equal(commits("o.kith"), before + 1);
    assert_done(kith("cp more/glyph00002/00000.png more/glyph00001/one.png && $K index o.kith --add more"),
                "1 added");
    assert_int_equal(commits("o.kith"), before + 3);
    /* What changed is new, though as many items are there. */
    before = commits("o.kith");
    assert_done(kith("for i in 0 1 2 3 4 5 6 7 8 9; do for k in 3 4; do cp more/glyph00005/0000$i.png "
                     "more/glyph0000$k/0000$i.png; done; done; $K index o.kith --sync"),
                "185 items of 16 values; 20 changed");
    assert_int_equal(commits("o.kith"), before + 2);
    before = commits("o.kith");
    assert_done(kith("$K index o.kith --sync"), "185 as before");
    assert_int_equal(commits("o.kith"), before);
    /* The user's own stay. */
    assert_done(kith("$K index o.kith --calibrate photos --split all"), "from 18 pairs");
    assert_done(kith("rm -r more/glyph00001 && $K index o.kith --sync && $K index o.kith --info"),
                "measured on: data\n");
    /* Until the index itself is named. */
    assert_done(kith("$K index o.kith --calibrate ./o.kith"), " of 11 classes; --same 0.01 is a score of ");
    assert_done(kith("$K index o.kith --info"), "measured on: index\n");
    /* Labels that are gone say nothing of the items that are left. */
    assert_done(kith("rm -r more/glyph0000[2-8] && $K index o.kith --sync --force && $K index o.kith --info"),
                "false-match rates not known");
    assert_refused(kith("$K index o.kith --calibrate o.kith"), 1, "o.kith has 4 labels, ");
}

/* An index of vectors has no model and no folders: its labels are all there is. */
static void test_own_false_match_rates_of_vectors(void **state) {
    (void)state;
    assert_done(kith("$K synth more --classes 14 --images 11 && $K embed m.safetensors more -o v.npy && "
                     "$K index v.npy -o v.kith --labels v.labels.txt && $K index v.kith --info"),
                "measured on: index\n");
    /* No room for the curve: the index is there without, and can be measured later. */
    assert_done(kith("trap '' XFSZ; ulimit -f 34; $K index v.npy -o w.kith --labels v.labels.txt 2>&1"),
                "kith: the index is complete, but its false-match rates were not measured: cannot write ");
    assert_holds("w.kith: 154 items of 16 values\n");
    assert_done(kith("$K index w.kith --info"), "false-match rates not known");
    assert_refused(kith("$K search w.kith v.npy --same 0.01"), 1,
                   "the index itself if its items have labels");
    assert_done(kith("$K index w.kith --calibrate w.kith"), "of 14 classes; --same 0.01 is a score of ");
    assert_done(kith("$K search w.kith v.npy --same 0.01 -k 1 --csv"), "0,1,0,");
}

/* Beside the curve of the model's validation classes. */
static void test_model_false_match_rates(void **state) {
    (void)state;
    assert_done(kith("$K synth more --classes 24 --images 10 && "
                     "$K train %s/recipes/quickstart.yaml --out run --set data.root=more --set optim.steps=2 "
                     "--set data.validation=0.5 && $K index photos -o v.kith --model run && "
                     "$K index v.kith --info",
                     testing_source()),
                "measured on: validation\n"); /* too few labels */
    assert_done(kith("$K index v.kith --add more && $K index v.kith --info"),
                "measured on: validation, index\n");
    assert_done(
        kith("$K embed run more -o e.npy && $K index e.npy -o w.kith --labels e.labels.txt --model run "
             "&& $K index w.kith --info"),
        "measured on: validation, index\n");
}

/* Vectors alone, with labels. */
static void test_false_match_rates_of_vectors(void **state) {
    (void)state;
    assert_done(kith("$K synth more --classes 12 --images 14 && $K embed m.safetensors more -o e.npy && "
                     "$K index e.npy -o e.kith --labels e.labels.txt && $K index e.kith --info"),
                "measured on: index\n");
    assert_done(kith("$K search e.kith e.npy --same 0.01 --csv"), "query,rank,id,score");
    assert_own_vector("\n0,1,0,", last_bit);
    assert_done(kith("$K index e.npy -o f.kith && $K index f.kith --info"), "false-match rates not known");
}

/* Vectors that were made elsewhere, with classes and a table. */
static void test_vectors(void **state) {
    (void)state;
    assert_done(
        kith("$K embed m.safetensors photos -o e.npy && (echo path,year,note; awk '{ print $0 \",\" 2000 + "
             "NR \",n\" NR }' "
             "e.paths.txt) > items.csv && $K index e.npy -o e.kith --labels e.labels.txt --meta items.csv"),
        "e.kith: 12 items of 16 values\n");
    assert_done(kith("$K index e.kith --info"), "columns     year (integer), note (text)\n");
    assert_holds("not known: made from vectors");
    assert_done(kith("$K search e.kith e.npy -k 1 --json"),
                "{\"queries\": [{\"query\": 0, \"n_allowed\": 12, \"is_exact\": true, \"hits\": [{\"id\": 0, "
                "\"score\": ");
    assert_holds("{\"query\": 11, \"n_allowed\": 12, \"is_exact\": true, \"hits\": [{\"id\": 11, ");
    assert_holds(
        "\"false_match_rate\": null, \"error_rate\": null, \"error_rate_interval\": null, \"label\": "
        "\"glyph00002\", \"path\": \"photos/glyph00002/00003.png\", "
        "\"values\": {\"year\": 2012, \"note\": \"n12\"}, \"image\": true}]}]}");
    assert_done(kith("$K search e.kith e.npy -k 1 --where 'year = 2003' --csv"), "11,1,2,");
    assert_refused(kith("$K search e.kith photos/glyph00000/00000.png"), 1,
                   "does not say which model made them");
    assert_refused(kith("$K index e.kith --sync"), 1, "does not say which model made them");
    /* Told which model it was, it takes images. */
    assert_done(kith("$K index e.npy -o f.kith --model m.safetensors && $K search f.kith "
                     "photos/glyph00002/00003.png -k 1"),
                "  1  1.0000  11\n");
    assert_refused(kith("head -3 items.csv > s.csv; $K index e.npy -o g.kith --meta s.csv"), 1,
                   "s.csv holds 2 items for 12 rows");
    assert_refused(kith("head -3 e.labels.txt > s.txt; $K index e.npy -o g.kith --labels s.txt"), 1,
                   "s.txt holds 3 labels for 12 rows");
    assert_refused(
        kith("$K index e.npy -o g.kith --model m.safetensors --tap pooled"), 1,
        "e.npy: the vectors have 16 values, the model makes 64 (name the model that made the vectors)");
    assert_int_not_equal(kith("test -e g.kith"), 0); /* nothing half-made */
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *words;
        int status;
        const char *line;
    } rows[] = {
        {"photos -o n.kith", 1, "the model general is not installed"},
        {"photos", 2, "wants -o INDEX or --to ADDRESS for a new one, or one of --sync"},
        {"p.kith --info --check", 2, "--info and --check are both given"},
        {"p.kith --info photos", 2, "'photos' is one too many"},
        {"p.kith --add", 2, "--add wants files or folders"},
        {"photos -o n.kith --model m.safetensors --labels y.npy", 2, "--labels is for vectors"},
        {"photos -o p.kith --model m.safetensors", 1, "p.kith"},
        {"nowhere -o n.kith --model m.safetensors", 1, "nowhere: there is no such file or folder"},
        {"photos -o n.kith --model none.safetensors", 1, "none.safetensors"},
        {"photos -o none/n.kith --model m.safetensors", 1, "none: there is no such folder"},
        {"p.kith --sync --views 2", 2, "--views is for a new index (-o INDEX) or --renew-model"},
        {"p.kith --add photos --size 64", 2, "--size is for a new index"},
        {"p.kith --compact --crop 64", 2, "--crop is for a new index"},
        {"p.kith --sync --resize squash64", 2, "--resize is for a new index"},
        {"p.kith --check --pool max", 2, "--pool is for a new index"},
        {"p.kith --renew-model --first 4", 2, "--first is for a new index (-o INDEX); one that is there"},
        {"photos --info", 1, "photos"},
        {"m.safetensors --info", 1, "m.safetensors"},
        {"nowhere --sync", 1, "nowhere"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        print_message("kith index %s\n", rows[i].words);
        assert_refused(kith("KITH_MODELS=none $K index %s", rows[i].words), rows[i].status, rows[i].line);
    }
    assert_int_not_equal(kith("test -e n.kith"), 0);
    assert_done(kith("$K index p.kith --check"), "all sound");
}

int main(void) {
#define EACH(test) cmocka_unit_test_setup(test, set_up)
    const struct CMUnitTest tests[] = {EACH(test_info),
                                       EACH(test_first_values),
                                       EACH(test_sync),
                                       EACH(test_made_again),
                                       EACH(test_an_id_is_for_ever),
                                       EACH(test_names_that_are_taken_over),
                                       EACH(test_labels_of_a_list),
                                       EACH(test_removed_by_hand),
                                       EACH(test_a_removed_photos_name),
                                       EACH(test_a_removed_photo_elsewhere),
                                       EACH(test_an_older_index),
                                       EACH(test_odd_files),
                                       EACH(test_unreadable_files),
                                       EACH(test_add_and_remove),
                                       EACH(test_missing_folders),
                                       EACH(test_data_sets),
                                       EACH(test_another_model),
                                       EACH(test_calibration),
                                       EACH(test_own_false_match_rates),
                                       EACH(test_own_false_match_rates_of_vectors),
                                       EACH(test_model_false_match_rates),
                                       EACH(test_false_match_rates_of_vectors),
                                       EACH(test_vectors),
                                       EACH(test_refusals)};
    const int n_failed = cmocka_run_group_tests_name("cli/index", tests, NULL, NULL);
    testing_clean_up();
    return n_failed;
}
