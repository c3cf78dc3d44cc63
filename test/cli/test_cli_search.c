/* kith search as a user types it: queries of every kind, and what comes out. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kith/array.h"
#include "support/testing.h"

enum { OUTPUT_BYTES = 65536, N_ITEMS = 12 };
static char output[OUTPUT_BYTES];

#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

static int run_here(const char *fmt, ...) KITH_PRINTF(1, 2);
static int run_here(const char *fmt, ...) {
    char command[4096];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    return run("cd %s && " TESTING_K " && %s", testing_folder(), testing_program(), command);
}

/* With the index of the photos, in the test's folder. */
#define search(...) run_here("$K search p.kith " __VA_ARGS__)
/* The answer alone: on a busy machine there is progress to see. */
#define asked(...) run_here("2>/dev/null $K search p.kith " __VA_ARGS__)

static void assert_holds(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

static void assert_done(int status, const char *text) {
    if (status != 0) fail_msg("exit status %d: %s", status, output);
    assert_holds(text);
}

static void assert_refused(int found, int wanted, const char *text) {
    if (found != wanted) fail_msg("exit status %d, wanted %d: %s", found, wanted, output);
    assert_holds(text);
    assert_one_line_of(output);
}

static int count(const char *what) {
    int n = 0;
    for (const char *at = output; (at = strstr(at, what)); at++) n++;
    return n;
}

static int set_up(void **state) {
    (void)state;
    assert_done(
        run_here("$K synth photos --classes 3 --images 4 && "
                 "$K embed --backbone convnet4 --embedding 16 --seed 9 --generate 2 --save m.safetensors && "
                 "$K embed m.safetensors photos -o e.npy && "
                 "$K index photos -o p.kith --model m.safetensors"),
        "12 added");
    return 0;
}

/* The scores of --csv, in the order of the lines; returns how many. */
static int read_scores(double *score, int most) {
    int n = 0;
    for (const char *line = strchr(output, '\n'); line && line[1] && n < most;
         line = strchr(line + 1, '\n')) {
        const char *at = line + 1;
        for (int comma = 0; comma < 3; comma++) at = strchr(at, ',') + 1;
        score[n++] = strtod(at, NULL);
    }
    return n;
}

static void test_a_table(void **state) {
    (void)state;
    assert_done(asked("photos/glyph00001/00002.png -k 3"), "photos/glyph00001/00002.png\n      score  label");
    assert_holds("  1  1.0000  glyph00001   6  photos/glyph00001/00002.png\n");
    assert_int_equal(count("\n"), 5);
    /* From elsewhere the whole path is shown. */
    assert_done(run("cd / && %s search %s/p.kith %s/photos/glyph00001/00002.png -k 1", testing_program(),
                    testing_folder(), testing_folder()),
                "6  /");
}

/* A name may be anybody's: the terminal must not obey it. */
static void test_control_characters_of_names(void **state) {
    (void)state;
    assert_done(
        run_here(
            "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do printf 'a\\033[31m\\302\\233b\\n'; done > bad.txt && "
            "$K index e.npy -o c.kith --labels bad.txt && $K search c.kith e.npy -k 2"),
        "a?[31m?b");
    assert_null(strchr(output, '\033'));
}

/* The same lists as an exact search over the vectors that kith embed made; every item finds itself. */
static void test_a_folder_and_vectors_agree(void **state) {
    (void)state;
    assert_done(asked("photos -k 5 -o a.npy"), "a.npy: int64 [12, 5]\na.scores.npy: float32 [12, 5]\n");
    assert_done(asked("e.npy -k 5 -o b.npy --exact"), "b.npy: int64 [12, 5]");
    assert_done(run_here("cmp a.npy b.npy && cmp a.scores.npy b.scores.npy"), "");
    kith_error err = {0};
    kith_array ids = {0};
    char path[1024];
    snprintf(path, sizeof path, "%s/a.npy", testing_folder());
    assert_ok(kith_npy_read(path, &ids, &err), &err);
    for (int64_t i = 0; i < N_ITEMS; i++) assert_int_equal(((const int64_t *)ids.data)[5 * i], i);
    kith_array_release(&ids);
}

static void test_json(void **state) {
    (void)state;
    assert_done(
        search("photos/glyph00000/00000.png photos/glyph00002/00001.png -k 1 --json"),
        "{\"queries\": [{\"query\": \"photos/glyph00000/00000.png\", \"n_allowed\": 12, \"is_exact\": true, "
        "\"hits\": [{\"id\": 0, \"score\": ");
    assert_holds(
        ", \"false_match_rate\": null, \"error_rate\": null, \"error_rate_interval\": null, \"label\": "
        "\"glyph00000\", \"path\": \"/");
    assert_holds("/photos/glyph00000/00000.png\", \"values\": {}, \"image\": true}]}, ");
    assert_holds(
        "{\"query\": \"photos/glyph00002/00001.png\", \"n_allowed\": 12, \"is_exact\": true, \"hits\": "
        "[{\"id\": 9, ");
    assert_int_equal(count("\n"), 1);
    assert_done(asked("photos/glyph00000/00000.png --where 'label = none' --json"), "\"hits\": []}]}");
}

/* Items as queries, each its own; alone, and with images. */
static void test_items_as_queries(void **state) {
    (void)state;
    double item[16], picture[16];
    assert_done(asked("--id 6 --id 9 -k 1 --json"), "{\"queries\": [{\"query\": 6, ");
    assert_holds("\"hits\": [{\"id\": 6, \"score\": ");
    assert_holds("{\"query\": 9, ");
    assert_done(asked("--id 6 -k 2"), "item 6\n      score  label");
    assert_done(asked("--id 6 --not photos/glyph00000/00000.png -k 12 --csv"), "\n6,1,");
    assert_int_equal(read_scores(item, 16), 12);
    assert_done(asked("photos/glyph00001/00002.png --not photos/glyph00000/00000.png -k 12 --csv"), "");
    assert_int_equal(read_scores(picture, 16), 12);
    for (int i = 0; i < 12; i++) {
        if (!(fabs(item[i] - picture[i]) < 1e-6))
            fail_msg("hit %d scores %.9g; by its picture %.9g", i, item[i], picture[i]);
    }
    assert_done(asked("--id 6 -k 2 --where 'label = glyph00000' --explain item.png --html item.html && "
                      "test -s item.png && grep -o 'what matches in this picture' item.html | wc -l"),
                "2\n");
}

/* Of the picture that is there twice the second one is not shown; without it there are as many hits. */
static void test_hidden_duplicates(void **state) {
    (void)state;
    assert_done(run_here("mkdir -p twice && cp -r photos/glyph00000 twice/ && "
                         "cp photos/glyph00000/00000.png twice/glyph00000/copy.png && "
                         "$K index twice -o t.kith --model m.safetensors"),
                "5 added");
    assert_done(run_here("2>/dev/null $K search t.kith --id 0 -k 3 --csv"), "");
    assert_int_equal(count("\n"), 4);
    assert_holds("copy.png");
    assert_done(run_here("2>/dev/null $K search t.kith --id 0 -k 3 --hide-duplicates --csv"), "");
    assert_int_equal(count("\n"), 4);
    if (strstr(output, "copy.png")) fail_msg("a copy is shown: %s", output);
    assert_done(run_here("2>/dev/null $K search t.kith --id 0 -k 9 --hide-duplicates --csv"), "");
    assert_int_equal(count("\n"), 5);
}

static void test_pages_and_limits(void **state) {
    (void)state;
    double all[32], part[32];
    assert_done(
        asked("photos/glyph00000/00000.png -k 12 --csv"),
        "query,rank,id,score,false_match_rate,label,path,error_rate,error_rate_low,error_rate_high\n");
    assert_int_equal(read_scores(all, 32), 12);
    assert_done(asked("photos/glyph00000/00000.png -k 5 --page 2 --csv"), ",6,");
    assert_int_equal(read_scores(part, 32), 5);
    assert_memory_equal(part, all + 5, 5 * sizeof *all);
    assert_done(asked("photos/glyph00000/00000.png -k 5 --page 3 --csv"), "");
    assert_int_equal(read_scores(part, 32), 2);
    assert_done(asked("photos/glyph00000/00000.png -k 12 --min-score %.9g --csv", all[6]), "");
    assert_int_equal(read_scores(part, 32), 7);
    assert_done(asked("photos/glyph00000/00000.png --where 'label != glyph00000' -k 12"), "");
    assert_int_equal(count("\n"), 2 + 8);
}

/* A part is another query; two images are between them; the mirror image of the mirror image is the image. */
static void test_parts_and_sums(void **state) {
    (void)state;
    double plain[1], cut[1], both[32], less[32];
    const char *one = "photos/glyph00000/00000.png", *two = "photos/glyph00001/00000.png";
    assert_done(asked("%s -k 1 --crop 0,0,64,64 --csv", one), "");
    assert_int_equal(read_scores(plain, 1), 1);
    if (!(plain[0] > 0.999999)) fail_msg("the whole image as a part scores %.9g", plain[0]);
    assert_done(asked("%s -k 1 --crop 8,4,30,50 --csv", one), "");
    assert_int_equal(read_scores(cut, 1), 1);
    if (!(cut[0] < 0.9999)) fail_msg("a part scores %.9g", cut[0]);
    /* Of two images together each is as near as the other. */
    assert_done(
        search("%s --and %s --where 'path like \"%%/00000.png\" and not label = glyph00002' -k 2 --csv", one,
               two),
        "glyph00000");
    assert_int_equal(read_scores(both, 2), 2);
    assert_holds("glyph00001/00000.png");
    if (!(fabs(both[0] - both[1]) < 1e-5))
        fail_msg("scores %.9g and %.9g of a sum's two parts", both[0], both[1]);
    assert_done(
        search("%s --not %s --where 'path like \"%%/00000.png\" and label = glyph00001' --csv", one, two),
        "");
    assert_int_equal(read_scores(less, 1), 1);
    if (!(less[0] < both[1] - 0.1)) fail_msg("unlike it, it scores %.9g; like it, %.9g", less[0], both[1]);
    assert_done(asked("%s --views flips --csv -k 1", one), "glyph00000");
    assert_refused(search("%s --not %s", one, one), 1, "cancel out");
    assert_refused(search("%s --crop 64,0,5,5", one), 1, "lies outside the image of 64 x 64 pixels");
}

/* Another order of the same items, with the same scores. */
static void test_reranking(void **state) {
    (void)state;
    static const char *const how[] = {"none", "qe", "kr"};
    double score[3][16];
    for (int i = 0; i < 3; i++) {
        assert_done(asked("photos/glyph00000/00000.png --rerank %s -k 12 --csv", how[i]), "query,rank,id,");
        assert_int_equal(read_scores(score[i], 16), 12);
        double sum = 0, first = 0;
        for (int k = 0; k < 12; k++) sum += score[i][k], first += score[0][k];
        if (!(fabs(sum - first) < 1e-5))
            fail_msg("scores of %s add up to %.9g, wanted %.9g", how[i], sum, first);
    }
}

static void test_a_page(void **state) {
    (void)state;
    assert_done(asked("photos/glyph00000/00000.png --and photos/glyph00001/00000.png -k 4 --html hits.html"),
                "hits.html: the hits as pictures\n");
    assert_done(
        run_here("grep -o 'src=\"data:image' hits.html | wc -l && grep -c 'Found in p.kith' hits.html"),
        "15\n"); /* two of the query, four hits, and three heat maps for each of the first three */
    assert_done(run_here("grep -o 'what matches in this picture' hits.html | wc -l"), "3\n");
    assert_done(asked("e.npy -k 4 --html rows.html"), "rows.html: the hits as pictures\n");
    assert_done(run_here("grep -c 'what matches' rows.html || true"), "0\n");
    assert_refused(search("photos/glyph00000/00000.png --html none/hits.html"), 1,
                   "none: there is no such folder");
}

/* --explain: a picture of the query's image and the hit's side by side, 64 pixels each and 12 between. */
static void test_an_explanation(void **state) {
    (void)state;
    unsigned char head[24];
    assert_done(asked("photos/glyph00000/00000.png -k 2 --where 'label = glyph00001' --explain why.png"),
                "why.png: why the first hit matches\n");
    char path[1024];
    snprintf(path, sizeof path, "%s/why.png", testing_folder());
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(head, 1, sizeof head, file), sizeof head);
    fclose(file);
    assert_memory_equal(head, "\x89PNG", 4);
    assert_int_equal(head[18] << 8 | head[19], 64 + 12 + 64);
    assert_int_equal(head[22] << 8 | head[23], 64);
    assert_done(asked("photos/glyph00000/00000.png --and photos/glyph00001/00000.png --views flips "
                      "--crop 0,0,40,64 --explain why.jpg --json && test -s why.jpg"),
                "{\"queries\": ");
    assert_null(strstr(output, "estimate"));
    /* A class token is no sum over positions: said by the command and on the page. */
    assert_done(testing_run(output, sizeof output,
                            "cd %s && " TESTING_K " && $K embed --backbone vit_t --settings "
                            "depth=1,width=32,heads=2,grid=4 --pool class --seed 3 "
                            "--generate 1 --save vit.safetensors && $K index photos -o vit.kith --model "
                            "vit.safetensors && $K search "
                            "vit.kith photos/glyph00000/00000.png -k 2 --explain vit.png --html vit.html && "
                            "test -s vit.png && grep -o "
                            "'The colours are an estimate: the vectors are pooled by .*class' vit.html",
                            testing_folder(), testing_program()),
                "kith: vit.png is an estimate: the vectors are pooled by 'class' and no sum over the "
                "positions; shown are the shares");
    assert_non_null(strstr(output, "The colours are an estimate"));
    assert_refused(search("photos/glyph00000/00000.png --where 'label = none' --explain why.png"), 1,
                   "nothing was found for photos/glyph00000/00000.png, so there is nothing to explain");
    assert_refused(run_here("$K index e.npy -o rows.kith --model m.safetensors >/dev/null 2>&1; "
                            "$K search rows.kith photos/glyph00000/00000.png --explain why.png"),
                   1, "item 0 has no path; wanted its image");
}

static void test_unreadable_queries(void **state) {
    (void)state;
    assert_done(
        run_here("mkdir -p mixed && echo no > mixed/a.png && cp photos/glyph00000/00000.png mixed/b.png && "
                 "$K search p.kith mixed -k 1 2>e && cat e"),
        "1 image could not be read and is left out; the first: mixed/a.png");
    assert_holds("mixed/b.png\n");
    assert_int_equal(search("mixed/a.png 2>&1 >out | grep -v warning"), 0);
    assert_holds("kith: mixed/a.png: the file begins with byte 0x6e");
    assert_done(run_here("test ! -s out"), "");
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *words;
        int status;
        const char *line;
    } rows[] = {
        {"", 2, "wants a query"},
        {"photos --id 3", 2, "both given; wanted one kind of query"},
        {"--id 3 --crop 1,1,2,2", 2, "is for images"},
        {"--id x", 1, "--id is 'x'; wanted the id of an item"},
        {"--id -1", 1, "--id is '-1'; wanted the id of an item"},
        {"--id 3 --id 100", 1, "there is no item 100"},
        {"x.png", 1, "x.png: there is no such file or folder"},
        {"x.npy", 1, "x.npy"},
        {"e.npy --crop 1,1,2,2", 2, "are for images"},
        {"e.npy --explain why.png", 2, "are for images"},
        {"photos --explain why.gif", 2, ".png"},
        {"photos --crop 1,1,2", 2, "wanted x,y,width,height in pixels"},
        {"photos --crop 1,1,2,2,3", 2, "wanted x,y,width,height in pixels"},
        {"photos --crop 1,1,0,2", 2, "wanted x,y,width,height in pixels"},
        {"photos --views 2", 2, "--views N is for a folder of photos"},
        {"photos --views 11", 2, "--views is '11'; wanted one, flips or a number from 1 to 10"},
        {"photos --views flip", 2, "--views is 'flip'; wanted one, flips or a number"},
        {"photos --json --csv", 2, "both given"},
        {"photos --same 0.1 --min-score 0.1", 2, "both given"},
        {"photos --same 0.01", 1,
         "no curve of false-match rates; make it with: kith index p.kith --calibrate DATA"},
        {"photos --where 'lable = x'", 1, "did you mean 'label'?"},
        {"photos --where 'label ='", 1, "character"},
        {"photos -k 0", 2, "--hits"},
        {"photos -o ids.txt", 2, ".npy"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        print_message("kith search p.kith %s\n", rows[i].words);
        assert_refused(search("%s", rows[i].words), rows[i].status, rows[i].line);
    }
    assert_refused(run_here("$K search nowhere e.npy"), 1, "nowhere");
    assert_refused(
        run_here("$K embed --backbone convnet4 --generate 2 -o w.npy >/dev/null && $K search p.kith w.npy"),
        1, "wanted 2, the last of 16");
}

/* How often hits are wrong, in words and as numbers; promises, and queries that are unlike the items. */
static void test_wrong_hits(void **state) {
    (void)state;
    assert_done(
        run_here("$K synth many --classes 24 --images 8 && $K embed m.safetensors many -o many.npy && "
                 "$K index many.npy -o many.kith --labels many.labels.txt && $K index many.kith --info"),
        "wrong hits  known: from 192 trials of 24 labels\n");
    assert_done(run_here("$K index many.kith --info --json"),
                "\"reliability\": {\"trials\": 192, \"labels\": 24}");
    assert_done(run_here("$K search many.kith --id 3 -k 2"), "      score ");
    assert_holds("  wrong  label ");
    assert_holds("such hits ");
    assert_holds(
        " wrong, if 10 % of the queries show something that is not in the index (--unknown); from 192 trials "
        "of "
        "24 labels\n");
    assert_done(run_here("$K search many.kith --id 3 -k 2 --unknown 1"), "10 of 10");
    assert_done(run_here("$K search many.kith --id 3 -k 2 --json"), "\"error_rate\": 0.");
    assert_holds("\"error_rate_interval\": [0.");
    assert_done(run_here("$K search many.kith --id 3 -k 2 --csv"),
                ",error_rate,error_rate_low,error_rate_high\n");
    assert_refused(
        run_here("$K search many.kith --id 3 --precision 0.99"), 1,
        "precision 0.99 takes trials of 299 items without an error, and 10 labels with two items; the index "
        "has 192 such trials");
    assert_refused(run_here("$K search many.kith --id 3 --precision 0.9 --complete 0.9"), 2,
                   "--precision and --complete are both given; wanted one");
    assert_done(run_here("$K search many.kith --id 3 --complete 0.05"),
                "kith: --complete 0.05 is for all 24 names together");
    /* Noise looks like nothing that is there. */
    assert_done(
        run_here("$K embed m.safetensors --generate 25 -o noise.npy && $K search many.kith noise.npy -k 1"),
        "kith: these queries look less like the items than those it was measured on: taken as if ");
    /* Without labels: how often different things look this alike is not known here, nor is this. */
    assert_done(run_here("$K index many.npy -o none.kith && $K index none.kith --info"),
                "wrong hits  not known: takes 10 labels with two items each\n");
    assert_refused(run_here("$K search none.kith --id 3 --precision 0.9"), 1, "the index has 0 such trials");
    /* Rates of other data: in words, once. */
    assert_done(
        run_here("$K index p.kith --calibrate many && $K search p.kith many/glyph00001/00000.png -k 2"),
        " pairs of different things looks this alike. How often a hit is wrong is known of an index with "
        "labels: "
        "name some (folders per thing, or --labels), and bring it up to date (kith index INDEX --sync)\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_table),
                                       cmocka_unit_test(test_control_characters_of_names),
                                       cmocka_unit_test(test_a_folder_and_vectors_agree),
                                       cmocka_unit_test(test_json),
                                       cmocka_unit_test(test_items_as_queries),
                                       cmocka_unit_test(test_hidden_duplicates),
                                       cmocka_unit_test(test_pages_and_limits),
                                       cmocka_unit_test(test_parts_and_sums),
                                       cmocka_unit_test(test_reranking),
                                       cmocka_unit_test(test_a_page),
                                       cmocka_unit_test(test_an_explanation),
                                       cmocka_unit_test(test_unreadable_queries),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_wrong_hits)};
    const int n_failed = cmocka_run_group_tests_name("cli/search", tests, set_up, NULL);
    testing_clean_up();
    return n_failed;
}
