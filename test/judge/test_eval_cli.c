/* kith eval, kith map and kith bench knn as a user types them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kith/card.h"
#include "support/testing.h"

static char output[65536];
#define run(...) testing_run(output, sizeof output, __VA_ARGS__)
/* The files of the reference, for commands and for calls. */
#define GOLDEN "'" GOLDEN_FILES "'"
#define GOLDEN_FILES KITH_SOURCE_DIR "/test/golden/judge/"

static void assert_holds(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

static double number(const kith_card *r, const char *path) {
    double value = NAN;
    if (!kith_card_real(r, path, &value)) fail_msg("no number at %s", path);
    return value;
}

static kith_card *result_of(const char *arguments, const char *name) {
    char path[512];
    kith_error err;
    kith_card *r = NULL;
    snprintf(path, sizeof path, "%s/%s", testing_folder(), name);
    assert_int_equal(run("%s eval %s --json > %s", testing_program(), arguments, path), 0);
    assert_ok(kith_card_read(path, &r, &err), &err);
    return r;
}

/* The file by its place is the file of -e. */
static void test_embeddings_by_their_place(void **state) {
    (void)state;
    static char first[sizeof output];
    assert_int_equal(
        run("%s eval -e " GOLDEN "blobs_embedding.npy -y " GOLDEN "blobs_labels.npy", testing_program()), 0);
    memcpy(first, output, sizeof first);
    assert_int_equal(
        run("%s eval " GOLDEN "blobs_embedding.npy -y " GOLDEN "blobs_labels.npy", testing_program()), 0);
    assert_string_equal(output, first);
}

/* Every key of the JSON against the reference. */
static void test_json_equals_the_reference(void **state) {
    (void)state;
    kith_array e;
    kith_error err;
    assert_ok(kith_npy_read(GOLDEN_FILES "blobs_expected.npy", &e, &err), &err);
    const double *wanted = e.data;
    kith_card *r = result_of(
        "-e " GOLDEN "blobs_embedding.npy -y " GOLDEN "blobs_labels.npy --k 8,4,1000,2,1", "a.json");
    static const char *const keys[] = {"recall.1",       "recall.2",    "recall.4", "recall.8", "recall.1000",
                                       "precision_at_1", "r_precision", "map_at_r", "map",      "mrr"};
    for (size_t i = 0; i < N_ROWS(keys); i++) {
        const double found = number(r, keys[i]);
        if (fabs(found - wanted[i]) > 1e-9) fail_msg("%s: %.12g, wanted %.12g", keys[i], found, wanted[i]);
        char path[64];
        snprintf(path, sizeof path, "intervals.%s.0", keys[i]);
        assert_true(number(r, path) <= found);
        snprintf(path, sizeof path, "intervals.%s.1", keys[i]);
        assert_true(number(r, path) >= found);
    }
    static const char *const clustering[] = {"nmi", "ami", "f1"};
    for (size_t i = 0; i < N_ROWS(clustering); i++) assert_true(number(r, clustering[i]) > 0);
    assert_int_equal((int)number(r, "queries"), 450);
    assert_int_equal((int)number(r, "card.embedding_size"), 24);
    assert_int_equal(run("sha256sum " GOLDEN "blobs_embedding.npy"), 0);
    assert_memory_equal(output, kith_card_text(r, "card.embedding_sha256"), 64);
    kith_card_free(r);
    kith_array_release(&e);
}

/* Rates in the card and in the table are those of the reference, and the picture is a whole file. */
static void test_verification(void **state) {
    (void)state;
    kith_array e;
    kith_error err;
    char arguments[1024], path[600];
    assert_ok(kith_npy_read(GOLDEN_FILES "blobs_verification.npy", &e, &err), &err);
    const double *wanted = e.data;
    snprintf(arguments, sizeof arguments,
             "-e " GOLDEN "blobs_embedding.npy -y " GOLDEN
             "blobs_labels.npy --metrics verification --roc "
             "%s/roc.svg",
             testing_folder());
    kith_card *r = result_of(arguments, "v.json");
    static const char *const keys[] = {"auc",
                                       "eer",
                                       "tar_at_far.0.tar",
                                       "tar_at_far.1.tar",
                                       "tar_at_far.2.tar",
                                       "tar_at_far.3.tar",
                                       "tar_at_far.0.threshold",
                                       "tar_at_far.1.threshold",
                                       "tar_at_far.2.threshold",
                                       "tar_at_far.3.threshold",
                                       "same_pairs",
                                       "different_pairs"};
    for (size_t i = 0; i < N_ROWS(keys); i++) {
        snprintf(path, sizeof path, "verification.%s", keys[i]);
        const double found = number(r, path);
        if (fabs(found - wanted[i]) > 1e-9) fail_msg("%s: %.12g, wanted %.12g", path, found, wanted[i]);
    }
    assert_true(number(r, "verification.intervals.auc.0") < wanted[0]);
    assert_true(number(r, "verification.intervals.auc.1") > wanted[0]);
    assert_true(number(r, "verification.tar_at_far.1.interval.0") < wanted[3]);
    assert_string_equal(kith_card_text(r, "verification.intervals.unit"), "class");
    assert_null(kith_card_text(r, "recall.1"));
    kith_card_free(r);
    snprintf(path, sizeof path, "%s/roc.svg", testing_folder());
    char *svg = testing_read(path);
    assert_non_null(strstr(svg, "<polyline"));
    assert_non_null(strstr(svg, "</svg>\n"));
    free(svg);
    assert_int_equal(run("%s eval -e " GOLDEN "blobs_embedding.npy -y " GOLDEN
                         "blobs_labels.npy --metrics verification --bootstrap 0",
                         testing_program()),
                     0);
    assert_holds("5167 pairs of one class, 95858 of two, 20 classes, cosine");
    assert_holds("  TAR@FAR 0.01      6.25     0.465058   958\n");
    snprintf(path, sizeof path, "%s/v.json", testing_folder());
    assert_int_equal(run("%s eval --compare %s %s", testing_program(), path, path), 0);
    assert_holds("ROC AUC");
    assert_int_equal(
        run("%s eval -e " GOLDEN "blobs_embedding.npy -y " GOLDEN "blobs_labels.npy --roc %s/roc.gif",
            testing_program(), testing_folder()),
        2);
    assert_one_line_of(output);
    kith_array_release(&e);
}

static void test_rerank(void **state) {
    (void)state;
    const char *const what = "-e " GOLDEN "blobs_embedding.npy -y " GOLDEN
                             "blobs_labels.npy --metrics map_at_r --k 1 --bootstrap 0";
    char arguments[1024];
    for (int m = 0; m < 2; m++) {
        snprintf(arguments, sizeof arguments, "%s --rerank %s", what, m ? "qe" : "kr");
        kith_card *r = result_of(arguments, "r.json");
        assert_string_equal(kith_card_text(r, "rerank.method"), m ? "qe" : "kr");
        assert_true(number(r, "rerank.before.map_at_r") == number(r, "map_at_r"));
        assert_true(number(r, "rerank.after.map_at_r") > number(r, "map_at_r"));
        assert_true(number(r, "rerank.after.recall.1") > 0.2);
        kith_card_free(r);
        assert_int_equal(run("%s eval %s", testing_program(), arguments), 0);
        assert_holds("before     after      gain");
        assert_holds("  MAP@R             7.98      8.");
    }
    /* Without scores to compare with, they are added. */
    kith_card *alone = result_of("-e " GOLDEN "blobs_embedding.npy -y " GOLDEN
                                 "blobs_labels.npy --metrics verification --k 4 --rerank qe",
                                 "alone.json");
    assert_true(number(alone, "map_at_r") == number(alone, "rerank.before.map_at_r"));
    assert_true(number(alone, "rerank.before.precision_at_1") == 0.3);
    kith_card_free(alone);
    assert_int_equal(run("%s eval %s --rerank kr --metric inner", testing_program(), what), 1);
    assert_holds("re-ranking goes by cosine; the metric is inner");
    assert_one_line_of(output);
}

/* Tables, the card and the page name the same rows; names that come from elsewhere are text on the page. */
static void test_worst(void **state) {
    (void)state;
    const char *const what = "-e " GOLDEN "blobs_embedding.npy -y " GOLDEN
                             "blobs_labels.npy --metrics map --bootstrap 0 --worst 5";
    char arguments[1400], wanted[64];
    kith_card *r = result_of(what, "w.json");
    assert_string_equal(kith_card_text(r, "worst.judged"), "450");
    assert_int_equal((int)number(r, "worst.wrong"), 315); /* R@1 is 0.3 */
    assert_non_null(kith_card_text(r, "worst.queries.4.row"));
    assert_null(kith_card_text(r, "worst.queries.5.row"));
    assert_null(kith_card_text(r, "worst.queries.0.path"));
    assert_true(number(r, "worst.queries.0.average_precision") < number(r, "map") / 2);
    assert_true(number(r, "worst.negatives.0.margin") > number(r, "worst.negatives.4.margin"));
    assert_int_equal(run("%s eval %s", testing_program(), what), 0);
    assert_holds(
        "the 5 worst of 450 queries, by average precision; 315 have a nearest item of another class");
    snprintf(wanted, sizeof wanted, "row %d\n", (int)number(r, "worst.queries.0.row"));
    assert_holds(wanted);
    snprintf(wanted, sizeof wanted, "row %d\n", (int)number(r, "worst.negatives.0.negative.row"));
    assert_holds(wanted);
    kith_card_free(r);
    /* One path for every row. No file has that name, so that the page says so in the pictures' places. */
    assert_int_equal(
        run("for i in $(seq 450); do echo \"a<b>/$i.png\"; done > %s/paths.txt", testing_folder()), 0);
    snprintf(arguments, sizeof arguments, "%s --html %s/w.html --images %s/paths.txt", what, testing_folder(),
             testing_folder());
    r = result_of(arguments, "p.json");
    snprintf(wanted, sizeof wanted, "a<b>/%d.png", (int)number(r, "worst.queries.0.row") + 1);
    assert_string_equal(kith_card_text(r, "worst.queries.0.path"), wanted);
    kith_card_free(r);
    char path[600];
    snprintf(path, sizeof path, "%s/w.html", testing_folder());
    char *html = testing_read(path);
    assert_non_null(strstr(html, "a&lt;b&gt;/"));
    assert_null(strstr(html, "<b>"));
    assert_null(strstr(html, "<script"));
    assert_non_null(strstr(html, "Hard negative 5: "));
    assert_null(strstr(html, "Hard negative 6: "));
    assert_non_null(strstr(html, "</html>\n"));
    free(html);
    assert_int_equal(run("%s eval %s --html %s/w.html", testing_program(), what, testing_folder()), 2);
    assert_holds("--html wants --images PATHS");
    assert_one_line_of(output);
    assert_int_equal(run("%s eval -e " GOLDEN "split_embedding.npy -y " GOLDEN
                         "split_labels.npy --html %s/v.html --images %s/paths.txt",
                         testing_program(), testing_folder(), testing_folder()),
                     1);
    assert_holds("paths.txt holds 450 paths for 400 rows");
    assert_one_line_of(output);
}

static void test_query_and_gallery(void **state) {
    (void)state;
    kith_array e;
    kith_error err;
    assert_ok(kith_npy_read(GOLDEN_FILES "split_expected.npy", &e, &err), &err);
    kith_card *r = result_of("-e " GOLDEN "split_embedding.npy -y " GOLDEN "split_labels.npy --query " GOLDEN
                             "split_query.npy --gallery " GOLDEN "split_gallery.npy --metrics recall,map",
                             "b.json");
    assert_true(fabs(number(r, "map") - ((const double *)e.data)[8]) < 1e-9);
    assert_true(fabs(number(r, "recall.1") - ((const double *)e.data)[0]) < 1e-9);
    assert_null(kith_card_text(r, "nmi"));
    assert_null(kith_card_text(r, "mrr"));
    kith_card_free(r);
    kith_array_release(&e);
    /* The same matrix as query and as gallery: every query finds itself first. */
    r = result_of("--query " GOLDEN "split_embedding.npy --gallery " GOLDEN
                  "split_embedding.npy --query-labels " GOLDEN "split_labels.npy --gallery-labels " GOLDEN
                  "split_labels.npy --metrics retrieval",
                  "c.json");
    assert_true(number(r, "recall.1") == 1);
    kith_card_free(r);
}

static void test_compare_says_what_differs(void **state) {
    (void)state;
    char a[512], b[512];
    kith_card_free(result_of("-e " GOLDEN "blobs_embedding.npy -y " GOLDEN "blobs_labels.npy", "a.json"));
    kith_card_free(result_of("-e " GOLDEN "double_embedding.npy -y " GOLDEN "double_labels.npy", "b.json"));
    snprintf(a, sizeof a, "%s/a.json", testing_folder());
    snprintf(b, sizeof b, "%s/b.json", testing_folder());
    /* Of other queries: one line. */
    assert_int_equal(run("%s eval --compare %s %s", testing_program(), a, b), 1);
    assert_holds("not the same queries: ");
    assert_one_line_of(output);
    /* Where a result does not say what its queries came to, it is shown, without intervals of the differences. */
    assert_int_equal(run("sed -i 's/\"per_query\": {[^}]*}, //' %s", b), 0);
    assert_int_equal(run("%s eval --compare %s %s", testing_program(), a, b), 0);
    assert_holds("R@1 ");
    assert_holds("No intervals of the differences: ");
    assert_holds(
        "b.json does not say what every query came to (per_query): kith eval MODEL --data DIR --json makes "
        "a result that does.\n");
    assert_holds("not the same embedding size: 24 and 6");
    assert_holds("not the same labels");
    assert_holds("No: a difference");
    assert_int_equal(run("%s eval --compare %s %s", testing_program(), a, a), 0);
    assert_holds("+0.00  (+0.00 to +0.00)  the same\n");
    assert_holds("a paired bootstrap over the same 450 queries.\n");
    assert_holds("missing in both: backbone, resize, crop, preprocessing, pooling, tap\n");
    assert_holds("Unknown: what is missing");
    assert_int_equal(run("%s eval --compare %s", testing_program(), a), 2);
    assert_int_equal(run("%s eval --compare %s %s/none.json", testing_program(), a, testing_folder()), 1);
    assert_one_line_of(output);
}

/* The same queries by two embeddings: by how much they differ, as text and as JSON. */
static void test_compare_pairs_queries(void **state) {
    (void)state;
    char a[512], b[512];
    kith_card_free(result_of("-e " GOLDEN "blobs_embedding.npy -y " GOLDEN "blobs_labels.npy", "p.json"));
    kith_card_free(result_of(
        "-e " GOLDEN "blobs_embedding.npy -y " GOLDEN "blobs_labels.npy --metric sqeuclidean", "q.json"));
    snprintf(a, sizeof a, "%s/p.json", testing_folder());
    snprintf(b, sizeof b, "%s/q.json", testing_folder());
    assert_int_equal(run("%s eval --compare %s %s", testing_program(), a, b), 0);
    assert_holds("not the same similarity: cosine and sqeuclidean");
    assert_int_equal(
        run("%s eval --compare --json %s %s > %s/c.json", testing_program(), a, b, testing_folder()), 0);
    snprintf(a, sizeof a, "%s/c.json", testing_folder());
    kith_card *c = NULL;
    kith_error err = {0};
    assert_ok(kith_card_read(a, &c, &err), &err);
    assert_string_equal(kith_card_text(c, "scores.0.name"), "R@1");
    assert_string_equal(kith_card_text(c, "paired"), "true");
    assert_string_equal(kith_card_text(c, "comparable"), "no");
    const double low = number(c, "scores.0.interval.0"), high = number(c, "scores.0.interval.1"),
                 difference = number(c, "scores.0.difference");
    if (!(low <= difference && difference <= high && low < high))
        fail_msg("%g in (%g to %g)", difference, low, high);
    assert_string_equal(kith_card_text(c, "scores.0.excludes_0"), low > 0 || high < 0 ? "true" : "false");
    kith_card_free(c);
}

/* Where there is a device the metrics are the same; where there is none, one line says so. */
static void test_device(void **state) {
    (void)state;
    const char *const what =
        "-e " GOLDEN "blobs_embedding.npy -y " GOLDEN "blobs_labels.npy --metrics retrieval";
    const int status = run("%s eval %s --device cuda", testing_program(), what);
    if (status != 0) {
        assert_int_equal(status, 1);
        assert_one_line_of(output);
        assert_holds("use device cpu");
    } else {
        kith_card *here = result_of(what, "here.json");
        char there[512];
        snprintf(there, sizeof there, "%s --device cuda", what);
        kith_card *found = result_of(there, "there.json");
        assert_true(number(here, "map") == number(found, "map"));
        kith_card_free(here);
        kith_card_free(found);
    }
    assert_int_equal(run("%s bench knn -e " GOLDEN "blobs_embedding.npy --device cude", testing_program()),
                     1);
    assert_one_line_of(output);
}

/* The same classes as names, one to a line: the same scores, for one matrix and for two. */
static void test_labels_may_be_names(void **state) {
    (void)state;
    kith_array labels = {0};
    kith_error err;
    char path[512], arguments[2048];
    assert_ok(kith_npy_read(GOLDEN_FILES "blobs_labels.npy", &labels, &err), &err);
    snprintf(path, sizeof path, "%s/names.txt", testing_folder());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    const bool is_wide = labels.dtype == KITH_I64;
    for (int64_t i = 0; i < labels.dim[0]; i++)
        fprintf(file, "class %lld\n",
                is_wide ? (long long)((int64_t *)labels.data)[i] : (long long)((int32_t *)labels.data)[i]);
    fclose(file);
    kith_array_release(&labels);
    kith_card *numbers = result_of(
        "-e " GOLDEN "blobs_embedding.npy -y " GOLDEN "blobs_labels.npy --metrics retrieval", "n.json");
    snprintf(arguments, sizeof arguments, "-e " GOLDEN "blobs_embedding.npy -y %s --metrics retrieval", path);
    kith_card *names = result_of(arguments, "t.json");
    assert_true(number(numbers, "map_at_r") == number(names, "map_at_r"));
    snprintf(arguments, sizeof arguments,
             "--query " GOLDEN "blobs_embedding.npy --gallery " GOLDEN
             "blobs_embedding.npy --query-labels %s --gallery-labels %s --metrics retrieval",
             path, path);
    kith_card *apart = result_of(arguments, "q.json");
    assert_true(number(apart, "recall.1") == 1); /* every query is in the gallery, under its own name */
    kith_card_free(numbers);
    kith_card_free(names);
    kith_card_free(apart);
    assert_int_equal(run("%s map " GOLDEN "blobs_embedding.npy -y %s -o %s/m.svg --iterations 5",
                         testing_program(), path, testing_folder()),
                     0);
}

static void test_mistakes_are_one_line(void **state) {
    (void)state;
    static const struct {
        const char *arguments, *says;
        int status;
    } rows[] = {
        {"", "wants E.npy --labels Y.npy", 2},
        {GOLDEN "blobs_embedding.npy -e x.npy", "and --embedding are both given", 2},
        {"-e " GOLDEN "blobs_embedding.npy", "wants --labels", 2},
        {"-e " GOLDEN "blobs_embedding.npy -y " GOLDEN "split_labels.npy", "400 labels in", 1},
        {"-e " GOLDEN "blobs_embedding.npy -y " GOLDEN "blobs_embedding.npy",
         "2 dimensions; wanted 1: a label per row", 1},
        {"-e " GOLDEN "blobs_labels.npy -y " GOLDEN "blobs_labels.npy", "wanted 2: [rows, dim]", 1},
        {"-e none.npy -y none.npy", "none.npy", 1},
        {"-e " GOLDEN "blobs_embedding.npy -y " GOLDEN "blobs_labels.npy --k 1,0", "--k has '0'", 2},
        {"-e " GOLDEN "blobs_embedding.npy -y " GOLDEN "blobs_labels.npy --k x", "--k has 'x'", 2},
        {"-e " GOLDEN "blobs_embedding.npy -y " GOLDEN "blobs_labels.npy --metrics recal",
         "did you mean 'recall'", 2},
        {"-e " GOLDEN "blobs_embedding.npy -y " GOLDEN "blobs_labels.npy --gallery " GOLDEN
         "blobs_labels.npy",
         "is given twice", 1},
        {"model.safetensors", "wants --data", 2},
        {"model.safetensors --data x -e y.npy", "not both", 2},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const int status = run("%s eval %s", testing_program(), rows[i].arguments);
        if (status != rows[i].status)
            fail_msg("eval %s: exit %d, wanted %d: %s", rows[i].arguments, status, rows[i].status, output);
        assert_holds(rows[i].says);
        assert_one_line_of(output);
    }
}

static void write_rows(const char *path, int64_t n, float first) {
    float *x = calloc((size_t)n * 2 + 1, sizeof *x);
    for (int64_t i = 0; i < 2 * n; i++) x[i] = (float)(i % 7) + 0.5F;
    if (n) x[0] = first;
    const kith_array a = {KITH_F32, 2, {n, 2}, x};
    kith_error err;
    assert_ok(kith_npy_write(path, &a, &err), &err);
    free(x);
}

static void test_nan_rows_and_empty_input(void **state) {
    (void)state;
    char x[512], y[512];
    int64_t labels[20];
    for (int i = 0; i < 20; i++) labels[i] = i % 2;
    const kith_array all = {KITH_I64, 1, {20}, labels}, none = {KITH_I64, 1, {0}, labels};
    kith_error err;
    snprintf(x, sizeof x, "%s/x.npy", testing_folder());
    snprintf(y, sizeof y, "%s/y.npy", testing_folder());
    write_rows(x, 20, NAN);
    assert_ok(kith_npy_write(y, &all, &err), &err);
    assert_int_equal(run("%s eval -e %s -y %s", testing_program(), x, y), 1);
    assert_holds("row 0 column 0 is nan");
    assert_one_line_of(output);
    assert_int_equal(run("%s bench knn -e %s -k 3", testing_program(), x), 1);
    assert_holds("row 0 column 0 is nan");
    write_rows(x, 20, 1);
    assert_ok(kith_npy_write(y, &none, &err), &err);
    char z[512];
    snprintf(z, sizeof z, "%s/z.npy", testing_folder());
    assert_ok(kith_npy_write(z, &all, &err), &err);
    assert_int_equal(run("%s eval -e %s -y %s --gallery %s", testing_program(), x, z, y), 1);
    assert_holds("y.npy holds no rows: the gallery is empty (wanted row numbers, or a mask");
    assert_one_line_of(output);
    assert_int_equal(run("%s eval -e %s -y %s --query %s", testing_program(), x, z, y), 1);
    assert_holds("y.npy holds no rows: there are no queries (wanted row numbers, or a mask");
    assert_one_line_of(output);
    char none_of[512];
    snprintf(none_of, sizeof none_of, "%s/none.npy", testing_folder());
    write_rows(none_of, 0, 1);
    assert_int_equal(run("%s eval --query %s --query-labels %s --gallery %s --gallery-labels %s",
                         testing_program(), x, z, none_of, y),
                     1);
    assert_holds("none.npy holds no rows: the gallery is empty (wanted embeddings of");
    assert_one_line_of(output);
    write_rows(x, 0, 1);
    assert_int_equal(run("%s eval -e %s -y %s", testing_program(), x, y), 1);
    assert_one_line_of(output);
}

/* A model on a data set, and the files it saved, judged alike; the card says where the numbers are from. */
static void test_model_and_saved_embeddings_agree(void **state) {
    (void)state;
    const char *folder = testing_folder();
    char arguments[1024];
    assert_int_equal(run("%s synth %s/set --classes 12 --images 6 --size 32", testing_program(), folder), 0);
    snprintf(arguments, sizeof arguments,
             "--backbone convnet4 --data %s/set --resize none --metrics retrieval --save-embedding %s/e.npy "
             "--save-labels %s/l.npy",
             folder, folder, folder);
    kith_card *model = result_of(arguments, "m.json");
    snprintf(arguments, sizeof arguments, "-e %s/e.npy -y %s/l.npy --metrics retrieval", folder, folder);
    kith_card *files = result_of(arguments, "f.json");
    assert_int_equal((int)number(model, "queries"), 36);
    assert_string_equal(kith_card_text(model, "card.backbone"), "convnet4");
    assert_string_equal(kith_card_text(model, "card.split"), "test");
    assert_true(number(model, "embed_seconds") > 0);
    assert_null(kith_card_text(files, "embed_seconds")); /* nobody embedded */
    assert_int_equal((int)strlen(kith_card_text(model, "card.data_sha256")), 64);
    static const char *const keys[] = {"recall.1", "map_at_r", "map", "mrr"};
    for (size_t i = 0; i < N_ROWS(keys); i++) assert_true(number(model, keys[i]) == number(files, keys[i]));
    kith_card_free(model);
    kith_card_free(files);
    assert_int_equal(
        run("%s eval --backbone convnet4 --data %s/set --resize huge", testing_program(), folder), 1);
    assert_holds("resize is 'huge'");
    assert_one_line_of(output);
}

/* A manifest may leave nobody to look for, or nobody who looks. */
static void test_roles_of_one_kind(void **state) {
    (void)state;
    static const struct {
        const char *role, *wanted;
    } rows[] = {
        {"query",
         "list.csv: every image is of the role query: the gallery is empty (wanted images whose role"},
        {"gallery", "list.csv: every image is of the role gallery: there are no queries (wanted images"},
    };
    const char *folder = testing_folder();
    assert_int_equal(run("%s synth %s/roles --classes 12 --images 6 --size 32", testing_program(), folder),
                     0);
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        assert_int_equal(
            run("cd %s && echo path,label,split,role >list.csv && for f in roles/*/0000[01].png; do "
                "echo $f,$(basename $(dirname $f)),test,%s; done >>list.csv",
                folder, rows[i].role),
            0);
        assert_int_equal(run("cd %s && %s eval --backbone convnet4 --data list.csv --resize none", folder,
                             testing_program()),
                         1);
        assert_holds(rows[i].wanted);
        assert_one_line_of(output);
    }
}

static void test_bench_prints_json(void **state) {
    (void)state;
    assert_int_equal(run("%s bench knn --embedding " GOLDEN "blobs_embedding.npy -k 5 --metric inner --json",
                         testing_program()),
                     0);
    assert_holds("\"seconds\": ");
    assert_holds("\"gflops\": ");
    assert_holds("\"peak_bytes\": ");
    assert_int_equal(run("%s bench knn --embedding " GOLDEN "blobs_embedding.npy -k 0", testing_program()),
                     2);
    assert_int_equal(run("%s bench knn", testing_program()), 2);
}

static void test_map_draws(void **state) {
    (void)state;
    struct stat there;
    char path[512];
    snprintf(path, sizeof path, "%s/map.svg", testing_folder());
    assert_int_equal(
        run("%s map " GOLDEN "blobs_embedding.npy --labels " GOLDEN "blobs_labels.npy --iterations 20 -o %s",
            testing_program(), path),
        0);
    assert_holds("450 points");
    assert_int_equal(stat(path, &there), 0);
    assert_int_equal(
        run("%s map " GOLDEN "blobs_embedding.npy --iterations 2 -o %s.gif", testing_program(), path), 2);
    assert_holds(".svg or .png");
    assert_int_equal(run("%s map " GOLDEN "blobs_embedding.npy", testing_program()), 2);
    assert_int_equal(run("%s map " GOLDEN "blobs_embedding.npy --labels " GOLDEN "split_labels.npy -o %s",
                         testing_program(), path),
                     1);
    assert_holds("400 labels for 450 rows");
    assert_one_line_of(output);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_embeddings_by_their_place),
        cmocka_unit_test(test_json_equals_the_reference),
        cmocka_unit_test(test_verification),
        cmocka_unit_test(test_rerank),
        cmocka_unit_test(test_worst),
        cmocka_unit_test(test_query_and_gallery),
        cmocka_unit_test(test_compare_says_what_differs),
        cmocka_unit_test(test_compare_pairs_queries),
        cmocka_unit_test(test_device),
        cmocka_unit_test(test_labels_may_be_names),
        cmocka_unit_test(test_mistakes_are_one_line),
        cmocka_unit_test(test_nan_rows_and_empty_input),
        cmocka_unit_test(test_model_and_saved_embeddings_agree),
        cmocka_unit_test(test_roles_of_one_kind),
        cmocka_unit_test(test_bench_prints_json),
        cmocka_unit_test(test_map_draws),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
